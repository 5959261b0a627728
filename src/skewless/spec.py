"""Spec strings: `name` or `name:param=value,param=value` for a frozen dataclass of parameters."""

from __future__ import annotations

import functools
import importlib
import numbers
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from decimal import Decimal
from operator import index
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from skewless.errors import SkewlessError, brief, unknown

T = TypeVar("T")

_LARGEST = (1 << 63) - 1  # what arrays and kernels count with
_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def split_list(text: str) -> list[str]:
    """Split a comma-separated list of specs.

    An item with `=` and no `:` continues the one before it:

    >>> split_list("key,partial:choices=5,d-choices:a=1,b=2")
    ['key', 'partial:choices=5', 'd-choices:a=1,b=2']
    """
    specs: list[str] = []
    for item in text.split(","):
        if "=" in item and ":" not in item.split("=")[0] and specs:
            specs[-1] += "," + item
        elif item.strip():
            specs.append(item.strip())
        else:
            raise SkewlessError(
                f"The list '{text}' has an empty item: give names separated by single commas."
            )
    return specs


class Registry(Mapping[str, type[T]]):
    """Classes by the names that specs call them; each is imported when it is first asked for."""

    def __init__(self, room: str, places: Mapping[str, str]) -> None:
        """`places` says `module:class` of each name, with modules of the package `room`."""
        self._room = room
        self._places = dict(places)

    def __getitem__(self, name: str) -> type[T]:
        module, _, kind = self._places[name].partition(":")
        found: type[T] = getattr(importlib.import_module(f"{self._room}.{module}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def build(registry: Mapping[str, type[T]], text: str, kind: str) -> T:
    """The object that a spec string describes; every mistake is one sentence."""
    name, _, rest = text.strip().partition(":")
    if name not in registry:
        raise unknown(kind, name, registry)
    cls = registry[name]
    hints = get_type_hints(cls)
    known = {f.name: f for f in fields(cls) if f.init}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for part in _parts(rest):
        param, equals, value = part.partition("=")
        param = param.strip()
        if not equals:
            raise SkewlessError(
                f"'{part}' in {kind} '{text}' is not of the form param=value; "
                f"{name} takes {_describe(known)}."
            )
        if param not in known:
            raise unknown(f"parameter of {kind} {name} called", param, known)
        if param in values:
            raise SkewlessError(f"{kind.capitalize()} '{text}' gives {param} twice: give it once.")
        values[param] = convert(value.strip(), hints[param], f"{name}:{param}")
    missing = [n for n, f in known.items() if _required(f) and n not in values]
    if missing:
        raise SkewlessError(
            f"{kind.capitalize()} '{name}' needs {', '.join(missing)}: "
            f"write {name}:{','.join(f'{n}=…' for n in missing)}."
        )
    return cls(**values)


def _parts(rest: str) -> list[str]:
    """The parameters; a comma in the name of a file that exists is part of the name."""
    parts = [part for part in rest.split(",") if part]
    for start, part in enumerate(parts):
        if part.startswith("path="):
            for stop in range(len(parts), start + 1, -1):
                whole = ",".join(parts[start:stop])
                # Of these no folder that may not be entered makes an error.
                if os.path.exists(os.path.expanduser(whole.removeprefix("path="))):
                    return [*parts[:start], whole, *parts[stop:]]
    return parts


def convert(value: str, hint: Any, where: str) -> Any:
    """The text `value` as the annotated type; whole numbers may be written 1e6 or 1_000_000."""
    origin = get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        inner = [a for a in get_args(hint) if a is not type(None)]
        return convert(value, inner[0], where)
    if origin is typing.Literal:
        if value not in get_args(hint):
            raise unknown(f"value for {where} called", value, map(str, get_args(hint)))
        return value
    if hint is str and not value:
        raise SkewlessError(f"{where} is empty: give a value behind the '='.")
    try:
        if hint is bool:
            return _TRUTHS[value.lower()]
        if hint is int:
            number = float(value)
            if number != int(number):
                raise ValueError
            whole = int(value) if value.lstrip("-").isdigit() else int(number)
            return _countable(whole, value, where)
        if hint is float:
            return float(value)
    except SkewlessError:
        raise
    except (ValueError, KeyError, OverflowError):
        raise _other_type(value, hint, where) from None
    return value


def conform(value: Any, hint: Any, where: str) -> Any:
    """The object `value` as the annotated type, if that is one that a text can be converted to."""
    if get_origin(hint) in (types.UnionType, typing.Union):
        inner = [a for a in get_args(hint) if a is not type(None)]
        if len(inner) < len(get_args(hint)) and value is None:
            return None
        return conform(value, inner[0], where) if len(inner) == 1 else value
    if get_origin(hint) is typing.Literal:
        if value not in get_args(hint):
            raise unknown(f"value for {where} called", str(value), map(str, get_args(hint)))
        return value
    if hint not in _TYPES:
        return value
    truth = isinstance(value, bool | np.bool_)
    try:
        if hint is bool and truth:
            return bool(value)
        if hint is str and isinstance(value, str | os.PathLike):
            return os.fspath(value)
        if hint is str and not truth:
            return str(index(value))  # a column by its number is text in a spec string too
        if hint is int and not truth:
            return _countable(_whole(value), value, where)
        if hint is float and not truth and isinstance(value, numbers.Real | Decimal):
            return float(value)
    except (TypeError, OverflowError):
        pass
    raise _other_type(value, hint, where)


def _whole(value: Any) -> int:
    if isinstance(value, float | np.floating) and value.is_integer():
        return int(value)  # as in a spec string, where 1e6 is a whole number too
    return index(value)


def _countable(whole: int, given: Any, where: str) -> int:
    if abs(whole) > _LARGEST:
        raise SkewlessError(f"{where} takes a whole number up to {_LARGEST}, not {given!r}.")
    return whole


def _other_type(value: Any, hint: Any, where: str) -> SkewlessError:
    return SkewlessError(f"{where} takes {_TYPES[hint]}, not {brief(value)}.")


def describe(thing: Any, name: str) -> str:
    """The spec string of a dataclass: its name and the parameters that differ from the defaults."""
    changed = [
        f"{f.name}={str(v).lower() if isinstance(v, bool) else v}"
        for f in fields(thing)
        if f.init and (v := getattr(thing, f.name)) != f.default
    ]
    return name + (":" + ",".join(changed) if changed else "")


def parameters(cls: type[Any]) -> list[dict[str, Any]]:
    """The parameters of a class that `build` makes: name, whether it is needed, default."""
    return [
        {
            "name": f.name,
            "required": _required(f),
            "default": None if _required(f) or f.default is MISSING else f.default,
        }
        for f in fields(cls)
        if f.init
    ]


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _describe(known: Mapping[str, Any]) -> str:
    return ", ".join(sorted(known)) or "no parameters"


class Described:
    """Mixin: a parameter object that knows its own name and prints as its spec string.

    A dataclass takes the same values whether they come as objects or from a spec string. They are
    conformed before its `__post_init__`, if it has one, looks at them.
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__post_init__" in vars(cls):
            cls.__post_init__ = _after_conforming(cls.__post_init__)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        _conform_all(self)

    @property
    def spec(self) -> str:
        """The spec string that builds this object again."""
        return describe(self, self.name)


def _after_conforming(check: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(check)
    def conform_and_check(self: Described, *more: Any) -> None:
        _conform_all(self)
        check(self, *more)

    return conform_and_check


def _conform_all(thing: Any) -> None:
    cls: Any = type(thing)
    for name, (hint, default) in _hints(cls).items():
        value = getattr(thing, name)
        if value is default:
            continue  # the default is its author's choice, such as a None that the type leaves out
        conformed = conform(value, hint, f"{getattr(cls, 'name', cls.__name__)}:{name}")
        if conformed is not value:
            object.__setattr__(thing, name, conformed)  # the dataclass may be frozen


@functools.cache
def _hints(cls: type[Any]) -> dict[str, tuple[Any, Any]]:
    """Types and defaults of a dataclass's parameters; none where a type's name does not exist."""
    try:
        hints = get_type_hints(cls)
    except (NameError, AttributeError, TypeError):
        return {}
    return {f.name: (hints[f.name], f.default) for f in fields(cls) if f.init}
