"""``float(x)`` of a traced number in the code of a traced function: the number itself.

Python requires that ``float`` returns a float, so no method of a traced value can implement it. If the
code of a traced function calls ``float``, the copy that runs (`symad.tracing.names`) uses a subclass in its
place. For all but traced values, and as a type, a dtype or a key, this subclass behaves like ``float``. Only
``is`` distinguishes the two, so code that tests ``type(x) is float`` keeps the original.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.dims import format_shape
from symad.errors import TraceError
from symad.ops.basic.shaping import reshape
from symad.tracing.elements.filled import holds_traced, unfilled
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import Wrapped, number

if TYPE_CHECKING:
    from symad.core.arrays import Array


class _LikeFloat(type):
    """The class of the stand-in."""

    def __call__(cls, *args: Any, **options: Any) -> Array | float:
        """The number itself if it is traced, otherwise ``float`` of the arguments."""
        if len(args) == 1 and not options and holds_traced(args[0]):
            return _one_number(unfilled(args[0]))
        return float(*args, **options)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, float)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, float)

    def __eq__(cls, other: object) -> bool:
        return other is float or other is cls

    def __hash__(cls) -> int:
        return hash(float)


class TracedFloat(float, metaclass=_LikeFloat):
    """The replacement of ``float`` in traced functions."""

    dtype = np.dtype(float)
    """The dtype that NumPy reads if the class is used as a dtype."""


def _one_number(value: Array) -> Array | float:
    """A traced value of one element as a number, as NumPy converts arrays of one element.

    Raises:
        TraceError: it has several elements.
        TypeError: it is a list.
    """
    if not isinstance(value, Wrapped):
        return float(value)
    node = number(value)
    if any(length != 1 for length in node.shape):
        raise TraceError(
            f"float() of a traced array of shape {format_shape(node.shape)}: it takes a number, or an array "
            "of one element; index it first"
        )
    return Proxy(reshape(node, ()))


@lru_cache(maxsize=4096)
def compares_no_types(code: CodeType) -> bool:
    """True if code uses ``is`` for comparisons with None only."""
    after_none = False
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not after_none:
            return False
        after_none = step.opname == "LOAD_CONST" and step.argval is None
    return True
