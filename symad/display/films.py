"""Every mode as a film: a frame for each step, with its formula and what it adds to the boxes.

The numbers and the formulas are those of the tables: `recurrences` runs the modes, `local_derivatives` has
the derivatives of each operation, `typesetting` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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

Lines: TypeAlias = "Callable[[Node], Sequence[Math]]"
Formulas: TypeAlias = "Callable[[Node], Sequence[str]]"

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

    def add(self, frame: Frame, lines: Mapping[Node, Sequence[Math]]) -> None:
        """A frame, and the lines that it adds to boxes."""
        for node, found in lines.items():
            self.lines.setdefault(node, []).extend((len(self.frames), line) for line in found)
        self.frames.append(frame)

    def sweep(
        self,
        caption: str,
        order: Iterable[Node],
        lines: Lines,
        formulas: Formulas,
        up: bool = False,
    ) -> None:
        """A frame for each node in order."""
        for node in order:
            made = tuple(map(read, formulas(node)))
            self.add(Frame(caption, node, made, up), {node: lines(node)})


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
        self.forwards = [n for n in self.names.rows if n in self.runs.real or n not in self.runs.varying]
        self.steps = [n for n in self.forwards if n in self.runs.real]

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

    # ---- lines and formulas ------------------------------------------------------------------------

    def _line(self, letter: str, node: Node, *values: Values) -> Math:
        """``s_2 = 0.5``, or ``s_2 = (0.5, 1)``."""
        found = [short(v.get(node, 0)) for v in values]
        name = self.names.math(letter, node)
        inner, tex = ", ".join(f.text for f in found), r",\ ".join(f.latex for f in found)
        if len(found) > 1:
            inner, tex = f"({inner})", f"({tex})"
        return Math(f"{name.text} = {inner}", f"{name.latex} = {tex}")

    def _equal(self, letter: str, node: Node, formula: str, values: Values) -> str:
        """``t_2 = t_1 y = 0.5``."""
        value = short(values.get(node, 0)).latex if node in values or node in self.runs.real else ""
        return " = ".join(dict.fromkeys(p for p in (self.names.latex(letter, node), formula, value) if p))

    def _state(self, node: Node) -> str:
        return self._equal("s", node, self.names.state(node), self.runs.states)

    def _sum(self, letter: str, node: Node, kind: str, groups: Groups, half: int = 0) -> str:
        return write(self.names.over_uses(letter, node, kind, groups, half))

    def _known(self, film: Film, caption: str, lines: Lines) -> None:
        """One frame with what an earlier sweep computed."""
        film.add(Frame(caption, None, ()), {n: lines(n) for n in self.forwards})

    # ---- modes -------------------------------------------------------------------------------------

    def forward(self, direction: Direction) -> Film:
        """Values and tangents together."""
        film = Film(f"forward mode, {_direction(direction)}", J_T)
        t = self.runs.forward(direction.seeds)
        film.sweep(
            "The value of a step, and its tangent from the tangents of its arguments.",
            self.forwards,
            lambda n: [*self._value(n), *self._real("t", n, t)],
            lambda n: [self._state(n), *self._tangent("t", n, "tangent", [("t", t)], t)],
        )  # fmt: skip
        return film

    def _tangent(
        self, letter: str, node: Node, kind: str, groups: Groups, values: Values, at: int = 0
    ) -> list[str]:
        if node not in self.runs.real:
            return []
        pieces = self.names.outputs(kind, node, groups) if node.args else []
        return [self._equal(letter, node, write(pieces[at]) if pieces else "", values)]

    def reverse(self) -> Film:
        """The states, then the adjoints from the last to the first."""
        film = Film("reverse mode", R_J)
        r = self.runs.reverse(self.writer.one)
        self._known(film, "The forward sweep computes and keeps all values.", self._value)
        self._backwards(
            film, "The adjoint of a step is a sum over its uses.",
            lambda n: [self._line("r", n, r)],
            lambda n: [self._equal("r", n, self._sum("r", n, "bars", [("r", r)]), r)],
        )  # fmt: skip
        return film

    def _value(self, node: Node) -> Sequence[Math]:
        return [self._line("s", node, self.runs.states)]

    def _real(self, letter: str, node: Node, values: Values) -> Sequence[Math]:
        """A tangent or an adjoint of what depends on inputs; conditions and constants have none."""
        return [self._line(letter, node, values)] if node in self.runs.real else []

    def _backwards(self, film: Film, caption: str, lines: Lines, formulas: Formulas) -> None:
        film.sweep(caption, reversed(self.steps), lines, formulas, up=True)

    def forward_over_forward(self, first: Direction, second: Direction) -> Film:
        """Dual numbers through forward mode."""
        i, j = first.name, second.name
        film = Film(f"forward over forward, {_pair(i, j)}", FOF)
        t_i = self.runs.forward(first.seeds)
        t_j, t_ij = self.runs.forward_over_forward(t_i, second.seeds)
        groups = [("t", t_i), ("s'", t_j), ("t'", t_ij)]
        film.sweep(
            f"A prime is a derivative in direction {_words(j)}: s = (s, s'), and the tangent t = (t, t').",
            self.steps,
            lambda n: [self._line("s", n, self.runs.states, t_j), self._line("t", n, t_i, t_ij)],
            lambda n: [
                self._state(n), *self._tangent("s'", n, "second", groups, t_j),
                *self._tangent("t", n, "tangent", [("t", t_i)], t_i),
                *self._tangent("t'", n, "second", groups, t_ij, 1),
            ],
        )  # fmt: skip
        return film

    def forward_over_reverse(self, direction: Direction) -> Film:
        """Dual numbers through reverse mode."""
        film = Film(f"forward over reverse, {_direction(direction)}", FOR)
        t = self.runs.forward(direction.seeds)
        r1, r2 = self.runs.forward_over_reverse(self.writer.one, t)
        groups = [("s'", t), ("r", r1), ("r'", r2)]
        self._known(
            film, f"The states are dual numbers (s, s'), with s' in direction {_words(direction.name)}.",
            lambda n: [self._line("s", n, self.runs.states, t)],
        )  # fmt: skip
        self._backwards(
            film, "The adjoints are dual numbers (r, r'): r' is the derivative of r.",
            lambda n: [self._line("r", n, r1, r2)],
            lambda n: [
                self._equal("r", n, self._sum("r", n, "dual_bars", groups), r1),
                self._equal("r'", n, self._sum("r'", n, "dual_bars", groups, 1), r2),
            ],
        )  # fmt: skip
        return film

    def reverse_over_forward(self, direction: Direction) -> Film:
        """Reverse mode through the program of dual numbers."""
        film = Film(f"reverse over forward, {_direction(direction)}", ROF)
        t = self.runs.forward(direction.seeds)
        r1, r2 = self.runs.reverse_over_forward(self.writer.one, t)
        groups = [("t", t), ("p", r1), ("q", r2)]
        self._known(
            film, f"Forward mode in direction {_words(direction.name)} has computed s and its tangents t.",
            lambda n: [*self._value(n), *self._real("t", n, t)],
        )  # fmt: skip
        self._backwards(
            film, "Reverse mode through that: p is the adjoint of s, and q that of t.",
            lambda n: [self._line("p", n, r1), self._line("q", n, r2)],
            lambda n: [
                self._equal("p", n, self._sum("p", n, "bars_dual", groups), r1),
                self._equal("q", n, self._sum("q", n, "bars_dual", groups, 1), r2),
            ],
        )  # fmt: skip
        return film

    def reverse_over_reverse(self, direction: Direction) -> Film:
        """Reverse mode through the program of reverse mode."""
        film = Film(f"reverse over reverse, {_direction(direction)}", ROR)
        r = self.runs.reverse(self.writer.one)
        r_dot = self.runs.forward(direction.seeds)
        s_dot = self.runs.reverse_over_reverse(r, r_dot)
        self._known(
            film, "Reverse mode has computed the states s and adjoints r.",
            lambda n: [*self._value(n), *self._real("r", n, r)],
        )  # fmt: skip
        film.sweep(
            f"Back through the sweep of r: ṙ is the adjoint of r, seed {_words(direction.name)}.", self.steps,
            lambda n: [self._line("ṙ", n, r_dot)],
            lambda n: self._tangent("ṙ", n, "tangent", [("ṙ", r_dot)], r_dot),
        )  # fmt: skip
        groups = [("r", r), ("ṙ", r_dot), ("ṡ", s_dot)]
        self._backwards(
            film, "Back through the sweep of s: ṡ is its adjoint, at the inputs a row of the Hessian.",
            lambda n: [self._line("ṡ", n, s_dot)],
            lambda n: [self._equal("ṡ", n, self._sum("ṡ", n, "bars_bars", groups), s_dot)],
        )  # fmt: skip
        return film


def _words(name: str) -> str:
    return "(1, …, 1)" if name == "1" else name


def _direction(direction: Direction) -> str:
    return f"direction {_words(direction.name)}"


def _pair(i: str, j: str) -> str:
    return f"direction {_words(i)}" if i == j else f"directions {i} and {j}"
