"""Sums over pairs in NumPy: blocks of rows against all points, with f and its partials as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import sympy as sp

from symad.core.graph import Node
from symad.fused.pair_sum import NUMBER, PairOp, PairSum, PairSumCotangent, parts_of, unread
from symad.numeric.numpy_arrays.pairs.formulas import ExpressionText
from symad.numeric.pairs.pair_functions import PairFunction, X, Y, trace_pair
from symad.numeric.program.expressions import Compute, Value
from symad.numeric.targets.target import Level, Text

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.writer import ArrayWriter

# Measured on one thread of a server (2 MB of second-level cache): 4,000 × 4,000 pairs in three dimensions
# take 0.06 s in blocks of 2**16 pairs, 0.15 s in blocks of 2**17 to 2**20; their cotangents take 0.3 to 0.6 s
# instead of 0.8 s. Allocating and freeing an untouched block saves two thirds of that in a process that had
# no large arrays before: otherwise the system reclaims the memory of every temporary and clears it again.
BLOCKS = '''def _blocks(x, y):
    """Slices of rows, so that the arrays over pairs stay in the cache: half a megabyte each."""
    np.empty(2**18)  # glibc keeps free memory up to the size of the largest block that was given back
    size = max(1, 2**16//max(1, len(y)))
    return [slice(start, start + size) for start in range(0, len(x), size)]
'''

SUM = """def _pair_sum(x, y, b, params, value_at, reduce):
    out, lse = np.zeros((len(x), b.shape[1]), dtype=x.dtype), np.zeros(len(x), dtype=x.dtype)
    columns = np.ascontiguousarray(y.T)
    with np.errstate(all="ignore"):
        for rows in _blocks(x, y):
            k = np.broadcast_to(value_at(x[rows], columns, *params), (len(x[rows]), len(y)))
            if reduce == "sum":
                out[rows] = k @ b
                continue
            highest = k.max(axis=1, keepdims=True, initial=-np.inf)
            p = np.exp(k - np.where(np.isfinite(highest), highest, 0))
            if reduce == "logsumexp":
                out[rows] = highest + np.log(p @ b)
                continue
            total = p.sum(axis=1, keepdims=True)
            out[rows] = p @ b/total
            lse[rows] = (highest + np.log(total))[:, 0]
    return out, lse
"""

BARS = """def _pair_bars(x, y, b, params, out_bar, out, lse, value_at, partials_at, reduce):
    x_bar, y_bar, b_bar = np.zeros_like(x), np.zeros_like(y), np.zeros_like(b)
    param_bars = [np.zeros_like(np.asarray(p)) for p in params]
    columns = np.ascontiguousarray(y.T)
    with np.errstate(all="ignore"):
        for rows in _blocks(x, y):
            k = np.broadcast_to(value_at(x[rows], columns, *params), (len(x[rows]), len(y)))
            bar = out_bar[rows]
            if reduce == "sum":
                b_bar += k.T @ bar
                c = bar @ b.T
            elif reduce == "logsumexp":
                p = np.exp(k - out[rows])
                b_bar += p.T @ bar
                c = p*b.T*bar
            else:
                p = np.exp(k - lse[rows, None])
                b_bar += p.T @ bar
                c = p*(bar @ b.T - (bar*out[rows]).sum(axis=1, keepdims=True))
            partials_at(c, x[rows], columns, params, x_bar[rows], y_bar, param_bars)
    return x_bar, y_bar, b_bar, *[bar[()] for bar in param_bars]
"""


def pair_call(
    op: PairOp, node: Compute, texts: Sequence[str], computed: Mapping[int, Value], printer: ArrayWriter
) -> list[str]:
    """The statement that computes all results of one computation, from the texts of its arguments."""
    value_at, partials_at = functions_of(op, node, printer)
    printer.helper("_blocks", BLOCKS)
    cotangents = isinstance(op, PairSumCotangent)
    helper = printer.helper(*(("_pair_bars", BARS) if cotangents else ("_pair_sum", SUM)))
    functions = f"{value_at}, {partials_at}" if cotangents else value_at
    call = call_text(op, texts, helper, f"{functions}, {op.reduce!r}")
    names = printer.result_names(parts_of(op), computed)
    if isinstance(op, PairSum) and len(names) == 1:
        names.append("_")
    return [f"{', '.join(names)} = {call}"]


def call_text(op: PairOp, texts: Sequence[str], helper: str, last: str) -> str:
    """The call of a helper with the texts of an op's arguments; ``last`` are those that follow."""
    at, args = op.inner, ["None" if k in unread(op) else text for k, text in enumerate(texts)]
    given = [*args[:3], f"({''.join(f'{a}, ' for a in args[3:at])})"]
    if isinstance(op, PairSumCotangent):
        given += [args[at], args[at + 1], args[at + 2] if op.reduce == "softmax" else "None"]
    return f"{helper}({', '.join([*given, last])})"


def traced(op: PairOp, node: Node | Compute) -> PairFunction:
    """The pair function, split into sums over components."""
    sizes = {name: None if size == NUMBER else size for name, size in op.parameters}
    return trace_pair(op.formula.expression, int(node.args[0].shape[1]), sizes)


def functions_of(op: PairOp, node: Compute, printer: ArrayWriter) -> tuple[str, str]:
    """The names of the functions that compute k and its partials."""
    key = (op.formula, op.parameters, node.args[0].shape[1])
    number = printer.scores.setdefault(key, len(printer.scores) + 1)
    names = f"_pairs_{number}", f"_pair_partials_{number}"
    function = traced(op, node)
    if names[0] not in printer.helpers:
        printer.helper(names[0], _PairWriter(function, printer).value(names[0]))
    if isinstance(op, PairSumCotangent) and names[1] not in printer.helpers:
        printer.helper(names[1], _PairWriter(function, printer).partials(names[1]))
    return names


Place: TypeAlias = "tuple[sp.Symbol, str, int | None]"
"""A symbol, the text of its cotangent, and the axis of the pairs over which it is summed; None for both."""


class _PairWriter:
    """Writes a pair function: sums over components as loops, everything else once for all pairs."""

    def __init__(self, function: PairFunction, printer: ArrayWriter) -> None:
        self.function, self.printer = function, printer
        self.params = [p.name for p in function.parameters]

    def inner(self, name: str) -> str:
        """A name that no parameter has."""
        while name in self.params:
            name += "_"
        return name

    def text(self, component: str | None) -> ExpressionText:
        """A writer of expressions; ``component`` is the loop's index in a sum."""
        names: dict[sp.Basic, str] = {}
        f = self.function
        for k, (a, b) in enumerate(zip(f.x, f.y, strict=True)):
            names |= {a: f"x[:, {k}, None]", b: f"y[{k}]"}
        for p in f.parameters:
            if p.size is None:
                names[p.symbols[0]] = p.name
            else:
                names |= {s: f"{p.name}[{k}]" for k, s in enumerate(p.symbols)}
                names[p.component] = f"{p.name}[{component}]"
        names |= {s.symbol: self.inner(f"sum_{r}") for r, s in enumerate(f.sums)}
        names |= {X: f"x[:, {component}, None]", Y: f"y[{component}]"}
        taken = {"x", "y", self.inner("c"), self.inner("k"), *self.params}
        fixed = {s for p in f.parameters for s in (*p.symbols, p.component)}
        return ExpressionText(self.printer, taken, names, {s: 1 for s in names if s not in fixed})

    def sums(self) -> list[str]:
        """σ_r = Σ_k g_r(x_k, y_k, θ_k)."""
        lines = []
        for r, part in enumerate(self.function.sums):
            k, total = self.inner("k"), self.inner(f"sum_{r}")
            text = self.text(k)
            (value,) = text.write(part.term)
            lines += [f"{total} = 0", f"for {k} in range({self.function.dimension}):"]
            lines += _indent([*text.lines, f"{total} = {total} + {value.inside(Level.PRODUCT)}"])
        return lines

    def value(self, name: str) -> str:
        """The text of the function k(x, y, θ) on a block of rows x (N, D); y is transposed, (D, M)."""
        text = self.text(None)
        (result,) = text.write(self.function.outer)
        body = [*self.sums(), *text.lines, f"return {result}"]
        return "\n".join([f"def {name}({', '.join(['x', 'y', *self.params])}):", *_indent(body), ""])

    def partials(self, name: str) -> str:
        """The text of the function that adds c_ij ∂k_ij to the cotangents."""
        f, body = self.function, self.sums()
        c, k, params = self.inner("c"), self.inner("k"), self.inner("params")
        if self.params:
            body.insert(0, f"{', '.join(self.params)}{',' if len(self.params) == 1 else ''} = {params}")
        text = self.text(None)
        x_bar, y_bar = self.inner("x_bar"), self.inner("y_bar")
        places: list[Place] = [(f.x[n], f"{x_bar}[:, {n}]", 1) for n in f.loose]
        places += [(f.y[n], f"{y_bar}[:, {n}]", 0) for n in f.loose]
        places += [(s, place, None) for s, place in self.entries()]
        places = [place for place in places if f.outer_partial(place[0]) != 0]
        varied = [*(s for s, _, _ in places), *(s.symbol for s in f.sums)]
        factors = text.write(*map(f.outer_partial, varied))
        body += [*text.lines, *_adds(c, places, factors)]
        for r, factor in enumerate(factors[len(places) :]):
            body.append(f"{self.inner(f'e_{r}')} = {c}*{factor.inside(Level.SIGN)}")
        for r in range(len(f.sums)):
            text = self.text(k)
            places = [(X, f"{x_bar}[:, {k}]", 1), (Y, f"{y_bar}[:, {k}]", 0)]
            places += [(s, place, None) for s, place in self.entries(k)]
            places = [place for place in places if f.term_partial(r, place[0]) != 0]
            factors = text.write(*(f.term_partial(r, symbol) for symbol, _, _ in places))
            lines = [*text.lines, *_adds(self.inner(f"e_{r}"), places, factors)]
            body += [f"for {k} in range({f.dimension}):", *_indent(lines)]
        bars = self.inner("param_bars")
        arguments = f"{c}, x, y, {params}, {x_bar}, {y_bar}, {bars}"
        return "\n".join([f"def {name}({arguments}):", *_indent(body), ""])

    def entries(self, component: str | None = None) -> list[tuple[sp.Symbol, str]]:
        """Parameter entries (in a sum also the component's), and the places of their cotangents."""
        found, bars = [], self.inner("param_bars")
        for number, p in enumerate(self.function.parameters):
            if p.size is None:
                found.append((p.symbols[0], f"{bars}[{number}][...]"))
            else:
                found += [(s, f"{bars}[{number}][{k}]") for k, s in enumerate(p.symbols)]
                if component is not None and p.size == self.function.dimension:
                    found.append((p.component, f"{bars}[{number}][{component}]"))
        return found


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _adds(c: str, places: Sequence[Place], factors: Sequence[Text]) -> list[str]:
    """Add the sum of c_ij times a partial over j, i or both to each place; a product has the shape of c."""
    products = [f"{c}*{factor.inside(Level.SIGN)}" for factor in factors]
    return [
        f"{place} += ({product}).sum({'' if axis is None else f'axis={axis}'})"
        for (_, place, axis), product in zip(places, products, strict=False)
    ]
