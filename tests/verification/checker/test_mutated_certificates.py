"""Certificates changed at random: a named error or a verdict in a short time; no false claim is proved."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import symad
from symad.errors import SymadError
from symad.verification.certificate.certificate import Comparison
from tests.verification.checker.claims_at_points import holds
from tests.verification.programs.mutants import MADE, mutants

pytestmark = pytest.mark.thorough

QUICK = (
    "gradient",
    "equal",
    "refuted",
    "along",
    "jacobian",
    "sigmoid",
    "choice",
    "layer",
    "integer",
    "where",
)
SECONDS, MEGABYTES = 5.0, 200
"""What one changed certificate may take, of CPU and memory. On a free machine all take less than 2 s; where
processes share a core this doubles."""


def about_scalars(comparison: Comparison) -> bool:
    claim = comparison.derivative
    both = comparison.left, comparison.right
    nodes = [n for graph in both for n in (*graph.input_nodes, *graph.output_nodes)]
    return claim is not None and claim.kind in ("value", "gradient") and not any(n.shape for n in nodes)


def check(text: str, did: str, folder: Path) -> str:
    """The certificate is refused or judged, and what is still proved of scalars is true."""
    try:
        read = symad.Certificate.from_json(text)
        assert str(read) and read.to_json()
        again = read.recheck(seed=1)
    except SymadError:
        return "refused"
    assert str(again) and again.to_json()
    if again.status == "proved":
        rng = Random(1)
        for comparison in filter(about_scalars, again.comparisons):
            symbols = [node.op.symbol for node in comparison.left.input_nodes]
            for _ in range(2):
                point = {str(s): 2 if s.is_integer else rng.uniform(0.3, 0.9) for s in symbols}
                assert holds(comparison, point), did
    with suppress(SymadError):
        read.to_coq(folder / "f.v")
    return again.status


@pytest.fixture(autouse=True)
def without_older_objects() -> Iterator[None]:
    """To collect what other tests left takes seconds in a long process; no certificate is to blame for it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def run(texts: dict[str, str], count: int, seed: int, folder: Path) -> None:
    said = []
    for did, text in mutants(texts, count, seed):
        start, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            said.append(check(text, did, folder))
        except Exception as problem:
            raise AssertionError(f"seed {seed}, {did}: {type(problem).__name__}: {problem}") from problem
        assert time.process_time() - start < SECONDS, did
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES * 1024, did
    assert said.count("refused") > count / 4 and said.count("proved") > count / 20
    assert "refuted" in said


def test_changed_certificates_are_refused_or_judged_soon(tmp_path: Path) -> None:
    run({name: MADE[name]().to_json() for name in QUICK}, 200, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_more_changed_certificates(seed: int, tmp_path: Path) -> None:
    run({name: made().to_json() for name, made in MADE.items()}, 1000, seed, tmp_path)
