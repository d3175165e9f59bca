"""The states of all nodes of a graph, arguments first. The rules are in `symad.splitting.rules`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import sympy

from symad.core.dims import Dim, dim_symbols
from symad.core.graph import DIM_FIELDS, Node, topological
from symad.core.questions import definition
from symad.errors import SymadError
from symad.ops.basic.sources import Constant, Input
from symad.splitting.states import (
    SAME,
    WHOLE,
    Mixed,
    RowPositions,
    Rows,
    Same,
    State,
    Total,
    Whole,
    is_multiple,
    split_axes,
    splitting,
)

if TYPE_CHECKING:
    import sympy as sp


def states_of(outputs: Sequence[Node], known: Mapping[Node, State], n: Dim) -> dict[Node, State]:
    """The state of every node on which the outputs depend.

    Args:
        outputs: the nodes.
        known: the states of the inputs that are split, and of placeholders.
        n: the symbol for the length of the split axes.
    """
    found = dict(known)
    for node in topological(outputs):
        if node not in found:
            found[node] = state_of(node, tuple([found[arg] for arg in node.args]), n)
    return found


def state_of(node: Node, states: tuple[State, ...], n: Dim) -> State:
    """The state of one node, from those of its arguments.

    Without a rule, the general case applies: a function of data-free values is the same on every part,
    and a function of values known after one pass is known then too, unless its shape depends on n.
    """
    mixed = next((s for s in states if isinstance(s, Mixed)), None)
    if mixed is not None:
        return mixed
    free = not split_axes(node.shape, n) and not _has_length(node, n)
    if free and all(s == SAME for s in states):
        return SAME
    state: State | None = splitting(node.op, node, states, n)
    if state is not None and _fits(node, state, n):
        return state
    if free and states and all(isinstance(s, (Same, Total, Whole)) for s in states):
        return WHOLE
    return Mixed(node)


def _fits(node: Node, state: State, n: Dim) -> bool:
    """True if the shape matches the state: one split axis for rows, none for others."""
    axes = split_axes(node.shape, n)
    if isinstance(state, (Rows, RowPositions)):
        return axes == [state.axis] and is_multiple(node.shape[state.axis], n)
    return not axes


def _has_length(node: Node, n: Dim) -> bool:
    """True if a field of the op contains n."""
    if isinstance(node.op, (Constant, Input)):
        return False
    found: set[sp.Symbol] = set()
    for f in fields(node.op):
        value = getattr(node.op, f.name)
        if f.name in DIM_FIELDS:
            found |= dim_symbols(value if isinstance(value, tuple) else (value,))
        elif hasattr(value, "input_nodes"):  # the body of a recurrence
            found |= {s for inner in topological(value.output_nodes) for s in _symbols(inner)}
    return n in found


def _symbols(node: Node) -> set[sympy.Symbol]:
    values = [getattr(node.op, f.name) for f in fields(node.op) if f.name in DIM_FIELDS]
    return set().union(
        dim_symbols(node.shape), *(dim_symbols(v if isinstance(v, tuple) else (v,)) for v in values)
    )


def by_definition(node: Node, states: tuple[State, ...], n: Dim) -> State | None:
    """The state of the node's definition; None if it is a primitive, or its definition mixes parts."""
    try:
        meaning = definition(node.op, node)
    except SymadError:  # shapes that only the definition checks
        return None
    if meaning is None or meaning is node:
        return None
    return state_by(meaning, dict(zip(node.args, states, strict=True)), n)


def state_by(meaning: Node, known: Mapping[Node, State], n: Dim) -> State | None:
    """The state of a node with the same value; None if this node mixes parts."""
    state = states_of([meaning], known, n)[meaning]
    return None if isinstance(state, (Mixed, Whole)) else state
