"""The cost of a graph: operations, and memory over the run of its program.

The program is the order of nodes that `schedule` chooses. Numbers are float64, truth values one
byte. A value is live from the step that computes it until the last step that reads it; inputs and
constant arrays are live from the start until they are last read, outputs to the end. A reshaped,
sliced, broadcast or transposed array is a view: it owns no bytes and keeps its source alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import sympy

from symad.core.dims import Dim, as_dim, bind, dim_symbols, size
from symad.core.graph import Graph, Node, topological
from symad.core.nodes import Moved
from symad.core.questions import flops as flops_of
from symad.core.signatures import Inputs, Traceable
from symad.ops.basic.sources import ArrayConstant, Input
from symad.ops.elementwise.selection import Condition
from symad.tracing import as_graph


def flops(f: Traceable, inputs: Inputs | None = None) -> sympy.Expr:
    """The floating-point operations of one evaluation, in the symbolic dimensions.

    An add, a multiply or a function counts 1 for each element, a product of (m, k) and (k, n) 2mnk;
    moving elements costs nothing. A common subexpression is counted once.

    Returns:
        A number, or an expression in the symbolic dimensions.

    Raises:
        TraceError: ``f`` cannot be traced, or is a Python function without ``inputs``.

    Example:
        >>> import sympy, symad
        >>> n, d = sympy.symbols("n d", integer=True, positive=True)
        >>> product = symad.trace(lambda A, B: A @ B, [(n, d), (d, n)])
        >>> symad.flops(product)
        2*d*n**2
    """
    return add_up(flops_of(node.op, node) for node in topological(as_graph(f, inputs=inputs).output_nodes))


def add_up(terms: Iterable[Dim]) -> sympy.Expr:
    """The sum of many terms, few of which are distinct."""
    total = sympy.S.Zero
    for term, count in Counter(terms).items():
        total += count * term
    return sympy.expand(total)


def memory(f: Traceable, inputs: Inputs | None = None) -> sympy.Expr:
    """The peak of `live_memory`, in bytes; for symbolic dimensions an expression in them.

    Returns:
        A number, or an expression in the symbolic dimensions.

    Raises:
        TraceError: ``f`` cannot be traced, or is a Python function without ``inputs``.

    Example:
        >>> import numpy as np, symad
        >>> symad.memory(symad.trace(lambda a: np.sum(np.exp(a)), [(1000,)]))
        16000
    """
    return _maximum(live_memory(f, inputs))


def live_memory(f: Traceable, inputs: Inputs | None = None) -> list[Dim]:
    """The bytes live while each step of `schedule` runs, one entry a step.

    Forward mode keeps a few values at any time; in reverse mode the curve rises while values are
    stored and falls as adjoints use them up.

    Returns:
        Bytes, as numbers or expressions in the symbolic dimensions.

    Raises:
        TraceError: ``f`` cannot be traced, or is a Python function without ``inputs``.

    Example:
        >>> import numpy as np, symad
        >>> symad.live_memory(symad.trace(lambda a: np.sum(np.exp(a)), [(1000,)]))
        [8000, 16000, 8008]
    """
    graph = as_graph(f, inputs=inputs)
    return live_curve(graph, schedule(graph))


def schedule(f: Traceable) -> list[Node]:
    """The graph's nodes in the order in which they are computed, arguments first.

    Of two orders it is the one with the lower peak of live bytes. Depth-first order finishes one
    argument before it starts the next, good for trees. Order by level (the longest path from an
    input) runs a value and its tangent side by side, so that forward mode through a chain keeps
    two of each.
    """
    graph = as_graph(f)
    depth_first = [*graph.nodes]
    level: dict[Node, int] = {}
    for node in depth_first:
        level[node] = 1 + max((level[arg] for arg in node.args), default=0)
    by_level = sorted(depth_first, key=level.__getitem__)
    sizes = _at_typical({node: byte_size(node) for node in depth_first})
    return min(depth_first, by_level, key=lambda order: max(_curve(graph, order, sizes), default=0))


TYPICAL = 64
"""The number that is put for each symbolic dimension when two orders are compared."""


def _at_typical(sizes: dict[Node, Dim]) -> dict[Node, int]:
    """The sizes at `TYPICAL` dimensions."""
    distinct = set(sizes.values())
    symbols = {symbol: TYPICAL for symbol in dim_symbols(distinct)}
    number = {size_: int(bind(size_, symbols)) for size_ in distinct}
    return {node: number[size_] for node, size_ in sizes.items()}


def live_curve(graph: Graph, order: Sequence[Node]) -> list[Dim]:
    """The bytes live at each step of an order."""
    return [as_dim(live) for live in _curve(graph, order, {node: byte_size(node) for node in order})]


Bytes = TypeVar("Bytes", int, Dim)
"""Bytes as numbers, or in symbolic dimensions."""


def _curve(graph: Graph, order: Sequence[Node], sizes: Mapping[Node, Bytes]) -> list[Bytes]:
    """The bytes live at each step of an order, from the bytes of each node."""
    owners = _owners(order)
    dying: dict[int, list[Node]] = {}
    for owner, step in _last_uses(graph, order, owners).items():
        dying.setdefault(step, []).append(owner)
    given = {node for node in order if isinstance(node.op, (Input, ArrayConstant))}
    live = sum(sizes[node] for node in order if node in given)
    curve = []
    for step, node in enumerate(order):
        if owners[node] is node and node not in given:
            live = live + sizes[node]
        curve.append(live)
        for owner in dying.get(step, ()):
            live = live - sizes[owner]
    return curve


def byte_size(node: Node) -> Dim:
    """The bytes of a node's value: 8 an element, 1 for truth values, 0 for literals in the code."""
    if node.op.literal:
        return 0
    return as_dim(size(node.shape) * (1 if isinstance(node.op, Condition) else 8))


def _owners(order: Sequence[Node]) -> dict[Node, Node]:
    """For each value, the value whose memory holds it."""
    owners: dict[Node, Node] = {}
    for node in order:
        owners[node] = owners[node.args[0]] if node.op.moves <= Moved.SOME else node
    return owners


def _last_uses(graph: Graph, order: Sequence[Node], owners: dict[Node, Node]) -> dict[Node, int]:
    """The step after which the memory of each owner is free."""
    last: dict[Node, int] = {}
    for step, node in enumerate(order):
        last[owners[node]] = step
        for arg in node.args:
            last[owners[arg]] = step
    for output in graph.output_nodes:
        last[owners[output]] = len(order)
    return last


def _maximum(values: Sequence[Dim]) -> sympy.Expr:
    """The maximum for positive dimensions; a Max if no value dominates the others."""
    kept: list[sympy.Expr] = []
    for value in dict.fromkeys(sympy.expand(v) for v in values):
        if not any(_dominates(other, value) for other in kept):
            kept = [other for other in kept if not _dominates(value, other)] + [value]
    return sympy.Max(*kept) if kept else sympy.S.Zero


def _dominates(a: sympy.Expr, b: sympy.Expr) -> bool:
    """True if a ≥ b follows from the signs of the coefficients of a − b."""
    difference = sympy.expand(a - b)
    if difference.is_number:
        return bool(difference >= 0)
    symbols = sorted(dim_symbols((difference,)), key=str)
    polynomial = difference.as_poly(*symbols)
    return polynomial is not None and all(c >= 0 for c in polynomial.coeffs())
