"""What is wrong with a refuted formula: where the two graphs part, and the name of a classic mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import mpmath
import numpy as np

from symad.core.arrays import Number
from symad.core.graph import Node, Op, topological
from symad.errors import SymadError
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Constant, inputs_in
from symad.verification.certificate.domain_repair import name_by_repair
from symad.verification.certificate.expression_text import text_of
from symad.verification.certificate.witness import digits_of
from symad.verification.fields.prime_fields import Array
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.linear_terms import number
from symad.verification.values.fifty_digits import settled_values

CLOSE = mpmath.mpf(10) ** -25
MAX_FACTOR_LOG2 = 40
"""log₂ of the largest factor that may be forgotten; as a fraction, a ratio of 1e-(10^50) would never end."""

MAX_SEARCHED_NODES = 3000
"""The maximum number of nodes of a graph that is searched for a missing factor or term."""

MAX_SEARCHED_NUMBERS = 20_000
"""The maximum of these nodes times the elements of the two arrays; each takes some 50 µs."""


@dataclass(frozen=True)
class Blame:
    """Where and how two graphs differ, in words; both may be empty."""

    mistake: str
    """The classic mistake, such as 'wrong sign'."""
    expected: str
    """The smallest subexpression of the reference that already differs, with its value."""
    found: str
    """What the other side has in its place."""


NO_BLAME = Blame("", "", "")


def blame(left: Node, right: Node, points: Sequence[Mapping[Node, Number]]) -> Blame:
    """Compare two nodes that differ at the first of these points.

    Args:
        left: the reference.
        right: the formula at fault.
        points: rational points; a mistake is named only if all of them show it.
    """
    a, b = expand_definitions((left, right))
    order = topological([a, b])
    kept = []
    for point in points[:4]:
        try:
            kept.append(dict(zip(order, settled_values(order, point).values, strict=True)))
        except (SymadError, ArithmeticError, ValueError):
            continue
    if not kept:
        return NO_BLAME
    u, v = descend(a, b, kept[0])
    try:
        name = _name_of_rounding(u, v, kept[0])
        if not name and not _may_be_rounding(a, b, kept):
            name = name_of(a, b, kept) or name_by_repair(a, b, points)
    except (ArithmeticError, ValueError, TypeError):  # of values that overflow or are undefined
        name = ""
    return Blame(name, describe(u, kept[0]), describe(v, kept[0]))


MAX_TOLD = 60
"""Names of more characters hold an expression of arrays that is hard to read."""


def is_vague(mistake: str) -> bool:
    """Whether a name is none, or tells a term or a factor by its operations: the place says more."""
    factor = mistake.startswith(("missing factor", "extra factor")) and "(" in mistake
    return not mistake or factor or mistake.endswith((FAN_OUT, " nodes")) or len(mistake) > MAX_TOLD


FAN_OUT = "(a path of a fan-out)"
ROUNDING = 1e-12
"""The largest relative difference that may be one of rounded constants: it gets no name."""


def _may_be_rounding(a: Node, b: Node, values: Sequence[Mapping[Node, Array]]) -> bool:
    return all(
        np.all(np.frompyfunc(lambda x, y: bool(abs(x - y) <= ROUNDING * abs(x)), 2, 1)(v[a], v[b]))
        for v in values
    )


def _name_of_rounding(a: Node, b: Node, values: Mapping[Node, Array]) -> str:
    """A decimal number that is the other constant with fewer digits."""
    if not isinstance(b.op, Constant) or inputs_in([a]) or a.shape:
        return ""
    exact, found = values[a][()], float(values[b][()])
    digits = len(repr(found).partition(".")[2])
    near = "e" not in repr(found) and 2 <= digits < 15 and abs(exact - found) * 10**digits <= 0.5
    return f"{found} is a rounded constant, in place of {text_of(a)}" if near else ""


# ---- where --------------------------------------------------------------------------------------


def descend(a: Node, b: Node, values: Mapping[Node, Array]) -> tuple[Node, Node]:
    """The smallest pair of subexpressions in corresponding places whose values differ."""
    while True:
        pair = _one_differing_pair(a, b, values)
        if pair is None:
            return a, b
        a, b = pair


def _one_differing_pair(a: Node, b: Node, values: Mapping[Node, Array]) -> tuple[Node, Node] | None:
    """The arguments that differ, if the ops are alike and exactly one pair does."""
    if type(a.op) is not type(b.op) or not a.args or not b.args:
        return None
    free = isinstance(a.op, (Add, Mul))
    if not free and (a.op is not b.op or len(a.args) != len(b.args)):
        return None
    left, right = _labeled(a), _labeled(b)
    if not free:
        differing = [
            (x, y) for (_, x), (_, y) in zip(left, right, strict=True) if not same(values[x], values[y])
        ]
    else:
        rest = list(right)
        alone = []
        for label, x in left:
            match = next(
                (k for k, (m, y) in enumerate(rest) if m == label and same(values[x], values[y])), None
            )
            if match is None:
                alone.append((label, x))
            else:
                rest.pop(match)
        if len(alone) != 1 or len(rest) != 1 or alone[0][0] != rest[0][0]:
            return None
        differing = [(alone[0][1], rest[0][1])]
    return differing[0] if len(differing) == 1 else None


def _labeled(node: Node) -> list[tuple[int, Node]]:
    """Arguments with their signs or powers."""
    op: Op = node.op
    labels = op.signs if isinstance(op, Add) else op.powers if isinstance(op, Mul) else range(len(node.args))
    return list(zip(labels, node.args, strict=True))


def same(a: Array, b: Array | mpmath.mpf) -> bool:
    """Whether two arrays of values agree to 25 digits."""
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and bool(np.all(np.frompyfunc(_near, 2, 1)(a, b)))


def _near(a: bool | mpmath.mpf, b: bool | mpmath.mpf) -> bool:
    if isinstance(a, (bool, np.bool_)) or isinstance(b, (bool, np.bool_)):
        return bool(a == b)
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    if mpmath.isnan(a) or mpmath.isnan(b):
        return bool(mpmath.isnan(a) and mpmath.isnan(b))
    return bool(a == b or abs(a - b) <= CLOSE * max(abs(a), abs(b)))


def describe(node: Node, values: Mapping[Node, Array]) -> str:
    """A subexpression as SymPy prints it, with its value at the first point."""
    return f"{text_of(node)} = {_value_text(values[node])}"


def _value_text(value: Array) -> str:
    if value.ndim == 0:
        return str(bool(value)) if value.dtype == bool else digits_of(value[()])
    if value.size > 9:
        return f"an array of shape {value.shape}"
    return str(
        [_value_text(np.asarray(v)) if v.ndim else mpmath.nstr(v[()], 8) for v in map(np.asarray, value)]
    ).replace("'", "")


# ---- how ----------------------------------------------------------------------------------------


def name_of(a: Node, b: Node, values: Sequence[Mapping[Node, Array]]) -> str:
    """The classic mistake that turns the values of ``a`` into those of ``b`` at every point, if one does."""
    pairs = [(np.asarray(v[a]), np.asarray(v[b])) for v in values]
    pairs = [(x, y) for x, y in pairs if _finite(x) and _finite(y)]
    if not pairs:
        return ""
    if name := _name_of_values(a, pairs):
        return name
    if (factor := _constant_ratio(pairs)) is not None:
        return _mean(a, b, factor) or f"missing factor {factor}"
    count = len(topological([a, b]))
    if count > MAX_SEARCHED_NODES or count * pairs[0][0].size > MAX_SEARCHED_NUMBERS:
        return ""
    return _wrong_axis(a, b, values) or _missing_factor(a, b, values) or _missing_term(a, b, values)


def _name_of_values(a: Node, pairs: Sequence[tuple[Array, Array]]) -> str:
    """What is wrong, if the values alone tell."""
    square = len(a.shape) == 2 and a.shape[0] == a.shape[1]
    if all(same(x, -y) for x, y in pairs):
        return "wrong sign"
    if square and all(same(x.T, y) for x, y in pairs):
        return "transposed"
    if all(same(x, 0 * x) for x, _ in pairs):
        return "it should be zero"
    return "it should not be zero" if all(same(y, 0 * y) for _, y in pairs) else ""


def _mean(a: Node, b: Node, factor: Fraction) -> str:
    """A mean in place of a sum, or a sum in place of a mean, if one of both sides alone is divided so."""
    count = max(factor, 1 / factor)
    divided, plain, words = (b, a, ("mean", "sum")) if factor > 1 else (a, b, ("sum", "mean"))
    known = topological([plain])
    if not any(number(n) in (count, 1 / count) for n in set(topological([divided])).difference(known)):
        return ""
    for op, node in ((n.op, n) for n in known if isinstance(n.op, Einsum) and len(n.args) == 1):
        axes = [k for k, label in enumerate(op.inputs[0]) if label not in op.output]
        if axes and prod(node.args[0].shape[k] for k in axes) == count:
            over = f"axis {axes[0]}" if len(axes) == 1 else f"axes {', '.join(map(str, axes))}"
            return f"a {words[0]} over {over} in place of a {words[1]}"
    return ""


def _finite(x: Array) -> bool:
    return bool(np.all(np.frompyfunc(lambda v: bool(mpmath.isfinite(mpmath.mpf(v))), 1, 1)(x)))


def _constant_ratio(pairs: Sequence[tuple[Array, Array]]) -> Fraction | None:
    """The rational c ≠ 1 with a = c·b everywhere, at all points."""
    found: Fraction | None = None
    for u, v in ((u, v) for x, y in pairs for u, v in zip(x.ravel(), y.ravel(), strict=True)):
        if v == 0:
            if u != 0:
                return None
            continue
        with mpmath.workdps(50):
            ratio = mpmath.mpf(u) / mpmath.mpf(v)
            if ratio and abs(mpmath.mag(ratio)) > MAX_FACTOR_LOG2:
                return None
            found = found or Fraction(str(mpmath.nstr(ratio, 40))).limit_denominator(1000)
            if abs(ratio - mpmath.mpf(found.numerator) / found.denominator) > CLOSE * abs(ratio):
                return None
    return found


def _candidates(a: Node, b: Node) -> list[Node]:
    """Subexpressions that may have been forgotten: small ones first."""
    order = [n for n in topological([a, b]) if not isinstance(n.op, Constant) and n is not a and n is not b]
    return order


def _missing_factor(a: Node, b: Node, values: Sequence[Mapping[Node, Array]]) -> str:
    """A subexpression by which one side has to be multiplied (a forgotten inner derivative)."""
    for node in _candidates(a, b):
        if node.shape not in ((), a.shape):
            continue
        if any(v[node].dtype != object for v in values):
            continue
        for word, x, y in (("missing", a, b), ("extra", b, a)):
            with mpmath.workdps(40):
                pairs = [(v[x], np.broadcast_to(v[y] * v[node], v[x].shape)) for v in values]
            ratio = _constant_ratio(pairs) if all(_finite(p) for _, p in pairs) else None
            if ratio:
                return (
                    f"{word} factor {text_of(node)}"
                    if ratio == 1
                    else f"{word} factor {ratio}·{text_of(node)}"
                )
    return ""


def _missing_term(a: Node, b: Node, values: Sequence[Mapping[Node, Array]]) -> str:
    """A subexpression that one side lacks as a term (one path of a fan-out)."""
    for node in _candidates(a, b):
        if node.shape not in ((), a.shape):
            continue
        for sign, word in ((1, "missing term"), (-1, "extra term")):
            if all(_plus(v[b], sign, v[node], v[a]) for v in values):
                return f"{word} {text_of(node)} {FAN_OUT}"
    return ""


def _plus(x: Array, sign: int, term: Array, y: Array) -> bool:
    if np.asarray(term).dtype != object:
        return False
    with mpmath.workdps(40):
        return same(np.broadcast_to(x + sign * term, np.shape(y)), y)


def _wrong_axis(a: Node, b: Node, values: Sequence[Mapping[Node, Array]]) -> str:
    """A sum of a square array along the other axis."""
    for node in _candidates(a, b):
        if len(node.shape) != 2 or node.shape[0] != node.shape[1] or (node.shape[0],) != a.shape:
            continue
        with mpmath.workdps(40):
            sums = [(np.asarray(v[node]).sum(axis=0), np.asarray(v[node]).sum(axis=1)) for v in values]
        for first in (0, 1):
            if all(
                same(s[first], v[a]) and same(s[1 - first], v[b]) for s, v in zip(sums, values, strict=True)
            ):
                return f"wrong axis: {text_of(node)} is summed along axis {1 - first}, not {first}"
    return ""


# ---- what follows a refutation -------------------------------------------------------------------
