"""Detection of sparsity patterns on linearized graphs.

A pattern is found by propagating dependency sets through the linear graph of the tangents: the seeds of
the inputs depend on themselves, and every linear op propagates the sets. So a pattern cannot disagree
with the derivative, because both come from the same graph. It contains every entry that
can differ from zero at some point (global detection), or that does not vanish through zero
coefficients at a given point (local detection).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from symad.core.arguments import bind, flat_values
from symad.core.arrays import Number
from symad.core.dims import is_concrete
from symad.core.graph import Graph, Node, Op, Tangent, topological
from symad.core.process import without_collecting
from symad.core.questions import sparsity
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.errors import ShapeError
from symad.ops.arrays.stacking import Stack
from symad.ops.basic.arithmetic import Add, ElementwiseOp
from symad.sparsity.patterns.dependence import nothing, of_bits, seeds, stacked, to_bits
from symad.sparsity.patterns.pattern import Pattern
from symad.sparsity.patterns.rules import size_of
from symad.sparsity.patterns.structural_zeros import at_point, is_local
from symad.tracing import as_graph
from symad.tracing.wrt import scalar_output, select_wrt
from symad.transforms.cotangents import fresh_seed, gradient_nodes
from symad.transforms.tangents import push

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@without_collecting
def jacobian_sparsity(
    f: Traceable, wrt: Wrt | None = None, at: Sequence[Number] | None = None, inputs: Inputs | None = None
) -> csr_array:
    """The sparsity pattern of the Jacobian, a boolean scipy ``csr_array`` (M, N).

    Rows are all outputs flattened in order, columns all ``wrt`` elements flattened in order.
    Entries that are not stored are zero for all inputs.

    Args:
        f: an argument of `trace`.
        wrt: inputs, all by default.
        at: values of all arguments; the pattern is then that at this point, and other points may have more
            entries.
        inputs: order and grouping of the arguments, as in `trace`.

    Returns:
        A boolean ``csr_array`` (M, N); False is a derivative that is zero everywhere.

    Raises:
        ShapeError: a dimension is still a symbol.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.jacobian_sparsity([x, x * y], None).toarray().astype(int)
        array([[1, 0],
               [1, 1]])
    """
    graph = as_graph(f, wrt, inputs)
    nodes, _ = select_wrt(graph, wrt)
    return jacobian_pattern(graph, graph.output_nodes, nodes, at).to_scipy()


@without_collecting
def hessian_sparsity(
    f: Traceable, wrt: Wrt | None = None, at: Sequence[Number] | None = None, inputs: Inputs | None = None
) -> csr_array:
    """The sparsity pattern of the Hessian of a scalar function, a boolean ``csr_array`` (N, N).

    It is the pattern of the Jacobian of the gradient; see `jacobian_sparsity`.

    Returns:
        A boolean ``csr_array`` (N, N); False is a derivative that is zero everywhere.

    Raises:
        DerivativeError: ``f`` is not scalar.
        ShapeError: a dimension is still a symbol.

    Example:
        >>> import sympy, symad
        >>> x, y, z = sympy.symbols("x y z", real=True)
        >>> symad.hessian_sparsity(x**2 * y + z, None).toarray().astype(int)
        array([[1, 1, 0],
               [1, 0, 0],
               [0, 0, 0]])
    """
    graph = as_graph(f, wrt, inputs)
    nodes, _ = select_wrt(graph, wrt)
    gradient = gradient_nodes(scalar_output(graph, "a Hessian"), nodes)
    return jacobian_pattern(graph, gradient, nodes, at, like=nodes).to_scipy()


def jacobian_pattern(
    graph: Graph,
    outputs: Sequence[Tangent],
    wrt: Sequence[Node],
    at: Sequence[Number] | None = None,
    like: Sequence[Node] | None = None,
) -> Pattern:
    """The pattern of ∂outputs/∂wrt; ``like`` gives the shape of an output that is ZERO."""
    shapes = list(like) if like is not None else [y for y in outputs if isinstance(y, Node)]
    check_dimensions(graph, [*shapes, *wrt])
    placeholders = [fresh_seed(x) for x in wrt]
    present = [y for y in outputs if isinstance(y, Node)]
    dots = iter(push(present, dict(zip(wrt, placeholders, strict=True))))
    tangents = [next(dots) if isinstance(y, Node) else y for y in outputs]
    values = _coefficients(graph, tangents, at)
    if values is None:
        return dependencies(tangents, shapes, placeholders)
    with at_point(values):
        return dependencies(tangents, shapes, placeholders)


def check_dimensions(graph: Graph, nodes: Sequence[Node]) -> None:
    """Raise ShapeError if a size is a symbol: patterns need numbers."""
    for node in nodes:
        if not is_concrete(node.shape):
            names = ", ".join(sorted(map(str, graph.dims)))
            raise ShapeError(
                f"a sparsity pattern needs numbers for the dimensions {names} of {graph.name}; give "
                "them with graph.at({...})"
            )


def _coefficients(
    graph: Graph, tangents: Sequence[Tangent], at: Sequence[Number] | None
) -> Mapping[Node, Number] | None:
    """The values at a point of all nodes that depend on inputs only."""
    if at is None:
        return None
    from symad.evaluation.evaluate import as_values
    from symad.numbers.values import unchecked

    values = flat_values(graph.arguments, bind(graph.name, graph.arguments, at, {}))
    point = dict(zip(graph.input_nodes, as_values(values, graph.inputs), strict=True))
    order = topological([t for t in tangents if isinstance(t, Node)])
    fixed: set[Node] = set(point)
    for node in order:
        if not node.op.outside and all(arg in fixed for arg in node.args):
            fixed.add(node)
    wanted = [node for node in order if node in fixed]
    return dict(zip(wanted, unchecked(wanted, point), strict=True))


def dependencies(
    tangents: Sequence[Tangent], shapes: Sequence[Node], placeholders: Sequence[Node]
) -> Pattern:
    """The pattern of a linear map, given by its outputs and the seeds that it is linear in.

    Scalar nodes store their sets as the bits of an integer, arrays as sparse matrices: graphs of
    10⁵ scalars and graphs of a few large arrays are both common.
    """
    inputs = sum(size_of(p) for p in placeholders)
    found: dict[Node, Any] = {}
    first = 0
    for seed in placeholders:
        found[seed] = seeds(size_of(seed), inputs, first) if seed.shape else 1 << first
        first += size_of(seed)
    order = topological([t for t in tangents if isinstance(t, Node)])
    united = (ElementwiseOp,) if all(not node.shape for node in order) else (Add,)
    for node in order:
        if node not in found:
            sets = [found.get(arg) for arg in node.args]
            if any(s is not None for s in sets):
                found[node] = _passed_on(node, sets, inputs, united)
    parts = []
    for tangent, shape in zip(tangents, shapes, strict=True):
        known = found.get(tangent) if isinstance(tangent, Node) else None
        parts.append(nothing(size_of(shape), inputs) if known is None else _rows(known, inputs))
    return stacked(parts) if parts else nothing(0, inputs)


def _passed_on(node: Node, sets: list[Any], inputs: int, united: tuple[type[Op], ...]) -> Pattern | int:
    """The dependencies of a node: those of its arguments for ops of the classes ``united``, or by its rule.

    Graphs of scalars alone have no coefficients that are zero for all inputs; these come from arrays.
    """
    bits = all(s is None or isinstance(s, int) for s in sets)
    if bits and not node.shape and isinstance(node.op, united) and not is_local():
        return reduce(or_, (s or 0 for s in sets))
    if bits and isinstance(node.op, Stack):
        return of_bits([s or 0 for s in sets], inputs)
    patterns = tuple(None if s is None else _rows(s, inputs) for s in sets)
    result = sparsity(node.op, node, patterns)
    return result if node.shape else to_bits(result)


def _rows(known: Pattern | int, inputs: int) -> Pattern:
    return of_bits([known], inputs) if isinstance(known, int) else known
