"""Branches of a long Piecewise that are not taken change neither the value nor any derivative."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.transforms.branch_masks import use_conditions

x = sp.Symbol("x", real=True)


@pytest.mark.sample(4, without=("c-40",))
@pytest.mark.parametrize("pieces", [1, 2, 8, 9, 40])
@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
def test_no_nan_from_branches_not_taken(pieces: int, backend: str) -> None:
    chain = sp.Piecewise(*[(k * sp.log(x), x > k) for k in range(pieces, 0, -1)], (0, True))
    total = sum(sp.Piecewise((k * sp.log(x), x > k), (0, True)) for k in range(1, pieces + 1))
    points = np.array([0.0, -1.0, 0.5, 1.5, pieces + 0.5])
    for f, weight in (
        (chain, lambda t: np.clip(np.ceil(t) - 1, 0, pieces)),
        (total, lambda t: sum(k for k in range(1, pieces + 1) if t > k)),
    ):
        weights = np.array([float(weight(t)) for t in points])
        safe = np.where(points > 0, points, 1.0)
        for derivative, right in (
            (symad.gradient(f, x), weights / safe),
            (symad.gradient(symad.gradient(f, x), x), -weights / safe**2),
        ):
            np.testing.assert_allclose([derivative(t) for t in points], right, rtol=1e-14)
            np.testing.assert_allclose(lower(derivative, backend)(points), right, rtol=1e-14)


def test_a_value_of_all_branches_has_no_condition() -> None:
    f = sp.Piecewise(*[(k * sp.exp(x), x > k) for k in range(20, 0, -1)], (sp.exp(x), True))
    graph = symad.trace(f)
    conditions = use_conditions(graph.nodes, graph.output_nodes)
    (exponential,) = [n for n in graph.nodes if getattr(n.op, "head", None) is sp.exp]
    assert exponential not in conditions
