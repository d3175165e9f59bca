"""The evaluation tables of a graph at a point: ``g.explain(x=3)``.

The notation is that of chains f = f_m ∘ ... ∘ f_1, extended to graphs with fan-out: states s_k,
tangents t_k, adjoints r_k = ∂f/∂s_k (Griewank and Walther 2008, chapter 3), and the Dual numbers of
the four Hessian modes. Every number is computed by the recurrence that its table shows.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from symad.core.arguments import leaves_of, parameters_of, were_given
from symad.core.dims import format_shape, is_concrete, size, solve_dims
from symad.core.graph import METHODS, Graph, Node, topological
from symad.core.identifiers import listed, visible, without_tags
from symad.core.questions import flops
from symad.core.structures import Structure, leaves
from symad.display.drawing import Drawing
from symad.display.tables import Table, text
from symad.display.writer import TableWriter
from symad.errors import EvaluationError
from symad.evaluation.evaluate import as_values
from symad.evaluation.rational_results import evaluate_exactly
from symad.higher_order.scan import Scan
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import symbol_of

# ---- how long the formulas of a graph become when it is evaluated on symbols ---------------------

# A value is a tree of symbols: what occurs twice in it is written twice, so that h_t = tanh(W h_{t−1}) with
# n features has n^t terms. The estimate counts the symbols of one element without making it.


def formula_sizes(outputs: Sequence[Node], given: Mapping[Node, float]) -> dict[Node, float]:
    """About how many symbols one element of each node has, from those of some nodes; 0 for numbers."""
    sizes = dict(given)
    for node in topological(outputs):
        if node not in sizes:
            sizes[node] = _size(node, [sizes[a] for a in node.args])
    return sizes


def _size(node: Node, parts: list[float]) -> float:
    if not any(parts):
        return 0
    if isinstance(node.op, Scan):
        return _last_state(node, node.op, parts)
    return _summands(node) * sum(parts)


def _summands(node: Node) -> float:
    """How many elements of each argument one element is made of."""
    if isinstance(node.op, ElementwiseOp):
        return 1
    if isinstance(node.op, Einsum):
        lengths = {
            k: d
            for labels, a in zip(node.op.inputs, node.args, strict=True)
            for k, d in zip(labels, a.shape, strict=True)
        }
        return math.prod(float(d) for k, d in lengths.items() if k not in node.op.output)
    return max(1.0, float(flops(node.op, node)) / max(1.0, float(size(node.shape))))


def _last_state(node: Node, op: Scan, parts: list[float]) -> float:
    state, *others = parts
    inputs, (output,) = op.body.input_nodes, op.body.output_nodes
    for _ in range(int(node.shape[0])):
        before = state
        state = formula_sizes([output], dict(zip(inputs, (before, *others), strict=True)))[output]
        if state == before:  # also at infinity
            break
    return state


MAX_TABLE_NODES = 400
"""The maximum number of nodes of a graph with tables."""

MAX_FORMULA_SYMBOLS, MAX_HESSIAN_SYMBOLS = 500, 4
"""The maximum number of symbols in a formula of one element, and in one whose Hessians are shown: nobody
reads longer ones, and Hessians of long formulas take SymPy minutes."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """Tables with a title; prints as aligned text, displayed as Markdown in notebooks."""

    title: str
    tables: tuple[Table, ...]
    writer: TableWriter | None = field(default=None, compare=False)
    """The graph at the point, from which `play` and `draw` make their pictures."""

    def play(self, path: Path | str, mode: str = "") -> list[Path]:
        """Every mode step by step: a page with next and previous, or the same frames for slides.

        Args:
            path: ``.html``: one page that needs no network; ``.pdf``: one frame on each page; ``.svg``,
                ``.png`` or ``.tex``: a file for each frame, ``steps_01.svg`` and so on. PNG and PDF need
                matplotlib; a file of TikZ is read by ``input`` where tikz and amsmath are loaded.
            mode: of several modes those whose title begins so, such as "reverse mode" or "forward over".

        Returns:
            The files that were written.

        Raises:
            EvaluationError: another ending, a mode that there is not, or matplotlib is missing.

        Example:
            >>> import tempfile, pathlib, sympy, symad
            >>> x, y = sympy.symbols("x y", real=True)
            >>> steps = symad.trace(sympy.sin(x * y) + x**2).explain(x=2.0, y=0.5)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     [path.name for path in steps.play(pathlib.Path(folder) / "steps.html")]
            ['steps.html']
        """
        from symad.display.player import play

        return play(self._written(), self.title, Path(path), mode)

    def draw(self, path: Path | str | None = None) -> Drawing | None:
        """The graph, with the value of each step in its box, and its adjoint if there is one output."""
        from symad.display.player import drawn_values

        return drawn_values(self._written(), path)

    def _written(self) -> TableWriter:
        if self.writer is None:
            raise EvaluationError("these tables have no graph; call explain of a graph")
        return self.writer

    @property
    def code(self) -> str:
        """The gradient of a scalar function of arrays as a NumPy module; empty for other functions."""
        if self.writer is None or self.writer.runs.output is None or not self.writer.names.arrays:
            return ""
        from symad.derivatives.jacobian import gradient

        return str(METHODS["lower"](gradient(self.writer.graph), style="plain").source).strip()

    @property
    def _function(self) -> str:
        """The function of `code`, without what it calls."""
        return self.code[self.code.rfind("\ndef ") + 1 :]

    def to_text(self) -> str:
        """Plain text, columns aligned."""
        code = ["The gradient as plain code\n\n" + self._function] if self.code else []
        title = textwrap.fill(self.title, 80)
        return visible("\n\n".join([title, *(table.to_text() for table in self.tables), *code]))

    def to_markdown(self) -> str:
        """Markdown pipe tables."""
        code = [f"```python\n{self._function}\n```\n"] if self.code else []
        parts = [f"## {self.title}", "", *(t.to_markdown() for t in self.tables), *code]
        return without_tags("\n".join(parts))

    def to_latex(self) -> str:
        """LaTeX sections with tabulars; formulas of arrays need the package amsmath."""
        return visible("\n\n".join(table.to_latex() for table in self.tables))

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        from symad.display.pages import explanation_html

        return explanation_html(self.title, self.tables, self._function)

    def _repr_latex_(self) -> str:
        return self.to_latex()

    def __repr__(self) -> str:
        return visible(f"<Explanation of {self.title}: {len(self.tables)} tables>")

    def __str__(self) -> str:
        return self.to_text()


def explain(graph: Graph, /, *values: Any, **point: Any) -> Explanation:
    """Tables of every step of a graph: values, both modes, four Hessians, operations, live bytes.

    Args:
        graph: at most 400 nodes. Adjoints and Hessians are shown for one scalar output.
        values: values of the first arguments, in order.
        point: values of arguments or of inputs inside of them by name, of any kind that a graph can be
            evaluated on, including SymPy expressions. An input without a value stays a symbol. A rational
            function at Python integers is shown exactly, in fractions. Where symbols make long formulas, the
            tables of the Hessians are left out.

    Raises:
        EvaluationError: a name is not an input, the graph is too large, its formulas would be too long where
            inputs stay symbols, or an array input of symbolic size has no value.
    """
    named = _by_input(graph, _by_name(graph, values, point))
    at = _values(graph, named)
    shapes = [
        (str(s), node.shape, value.shape if isinstance(value, np.ndarray) else ())
        for s, node, value in zip(graph.inputs, graph.input_nodes, at, strict=True)
    ]
    bound = graph.at(solve_dims(shapes))
    symbolic = _symbolic_inputs(bound, at)
    writer = TableWriter(bound, dict(zip(bound.input_nodes, at, strict=True)))
    where = ", ".join(f"{name} {_given(value)}" for name, value in named.items())
    title = f"{graph.name}({listed(graph.inputs, 10)})" + (f" at {where}" if where else "")
    return Explanation(title, tuple(writer.tables(symbolic)), writer)


def _by_name(graph: Graph, values: Sequence[Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """The point with values in order as values of the first arguments."""
    names = [argument.name for argument in graph.arguments]
    twice = set(names[: len(values)]) & set(point)
    if len(values) > len(names) or twice:
        told = f"a second value of {listed(sorted(twice))}" if twice else were_given(len(values))
        raise EvaluationError(f"explain of {graph.name} takes at most one value for {listed(names)}; {told}")
    return dict(zip(names, values, strict=False)) | dict(point)


def _given(value: Any) -> str:
    """A value in a title: numbers and short vectors themselves, other arrays by their shape."""
    shown = text(value)
    return f"of shape {format_shape(np.shape(value))}" if np.ndim(value) and len(shown) > 20 else f"= {shown}"


def _by_input(graph: Graph, point: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the names of inputs, from those of arguments, parameters of calls, or inputs."""
    inputs = [str(s) for s in graph.inputs]
    if twice := [name for name in inputs if inputs.count(name) > 1]:
        raise EvaluationError(f"{graph.name} has two inputs {twice[0]}; rename one of them to explain it")
    rest = iter(inputs)
    places: dict[str, tuple[Structure, list[str]]] = {}
    for parameter, argument in zip(parameters_of(graph.arguments), graph.arguments, strict=True):
        own = [next(rest) for _ in range(leaves(argument.structure))]
        places |= {parameter: (argument.structure, own), argument.name: (argument.structure, own)}
    places |= {name: (None, [name]) for name in inputs}
    named: dict[str, Any] = {}
    for name, value in point.items():
        if name not in places:
            raise EvaluationError(
                f"{name!r} is not an input of {graph.name}; its inputs are {listed(inputs)}"
            )
        structure, own = places[name]
        named |= dict(zip(own, leaves_of(structure, value, name), strict=True))
    return named


def _values(graph: Graph, point: Mapping[str, Any]) -> list[Any]:
    names = [str(s) for s in graph.inputs]
    if len(graph.nodes) > MAX_TABLE_NODES:
        raise EvaluationError(
            f"{graph.name} has {len(graph.nodes)} nodes, too many for tables (at most "
            f"{MAX_TABLE_NODES}): explain a smaller instance of the model, or ask symad.flops and "
            "symad.memory"
        )
    pairs = zip(names, graph.input_nodes, strict=True)
    given = {node: point[name] if name in point else _itself(node) for name, node in pairs}
    exact = evaluate_exactly(graph.output_nodes, given)
    return as_values(list((given if exact is None else exact.point).values()), graph.inputs)


def _symbolic_inputs(graph: Graph, values: Sequence[Any]) -> str:
    """The inputs without numbers, if the formulas are so long that the tables of Hessians would cut them.

    Raises:
        EvaluationError: the values would be formulas that are too long to be read.
    """
    given = {n: float(_has_symbols(v)) for n, v in zip(graph.input_nodes, values, strict=True)}
    longest = max(formula_sizes(graph.output_nodes, given).values(), default=0)
    symbolic = listed([symbol_of(node) for node, symbols in given.items() if symbols], 6)
    if longest > MAX_FORMULA_SYMBOLS:
        raise EvaluationError(
            f"a value of {graph.name} would be a formula of about {longest:.0e} symbols: give numbers for "
            f"{symbolic}, or explain a smaller instance of the model"
        )
    return symbolic if longest > MAX_HESSIAN_SYMBOLS else ""


def _has_symbols(value: Any) -> bool:
    entries = np.asarray(value, dtype=object).flat
    return any(isinstance(e, sympy.Basic) and bool(e.free_symbols) for e in entries)


def _itself(node: Node) -> sympy.Symbol:
    """An input as SymPy symbols: the symbol, or the array of its elements."""
    symbol = symbol_of(node)
    if not node.shape:
        return symbol
    if not is_concrete(node.shape):
        raise EvaluationError(f"{symbol} has the symbolic shape {format_shape(node.shape)}; give it an array")
    entries = np.empty(node.shape, dtype=object)
    for index in np.ndindex(*node.shape):
        entries[index] = sympy.Symbol(f"{symbol}{list(index)}", real=True)
    return entries
