"""The probability that different functions look equal, from degrees, primes and lanes.

For P = N_a D_b − N_b D_a ≠ 0 of degree d and with coefficients of together at most H bits, one lane has
P = 0 with probability at most

    ε = 2^r (d / p + H / (log₂ p · #primes)) · 2,

by the lemma of Schwartz and Zippel, and because a non-zero coefficient of h bits has at most h / log₂ p
prime divisors above p. The factor 2 pays for leaving out lanes where a denominator vanishes; 2^r is
the degree of the extension by exact roots (P = 0 there implies that its norm vanishes). T lanes with
primes of their own give ε^T. All are kept as log₂.

Where each lane draws a region of its own, a value is a polynomial in independent signs, of degree 1 in
each. One that is not 0 for all signs is not 0 for a random choice of them with probability 2^−d at least,
where d is its total degree: a sum of many selections has the degree of one of them. Signs have names, so
that the same sign, moved in the same way, counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log2

from symad.core.graph import Node, topological
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, ShapingOp
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Condition, Select
from symad.verification.fields.primes import log2_prime_count
from symad.verification.random_fields.degree_bounds import Growth, Growths
from symad.verification.random_fields.known_values import MAX_COMBINED_EXPONENTIALS
from symad.verification.terms.discontinuities import SIGNS

TARGET = -64.0
"""A bound below 2^TARGET counts as certain."""


@dataclass(frozen=True)
class Sampling:
    """How one run was sampled."""

    bits: int
    lanes: int
    odd_roots: tuple[int, ...] = ()
    coins: int = 0
    """A lane has the signs that matter with probability 2^−coins at least: those of exact roots that may
    be rational functions of others, and of branches where each lane has a region of its own."""


def log2_of(number: int) -> float:
    """log₂ of an integer of any size; −∞ for 0."""
    if number <= 0:
        return -inf
    shift = max(number.bit_length() - 60, 0)
    return log2(number >> shift) + shift


def add_logs(*logs: float) -> float:
    """log₂ of the sum of the numbers with these logarithms."""
    top = max(logs)
    return top if top == -inf else top + log2(sum(2.0 ** max(x - top, -1000.0) for x in logs))


def difference(a: Growth, b: Growth, growths: Growths) -> tuple[int, int]:
    """Degree and bits of N_a D_b − N_b D_a, times the denominators."""
    whole = growths.add([a, b])
    return whole.deg + whole.under_deg, whole.bits + whole.under_bits


def lane_parts(deg: int, bits: int, growths: Growths, sampling: Sampling) -> tuple[float, float]:
    """log₂ of the two terms of ε: an unlucky point, and an unlucky prime."""
    extension = growths.root_bits + 1
    if sampling.coins:  # a lane in which the argument of a function is 0 by chance says nothing
        deg += sum(count * size for count, size, _ in growths.arguments.values())
    point = log2_of(deg) - (sampling.bits - 1) + extension
    prime = log2_of(bits) - log2(sampling.bits - 1) - log2_prime_count(sampling.bits, sampling.odd_roots)
    return point, prime + extension


def log2_false_zero(deg: int, bits: int, growths: Growths, sampling: Sampling) -> float:
    """log₂ of the probability that a non-zero polynomial vanishes in all lanes."""
    point, prime = lane_parts(deg, bits, growths, sampling)
    c = sampling.coins
    if c:
        lane = log2(1 - 2.0**-c) if c < 50 else -(2.0**-c)
        point, prime = add_logs(point, lane), prime
    point, prime = min(point, 0.0), min(prime, 0.0)
    return min(sampling.lanes * min(add_logs(point, prime), 0.0), 0.0)


def log2_collisions(growths: Growths, sampling: Sampling) -> float:
    """log₂ of the probability that two different arguments of one function agree in all lanes.

    Arguments of roots, logarithms and signs are also compared with products u v and u² v of others, and
    those of signs with the small numbers (about 2²³ of them), and with five multiples of others
    and these. Those of logarithms
    are also compared with products of three and their squares, and with products of those and of the values
    of exponentials, and of products of two.
    """
    logs = [-inf]
    powers = growths.arguments.get("value of exp", (0, 0, 0))
    for kind, (count, deg, bits) in growths.arguments.items():
        name = getattr(kind, "__name__", kind)
        if name == "log":
            products_of_two = min(powers[0], MAX_COMBINED_EXPONENTIALS) ** 2
            count += powers[0] + products_of_two + 1
            deg, bits = max(deg, 2 * powers[1]), max(bits, 2 * powers[2])
        elif name == "value of exp":
            continue
        products = name in ("root", "log", "sign")
        parts = 8 if name == "log" else 4 if products else 2
        once = log2_false_zero(parts * deg, parts * bits + 1, growths, sampling)
        tries = (4 * log2_of(count) + 4 if products else 2 * log2_of(count)) + (27 if name == "sign" else 0)
        logs.append(tries + once)
    return min(add_logs(*logs), 0.0)


def bits_for(deg: int, bits: int, growths: Growths, lanes: int, slack: float) -> int:
    """The size of primes with which ``lanes`` lanes bring ε^T below 2^(TARGET − slack)."""
    need = (-TARGET + slack) / lanes
    size = add_logs(log2_of(deg), log2_of(bits) + 8) + growths.root_bits + 3
    return int(need + size) + 8


# ---- on how many signs an element depends --------------------------------------------------------

# A value is a polynomial in independent signs, of degree 1 in each.


MANY = 1 << 10
"""A degree that stands for every larger one."""

Sign = tuple[tuple[int, ...], object]
"""A sign by its name, and the axes of an array along which its own axes lie."""

Signs = tuple[int, "frozenset[Sign] | None"]
"""The degree of one element, and the signs that it depends on; None if these are not few."""

NONE: Signs = (0, frozenset())


def sign_degree(outputs: Sequence[Node]) -> int:
    """The largest degree of an element of some nodes in the basis, in the signs that it depends on."""
    found: dict[Node, Signs] = {}
    for node in topological(outputs):
        degree, signs = _signs(node, [found[a] for a in node.args])
        found[node] = min(degree, MANY if signs is None else len(signs)), signs
    return max((found[o][0] for o in outputs), default=0)


def _signs(node: Node, parts: Sequence[Signs]) -> Signs:
    """The degree and the signs of a node, from those of its arguments."""
    degrees, below = [d for d, _ in parts], [s for _, s in parts]
    if isinstance(node.op, Apply) and node.op.head in SIGNS:  # one more for each choice of those below
        signs = None if below[0] is None else below[0] | {(_all_axes(node), node)}
        return (MANY, None) if signs is None else (len(signs), signs)
    if not any(degrees):
        return NONE
    if isinstance(node.op, Condition) or node.op.row_numbers:
        return MANY, None
    if isinstance(node.op, ElementwiseOp):
        known = [s for s in below if s is not None]
        together = frozenset[Sign]().union(*known) if len(known) == len(below) else None
        return _degree(node, degrees, together), together
    if isinstance(node.op, Einsum):
        return sum(degrees), _contracted(node.op, below)
    if isinstance(node.op, ShapingOp):
        return max(degrees), _renamed(node, below)
    return MANY, None


def _degree(node: Node, degrees: Sequence[int], together: frozenset[Sign] | None) -> int:
    """The degree of an elementwise op: of a sum that of one term, of a function the number of its signs."""
    if isinstance(node.op, Add):
        return max(degrees)
    if isinstance(node.op, Select):
        return degrees[0] + max(degrees[1:])
    if isinstance(node.op, Mul):
        under = [d for p, d in zip(node.op.powers, degrees, strict=True) if p == -1]
        if not any(under):
            return sum(degrees)
    return MANY if together is None else len(together)


def _renamed(node: Node, below: Sequence[frozenset[Sign] | None]) -> frozenset[Sign] | None:
    """The signs by their places after a move: each element comes from one place of one argument."""
    if None in below:
        return None
    named = [(k, sign) for k, signs in enumerate(below) for sign in signs or ()]
    if isinstance(node.op, Broadcast):
        return frozenset((tuple([node.op.axes[k] for k in axes]), name) for _, (axes, name) in named)
    move = node.op, tuple(a.shape for a in node.args)
    return frozenset((_all_axes(node), (move, *sign)) for sign in named)


def _contracted(op: Einsum, below: Sequence[frozenset[Sign] | None]) -> frozenset[Sign] | None:
    """The signs that are the same in all terms of a sum; None where there are others."""
    found = set[Sign]()
    for labels, signs in zip(op.inputs, below, strict=True):
        for axes, name in signs if signs is not None else [((0,), None)]:
            if signs is None or any(labels[k] not in op.output for k in axes):
                return None
            found.add((tuple([op.output.index(labels[k]) for k in axes]), name))
    return frozenset(found)


def _all_axes(node: Node) -> tuple[int, ...]:
    return tuple(range(len(node.shape)))
