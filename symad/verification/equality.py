"""Decides if two expressions, graphs or structures of them are the same function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symad.core.dims import same_dim, size
from symad.core.graph import Graph, Node, rebuild
from symad.core.signatures import Inputs, Traceable
from symad.core.structures import DataclassOf, DictOf, leaves, paths
from symad.errors import TraceError
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import Input, dimension, symbol_of
from symad.verification.budget import Budget
from symad.verification.certificate.assumptions import trusted
from symad.verification.certificate.certificate import Certificate, Comparison
from symad.verification.decide import decide
from symad.verification.outside import as_decidable, refuse_free_sizes, undecided_outside

if TYPE_CHECKING:
    import sympy as sp


@undecided_outside
def equal(
    a: Traceable,
    b: Traceable,
    seed: int | None = None,
    budget: Budget | None = None,
    inputs: Inputs | None = None,
) -> Certificate:
    """Decides if two things are equal as real functions of their symbols.

    Equal means: the same values on the open dense set where both are defined, under the assumptions of the
    symbols. Floats stand for their exact binary values. Ties and branch boundaries do not count.

    Args:
        a: what `trace` takes: an expression, matrix, array, graph, lists of them, or a Python function.
        b: the same; inputs are matched by symbol, or by name and position for graphs.
        seed: for the random primes; a new one by default, always recorded.
        budget: limits of time and size.
        inputs: the arguments of both sides, as in `trace`; Python functions need them.

    Returns:
        A `Certificate` with one entry for each element.

    Raises:
        ShapeError: the shapes differ.
    """
    left, right = as_decidable(a, inputs=inputs), as_decidable(b, inputs=inputs)
    if len(left.output_nodes) != len(right.output_nodes):
        raise TraceError(
            f"equal: one side has {len(left.output_nodes)} outputs, the other {len(right.output_nodes)}"
        )
    right = with_inputs_of(left, right)
    left = with_inputs_of(right, left) if right.dims - left.dims else left
    refuse_free_sizes("equal", left, right)
    right = right.with_outputs(
        [fit(y, x) for y, x in zip(right.output_nodes, left.output_nodes, strict=True)], right.structure
    )
    comparison = Comparison(
        "equality",
        left,
        right,
        value_names(left),
        trusted(left, right, derivatives=False),
        "the left side",
        "the right side",
    )
    return decide("equality", [comparison], seed, budget)


def value_names(graph: Graph) -> tuple[str, ...]:
    """The names of the outputs of a graph: "value", "value 1" of several, ``value['loss']`` of a dict."""
    count, structure = len(graph.output_nodes), graph.structure
    if structure is None or leaves(structure) != count or not isinstance(structure, (DictOf, DataclassOf)):
        return ("value",) if count == 1 else tuple(f"value {k}" for k in range(count))
    return tuple(f"value{path}" for path in paths(structure))


ASSUMED = ("nonnegative", "nonpositive", "zero", "integer", "even", "odd", "prime")


def _alike(a: Node, b: Node) -> bool:
    """True if two inputs of one name have the same assumptions among `ASSUMED`."""
    first, second = symbol_of(a), symbol_of(b)
    if a.shape:  # MatrixSymbol answers False where IndexedBase and ArraySymbol answer None
        return all(_promises(first, k) == _promises(second, k) for k in ASSUMED)
    return all(getattr(first, f"is_{k}", None) is getattr(second, f"is_{k}", None) for k in ASSUMED)


def _promises(symbol: sp.Basic, kind: str) -> bool:
    """True if an array has assumptions on its elements."""
    return getattr(symbol, f"is_{kind}", None) is True


def fit(node: Node, like: Node) -> Node:
    """The node in the shape of another: a 1×1 array as a scalar, an (n, 1) array as an (n,) array."""
    if len(node.shape) == len(like.shape) or not same_dim(size(node.shape), size(like.shape)):
        return node
    kept = [[d for d in n.shape if d != 1] for n in (node, like)]
    if len(kept[0]) == len(kept[1]) and all(same_dim(p, q) for p, q in zip(*kept, strict=True)):
        return reshape(node, like.shape)
    return node


def with_inputs_of(left: Graph, right: Graph) -> Graph:
    """The right graph on the left one's inputs where symbols, or names and shapes, agree.

    A size of the left one's arrays is no input of the right one, where perhaps no array has it, as in I/n.
    """
    by_symbol = {symbol_of(node): node for node in left.input_nodes}
    by_name = {str(symbol): node for symbol, node in by_symbol.items()}
    replaced: dict[Node, Node] = {}
    for node in right.input_nodes:
        symbol = symbol_of(node)
        found = by_symbol.get(symbol) or by_name.get(str(symbol))
        if found is not None and found is not node and found.shape == node.shape and _alike(found, node):
            replaced[node] = found
        elif found is None and symbol in left.dims:
            replaced[node] = dimension(symbol)
    if not replaced:
        return right
    moved = (replaced.get(n, n) for n in right.input_nodes)
    inputs = tuple(n for n in moved if isinstance(n.op, Input))
    return Graph(inputs, rebuild(right.output_nodes, replaced), right.structure, right.name, right.report)
