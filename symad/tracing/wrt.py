"""Selecting inputs (`wrt`) and naming the new inputs of derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sympy
from sympy.core.function import AppliedUndef
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.arguments import Argument, PackedResult, Packing, Results, argument_of
from symad.core.dims import Shape, same_dim, size
from symad.core.graph import Graph, Node, Origin
from symad.core.identifiers import brief, identifier, listed, printed, short_name
from symad.core.signatures import Wrt
from symad.core.structures import Structure, TupleOf, VectorOf, leaves
from symad.core.variables import held
from symad.errors import DerivativeError
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import input_node, symbol_of
from symad.ops.elementwise.selection import Condition


@dataclass(frozen=True)
class WrtEntry:
    """One entry of ``wrt``: an input, or inputs in a structure."""

    argument: Argument
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Selection:
    """The inputs that ``wrt`` selects.

    ``bare``: the result of a derivative is the part of its one entry, not a tuple of the parts.
    """

    entries: tuple[WrtEntry, ...]
    bare: bool

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The input nodes of all entries, in order."""
        return tuple(node for entry in self.entries for node in entry.nodes)

    def packed(self, parts: Sequence[Node]) -> tuple[tuple[Node, ...], tuple[Structure, ...]]:
        """The parts as outputs, one for each selected input, and the structure of each entry."""
        outputs: list[Node] = []
        structures: list[Structure] = []
        rest = iter(parts)
        for entry in self.entries:
            made, structure = as_outputs(entry.argument.structure, [next(rest) for _ in entry.nodes])
            outputs += made
            structures.append(structure)
        return tuple(outputs), tuple(structures)

    @property
    def output_names(self) -> list[str]:
        """The input of each output of `packed`, as the user wrote it."""
        names: list[str] = []
        for entry in self.entries:
            outputs = as_outputs(entry.argument.structure, entry.nodes)[0]
            given = {node: name_of(node) for node in entry.nodes}
            names += [given.get(node, entry.argument.name) for node in outputs]
        return names

    def labels(self, suffix: str) -> tuple[str, ...]:
        """The names of the outputs of `packed` with a suffix such as ``_bar``."""
        return tuple(f"{identifier(name)}_{suffix}" for name in self.output_names)

    def structure(self, structures: tuple[Structure, ...]) -> Structure:
        """The structure of a result with these entries: a tuple, or that of the one bare entry."""
        return structures[0] if self.bare else TupleOf(structures)


def name_of(node: Node) -> str:
    """The name of an input, as the user wrote it."""
    return printed(symbol_of(node))


def as_outputs(structure: Structure, nodes: Sequence[Node]) -> tuple[list[Node], Structure]:
    """Nodes in the structure of an argument, where vectors of scalars become arrays."""
    if structure is None:
        return list(nodes), None
    if isinstance(structure, VectorOf):
        return [pack_scalars(nodes, structure.shape)], None
    made: list[Node] = []
    items: list[Structure] = []
    first = 0
    for item in structure.items:
        count = leaves(item)
        outputs, kept = as_outputs(item, nodes[first : first + count])
        made += outputs
        items.append(kept)
        first += count
    return made, replace(structure, items=tuple(items))


def differentiated(graph: Graph, wrt: Wrt | None) -> Selection:
    """What `select` gives, for a derivative.

    Raises:
        DerivativeError: as `select`; or all values of the graph are conditions.
    """
    if graph.output_nodes and all(isinstance(y.op, Condition) for y in graph.output_nodes):
        raise DerivativeError(
            f"the value of {graph.name} is a condition, which has no derivative; of an equation give the "
            "left side minus the right side, of a comparison a function such as Max(left - right, 0)"
        )
    return select(graph, wrt)


def select(graph: Graph, wrt: Wrt | None) -> Selection:
    """The arguments and inputs that ``wrt`` selects.

    Entries are symbols, names, positions of arguments, or lists, tuples, dicts and matrices of inputs; None
    selects every argument. The selection is bare if ``wrt`` is one entry outside a list, or if it is None and
    the function has one argument.

    Raises:
        DerivativeError: an entry is not an input of the graph or occurs twice, a name fits several, or
            another input such as q(t) is a function of it.
    """
    if wrt is None:
        entries = tuple(_arguments(graph))
        selection = Selection(entries, bare=len(entries) == 1)
    else:
        listed = wrt if isinstance(wrt, (list, tuple, sympy.Tuple)) else (wrt,)
        by_symbol = dict(zip(graph.inputs, graph.input_nodes, strict=True))
        selection = Selection(tuple(_entry(graph, e, by_symbol) for e in listed), bare=listed is not wrt)
    nodes = selection.nodes
    if len(set(nodes)) < len(nodes):
        raise DerivativeError(f"wrt={brief(wrt)} names an input of {graph.name} twice; name each once")
    _check_functions(graph, nodes)
    return selection


def select_wrt(graph: Graph, wrt: Wrt | None) -> tuple[tuple[Node, ...], bool]:
    """The input nodes that ``wrt`` selects, and true if ``wrt`` was one bare entry; see `select`."""
    selection = select(graph, wrt)
    return selection.nodes, selection.bare


def _arguments(graph: Graph) -> list[WrtEntry]:
    """Each argument with its inputs."""
    made, first = [], 0
    for argument in graph.arguments:
        count = leaves(argument.structure)
        made.append(WrtEntry(argument, graph.input_nodes[first : first + count]))
        first += count
    return made


def others(graph: Graph, nodes: Sequence[Node]) -> list[WrtEntry]:
    """The arguments without any of these nodes, and the remaining single inputs of the other arguments."""
    made: list[WrtEntry] = []
    for entry in _arguments(graph):
        left = [node for node in entry.nodes if node not in nodes]
        if len(left) == len(entry.nodes):
            made.append(entry)
        else:
            made += [WrtEntry(argument_of(symbol_of(node)), (node,)) for node in left]
    return made


def grouping_of(entries: Sequence[WrtEntry]) -> tuple[Argument, ...]:
    """The arguments of a graph of these inputs; empty if each argument is one input."""
    arguments = tuple(entry.argument for entry in entries)
    return arguments if any(a.structure is not None for a in arguments) else ()


def _entry(graph: Graph, entry: Wrt, by_symbol: Mapping[sympy.Basic, Node]) -> WrtEntry:
    """One entry of ``wrt``."""
    if isinstance(entry, sympy.Basic) and entry in by_symbol:
        return WrtEntry(argument_of(entry), (by_symbol[entry],))
    if isinstance(entry, (list, tuple, dict, sympy.Tuple, sympy.MatrixBase, sympy.NDimArray)):
        from symad.tracing.grouping import group, is_container

        (argument,), found = group([("", entry)], lambda e: not is_container(e))
        return WrtEntry(argument, tuple(_entry(graph, leaf, by_symbol).nodes[0] for _, leaf in found))
    return _named(graph, entry)


def _named(graph: Graph, entry: Wrt) -> WrtEntry:
    """The argument of a position, the argument or input of a name, or an error."""
    arguments = _arguments(graph)
    if isinstance(entry, int) and not isinstance(entry, bool):
        if -len(arguments) <= entry < len(arguments):
            return arguments[entry]
    elif isinstance(entry, str):
        hits = [a for a in arguments if a.argument.name == entry]
        if not hits:
            pairs = zip(graph.inputs, graph.input_nodes, strict=True)
            hits = [WrtEntry(argument_of(s), (node,)) for s, node in pairs if str(s) == entry]
        if len(hits) > 1:
            raise DerivativeError(
                f"wrt={brief(entry)} names {len(hits)} inputs of {graph.name}; give the symbol itself"
            )
        if hits:
            return hits[0]
    names = listed(map(_told, arguments))
    raise DerivativeError(f"wrt={brief(entry)} is not an input of {graph.name}; its inputs are {names}")


MAX_TOLD = 8
"""The number of inputs inside an argument that a message names."""


def _told(entry: WrtEntry) -> str:
    """The name of an argument, and of the inputs inside it, which can be selected as well."""
    inner = [name_of(node) for node in entry.nodes]
    if inner == [entry.argument.name]:
        return entry.argument.name
    return f"{entry.argument.name} ({', '.join(inner[:MAX_TOLD])}{', …' * (len(inner) > MAX_TOLD)})"


def _check_functions(graph: Graph, nodes: Sequence[Node]) -> None:
    """Refuse a derivative by t if q(t) is an input: the dependence of q on t is unknown."""
    functions = [s for s in graph.inputs if isinstance(s, (AppliedUndef, sympy.Derivative))]
    if not functions:
        return
    from symad.tracing.input_symbols import depends_on

    for node in nodes:
        wanted = symbol_of(node)
        for symbol in functions:
            if depends_on(symbol, wanted):
                raise DerivativeError(
                    f"{graph.name} cannot be differentiated by {wanted}: its input {symbol} is a function of "
                    f"{wanted} of which only the value is given. Name the other inputs in wrt, put a symbol "
                    f"in the place of {symbol}, or define the function (a subclass of sympy.Function with "
                    "fdiff, or symad.register_function)"
                )


def scalar_output(graph: Graph, what: str) -> Node:
    """The one output of a scalar function, as a node without axes; 1×1 arrays count as scalars.

    Raises:
        DerivativeError: several outputs, or an array.
    """
    if len(graph.output_nodes) == 1 and same_dim(size(graph.output_nodes[0].shape), 1):
        return reshape(graph.output_nodes[0], ())
    shapes = ", ".join(str(o.shape) for o in graph.output_nodes)
    raise DerivativeError(
        f"{what} needs a scalar function, but {graph.name} has outputs of shape {shapes}; use jacobian, or "
        "reduce it to one number first"
    )


def input_names(graph: Graph) -> set[str]:
    """The names of the inputs, which new inputs may not take."""
    return {str(s) for s in graph.inputs}


def symbol_like(name: str, shape: Shape, taken: set[str]) -> sympy.Basic:
    """A symbol for an array of this shape, with a name not taken; the name is added to ``taken``."""
    unique, k = name, 2
    while unique in taken:
        unique, k = f"{name}_{k}", k + 1
    taken.add(unique)
    if not shape:
        return sympy.Symbol(unique, real=True)
    if len(shape) == 2:
        return sympy.MatrixSymbol(unique, *shape)
    return ArraySymbol(unique, shape)


def tangent_inputs(nodes: Sequence[Node], suffix: str, taken: set[str]) -> tuple[Node, ...]:
    """New inputs of the shapes of some inputs, named ``x_dot`` for ``x``."""
    names = [short_name(symbol_of(node)) for node in nodes]
    return tuple(
        input_node(symbol_like(f"{name}_{suffix}", node.shape, taken), node.shape)
        for name, node in zip(names, nodes, strict=True)
    )


def cotangent_inputs(outputs: Sequence[Node], taken: set[str]) -> tuple[Node, ...]:
    """New inputs of the shapes of the outputs: ``y_bar``, or ``y1_bar``, ``y2_bar``, ..."""
    names = ["y_bar"] if len(outputs) == 1 else [f"y{k}_bar" for k in range(1, len(outputs) + 1)]
    return tuple(
        input_node(symbol_like(name, node.shape, taken), node.shape)
        for name, node in zip(names, outputs, strict=True)
    )


def value_labels(graph: Graph) -> tuple[str, ...]:
    """The names of the outputs of a function: its name, with numbers if there are several outputs."""
    if len(graph.output_nodes) == 1:
        return (graph.name,)
    return tuple(f"{graph.name}_{k}" for k in range(1, len(graph.output_nodes) + 1))


def packing_of(graph: Graph, selection: Selection, results: Results, extra: int = 0) -> Packing:
    """The inputs that packed derivative code flattens; ``extra`` directions follow those of the graph."""
    place = {node: k for k, node in enumerate(graph.input_nodes)}
    count = len(graph.input_nodes)
    x = tuple(place[node] for node in selection.nodes)
    return Packing(x, tuple(range(count, count + extra)), results)


def value_part(graph: Graph) -> PackedResult:
    """All outputs of a function as one result of packed code."""
    return PackedResult("value" if graph.structure is None else "vector", len(graph.output_nodes))


def with_directions(
    graph: Graph,
    directions: Sequence[Node],
    selection: Selection | None,
    suffix: str,
    outputs: Sequence[Node],
    structure: Structure,
    name: str,
    origin: Origin | None = None,
    report: str = "",
    packing: Packing | None = None,
) -> Graph:
    """A derivative with further inputs after those of the graph, grouped like the entries they belong to."""
    entries = () if selection is None else selection.entries
    grouping = graph.grouping
    if grouping or any(entry.argument.structure is not None for entry in entries):
        if selection is None:
            new = [argument_of(symbol_of(node)) for node in directions]
        else:
            new = _direction_arguments(directions, selection, suffix)
        grouping = (*graph.arguments, *new)
    inputs = graph.input_nodes + tuple(directions)
    variables = held(graph.variables, outputs)
    return Graph(inputs, tuple(outputs), structure, name, report, origin, grouping, packing, variables)


def _direction_arguments(directions: Sequence[Node], selection: Selection, suffix: str) -> list[Argument]:
    made, first = [], 0
    for entry in selection.entries:
        if entry.argument.structure is None:
            made.append(argument_of(symbol_of(directions[first])))
        else:
            name = f"{entry.argument.code or entry.argument.name}_{suffix}"
            made.append(Argument(name, entry.argument.structure, name))
        first += len(entry.nodes)
    return made
