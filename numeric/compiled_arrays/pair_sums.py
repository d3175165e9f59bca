"""Sums over pairs as compiled code: one pass over the pairs for each side, without an array of the pairs.

With w_ij = Σ_e ā_ie b_je the pass for the rows sums over j,

    a_ie = Σ_j k_ij b_je,    x̄_i = Σ_j w_ij ∂k_ij/∂x_i,    θ̄ = Σ_i Σ_j w_ij ∂k_ij/∂θ,

and the pass for the columns sums over i: ȳ_j = Σ_i w_ij ∂k_ij/∂y_j and b̄_je = Σ_i k_ij ā_ie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import sympy as sp

from symad.core.graph import Graph, Node, rebuild
from symad.derivatives.sweeps import value_and_gradient
from symad.errors import LoweringError
from symad.fused.pair_sum import PairOp, PairSum
from symad.higher_order.scan import Local
from symad.numeric.compiled_arrays.c.c_body import LETTER, NAME, has_vector_form
from symad.numeric.compiled_arrays.c.nest_text import kernel_source
from symad.numeric.compiled_arrays.writer import NativeWriter
from symad.numeric.fusion.chains import MAX_LEAVES
from symad.numeric.fusion.nest import Nest, summed
from symad.numeric.numpy_arrays.pairs.pair_sum_printer import traced
from symad.numeric.numpy_arrays.statements import computed, results_by_number
from symad.numeric.pairs.pair_functions import PairFunction, X, Y
from symad.numeric.passes import prepare
from symad.numeric.program.statements import Assign
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.basic.sources import Constant, Input, input_node
from symad.tracing import trace

COLUMNS = '''def _over_pairs(kernel, rows, columns):
    """The sums of a kernel, by blocks of columns that stay in the cache."""
    total = kernel(*rows, *(c[:4096] for c in columns))
    total = [*total] if isinstance(total, tuple) else [total]
    for start in range(4096, len(columns[0]), 4096):
        part = kernel(*rows, *(c[start:start + 4096] for c in columns))
        for a, b in zip(total, part if isinstance(part, tuple) else (part,)):
            a += b
    return total
'''


COLUMN_COUNT = sp.Symbol("n", integer=True, positive=True)


@dataclass(frozen=True)
class Pass:
    """Sums over the columns of a function of a row, the parameters, and a column.

    Attributes:
        body: a graph of scalars; its inputs are the row's values, the parameters, and the column's values.
        rows: the number of inputs that belong to the row and the parameters.
    """

    body: Graph
    rows: int

    @property
    def nest(self) -> Nest:
        """The sums over a row with the values of all columns."""
        full = (COLUMN_COUNT,)
        local = {
            node: Node.of(Local(k, full if k >= self.rows else ()))
            for k, node in enumerate(self.body.input_nodes)
        }
        terms = [broadcast_axes(term, full, ()) for term in rebuild(self.body.output_nodes, local)]
        return Nest(Graph(tuple(local.values()), tuple(summed(term, (0,)) for term in terms)), 0, full, (0,))


@dataclass(frozen=True)
class PairPasses:
    """The passes of a pair function with E columns of weights; the module gives the formulas."""

    value: Pass
    bars_of_rows: Pass
    bars_of_columns: Pass


@lru_cache(maxsize=64)
def passes(function: PairFunction, weights: int) -> PairPasses:
    """The three passes, as graphs of scalars."""
    sums = {
        s.symbol: sp.Add(*(s.term.xreplace(_component(function, k)) for k in range(function.dimension)))
        for s in function.sums
    }
    symbols = [*function.x, *function.entries, *function.y]
    graph = value_and_gradient(trace(function.outer.xreplace(sums), symbols))
    k, *slopes = prepare(graph).output_nodes
    x, theta, y = (list(part) for part in _cut(graph.input_nodes, function))
    k_x, k_theta, k_y = (list(part) for part in _cut(slopes, function))
    b = [_number(f"b_{e}") for e in range(weights)]
    bars = [_number(f"a_{e}") for e in range(weights)]
    w = add(*(mul(p, q) for p, q in zip(bars, b, strict=True)))
    return PairPasses(
        Pass(Graph((*x, *theta, *y, *b), tuple(mul(k, q) for q in b)), len(x) + len(theta)),
        Pass(
            Graph((*x, *bars, *theta, *y, *b), tuple(mul(w, s) for s in (*k_x, *k_theta))),
            len(x) + weights + len(theta),
        ),
        Pass(
            Graph((*y, *b, *theta, *x, *bars), (*(mul(w, s) for s in k_y), *(mul(k, p) for p in bars))),
            len(y) + weights + len(theta),
        ),
    )


def _component(function: PairFunction, k: int) -> dict[sp.Basic, sp.Basic]:
    """The substitutions in the template of a sum for component k."""
    vectors = {p.component: p.symbols[k] for p in function.parameters if p.size == function.dimension}
    return {X: function.x[k], Y: function.y[k], **vectors}


def _cut(nodes: Sequence[Node], function: PairFunction) -> Iterator[list[Node]]:
    """The nodes of x, those of the parameters, and those of y."""
    rest = iter(nodes)
    for count in (len(function.x), len(function.entries), len(function.y)):
        yield list(islice(rest, count))


def _number(name: str) -> Node:
    return input_node(sp.Dummy(name, real=True))


def pair_sum_lines(op: PairOp, assigned: Sequence[Assign], printer: NativeWriter) -> list[str] | None:
    """The statements of a sum over pairs or of its cotangents; None if NumPy's blocks are better.

    They are better for other reductions, for functions without vector code in C, and for points with so
    many components that a kernel would read too many arrays.
    """
    node = computed(assigned)
    weights = node.args[2].shape[1]
    if op.reduce != "sum" or not isinstance(weights, int) or not weights:
        return None
    function = traced(op, node)
    if 2 * (function.dimension + weights) + len(function.entries) > MAX_LEAVES:
        return None
    try:
        made = passes(function, weights)
    except LoweringError:
        return None
    needed = [made.value] if isinstance(op, PairSum) else [made.bars_of_rows, made.bars_of_columns]
    if not all(_is_vector_code(p.body, printer.real) for p in needed):
        return None
    lines = _value if isinstance(op, PairSum) else _bars
    return lines(op, assigned, function, made, printer)


def _is_vector_code(body: Graph, real: str) -> bool:
    inner = (n for n in body.nodes if not isinstance(n.op, (Constant, Input)))
    return all(not n.shape and has_vector_form(n, real, sines=True) for n in inner)


def _value(
    op: PairOp, assigned: Sequence[Assign], function: PairFunction, made: PairPasses, printer: NativeWriter
) -> list[str]:
    x, y, b, *theta = (printer.operand(a) for a in computed(assigned).args)
    lines, sums = _sums(made.value, [f"*{x}.T", *_entries(theta, function)], [y, b], printer)
    name = printer.name_for(assigned[0].value)
    return [*lines, f"{name} = {printer.np}.stack({sums}, axis=1)"]


def _bars(
    op: PairOp, assigned: Sequence[Assign], function: PairFunction, made: PairPasses, printer: NativeWriter
) -> list[str]:
    """The cotangents of all arguments, computed together."""
    x, y, b, *theta, bar = (printer.operand(a) for a in computed(assigned).args[: op.inner + 1])
    results = results_by_number(assigned)
    entries = _entries(theta, function)
    lines: list[str] = []
    sums = more = ""
    if {*results} - {1, 2}:
        lines, sums = _sums(made.bars_of_rows, [f"*{x}.T", f"*{bar}.T", *entries], [y, b], printer)
    if {*results} & {1, 2}:
        other, more = _sums(made.bars_of_columns, [f"*{y}.T", f"*{b}.T", *entries], [x, bar], printer)
        lines += other
    np_, at = printer.np, function.dimension
    parts = (f"{sums}[:{at}]", f"{more}[:{at}]", f"{more}[{at}:]")
    values = [f"{np_}.stack({part}, axis=1)" for part in parts]
    for p in function.parameters:
        several = f"{np_}.stack([s.sum() for s in {sums}[{at}:{at + (p.size or 0)}]])"
        values.append(f"{sums}[{at}].sum()" if p.size is None else several)
        at += len(p.symbols)
    for number, result in sorted(results.items()):
        lines.append(f"{printer.name_for(result)} = {values[number]}")
    return lines


def _entries(theta: Sequence[str], function: PairFunction) -> list[str]:
    return [t if p.size is None else f"*{t}" for t, p in zip(theta, function.parameters, strict=True)]


def _sums(
    step: Pass, rows: Sequence[str], columns: Sequence[str], printer: NativeWriter
) -> tuple[list[str], str]:
    """The statement of a pass, and the name of the list of its sums."""
    kind, count, results = printer.dtype, len(step.body.input_nodes), len(step.body.output_nodes)
    made = kernel_source(NAME, step.nest, [kind] * count, [kind] * results, printer.real)
    letter = LETTER[kind]
    kernel = printer.kernel(made.text, made.body, f"{letter * count}->{letter * results}", made.signature)
    helper, name, np_ = printer.helper("_over_pairs", COLUMNS), printer.value_name(), printer.np
    side_by_side = ", ".join(f"*{np_}.ascontiguousarray({c}.T)" for c in columns)
    return [f"{name} = {helper}({kernel}, ({', '.join(rows)},), ({side_by_side},))"], name
