"""Hessians and Hessian-vector products: compositions of forward and reverse mode, nothing else.

For a scalar f with gradient g = ∇f and a direction v, the four compositions are

- forward-over-reverse: push v through the graph of g;
- reverse-over-forward: pull 1 back through the graph of the scalar ⟨g, v⟩ made by forward mode;
- reverse-over-reverse: pull v back through the graph of g made by reverse mode;
- forward-over-forward: push two directions, giving the number uᵀHv.

Each mode builds the Hessian from unit directions, one seed at a time or all of them as lanes of an array; no
mode computes the Jacobian of a Jacobian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from symad.core.arguments import PackedResult
from symad.core.elsewhere import told_arguments
from symad.core.graph import Graph, Node, Tangent, topological
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.derivatives.jacobian import check_mode
from symad.errors import DerivativeError
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import constant
from symad.tracing import as_graph
from symad.tracing.wrt import (
    differentiated,
    input_names,
    packing_of,
    scalar_output,
    tangent_inputs,
    with_directions,
)
from symad.transforms.cotangents import gradient_nodes, pull
from symad.transforms.jacobians import (
    Block,
    Descent,
    blocks_of,
    flat_columns,
    forward_gradient,
    forward_jacobian,
    pack_matrix,
    reverse_jacobian,
    scalar_parts,
    through_lanes,
    transposed,
)
from symad.transforms.tangents import dense, push

MODES = (
    "forward-over-reverse",
    "reverse-over-forward",
    "reverse-over-reverse",
    "forward-over-forward",
)


@told_arguments()
@without_collecting
def hessian(
    f: Traceable,
    wrt: Wrt | None = None,
    mode: str = "forward-over-reverse",
    sparse: bool = False,
    chunk: int | None = None,
    inputs: Inputs | None = None,
) -> Graph:
    """The Hessian of a scalar function: one N×N array over all ``wrt`` elements, flattened in order.

    Args:
        f: an argument of `trace`, with one scalar (or 1×1) output.
        wrt: inputs, all by default.
        mode: one of the four compositions; see this module.
        sparse: if true, the value is a scipy csr_array with fixed structure, by colored compression.
        chunk: for a sparse Hessian, the number of compressed products that are computed at a time.
        inputs: order and grouping of the arguments, as in `trace`.

    Returns:
        A graph with the arguments of ``f``. Called, it gives an array (N, N), or with ``sparse`` a
        ``csr_array``.

    Raises:
        DerivativeError: ``f`` is not scalar, the mode is unknown, or ``chunk`` is given for a dense Hessian.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.hessian(x**2 * y)(3.0, 2.0)
        array([[4., 6.],
               [6., 0.]])
    """
    graph = as_graph(f, wrt, inputs)
    check_mode(mode, MODES)
    if sparse:
        from symad.sparsity.recovery.jacobian_hessian import sparse_hessian

        return sparse_hessian(graph, wrt, mode, chunk=chunk)
    if chunk is not None:
        raise DerivativeError("chunk is for sparse Hessians; give sparse=True as well")
    selection = differentiated(graph, wrt)
    value = scalar_output(graph, "a Hessian")
    from symad.sparsity.exact_zeros import with_exact_zeros

    matrix = with_exact_zeros(hessian_node(value, selection.nodes, mode), graph.nodes)
    packing = packing_of(graph, selection, PackedResult("matrix"))
    return graph.with_outputs((matrix,), None, f"{graph.name}_hessian", None, mode, packing)


def hessian_node(value: Node, wrt: Sequence[Node], mode: str) -> Node:
    """The Hessian of a scalar node."""
    if not wrt:
        return broadcast_axes(constant(0), (0, 0), ())
    if mode == "forward-over-reverse":
        return _forward_over_reverse(value, wrt)
    if mode == "forward-over-forward":
        return forward_jacobian(forward_gradient(value, wrt), wrt)
    if mode == "reverse-over-reverse":
        return reverse_jacobian(_gradient(value, wrt), wrt)
    return _reverse_over_forward(value, wrt)


def _gradient(value: Node, wrt: Sequence[Node]) -> list[Node]:
    return [dense(b, x) for b, x in zip(gradient_nodes(value, wrt), wrt, strict=True)]


def _forward_over_reverse(value: Node, wrt: Sequence[Node]) -> Node:
    """The Hessian by one product for each pair of blocks of inputs; H is symmetric.

    The seeds are those of the input that is used first: its tangents pass through more of the graph, and
    meet the tangents of the other inputs on the way.
    """
    gradient = dict(zip(wrt, _gradient(value, wrt), strict=True))
    blocks = blocks_of(wrt)
    if len(blocks) == 1 or scalar_parts(list(gradient.values())) is not None:
        return forward_jacobian(list(gradient.values()), wrt)
    first_use = _first_uses(value)
    never = len(first_use)
    order = sorted(blocks, key=lambda block: min(first_use.get(w, never) for w in block.members))
    made: dict[tuple[Block, Block], Node] = {}
    for k, block in enumerate(order):
        others = [w for later in order[k:] for w in later.members]
        lanes = through_lanes(partial(push, [gradient[w] for w in others]), block)
        column = dict(zip(others, lanes, strict=True))
        for other in order[k:]:
            parts = flat_columns([column[w] for w in other.members], other.members, block.total)
            made[other, block] = transposed(parts)
            made[block, other] = parts
    return concatenate([concatenate([made[row, column] for column in blocks], 1) for row in blocks], 0)


def _first_uses(value: Node) -> dict[Node, int]:
    """For each node the position of the first node that uses it."""
    found: dict[Node, int] = {}
    for k, node in enumerate(topological([value])):
        for arg in node.args:
            found.setdefault(arg, k)
    return found


def _reverse_over_forward(value: Node, wrt: Sequence[Node]) -> Node:
    """For each unit direction v the gradient of the directional derivative ⟨∇f, v⟩."""
    if not any(node.shape for node in wrt) and Descent([value], wrt).worth_unrolling():
        rows = [_directional_gradient(value, wrt, {w: constant(1)}) for w in wrt]
        return pack_matrix(rows, len(wrt), len(wrt))
    rows_of_blocks = []
    for block in blocks_of(wrt):
        lanes = through_lanes(lambda dots: _directional_gradient(value, wrt, dots), block)
        rows_of_blocks.append(flat_columns(lanes, wrt, block.total))
    return concatenate(rows_of_blocks, 0)


def _directional_gradient(value: Node, wrt: Sequence[Node], dots: Mapping[Node, Tangent]) -> list[Tangent]:
    (value_dot,) = push([value], dots)
    return pull([value_dot], [constant(1)], wrt)


@without_collecting
def hvp(
    f: Traceable, wrt: Wrt | None = None, mode: str = "forward-over-reverse", inputs: Inputs | None = None
) -> Graph:
    """The Hessian-vector product: (inputs..., v...) -> H v, one output for each ``wrt`` entry.

    The directions v have the shapes and structures of the ``wrt`` entries. The result is a tuple, or a bare
    array, as that of `gradient`. Cost: about two gradients, without ever forming H. ``inputs`` as in `trace`.

    Returns:
        A graph with the arguments of ``f``, then one direction for each entry of ``wrt``.

    Raises:
        DerivativeError: ``f`` is not scalar, or the mode gives no product: forward-over-forward gives
            only numbers uᵀHv.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.hvp(x**2 * y)(3, 2, 1, 0)
        (4, 6)
    """
    graph = as_graph(f, wrt, inputs)
    selection = differentiated(graph, wrt)
    nodes = selection.nodes
    check_mode(mode, MODES)
    if mode == "forward-over-forward":
        raise DerivativeError(
            "forward-over-forward gives the numbers uᵀHv one at a time, never the product Hv; use "
            "another mode, or hessian(f, mode='forward-over-forward')"
        )
    value = scalar_output(graph, "a Hessian-vector product")
    directions = tangent_inputs(nodes, "v", input_names(graph))
    dots: dict[Node, Tangent] = dict(zip(nodes, directions, strict=True))
    if mode == "forward-over-reverse":
        parts = push(_gradient(value, nodes), dots)
    elif mode == "reverse-over-reverse":
        parts = pull(_gradient(value, nodes), directions, nodes)
    else:
        parts = _directional_gradient(value, nodes, dots)
    outputs, entries = selection.packed([dense(p, x) for p, x in zip(parts, nodes, strict=True)])
    packing = packing_of(graph, selection, PackedResult("vector", len(outputs)), len(directions))
    structure, name = selection.structure(entries), f"{graph.name}_hvp"
    return with_directions(graph, directions, selection, "v", outputs, structure, name, None, mode, packing)
