"""``g.draw("f.svg")``: pictures of graphs as SVG, PNG, PDF and TikZ, or as DOT text for Graphviz."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from symad.core.graph import Graph
from symad.core.identifiers import visible
from symad.display.picture import Picture, picture
from symad.display.raster import write_raster
from symad.display.scene import Scene, scene
from symad.display.svg import to_svg
from symad.display.tikz import to_tikz
from symad.errors import EvaluationError
from symad.saving.atomic_files import write_text


class Drawing(str):
    """A picture as the text of an SVG document, which notebooks display."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: Path | str) -> None:
        """Write it to a file."""
        write_text(Path(path), str(self))


def draw(graph: Graph, path: Path | str | None = None) -> Drawing | None:
    """A picture of a graph; without a path for notebooks.

    Colors distinguish op families; numbers are written inside the operations that use them; the shape of
    every array is written in its box, the state s_k of the tables to the left of it; a value used several
    times has several edges. In a browser each box shows its formula as a tooltip. For graphs with more than
    80 nodes the first and the last 40 are drawn. ``graph.explain(x=2.0).draw("f.svg")`` has the values and
    the adjoints in the boxes.

    Args:
        graph: any graph.
        path: ``.svg`` for browsers, ``.png`` and ``.pdf`` (these need matplotlib), ``.tex`` for papers that
            load the package tikz, ``.dot`` for Graphviz.

    Raises:
        EvaluationError: the name has another ending, or matplotlib is missing.
    """
    return drawn(picture(graph), path)


def drawn(shown: Picture, path: Path | str | None) -> Drawing | None:
    """A picture written to a path, or as a document."""
    if path is None:
        return Drawing(to_svg(scene(shown)))
    target = Path(path)
    if target.suffix.lower() == ".dot":
        write_text(target, to_dot(shown))
    else:
        write_scenes([scene(shown)], target)
    return None


def write_scenes(shown: Sequence[Scene], target: Path) -> None:
    """A scene, or the pages of a PDF, written to a file in the format that its name says."""
    kind = target.suffix.lower()
    if kind not in (".svg", ".tex", ".png", ".pdf"):
        raise EvaluationError(f"draw writes .svg, .png, .pdf, .tex and .dot files, not {target.name}")
    if kind in (".png", ".pdf"):
        write_raster(shown, target)
    else:
        write_text(target, to_svg(shown[0]) if kind == ".svg" else to_tikz(shown[0]))


def to_dot(shown: Picture) -> str:
    """The picture as a Graphviz digraph."""
    lines = [
        f"digraph {_quoted(shown.name)} {{",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica"];',
        '  edge [fontname="Helvetica", fontsize=10, color="#555555"];',
    ]
    for k, box in enumerate(shown.boxes):
        lines.append(
            f"  n{k} [label={_quoted(box.label)}, tooltip={_quoted(box.tip)}, "
            f'fillcolor="{box.family.fill}", color="{box.family.line}"];'
        )
        if box.output:
            lines.append(f"  out{k} [label={_quoted(box.output)}, shape=plaintext, style=solid];")
            lines.append(f"  n{k} -> out{k} [label={_quoted(box.shape)}];")
    for a, b in shown.edges:
        lines.append(f"  n{a} -> n{b} [label={_quoted(shown.boxes[a].shape)}];")
    return visible("\n".join([*lines, "}"]) + "\n")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
