"""Fixed data: work that depends only on data that stay the same from call to call leaves the function.

Without algebra little work does: of the residuals r = X w − y only X and y depend on data alone. This pass
therefore keeps arrays as sums of products of data and live arrays (see `networks`), and delays each sum over
an axis until the other data with that axis have joined the product:
Σ_b X_bi r_b = Σ_j (Σ_b X_bi X_bj) w_j − Σ_b X_bi y_b, whose sums over b involve data only. A term is kept
while its live arrays are smaller than the value. Slices of a parameter are products with rows of the
identity, so that Σ_k w_k x_{t−k} is one product of a matrix of data with w.

The value changes by rounding relative to the terms, not to their sum: at a good fit X'(X w − y) is small,
and X'X w − X'y is a difference of two large vectors. The result is used if a call then costs less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product as combinations
from typing import TYPE_CHECKING

from symad.core.dims import bind, dim_symbols
from symad.core.graph import Graph, Node, op_of, topological
from symad.core.questions import flops
from symad.cost import add_up
from symad.numeric.passes.algebra.merging import RULES, Rules, Signed, TermPass, merging, operand
from symad.numeric.passes.algebra.networks import (
    TYPICAL,
    Factor,
    Misfit,
    Name,
    NetworkTerm,
    absorbed,
    atom,
    contracted,
    elements,
    summed,
)
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import add
from symad.ops.basic.shaping import Pad, Slice, pad, reshape, slice_axes
from symad.ops.basic.sources import constant, constant_value, eye
from symad.ops.elementwise.powers import Pow

if TYPE_CHECKING:
    from symad.core.dims import Dim

MAX_TERMS = 32
"""A value with more terms than this is written out as an array.

Origin: it bounds the work of the pass. Least squares on 12 vectors of data take 3 times as long with 1; 8 to
128 give the same code (bench_layout_thresholds.py, "terms of data").
"""

MAX_LIVE_FACTORS = 4
"""A value with more live factors than this in one term is written out as an array.

Three linear layers of 8 × 8 weights on 200,000 rows take 0.95 of the time of `lower` with 3, 0.36 with 4,
0.06 with 6; on 20,000 rows 1.07, 1.08 and 0.85, but their gradient alone 2.7 with 6, which reads a held array
of 56 MB (bench_layout_thresholds.py, "live factors").
"""

MAX_SELECTED = 512
"""Slices along axes of at most this length are products with rows of the identity.

Origin: it bounds the memory of the identity: 2 MiB.
"""

MAX_HELD = 2**24
"""An array made of data alone has at most this many elements.

Origin: it bounds memory: 128 MiB in double precision.
"""

STATEMENT_COST = 20_000
"""The cost of a statement in addition to its operations, in operations.

Least squares with 8 weights take 1.48 of the time with the Gram matrix at 64 rows, 1.17 at 256, 0.82 at
1,024; with 32 weights 1.28 at 128 rows, 1.05 at 256, 0.56 at 1,024 (bench_layout_thresholds.py,
"statements").
"""


def gather_data(graph: Graph, live: Iterable[Node]) -> Graph:
    """The graph with products and sums of data computed first.

    Args:
        graph: a function of live inputs and data.
        live: the inputs that change from call to call.
    """
    run = _Gathering(graph, set(live))
    for node in graph.nodes:
        run.add(node)
    made = with_results(graph, map(run.whole, graph.output_nodes))
    return made if _cost(made, run) < _cost(graph, run) else graph


def _cost(graph: Graph, run: _Gathering) -> float:
    """The operations of one call plus the cost of its statements, at typical sizes."""
    called = [node for node in graph.nodes if run.is_live(node) and node.args]
    whole = add_up(flops(node.op, node) for node in called)
    sizes = {symbol: TYPICAL for symbol in dim_symbols([whole])}
    return float(bind(whole, sizes)) + STATEMENT_COST * len(called)


class _Gathering(TermPass):
    """One run over a graph: live nodes become sums of terms where that may pay, all others arrays."""

    def __init__(self, graph: Graph, live: set[Node]) -> None:
        super().__init__(MOVES)
        self.lives: dict[Node, bool] = {node: node in live for node in graph.input_nodes}
        self.read_whole = {a for n in graph.nodes if type(n.op) not in MOVES for a in n.args}

    def is_live(self, node: Node) -> bool:
        """Whether a node of the old or the new graph depends on a live input."""
        if node not in self.lives:
            for inner in topological([node]):
                if inner not in self.lives:
                    self.lives[inner] = any(self.lives[a] for a in inner.args)
        return self.lives[node]

    def add(self, node: Node) -> None:
        """Rewrite a node whose arguments have been rewritten."""
        if node in self.terms or node in self.made:
            return
        found = self.by_rule(node) if self.is_live(node) and node not in self.read_whole else None
        if found is not None and len(found) <= MAX_TERMS and self._has_few_live_factors(found):
            self.terms[node] = found
            return
        args = tuple(self.whole(a) for a in node.args)
        self.made[node] = node.over(args)

    def _has_few_live_factors(self, terms: list[NetworkTerm]) -> bool:
        return all(sum(self.is_live(a) for a, _ in term.factors) <= MAX_LIVE_FACTORS for term in terms)

    def closed(self, term: NetworkTerm) -> NetworkTerm:
        """The term with one factor; products of data come first, since they cost nothing in a call."""
        if not term.factors:
            return term
        free = {node for node, _ in term.factors if not self.is_live(node)}
        return NetworkTerm((contracted(term.factors, set(term.names), free=free),), term.axes)

    def reduced(self, factors: Sequence[Factor], kept: set[Name]) -> list[Factor]:
        """Data are contracted now, sums over axes of live factors later."""
        live = [f for f in factors if self.is_live(f[0])]
        data = [f for f in factors if not self.is_live(f[0])]
        return [*live, *absorbed(summed(data, kept | {n for _, names in live for n in names}))]

    def total(self, terms: Sequence[Signed]) -> list[NetworkTerm]:
        """A sum of terms; those with the same live factors become one."""
        groups: list[Signed] = []
        for sign, term in terms:
            for k, (other_sign, other) in enumerate(groups):
                joined = self._joined((other_sign, other), (sign, term))
                if joined is not None:
                    groups[k] = (1, joined)
                    break
            else:
                groups.append((sign, term))
        return [t if s == 1 else NetworkTerm(((constant(s), ()), *t.factors), t.axes) for s, t in groups]

    def _joined(self, one: Signed, other: Signed) -> NetworkTerm | None:
        """The sum of two terms as one term, if only their data differ."""
        live = [self._live_factors(term) for _, term in (one, other)]
        if [node for node, _ in live[0]] != [node for node, _ in live[1]]:
            return None
        try:
            found = merging(*(_with_names(t, own) for (_, t), own in zip((one, other), live, strict=True)))
        except Misfit:
            return None
        data = all(not self.is_live(node) for rest in found.rests for node, _ in rest)
        if not data or elements(found.names) > MAX_HELD:
            return None
        whole = found.rest((one[0], other[0]))
        return NetworkTerm((*found.common, (whole, found.names)), found.axes[: len(one[1].axes)])

    def _live_factors(self, term: NetworkTerm) -> list[Factor]:
        return sorted((f for f in term.factors if self.is_live(f[0])), key=lambda f: id(f[0]))


def _with_names(term: NetworkTerm, factors: Sequence[Factor]) -> NetworkTerm:
    """The term with the axis names of some factors as further axes."""
    return NetworkTerm(term.factors, (*term.axes, *((name,) for _, names in factors for name in names)))


# ---- rules ---------------------------------------------------------------------------------------


def power_terms(run: TermPass, node: Node) -> list[NetworkTerm] | None:
    """Squares as products."""
    if constant_value(node.args[1]) != 2:
        return None
    labels = tuple(range(len(node.shape)))
    terms = operand(run, node.args[0])
    pairs = combinations(terms, terms)
    return run.total([(1, run.product(pair, (labels, labels), labels)) for pair in pairs])


def slice_terms(run: TermPass, node: Node) -> list[NetworkTerm] | None:
    """Slices along short axes as products with rows of the identity."""
    op = op_of(node, Slice)
    (arg,) = node.args
    parts = zip(op.start, op.count, op.step, strict=True)
    cut = [part != (0, d, 1) for part, d in zip(parts, arg.shape, strict=True)]
    rows = {
        k: slice_axes(eye(arg.shape[k]), (op.start[k], 0), (op.count[k], arg.shape[k]), (op.step[k], 1))
        for k in range(len(arg.shape))
        if cut[k] and _short(arg.shape[k])
    }
    return _selected(run, arg, rows) if len(rows) == sum(cut) else None


def pad_terms(run: TermPass, node: Node) -> list[NetworkTerm] | None:
    """Padding along short axes as products with columns of the identity."""
    op = op_of(node, Pad)
    (arg,) = node.args
    parts = zip(op.start, op.shape, op.step, strict=True)
    grown = [part != (0, d, 1) for part, d in zip(parts, arg.shape, strict=True)]
    rows = {
        k: pad(eye(arg.shape[k]), (op.start[k], 0), (to, arg.shape[k]), (op.step[k], 1))
        for k, to in enumerate(op.shape)
        if grown[k] and _short(to) and isinstance(arg.shape[k], int)
    }
    return _selected(run, arg, rows) if len(rows) == sum(grown) else None


def _short(d: Dim) -> bool:
    return isinstance(d, int) and d <= MAX_SELECTED


def _selected(run: TermPass, arg: Node, rows: dict[int, Node]) -> list[NetworkTerm]:
    """Σ_j rows[i, j] x[..., j, ...] along some axes."""
    axes = range(len(arg.shape))
    matrices = [atom(matrix) for matrix in rows.values()]
    labels = [tuple(axes), *((f"row {k}", k) for k in rows)]
    output = [f"row {k}" if k in rows else k for k in axes]
    return run.total([(1, run.product([t, *matrices], labels, output)) for t in operand(run, arg)])


def joined_terms(run: TermPass, node: Node) -> list[NetworkTerm] | None:
    """Arrays joined along a short axis, as a sum of arrays padded with zeros."""
    op = node.op
    assert isinstance(op, (Concatenate, Stack)), node
    axis, shape = op.axis, node.shape
    if not _short(shape[axis]):
        return None
    parts, start = [], 0
    for arg in node.args:
        if isinstance(op, Stack):
            arg = reshape(arg, (*shape[:axis], 1, *shape[axis + 1 :]))
        place = tuple(start if k == axis else 0 for k in range(len(shape)))
        parts.append(pad(arg, place, shape))
        start += arg.shape[axis]
    whole = add(*parts)
    for inner in topological([whole]):
        run.add(inner)
    return run.terms.get(whole)


MOVES: Rules = {
    **RULES,
    Pow: power_terms,
    Slice: slice_terms,
    Pad: pad_terms,
    Concatenate: joined_terms,
    Stack: joined_terms,
}
"""The rules for ops that are linear in their live arguments, or products of them."""
