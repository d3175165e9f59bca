"""Monte Carlo means: exact expectations within the stated error, and intervals with the stated coverage."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import EvaluationError, ShapeError
from symad.functions import fold_in, key, randn
from symad.models.generative.sampling import location_scale
from symad.numeric.sampling.expectation import expectation

w, z = sp.symbols("w z", real=True)


def test_a_known_expectation():
    """E exp(w Z) = exp(w²/2), with variance exp(2w²) − exp(w²)."""
    found = expectation(sp.exp(w * z), {z: randn(1, 40_000)}, data={w: 0.5})
    assert abs(found.mean - np.exp(0.125)) < 4 * found.error
    assert found.error == pytest.approx(np.sqrt((np.exp(0.5) - np.exp(0.25)) / 40_000), rel=0.05)
    assert "± " in str(found)


@pytest.mark.thorough
def test_the_error_covers():
    """Two standard errors hold the mean in about 95 of 100 repetitions."""
    found = [expectation(z**2, randn(fold_in(key(3), k), 500)) for k in range(200)]
    assert 178 <= sum(abs(e.mean - 1) < 2 * e.error for e in found) <= 198


def test_the_gradient_of_an_expectation_by_location_and_scale():
    """∂/∂μ E X² = 2μ and ∂/∂σ E X² = 2σ for X = μ + σ Z: the mean of exact derivatives."""
    mu, sigma = sp.symbols("mu sigma", real=True)
    slopes = symad.gradient(location_scale(mu, sigma, z) ** 2, (mu, sigma))
    assert len(slopes.outputs) == 2
    for k, exact in enumerate((3.0, 4.0)):
        part = symad.trace(symad.to_sympy(slopes)[k], slopes.inputs)
        found = expectation(part, {z: randn(4, 20_000)}, data={mu: 1.5, sigma: 2.0})
        assert abs(found.mean - exact) < 4 * found.error


def test_arrays():
    n = sp.Symbol("n", integer=True, positive=True)
    graph = symad.trace(lambda x, a: x * x + a, [(n,), (n,)])
    found = expectation(graph, {"x": randn(5, (5000, 3))}, data={"a": np.arange(3.0)})
    assert found.mean.shape == (3,)
    assert np.all(np.abs(found.mean - [1, 2, 3]) < 4 * found.error)


def test_bad_calls():
    with pytest.raises(EvaluationError, match="two samples at least, not 1"):
        expectation(z, [1.0])
    with pytest.raises(EvaluationError, match="samples of w, z: give a mapping"):
        expectation(w * z, [1.0, 2.0])
    with pytest.raises(EvaluationError, match="needs values for w"):
        expectation(w * z, {z: [1.0, 2.0]})
    with pytest.raises(EvaluationError, match="one output"):
        expectation([z, w], {z: [1.0, 2.0]}, data={w: 1})
    with pytest.raises(ShapeError, match=r"z \(3,\), w \(2,\)"):
        expectation(w * z, {z: [1.0, 2.0, 3.0], w: [1.0, 2.0]})
