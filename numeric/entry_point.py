"""The parameters of a call, and the outermost function, which takes vectors, dicts and dataclasses apart."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from itertools import count
from typing import Any

import sympy

from symad.core.arguments import Argument, PackedResult, Packing, Results, argument_of
from symad.core.dims import Dim, dim_symbols, same_dim, size
from symad.core.graph import Graph, Node
from symad.core.identifiers import parameter_names
from symad.core.signatures import Wrt
from symad.core.structures import DataclassOf, DictOf, ListOf, Structure, TupleOf, VectorOf, leaves
from symad.errors import LoweringError
from symad.numeric.kernel import Kernel
from symad.numeric.modules.module_text import Names, pack_text
from symad.numeric.passes.memory_layout.packed_entries import entries_of
from symad.numeric.targets import helpers
from symad.numeric.targets.pasting import pasted
from symad.numeric.targets.sizes import NamedDimensions, dimension, size_bindings
from symad.numeric.targets.target import Text
from symad.ops.arrays.stacking import concatenate, pack_scalars
from symad.ops.basic.shaping import flatten, reshape
from symad.ops.basic.sources import ArrayConstant, constant, symbol_of
from symad.tracing.wrt import select, value_part
from symad.transforms.jacobians import total_size


@dataclass(frozen=True)
class Flat:
    """The structure of a parameter that is one flat vector of all its inputs, in row-major order."""


@dataclass(frozen=True)
class EntryParameter:
    """One parameter of the outermost function.

    Attributes:
        title: the name that the user wrote.
        code: the name in the code, before it is made unique.
        structure: how the parameter holds its inputs.
        nodes: its inputs, in order.
    """

    title: str
    code: str
    structure: Structure | Flat
    nodes: tuple[Node, ...]


def parameters_of(graph: Graph) -> list[EntryParameter]:
    """The arguments of a graph as parameters."""
    made, first = [], 0
    for a in graph.arguments:
        count = leaves(a.structure)
        nodes = graph.input_nodes[first : first + count]
        made.append(EntryParameter(a.name, a.code or a.name, a.structure, nodes))
        first += count
    return made


def arguments_of(parameters: Sequence[EntryParameter]) -> tuple[Argument, ...]:
    """The arguments of a call of a kernel with these parameters."""
    return tuple(
        Argument(p.title, None if isinstance(p.structure, Flat) else p.structure, p.code) for p in parameters
    )


def needs_entry_point(parameters: Sequence[EntryParameter], structure: Structure) -> bool:
    """Whether calls need an outermost function, because the generated one takes other arguments."""
    return any(p.structure is not None for p in parameters) or is_unusual(structure)


def is_unusual(structure: Structure) -> bool:
    """Whether the structure of the results has more than tuples and dicts."""
    if structure is None:
        return False
    return isinstance(structure, (ListOf, DataclassOf)) or any(map(is_unusual, structure.items))


def plain_results(graph: Graph) -> Graph:
    """The graph, with its results as a flat tuple if their structure is unusual."""
    if not is_unusual(graph.structure):
        return graph
    flat = TupleOf((None,) * len(graph.output_nodes))
    return graph.with_outputs(graph.output_nodes, flat, graph.name, graph.origin, graph.report)


_numbers = count(1)
Given = tuple[str, str, Node]
"""The text of an input, the name that the user wrote, and its node."""


def with_entry_point(
    kernel: Kernel, parameters: Sequence[EntryParameter], structure: Structure, module: str
) -> Kernel:
    """The kernel with its outermost function; ``module`` is the array library of the code."""
    entry = EntryPoint(parameters, kernel.name, structure, "cp" if module == "cupy" else "np")
    text = entry.text()
    plain = kernel.plain
    inner = kernel.function if kernel.quick is None else kernel.quick(kernel.function)

    @cache
    def compiled() -> Callable[..., Any]:
        filename = f"<symad {kernel.name} {next(_numbers)}: arguments>"
        namespace: dict[str, Any] = {kernel.name: inner, entry.np: import_module(module)}
        exec(compile(text, filename, "exec"), namespace)  # only text that symad's own printers made
        namespace.update(entry.classes)
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        function: Callable[..., Any] = namespace[kernel.name]
        return function

    return replace(
        kernel,
        text=f"{kernel.text}\n\n{text}" if kernel.text else "",
        function=compiled() if module == "numpy" else lambda *values: compiled()(*values),
        plain=None if plain is None else cache(partial(_plain, plain, parameters, structure, module)),
        inner=inner,
        quick=kernel.one_vector if _is_one_vector(parameters) and not is_unusual(structure) else None,
        one_vector=None,
    )


def _is_one_vector(parameters: Sequence[EntryParameter]) -> bool:
    """Whether the only argument is a vector of all inputs."""
    if len(parameters) != 1:
        return False
    made = parameters[0].structure
    return isinstance(made, Flat) or (isinstance(made, VectorOf) and len(made.shape) == 1)


def _plain(
    made: Callable[[], Kernel], takes: Sequence[EntryParameter], gives: Structure, module: str
) -> Kernel:
    return with_entry_point(made(), takes, gives, module)


class EntryPoint:
    """Prints the outermost function."""

    def __init__(
        self, parameters: Sequence[EntryParameter], entry: str, structure: Structure, np: str
    ) -> None:
        """``entry`` is the function of all inputs."""
        self.parameters, self.entry, self.structure, self.np = parameters, entry, structure, np
        self.names = parameter_names(p.code for p in parameters)
        self.helpers: dict[str, str] = {}
        self.lines: list[str] = []
        self.classes: dict[str, type] = {}
        unique = Names((*self.names, entry))
        self.inner = f"_inputs_of_{entry}"
        self.dims: dict[sympy.Basic, str] = {}
        for symbol in sorted(dim_symbols(d for p in parameters for n in p.nodes for d in n.shape), key=str):
            self.dims[symbol] = unique.of(symbol)
        self._class_names = unique

    def text(self) -> str:
        """The lines that follow the module of the inner function."""
        shapes: list[Given] = []
        given: list[str] = []
        vectors: list[int] = []
        for name, p in zip(self.names, self.parameters, strict=True):
            if isinstance(p.structure, Flat):
                vectors.append(len(given))
                given.append(name)
            else:
                parts = list(self.parts(p.structure, name, p.title, iter(p.nodes), shapes))
                given.append(", ".join(parts))
        unknown = self.bind_dims(shapes) if vectors else []
        for k in vectors:
            given[k] = self.cut(self.parameters[k], given[k])
        result = f"{self.inner}({', '.join(g for g in given if g)})"
        body = [*self.lines, *self.returned(result)]
        signature = ", ".join([*self.names, *unknown])
        lines = [
            *(part for text in self.helpers.values() for part in (text.rstrip(), "", "")),
            f"{self.inner} = {self.entry}",
            *[f"{name} = dict  # or the class of your own with these fields" for name in self.classes],
            "",
            "",
            f"def {self.entry}({signature}):",
            *self.docstring(),
            *(f"    {line}" for line in body),
        ]
        return "\n".join(lines) + "\n"

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of a function that the file defines."""
        found = pasted(function, np=self.np)
        self.helpers.update(found.functions)
        return found.functions[-1][0]

    # ---- structures -------------------------------------------------------------------------------

    def parts(
        self, structure: Any, text: str, title: str, nodes: Iterator[Node], shapes: list[Given]
    ) -> Iterator[str]:
        """The texts of the inputs that an argument holds."""
        if structure is None:
            shapes.append((text, title, next(nodes)))
            yield text
        elif isinstance(structure, VectorOf):
            for _ in structure.items:
                next(nodes)
            entries = helpers._entries_on_device if self.np == "cp" else helpers._entries
            yield f"*{self.helper(entries)}({title!r}, {text}, {structure.shape})"
        else:
            selected = self.selected(structure, text, title)
            for item, (part, name) in zip(structure.items, selected, strict=True):
                yield from self.parts(item, part, name, nodes, shapes)

    def selected(
        self, structure: DataclassOf | DictOf | ListOf, text: str, title: str
    ) -> list[tuple[str, str]]:
        """The texts that select the items of a structure, with their names; checks are written before."""
        if isinstance(structure, DataclassOf):
            checked, field = self.helper(helpers._fields), self.helper(helpers._field)
            self.lines.append(f"{checked}({title!r}, {text}, {list(structure.keys)!r})")
            return [(f"{field}({text}, {key!r})", f"{title}.{key}") for key in structure.keys]
        if isinstance(structure, DictOf):
            keys = [_key(key, title) for key in structure.keys]
            checked = self.helper(helpers._keys)
            self.lines.append(f"{checked}({title!r}, {text}, [{', '.join(keys)}])")
            return [(f"{text}[{key}]", f"{title}[{key}]") for key in keys]
        checked = self.helper(helpers._length)
        self.lines.append(f"{checked}({title!r}, {text}, {len(structure.items)})")
        return [(f"{text}[{k}]", f"{title}[{k}]") for k in range(len(structure.items))]

    def returned(self, result: str) -> list[str]:
        """The statements that return the result in its structure."""
        if not is_unusual(self.structure):
            return [f"return {result}"]
        texts = [f"parts[{k}]" for k in range(leaves(self.structure))]
        names: dict[type, str] = {}
        for cls in _classes(self.structure):
            if cls is not dict and cls not in names:
                names[cls] = self._class_names.unique(cls.__name__)
        self.classes = {name: cls for cls, name in names.items()}
        return [f"parts = {result}", f"return {pack_text(self.structure, texts, names)}"]

    # ---- flat vectors -----------------------------------------------------------------------------

    def bind_dims(self, shapes: Sequence[Given]) -> list[str]:
        """Bind the dimensions that other arguments or the length of x determine; the rest are parameters."""
        known = [(text, title, node.shape) for text, title, node in shapes]
        flat = [
            (n, p) for n, p in zip(self.names, self.parameters, strict=True) if isinstance(p.structure, Flat)
        ]
        totals = [(total_size(p.nodes),) for _, p in flat]
        bound: set[sympy.Basic] = set()
        for b in size_bindings([*(shape for _, _, shape in known), *totals], ()):
            if b.argument < len(known):
                text, title, _ = known[b.argument]
                length = f"{self.helper(helpers._axis)}({title!r}, {text}, {b.axis})"
            else:
                length = f"{self.np}.size({flat[b.argument - len(known)][0]})"
            self.lines.append(f"{self.dims[b.symbol]} = {b.text(length, NamedDimensions(self.dims))}")
            bound.add(b.symbol)
        return [self.dims[s] for s in sorted(self.dims.keys() - bound, key=str)]

    def dim(self, dim: Dim) -> Text:
        """A dimension."""
        return dimension(dim, NamedDimensions(self.dims))

    def cut(self, p: EntryParameter, name: str) -> str:
        """The inputs, as parts of a flat vector."""
        total = self.dim(total_size(p.nodes)).text
        checked = self.helper(helpers._vector)
        self.lines.append(f"{name} = {checked}({p.title!r}, {name}, {total})")
        if self.np == "np" and p.nodes and not any(node.shape for node in p.nodes):
            return f"*{name}.tolist()"  # Python's floats, which code of scalars computes with
        pieces: list[str] = []
        offset = 0
        for node in p.nodes:
            end = sympy.expand(offset + size(node.shape))
            if node.shape:
                shape = ", ".join(self.dim(d).text for d in node.shape)
                piece = f"{name}[{self.dim(offset).text}:{self.dim(end).text}]"
                pieces.append(piece if len(node.shape) == 1 else f"{piece}.reshape({shape})")
            else:
                pieces.append(f"{name}[{self.dim(offset).text}]")
            offset = end
        return ", ".join(pieces)

    def docstring(self) -> list[str]:
        """The docstring, which describes the parameters."""
        told = [f"        {name}: {_told(p)}" for name, p in zip(self.names, self.parameters, strict=True)]
        return [f'    """{self.entry}, with the inputs in these arguments:', "", *told, '    """']


def _told(p: EntryParameter) -> str:
    names = [str(symbol_of(n)) for n in p.nodes]
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    safe = "".join(c if c.isprintable() and c not in '"\\' else "_" for c in shown)
    if p.structure is None:
        return safe
    kinds: Mapping[type, str] = {Flat: "a flat vector", VectorOf: "an array", DictOf: "a dict"}
    return f"{kinds.get(type(p.structure), 'a structure')} of {safe}"


def _classes(structure: Structure) -> Iterator[type]:
    if structure is not None:
        if isinstance(structure, DataclassOf):
            yield structure.cls
        for item in structure.items:
            yield from _classes(item)


def _key(key: object, title: str) -> str:
    if isinstance(key, str):
        return repr(str(key))
    if type(key) in (int, bool):
        return repr(key)
    raise LoweringError(f"{title} has the key {key!r}; keys of dicts in generated code are text or integers")


# ---- packed=True for scipy.optimize: inputs and results as flat vectors --------------------------


def packed_by(graph: Graph, wrt: Wrt | None) -> Graph:
    """The graph, marked such that its packed code has these inputs in x."""
    made = graph.packing or Packing((), (), value_part(graph))
    x = tuple(graph.input_nodes.index(node) for node in select(graph, wrt).nodes)
    packing = replace(made, x=x)
    return graph.with_outputs(
        graph.output_nodes, graph.structure, graph.name, graph.origin, graph.report, packing
    )


def packed(graph: Graph) -> tuple[Graph, list[EntryParameter]]:
    """The graph with flat results, and its inputs in the order of the parameters (x, v, others...).

    The vector x holds the inputs that a derivative is taken by, or all inputs if these are not known.
    """
    made = graph.packing or Packing(tuple(range(len(graph.input_nodes))), (), value_part(graph))
    x = [graph.input_nodes[k] for k in made.x]
    v = [graph.input_nodes[k] for k in made.v]
    parameters = [EntryParameter("x", "x", Flat(), tuple(x))]
    if v:
        parameters.append(EntryParameter("v", "v", Flat(), tuple(v)))
    parameters += _others(graph, {*x, *v})
    rest = iter(graph.output_nodes)
    outputs, structure = _results(made.results, rest)
    nodes = tuple(node for parameter in parameters for node in parameter.nodes)
    return Graph(nodes, tuple(outputs), structure, graph.name, graph.report), parameters


def _others(graph: Graph, taken: set[Node]) -> Iterator[EntryParameter]:
    """The arguments outside of the vectors; of an argument that is partly in them, each other input."""
    for p in parameters_of(graph):
        left = [node for node in p.nodes if node not in taken]
        if len(left) == len(p.nodes):
            yield p
        else:
            own = ((argument_of(symbol_of(node)), node) for node in left)
            yield from (EntryParameter(a.name, a.code, None, (node,)) for a, node in own)


def _results(part: Results, rest: Iterator[Node]) -> tuple[list[Node], Structure]:
    """The outputs of some parts, one node for each part, and their structure."""
    if not isinstance(part, PackedResult):
        found = [_results(p, rest) for p in part]
        return [node for nodes, _ in found for node in nodes], TupleOf(tuple(s for _, s in found))
    nodes = [next(rest) for _ in range(part.count)]
    if part.kind == "matrix":
        return nodes, None
    if part.kind == "value" and len(nodes) == 1 and same_dim(size(nodes[0].shape), 1):
        return [*(entries_of(nodes[0]) or (reshape(nodes[0], ()),))], None
    return [flat(nodes)], None


def flat(nodes: Sequence[Node]) -> Node:
    """All elements of some arrays and scalars, as one vector."""
    scalars = [_scalars(node) for node in nodes]
    if all(part is not None for part in scalars):
        found = [s for part in scalars for s in part or ()]
        return pack_scalars(found, (len(found),))
    return concatenate([flatten(node) for node in nodes])


def _scalars(node: Node) -> tuple[Node, ...] | None:
    """The elements of a node, if they are scalar nodes; else None."""
    if not node.shape:
        return (node,)
    if isinstance(node.op, ArrayConstant):
        return tuple(constant(value) for value in node.op.array.ravel().tolist())
    return entries_of(node)
