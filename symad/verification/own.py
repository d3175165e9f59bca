"""Certificates of symad's own derivatives: both modes and all four Hessians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.dims import same_dim, size
from symad.graph import Graph, Node, TupleOf, topological
from symad.hessian import MODES, hessian
from symad.jacobian import gradient, jacobian
from symad.questions import definition
from symad.selecting import select_wrt
from symad.tracing import as_graph
from symad.verification.budget import Budget
from symad.verification.certificate import Certificate, Comparison
from symad.verification.deciding import decide
from symad.verification.references import DualReference, NoReference, SympyReference, packed
from symad.verification.rewriting import expand_definitions
from symad.verification.trust import trusted

SYMPY, DUAL = "SymPy's own derivative", "Dual numbers"


def check(f: Any, wrt: Any = None, seed: int | None = None, budget: Budget | None = None) -> Certificate:
    """A certificate of symad's own derivatives of ``f``.

    For a scalar ``f`` the gradient in both modes and the Hessian in all four, else the Jacobian in
    both modes, are compared with derivatives from elsewhere: SymPy's ``diff`` on explicit expressions
    where these are small, Dual numbers, and the derivative of the definitions of fused ops. Where the
    graph is too large for these, the modes are compared with each other, and `assumes` says so.

    Args:
        f: what `trace` takes.
        wrt: inputs, all by default.
        seed: for the random primes; a new one by default, always recorded.
        budget: limits of time and size.

    Raises:
        DerivativeError: a function in ``f`` has no known derivative.
    """
    graph = as_graph(f, wrt)
    nodes, _ = select_wrt(graph, wrt)
    scalar = len(graph.output_nodes) == 1 and same_dim(size(graph.output_nodes[0].shape), 1)
    comparisons = _scalar_comparisons(graph, nodes) if scalar else _jacobian_comparisons(graph, nodes)
    return decide(f"derivatives of {graph.name}", comparisons, seed, budget)


def _scalar_comparisons(graph: Graph, nodes: tuple[Node, ...]) -> list[Comparison]:
    wrt = [n.op.symbol for n in nodes]  # type: ignore[attr-defined]
    reverse, forward = (gradient(graph, wrt, mode).output_nodes for mode in ("reverse", "forward"))
    made = {f"gradient ({mode})": parts for mode, parts in (("reverse", reverse), ("forward", forward))}
    matrices = {f"Hessian ({mode})": hessian(graph, wrt, mode).output_nodes for mode in MODES}
    names = tuple(f"∂f/∂{symbol}" for symbol in wrt)
    found = _compare_with_references(graph, nodes, made, names, order=1)
    return found + _compare_with_references(graph, nodes, matrices, ("∂²f",), order=2)


def _jacobian_comparisons(graph: Graph, nodes: tuple[Node, ...]) -> list[Comparison]:
    wrt = [n.op.symbol for n in nodes]  # type: ignore[attr-defined]
    made = {f"Jacobian ({mode})": jacobian(graph, wrt, mode).output_nodes for mode in ("forward", "reverse")}
    return _compare_with_references(graph, nodes, made, ("∂f",), order=1)


def _compare_with_references(
    graph: Graph, wrt: tuple[Node, ...], made: dict[str, tuple[Node, ...]], names: tuple[str, ...], order: int
) -> list[Comparison]:
    """Each derivative against the first reference there is, and that against the second."""
    references, missing = _references(graph, wrt, next(iter(made.values())), order)
    assumes = trusted(graph)
    if not references:
        first = next(iter(made))
        references = {f"the {first}": made[first]}
        made = {k: v for k, v in made.items() if k != first}
        assumes = (
            *assumes,
            f"that {first} is right: there is no independent reference ({'; '.join(missing)})",
        )
    (reference, parts), *others = references.items()
    everything = {**made, **{f"second reference ({name})": nodes for name, nodes in others}}
    return [
        Comparison(
            title,
            graph.with_outputs(parts, _tuple(parts)),
            graph.with_outputs(outputs, _tuple(outputs)),
            tuple(f"{title}: {name}" for name in names),
            assumes,
            reference,
            title,
        )
        for title, outputs in everything.items()
    ]


def _tuple(parts: Sequence[Node]) -> TupleOf:
    return TupleOf((None,) * len(parts))


def _references(
    graph: Graph, wrt: tuple[Node, ...], shapes: Sequence[Node], order: int
) -> tuple[dict[str, tuple[Node, ...]], list[str]]:
    """Derivatives from elsewhere by name, in the shapes given, and why others are missing."""
    found: dict[str, tuple[Node, ...]] = {}
    missing = []
    if not graph.dims:
        for name, kind in ((SYMPY, SympyReference), (DUAL, DualReference)):
            try:
                reference = kind(graph.output_nodes, wrt)
                entries = reference.first() if order == 1 else reference.second()
                found[name] = _cut(entries, shapes)
            except NoReference as problem:
                missing.append(f"{name}: {problem}")
    else:
        missing.append("sizes are symbolic")
    if not found and any(definition(n.op, n) is not None for n in topological(graph.output_nodes)):
        plain = graph.with_outputs(expand_definitions(graph.output_nodes), graph.structure)
        symbols = [n.op.symbol for n in wrt]  # type: ignore[attr-defined]
        whole = gradient(plain, symbols) if order == 1 and len(shapes) == len(wrt) else None
        whole = whole or (hessian(plain, symbols) if order == 2 else jacobian(plain, symbols))
        found["the derivative of the definitions"] = whole.output_nodes
    return found, missing


def _cut(entries: Sequence[Node], shapes: Sequence[Node]) -> tuple[Node, ...]:
    """Scalar entries in row-major order as arrays of the shapes of some nodes."""
    parts, offset = [], 0
    for node in shapes:
        count = int(size(node.shape))
        parts.append(packed(entries[offset : offset + count], [int(d) for d in node.shape]))
        offset += count
    return tuple(parts)
