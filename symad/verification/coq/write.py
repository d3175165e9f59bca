"""A certificate as a Coq file: the model, its derivatives as symad computes them, and the theorems."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import sympy

from symad.core.graph import Graph, Node, topological
from symad.core.identifiers import short_name
from symad.core.signatures import Traceable
from symad.derivatives.hessian import hessian
from symad.derivatives.jacobian import gradient, jacobian
from symad.errors import SymadError
from symad.evaluation.node_numbers import NodeNumber
from symad.numbers.values import unchecked
from symad.ops.arrays.stacking import element
from symad.ops.basic.sources import Input, constant, symbol_of
from symad.tracing.wrt import select_wrt
from symad.verification.certificate.certificate import CertifiedModel
from symad.verification.coq.layout import CoqArgument, Theory, coq_name, theory_text
from symad.verification.coq.programs import CoqProgram
from symad.verification.coq.reading import WHOLE, from_graph, from_sympy
from symad.verification.coq.terms import CoqError, CoqTerm, CoqTerms
from symad.verification.rewriting.restated.by_elements import as_numbers
from symad.verification.rewriting.rewrite import expand_definitions

LIBRARY = (
    "SymadFunctions.v", "SymadStatements.v", "SymadElementary.v", "SymadPrograms.v", "SymadEquality.v",
    "SymadCertificates.v",
)  # fmt: skip
"""The theory, in the order in which it is compiled."""

MAX_INPUTS_OF_HESSIAN = 12
"""The maximum number of inputs for which the Hessian is written by default."""


def write_coq(model: CertifiedModel, path: Path | str, hessian: bool | None = None) -> Path:
    """Write the Coq file of a model, and the library that it needs next to it.

    Args:
        model: the certified model.
        path: the file to write; the files ``Symad*.v`` go to the same folder.
        hessian: true if the Hessian of a scalar model is certified too; for few inputs by default.

    Raises:
        CoqError: an op or a size of the model cannot be written in Coq.
    """
    path = Path(path)
    if path.suffix != ".v" or coq_name(path.stem, ()) != path.stem:
        raise CoqError(f"to_coq: {path.name} is not a name of a Coq file: letters, digits and _ before .v")
    if path.name in LIBRARY:
        raise CoqError(f"to_coq: {path.name} is a file of the library; choose another name")
    text = as_coq(model, path.stem, hessian)
    path.write_text(text, encoding="utf-8")
    for name in LIBRARY:
        (path.parent / name).write_text(
            files(__package__).joinpath(name).read_text("utf-8"), encoding="utf-8"
        )
    return path


def as_coq(model: CertifiedModel, stem: str = "certificate", hessian: bool | None = None) -> str:
    """The text of the Coq file of a model.

    Raises:
        CoqError: an op or a size of the model cannot be written in Coq.
    """
    graph = model.graph
    if graph.dims:
        sizes = ", ".join(sorted(map(str, graph.dims)))
        raise CoqError(f"to_coq: the sizes {sizes} are symbols; give numbers, as in check(f.at({{...}}))")
    if not model.wrt:
        raise CoqError("to_coq: the model names no input to differentiate by")
    wrt, _ = select_wrt(graph, list(model.wrt))
    arguments, leaves = _arguments(graph, wrt)
    theory = Theory(stem, coq_name(graph.name, {a.name for a in arguments}), arguments, "", [])
    scalar = len(graph.output_nodes) == 1 and not graph.output_nodes[0].shape
    count = sum(a.count for a in arguments if a.varies)
    model_program, theory.origin = _model_program(model, leaves, arguments)
    theory.add("", model_program, scalar)
    derive = gradient if scalar else jacobian
    made = derive(graph, list(model.wrt)).output_nodes
    first = _by_nodes(made, leaves, arguments, model=graph.output_nodes)
    theory.add("gradient" if scalar else "jacobian", first, False, of="")
    if scalar and (count <= MAX_INPUTS_OF_HESSIAN if hessian is None else hessian):
        second = _by_nodes(_hessian(graph, model.wrt), leaves, arguments, model=graph.output_nodes)
        theory.add("hessian", second, False, of="gradient")
    return theory_text(theory)


def _hessian(graph: Graph, wrt: Sequence[sympy.Symbol]) -> tuple[Node, ...]:
    return hessian(graph, list(wrt)).output_nodes


def _arguments(graph: Graph, wrt: Sequence[Node]) -> tuple[list[CoqArgument], dict[Node, int]]:
    """The arguments of the function in Coq, and the number of each element; those of ``wrt`` come first.

    Raises:
        CoqError: an input has more than three axes.
    """
    taken: set[str] = set()
    arguments: list[CoqArgument] = []
    numbers: dict[Node, int] = {}
    order = [*wrt, *(n for n in graph.input_nodes if n not in set(wrt))]
    for node in order:
        shape = tuple(int(d) for d in node.shape)
        if len(shape) > 3:
            raise CoqError(f"to_coq: {symbol_of(node)} has {len(shape)} axes; at most three can be written")
        name = coq_name(short_name(symbol_of(node)), taken)
        taken.add(name)
        first = len(numbers) + 1
        for index in np.ndindex(*shape):
            numbers[element(node, *index) if index else node] = len(numbers) + 1
        positive = bool(getattr(symbol_of(node), "is_positive", False)) and not shape
        arguments.append(CoqArgument(name, symbol_of(node), shape, first, node in set(wrt), positive))
    return arguments, numbers


def _model_program(
    model: CertifiedModel, leaves: dict[Node, int], arguments: Sequence[CoqArgument]
) -> tuple[CoqProgram, str]:
    """The model, from the user's SymPy expression if there is one, else from its graph."""
    written = _expressions(model.given, len(model.graph.output_nodes))
    if written is not None:
        terms = CoqTerms(len(leaves))
        try:
            outputs = from_sympy(terms, written, _sympy_leaves(arguments))
        except CoqError:
            if any(a.shape for a in arguments):
                written = None  # a matrix expression: its elements are in the graph
            else:
                raise
        else:
            return _program(terms, outputs, arguments), "the SymPy expression, as it was written"
    return _by_nodes(
        model.graph.output_nodes, leaves, arguments, WHOLE
    ), "the traced graph, element by element"


def _program(terms: CoqTerms, outputs: list[CoqTerm], arguments: Sequence[CoqArgument]) -> CoqProgram:
    return CoqProgram(terms, outputs, positive=tuple(a.first for a in arguments if a.positive))


def _expressions(given: Traceable, outputs: int) -> list[sympy.Expr] | None:
    """The scalar expressions of a SymPy model in row-major order; None for anything else."""
    if isinstance(given, sympy.MatrixBase | sympy.NDimArray):
        return [sympy.sympify(e, strict=True) for e in given] if outputs == 1 else None
    if isinstance(given, (list, tuple)) and given and all(isinstance(e, sympy.Expr) for e in given):
        return list(given)
    return [given] if isinstance(given, sympy.Expr) and not isinstance(given, sympy.MatrixExpr) else None


def _sympy_leaves(arguments: Sequence[CoqArgument]) -> dict[sympy.Symbol, int]:
    """The number of each element as SymPy writes it: x, x[3], X[1, 2]."""
    found: dict[sympy.Basic, int] = {}
    for a in arguments:
        for k, index in enumerate(np.ndindex(*a.shape)):
            symbol = a.symbol
            if index and isinstance(symbol, sympy.MatrixExpr):
                symbol = symbol[(*index, 0)[:2]]
            elif index:
                try:
                    symbol = symbol[index if len(index) > 1 else index[0]]
                except (TypeError, IndexError):
                    continue
            found[symbol] = a.first + k
    return found


def _by_nodes(
    outputs: Sequence[Node],
    leaves: dict[Node, int],
    arguments: Sequence[CoqArgument],
    whole: int = 0,
    model: Sequence[Node] = (),
) -> CoqProgram:
    terms = CoqTerms(len(leaves))
    return _program(terms, from_graph(terms, _scalars(outputs), leaves, whole, model), arguments)


def _scalars(outputs: Sequence[Node]) -> list[Node]:
    """The elements of some nodes as scalar nodes.

    Raises:
        CoqError: an op cannot be written out element by element.
    """
    outputs = expand_definitions(outputs)
    nodes = topological(outputs)
    if not any(n.shape for n in nodes):
        return list(outputs)
    point = {n: as_numbers(n) for n in nodes if isinstance(n.op, Input)}
    try:
        values = unchecked(outputs, point)
    except (SymadError, TypeError, ValueError, AttributeError) as problem:
        ops = ", ".join(sorted({type(n.op).__name__ for n in nodes if n.shape and n.args}))
        raise CoqError(
            f"to_coq: the arrays of {ops} cannot be written out element by element ({problem}); "
            "write the model with scalars or with sums and products of arrays"
        ) from None
    flat = [v for value in values for v in np.asarray(value, dtype=object).ravel()]
    return [v.node if isinstance(v, NodeNumber) else constant(v) for v in flat]
