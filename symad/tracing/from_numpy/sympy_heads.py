"""SymPy's functions on proxies: ``sympy.sin(x)`` for a traced x gives a node, not an expression."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import sympy
from sympy.core.function import FunctionClass

from symad.core.forking import hold_while_forking
from symad.core.graph import Node, rebuild
from symad.ops.arrays.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import select
from symad.tracing.from_sympy.scalars import application_lift, function_lift
from symad.tracing.proxy import Proxy
from symad.tracing.walk import Tracer, lift
from symad.tracing.wrapped import broadcast, condition, number

_LOCK = Lock()
hold_while_forking(_LOCK)
_traces = 0


@contextmanager
def heads_take_proxies() -> Iterator[None]:
    """While this lasts, SymPy's functions of proxies are proxies, and no expression is built.

    SymPy calls its function classes like any class. Their metaclass is asked to hand over the calls
    that hold a proxy; all other calls, also those of other threads, go on as before.
    """
    global _traces
    with _LOCK:
        _traces += 1
        if _traces == 1:
            FunctionClass.__call__ = _call_head
    try:
        yield
    finally:
        with _LOCK:
            _traces -= 1
            if _traces == 0:
                del FunctionClass.__call__


def _call_head(head: Any, *args: Any, **options: Any) -> Any:
    """``head(*args)`` for a SymPy function class."""
    if any(map(_holds_proxy, args)):
        return apply_head(head, args)
    return type.__call__(head, *args, **options)


def _holds_proxy(value: Any) -> bool:
    """A proxy, or a pair of a Piecewise with one."""
    return isinstance(value, Proxy) or (isinstance(value, tuple) and any(isinstance(v, Proxy) for v in value))


def apply_head(head: Any, args: tuple[Any, ...]) -> Proxy:
    """A SymPy function of values of which one is a proxy, elementwise."""
    if issubclass(head, sympy.Piecewise):
        return _piecewise(args)
    nodes = broadcast(*map(number, args))
    if _is_plain(head):
        return Proxy(apply(head, *nodes))
    inputs, body = _template(head, len(nodes))
    (made,) = rebuild((body,), dict(zip(inputs, nodes, strict=True)))
    return Proxy(made)


@cache
def _is_plain(head: Any) -> bool:
    """Whether an expression of this function is traced as the function of its arguments.

    Heaviside is not: SymPy gives it its value at 0 as a second argument.
    """
    return lift.dispatch(head) in (function_lift, application_lift) and not issubclass(head, sympy.Heaviside)


@cache
def _template(head: Any, count: int) -> tuple[tuple[Node, ...], Node]:
    """The function of fresh symbols, traced from SymPy once."""
    symbols = [sympy.Dummy(f"x{k}", real=True) for k in range(count)]
    return tuple(input_node(s) for s in symbols), Tracer().trace(head(*symbols))


def _piecewise(pairs: tuple[Any, ...]) -> Proxy:
    """The value of the first pair whose condition holds; NaN if none does."""
    result = constant(float("nan"))
    for value, test in reversed(pairs):
        result = select(*broadcast(condition(test), number(value), result))
    return Proxy(result)
