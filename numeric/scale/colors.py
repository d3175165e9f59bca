"""Sparse derivatives whose colored products are computed in parallel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

import symad
from symad.core.arguments import Argument, SignatureOf, bind, flat_values
from symad.core.dims import size
from symad.core.graph import Graph
from symad.core.signatures import Inputs, Over, Traceable, Tree, Wrt
from symad.core.structures import TupleOf
from symad.numeric.scale.distribute import Distributed, SplitError, distribute
from symad.sparsity.coloring.coloring import Coloring
from symad.splitting.plan import cut_of
from symad.tracing import as_graph
from symad.tracing.wrt import select

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = np.ndarray


@dataclass(frozen=True)
class ColoredDerivative:
    """A sparse derivative whose colored products are computed in parallel; it is called like the function."""

    name: str
    arguments: tuple[Argument, ...]
    kernel: Distributed
    coloring: Coloring
    directions: tuple[Array, ...]

    __signature__ = SignatureOf()

    def __call__(self, *values: Tree, **named: Tree) -> csr_array:
        """The derivative as a ``csr_array``, by position or by name."""
        given = flat_values(self.arguments, bind(self.name, self.arguments, values, named))
        products = self.kernel(*given, *self.directions)
        parts = products if isinstance(products, tuple) else (products,)
        count = len(self.directions[0])
        return self.coloring.decompress(np.concatenate([np.reshape(p, (count, -1)) for p in parts], axis=1).T)


def sparse_jacobian(
    f: Traceable, wrt: Wrt | None = None, *, inputs: Inputs | None = None, **options: Any
) -> ColoredDerivative:
    """The Jacobian by column colors: one pushforward per color, divided among threads or workers.

    Args:
        f: a function, in any form that `symad.trace` takes, whose sizes are numbers.
        wrt: the inputs to differentiate by; all by default.
        inputs: the inputs of f, as in `symad.trace`; a Python function needs them.
        options: options of `symad.numeric.scale.distribute`; ``rows`` is the number of colors in a part.

    Raises:
        ShapeError: a size is a symbol; ``graph.at({...})`` gives it a value.
    """
    whole = as_graph(f, wrt, inputs)
    graph, wrt = whole.ungrouped(), _inputs(whole, wrt)
    coloring = symad.color(symad.jacobian_sparsity(graph, wrt), "column")
    moved = symad.pushforward(graph, wrt)
    tangents = moved.with_outputs(moved.outputs[len(graph.outputs) :], TupleOf((None,) * len(graph.outputs)))
    return _colored(whole, tangents, coloring, wrt, options)


def sparse_hessian(
    f: Traceable,
    wrt: Wrt | None = None,
    over: Over | None = None,
    *,
    inputs: Inputs | None = None,
    **options: Any,
) -> ColoredDerivative:
    """The Hessian of a scalar function by star colors: one Hessian-vector product per color.

    Without ``over``, the colors are divided among threads or workers, as in `sparse_jacobian`. With ``over``,
    the data of a sum or mean over rows are divided: the Hessian is a sum of the Hessians of single rows, so
    that the sparsity pattern of one row holds for all.

    Args:
        f: a function, in any form that `symad.trace` takes, whose sizes are numbers, except the length of
            the data.
        wrt: the inputs to differentiate by; all by default, with ``over`` all that hold no data.
        over: the axes of the data, as in `symad.splits`.
        inputs: the inputs of f, as in `symad.trace`; a Python function needs them.
        options: options of `symad.numeric.scale.distribute`.

    Raises:
        SplitError: ``over`` is given, and f is not a sum or mean over rows.
        ShapeError: a size is a symbol.
    """
    whole = as_graph(f, wrt, inputs)
    graph, wrt = whole.ungrouped(), _inputs(whole, wrt)
    if over is None:
        coloring = symad.color(symad.hessian_sparsity(graph, wrt), "star")
        return _colored(whole, symad.hvp(graph, wrt), coloring, wrt, options)
    found = symad.splits(graph, over)
    if not set(found.rules) <= {"sum", "mean"}:
        raise SplitError(found)
    one = graph.at({cut_of(graph, over).length: 1})
    coloring = symad.color(symad.hessian_sparsity(one, wrt), "star")
    return _colored(whole, symad.hvp(graph, wrt), coloring, wrt, options, over)


def _inputs(graph: Graph, wrt: Wrt | None) -> list[sympy.Basic]:
    """The inputs that ``wrt`` selects, one by one."""
    symbols = dict(zip(graph.input_nodes, graph.inputs, strict=True))
    return [symbols[node] for node in select(graph, wrt).nodes]


def _colored(
    whole: Graph,
    products: Graph,
    coloring: Coloring,
    wrt: list[sympy.Basic],
    options: Mapping[str, Any],
    over: Over | None = None,
) -> ColoredDerivative:
    """A derivative whose colored products are one batch, divided along the colors or along the data."""
    nodes = select(whole, wrt).nodes
    seeds = np.ascontiguousarray(np.asarray(coloring.seeds()).T)
    directions, start = [], 0
    for node in nodes:
        count = int(size(node.shape))
        directions.append(seeds[:, start : start + count].reshape(len(seeds), *node.shape))
        start += count
    known = len(whole.inputs)
    many = symad.vmap(products, [None] * known + [0] * len(nodes))
    along = {str(s): 0 for s in many.inputs[known:]} if over is None else over
    kernel = distribute(many, along, **({"rows": 1, **options} if over is None else options))
    return ColoredDerivative(whole.name, whole.arguments, kernel, coloring, tuple(directions))
