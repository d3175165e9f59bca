"""The box of `lower(f, box=...)`: between which numbers the inputs lie, read once and known to all passes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeAlias

import sympy

from symad.core.graph import Graph, Node
from symad.core.identifiers import brief, listed, short_name
from symad.core.process import within
from symad.errors import LoweringError
from symad.ops.basic.sources import symbol_of

GivenBox: TypeAlias = "Mapping[Any, Any]"
"""For symbols or names of inputs the smallest and the largest value, or one number."""

Sides: TypeAlias = "dict[Node, tuple[float, float]]"
"""For input nodes the smallest and the largest value of all elements."""

_SIDES: ContextVar[Sides | None] = ContextVar("box", default=None)


def read_box(graph: Graph, given: GivenBox) -> Sides:
    """The box of a graph's inputs, as users write it.

    Raises:
        LoweringError: it is no dict; it names what is no input; a side is no pair of numbers, is empty, or
            lies outside of what the symbol assumes.
    """
    if not isinstance(given, Mapping):
        raise LoweringError(f"box is {brief(given)}; give a dict, such as {{x: (1, 2), y: 3}}")
    known = {symbol_of(node): node for node in graph.input_nodes}
    names = {short_name(symbol): symbol for symbol in known}
    sides: Sides = {}
    for key, side in given.items():
        symbol = key if isinstance(key, sympy.Basic) and key in known else names.get(str(key))
        if symbol is None:
            raise LoweringError(f"the box names {brief(key)}; the inputs are {listed(list(names))}")
        sides[known[symbol]] = _side(short_name(symbol), symbol, side)
    return sides


def _side(name: str, symbol: sympy.Basic, given: object) -> tuple[float, float]:
    """The bounds of one input."""
    pair = given if isinstance(given, (tuple, list)) else (given, given)
    try:
        low, high = map(float, pair)
    except (TypeError, ValueError):
        raise LoweringError(
            f"the box of {name} is {brief(given)}; give (smallest, largest), or one number"
        ) from None
    if math.isnan(low) or math.isnan(high) or low > high or (math.isinf(low) and low == high):
        raise LoweringError(f"the box of {name} from {low!r} to {high!r} is empty; give (smallest, largest)")
    above = getattr(symbol, "is_nonnegative", None) and low < 0
    below = getattr(symbol, "is_nonpositive", None) and high > 0
    if above or below:
        raise LoweringError(
            f"the box of {name} from {low!r} to {high!r} lies outside of what {name} assumes: "
            f"{name} {'>=' if above else '<='} 0"
        )
    return low, high


def inside(sides: Sides) -> AbstractContextManager[None]:
    """What is lowered here is for inputs in a box."""
    return within(_SIDES, dict(sides))


def current_box() -> Sides:
    """The box of the graph that is being lowered; empty without a box."""
    return _SIDES.get() or {}


def share_side(node: Node, entries: Iterable[Node]) -> None:
    """The entries of an input lie where it lies."""
    sides = _SIDES.get()
    if sides and node in sides:
        sides.update(dict.fromkeys(entries, sides[node]))


def box_in_words() -> str:
    """The box as headers tell it, such as ", for x in [0, 1]"; only of inputs that the user has named."""
    sides = [(symbol_of(n), ends) for n, ends in current_box().items() if not _is_entry(n)]
    told = [f"{short_name(symbol)} in [{low:g}, {high:g}]" for symbol, (low, high) in sides]
    return f", for {listed(told, most=4)}" if told else ""


def _is_entry(node: Node) -> bool:
    return isinstance(symbol_of(node), sympy.Dummy)
