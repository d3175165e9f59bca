"""Certificates of comparisons: pairs of nodes, decided by the tactics, accepted, and written down."""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import mpmath
import numpy as np
import sympy

from symad.core.claims import Proof, regrouped
from symad.core.dims import format_shape, same_shape
from symad.core.graph import rebuild
from symad.core.identifiers import brief, listed
from symad.errors import ShapeError
from symad.guests import guest
from symad.ops.basic.sources import constant, inputs_in
from symad.verification.accept import Pair, accept
from symad.verification.budget import Budget, Meter, in_time
from symad.verification.certificate.certificate import Certificate, Comparison
from symad.verification.proof.with_proofs import Replayed, with_proofs
from symad.verification.solving import Goals, looked_at, solve
from symad.verification.tactics import TACTICS
from symad.verification.values.labels import parameters
from symad.verification.values.point_set import is_zero
from symad.verification.values.ranges import given_numbers
from symad.verification.without_values import MAX_ELEMENTS, largest
from symad.version import __version__


def decide(
    title: str,
    comparisons: Sequence[Comparison],
    seed: int | None = None,
    budget: Budget | None = None,
    meter: Meter | None = None,
    proofs: Sequence[Proof] = (),
) -> Certificate:
    """A certificate of some comparisons.

    Args:
        title: the title of the certificate.
        comparisons: graphs claimed to be equal; they may have symbolic dimensions.
        seed: the seed of the random primes and points; a new one by default, always recorded.
        budget: limits; the defaults are meant for interactive use.
        meter: a meter that counts the work already.
        proofs: proofs about these comparisons: what the checker accepts of them needs no search.

    Raises:
        ShapeError: two outputs that are compared have different shapes.
    """
    start = time.monotonic()
    seed = seed_of(seed)
    budget = budget or Budget()
    meter = meter or Meter(budget)
    comparisons = [part for whole in comparisons for part in one_by_one(whole)]
    pairs = dict(enumerate(pair for k, c in enumerate(comparisons) for pair in pairs_of(k, c)))
    known = Replayed(comparisons, budget)
    refused = known.replay(proofs)
    goals = Goals(pairs, seed, meter, TACTICS, known)
    solve(goals)
    seen = looked_at(goals)
    empty = [k for k, pair in pairs.items() if 0 in pair.left.shape]
    left_out = empty if len(empty) < len(pairs) else []  # what is claimed of others does not depend on them
    entries = [[] if k in left_out else accept(pair, goals.found[k], seen[k]) for k, pair in pairs.items()]
    notes = [f"nothing is claimed of what has no elements: {listed(pairs[k].name for k in left_out)}"]
    made = Certificate(
        title, (), tuple(comparisons), seed, goals.primes, versions(), 0.0, int(meter.steps),
        (*budget.notes, *refused, *notes[: len(left_out)]),
    )  # fmt: skip
    made = with_proofs(made, entries, known)
    return replace(made, seconds=time.monotonic() - start)


def seed_of(seed: int | None) -> int:
    """The seed, or a new one."""
    if seed is not None and not hasattr(seed, "__index__"):
        several = "; several inputs go in one list, wrt=[...]" if isinstance(seed, sympy.Basic) else ""
        raise TypeError(f"seed is an int, or None for a new one, not {brief(seed)}{several}")
    return secrets.randbits(63) if seed is None else int(seed)


def versions() -> Mapping[str, str]:
    """The versions of the packages that a certificate depends on."""
    return {
        "symad": __version__,
        "sympy": sympy.__version__,
        "numpy": np.__version__,
        "mpmath": mpmath.__version__,
        "python": platform.python_version(),
    }


def pairs_of(number: int, comparison: Comparison) -> list[Pair]:
    """The outputs of a comparison; inputs that are a number by assumption are so in all of it."""
    groups, fixed = comparison.groups, parameters(comparison.derivative, comparison.left.input_nodes)
    known = {n: constant(0) for n in inputs_in(chain(*groups)) if is_zero(n)}
    known |= given_numbers(comparison.domain, fixed)
    if known:
        groups = tuple(regrouped(rebuild(list(chain(*groups)), known), groups))
    (left, right, function, *_, domain), made = groups, list[Pair]()
    if comparison.derivative is not None and comparison.derivative.kind == "value":
        function = ()  # each output is its own: where others have values does not matter
    for output, (name, a, b) in enumerate(zip(comparison.names, left, right, strict=True)):
        if not same_shape(a.shape, b.shape):
            raise ShapeError(
                f"{comparison.title}: {name} has shape {format_shape(a.shape)} in {comparison.left_name}, "
                f"but {format_shape(b.shape)} in {comparison.right_name}"
            )
        made.append(Pair(comparison, name, a, b, (number, output), function, domain[0] if domain else None))
    return made


def one_by_one(comparison: Comparison) -> list[Comparison]:
    """A comparison for each output if one of them is large: proofs write all outputs of a comparison out."""
    outputs = (*comparison.left.output_nodes, *comparison.right.output_nodes)
    if len(comparison.names) == 1 or largest(outputs) <= MAX_ELEMENTS:
        return [comparison]
    return [comparison.alone(k) for k in range(len(comparison.names))]


# ---- after a refutation -----------------------------------------------------------------------------


def named_formula(certificate: Certificate, meter: Meter, *claim: object) -> Certificate:
    """The certificate of a formula with the names of its mistakes; the claim as the guest takes it."""
    return _named("named_formula", certificate, meter, claim)


def named_program(certificate: Certificate, meter: Meter, *claim: object) -> Certificate:
    """The certificate of a program with the names of its mistakes; the claim as the guest takes it."""
    return _named("named_program", certificate, meter, claim)


def _named(how: str, certificate: Certificate, meter: Meter, claim: tuple[object, ...]) -> Certificate:
    """With the names that are found in the time that is left, if there is a limit of it."""
    mistakes = guest("mistakes") if certificate.status == "refuted" else None
    if mistakes is None:
        return certificate
    made: Certificate = in_time(meter, lambda: getattr(mistakes, how)(certificate, *claim), certificate)
    return made
