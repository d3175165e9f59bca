"""A tactic bounds the chance of an error of what it calls tested; without a bound the verdict is weaker."""

import numpy as np
import pytest
from sympy import Symbol

import symad
from symad.verification import decide
from symad.verification.accept import TEST, Verdict

z = Symbol("z", real=True)


@pytest.mark.parametrize(
    ("told", "status"),
    [({}, "measured"), ({"log2_bound": -20.0}, "measured"), ({"log2_bound": -64.0}, "tested")],
)
def test_without_a_small_bound_nothing_is_tested(monkeypatch, told, status):
    def tactic(goals):
        return {k: Verdict(np.full((), TEST, dtype=object), "by chance", **told) for k in goals.open}

    monkeypatch.setattr(decide, "TACTICS", (tactic,))
    entry = symad.equal(z**2 - 1, (z - 1) * (z + 1)).entries[0]
    assert entry.status == status
    assert entry.claim == "by chance"
    assert symad.equal(z**2, z**3).status == "refuted"
