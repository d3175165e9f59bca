"""Gradients and Jacobians: pushforwards and pullbacks applied to unit seeds."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.arguments import PackedResult
from symad.core.dims import Dim
from symad.core.elsewhere import told_arguments
from symad.core.graph import Graph, Origin
from symad.core.identifiers import not_one_of
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.errors import DerivativeError
from symad.tracing import as_graph
from symad.tracing.wrt import differentiated, packing_of, scalar_output
from symad.transforms.cotangents import gradient_nodes
from symad.transforms.jacobians import (
    forward_gradient,
    forward_jacobian,
    reverse_jacobian,
    total_size,
)
from symad.transforms.tangents import dense


@told_arguments()
@without_collecting
def gradient(
    f: Traceable, wrt: Wrt | None = None, mode: str = "reverse", inputs: Inputs | None = None
) -> Graph:
    """The gradient of a scalar function: one output for each ``wrt`` entry, in its shape or structure.

    Args:
        f: an argument of `trace`, with one scalar (or 1×1) output.
        wrt: inputs, all by default. The result is a tuple with one entry for each. It is a bare array if
            ``wrt`` is one symbol, name or position outside a list, or is left out and ``f`` has one argument.
            A symbol that a SymPy ``f`` does not contain becomes its last input, unless ``inputs`` lists all:
            ``gradient(x**2, y)`` is the function 0 of x and y.
        mode: "reverse" (one pullback) or "forward" (one pushforward for each element of ``wrt``).
        inputs: order and grouping of the arguments, as in `trace`; ``wrt`` never changes them.

    Returns:
        A graph with the arguments of ``f``. Called, it gives one array for a bare entry of ``wrt`` or a
        single argument, otherwise a tuple.

    Raises:
        DerivativeError: ``f`` is not scalar, or the mode is unknown.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.gradient(x**2 * y)(3, 2)
        (12, 9)
    """
    graph = as_graph(f, wrt, inputs)
    selection = differentiated(graph, wrt)
    nodes = selection.nodes
    value = scalar_output(graph, "a gradient")
    check_mode(mode, ("reverse", "forward"))
    if mode == "reverse":
        parts = [dense(b, x) for b, x in zip(gradient_nodes(value, nodes), nodes, strict=True)]
    else:
        parts = forward_gradient(value, nodes)
    outputs, entries = selection.packed(parts)
    origin = Origin(selection.labels("bar"), value, nodes)
    packing = packing_of(graph, selection, PackedResult("vector", len(outputs)))
    structure, name = selection.structure(entries), f"{graph.name}_gradient"
    return graph.with_outputs(outputs, structure, name, origin, "", packing)


@told_arguments()
@without_collecting
def jacobian(
    f: Traceable,
    wrt: Wrt | None = None,
    mode: str = "auto",
    sparse: bool = False,
    chunk: int | None = None,
    inputs: Inputs | None = None,
) -> Graph:
    """The Jacobian, one M×N array: rows all outputs flattened in order, columns all ``wrt`` elements.

    Args:
        f: an argument of `trace`.
        wrt: inputs, all by default.
        mode: "forward" (N pushforwards), "reverse" (M pullbacks), or "auto": the cheaper one, by a comparison
            of N and M; ``graph.report`` names the choice. Sparse Jacobians also accept "mixed": some rows by
            reverse mode and the rest by forward mode.
        sparse: if true, the value is a scipy csr_array with fixed structure, by colored compression.
        chunk: for a sparse Jacobian, the number of compressed products that are computed at a time.
        inputs: order and grouping of the arguments, as in `trace`.

    Returns:
        A graph with the arguments of ``f``. Called, it gives an array (M, N), or with ``sparse`` a
        ``csr_array``.

    Raises:
        DerivativeError: the mode is unknown, or ``chunk`` is given for a dense Jacobian.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.jacobian([x * y, x + y])(3.0, 2.0)
        array([[2., 3.],
               [1., 1.]])
    """
    graph = as_graph(f, wrt, inputs)
    check_mode(mode, ("auto", "forward", "reverse", "mixed") if sparse else ("auto", "forward", "reverse"))
    if sparse:
        from symad.sparsity.recovery.jacobian_hessian import sparse_jacobian

        return sparse_jacobian(graph, wrt, mode, chunk=chunk)
    if chunk is not None:
        raise DerivativeError("chunk is for sparse Jacobians; give sparse=True as well")
    selection = differentiated(graph, wrt)
    nodes = selection.nodes
    chosen, report = _choose_mode(mode, total_size(graph.output_nodes), total_size(nodes))
    build = forward_jacobian if chosen == "forward" else reverse_jacobian
    from symad.sparsity.exact_zeros import with_exact_zeros

    matrix = with_exact_zeros(build(graph.output_nodes, nodes), graph.nodes)
    packing = packing_of(graph, selection, PackedResult("matrix"))
    return graph.with_outputs((matrix,), None, f"{graph.name}_jacobian", None, report, packing)


def check_mode(mode: str, known: Sequence[str]) -> None:
    """Check that a derivative has a mode.

    Raises:
        DerivativeError: it has not.
    """
    if mode not in known:
        several = "" if isinstance(mode, str) else "; several inputs go in one list, wrt=[...]"
        raise DerivativeError(not_one_of("mode", mode, known) + several)


def _choose_mode(mode: str, rows: Dim, columns: Dim) -> tuple[str, str]:
    """The cheaper mode: forward mode costs about 2 evaluations a column, reverse mode about 3 a row."""
    if mode != "auto":
        return mode, f"{mode} mode as asked: {rows} outputs, {columns} inputs"
    if isinstance(rows, int) and isinstance(columns, int):
        chosen = "forward" if 2 * columns <= 3 * rows else "reverse"
    else:
        chosen = "reverse" if rows == 1 else "forward"
    passes = f"{columns} pushforwards" if chosen == "forward" else f"{rows} pullbacks"
    return chosen, f"{chosen} mode: {passes} for {rows} outputs and {columns} inputs"
