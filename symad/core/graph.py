"""The graph: a function with inputs, outputs and their structure, and how its nodes are rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy

from symad.core.arguments import Argument, Packing, SignatureOf, argument_of
from symad.core.arrays import ArrayLike
from symad.core.dims import Dim, bind, dim_symbols
from symad.core.documents import Drawn, Explained
from symad.core.elsewhere import missing
from symad.core.following import tell
from symad.core.identifiers import listed, visible
from symad.core.interning import Interned, field_names
from symad.core.nodes import SHAPE, ZERO, Node, Op, Tangent, Zero, op_of, shape, topological
from symad.core.structures import DictOf, Structure, TupleOf, classes_in, leaves, pack
from symad.core.variables import Variable, Variables, held
from symad.errors import ShapeError

__all__ = [
    "DIM_FIELDS", "SHAPE", "ZERO", "DictOf", "Graph", "Node", "Op", "Structure", "Tangent", "TupleOf", "Zero",
    "bind_op", "leaves", "op_of", "pack", "rebuild", "shape", "topological",
]  # fmt: skip


def rebuild(
    outputs: Sequence[Node] | Graph,
    replaced: Mapping[Node, Node],
    make: Callable[[Node, tuple[Node, ...]], Node | None] | None = None,
) -> tuple[Node, ...]:
    """The outputs (those of a graph) with nodes replaced.

    ``make(node, new_args)`` is what stands for each other node; None keeps its op.
    """
    order: Sequence[Node]
    order, outputs = (
        (outputs.nodes, outputs.output_nodes)
        if isinstance(outputs, Graph)
        else (topological(outputs, replaced), outputs)
    )
    new: dict[Node, Node] = dict(replaced)
    for node in order:
        if node in new:
            continue
        args = tuple([new[a] for a in node.args])
        made = None if make is None else make(node, args)
        new[node] = node.over(args) if made is None else made
    tell(new)
    return tuple(new[o] for o in outputs)


@dataclass(frozen=True)
class Origin:
    """The transformation that made a graph, from which names for its values are derived.

    ``labels``: the role of each output, such as ``W_bar``; the value keeps the name of its function.
    ``value``: the scalar whose cotangents the graph computes, or None; ``wrt``: their inputs.
    """

    labels: tuple[str, ...]
    value: Node | None = None
    wrt: tuple[Node, ...] = ()


METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of graphs that higher modules implement: call, explain, draw, pickle; `symad` fills it."""


@dataclass(frozen=True, eq=False)
class Graph(metaclass=Interned):
    """A function: inputs, outputs, and the structure of the outputs.

    ``g(*values)`` evaluates it on floats, arrays, Fractions, mpmath numbers, SymPy expressions or
    `Dual` numbers; the values are in the order of ``g.arguments``, or are given by name, as in
    ``g(x=..., y=...)``. At Python integers alone, rational functions without axes are exact: each value is
    an integer or a `fractions.Fraction`. Other functions of integers are floats.
    """

    input_nodes: tuple[Node, ...]
    output_nodes: tuple[Node, ...]
    structure: Structure = None
    name: str = "f"
    report: str = ""
    """The automatic choices made for this graph, as text for users."""
    origin: Origin | None = None
    """The transformation that made it; None for a model, and for a graph that passes have changed."""
    grouping: tuple[Argument, ...] = ()
    """The arguments, if some of them hold several inputs; empty if each input is one argument."""
    packing: Packing | None = None
    """The inputs that packed code of this derivative flattens; None if the graph is not a derivative."""
    variables: Variables = ()
    """The names that the traced function gives to values."""

    __signature__ = SignatureOf()

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of a call, in order: inputs, or structures of inputs."""
        found: tuple[Argument, ...] | None = self.grouping or self.__dict__.get("_arguments")
        if found is None:
            found = tuple(map(argument_of, self.inputs))
            self.__dict__["_arguments"] = found  # cached: printing symbols takes longer than many a call
        return found

    @property
    def inputs(self) -> tuple[sympy.Basic, ...]:
        """The symbols of the inputs, in calling order."""
        return tuple(node.op.symbol for node in self.input_nodes)  # type: ignore[attr-defined]  # an Input

    @property
    def classes(self) -> tuple[type, ...]:
        """The dataclasses and named tuples among arguments and results."""
        return classes_in(self.structure, *(a.structure for a in self.grouping))

    @property
    def outputs(self) -> tuple[Node, ...]:
        """The output nodes, flat."""
        return self.output_nodes

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes on which the outputs depend, arguments first."""
        # not by cached_property: its lock would stay held in the child of a fork
        found: tuple[Node, ...] | None = self.__dict__.get("_nodes")
        if found is None:
            found = tuple(topological(self.output_nodes))
            self.__dict__["_nodes"] = found
        return found

    @property
    def dims(self) -> frozenset[sympy.Symbol]:
        """The symbols that occur as dimensions of the inputs."""
        return frozenset().union(*(dim_symbols(node.shape) for node in self.input_nodes))

    def at(self, dims: Mapping[sympy.Symbol, int]) -> Graph:
        """The same graph with dimension symbols replaced by numbers, or by expressions of other dimensions.

        Raises:
            ShapeError: a number is not an integer, or is negative, or arrays do not fit at these numbers.
        """
        if not dims:
            return self
        values = {symbol: _length(symbol, number) for symbol, number in dims.items()}
        inside = [n for v in self.variables for n in (v.scope, v.node) if n is not None]
        old = (*self.input_nodes, *self.output_nodes, *inside)
        try:
            made = rebuild(old, {}, lambda node, args: Node.of(bind_op(node.op, values), args))
        except ShapeError as error:
            sizes = ", ".join(f"{symbol} = {value}" for symbol, value in values.items())
            raise ShapeError(f"at {sizes}: {error}") from None
        new = dict(zip(old, made, strict=True))
        return Graph(
            tuple(new[n] for n in self.input_nodes), tuple(new[n] for n in self.output_nodes), self.structure,
            self.name, self.report, None, self.grouping, self.packing,
            tuple(Variable(v.scope and new[v.scope], new[v.node], v.name) for v in self.variables),
        )  # fmt: skip

    def with_outputs(
        self,
        outputs: Iterable[Node],
        structure: Structure,
        name: str = "",
        origin: Origin | None = None,
        report: str = "",
        packing: Packing | None = None,
    ) -> Graph:
        """A graph of the same arguments with other outputs."""
        made = tuple(outputs)
        return Graph(
            self.input_nodes, made, structure, name or self.name, report, origin, self.grouping, packing,
            held(self.variables, made),
        )  # fmt: skip

    def grouped(self, grouping: tuple[Argument, ...]) -> Graph:
        """The same graph with its inputs grouped in other arguments; empty: each input is an argument."""
        if grouping == self.grouping:
            return self
        return Graph(
            self.input_nodes, self.output_nodes, self.structure, self.name, self.report, self.origin,
            grouping, None, self.variables,
        )  # fmt: skip

    def ungrouped(self) -> Graph:
        """The same graph with each input as a separate argument."""
        return self.grouped(())

    def named(self, name: str) -> Graph:
        """The same graph under another name."""
        return self.with_outputs(
            self.output_nodes, self.structure, name, self.origin, self.report, self.packing
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise missing("a Graph", name, ())

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[object, ...]]:
        return METHODS["pickled"](self)

    def __copy__(self) -> Graph:
        return self  # it is immutable

    def __deepcopy__(self, memo: dict[int, object]) -> Graph:
        return self

    def __call__(self, *values: ArrayLike, **named: Any) -> Any:
        """Evaluate; see the class."""
        return METHODS["call"](self, values, named)

    def explain(self, /, *values: Any, as_latex: bool = False, **point: Any) -> Explained:
        """The evaluation tables at a point: states, tangents, adjoints, Hessian duals, costs.

        The result's ``.play("steps.html")`` steps through them; ``.draw("graph.svg")`` shows the values.
        ``as_latex``: if true, the derivation instead, step by step, with the name of each rule.

        Raises:
            EvaluationError: a value fits no input, or the graph is too large for tables or a derivation.
        """
        return METHODS["derivation"](self) if as_latex else METHODS["explain"](self, *values, **point)

    def draw(self, path: Path | str | None = None) -> Drawn | None:
        """A picture of the graph: .svg, .png, .pdf, .tex (TikZ) or .dot; without a path for a notebook.

        Raises:
            EvaluationError: the file has another ending, or is a .png or .pdf without matplotlib.
        """
        return METHODS["draw"](self, path)

    def to_latex(self) -> str:
        """The function as LaTeX, with names for subexpressions that occur several times.

        Raises:
            EvaluationError: the graph has more than 400 nodes.
        """
        return str(METHODS["graph_latex"](self))

    def _repr_latex_(self) -> str | None:
        found: str | None = METHODS["shown_latex"](self)
        return found

    def _repr_svg_(self) -> str:
        return str(self.draw())

    def _repr_html_(self) -> str:
        return str(METHODS["graph_html"](self))

    def __repr__(self) -> str:
        names = listed((argument.name for argument in self.arguments), 10)
        return visible(f"<Graph {self.name}({names}), {len(self.nodes)} nodes>")


def _length(symbol: sympy.Symbol, number: Any) -> Dim:
    """A number, or an expression of other dimensions, as the value of a dimension."""
    if getattr(number, "free_symbols", None) and number.is_integer is not False:
        return number
    if isinstance(number, bool) or not hasattr(number, "__index__") or (length := number.__index__()) < 0:
        raise ShapeError(f"the dimension {symbol} was given {number!r}; give an integer >= 0")
    return length


def bind_op(op: Op, values: Mapping[sympy.Symbol, int]) -> Op:
    """An op with dimension symbols replaced by numbers in all its fields."""
    names = field_names(type(op))
    old = [getattr(op, name) for name in names]
    new = [_bind_field(name, value, values) for name, value in zip(names, old, strict=True)]
    return op if old == new else type(op)(*new)


def _bind_field(name: str, value: object, values: Mapping[sympy.Symbol, int]) -> object:
    if isinstance(value, Graph):
        return value.at(values)
    return bind(value, values) if name in DIM_FIELDS else value


DIM_FIELDS = {"shape", "size", "start", "stop", "low", "high", "expression", "count"}
"""The names of op fields that hold dimensions."""
