"""The probability that different functions look equal, from degrees, primes and lanes.

For P = N_a D_b − N_b D_a ≠ 0 of degree d and with coefficients of together at most H bits, one lane has
P = 0 with probability at most

    ε = 2^r (d / p + H / (log₂ p · #primes)) · 2,

by the lemma of Schwartz and Zippel, and because a non-zero coefficient of h bits has at most h / log₂ p
prime divisors above p. The factor 2 pays for leaving out lanes where a denominator vanishes; 2^r is
the degree of the extension by exact roots (P = 0 there implies that its norm vanishes). T lanes with
primes of their own give ε^T. All are kept as log₂.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2

from symad.verification.fields.primes import log2_prime_count
from symad.verification.random_fields.degree_bounds import Growth, Growths
from symad.verification.random_fields.known_values import MAX_COMBINED_EXPONENTIALS

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
