"""Labels: inputs that a derivative is not taken by, and that conditions compare for equality.

For f(z, y) with a branch at y == 1 and the claim ∂f/∂z = g, this branch is no boundary: at y = 1 the claim
is about a function of z alone. No point that is drawn at random meets it. So labels are drawn from the
numbers that meet conditions, and keep their values at the points beside a point.

A side of a condition that no point has met (`Sides`) leaves a claim undecided, unless the claim holds
whichever conditions hold (`freed`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import sympy

from symad.core.claims import Derivative
from symad.core.graph import Node, op_of, rebuild, topological
from symad.facts.functions import fact
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import sub
from symad.ops.basic.sources import ArrayConstant, Input, constant, input_node, inputs_in, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Condition, compare, logic
from symad.verification.fields.prime_fields import Array
from symad.verification.terms.depending import depending
from symad.verification.terms.discontinuities import unseen
from symad.verification.terms.linear_terms import number
from symad.verification.values.balls import UNUSABLE, NoTruth, strict_nodes

MOST = 1 << 16
"""The maximum number of elements of an array of which numbers are taken."""

USUAL = (0.0, 1.0)
"""The values of a label beside the one that it is compared with, and of two that are compared."""

TRIED, FEW = np.arange(-12.0, 13.0), 9
"""Numbers that are put into conditions; if at most `FEW` meet one, labels are drawn from them."""

BITS = 160
"""Precision of the numbers in conditions."""


def parameters(derivative: Derivative | None, inputs: Sequence[Node]) -> frozenset[sympy.Symbol]:
    """The symbols of the inputs that a derivative is not taken by, without directions; none for a value."""
    if derivative is None or derivative.kind in ("", "value"):
        return frozenset()
    moved = {symbol_of(n) for n in (*derivative.wrt, *derivative.v, *derivative.w)}
    return frozenset(symbol_of(n) for n in inputs) - moved


def of_parameters(nodes: Sequence[Node], fixed: Collection[sympy.Symbol]) -> set[Node]:
    """The nodes below some nodes that depend on parameters, and on no other input."""
    if not fixed:
        return set()
    read = [n for n in topological(nodes) if isinstance(n.op, Input)]
    own = {n for n in read if symbol_of(n) in fixed}
    return depending(nodes, own.__contains__) - depending(nodes, set(read).difference(own).__contains__)


def conditions_of(nodes: Sequence[Node], fixed: Collection[sympy.Symbol]) -> list[Node]:
    """The conditions on parameters alone that some nodes read, without what only these read."""
    found = {n for n in of_parameters(nodes, fixed) if isinstance(n.op, Condition)}
    reached = dict.fromkeys(chain(*(unseen(n, found) for n in nodes))) if found else ()
    read = chain(nodes, *(n.args for n in reached))
    return list(dict.fromkeys(n for n in read if n in found))


# ---- which numbers labels have -------------------------------------------------------------------


def labels_of(nodes: Sequence[Node], fixed: Collection[sympy.Symbol]) -> Mapping[Node, Array]:
    """The labels of some nodes, with the numbers from which they are drawn.

    Args:
        nodes: everything that is claimed, arguments first.
        fixed: the symbols of parameters.
    """
    found = dict[Node, set[float]]()
    own = of_parameters(nodes, fixed)
    known = {n: _numbers(n) for n in nodes if n in own and isinstance(n.op, Compare)}
    for node, numbers in (*known.items(), *known.items()):  # those that are compared share numbers
        if numbers is not None:
            read = inputs_in([node])
            found |= dict.fromkeys(read, numbers.union(*(found.get(n, set()) for n in read)))
    return {n: np.array(sorted(c if len(c) > 1 else {*c, *USUAL})) for n, c in found.items()}


def _numbers(node: Node) -> set[float] | None:
    """Numbers that may meet a condition; None for an inequality with a boundary."""
    found = set[float]()
    for n in topological([node]):
        if isinstance(n.op, ArrayConstant) and n.op.array.dtype.kind in "iuf":
            found.update(map(float, n.op.array.ravel()[:MOST].tolist()))
        elif (c := number(n)) is not None and abs(c) < 2**1000 and Fraction(float(c)) == c:
            found.add(float(c))
    apart = [(c, v) for c in TRIED.tolist() if (v := _apart(node, c)) is not None]
    met = {c for c, v in apart if (v == 0).any()}
    if (relation := op_of(node, Compare).relation) in ("<", "<="):  # of labels where one side is larger
        larger = [v if relation == "<=" else -v for _, v in apart]  # but for the numbers that meet it
        if not met or not all(map(np.all, (np.array(larger) >= 0, larger[0] > 0, larger[-1] > 0))):
            return None
    return found | met if len(met) <= FEW else found


def _apart(node: Node, value: float) -> Array | None:
    """The difference of the sides of a comparison where all inputs have one value; None if it has none."""
    try:
        with np.errstate(all="ignore"):
            point = {n: np.full(n.shape, value) if n.shape else value for n in inputs_in([node])}
            (found,) = unchecked([sub(*node.args)], point)
    except (*UNUSABLE, LookupError, RuntimeError):
        return None
    return np.asarray(found, dtype=float)


# ---- which sides of conditions were met ----------------------------------------------------------


LONG, WORDS = 80, {True: "holds", False: "does not hold"}


class Sides(dict[tuple[Node, bool], Array]):
    """Of conditions on parameters, the elements that have been true, or false, at no point that counts.

    The open side of an inequality needs no point: what is proved, or tested, holds on open sets.
    """

    @staticmethod
    def of(
        nodes: Sequence[Node], fixed: Collection[sympy.Symbol], domain: Node | None = None
    ) -> Sides:
        """All sides that points of a domain may meet; the domain is where its node is positive."""
        made = Sides()
        for node in conditions_of(nodes, fixed):
            for side in (True, False):
                counts = not _is_open(node, side) and 0 not in node.shape
                if counts and not _is_outside(node, side, domain):
                    made[node, side] = np.ones(tuple(map(int, node.shape)), dtype=bool)
        return made

    def met(self, point: Mapping[Node, Any]) -> Sides:
        """What is met at a point."""
        found = strict_nodes([node for node, _ in self], point, BITS)
        return Sides({key: _is(found[key[0]], key[1], rest.shape) for key, rest in self.items()})

    def without(self, met: Sides) -> Sides:
        """What is left."""
        left = {key: rest & ~met[key] for key, rest in self.items()}
        return Sides({key: rest for key, rest in left.items() if rest.any()})

    def anywhere(self, points: Iterable[Mapping[Node, Any]]) -> Sides:
        """What is left where it is enough that one element is met at one of some points."""
        left = self
        for point in points if self else ():
            left = Sides({key: left[key] for key, met in left.met(point).items() if not met.any()})
            if not left:
                break
        return left


    def told(self, text_of: Callable[[Node], str]) -> str:
        """The first of them, with what to do, by the text of a node; empty if there is none."""
        for (node, side), rest in self.items():
            place = f" at {list(map(int, np.argwhere(rest)[0]))}" if rest.shape else ""
            names, text = ", ".join(str(symbol_of(n)) for n in inputs_in([node])), text_of(node)
            told = f"{text if len(text) < LONG else f'a condition on {names}'}{place} {WORDS[side]}"
            return (f"no point was found where {told}, so that nothing is known there: claim it with such "
                    f"numbers in the place of {names}, or with the same condition on both sides")  # fmt: skip
        return ""


def _is(truths: Any, side: bool, shape: tuple[int, ...]) -> Array:
    each = np.broadcast_to(np.asarray(truths, dtype=object), shape)
    flags = [not isinstance(t, NoTruth) and bool(t) is side for t in each.ravel().tolist()]
    return np.array(flags, dtype=bool).reshape(shape)


def _is_open(node: Node, side: bool) -> bool:
    """Whether a side of a comparison is an open set, because both of its sides are continuous."""
    if not isinstance(node.op, Compare) or any(map(_is_step, topological(node.args))):
        return False
    return side is (node.op.relation in ("<", "!="))


def _is_outside(node: Node, side: bool, domain: Node | None) -> bool:
    """Whether a side is p = c for an input p that its symbol or the domain keeps from being c."""
    equal = {"==": True, "!=": False}.get(node.op.relation) if isinstance(node.op, Compare) else None
    inputs, numbers = inputs_in([node]), [c for a in node.args if (c := number(a)) is not None]
    if side is not equal or node.shape or len(numbers) != 1 or not {*node.args}.intersection(inputs):
        return False
    if sympy.Eq(symbol_of(inputs[0]), sympy.Rational(numbers[0])) == sympy.false:
        return True
    if domain is None or inputs_in([domain]) != inputs:
        return False
    holds = compare("<", constant(0), domain)
    found = strict_nodes([holds], {inputs[0]: numbers[0]}, BITS)
    return bool(_is(found[holds], False, holds.shape).any())


def _is_step(node: Node) -> bool:
    return isinstance(node.op, Condition) or (isinstance(node.op, Apply) and bool(fact(node.op.head).jumps))


# ---- claims whichever conditions hold ------------------------------------------------------------


def freed(nodes: Sequence[Node], fixed: Collection[sympy.Symbol]) -> tuple[Node, ...] | None:
    """Some nodes, with a free truth value, 0 < t for a new input t, for each comparison of parameters.

    What holds of them holds whichever comparisons are true. None if parameters have steps of other kinds.
    """
    free, known = dict[Node, Node](), dict[Any, Node]()
    own = of_parameters(nodes, fixed)
    for node in topological(nodes):
        if node in own and isinstance(node.op, Compare):
            equal = node.op.relation in ("==", "!=")
            key = frozenset(node.args) if equal else node
            t = known.setdefault(key, input_node(sympy.Dummy("t", real=True), node.shape))
            holds = compare("<", constant(0), t)
            free[node] = logic("not", holds) if node.op.relation == "!=" else holds
    made = rebuild(nodes, free)
    steps = {n for n in of_parameters(made, fixed) if _is_step(n) and not isinstance(n.op, Condition)}
    return made if free and not steps else None
