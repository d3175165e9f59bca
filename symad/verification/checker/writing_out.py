"""Graphs written out: what each op computes, as a formula for each element of its value.

There is one rule for each op: a function of the node, of its arguments' elements, and of positions or index
symbols for all sizes: these are negative (0 for axes of length 1), and only `FOR_ALL_SIZES` may get them.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from itertools import count, product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import sympy

from symad.core.dims import Dim, same_dim, same_shape
from symad.core.graph import Node, Op, topological
from symad.higher_order import scan
from symad.ops.arrays import gathering, positions, reduction, softmax, stacking
from symad.ops.basic import arithmetic, contraction, shaping, sources
from symad.ops.elementwise import apply, powers, selection
from symad.ops.linalg import cholesky, solve_det
from symad.verification.checker.terms import ALWAYS, BOUND, HEADS, Refused, Term, Terms, of_matrix, require

Index: TypeAlias = tuple[int, ...]
Element: TypeAlias = Callable[[Index], Term]
Rule: TypeAlias = Callable[["Writing", Any, list[Element], Index], Term]
MAX_ELEMENTS = 4096  # larger arrays are not written out


class Writing:
    """Graphs as terms, where the elements of some nodes are given, and sizes are numbers or symbols."""

    symbolic, cut = False, frozenset[Node]()  # whether sizes are symbols; nodes whose elements are variables

    def __init__(self, terms: Terms, given: Mapping[Node, Element] | None = None) -> None:
        """Nothing is written yet."""
        self.terms, self.given, self.fresh = terms, given or {}, count(BOUND, -2)
        self.made, self.kept = dict[tuple[Node, Index], Term](), dict[Any, Any]()  # what is needed again

    def elements(self, outputs: Sequence[Node]) -> list[Term]:
        """The elements of some nodes, in order."""
        for node in topological(outputs):
            if not all(isinstance(d, int) for d in node.shape) or prod(node.shape) > MAX_ELEMENTS:
                raise Refused(f"sizes are symbols, or an array has more than {MAX_ELEMENTS} elements")
            for at in product(*map(range, node.shape)):
                self.element(node, at)
        return [self.element(node, at) for node in outputs for at in product(*map(range, node.shape))]

    def element(self, node: Node, at: Index) -> Term:
        """One element."""
        if node in self.cut:
            return self.terms.made("variable", (node, at))
        return self.given[node](at) if node in self.given else self.opened(node, at)

    def opened(self, node: Node, at: Index) -> Term:
        """One element by those of the arguments."""
        if (made := self.made.get(key := (node, at))) is None:
            self.terms.spend(1)
            require((kind := type(node.op)) in RULES, f"the op {kind.__name__} has no rule")
            if (args := self.kept.get(node)) is None:
                args = self.kept[node] = [partial(self.element, a) for a in node.args]
            alone = kind not in FOR_ALL_SIZES and min(at, default=0) < 0
            self.made[key] = made = self.spread(node, at) if alone else RULES[kind](self, node, args, at)
        return made

    def spread(self, node: Node, at: Index) -> Term:
        """One element at index symbols by those at all positions p: Σ_p [at = p] x_p."""
        require({*map(type, node.shape)} <= {int}, f"{type(node.op).__name__} has no rule for all sizes")
        places, t = [(p, self.opened(node, p)) for p in product(*map(range, node.shape))], self.terms
        return t.sum([t.product([x, *map(t.delta, at, p)]) for p, x in places])

    def total(self, sizes: Sequence[Dim], body: Callable[..., Term]) -> Term:
        """Σ body over the positions along axes of these sizes, or over as many new index symbols."""
        if not self.symbolic:
            return self.terms.sum([body(*at) for at in product(*map(range, sizes))])
        bound = [0 if d == 1 else next(self.fresh) for d in sizes]
        axes = tuple(zip(bound, sizes, strict=True))
        return self.terms.made("total", axes, body(*bound)) if any(bound) else body(*bound)


def exact(value: Any, terms: Terms) -> Term:
    """A number as a term: floats are their exact binary values, and other constants only themselves."""
    if value is sympy.pi or value is sympy.E:
        return terms.call("pi") if value is sympy.pi else terms.call("exp", 1)
    if isinstance(value, (sympy.Rational, sympy.Float)):
        return terms.term(Fraction(*map(int, sympy.Rational(value).as_numer_denom())))
    if isinstance(value, (bool, int, Fraction, np.bool_, np.integer)):
        return terms.term(value if isinstance(value, Fraction) else int(value))
    if isinstance(value, (float, np.floating)) and not np.isnan(value) and value != np.inf:
        return terms.term(Fraction(float(value))) if np.isfinite(value) else terms.minus_infinity
    if isinstance(value, sympy.Expr) and value.is_real and value.is_finite is not False:
        return terms.call(value)
    raise Refused(f"the constant {value} has no rule")


def each(f: Callable[..., Term]) -> Rule:
    """A function of the op and of the elements of its arguments; scalars are repeated."""
    return lambda w, n, x, at: f(n.op, *[a(at if b.shape else ()) for a, b in zip(x, n.args, strict=True)])


def applied(op: apply.Apply, *x: Term) -> Term:
    """A function by its name in the table; any other function is only itself."""
    name: Any = HEADS.get(op.head, op.head)
    if name == "log" and len(x) == 2:
        return x[0].table.call("log", x[0]) / x[0].table.call("log", x[1])
    if name in ("max", "min"):
        return extreme(name, x)
    return ALWAYS[name](*x) if name in ALWAYS else x[0].table.call(name, *x)


def compared(op: selection.Compare, a: Term, b: Term) -> Term:
    """[a relation b] as 0 or 1."""
    terms, ordered = a.table, op.relation in ("<", "<=")
    if a is terms.minus_infinity and op.relation == "<":  # whether b has a real value
        real, value = terms.split(b)
        return terms.select(real, terms.call("real", value), 0)
    a, b = (b, a) if op.relation == "<=" else (a, b)
    made = terms.call("less" if ordered else "equal", a, b)
    if a.number is not None and b.number is not None:
        made = terms.term(int(a.number < b.number if ordered else a.number == b.number))
    terms.truths.add(made := 1 - made if op.relation in ("!=", "<=") else made)  # [a ≤ b] = 1 − [b < a]
    return made


def extreme(name: str, x: Sequence[Term]) -> Term:
    """The largest or smallest of some terms: of two halves, so that derivatives are short."""
    return x[0].table.call(name, extreme(name, x[:k]), extreme(name, x[k:])) if (k := len(x) // 2) else x[0]


def logic(op: selection.Logic, *x: Term) -> Term:
    """Of truth values 0 and 1; other numbers would be true as well."""
    terms = x[0].table
    require(all(t in terms.truths or t.number in (0, 1) for t in x), f"{op.kind} is of comparisons")
    product = terms.product(x if op.kind == "and" else [1 - a for a in x])  # "not" has one argument
    made = {"or": 1 - product, "xor": reduce(lambda a, b: a + b - 2 * a * b, x)}.get(op.kind, product)
    terms.truths.add(made)
    return made


def contracted(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """Σ over the labels that are not in the output of the product of the arguments."""
    if ("plan", node) not in w.kept:
        op, d = node.op, dict[Any, Any]()
        for labels, arg in zip(op.inputs, node.args, strict=True):
            for label, size in zip(labels, arg.shape, strict=True):
                if not same_dim(d.setdefault(label, size), size) or len(set(op.output)) != len(op.output):
                    raise Refused("a contraction writes a diagonal, or joins axes of other sizes")
        summed = [label for label in d if label not in op.output]
        axes = [list(map([*op.output, *summed].index, labels)) for labels in op.inputs]
        w.kept["plan", node] = [d[label] for label in summed], list(zip(x, axes, strict=True))
    sizes, factors = w.kept["plan", node]
    return w.total(sizes, lambda *inner: w.terms.product(
        [a(tuple([(*at, *inner)[k] for k in axes])) for a, axes in factors]))  # fmt: skip


def reduced(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """exp(x)/Σ exp(x), its logarithm, log Σ exp(x); p (t − Σ p t), t − Σ p t, t − p Σ t; an extreme."""
    call, d, axes = w.terms.call, node.args[0].shape, node.op.axes
    rest = list(at) if len(at) < len(d) else [i for k, i in enumerate(at) if k not in axes]
    keys = [*(k for k in range(len(d)) if k not in axes), *axes]
    sizes, order = [d[k] for k in axes], sorted(range(len(d)), key=keys.__getitem__)
    inner: list[Any] = [lambda *i, a=a: a(tuple([(*rest, *i)[k] for k in order])) for a in x]
    if isinstance(node.op, reduction.Extreme):
        return extreme(node.op.kind, [inner[0](*i) for i in product(*map(range, sizes))])
    if isinstance(node.op, softmax.LogSoftmaxCotangent):
        return x[1](at) - x[0](at) * w.total(sizes, inner[1])
    if isinstance(node.op, softmax.TangentOp):
        centered = x[1](at) - w.total(sizes, lambda *i: inner[0](*i) * inner[1](*i))
        return x[0](at) * centered if isinstance(node.op, softmax.SoftmaxTangent) else centered
    total = w.total(sizes, lambda *i: call("exp", inner[0](*i)))
    if isinstance(node.op, softmax.Softmax):
        return call("exp", x[0](at)) / total
    return call("log", total) if isinstance(node.op, softmax.LogSumExp) else x[0](at) - call("log", total)


def reshaped(w: Writing, node: Node, x: list[Element], at: Index) -> Term:
    """The same elements in row-major order; index symbols if only axes of length 1 come and go."""
    old, new = node.args[0].shape, node.shape
    if same_shape([d for d in old if d != 1], [d for d in new if d != 1]):
        rest = iter([i for i, d in zip(at, new, strict=True) if d != 1])
        return x[0](tuple(0 if d == 1 else next(rest) for d in old))
    if min(at, default=0) < 0:  # it joins or splits axes
        return w.spread(node, at)
    return x[0](tuple(map(int, np.unravel_index(np.ravel_multi_index(at, new), old))))


def padded(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """The argument at some positions of an array of zeros."""
    places = list(zip(at, node.op.start, node.op.step, node.args[0].shape, strict=True))
    inside = all((i - a) % s == 0 and 0 <= (i - a) // s < d for i, a, s, d in places)
    return x[0](tuple((i - a) // s for i, a, s, _ in places)) if inside else w.terms.term(0)


def joined(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """The arguments one after the other."""
    k, sizes = node.op.axis, [arg.shape[node.op.axis] for arg in node.args]
    part = next(p for p in range(len(x)) if at[k] < sum(sizes[: p + 1]))
    return x[part]((*at[:k], at[k] - sum(sizes[:part]), *at[k + 1 :]))


def known(term: Term, size: int, from_end: bool = False) -> int:
    """A known position below a size."""
    n = term.number if term.number is not None else Fraction(-1, 2)
    n += size if n < 0 and from_end else 0
    require(n == int(n) and 0 <= n < size, "an index is no known position")
    return int(n)


def scattered(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """The sum of the rows of updates whose index is this row."""
    places = list(np.ndindex(*node.args[0].shape))
    w.terms.spend(len(places))
    return w.terms.sum([x[1]((*k, *at[1:])) for k in places if known(x[0](k), node.op.size) == at[0]])


def position(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """The row-major position of known indices, which broadcast, in several axes."""
    total = 0
    for size, a, arg in zip(node.op.shape, x, node.args, strict=True):
        places = zip(at[len(at) - len(arg.shape) :], arg.shape, strict=True)
        total = total * size + known(a(tuple(0 if d == 1 else i for i, d in places)), size, node.op.from_end)
    return w.terms.term(total)


def scanned(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """The states c_1, ..., c_T of c_t = body(c_{t−1}, x_t..., constants...)."""
    op, (t, *rest) = node.op, at
    if (node, t) not in w.kept:
        before: Any = (lambda at: w.element(node, (t - 1, *at))) if t else x[0]
        slices: list[Any] = [lambda at, a=a: a((t, *at)) for a in x[1 : 1 + op.slices]]
        given = zip(op.body.input_nodes, [before, *slices, *x[1 + op.slices :]], strict=True)
        w.kept[node, t] = Writing(w.terms, dict(given))
    return w.kept[node, t].element(op.body.output_nodes[0], tuple(rest))


def matrix(w: Writing, node: Any, x: list[Element], at: Index) -> Term:
    """A function of a matrix, of a triangle of it, or of the symmetric matrix with its lower triangle."""
    n, rank, lower = node.args[0].shape[-1], len(node.args[0].shape) - 2, getattr(node.op, "lower", None)
    name = "det" if len(at) == rank else "cholesky" if isinstance(node.op, cholesky.Cholesky) else "inverse"
    (i, j), t = at[rank:] or (0, 0), w.terms
    plain = not w.symbolic or (not rank and lower is None and name != "cholesky")
    require(plain, "stacks, triangles and Cholesky factors have no rule for all sizes")
    symbols = w.kept.setdefault(("matrix", node), (next(w.fresh), next(w.fresh), n) if w.symbolic else ())
    t.spend(1 if symbols else n**5)  # larger ones are refused
    places = [symbols[:2]] if symbols else [*np.ndindex(n, n)]
    a = [read(p, q, lambda p, q: x[0]((*at[:rank], p, q)), name, lower, t) for p, q in places]
    if name == "inverse":
        return w.total([n], lambda k: of_matrix(name, i, k, a, symbols) * x[1]((*at[:rank], k, j)))
    made = of_matrix(name, i, j, a, symbols) if i >= j else t.term(0)
    return t.call("log", made) if isinstance(node.op, solve_det.LogDeterminant) else made


def read(p: int, q: int, a: Callable[..., Term], name: str, lower: bool | None, terms: Terms) -> Term:
    """What a function reads as element p, q: beside a triangle 0, of Cholesky's matrix the lower mirror."""
    if name == "cholesky":
        p, q = max(p, q), min(p, q)
    return a(p, q) if p == q or lower in (None, p > q) else terms.term(0)


STRICT = {arithmetic.Add, arithmetic.Mul, contraction.Einsum, shaping.Broadcast, shaping.Reshape}  # use all
TANGENTS = {softmax.SoftmaxTangent, softmax.LogSoftmaxTangent, softmax.LogSoftmaxCotangent}
WHOLE = STRICT | TANGENTS | {softmax.Softmax, softmax.LogSumExp, selection.Compare,
    selection.Select, sources.Input, sources.Constant, sources.Dimension, sources.Iota}  # fmt: skip
FOR_ALL_SIZES: dict[type[Op], Rule] = {  # what each op computes
    sources.Input: lambda w, node, x, at: w.terms.made("variable", (node.op, at)),
    sources.Constant: lambda w, node, x, at: exact(node.op.value, w.terms),
    sources.Dimension: lambda w, node, x, at: exact(node.op.expression, w.terms),
    sources.Iota: lambda w, node, x, at: w.terms.term(at[0]) if at[0] >= 0 else
        w.terms.made("variable", (sources.Iota, at)),
    sources.Eye: lambda w, node, x, at: w.terms.delta(*at),
    arithmetic.Add: each(lambda op, *a: a[0].table.sum(
        b if s == 1 else b * s for s, b in zip(op.signs, a, strict=True))),
    arithmetic.Mul: each(lambda op, *a: a[0].table.product(
        b if p == 1 else b**p for p, b in zip(op.powers, a, strict=True))),
    powers.Pow: each(lambda op, a, b: a.table.call("pow", a, b) if b.number is None else a**b.number),
    apply.Apply: each(applied), selection.Compare: each(compared), selection.Logic: each(logic),
    selection.Select: each(lambda op, c, a, b: c.table.select(c, a, b)),
    shaping.Broadcast: lambda w, node, x, at: x[0](tuple([at[k] for k in node.op.axes])),
    shaping.Reshape: reshaped, contraction.Einsum: contracted, solve_det.Solve: matrix,
    solve_det.Determinant: matrix, solve_det.LogDeterminant: matrix, softmax.Softmax: reduced,
    **dict.fromkeys([softmax.LogSoftmax, softmax.LogSumExp, *TANGENTS], reduced),
}  # fmt: skip
RULES: dict[type[Op], Rule] = FOR_ALL_SIZES | {
    sources.ArrayConstant: lambda w, node, x, at: exact(node.op.array[at], w.terms),
    reduction.Extreme: reduced,
    shaping.Slice: lambda w, node, x, at: x[0](
        tuple(a + s * i for i, a, s in zip(at, node.op.start, node.op.step, strict=True))),
    shaping.Pad: padded, stacking.Concatenate: joined, gathering.ScatterAdd: scattered, scan.Scan: scanned,
    stacking.Stack: lambda w, node, x, at: x[at[node.op.axis]](at[: node.op.axis] + at[node.op.axis + 1 :]),
    gathering.Gather: lambda w, node, x, at: x[0](
        (known(x[1](at[: (r := len(node.args[1].shape))]), node.args[0].shape[0]), *at[r:])),
    positions.Positions: position, cholesky.TriangularSolve: matrix, cholesky.Cholesky: matrix,
    cholesky.Triangle: lambda w, node, x, at: x[0](at) * (
        exact(node.op.diagonal, w.terms) if at[-1] == at[-2] else int(at[-2] > at[-1])),
}  # fmt: skip
