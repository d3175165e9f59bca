"""Functions of fixed data, such as a training set: values that depend on the data alone are computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from symad.core.arguments import Argument, SignatureOf, argument_of, bind, flat_values
from symad.core.graph import Graph, Node, TupleOf, rebuild
from symad.core.signatures import Inputs, Traceable
from symad.core.structures import leaves
from symad.errors import LoweringError
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import lower
from symad.numeric.passes.algebra.unit_seeds import factor_seeds
from symad.numeric.passes.fixed_data import gather_data
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import Input, input_node
from symad.tracing import as_graph
from symad.tracing.wrt import input_names, others, select, symbol_like

if TYPE_CHECKING:
    from symad.core.arrays import Array


@dataclass(frozen=True)
class Given:
    """A function of the inputs that are not data; see `given`."""

    kernel: Kernel
    """The function of the other inputs, followed by the held values."""
    before: Kernel | None = field(repr=False)
    """The function from the data to the held values; None if there are none."""
    held: tuple[Any, ...] = field(repr=False)
    arguments: tuple[Argument, ...] = field(repr=False)
    """The arguments of a call, in order."""

    __signature__ = SignatureOf()

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Evaluates the function at values of the other inputs, by position or by name."""
        if named or len(values) != len(self.arguments):
            values = tuple(bind(self.kernel.name, self.arguments, values, named))
        return self.kernel(*values, *self.held)

    @property
    def source(self) -> str:
        """The code of one call; its last arguments are the held values."""
        return self.kernel.source


def given(
    f: Traceable,
    data: Mapping[Any, Any],
    backend: str = "numpy",
    dtype: str = "float64",
    inputs: Inputs | None = None,
) -> Given:
    """``f`` as fast code for data that do not change, such as a training set.

    Values that depend on the data alone are computed now, in double precision, and held. Products of data
    are formed first where that saves work in each call: the gradient of a least-squares loss on n rows of p
    numbers becomes the product of a p×p matrix with the weights. This order changes the gradient by rounding
    relative to |XᵀX||w|, not to the gradient itself; `lower` keeps the order of the model.

    >>> import symad
    >>> def squares(w, X, y):
    ...     return ((X @ w - y) ** 2).sum()
    >>> loss = symad.trace(squares, [(2,), (3, 2), (3,)])
    >>> step = symad.gradient(loss, wrt=[0])
    >>> fast = given(step, {1: [[1, 0], [0, 2], [1, 1]], 2: [1, 2, 3]})
    >>> [g.tolist() for g in fast([1, 1])]
    [[-2.0, -2.0]]

    Args:
        f: a function, in any form that `symad.trace` takes.
        data: the values of some arguments, by symbol, name or position; an argument that is a dict, list or
            dataclass of arrays is given as such an object.
        backend: a backend of `lower`.
        dtype: the precision of the calls.
        inputs: order and grouping of the arguments, as in `symad.trace`.

    Returns:
        A `Given`, which is called with the other arguments.

    Raises:
        LoweringError: ``data`` is empty, or names an input twice.
    """
    graph = as_graph(f, None, inputs)
    selected = select(graph, list(data)).entries if data and _differ(graph, data) else ()
    if not selected:
        names = ", ".join(map(str, data)) or "nothing"
        raise LoweringError(f"data must give values of different inputs of {graph.name}, not {names}")
    values = flat_values([e.argument for e in selected], list(data.values()))
    graph = graph.at(_sizes([n for e in selected for n in e.nodes], values))
    nodes = select(graph, list(data)).nodes
    rest = others(graph, nodes)
    live = tuple(node for entry in rest for node in entry.nodes)
    whole = gather_data(factor_seeds(graph) if backend != "cupy" else graph, live)
    frontier, call = _split(whole, live)
    arguments = tuple(entry.argument for entry in rest)
    kernel = lower(call.grouped(_with_held(arguments, call)), backend=backend, dtype=dtype)
    if not frontier:
        return Given(kernel, None, (), arguments)
    structure = TupleOf((None,) * len(frontier))
    where = backend if backend == "cupy" else "numpy"
    before = lower(Graph(nodes, tuple(frontier), structure, f"{graph.name}_data"), backend=where)
    held = before(*values)
    return Given(kernel, before, tuple(_cast(value, dtype) for value in held), arguments)


def _differ(graph: Graph, data: Mapping[Any, Any]) -> bool:
    """Whether all keys name different inputs."""
    nodes = [node for key in data for node in select(graph, [key]).nodes]
    return len(set(nodes)) == len(nodes)


def _with_held(arguments: tuple[Argument, ...], call: Graph) -> tuple[Argument, ...]:
    """The grouping of the code of one call: the held values follow the arguments."""
    if all(a.structure is None for a in arguments):
        return ()
    count = sum(leaves(a.structure) for a in arguments)
    return (*arguments, *map(argument_of, call.inputs[count:]))


def _cast(value: Array, dtype: str) -> Any:
    """A result in the precision of the calls, left on its device."""
    return value.astype(dtype) if hasattr(value, "astype") else np.asarray(value, dtype)


def _sizes(nodes: Sequence[Node], values: Sequence[Array]) -> dict[sympy.Basic, int]:
    """The dimensions that the shapes of the data determine."""
    dims: dict[sympy.Basic, int] = {}
    for node, value in zip(nodes, values, strict=True):
        for dim, length in zip(node.shape, np.shape(value), strict=False):
            if isinstance(dim, sympy.Symbol):
                dims[dim] = length
    return dims


def _split(graph: Graph, live: tuple[Node, ...]) -> tuple[list[Node], Graph]:
    """The values of data alone that the rest of a graph reads, and the rest as a function of them."""
    fixed = {node: False for node in live}
    constant: set[Node] = set()
    for node in graph.nodes:
        if node in fixed:
            continue
        if isinstance(node.op, Input):
            fixed[node] = True
        elif all(a in constant for a in node.args):
            constant.add(node)
            fixed[node] = False
        else:
            fixed[node] = all(fixed[a] or a in constant for a in node.args)
    read: dict[Node, None] = {}
    todo = [o for o in graph.output_nodes if fixed[o]]
    todo += [a for node in graph.nodes if not fixed[node] for a in node.args if fixed[a]]
    for node in todo:
        while isinstance(node.op, Broadcast):  # holding the smaller array is enough: broadcasts cost nothing
            (node,) = node.args
        if fixed[node]:
            read[node] = None
    taken = set(input_names(graph))
    inputs = {node: _input_like(node, taken) for node in read}
    outputs = rebuild(graph.output_nodes, {**{node: node for node in live}, **inputs})
    return list(read), Graph((*live, *inputs.values()), outputs, graph.structure, graph.name)


def _input_like(node: Node, taken: set[str]) -> Node:
    if isinstance(node.op, Input):
        return node
    return input_node(symbol_like("held", node.shape, taken), node.shape)
