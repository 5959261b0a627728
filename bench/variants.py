"""Graded choices with other constants: the module's source with some of its lines replaced.

Constants are compiled into the machine code, so each setting is a module and a class of its own,
with names of their own, or the machine code of one would be found for another.
"""

import hashlib
import re
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

from skewless.errors import SkewlessError
from skewless.schemes import Scheme, graded


def variant(**settings: float) -> Scheme:
    """Graded choices with these constants and parameters instead of its own."""
    parameters = {field.name for field in fields(graded.GradedChoices)}
    source = Path(graded.__file__).read_text()
    for name in settings.keys() - parameters:
        source, found = re.subn(
            rf"^{name} = [^#\n]*", f"{name} = {settings[name]!r}  ", source, flags=re.MULTILINE
        )
        if not found:
            raise SkewlessError(f"Graded choices have no constant {name}.")
    digest = hashlib.blake2b(source.encode(), digest_size=8).hexdigest()
    module = ModuleType(f"graded_{digest}")
    sys.modules[module.__name__] = module  # where dataclasses and pickles look for it
    exec(
        compile(source.replace("Graded", f"Graded{digest}"), module.__name__, "exec"), vars(module)
    )
    scheme = vars(module)[f"Graded{digest}Choices"]
    return scheme(**{name: settings[name] for name in settings.keys() & parameters})
