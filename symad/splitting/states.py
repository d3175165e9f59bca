"""States: rules that combine a node's values on parts of the data into its value on all data.

The data are cut along named axes into parts p = 1, ..., P. A node has the value V on all data and v_p on
part p. Its state says how V follows from the v_p:

    Same              V = v_p, for every p
    Rows(axis)        V is the concatenation of the v_p along an axis
    Total(kind)       V is the sum, maximum, minimum, product or log Σ exp of the v_p
    Positions(axis)   the same, for numbers that count rows from the first row of all data
    Whole             V is a function of nodes with one of these states: known after one pass over the data
    Mixed             no rule: an op has mixed elements of several parts

`Same`, `Rows` and sums may carry a weight W, itself a sum (or, in logarithms, a log Σ exp): every v_p is then
multiplied by w_p/W. A mean is a sum with the weight n, the softmax of rows is `Rows` with a weight log Σ exp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

import sympy

from symad.core.dims import Dim, Shape, dim_symbols, same_dim, size
from symad.core.graph import DIM_FIELDS, Node, Op, topological
from symad.core.questions import definition, question
from symad.errors import SymadError
from symad.ops.basic.sources import Constant, Input

if TYPE_CHECKING:
    import sympy as sp


States: TypeAlias = "tuple[State, ...]"
Split: TypeAlias = "State | None"
Length: TypeAlias = "sympy.Symbol"


@dataclass(frozen=True)
class State:
    """The rule that computes a value from values on parts of the data."""


@question
def splitting(op: Op, y: Node, states: States, n: Length) -> Split:
    """The rule that computes y on all data from its values on parts of the data: a state, or None.

    ``states[k]`` is the same for argument k. The length n is split. None means that no rule says more than
    that y is a function of its arguments.
    """


KINDS = ("sum", "maximum", "minimum", "logsumexp", "product")


@dataclass(frozen=True)
class Weight:
    """The weights of the parts: w_p/W, or exp(L_p − L) if ``log``.

    Axis k of ``node`` is axis ``place[k]`` of the weighted value.
    """

    node: Node
    log: bool = False
    place: tuple[int, ...] = ()

    def moved(self, to: Mapping[int, int]) -> Weight | None:
        """The weight after axes have moved; None if one of its axes is removed."""
        if not all(k in to for k in self.place):
            return None
        return Weight(self.node, self.log, tuple(to[k] for k in self.place))


@dataclass(frozen=True)
class Same(State):
    """V = v_p; with a weight V = v_p w_p/W."""

    weight: Weight | None = None


@dataclass(frozen=True)
class Rows(State):
    """V is the concatenation of the v_p (with a weight: of the v_p w_p/W) along an axis."""

    axis: int
    weight: Weight | None = None


@dataclass(frozen=True)
class RowPositions(State):
    """V is the concatenation of the v_p + stride · (the number of rows before part p): positions of rows."""

    axis: int
    stride: Dim = 1


@dataclass(frozen=True)
class Total(State):
    """V is a reduction of the v_p; with a weight V = Σ v_p w_p/W."""

    kind: str = "sum"
    weight: Weight | None = None


@dataclass(frozen=True)
class Whole(State):
    """V is a function of values that are known after one pass over the data."""


@dataclass(frozen=True)
class Mixed(State):
    """An op has mixed elements of several parts: ``node``."""

    node: Node


WEIGHTED = (Same, Rows, Total)
"""The states that may have a weight."""

SAME, SUM, WHOLE = Same(), Total(), Whole()


def has(dim: Dim, n: Dim) -> bool:
    """True if a dimension depends on the length n."""
    return n in dim_symbols((dim,))


def is_multiple(dim: Dim, n: Dim) -> bool:
    """True if a dimension is n times a factor free of n; the parts' lengths then add up to it."""
    return has(dim, n) and n not in sympy.cancel(dim / n).free_symbols


def split_axes(shape: Shape, n: Dim) -> list[int]:
    """The axes whose length depends on n."""
    return [k for k, dim in enumerate(shape) if has(dim, n)]


def axis_after_reshape(before: Shape, after: Shape, axis: int, exactly: bool = True) -> int | None:
    """The axis that ``axis`` becomes: the one with the same number of elements before it.

    Args:
        before: the shape.
        after: the new shape, with the same number of elements.
        axis: an axis of ``before``.
        exactly: true if it has to keep its length.
    """
    lead = size(before[:axis])
    for k, dim in enumerate(after):
        if same_dim(size(after[:k]), lead) and (same_dim(dim, before[axis]) or (not exactly and dim != 1)):
            return k
    return None


# ---- the states of all nodes of a graph, arguments first -----------------------------------------


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
