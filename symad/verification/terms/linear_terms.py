"""Taking nodes apart: into sums of rational multiples, and into products of rational powers.

Positive nodes are products of rational powers for logarithms and roots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import gcd, lcm

import sympy

from symad.core.graph import Node, op_of
from symad.core.nodes import Moved
from symad.ops.basic.arithmetic import Add, Mul, add, mul, signed_product, signed_sum
from symad.ops.basic.sources import constant, constant_value, is_exact
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Select

Terms = list[tuple[Fraction, Node]]

MAX_TERMS_APART = 64
"""The maximum number of terms or factors that are taken apart; more are left together."""


def number(node: Node) -> Fraction | None:
    """The exact value of a rational or floating-point constant."""
    value = constant_value(node)
    if is_exact(value) or (isinstance(value, float) and value - value == 0):
        return Fraction(value)
    return None


def linear_terms(node: Node, sums: bool = True) -> Terms:
    """node = Σ c·m: signed sums, rational multiples, and moved ones, taken apart; m may be 1.

    Without ``sums`` these stay together, but for the logarithms in them: c·m + Σ ± c log u.
    """
    found: Terms = []
    todo: Terms = [(Fraction(1), node)]
    while todo:
        c, n = todo.pop()
        value = number(n)
        if value is not None:
            found.append((c * value, constant(1)))
            continue
        parts = _summands(n) if len(found) + len(todo) < MAX_TERMS_APART else None
        if parts is not None and len(parts) > 1 and not sums:
            parts = _logarithms_apart(n)
        if parts is None:
            found.append((c, n))
        else:
            todo.extend((c * scale, part) for scale, part in reversed(parts))
    return merged(found)


def _logarithms_apart(node: Node) -> Terms | None:
    """A sum as the sum of its logarithms and the rest; None where it has no such parts."""
    parts = _signed_args(node) if isinstance(node.op, Add) else []
    logs = [(c, a) for c, a in parts if _applies(a, sympy.log) and a.shape == node.shape]
    rest = [(int(c), a) for c, a in parts if (c, a) not in logs]
    whole = signed_sum(rest) if logs and rest else constant(0)
    return [(Fraction(1), whole), *logs] if logs and rest and whole.shape == node.shape else None


def _applies(node: Node, head: type[sympy.Basic]) -> bool:
    """Whether a node is a value of a function, moved or not."""
    while node.op.moves <= Moved.ALL:
        node = node.args[0]
    return isinstance(node.op, Apply) and node.op.head is head


def _summands(n: Node) -> Terms | None:
    """One step of taking a sum or a multiple apart; None where it is an atom."""
    if isinstance(n.op, Add):
        return _signed_args(n)
    if isinstance(n.op, Mul):
        whole = collect_roots(list(zip(n.op.powers, n.args, strict=True)))
        return [(Fraction(1), whole)] if whole is not None else multiple(n) or _distributed(n)
    if isinstance(n.op, Pow) and number(n.args[1]) == 2 and _is_short_sum(n.args[0]):
        base = n.args[0]
        return [(c, mul(a, base)) for c, a in _signed_args(base)]
    if isinstance(n.op, Select):
        return _selected_summands(n)
    moved = n.op.moves <= Moved.ALL and isinstance(n.args[0].op, (Add, Mul))
    inner = _summands(n.args[0]) if moved else None
    return None if inner is None else [(c, Node.of(n.op, (m,)) if m.shape else m) for c, m in inner]


def _signed_args(n: Node) -> Terms:
    return [(Fraction(s), a) for s, a in zip(op_of(n, Add).signs, n.args, strict=True)]


def _selected_summands(n: Node) -> Terms | None:
    """A selection of 0 and something is linear in this."""
    other = [k for k, a in enumerate(n.args) if k and number(a) != 0]
    if len(other) != 1 or n.args[other[0]].shape != n.shape:
        return None
    (k,) = other
    inner = _summands(n.args[k])
    return inner and [(c, Node.of(n.op, (*n.args[:k], m, *n.args[k + 1 :]))) for c, m in inner]


def _is_short_sum(n: Node) -> bool:
    """Scalar sums are multiplied out; of arrays only those with a number, such as y − 1."""
    if not isinstance(n.op, Add) or len(n.args) > 4:
        return False
    return not n.shape or any(number(a) is not None for a in n.args)


def _distributed(n: Node) -> Terms | None:
    """A scalar product of a short sum as a sum of products; None if no factor is one."""
    factors = list(zip(op_of(n, Mul).powers, n.args, strict=True))
    if any(p == -1 and isinstance(arg.op, Add) for p, arg in factors):
        return None  # (x² − 1)/(x + 1) is better left together
    for k, (p, arg) in enumerate(factors):
        if p == 1 and _is_short_sum(arg):
            rest = factors[:k] + factors[k + 1 :]
            return [(c, signed_product([*rest, (1, a)])) for c, a in _signed_args(arg)]
    return None


def collect_roots(factors: Sequence[tuple[int, Node]]) -> Node | None:
    """A product of integer powers in which each root has an exponent between 0 and 1.

    √u·√u = u, and 1/√u = √u/u, where u > 0. None where all of them have.
    """
    roots: dict[Node, Fraction] = {}
    rest: list[tuple[int, Node]] = []
    todo = list(reversed(factors))
    while todo:
        k, node = todo.pop()
        found = _root(node)
        if found is not None:
            roots[found[0]] = roots.get(found[0], Fraction(0)) + k * found[1]
        elif isinstance(node.op, Mul) and any(_holds_root(a) for a in node.args):
            todo.extend((k * p, a) for p, a in zip(node.op.powers, node.args, strict=True))
        else:
            rest.append((k, node))
    if all(0 <= e < 1 for e in roots.values()):
        return None
    for base, exponent in roots.items():
        whole = exponent.numerator // exponent.denominator
        rest.append((whole, base))
        if exponent != whole:
            part = exponent - whole
            root = Node.of(Pow(), (base, constant(Fraction(1, part.denominator))))
            rest.append((part.numerator, root))
    return mul(*[power(node, constant(k)) for k, node in rest if k])


def _root(node: Node) -> tuple[Node, Fraction] | None:
    """The base and exponent of a root, or of an integer power of one, moved or not."""
    if node.op.moves <= Moved.ALL:
        found = _root(node.args[0])
        if found is None or found[0].shape != node.args[0].shape:
            return found
        return Node.of(node.op, (found[0],)), found[1]
    if not isinstance(node.op, Pow):
        return None
    own = number(node.args[1])
    if own is None or own.denominator > MAX_ORDER:
        return None
    if own.denominator > 1:
        return node.args[0], own
    inner = _root(node.args[0])
    return None if inner is None else (inner[0], inner[1] * own)


MAX_ORDER = 64
"""The largest order of a root; other powers with fractional exponents are functions without relations."""


def order_of_root(node: Node) -> int | None:
    """k of u**(1/k), which has values in fields; None for other nodes."""
    value = number(node.args[1]) if isinstance(node.op, Pow) else None
    is_root = value is not None and value.numerator == 1 < value.denominator <= MAX_ORDER
    return value.denominator if value is not None and is_root else None


def _holds_root(node: Node) -> bool:
    below = node.args if isinstance(node.op, Mul) else ()
    return any(_root(n) is not None for n in (node, *below))


def multiple(n: Node) -> Terms | None:
    """A product as a rational multiple of the rest; None if it has no rational factor."""
    scale = Fraction(1)
    rest: list[tuple[int, Node]] = []
    for p, arg in zip(op_of(n, Mul).powers, n.args, strict=True):
        value = number(arg)
        if value:
            scale *= value**p
        else:
            rest.append((p, arg))
    if len(rest) == len(n.args):
        return None
    if [p for p, _ in rest] == [1]:
        return [(scale, rest[0][1])]
    if not rest:
        return [(scale, constant(1))]
    return [(scale, Node.of(Mul(tuple(p for p, _ in rest)), tuple(a for _, a in rest)))]


def merged(terms: Iterable[tuple[Fraction, Node]]) -> Terms:
    """Terms of one node added up, in order of first appearance; zeros left out."""
    total: dict[Node, Fraction] = {}
    for c, n in terms:
        total[n] = total.get(n, Fraction(0)) + c
    return [(c, n) for n, c in total.items() if c]


def holds_exponential(n: Node) -> bool:
    """Whether a node is an exponential or a power of one, moved or not."""
    while n.op.moves <= Moved.ALL:
        n = n.args[0]
    return _applies(n.args[0] if isinstance(n.op, Pow) else n, sympy.exp)


def through(node: Node, function: Callable[[Node], Node]) -> Node:
    """An elementwise function of moved elements: the function first, then the move."""
    moves = []
    while node.op.moves <= Moved.ALL:
        moves.append(node)
        node = node.args[0]
    result = function(node)
    for move in reversed(moves):
        if result.shape == move.args[0].shape:  # a constant without axes is not moved
            result = Node.of(move.op, (result,))
    return result


# ---- positive nodes as products of rational powers, for logarithms and roots ---------------------


def power_factors(node: Node, sign: Callable[[Node], int], absolutes: bool = False) -> Terms:
    """node = Π b^e over rational e, where node is positive: all b are positive there.

    A product is split only if at most one factor may be negative; b^e for even e becomes |b|^e, where
    |b| = sign(b)·b. With ``absolutes``, ab of unknown signs is split as well, as |a| |b|: true where ab is
    positive, but no longer undefined elsewhere.
    """
    found: Terms = []
    todo: Terms = [(Fraction(1), node)]
    while todo:
        e, n = todo.pop()
        parts = _factors(n, sign, absolutes) if len(found) + len(todo) < MAX_TERMS_APART else None
        if parts is None:
            found.append((e, n))
        else:
            todo.extend((e * exponent, part) for exponent, part in reversed(parts))
    return merged((e, b) for e, b in found if constant_value(b) != 1)


def _factors(n: Node, sign: Callable[[Node], int], absolutes: bool) -> Terms | None:
    value = number(n)
    if value is not None:
        return _prime_factors(value)
    if isinstance(n.op, Mul):
        return _factors_of_product(n, n.op.powers, sign, absolutes)
    if isinstance(n.op, Add):
        return _common_powers(n, sign) or _content(n)
    if isinstance(n.op, Pow):
        exponent = number(n.args[1])
        if exponent is not None and (sign(n.args[0]) == 1 or exponent.denominator > 1):
            return [(exponent, n.args[0])] if exponent.numerator != 1 else None
        if exponent is not None and exponent.denominator == 1 and exponent % 2 == 0:
            return [(exponent, absolute(n.args[0]))]
    return None


def _factors_of_product(
    n: Node, powers: Sequence[int], sign: Callable[[Node], int], absolutes: bool
) -> Terms | None:
    """At most one factor of unknown sign, or by absolute values any."""
    if (len(n.args) == 1 and tuple(powers) == (1,)) or _is_absolute(n):
        return None
    factors = list(n.args)
    if sum(sign(a) != 1 for a in factors) > 1:
        if not absolutes:
            return None
        factors = [a if sign(a) == 1 else absolute(a) for a in factors]
    return [(Fraction(p), a) for p, a in zip(powers, factors, strict=True)]


def _content(n: Node) -> Terms | None:
    """A sum as its positive rational content times the rest; None where that is 1."""
    signed = zip(op_of(n, Add).signs, n.args, strict=True)
    terms = [(s * c, m) for s, a in signed for c, m in _one_multiple(a)]
    numerators = gcd(*[c.numerator for c, _ in terms])
    content = Fraction(numerators, lcm(*[c.denominator for c, _ in terms]))
    if content == 1 or max(content.numerator, content.denominator) > 1 << 62:
        return None
    rest = add(*[mul(constant(c / content), m) for c, m in terms])
    return [(Fraction(1), constant(content)), (Fraction(1), rest)] if rest.shape == n.shape else None


def _common_powers(n: Node, sign: Callable[[Node], int]) -> Terms | None:
    """A sum without the powers common to its terms: 1 + 1/E = (E + 1)/E, 1 + 1/x² = (x² + 1)/x².

    Of what may be negative only even powers are taken out.
    """
    parts = [_powers(a) for a in n.args]
    common = _lowest([powers for powers, _ in parts], sign)
    if not common:
        return None
    terms = []
    for turn, (powers, rest) in zip(op_of(n, Add).signs, parts, strict=True):
        left = {b: powers.get(b, 0) - common.get(b, 0) for b in (*powers, *common)}
        factors = [power(b, constant(k)) for b, k in left.items() if k]
        terms.append((turn, mul(signed_product(rest), *factors) if rest else mul(*factors, constant(1))))
    whole = signed_sum(terms)
    if whole.shape != n.shape:
        return None
    outside = [(Fraction(k), b if sign(b) == 1 else absolute(b)) for b, k in common.items()]
    return [(Fraction(1), whole), *outside]


def _lowest(rows: Sequence[dict[Node, int]], sign: Callable[[Node], int]) -> dict[Node, int]:
    """The powers that all terms share. Of a base that may be negative, only an even power is taken."""
    common: dict[Node, int] = {}
    for base in dict.fromkeys(b for powers in rows for b in powers):
        lowest = min(powers.get(base, 0) for powers in rows)
        taken = lowest if lowest % 2 == 0 or sign(base) == 1 else lowest - 1
        if taken:
            common[base] = taken
    return common


def _powers(a: Node) -> tuple[dict[Node, int], list[tuple[int, Node]]]:
    """A term as integer powers of nodes, times its numbers."""
    powers: dict[Node, int] = {}
    numbers: list[tuple[int, Node]] = []
    todo = [(1, a)]
    while todo:
        k, n = todo.pop()
        exponent = number(n.args[1]) if isinstance(n.op, Pow) else None
        if isinstance(n.op, Mul):
            todo.extend((k * p, arg) for p, arg in zip(n.op.powers, n.args, strict=True))
        elif number(n) is not None:
            numbers.append((1 if k > 0 else -1, power(n, constant(abs(k)))))
        elif exponent is not None and exponent.denominator == 1 and isinstance(n.args[0].op, Mul):
            todo.append((k * int(exponent), n.args[0]))
        elif exponent is not None and exponent.denominator == 1:
            powers[n.args[0]] = powers.get(n.args[0], 0) + k * int(exponent)
        else:
            powers[n] = powers.get(n, 0) + k
    return powers, numbers


def _one_multiple(a: Node) -> Terms:
    value = number(a)
    if value is not None:
        return [(value, constant(1))]
    return (multiple(a) if isinstance(a.op, Mul) else None) or [(Fraction(1), a)]


def _prime_factors(value: Fraction) -> Terms | None:
    """The factorization of a positive rational; None for primes, 1 and what is too large."""
    if value <= 0 or max(value.numerator, value.denominator) > 1 << 62:
        return None
    primes: dict[int, int] = sympy.factorint(value.numerator)
    for p, e in sympy.factorint(value.denominator).items():
        primes[p] = primes.get(p, 0) - e
    if value == 1 or (len(primes) == 1 and value in primes):
        return None
    return [(Fraction(e), constant(int(p))) for p, e in sorted(primes.items())]


def absolute(b: Node) -> Node:
    """sign(b)·b."""
    return mul(apply(sympy.sign, b), b)


def _is_absolute(n: Node) -> bool:
    """Whether a product is sign(b)·b."""
    heads = [a.args[0] for a in n.args if isinstance(a.op, Apply) and a.op.head is sympy.sign]
    return len(n.args) == 2 and len(heads) == 1 and heads[0] in n.args
