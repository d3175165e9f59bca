"""Every mode as a film: a frame for each step, with its formula and what it adds to the boxes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad.core.graph import Node
from symad.display.modes import Mode, Quantities, Quantity
from symad.display.notation import Notation, read
from symad.display.recurrences import Recurrences
from symad.display.tables import ENTRIES, Math, cell_latex, entries, text
from symad.display.typesetting.pieces import write

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


def short(value: Any) -> Math:
    """A value in a box: arrays of a few entries as they are, larger ones by their norm."""
    if isinstance(value, np.ndarray) and (value.size > ENTRIES or len(entries(value)) > MAX_VALUE):
        if value.dtype.kind != "f":
            return Math("×".join(map(str, value.shape)), r" \times ".join(map(str, value.shape)))
        norm = text(float(np.linalg.norm(value)))
        return Math(f"‖·‖ {norm}", rf"\|\cdot\|\ {norm}")
    shown = text(value)
    if len(shown) > MAX_VALUE:
        return Math(shown[: MAX_VALUE - 1] + "…", r"\dots")
    return Math(shown, cell_latex(value).strip("$") if not isinstance(value, np.ndarray) else shown)


def film_of(mode: Mode, names: Notation, runs: Recurrences) -> Film:
    """The frames of a mode: one for what is known, one for each node of each sweep."""
    film = Film(mode.title, mode.note)
    nodes = [n for n in names.rows if n in runs.real or n not in runs.varying]
    for sweep in mode.sweeps:
        for node in reversed(nodes) if sweep.way == "up" else nodes:
            shown = _show(film, node, sweep.lines, names, node in runs.real)
            if shown and sweep.way != "known":
                formulas = tuple(read(_formula(q, node, sweep.way == "up", names)) for q in shown)
                film.frames.append(Frame(sweep.told, node, formulas, sweep.way == "up"))
        if sweep.way == "known":
            film.frames.append(Frame(sweep.told, None, ()))
    return film


def _show(film: Film, node: Node, lines: Quantities, names: Notation, real: bool) -> list[Quantity]:
    """Add lines to a box; conditions and constants have values alone. Returns what was shown."""
    every: list[Quantity] = []
    for line in lines:
        kept = [q for q in line if real or q.letter == "s"]
        if kept:
            found = [short(q.values.get(node, 0)) for q in kept]
            name, pair = names.math(kept[0].letter, node), ("(", ")") if len(found) > 1 else ("", "")
            inner, tex = ", ".join(f.text for f in found), r",\ ".join(f.latex for f in found)
            math = Math(f"{name.text} = {inner.join(pair)}", f"{name.latex} = {tex.join(pair)}")
            film.lines.setdefault(node, []).append((len(film.frames), math))
        every += kept
    return every


def _formula(q: Quantity, node: Node, up: bool, names: Notation) -> str:
    """``t_2 = t_1 y = 0.5``."""
    if not q.kind:
        formula = names.state(node)
    elif up:
        formula = write(names.over_uses(node, q.kind, q.groups, q.half))
    else:
        formula = write(names.outputs(q.kind, node, q.groups)[q.half]) if node.args else ""
    parts = (names.latex(q.letter, node), formula, short(q.values.get(node, 0)).latex)
    return " = ".join(dict.fromkeys(p for p in parts if p))
