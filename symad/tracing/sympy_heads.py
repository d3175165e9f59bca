"""SymPy's functions of traced values: ``sympy.sin(x)`` of a traced x is a node, not an expression.

SymPy itself stays unchanged. A traced function gets a stand-in for each function of SymPy that its code names
(`symad.tracing.names`); for all but traced values the stand-in is that function.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sympy
from sympy.core.function import AppliedUndef, FunctionClass

from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Node, rebuild
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import select
from symad.tracing.from_sympy.scalars import application_lift
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import broadcast, condition, number
from symad.tracing.walk import Tracer, lift


class StandIn(FunctionClass):
    """The class of the stand-ins: each is a subclass of its function, which handles everything but calls."""

    stands_for: FunctionClass

    def __new__(cls, head: FunctionClass) -> StandIn:
        """The stand-in of a function of SymPy."""
        base = head if type(head) is FunctionClass else AppliedUndef
        return type.__new__(cls, head.__name__, (base,), {"__doc__": head.__doc__, "stands_for": head})

    def __init__(cls, head: FunctionClass) -> None:
        super().__init__(head.__name__, cls.__bases__, {})

    def __call__(cls, *args: ArrayLike, **options: Any) -> Array | sympy.Expr:
        """The function: a traced value for traced arguments, SymPy's result for others."""
        if any(map(_holds_proxy, args)):
            return apply_head(cls.stands_for, args)
        return cls.stands_for(*args, **options)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.stands_for, name)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.stands_for)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(getattr(other, "stands_for", other), cls.stands_for)

    def __eq__(cls, other: object) -> bool:
        return cls.stands_for is getattr(other, "stands_for", other)

    def __hash__(cls) -> int:
        return hash(cls.stands_for)


@cache
def stand_in(head: FunctionClass) -> StandIn:
    """The stand-in of a function of SymPy, always the same object."""
    return StandIn(head)


def head_of(value: Any) -> Any:
    """The function of SymPy behind a stand-in; any other object unchanged."""
    return value.stands_for if isinstance(value, StandIn) else value


def _holds_proxy(value: ArrayLike) -> bool:
    """True for a proxy, or a pair of a Piecewise that contains one."""
    return isinstance(value, Proxy) or (isinstance(value, tuple) and any(isinstance(v, Proxy) for v in value))


def apply_head(head: Any, args: tuple[Any, ...]) -> Proxy:
    """A SymPy function of values that include a proxy, elementwise."""
    if issubclass(head, sympy.Piecewise):
        return _piecewise(args)
    nodes = broadcast(*map(number, args))
    if _is_plain(head):
        return Proxy(apply(head, *nodes))
    inputs, body = _template(head, len(nodes))
    (made,) = rebuild((body,), dict(zip(inputs, nodes, strict=True)))
    return Proxy(made)


@cache
def _is_plain(head: type[sympy.Basic]) -> bool:
    """True if an expression of this function is traced as the function of its arguments.

    Heaviside is not: SymPy gives it its value at 0 as a second argument.
    """
    return lift.dispatch(head) is application_lift and not issubclass(head, sympy.Heaviside)


@cache
def _template(head: type[sympy.Basic], count: int) -> tuple[tuple[Node, ...], Node]:
    """The function of fresh symbols, traced from SymPy once."""
    symbols = [sympy.Dummy(f"x{k}", real=True) for k in range(count)]
    return tuple(input_node(s) for s in symbols), Tracer().trace(head(*symbols))


def _piecewise(pairs: tuple[Sequence[ArrayLike], ...]) -> Proxy:
    """The value of the first pair whose condition holds; NaN if none does."""
    result = constant(float("nan"))
    for value, test in reversed(pairs):
        result = select(*broadcast(condition(test), number(value), result))
    return Proxy(result)
