"""A graph as one formula; subexpressions that occur several times are named below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from symad.core.graph import Graph, Node
from symad.core.identifiers import visible
from symad.display.typesetting import contractions  # noqa: F401  (register answers)
from symad.display.typesetting.pieces import Entries, LatexAtom, Piece, name_of, name_of_input, write
from symad.display.typesetting.recurrences import Loops, definitions, loops_of, scan_piece
from symad.display.typesetting.rules import typeset
from symad.errors import EvaluationError
from symad.higher_order.scan import Scan

MAX_NODES = 400
"""The maximum number of nodes of a graph as a formula."""

NONE: Mapping[Node, Piece] = {}

MAX_UNNAMED = 700
"""The number of characters up to which a formula is written without names for repeated subexpressions."""

WORTH = 18
"""The minimum number of characters of a subexpression with a name."""


class Latex(str):
    """LaTeX text, which notebooks display as formulas."""

    __slots__ = ()

    def _repr_latex_(self) -> str:
        return str(self) if self.startswith(r"\begin{tabular}") else rf"$\displaystyle {self}$"


def graph_latex(graph: Graph) -> Latex:
    """``f(x) = ...``, one line for each output; shared parts named in further lines if it is long.

    Raises:
        EvaluationError: the graph has more than 400 nodes.
    """
    if len(graph.nodes) > MAX_NODES:
        raise EvaluationError(
            f"{graph.name} has {len(graph.nodes)} nodes, too many for a formula (at most {MAX_NODES}); "
            "lower(f).to_latex() lists its statements"
        )
    loops = loops_of(graph)
    short = _short_pieces(graph.nodes, loops)
    lines = _outputs(graph, short) if short.keys() >= {*graph.output_nodes} else []
    if not lines or sum(map(len, lines)) > MAX_UNNAMED:
        names = _names(graph, short, _letters(graph)[0])
        pieces = _pieces(graph.nodes, names, loops)
        lines = [*_outputs(graph, pieces), *_shared(graph.nodes, names, pieces)]
    for letter, (left, body, inputs) in zip(_letters(graph)[1:], definitions(graph), strict=False):
        lines += _step(left, body, inputs, loops, letter)
    if len(lines) == 1:
        return Latex(visible(lines[0].replace("&=", "=", 1)))
    rows = " \\\\\n".join(lines)
    return Latex(visible(f"\\begin{{aligned}}\n{rows}\n\\end{{aligned}}"))


def shown_latex(graph: Graph) -> str | None:
    """The formula of a graph in a notebook; None for graphs that are too large."""
    return graph_latex(graph)._repr_latex_() if len(graph.nodes) <= SHOWN else None


SHOWN = 60
"""The number of nodes above which graphs are displayed as pictures alone."""


def _pieces(
    order: Sequence[Node], names: Mapping[Node, LatexAtom], loops: Loops, given: Mapping[Node, Piece] = NONE
) -> dict[Node, Piece]:
    """The piece of every node; a named node is represented by its name."""
    made = dict(given)
    for node in order:
        if node not in made:
            made[node] = _piece(node, [names.get(a) or made[a] for a in node.args], loops)
    return made


def _piece(node: Node, args: Sequence[Piece], loops: Loops) -> Piece:
    return scan_piece(node, args, loops) if isinstance(node.op, Scan) else typeset(node.op, node, tuple(args))


def _short_pieces(
    order: Sequence[Node], loops: Loops, given: Mapping[Node, Piece] = NONE
) -> dict[Node, Piece]:
    """The pieces without names of the nodes whose formulas are short: long ones double with each reuse."""
    made = dict(given)
    for node in order:
        if node not in made and all(a in made for a in node.args):
            piece = _piece(node, [made[a] for a in node.args], loops)
            if len(write(piece)) <= MAX_UNNAMED:
                made[node] = piece
    return made


def _shared(
    order: Sequence[Node], names: Mapping[Node, LatexAtom], pieces: Mapping[Node, Piece]
) -> list[str]:
    return [f"{names[node].latex} &= {write(pieces[node])}" for node in order if node in names]


def _step(left: str, body: Graph, inputs: Sequence[Piece], loops: Loops, letter: str) -> list[str]:
    """The step of a recurrence; repeated subexpressions have names."""
    given = dict(zip(body.input_nodes, inputs, strict=True))
    names = _names(body, _short_pieces(body.nodes, loops, given), letter)
    pieces = _pieces(body.nodes, names, loops, given)
    result = names.get(body.output_nodes[0]) or pieces[body.output_nodes[0]]
    return [f"{left} &= {write(result)}", *_shared(body.nodes, names, pieces)]


def _letters(graph: Graph) -> list[str]:
    """Letters with which no input begins, for named subexpressions."""
    taken = {str(s)[:1] for s in graph.inputs}
    return [c for c in ("v", "w", "u", "z", "q", *"abdegmnpry", r"\nu", r"\mu", r"\xi") if c not in taken]


def _names(graph: Graph, short: Mapping[Node, Piece], letter: str) -> dict[Node, LatexAtom]:
    """Names v₁, v₂, ... for long subexpressions that are used several times."""
    uses = Counter(a for node in graph.nodes for a in node.args)
    shared = [n for n in graph.nodes if uses[n] > 1 and n.args]
    worth = [n for n in shared if n not in short or len(write(short[n])) >= WORTH]
    return {node: LatexAtom(f"{letter}_{{{k}}}") for k, node in enumerate(worth, 1)}


def _outputs(graph: Graph, pieces: dict[Node, Piece]) -> list[str]:
    """The left and the right side of every output; scalars of one tuple without names are a vector."""
    labels = graph.origin.labels if graph.origin is not None else ()
    outputs = graph.output_nodes
    name = called(graph)
    if len(outputs) == 1 or (not any(labels) and all(not o.shape for o in outputs)):
        left = label_of(labels[0], graph) if len(outputs) == len(labels) == 1 and labels[0] else name
        single = len(outputs) == 1
        value = pieces[outputs[0]] if single else Entries(tuple(pieces[o] for o in outputs), (len(outputs),))
        return [f"{left} &= {write(value)}"]
    shown = [*labels, *[""] * (len(outputs) - len(labels))]
    made = []
    for k, (output, label) in enumerate(zip(outputs, shown, strict=True), 1):
        left = (
            label_of(label, graph) if label else (name if any(labels) else f"{name_of(graph.name)}_{{{k}}}")
        )
        made.append(f"{left} &= {write(pieces[output])}")
    return made


def called(graph: Graph) -> str:
    """The function with its arguments: f(x, y)."""
    arguments = ", ".join(map(name_of_input, graph.inputs))
    return rf"{title(graph.name)}\left({arguments}\right)"


DERIVED = {
    "_value_and_gradient": "", "_gradient": r"\nabla ",
    "_jacobian": r"\mathrm{D} ", "_hessian": r"\nabla^{2} ",
}  # fmt: skip
"""Names of derived graphs, and their notation."""


def title(name: str) -> str:
    """The name of a function or of its derivative."""
    for ending, sign in DERIVED.items():
        if name.endswith(ending):
            return sign + name_of(name.removesuffix(ending))
    return name_of(name)


def label_of(label: str, graph: Graph) -> str:
    """The notation of an output: a derivative of the function, or a cotangent or tangent by its name."""
    if graph.origin is not None and graph.origin.value is not None and label.endswith("_bar"):
        base = next((graph.name.removesuffix(e) for e in DERIVED if graph.name.endswith(e)), graph.name)
        return rf"\frac{{\partial {name_of(base)}}}{{\partial {name_of(label.removesuffix('_bar'))}}}"
    return name_of(label)
