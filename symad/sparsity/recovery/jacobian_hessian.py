"""Sparse Jacobians and Hessians: graphs whose value is a scipy ``csr_array`` on a fixed pattern.

There are three methods; if the mode leaves the choice open, the first applicable one is used:

- scalars: one unit seed for each scalar input is folded into the graph, so that only the
  expressions of the entries remain;
- stencils: the derivative is a short sum of scaled selections (`stencil_terms`), written down
  without seeds;
- colored compression: seeds of zeros and ones, one for each color, go through the graph in lanes,
  in forward, reverse or mixed mode, and the entries are gathered from the products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symad.core.arguments import PackedResult
from symad.core.graph import Graph, Node
from symad.core.identifiers import not_one_of
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.errors import DerivativeError
from symad.ops.arrays.gathering import gather
from symad.ops.basic.sources import array_constant
from symad.ops.sparse.csr import compressed_rows
from symad.sparsity.coloring.color import color
from symad.sparsity.coloring.coloring import Coloring
from symad.sparsity.coloring.lower_bounds import bidirectional_bound
from symad.sparsity.patterns.detection import check_dimensions, jacobian_pattern
from symad.sparsity.patterns.pattern import IntArray, Pattern, PatternError, PatternLike, as_pattern
from symad.sparsity.recovery.compressed_products import (
    compressed_products,
    hessian_product,
    pulled,
    pushed,
)
from symad.sparsity.recovery.entries import recovered, seedless_entries
from symad.tracing import as_graph
from symad.tracing.wrt import differentiated, packing_of, scalar_output
from symad.transforms.cotangents import gradient_nodes
from symad.transforms.tangents import dense

# ---- checking a pattern that a user gives against the derivative itself --------------------------


POINTS = 3
"""The number of random points at which missing entries are computed."""


def check_pattern(
    graph: Graph, outputs: Sequence[Node], wrt: Sequence[Node], given: Pattern, detected: Pattern
) -> None:
    """Raise an error if an entry of the derivative that is not zero is missing from the given pattern.

    Only entries of the detected pattern can differ from zero. Those that are missing are computed
    at random points, by compressed products of the detected pattern.

    Raises:
        PatternError: another shape, or an entry is missing; the message names the entry, its value
            and the point.
    """
    if given.shape != detected.shape:
        raise PatternError(
            f"the pattern given has shape {given.shape}, but the derivative of {graph.name} has shape "
            f"{detected.shape}"
        )
    n = given.shape[1]
    keys = detected.rows * n + detected.indices
    missing = np.flatnonzero(~np.isin(keys, given.rows * n + given.indices))
    if not len(missing):
        return
    coloring = color(detected, "column")
    products = compressed_products(coloring, outputs, wrt, None, pushed(outputs, wrt))
    entries = recovered(products, coloring)
    probe = Graph(graph.input_nodes, (entries,), None, graph.name)
    rng = np.random.default_rng(0)
    for _ in range(POINTS):
        point = [
            rng.uniform(0.1, 0.9, tuple(map(int, x.shape))) if x.shape else rng.uniform(0.1, 0.9)
            for x in graph.input_nodes
        ]
        values = np.asarray(probe(*point))[missing]
        wrong = np.flatnonzero(values != 0)
        if len(wrong):
            k = missing[wrong[0]]
            raise PatternError(
                f"the pattern given misses entry ({detected.rows[k]}, {detected.indices[k]}), which is "
                f"{values[wrong[0]]:.6g} at a random point; add it, or leave the pattern out"
            )


JACOBIAN_MODES = ("auto", "forward", "reverse", "mixed")
HESSIAN_MODES = (
    "forward-over-reverse",
    "reverse-over-forward",
    "reverse-over-reverse",
    "forward-over-forward",
)

REVERSE_COST = 1.5
"""The cost of a pullback in pushforwards, approximately."""


@without_collecting
def sparse_jacobian(
    f: Traceable,
    wrt: Wrt | None = None,
    mode: str = "auto",
    pattern: PatternLike | None = None,
    coloring: Coloring | None = None,
    chunk: int | None = None,
    inputs: Inputs | None = None,
) -> Graph:
    """The Jacobian (M, N) as a graph whose value is a ``csr_array``; see `symad.jacobian`.

    Args:
        f: an argument of `trace`.
        wrt: inputs, all by default.
        mode: "forward" (column colors, pushforwards), "reverse" (row colors, pullbacks), "mixed"
            (bidirectional colors) or "auto": no seeds if the graph allows this, otherwise the cheapest
            coloring. ``graph.report`` names the choice.
        pattern: a known pattern instead of the detected one; it is checked at random points.
        coloring: a `Coloring` to use, of kind "column", "row" or "bidirectional".
        chunk: the number of compressed products that are computed at a time, which bounds the memory; by
            default all. Derivatives without seeds have no products.
        inputs: order and grouping of the arguments, as in `trace`.

    Raises:
        DerivativeError: the mode is unknown, or the chunk is not a positive integer.
        PatternError: the pattern given misses an entry of the Jacobian; the message names it.
    """
    _check("mode", mode, JACOBIAN_MODES)
    graph, nodes = _selected(f, wrt, inputs, chunk)
    outputs = graph.output_nodes
    name = f"{graph.name}_jacobian"
    if mode == "auto" and pattern is None and coloring is None:
        seedless = seedless_entries(outputs, nodes)
        if seedless is not None:
            return _graph_of(graph, *seedless, name)
    if coloring is None:
        known = _known_pattern(graph, outputs, nodes, pattern)
        coloring, why = _cheapest(known, mode)
    else:
        _check("coloring.kind", coloring.kind, ("column", "row", "bidirectional"))
        why = "; the coloring given"
        _known_pattern(graph, outputs, nodes, coloring.pattern)
    maps = pulled(outputs, nodes), pushed(outputs, nodes)
    products = compressed_products(coloring, outputs, nodes, *maps, chunk)
    entries = recovered(products, coloring)
    report = _report(coloring, why) + _chunks(chunk)
    return _on_pattern(graph, coloring, entries, coloring.pattern, report, name)


@without_collecting
def sparse_hessian(
    f: Traceable,
    wrt: Wrt | None = None,
    mode: str = "forward-over-reverse",
    pattern: PatternLike | None = None,
    coloring: Coloring | None = None,
    chunk: int | None = None,
    inputs: Inputs | None = None,
) -> Graph:
    """The Hessian (N, N) as a graph whose value is a ``csr_array``; see `symad.hessian`.

    Forward-over-reverse needs no seeds if the graph allows this. Otherwise, and in the other modes,
    the products with the seeds of a star coloring are computed, or of the given coloring ("star",
    "acyclic" or "column"). ``chunk`` and ``inputs`` as in `sparse_jacobian`. ``graph.report`` names
    the choice.

    Raises:
        DerivativeError: ``f`` is not scalar, the mode is unknown, or the chunk is not a positive integer.
        PatternError: the pattern given misses an entry of the Hessian; the message names it.
    """
    _check("mode", mode, HESSIAN_MODES)
    graph, nodes = _selected(f, wrt, inputs, chunk)
    name = f"{graph.name}_hessian"
    value = scalar_output(graph, "a Hessian")
    bars = gradient_nodes(value, nodes)
    gradient = [dense(bar, x) for bar, x in zip(bars, nodes, strict=True)]
    if mode == "forward-over-reverse" and pattern is None and coloring is None:
        seedless = seedless_entries(gradient, nodes, symmetric=True)
        if seedless is not None:
            return _graph_of(graph, *seedless, name)
    if coloring is None:
        known = _known_pattern(graph, gradient, nodes, pattern)
        # A pattern that is not symmetric does not belong to a Hessian of smooth values: symmetry is not
        # assumed.
        coloring = color(known, "star" if known.first_asymmetry() is None else "column")
    else:
        _check("coloring.kind", coloring.kind, ("star", "acyclic", "column"))
        known = _known_pattern(graph, gradient, nodes, coloring.pattern)
    product = hessian_product(value, gradient, nodes, mode)
    entries = recovered(compressed_products(coloring, nodes, nodes, None, product, chunk), coloring)
    report = f"{mode}: {coloring.num_colors} Hessian-vector products, {coloring!r}"
    return _on_pattern(graph, coloring, entries, known, report + _chunks(chunk), name)


def _selected(
    f: Traceable, wrt: Wrt | None, inputs: Inputs | None, chunk: object
) -> tuple[Graph, tuple[Node, ...]]:
    """The graph, with what packed code of its derivative flattens, and the inputs of ``wrt``."""
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise DerivativeError(f"chunk={chunk!r} is not a positive integer: how many products at a time?")
    graph = as_graph(f, wrt, inputs)
    selection = differentiated(graph, wrt)
    packing = packing_of(graph, selection, PackedResult("matrix"))
    known = graph.with_outputs(graph.output_nodes, graph.structure, graph.name, None, graph.report, packing)
    check_dimensions(known, known.nodes)
    return known, selection.nodes


def _check(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise DerivativeError(not_one_of(what, given, known))


def _chunks(chunk: int | None) -> str:
    return "" if chunk is None else f", {chunk} products at a time"


def _known_pattern(
    graph: Graph, outputs: Sequence[Node], wrt: Sequence[Node], given: PatternLike | None
) -> Pattern:
    """The detected pattern, or the given one if it contains every entry."""
    detected = jacobian_pattern(graph, outputs, wrt)
    if given is None:
        return detected
    pattern = as_pattern(given)
    check_pattern(graph, outputs, wrt, pattern, detected)
    return pattern


def _cheapest(pattern: Pattern, mode: str) -> tuple[Coloring, str]:
    """The coloring of a mode, or the cheapest one of all modes, with the reason."""
    if mode != "auto":
        kind = {"forward": "column", "reverse": "row", "mixed": "bidirectional"}[mode]
        return color(pattern, kind), ""
    candidates = [color(pattern, "column"), color(pattern, "row")]
    least = bidirectional_bound(pattern)
    if least < min(map(_cost, candidates)):
        candidates.append(color(pattern, "bidirectional"))
        other = ""
    else:
        other = f", both sides at least {least}"
    costs = ", ".join(f"{c.kind} {_cost(c):g}" for c in candidates)
    return min(candidates, key=_cost), f"; least of {costs}{other}, in forward products"


def _cost(coloring: Coloring) -> float:
    return coloring.column_colors + REVERSE_COST * coloring.row_colors


def _report(coloring: Coloring, why: str) -> str:
    sides = (("forward", coloring.column_colors), ("reverse", coloring.row_colors))
    passes = [f"{count} {mode} product{'s' * (count != 1)}" for mode, count in sides if count]
    m, n = coloring.pattern.shape
    what = " and ".join(passes) or "no products"
    return f"sparse {m}×{n}, {coloring.pattern.nnz} entries, {what}: {coloring!r}{why}"


def _on_pattern(
    graph: Graph, coloring: Coloring, entries: Node, wanted: Pattern, report: str, name: str
) -> Graph:
    """The sparse matrix of those entries of the coloring's pattern that belong to the result."""
    have = coloring.pattern
    if wanted.nnz < have.nnz:  # a symmetric coloring has the whole diagonal
        n = have.shape[1]
        chosen = np.isin(have.rows * n + have.indices, wanted.rows * n + wanted.indices)
        entries = gather(entries, array_constant(np.flatnonzero(chosen)))
    return _graph_of(graph, wanted, [(entries, np.arange(wanted.nnz))], report, name)


def _graph_of(
    graph: Graph, pattern: Pattern, parts: list[tuple[Node, IntArray]], report: str, name: str
) -> Graph:
    if not parts:
        parts = [(array_constant(np.zeros(0)), np.zeros(0, np.int64))]
    matrix = compressed_rows(pattern.shape, pattern.indptr, pattern.indices, parts)
    return graph.with_outputs((matrix,), None, name, None, report, graph.packing)
