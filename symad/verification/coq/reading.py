"""Models as terms: from the user's SymPy expressions, and from the nodes of scalar graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import sympy

from symad.core.graph import Node, topological
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.coq.branches import (
    away_from_zero,
    choice,
    compared,
    extreme,
    is_count_of_winners,
    kind_of,
    node_condition,
    number_exponent,
    settled,
    sympy_condition,
    winner,
    won,
)
from symad.verification.coq.heads import HEADS, WITHOUT_LEMMA
from symad.verification.coq.terms import CoqError, CoqTerm, CoqTerms, Part, postorder

WHOLE = 600
"""In expressions of more operations than this, repeated parts get names."""

MOST_POWER = 30
"""The maximum power of a root that is written: x^(5/2) is the fifth power of a square root."""


def refused(what: str) -> CoqError:
    """The error for a part that cannot be written in Coq."""
    return CoqError(
        f"to_coq: {what} has no lemma in Coq yet; write the model by the functions of "
        "symad.verification.coq.heads.HEADS, powers and arithmetic, or leave this part out"
    )


# ---- numbers and functions ------------------------------------------------------------------------


def number(terms: CoqTerms, value: Any) -> CoqTerm:
    """A constant, exactly: floats are binary fractions."""
    if isinstance(value, sympy.Basic):
        if value is sympy.pi:
            return terms.make("Pi")
        if value is sympy.E:
            return terms.app("Exp", terms.integer(1))
        if not isinstance(value, (sympy.Rational, sympy.Float)):
            raise refused(f"the constant {value}")
        value = _exact(value)
    if isinstance(value, float) and value - value != 0:
        raise refused(f"the constant {value}")
    exact = Fraction(value)
    return terms.rational(exact.numerator, exact.denominator)


def _exact(value: sympy.Expr) -> Fraction:
    exact = sympy.Rational(value)
    return Fraction(int(exact.p), int(exact.q))


def function(terms: CoqTerms, head: type[sympy.Basic], args: Sequence[CoqTerm]) -> CoqTerm:
    """A function of the derivative table."""
    if head in (sympy.Max, sympy.Min):
        return extreme(terms, head.__name__, args)
    if head is sympy.Heaviside and (len(args) == 1 or args[1] is terms.rational(1, 2)):
        args = args[:1]
    constructor = HEADS.get(head, "")
    if not constructor or len(args) != (2 if constructor in {"Xlogy", "Hypot", "Logaddexp"} else 1):
        name, plural = getattr(head, "__name__", str(head)), "s" * (len(args) != 1)
        why = f" ({WITHOUT_LEMMA[name]})" if name in WITHOUT_LEMMA else ""
        raise refused(f"the function {name} of {len(args)} argument{plural}{why}")
    return terms.app(constructor, *args)


def repeated(roots: Iterable[Part], parts_of: Callable[[Part], Sequence[Part]], whole: int) -> set[Part]:
    """The parts that get a name: those used more than once, unless the whole is small when written out."""
    uses: Counter[Part] = Counter()
    sizes: dict[Part, int] = {}
    roots = list(roots)
    for part in postorder(roots, parts_of):
        below = parts_of(part)
        sizes[part] = 1 + sum(sizes[b] for b in below)
        uses.update(below)
    uses.update(roots)
    if sum(sizes[r] for r in roots) <= whole:
        return set()
    return {part for part, count in uses.items() if count > 1 and sizes[part] > 2}


# ---- SymPy ----------------------------------------------------------------------------------------


def from_sympy(
    terms: CoqTerms, expressions: Sequence[sympy.Expr], leaves: Mapping[sympy.Symbol, int]
) -> list[CoqTerm]:
    """The terms of scalar SymPy expressions as they are written; ``leaves`` has the numbers of the inputs.

    Raises:
        CoqError: a part of them cannot be written in Coq.
    """

    def parts_of(expression: sympy.Expr) -> Sequence[sympy.Expr]:
        if isinstance(expression, sympy.Piecewise):
            return [*(branch for branch, _ in expression.args), *compared(expression)]
        return () if expression in leaves or expression.is_Atom else expression.args

    named = repeated(expressions, parts_of, WHOLE)
    powers = [e.as_base_exp() for e in postorder(expressions, parts_of) if e.is_Pow]
    roots = _roots((b, _exact(e)) for b, e in powers if e.is_Rational or e.is_Float)
    found: dict[sympy.Basic, CoqTerm] = {}
    for part in postorder(expressions, parts_of):
        if part in leaves:
            found[part] = terms.var(leaves[part])
        else:
            made = _sympy_term(terms, part, found, roots)
            found[part] = terms.name(made) if part in named else made
    return [found[e] for e in expressions]


def _roots(powers: Iterable[tuple[Part, Fraction]]) -> dict[Part, int]:
    """For bases with fractional exponents, the n whose n-th root gives all; 0 if that needs a high power."""
    found: dict[Part, int] = {}
    most: dict[Part, Fraction] = {}
    for base, exponent in powers:
        if exponent.denominator > 1:
            found[base] = lcm(found.get(base, 1), exponent.denominator)
            most[base] = max(most.get(base, exponent), abs(exponent))
    return {b: n if n * most[b] <= MOST_POWER else 0 for b, n in found.items()}


def _sympy_term(
    terms: CoqTerms, e: sympy.Expr, found: Mapping[sympy.Basic, CoqTerm], roots: Mapping[sympy.Expr, int]
) -> CoqTerm:
    if e.is_Number or e.is_NumberSymbol:
        return number(terms, e)
    if e.is_Add:
        return terms.signed_sum([_signed(terms, a, found, roots) for a in e.args])
    if e.is_Mul:
        return _sympy_product(terms, list(e.args), found, roots)
    if e.is_Pow:
        base, exponent = e.args
        if exponent.is_Rational or exponent.is_Float:
            return terms.real_power(found[base], _exact(exponent), roots.get(base, 1))
        return terms.app(
            "Exp" if base is sympy.E else "Power",
            *([] if base is sympy.E else [found[base]]),
            found[exponent],
        )
    if isinstance(e, sympy.Piecewise):
        return _piecewise(terms, e, found)
    if e.is_Function:
        return function(terms, e.func, [found[a] for a in e.args])
    raise refused(f"{type(e).__name__} {e}")


def _piecewise(terms: CoqTerms, e: sympy.Expr, found: Mapping[sympy.Basic, CoqTerm]) -> CoqTerm:
    """The term of a Piecewise, built from its last branch, which must cover all other cases, to the first."""
    *cases, (last, otherwise) = e.args
    if otherwise != sympy.true:
        raise refused(f"a Piecewise without a branch for all other cases, {e},")
    total = found[last]
    for branch, condition in reversed(cases):
        holds = sympy_condition(terms, condition, found)
        if holds is None:
            raise refused(f"the condition {condition} of a Piecewise")
        total = choice(terms, holds, found[branch], total)
    return total


def _signed(
    terms: CoqTerms, e: sympy.Expr, found: Mapping[sympy.Basic, CoqTerm], roots: Mapping[sympy.Expr, int]
) -> tuple[bool, CoqTerm]:
    """A summand without its minus sign, and a flag: true if it had one."""
    if e.is_Number and e < 0:
        return True, number(terms, -e)
    if e.is_Mul and e.args[0].is_Number and e.args[0] < 0 and found[e].head != "Var":
        return True, _sympy_product(terms, [-e.args[0], *e.args[1:]], found, roots)
    return False, found[e]


def _sympy_product(
    terms: CoqTerms,
    args: list[sympy.Expr],
    found: Mapping[sympy.Basic, CoqTerm],
    roots: Mapping[sympy.Expr, int],
) -> CoqTerm:
    """A product as a quotient of products, with the sign in front."""
    over: list[CoqTerm] = []
    under: list[CoqTerm] = []
    minus = False
    for a in args:
        if a.is_Rational:
            minus ^= bool(a < 0)
            if abs(a.p) != 1:
                over.append(terms.integer(abs(int(a.p))))
            if a.q != 1:
                under.append(terms.integer(int(a.q)))
        elif a.is_Float:
            minus ^= bool(a < 0)
            over.append(number(terms, abs(a)))
        elif a.is_Pow and a.args[1].is_Rational and a.args[1] < 0 and found[a].head != "Var":
            base, exponent = a.args
            under.append(terms.real_power(found[base], -_exact(exponent), roots.get(base, 1)))
        else:
            over.append(found[a])
    made = terms.quotient(over, under)
    return terms.opp(made) if minus else made


# ---- graphs ---------------------------------------------------------------------------------------


def from_graph(
    terms: CoqTerms,
    outputs: Sequence[Node],
    leaves: Mapping[Node, int],
    whole: int = 0,
    model: Sequence[Node] = (),
) -> list[CoqTerm]:
    """The terms of scalar nodes; nodes that are used more than once get a name.

    Roots are those of ``model`` and of the nodes themselves, so that a model and its derivatives share them.

    Raises:
        CoqError: an op cannot be written in Coq.
    """
    outputs = settled(away_from_zero(outputs))

    def parts_of(node: Node) -> Sequence[Node]:
        if node in leaves or is_count_of_winners(node):
            return ()
        extreme = won(node)
        return extreme[0].args if extreme is not None else node.args

    named = repeated(outputs, parts_of, whole)
    order = postorder(outputs, parts_of)
    powers = [(n.args[0], e) for n in [*topological(model), *order] if (e := number_exponent(n)) is not None]
    roots = _roots(powers)
    found: dict[Node, CoqTerm] = {}
    for node in order:
        if node in leaves:
            found[node] = terms.var(leaves[node])
        else:
            made = _node_term(terms, node, found, roots)
            found[node] = terms.name(made) if node in named else made
    return [found[o] for o in outputs]


def _node_term(
    terms: CoqTerms, node: Node, found: Mapping[Node, CoqTerm], roots: Mapping[Node, int]
) -> CoqTerm:
    if is_count_of_winners(node):
        return terms.integer(1)
    extreme_won = won(node)
    if extreme_won is not None:
        whole, place = extreme_won
        return winner(terms, kind_of(whole), [found[a] for a in whole.args], place)
    op, args = node.op, [found[a] for a in node.args]
    match op:
        case Constant():
            return number(terms, op.value)
        case Add():
            return terms.signed_sum([(s < 0, a) for s, a in zip(op.signs, args, strict=True)])
        case Mul():
            factors = list(zip(op.powers, args, strict=True))
            return terms.quotient([a for p, a in factors if p == 1], [a for p, a in factors if p == -1])
        case Pow():
            exponent = number_exponent(node)
            if exponent is None:
                return terms.app("Power", *args)
            return terms.real_power(args[0], exponent, roots.get(node.args[0], 1))
        case Apply():
            return function(terms, op.head, args)
        case Select():
            return choice(terms, *args)
    holds = node_condition(terms, node, args)
    if holds is None and isinstance(op, Compare):
        raise refused(f"the comparison {op.relation}")
    if holds is None:
        raise refused(f"the operation {type(op).__name__}")
    return holds
