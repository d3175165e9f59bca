"""Models as terms: from the user's SymPy expressions, and from the nodes of scalar graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import sympy
from sympy.functions.elementary.piecewise import ExprCondPair

from symad.core.graph import Node, topological
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant, constant, input_node
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.verification.coq.branches import (
    away_from_zero,
    choice,
    extreme,
    is_count_of_winners,
    kind_of,
    node_condition,
    number_exponent,
    settled,
    unshifted,
    winner,
    won,
)
from symad.verification.coq.terms import HEADS, WITHOUT_LEMMA, CoqError, CoqTerm, CoqTerms, Part, postorder

WHOLE = 600
"""In expressions of more operations than this, repeated parts get names."""

MOST_POWER = 30
"""The maximum power of a root that is written: x^(5/2) is the fifth power of a square root."""


def refused(what: str) -> CoqError:
    """The error for a part that cannot be written in Coq."""
    return CoqError(
        f"to_coq: {what} has no lemma in Coq yet; write the model by the functions of "
        "symad.verification.coq.terms.HEADS, powers and arithmetic, or leave this part out"
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
    made: dict[sympy.Basic, Node] = {e: input_node(sympy.Dummy(real=True)) for e in leaves}
    numbers = {made[e]: number for e, number in leaves.items()}
    for part in postorder(expressions, lambda e: () if e in leaves or e.is_Atom else e.args):
        if part not in made:
            made[part] = _as_node(part, made)
    return _from_nodes(terms, [made[e] for e in expressions], numbers, WHOLE)


def _as_node(e: sympy.Basic, made: Mapping[sympy.Basic, Node]) -> Node:
    """A part of an expression as a node, of which nothing is simplified."""
    args = tuple(made[a] for a in e.args)
    if isinstance(e, ExprCondPair):
        return args[0]
    if isinstance(e, sympy.Piecewise):
        return _branches(e, made)
    if isinstance(e, sympy.logic.boolalg.Boolean) and not e.is_Symbol:
        return _condition(e, made, args)
    if e.is_Rational or e.is_Float:
        return constant(_exact(e))
    if e.is_Number or e.is_NumberSymbol:
        return Node.of(Constant(e, "symbol"))
    if e.is_Add:
        return _sum(e, made)
    if e.is_Mul:
        return _product(e.args, made)
    if e.is_Pow:
        return Node.of(Apply(sympy.exp), args[1:]) if e.args[0] is sympy.E else Node.of(Pow(), args)
    if e.is_Function:
        return Node.of(Apply(e.func), args)
    raise refused(f"{type(e).__name__} {e}")


def _branches(e: sympy.Piecewise, made: Mapping[sympy.Basic, Node]) -> Node:
    """A Piecewise from its last branch, which must cover all other cases, to the first."""
    *cases, (last, otherwise) = e.args
    if otherwise != sympy.true:
        raise refused(f"a Piecewise without a branch for all other cases, {e},")
    total = made[last]
    for branch, condition in reversed(cases):
        total = Node.of(Select(), (made[condition], made[branch], total))
    return total


KINDS = {sympy.And: "and", sympy.Or: "or", sympy.Not: "not"}


def _condition(e: sympy.Basic, made: Mapping[sympy.Basic, Node], args: tuple[Node, ...]) -> Node:
    """A condition of a Piecewise: orders, and what logic makes of them."""
    if e in (sympy.true, sympy.false):
        return constant(e == sympy.true)
    if e.func in KINDS:
        return Node.of(Logic(KINDS[e.func]), args)
    if isinstance(e, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
        relation = "<" if isinstance(e, (sympy.Lt, sympy.Gt)) else "<="
        return Node.of(Compare(relation), (made[e.lts], made[e.gts]))
    raise refused(f"the condition {e} of a Piecewise")


def _sum(e: sympy.Add, made: Mapping[sympy.Basic, Node]) -> Node:
    """A sum in which what has a minus sign is subtracted."""
    minus = [(a.is_Number or a.is_Mul) and bool(a.as_coeff_Mul()[0] < 0) for a in e.args]
    signs = tuple([-1 if negative else 1 for negative in minus])
    nodes = []
    for a, negative in zip(e.args, minus, strict=True):
        first, *rest = a.args or (a,)
        nodes.append(_product([-first, *rest], made) if negative else made[a])
    return Node.of(Add(signs), tuple(nodes))


def _product(args: Sequence[sympy.Expr], made: Mapping[sympy.Basic, Node]) -> Node:
    """A product as a quotient of products, with the sign in front."""
    factors: list[tuple[int, Node]] = []
    minus = False
    for a in args:
        if a.is_Rational or a.is_Float:
            minus ^= bool(a < 0)
            exact = abs(_exact(a))
            whole = a.is_Float or exact.denominator == 1
            ends = [(1, exact)] if whole else [(1, exact.numerator), (-1, exact.denominator)]
            factors += [(p, constant(n)) for p, n in ends if n != 1]
        elif a.is_Pow and a.args[1].is_Rational and a.args[1] < 0:
            power = a.args[1]
            node = made[a.args[0]]
            factors.append((-1, node if power == -1 else Node.of(Pow(), (node, constant(-_exact(power))))))
        else:
            factors.append((1, made[a]))
    product = _quotient(factors)
    return Node.of(Add((-1,)), (product,)) if minus else product


def _quotient(factors: Sequence[tuple[int, Node]]) -> Node:
    if [p for p, _ in factors] in ([], [1]):
        return factors[0][1] if factors else constant(1)
    powers, nodes = zip(*factors, strict=True)
    return Node.of(Mul(powers), nodes)


def _roots(powers: Iterable[tuple[Part, Fraction]]) -> dict[Part, int]:
    """For bases with fractional exponents, the n whose n-th root gives all; 0 if that needs a high power."""
    found: dict[Part, int] = {}
    most: dict[Part, Fraction] = {}
    for base, exponent in powers:
        if exponent.denominator > 1:
            found[base] = lcm(found.get(base, 1), exponent.denominator)
            most[base] = max(most.get(base, exponent), abs(exponent))
    return {b: n if n * most[b] <= MOST_POWER else 0 for b, n in found.items()}


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
    The derivatives of ``model`` are written without shifts of exponents.

    Raises:
        CoqError: an op cannot be written in Coq.
    """
    written = unshifted(outputs) if model else outputs
    return _from_nodes(terms, settled(away_from_zero(written)), leaves, whole, model)


def _from_nodes(
    terms: CoqTerms, outputs: Sequence[Node], leaves: Mapping[Node, int], whole: int,
    model: Sequence[Node] = (),
) -> list[CoqTerm]:  # fmt: skip
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
