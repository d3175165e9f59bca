"""The verifier under mutations: a few of the mutants of the benchmark, also of other symbols."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest
import sympy

PATH = Path(__file__).resolve().parents[3] / "benchmarks" / "verification" / "mutation_testing.py"


@pytest.fixture
def mutations(monkeypatch):
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("mutation_testing", PATH)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutation_testing", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
def test_changed_derivatives_are_refuted_and_right_ones_are_not(mutations):
    tally = mutations.run(30, 6, 1)
    assert sum(tally.originals.values()) > 20 and not tally.originals["refuted"]
    assert sum(tally.different.values()) > 100
    assert not tally.faults


def test_a_mutant_of_another_symbol_is_refuted(mutations):
    x, p = mutations.x, mutations.p
    assert mutations._verdict(x**2, x, 2 * x, 0).status == "proved"
    assert mutations._verdict(x**2, x, 2 * p, 0).status == "refuted"


def test_points_of_small_regions_are_looked_at_by_mpmath(mutations):
    x, near = mutations.x, sympy.Rational(1, 10**8)
    sides = sympy.sign(x), sympy.sign(x + near)
    assert mutations.differ(*sides, random.Random(0)) is False
    assert mutations.differ_at(*sides, {"x": "-1/1000000000"})
    assert not mutations.differ_at(*sides, {"x": "1/2"})
