"""``g.draw("f.svg")``: pictures of graphs as SVG, or as DOT text for Graphviz."""

from __future__ import annotations

from pathlib import Path

from symad.core.escaping import visible
from symad.core.graph import Graph
from symad.display.picture import Picture, picture
from symad.display.svg import to_svg
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
    """A picture of a graph: ``.svg`` for browsers, ``.dot`` for Graphviz; without a path for notebooks.

    Colors distinguish op families; numbers are written inside the operations that use them; the shape of
    every array is written in its box; a value used several times has several edges. In
    a browser each box shows its formula as a tooltip. For graphs with more than 80 nodes the first and the
    last 40 are drawn.

    Raises:
        EvaluationError: the name ends neither in .svg nor in .dot.
    """
    if path is None:
        return Drawing(to_svg(picture(graph)))
    target = Path(path)
    writers = {".svg": to_svg, ".dot": to_dot}
    if target.suffix.lower() not in writers:
        raise EvaluationError(f"draw writes .svg and .dot files, not {target.name}")
    write_text(target, writers[target.suffix.lower()](picture(graph)))
    return None


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
