"""``f.explain(x=2.0).play("steps.html")``: films of the modes as a page, or as pictures for slides."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from symad.core.graph import Node
from symad.core.identifiers import visible
from symad.display.drawing import Drawing, drawn, to_svg, write_scenes
from symad.display.modes import Mode, Quantities, Quantity, Sweep
from symad.display.notation import Notation, read
from symad.display.picture import Picture, picture
from symad.display.reading import mathml
from symad.display.recurrences import Recurrences
from symad.display.scene import MARGIN, Scene, TextLine, scene
from symad.display.tables import Math, boxed
from symad.display.typesetting.graphs import SHOWN, graph_latex
from symad.display.typesetting.pieces import write
from symad.display.writer import TableWriter, step_lines
from symad.errors import EvaluationError
from symad.saving.atomic_files import write_text

# ---- every mode as a film ------------------------------------------------------------------------


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
            math = boxed([names.math(q.letter, node) for q in kept], [q.values.get(node, 0) for q in kept])
            film.lines.setdefault(node, []).append((len(film.frames), math))
        every += kept
    return every


def _formula(q: Quantity, node: Node, up: bool, names: Notation) -> str:
    """``t_2 = t_1 y = 0.5``; a large array has its norm after a comma."""
    if not q.kind:
        formula = names.state(node)
    elif up and node is names.runs.output:  # its adjoint is the seed
        formula = ""
    elif up:
        formula = write(names.over_uses(node, q.kind, q.groups, q.half))
    else:
        formula = write(names.outputs(q.kind, node, q.groups)[q.half]) if node.args else ""
    name = names.math(q.letter, node)
    valued = boxed([name], [q.values.get(node, 0)]).latex
    if not formula or formula in (name.latex, valued.partition(" = ")[2]):
        return valued
    same = valued.startswith(f"{name.latex} = ")
    return f"{name.latex} = {formula}" + (valued.removeprefix(name.latex) if same else rf",\ {valued}")


FORMATS = (".html", ".pdf", ".svg", ".png", ".tex")


def play(writer: TableWriter, title: str, path: Path, mode: str = "") -> list[Path]:
    """Write a page or the frames; see `Explanation.play`."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise EvaluationError(f"play writes {', '.join(FORMATS)} files, not {path.name}")
    every = films(writer)
    chosen = [film for film in every if film.title.startswith(mode)]
    if not chosen:
        titles = "; ".join(film.title for film in every)
        raise EvaluationError(f"no mode of {writer.graph.name} begins with {mode!r}; there are: {titles}")
    if kind == ".html":
        write_text(path, page(writer, title, chosen))
        return [path]
    pages = [page for film in chosen for page in _pages(writer, film)]
    digits = len(str(len(pages)))
    files = {path: pages} if kind == ".pdf" else {
        path.with_name(f"{path.stem}_{k:0{digits}d}{kind}"): [page] for k, page in enumerate(pages, 1)
    }  # fmt: skip
    for name, scenes in files.items():
        write_scenes(scenes, name)
    return list(files)


def films(writer: TableWriter) -> list[Film]:
    """The films of all modes."""
    modes = [*writer.modes.first(), *writer.modes.second()]
    return [film_of(mode, writer.names, writer.runs) for mode in modes]


def drawn_values(writer: TableWriter, path: Path | str | None) -> Drawing | None:
    """The graph with all values, and the adjoints of a scalar."""
    *_, last = writer.modes.first()
    values = replace(last, sweeps=(Sweep("", [[writer.modes.state]], "known"),))
    shown = film_of(last if writer.runs.output is not None else values, writer.names, writer.runs)
    lines = {node: tuple(math for _, math in found) for node, found in shown.lines.items()}
    graph, runs = writer.graph, writer.runs
    steps = step_lines(graph, runs, runs.reverse(writer.one)) if runs.output is not None else None
    return drawn(picture(graph, lines, steps), path)


def _scene(writer: TableWriter, film: Film) -> tuple[Picture, Scene]:
    """The picture with all lines of a film, and its shapes, which know the first frame of each line."""
    shown = picture(writer.graph, {n: tuple(m for _, m in found) for n, found in film.lines.items()})
    since: list[list[int]] = [[] for _ in shown.boxes]
    for node, found in film.lines.items():
        if shown.boxes[shown.places[node]].lines:  # not those that a long graph leaves out
            since[shown.places[node]] = [number for number, _ in found]
    return shown, scene(shown, since)


def _pages(writer: TableWriter, film: Film) -> list[Scene]:
    """Each frame with its caption below the picture."""
    shown, whole = _scene(writer, film)
    most = max(len(frame.formulas) for frame in film.frames)
    made = []
    for number, frame in enumerate(film.frames):
        words = [Math(f"{film.title}: {frame.caption}", ""), *frame.formulas]
        below = [
            TextLine(MARGIN, whole.height + 4 + 22 * k, w.text, 13, "start", latex=w.latex)
            for k, w in enumerate(words)
        ]
        part = whole.frame(number, shown.places[frame.node] if frame.node is not None else -1, frame.up)
        size = max(whole.width, *(7.0 * len(w.text) + 48 for w in words)), whole.height + 22 * (most + 1) + 8
        made.append(Scene(part.name, *size, (*part.shapes, *below)))
    return made


def page(writer: TableWriter, title: str, chosen: list[Film]) -> str:
    """The page, which contains its pictures, formulas and program."""
    data = []
    for film in chosen:
        shown, whole = _scene(writer, film)
        frames = [
            {"caption": f.caption, "formulas": [mathml(m.latex) for m in f.formulas], "up": f.up,
             "box": shown.places[f.node] if f.node is not None else -1}
            for f in film.frames
        ]  # fmt: skip
        note = mathml(film.note.latex)
        data.append({"title": film.title, "note": note, "svg": to_svg(whole, frames=True), "frames": frames})
    template = resources.files("symad.display").joinpath("player.html").read_text("utf-8")
    safe = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    formula = graph_latex(writer.graph) if len(writer.graph.nodes) <= SHOWN else "aligned"
    function = "" if "aligned" in formula or len(formula) > MAX_TITLE else mathml(formula)
    short = title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"
    parts = {"TITLE": html.escape(short), "FORMULA": function, "FILMS": safe}
    return visible(re.sub("|".join(parts), lambda found: parts[found[0]], template))


MAX_TITLE = 160
"""The maximum number of characters of the title and of the LaTeX of the formula below it."""
