"""The modes of differentiation at a point, from which tables (`writer`) and films (`player`) are made.

Each mode runs its sweeps by `recurrences` once, and says what they compute at each node: quantities with
letters, values, and the local programs that they are outputs of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations_with_replacement
from typing import TypeAlias

from symad.core.arrays import Number
from symad.core.graph import Node
from symad.display.latex import latex_name
from symad.display.notation import Groups, read
from symad.display.recurrences import Recurrences, Values
from symad.display.tables import Math

J_T = read(r"t_k = \sum_p \partial s_k/\partial s_p\, t_p")
R_J = read(r"r_p = \sum_k r_k\, \partial s_k/\partial s_p")
FOF = read(r"\partial_i\partial_j g_k = H_{kj}\,\partial_i g_{k-1} + J_k\,\partial_i\partial_j g_{k-1}")
FOR = read(r"r_{k-1} = (r_k J_k,\ r_k H_{kj} + r'_k J_k),\ r_m = (1, 0)")
ROF = read(r"r_{k-1} = ((r_k)_1 J_k + (r_k)_2 H_{ki},\ (r_k)_2 J_k),\ r_m = (0, 1)")
ROR = read(r"\dot r_k = J_k \dot r_{k-1},\ \dot s_{k-1} = r_k H_{ki} + \dot s_k J_k,\ \dot s_m = 0")
"""The recurrences, along a chain; J_k = ∂f_k and H_kj = ∂²f_k ∂g_{k-1}/∂x_j."""


@dataclass(frozen=True)
class Direction:
    """A tangent of the inputs, with a name: an input, or 1 for all ones."""

    name: str
    seeds: Values

    def __str__(self) -> str:
        return "(1, ..., 1)" if self.name == "1" else self.name


@dataclass(frozen=True)
class Quantity:
    """What a sweep computes at each node; ``half`` is the number of the output of its program.

    Without ``kind`` it is the value of the node. ``groups`` are the inputs of the program.
    """

    letter: str
    values: Values
    kind: str = ""
    groups: Groups = ()
    half: int = 0


Quantities: TypeAlias = "Sequence[Sequence[Quantity]]"
"""The quantities of each line of a box: one, or the two of a dual number."""


@dataclass(frozen=True)
class Sweep:
    """One pass over the nodes, in words and quantities; ``way`` is "down", "up", or "known" if it is done."""

    told: str
    lines: Quantities
    way: str = "down"


@dataclass(frozen=True)
class Mode:
    """A mode, its recurrence and sweeps, and the columns of its table: a head, and one or two values.

    ``copies`` numbers are live for each state, and ``operations`` at each node.
    """

    title: str
    note: Math
    sweeps: tuple[Sweep, ...]
    columns: tuple[tuple[Math, tuple[Values, ...]], ...] = ()
    copies: int = 1
    operations: Counter[Node] = field(default_factory=Counter)


R = r"\partial f/\partial s_k"


class Modes:
    """The modes of a graph at a point, with seed ``one``."""

    def __init__(self, runs: Recurrences, directions: Sequence[Direction], one: Number) -> None:
        self.runs, self.directions, self.one = runs, directions, one
        self.state = Quantity("s", runs.states)

    def first(self) -> Iterator[Mode]:
        """Forward mode in each direction, and reverse mode of a scalar."""
        told = "The value of a step, and its tangent from the tangents of its arguments."
        for direction in self.directions:
            t = self.runs.forward(direction.seeds)
            lines = [[self.state], [Quantity("t", t, "tangent", [("t", t)])]]
            yield Mode(f"forward mode, direction {direction}", J_T, (Sweep(told, lines),))
        if self.runs.output is not None:
            r = self.runs.reverse(self.one)
            known = Sweep("The forward sweep computes and keeps all values.", [[self.state]], "known")
            told = "The adjoint of a step is a sum over its uses."
            back = Sweep(told, [[Quantity("r", r, "bars", [("r", r)])]], "up")
            yield Mode("reverse mode", R_J, (known, back))

    def second(self) -> Iterator[Mode]:
        """The four Hessian modes of a scalar, in each direction."""
        if self.runs.output is None:
            return
        pairs = combinations_with_replacement(self.directions, 2)
        others = (self.forward_over_reverse, self.reverse_over_forward, self.reverse_over_reverse)
        runs = [partial(self.forward_over_forward, *pair) for pair in pairs]
        for run in (*runs, *(partial(mode, d) for mode in others for d in self.directions)):
            self.runs.operations.clear()
            yield replace(run(), operations=Counter(self.runs.operations))

    def forward_over_forward(self, first: Direction, second: Direction) -> Mode:
        """s_k = Dual(g_k, ∂_j g_k) and t_k = Dual(∂_i g_k, ∂_i ∂_j g_k)."""
        t_i = self.runs.forward(first.seeds)
        t_j, t_ij = self.runs.forward_over_forward(t_i, second.seeds)
        groups = [("t", t_i), ("s'", t_j), ("t'", t_ij)]
        told = f"A prime is a derivative in direction {second}: s = (s, s'), and the tangent t = (t, t')."
        tangents = [Quantity("t", t_i, "tangent", [("t", t_i)]), Quantity("t'", t_ij, "second", groups, 1)]
        sweep = Sweep(told, [[self.state, Quantity("s'", t_j, "second", groups)], tangents])
        head = _pair("t_k", _d(first, "g"), _d(first, _d(second, "g")))
        where = str(first) if first is second else f"{first} and {second}"
        columns = (self._states(second, t_j), (head, (t_i, t_ij)))
        return Mode(f"forward over forward, direction {where}", FOF, (sweep,), columns, 4)

    def forward_over_reverse(self, direction: Direction) -> Mode:
        """s_k = Dual(g_k, ∂_j g_k), then r_k = Dual(∂f/∂s_k, ∂²f/∂s_k∂x_j)."""
        t = self.runs.forward(direction.seeds)
        r1, r2 = self.runs.forward_over_reverse(self.one, t)
        groups = [("s'", t), ("r", r1), ("r'", r2)]
        told = f"The states are dual numbers (s, s'), with s' in direction {direction}."
        known = Sweep(told, [[self.state, Quantity("s'", t)]], "known")
        adjoints = [Quantity("r", r1, "dual_bars", groups), Quantity("r'", r2, "dual_bars", groups, 1)]
        back = Sweep("The adjoints are dual numbers (r, r'): r' is the derivative of r.", [adjoints], "up")
        columns = (self._states(direction, t), (_pair("r_k", R, _d(direction, R)), (r1, r2)))
        return Mode(f"forward over reverse, direction {direction}", FOR, (known, back), columns, 2)

    def reverse_over_forward(self, direction: Direction) -> Mode:
        """s_k = Dual(g_k, ∂_i g_k), then the reverse of the dual program, seed (0, 1)."""
        t = self.runs.forward(direction.seeds)
        r1, r2 = self.runs.reverse_over_forward(self.one, t)
        groups = [("t", t), ("p", r1), ("q", r2)]
        told = f"Forward mode in direction {direction} has computed s and its tangents t."
        known = Sweep(told, [[self.state], [Quantity("t", t)]], "known")
        adjoints = [[Quantity("p", r1, "bars_dual", groups)], [Quantity("q", r2, "bars_dual", groups, 1)]]
        told = "Reverse mode through that: (r)_1 is the adjoint of s, and (r)_2 that of t."
        back = Sweep(told, adjoints, "up")
        columns = (self._states(direction, t), (_pair("r_k", _d(direction, R), R), (r1, r2)))
        return Mode(f"reverse over forward, direction {direction}", ROF, (known, back), columns, 2)

    def reverse_over_reverse(self, direction: Direction) -> Mode:
        """r_k, then ṙ_k = J ṙ_{k−1} forwards, then ṡ_{k−1} = r_k H_ki + ṡ_k J_k backwards."""
        r, r_dot = self.runs.reverse(self.one), self.runs.forward(direction.seeds)
        s_dot = self.runs.reverse_over_reverse(r, r_dot)
        told = "Reverse mode has computed the states s and adjoints r."
        known = Sweep(told, [[self.state], [Quantity("r", r)]], "known")
        told = f"Back through the sweep of r: ṙ is the adjoint of r, seed {direction}."
        down = Sweep(told, [[Quantity("ṙ", r_dot, "tangent", [("ṙ", r_dot)])]])
        told = "Back through the sweep of s: ṡ is its adjoint, at the inputs a row of the Hessian."
        groups = [("r", r), ("ṙ", r_dot), ("ṡ", s_dot)]
        back = Sweep(told, [[Quantity("ṡ", s_dot, "bars_bars", groups)]], "up")
        heads = zip(("r_k", r"\dot r_k", r"\dot s_k"), (r, r_dot, s_dot), strict=True)
        columns = tuple((read(head), (values,)) for head, values in heads)
        return Mode(f"reverse over reverse, direction {direction}", ROR, (known, down, back), columns, 3)

    def _states(self, direction: Direction, t: Values) -> tuple[Math, tuple[Values, ...]]:
        return _pair("s_k", "g", _d(direction, "g")), (self.runs.states, t)


def _d(direction: Direction, of: str) -> str:
    return rf"\partial_{{{latex_name(direction.name)}}} {of}"


def _pair(name: str, first: str, second: str) -> Math:
    return read(rf"{name} = ({first},\ {second})")
