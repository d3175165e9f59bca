"""Every mode as a film: a frame for each step, with its formula and what it adds to the boxes.

The numbers and the formulas are those of the tables: `recurrences` runs the modes, `local_derivatives` has
the derivatives of each operation, `typesetting` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np

from symad.core.graph import Node
from symad.display.notation import Groups, read
from symad.display.recurrences import Values
from symad.display.tables import ENTRIES, Math, cell_latex, text
from symad.display.typesetting.pieces import write
from symad.display.writer import FOF, FOR, J_T, R_J, ROF, ROR, Direction, Writer

MAX_VALUE = 22
"""Characters of a value in a box."""


@dataclass(frozen=True)
class Frame:
    """One step: the node at which it happens, and its formulas; ``up`` if it reads the users of the node."""

    caption: str
    node: Node | None
    formulas: tuple[Math, ...]
    up: bool = False


@dataclass
class Film:
    """The frames of one mode, and for each node its lines with the first frame that shows them."""

    title: str
    note: Math
    frames: list[Frame] = field(default_factory=list)
    lines: dict[Node, list[tuple[int, Math]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Quantity:
    """What a sweep computes at each node: its letter and values, and the program that they are outputs of.

    ``groups`` are the inputs of the program of `local_derivatives`, ``half`` is the number of its output.
    """

    letter: str
    values: Values
    kind: str = ""
    groups: Groups = ()
    half: int = 0


Quantities: TypeAlias = "Sequence[Sequence[Quantity]]"
"""The quantities of each line in a box: one, or the two of a dual number."""


def short(value: Any) -> Math:
    """A value in a box: arrays of a few entries as they are, larger ones by their norm."""
    if isinstance(value, np.ndarray) and (value.size > ENTRIES or len(text(value)) > MAX_VALUE):
        if value.dtype.kind != "f":
            return Math("×".join(map(str, value.shape)), r" \times ".join(map(str, value.shape)))
        norm = text(float(np.linalg.norm(value)))
        return Math(f"‖·‖ {norm}", rf"\|\cdot\|\ {norm}")
    shown = text(value)
    if len(shown) > MAX_VALUE:
        return Math(shown[: MAX_VALUE - 1] + "…", r"\dots")
    return Math(shown, cell_latex(value).strip("$") if not isinstance(value, np.ndarray) else shown)


class Director:
    """The films of a graph at a point."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.runs, self.names = writer, writer.runs, writer.names
        self.nodes = [n for n in self.names.rows if n in self.runs.real or n not in self.runs.varying]
        self.state = Quantity("s", self.runs.states)

    def films(self) -> list[Film]:
        """Forward mode for each direction; then, of a scalar, reverse mode and the four Hessian modes."""
        made = [self.forward(d) for d in self.writer.directions]
        if self.runs.output is not None:
            made.append(self.reverse())
            pairs = combinations_with_replacement(self.writer.directions, 2)
            made += [self.forward_over_forward(first, second) for first, second in pairs]
            for mode in (self.forward_over_reverse, self.reverse_over_forward, self.reverse_over_reverse):
                made += [mode(direction) for direction in self.writer.directions]
        return made

    # ---- frames ------------------------------------------------------------------------------------

    def _known(self, film: Film, caption: str, lines: Quantities) -> None:
        """One frame with what an earlier sweep computed."""
        for node in self.nodes:
            self._show(film, node, lines)
        film.frames.append(Frame(caption, None, ()))

    def _sweep(self, film: Film, caption: str, lines: Quantities, up: bool = False) -> None:
        """A frame for each node, forwards or backwards."""
        for node in reversed(self.nodes) if up else self.nodes:
            every = [q for line in self._show(film, node, lines) for q in line]
            if every:
                formulas = tuple(read(self._formula(q, node, up)) for q in every)
                film.frames.append(Frame(caption, node, formulas, up))

    def _show(self, film: Film, node: Node, lines: Quantities) -> Quantities:
        """Add lines to a box; conditions and constants have values alone. Returns what was shown."""
        real = node in self.runs.real
        shown = [[q for q in line if real or q is self.state] for line in lines]
        shown = [line for line in shown if line]
        for line in shown:
            found = [short(q.values.get(node, 0)) for q in line]
            name = self.names.math(line[0].letter, node)
            inner, tex = ", ".join(f.text for f in found), r",\ ".join(f.latex for f in found)
            pair = ("(", ")") if len(found) > 1 else ("", "")
            math = Math(f"{name.text} = {inner.join(pair)}", f"{name.latex} = {tex.join(pair)}")
            film.lines.setdefault(node, []).append((len(film.frames), math))
        return shown

    def _formula(self, q: Quantity, node: Node, up: bool) -> str:
        """``t_2 = t_1 y = 0.5``."""
        if not q.kind:
            formula = self.names.state(node)
        elif up:
            formula = write(self.names.over_uses(node, q.kind, q.groups, q.half))
        else:
            formula = write(self.names.outputs(q.kind, node, q.groups)[q.half]) if node.args else ""
        parts = (self.names.latex(q.letter, node), formula, short(q.values.get(node, 0)).latex)
        return " = ".join(dict.fromkeys(p for p in parts if p))

    # ---- modes -------------------------------------------------------------------------------------

    def values(self) -> Film:
        """The states alone."""
        film = Film("values", Math("", ""))
        self._known(film, "All values.", [[self.state]])
        return film

    def forward(self, direction: Direction) -> Film:
        """Values and tangents together."""
        film = Film(f"forward mode, direction {_words(direction)}", J_T)
        t = self.runs.forward(direction.seeds)
        told = "The value of a step, and its tangent from the tangents of its arguments."
        self._sweep(film, told, [[self.state], [Quantity("t", t, "tangent", [("t", t)])]])
        return film

    def reverse(self) -> Film:
        """The states, then the adjoints from the last to the first."""
        film = Film("reverse mode", R_J)
        r = self.runs.reverse(self.writer.one)
        self._known(film, "The forward sweep computes and keeps all values.", [[self.state]])
        told = "The adjoint of a step is a sum over its uses."
        self._sweep(film, told, [[Quantity("r", r, "bars", [("r", r)])]], up=True)
        return film

    def forward_over_forward(self, first: Direction, second: Direction) -> Film:
        """Dual numbers through forward mode."""
        i, j = _words(first), _words(second)
        where = f"direction {i}" if i == j else f"directions {i} and {j}"
        film = Film(f"forward over forward, {where}", FOF)
        t_i = self.runs.forward(first.seeds)
        t_j, t_ij = self.runs.forward_over_forward(t_i, second.seeds)
        groups = [("t", t_i), ("s'", t_j), ("t'", t_ij)]
        told = f"A prime is a derivative in direction {j}: s = (s, s'), and the tangent t = (t, t')."
        tangents = [Quantity("t", t_i, "tangent", [("t", t_i)]), Quantity("t'", t_ij, "second", groups, 1)]
        self._sweep(film, told, [[self.state, Quantity("s'", t_j, "second", groups)], tangents])
        return film

    def forward_over_reverse(self, direction: Direction) -> Film:
        """Dual numbers through reverse mode."""
        film = Film(f"forward over reverse, direction {_words(direction)}", FOR)
        t = self.runs.forward(direction.seeds)
        r1, r2 = self.runs.forward_over_reverse(self.writer.one, t)
        groups = [("s'", t), ("r", r1), ("r'", r2)]
        told = f"The states are dual numbers (s, s'), with s' in direction {_words(direction)}."
        self._known(film, told, [[self.state, Quantity("s'", t)]])
        told = "The adjoints are dual numbers (r, r'): r' is the derivative of r."
        adjoints = [Quantity("r", r1, "dual_bars", groups), Quantity("r'", r2, "dual_bars", groups, 1)]
        self._sweep(film, told, [adjoints], up=True)
        return film

    def reverse_over_forward(self, direction: Direction) -> Film:
        """Reverse mode through the program of dual numbers."""
        film = Film(f"reverse over forward, direction {_words(direction)}", ROF)
        t = self.runs.forward(direction.seeds)
        r1, r2 = self.runs.reverse_over_forward(self.writer.one, t)
        groups = [("t", t), ("p", r1), ("q", r2)]
        told = f"Forward mode in direction {_words(direction)} has computed s and its tangents t."
        self._known(film, told, [[self.state], [Quantity("t", t)]])
        told = "Reverse mode through that: p is the adjoint of s, and q that of t."
        adjoints = [[Quantity("p", r1, "bars_dual", groups)], [Quantity("q", r2, "bars_dual", groups, 1)]]
        self._sweep(film, told, adjoints, up=True)
        return film

    def reverse_over_reverse(self, direction: Direction) -> Film:
        """Reverse mode through the program of reverse mode."""
        film = Film(f"reverse over reverse, direction {_words(direction)}", ROR)
        r = self.runs.reverse(self.writer.one)
        r_dot = self.runs.forward(direction.seeds)
        s_dot = self.runs.reverse_over_reverse(r, r_dot)
        told = "Reverse mode has computed the states s and adjoints r."
        self._known(film, told, [[self.state], [Quantity("r", r)]])
        told = f"Back through the sweep of r: ṙ is the adjoint of r, seed {_words(direction)}."
        self._sweep(film, told, [[Quantity("ṙ", r_dot, "tangent", [("ṙ", r_dot)])]])
        told = "Back through the sweep of s: ṡ is its adjoint, at the inputs a row of the Hessian."
        groups = [("r", r), ("ṙ", r_dot), ("ṡ", s_dot)]
        self._sweep(film, told, [[Quantity("ṡ", s_dot, "bars_bars", groups)]], up=True)
        return film


def _words(direction: Direction) -> str:
    return "(1, …, 1)" if direction.name == "1" else direction.name
