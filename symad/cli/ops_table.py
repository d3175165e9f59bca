"""``symad ops``: every operation against every question."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import cache
from string import ascii_lowercase
from typing import Any

import numpy as np
import sympy
from plum import NotFoundLookupError
from rich.box import SIMPLE
from rich.table import Table

from symad.cli.console import OK, REFUTED, Output
from symad.core import questions
from symad.core.graph import SHAPE, ZERO, Graph, Node, Op, Tangent, topological
from symad.errors import LoweringError
from symad.op_examples import EXAMPLES
from symad.ops.basic.sources import Input, input_node, inputs_in
from symad.saving.saved_ops import classes

ANSWERED, MISSING, NOT_LINEAR = "answered", "missing", "not linear"
PRIMITIVE, NO_ARGUMENTS, NOT_HERE = "primitive", "no arguments", "backend not here"
REFUSED = "refused"


def run(options: Namespace) -> int:
    """Print the table; the exit code is 1 if an answer is missing."""
    answers = table()
    if options.json:
        print(json.dumps(answers, indent=1, ensure_ascii=False))
    else:
        _show(answers)
    missing = any(cell == MISSING for row in answers.values() for cell in row.values())
    return REFUTED if missing else OK


LEGEND = """\
✓ answered    ✗ missing    ∅ no arguments
– not linear: only linear operations have a transpose
· a primitive, which needs no definition; no row numbers; elements are computed
moves: the elements are those of arguments: in order, all, some; joined; padded
is: b branches, f finite slopes, k kinked, l linear, n one number,
    o from outside, r repeats, s stored, t total
○ refused by the backend (symad ops --json says why)    ? backend not here
"""

PROPERTIES = {
    "branches": "b", "finite_slopes": "f", "outside": "o", "kinked": "k", "linear": "l", "literal": "n",
    "repeats": "r", "stored": "s", "total": "t",
}  # fmt: skip
"""What the classes of ops say of themselves, see `symad.core.nodes.Op`, with letters for the table."""

SHORT = {
    ANSWERED: "[green]✓[/]",
    MISSING: "[bold red]✗[/]",
    NOT_LINEAR: "[dim]–[/]",
    PRIMITIVE: "[dim]·[/]",
    NO_ARGUMENTS: "[dim]∅[/]",
    NOT_HERE: "[yellow]?[/]",
    REFUSED: "[dim]○[/]",
}

WIDE = 112
"""The number of characters of the full table; on less, as in files, letters stand for the questions."""

HEADERS = {
    "transpose": "transp", "evaluate": "eval", "sympy_form": "sympy", "definition": "def",
    "row_numbers": "rows",
}  # fmt: skip
"""Short headers for questions with long names."""


def _show(answers: dict[str, dict[str, str]]) -> None:
    headers = list(next(iter(answers.values())))
    console = Output()
    names = [HEADERS.get(header, header.removeprefix("emit ")) for header in headers]
    letters = ascii_lowercase[: len(names)]
    shown = Table(title=f"{len(answers)} operations", title_justify="left", box=SIMPLE)
    shown.add_column("operation", no_wrap=True)
    for name in names if console.width >= WIDE else letters:
        shown.add_column(name, justify="center", no_wrap=True)
    shown.padding = (0, 0)
    for name, row in answers.items():
        shown.add_row(name, *(_cell(h, row[h]) for h in headers))
    console.print(shown)
    if console.width < WIDE:
        key = "  ".join(f"{letter} {name}" for letter, name in zip(letters, names, strict=True))
        console.print(key, highlight=False)
    console.print(LEGEND, markup=False, highlight=False)


def _cell(header: str, answer: str) -> str:
    if header == "is":
        return "".join(PROPERTIES[name] for name in answer.split(", ") if name)
    if answer == "computed":
        return SHORT[PRIMITIVE]
    return SHORT.get(answer.split(":")[0], answer.removeprefix("in "))


@cache
def table() -> dict[str, dict[str, str]]:
    """For each op and question: answered, missing, or the reason why there is no answer.

    An answer counts if it exists for one of the op's examples.
    """
    import symad.sparsity.patterns.rules  # noqa: F401  (the answers to `sparsity` stand apart)

    classes()  # imports all op families
    return {cls.__name__: _row(cls) for cls in EXAMPLES}


def _row(op_class: type[Op]) -> dict[str, str]:
    made = EXAMPLES[op_class]()
    nodes = [n for n in made if isinstance(n.op, op_class)] or made
    row = {"shape": ANSWERED if op_class in SHAPE else MISSING}
    for name, ask in ASKED.items():
        row[name] = _worst(ask(node) for node in nodes)
    row["moves"] = min(node.op.moves for node in nodes).name.lower().replace("_", " ")
    row["is"] = ", ".join(name for name in PROPERTIES if getattr(op_class, name))
    for backend in _backends():
        row[f"emit {backend}"] = _worst(emit(node, backend) for node in nodes)
    return row


def _worst(cells: Iterable[str]) -> str:
    found = list(cells)
    return MISSING if MISSING in found else ANSWERED if ANSWERED in found else found[0]


def _answered(question: Callable[..., object], *arguments: object) -> str:
    try:
        question(*arguments)
    except NotFoundLookupError:
        return MISSING
    return ANSWERED


def _knows(question: Any, *arguments: object) -> bool:
    """True if a question has an answer for these arguments; the answer is not computed."""
    try:
        question.generic.resolve_method(arguments)
    except NotFoundLookupError:
        return False
    return True


def _args(node: Node) -> tuple[Node, ...]:
    return tuple(input_node(sympy.Dummy(real=True), a.shape) for a in node.args)


def jvp(node: Node) -> str:
    """Answered if the tangent of an example is known."""
    return _answered(questions.jvp, node.op, node, _args(node))


def transpose(node: Node) -> str:
    """Answered if an op that is linear in an argument has a transpose."""
    if not node.args:
        return NO_ARGUMENTS
    y_bar = input_node(sympy.Dummy(real=True), node.shape)
    if not _knows(questions.transpose, node.op, node, y_bar, ()):
        return MISSING if any(linear_arguments(node)) else NOT_LINEAR
    for k in range(len(node.args)):
        flags = tuple(node.op.linear or j == k for j in range(len(node.args)))
        bars = questions.transpose(node.op, node, y_bar, flags)
        if any(isinstance(bar, Node) for bar in bars):
            return ANSWERED
    return MISSING


def linear_arguments(node: Node) -> tuple[bool, ...]:
    """For each argument, true if the op is linear in it: the tangent is the op itself, on the tangent."""
    found = []
    for k, arg in enumerate(node.args):
        dot = input_node(sympy.Dummy(real=True), arg.shape)
        dots: list[Tangent] = [ZERO] * len(node.args)
        dots[k] = dot
        tangent = questions.jvp(node.op, node, tuple(dots))
        itself = tuple(dot if j == k else a for j, a in enumerate(node.args))
        same = isinstance(tangent, Node) and tangent.op is node.op and tangent.args == itself
        found.append(node.op.linear or same)
    return tuple(found)


def batch(node: Node) -> str:
    """Answered if the op can be applied along a new axis."""
    if not node.args:
        return NO_ARGUMENTS
    count = sympy.Symbol("B", integer=True, positive=True)
    args = tuple(input_node(sympy.Dummy(real=True), (count, *a.shape)) for a in node.args)
    return _answered(questions.batch, node.op, args, (True,) * len(args), count)


def evaluate(node: Node) -> str:
    """Answered if the op has a value at some arguments."""
    if isinstance(node.op, Input):
        return NO_ARGUMENTS
    inputs = inputs_in([node])
    graph = Graph(tuple(inputs), (node,))
    sizes = {symbol: 3 for symbol in graph.dims | _dims(node)}
    values = [np.full([int(sizes.get(d, d)) for d in n.shape], 0.5)[()] for n in inputs]
    return _answered(graph.at(sizes), *values)


def _dims(node: Node) -> frozenset[sympy.Symbol]:
    from symad.core.dims import dim_symbols

    expressions = [getattr(n.op, "expression", 0) for n in topological([node])]
    return frozenset(dim_symbols(e for e in expressions if isinstance(e, sympy.Expr)))


def sympy_form(node: Node) -> str:
    """Answered if the op can be written in SymPy."""
    from symad.tracing.into_sympy.nodes import nodes_to_sympy

    return _answered(nodes_to_sympy, [node])


def flops(node: Node) -> str:
    """Answered if the op's operations are counted."""
    return _answered(questions.flops, node.op, node)


def definition(node: Node) -> str:
    """Answered if a fused op has its definition."""
    return PRIMITIVE if questions.definition(node.op, node) is None else ANSWERED


def sparsity(node: Node) -> str:
    """Answered if the dependency pattern of the op is known."""
    if not node.args:
        return NO_ARGUMENTS
    return ANSWERED if _knows(questions.sparsity, node.op, node, ()) else MISSING


def emit(node: Node, backend: str) -> str:
    """Answered if a backend prints the op."""
    from symad.numeric import lower

    inputs = inputs_in([node])
    inputs += [input_node(sympy.IndexedBase(f"v_{d}", shape=(d,)), (d,)) for d in _dims(node)]
    try:
        lower(Graph(tuple(inputs), (node,)), backend=backend)
    except NotFoundLookupError:
        return MISSING
    except LoweringError as error:
        return NOT_HERE if "not available" in str(error) else f"{REFUSED}: {error}"
    return ANSWERED


def _backends() -> list[str]:
    from symad.numeric.lowering import BACKENDS

    return list(BACKENDS)


def row_numbers(node: Node) -> str:
    """Answered if some of the op's arguments are row numbers."""
    return ANSWERED if node.op.row_numbers else PRIMITIVE


ASKED: dict[str, Callable[[Node], str]] = {
    "jvp": jvp,
    "transpose": transpose,
    "batch": batch,
    "evaluate": evaluate,
    "sympy_form": sympy_form,
    "flops": flops,
    "definition": definition,
    "sparsity": sparsity,
    "row_numbers": row_numbers,
}
