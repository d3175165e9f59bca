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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import sympy

from symad.core.dims import Dim, Shape, dim_symbols, same_dim, size
from symad.core.graph import Node, Op
from symad.core.questions import question

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
