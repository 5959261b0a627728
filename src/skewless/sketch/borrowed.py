"""A view of arrays that numba does not count references to.

Reading an array out of a NamedTuple counts a reference up and down again. The compiler drops the
pair when the code around it is simple; a kernel with loops in rare branches keeps it, and then
spends most of its time counting. The arrays of a plan and a tally outlive any call of a kernel,
so a kernel may borrow them.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def borrowed(typing_context: Any, state: Any) -> Any:
    """The same array or (nested) NamedTuple of arrays without owners.

    For use inside a kernel whose caller holds the arrays; never return one.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _disown(context, builder, state, arguments[0])

    return state(state), generate


def _disown(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        owned = [_disown(context, builder, k, p) for k, p in zip(kind, parts, strict=True)]
        return context.make_tuple(builder, kind, owned)
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        return view._getvalue()
    return value
