"""Products whose factors overflow although the product does not.

Exact numbers of a product are collected where one of them is large: 10⁴⁰⁰/(10³⁹⁹ x) is 10/x. Gamma functions,
factorials, binomials, powers with a variable exponent, and all factors beside a number that is no float, are
multiplied as they are where their product is a float other than 0, else by the sum of their logarithms.
The logarithms cost digits (log 365! = 1792 three of them), and are taken only where there is no other value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log
from typing import Any

import sympy

from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.numbers.number_domains import as_float
from symad.ops.basic.arithmetic import (
    BITS,
    Add,
    Mul,
    add,
    mul,
    neg,
    signed_product,
    signed_sum,
)
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Constant, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.products import MIN_EXPONENT, is_large
from symad.ops.elementwise.selection import Select, compare, logic, select
from symad.stable.normal_forms import Part, Parts, factors_of, parts_of
from symad.stable.rows import FormulaNode

MAX_FACTORS = 200
"""Products of more factors than this are not changed."""

MAX_ARGUMENT = 30
"""Gamma functions of smaller numbers are floats in single precision."""

MAX_EXPONENT = 80
"""exp(x) of a larger number x is no float in single precision."""


def beyond_the_floats(terms: Parts) -> Node | None:
    """N + Σ x = N (1 + Σ x/N) for an exact N larger than all floats: a later quotient may be finite again."""
    for k, (sign, term) in enumerate(terms):
        if is_huge(term) and len(terms) > 1:
            value = constant_value(term)
            small, rest = constant(1 / Fraction(sign * value)), terms[:k] + terms[k + 1 :]
            part = signed_sum([(1, constant(1)), *((s, mul(small, t)) for s, t in rest)])
            return Node.of(Mul((1, 1)), (constant(sign * value), part))  # one number, so that it may cancel
    return None


def is_huge(node: Node) -> bool:
    """True for an exact number larger than all floats."""
    value: Any = constant_value(node) if type(node.op) is Constant else None
    return isinstance(value, (int, Fraction)) and not -MAX_FLOAT <= value <= MAX_FLOAT


MAX_FLOAT = int(sys.float_info.max)


def within_range(graph: Graph) -> Graph:
    """The graph with its products in forms that overflow only where their values do."""
    if not any(map(_overflows, graph.nodes)):
        return graph
    made = rebuild(graph, {n: n for n in graph.input_nodes}, _within_range)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _overflows(node: Node) -> bool:
    """True for a number that is no float, or that is made of such numbers, and for gamma functions."""
    kind = type(node.op)
    return (kind is Constant or kind is Apply) and (_is_gamma(node) or _is_no_float(node) or is_large(node))


def _is_no_float(node: Node) -> bool:
    """True for exp of a large number, and for a number other than 0 whose nearest float is 0 or infinite."""
    if isinstance(node.op, Apply) and node.op.head is sympy.exp:
        value = constant_value(node.args[0])
        return value is not None and abs(as_float(value)) > MAX_EXPONENT
    return is_large(node) and abs(as_float(constant_value(node))) in (0.0, inf)


def _is_gamma(node: Node) -> bool:
    if not isinstance(node.op, Apply) or node.op.head not in GAMMAS:
        return False
    numbers = [constant_value(arg) for arg in node.args]
    return any(n is None or abs(as_float(n)) > MAX_ARGUMENT for n in numbers)


def _within_range(node: Node, args: Nodes) -> Node:
    made = node.over(args)
    if isinstance(made.op, Apply) and made.op.head is sympy.log:
        return _logarithm(made.args[0]) or made
    if not isinstance(made.op, Mul):
        return made
    factors = flat(made)
    return made if factors is None else _product(factors, made)


def _product(factors: Parts, made: Node) -> Node:
    """The product of some factors, which is the node."""
    selected = _in_branches(factors, made) if any(_has_gamma(f) for _, f in factors) else None
    if selected is not None:
        return selected
    number, others = _collected(factors)
    if not _fits(number) or any(_is_no_float(f) for _, f in others):
        return _guarded_product(number, others, [_of_any(*f) for f in others], made)
    exponents = [(f, _exponent(*f)) for f in others] if any(_is_gamma(f) for _, f in others) else []
    known = [(f, e) for f, e in exponents if e is not None]
    if len(known) > 1:
        rest = [f for f, e in exponents if e is None]
        part = _guarded_product(Fraction(1), [f for f, _ in known], [e for _, e in known], made)
        return signed_product([(1, constant(number)), *rest, (1, part)])
    large = any(is_large(f) for _, f in factors)
    return signed_product([*others, (1, constant(number))]) if large else made


def _in_branches(factors: Parts, made: Node) -> Node | None:
    """The product inside of a selection with a branch 0, of a slope: its other branch may overflow."""
    for k, (power, factor) in enumerate(factors):
        if power == 1 and isinstance(factor.op, Select):
            condition, *branches = factor.args
            if 0 in map(constant_value, branches):
                rest = factors[:k] + factors[k + 1 :]
                return select(condition, *[_times(rest, branch, made) for branch in branches])
    return None


def _has_gamma(node: Node) -> bool:
    """Whether a factor is a gamma function, or a selection of 0 and a product with one."""
    branches = node.args[1:] if isinstance(node.op, Select) and _guarded(node) is None else ()
    parted = branches if 0 in map(constant_value, branches) else ()
    return _is_gamma(node) or any(_has_gamma(f) for b in parted for _, f in flat(b) or ())


def _times(rest: Parts, branch: Node, made: Node) -> Node:
    """A branch of a selection times other factors; 0 stays 0."""
    if constant_value(branch) == 0:
        return branch
    factors = [*rest, *(flat(branch) or [(1, branch)])]
    return _product(factors, broadcast_to(signed_product(factors), made.shape))


# ---- factors --------------------------------------------------------------------------------------


def flat(node: Node) -> Parts | None:
    """The factors of a product, of products in it, and of products that have been guarded; None for many."""
    found = parts_of(node, _inside, MAX_FACTORS)
    return found if len(found) <= MAX_FACTORS else None


def _inside(node: Node) -> Parts | None:
    guarded = _guarded(node)
    if guarded is not None:
        return [(1, guarded)]
    if isinstance(node.op, Pow) and _is_gamma(node.args[0]):
        count = constant_value(node.args[1])
        return [(1, node.args[0])] * count if isinstance(count, int) and 0 < count <= MAX_FACTORS else None
    return factors_of(node)


def _collected(factors: Iterable[Part]) -> tuple[Fraction, Parts]:
    """The product of the exact numbers, and the others without those that cancel."""
    number, counts = Fraction(1), dict[Node, int]()
    for power, factor in factors:
        sign, inside = _unsigned(factor)
        number *= sign
        value = constant_value(inside)
        if isinstance(value, (int, Fraction)) and not isinstance(value, bool) and value:
            number *= Fraction(value) ** power
        else:
            counts[inside] = counts.get(inside, 0) + power
    return number, [(1 if n > 0 else -1, f) for f, n in counts.items() for _ in range(abs(n))]


def _unsigned(node: Node) -> tuple[int, Node]:
    if isinstance(node.op, Add) and len(node.args) == 1:
        return node.op.signs[0], node.args[0]
    return 1, node


def _fits(number: Fraction) -> bool:
    return -BITS <= number.numerator.bit_length() - number.denominator.bit_length() <= BITS


# ---- products -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Exponent:
    """The logarithm of the absolute value of a factor where some nodes are positive, and its sign."""

    logarithm: Node
    positive: tuple[Node, ...]
    sign: Node | None = None


def _exponent(power: int, factor: Node) -> _Exponent | None:
    """The logarithm of factor^power for gamma functions, exponentials and powers; None for others."""
    op, args = factor.op, factor.args
    found = None
    if _is_gamma(factor):
        found = _of_gamma(op_of(factor, Apply).head, args)
    elif isinstance(op, Apply) and op.head is sympy.exp:
        found = _Exponent(args[0], ())
    elif isinstance(op, Pow):
        found = _of_power(*args)
    if found is None or power == 1:
        return found
    return _Exponent(neg(found.logarithm), found.positive, found.sign)


def _of_any(power: int, factor: Node) -> _Exponent:
    """The logarithm of the absolute value of factor^power, and the sign."""
    found = _exponent(power, factor)
    if found is not None:
        return found
    return _Exponent(signed_sum([(power, _log_abs(factor))]), (), apply(sympy.sign, factor))


def _log_abs(node: Node) -> Node:
    """log |node|, of a power the exponent times that of the base."""
    if isinstance(node.op, Pow) and constant_value(node.args[1]) is not None:
        return mul(node.args[1], _log_abs(node.args[0]))
    return apply(sympy.log, apply(sympy.Abs, node))


def _of_gamma(head: Any, args: Nodes) -> _Exponent:
    terms = GAMMAS[head](*map(FormulaNode, args))
    logarithms = [(k, apply(sympy.loggamma, a.node)) for k, a in terms]
    return _Exponent(signed_sum(logarithms), tuple([a.node for _, a in terms]))


def _of_beta(a: FormulaNode, b: FormulaNode | None = None) -> list[tuple[int, FormulaNode]]:
    b = a if b is None else b
    return [(1, a), (1, b), (-1, a + b)]


GAMMAS: dict[Any, Callable[..., list[tuple[int, FormulaNode]]]] = {
    sympy.gamma: lambda a: [(1, a)],
    sympy.factorial: lambda n: [(1, n + 1)],
    sympy.binomial: lambda n, k: [(1, n + 1), (-1, k + 1), (-1, n - k + 1)],
    sympy.beta: _of_beta,
}
"""The gamma functions in the numerator and the denominator."""


def _of_power(base: Node, exponent: Node) -> _Exponent | None:
    number, value = constant_value(exponent), constant_value(base)
    if isinstance(number, int):
        if abs(number) < MIN_EXPONENT:
            return None
        sign = apply(sympy.sign, base) if number % 2 else None
        return _Exponent(mul(exponent, apply(sympy.log, apply(sympy.Abs, base))), (), sign)
    if number is not None:
        return None
    known = isinstance(value, (int, Fraction)) and value > 0
    return _Exponent(mul(exponent, apply(sympy.log, base)), () if known else (base,))


def _guarded_product(number: Fraction, factors: Parts, exponents: Sequence[_Exponent], whole: Node) -> Node:
    """The product where it is a float other than 0, else exp of the sum of logarithms where these exist."""
    direct = signed_product([*factors, (1, constant(number))])
    terms = [e.logarithm for e in exponents]
    if abs(number) != 1:
        terms.append(constant(log(abs(number.numerator)) - log(number.denominator)))
    signs = [e.sign for e in exponents if e.sign is not None]
    size = apply(sympy.exp, broadcast_to(add(*terms), whole.shape))
    by_logarithms = mul(constant(1 if number > 0 else -1), *signs, size)
    positive = dict.fromkeys(node for e in exponents for node in e.positive)
    if positive:
        known = logic("and", *[compare(">", node, constant(0)) for node in positive])
        by_logarithms = select(known, by_logarithms, direct)
    return select(_is_good(direct), direct, by_logarithms)


def _is_good(node: Node) -> Node:
    size = apply(sympy.Abs, node)
    return logic("and", compare(">", size, constant(0)), compare("<", size, constant(inf)))


def _guarded(node: Node) -> Node | None:
    """The product that `_guard` has guarded; None for other nodes."""
    if isinstance(node.op, Select) and node.args[0] is _is_good(node.args[1]):
        return node.args[1]
    return None


def _logarithm(inside: Node) -> Node | None:
    """The logarithm of a product with a number that is no float."""
    factors = flat(inside)
    number, others = _collected(factors or [])
    if not others or _fits(number) or number < 0:
        return None
    size = constant(log(number.numerator) - log(number.denominator))
    return add(size, apply(sympy.log, signed_product(others)))
