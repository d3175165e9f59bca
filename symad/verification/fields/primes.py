"""Random primes for tests of identities in prime fields.

All primes are 3 mod 4, so that −1 is no square and √−1 extends the field, and leave a remainder
other than 1 modulo chosen odd primes, so that odd roots exist and are unique.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import sympy

SMALL = 31
"""Residues of primes below 2³¹ multiply without overflow in unsigned 64-bit integers."""


def random_primes(rng: Random, count: int, bits: int, odd_roots: Sequence[int] = ()) -> list[int]:
    """``count`` independent primes, uniform among the admissible ones in [2^(bits−1), 2^bits)."""
    return [_random_prime(rng, bits, odd_roots) for _ in range(count)]


def _random_prime(rng: Random, bits: int, odd_roots: Sequence[int]) -> int:
    """Rejection sampling: every admissible prime is equally likely."""
    while True:
        candidate = rng.randrange(1 << (bits - 1), 1 << bits)
        if candidate % 4 != 3 or any(candidate % q == 1 for q in odd_roots):
            continue
        if sympy.isprime(candidate):
            return candidate


def log2_prime_count(bits: int, odd_roots: Sequence[int] = ()) -> float:
    """A lower estimate of log₂ of the number of admissible primes in [2^(bits−1), 2^bits).

    π(2x) − π(x) > 3x / (5 log(2x)) for x ≥ 21 (Rosser and Schoenfeld 1962, corollary 3), spread
    evenly over residue classes (Dirichlet), of which half the classes modulo 4 and all but one of the
    q − 1 modulo q are admitted; the 3/5 is far below the density 1 and covers the unevenness.
    """
    log2 = (bits - 1) + math.log2(3 / 5) - math.log2(bits * math.log(2)) - 1
    return log2 + sum(math.log2((q - 2) / (q - 1)) for q in odd_roots)
