"""Location-scale, inversion, and the leapfrog map: proofs of the identities that sampling uses."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import SymadError
from symad.models.generative.sampling import (
    force_of,
    hamiltonian,
    langevin_log_ratio,
    leapfrog,
    location_scale,
    quantile,
)

x, y = Q = sp.symbols("x y", real=True)
P = sp.symbols("p1 p2", real=True)
h = sp.Symbol("h", positive=True)
u = sp.Symbol("u", positive=True)
BANANA = -(x**2) / 2 - (y - x**2) ** 2 / 3
DENSITIES = {"quartic": -(x**4) / 4 - x**2 * y**2 - y**2 / 2, "banana": BANANA}


def proved(a, b):
    return symad.equal(a, b).status == "proved"


@pytest.mark.thorough
@pytest.mark.parametrize("name", DENSITIES)
def test_leapfrog_keeps_volume(name):
    q, p = leapfrog(force_of(DENSITIES[name], Q), sp.Matrix(Q), sp.Matrix(P), h)
    jacobian = sp.Matrix([*q, *p]).jacobian([*Q, *P])
    assert proved(jacobian.det(), sp.Integer(1))


def test_leapfrog_keeps_volume_for_every_force():
    """By the chain rule, with the force's Jacobians A at the start and B at the end any matrices."""
    n = 2
    a, b = (sp.Matrix(n, n, sp.symbols(f"{k}:{n * n}", real=True)) for k in "ab")
    one, zero = sp.eye(n), sp.zeros(n)

    def block(rows):
        return sp.Matrix(sp.BlockMatrix(rows))

    kick_a, drift, kick_b = (
        block([[one, zero], [h / 2 * a, one]]),
        block([[one, h * one], [zero, one]]),
        block([[one, zero], [h / 2 * b, one]]),
    )
    assert proved((kick_b * drift * kick_a).det(), sp.Integer(1))


@pytest.mark.parametrize("leaps", [1, 2])
def test_leapfrog_is_undone_by_turning_the_momentum(leaps):
    force = force_of(-(x**4) / 4 - x**2, [x])
    q, p = leapfrog(force, sp.Matrix([x]), sp.Matrix([P[0]]), h, leaps)
    back, turned = (v.xreplace({x: sp.Symbol("a"), P[0]: sp.Symbol("b")}) for v in (q, p))
    values = {sp.Symbol("a"): q[0], sp.Symbol("b"): -p[0]}
    if leaps == 1:
        assert proved(back[0].xreplace(values), x)
        assert proved(turned[0].xreplace(values), -P[0])
    found = leapfrog(lambda v: -(v**3) - 2 * v, *map(float, (0.7, -0.3)), 0.1, leaps)
    again = leapfrog(lambda v: -(v**3) - 2 * v, found[0], -found[1], 0.1, leaps)
    assert again == pytest.approx((0.7, 0.3), rel=1e-14)


def test_leapfrog_is_undone_for_every_force():
    g = sp.Function("g")

    def force(v):
        return sp.Matrix([g(sp.expand(v[0]))])

    q, p = leapfrog(force, sp.Matrix([x]), sp.Matrix([P[0]]), h)
    back, turned = leapfrog(force, q, -p, h)
    assert sp.expand(back[0] - x) == 0
    assert sp.expand(turned[0] + P[0]) == 0


def test_joined_steps_are_single_steps():
    force = force_of(BANANA, Q)
    start = sp.Matrix([sp.Rational(1, 3), 1]), sp.Matrix([1, sp.Rational(-1, 2)])
    once = leapfrog(force, *leapfrog(force, *start, sp.Rational(1, 5)), sp.Rational(1, 5))
    assert leapfrog(force, *start, sp.Rational(1, 5), 2) == once


def test_energy_error_of_one_step_is_of_third_order():
    log_density = -(x**4) / 4
    q, p = leapfrog(force_of(log_density, [x]), sp.Matrix([x]), sp.Matrix([P[0]]), h)
    change = hamiltonian(log_density.xreplace({x: q[0]}), p) - hamiltonian(log_density, sp.Matrix([P[0]]))
    series = sp.Poly(sp.expand(change), h)
    assert [series.coeff_monomial(h**k) for k in (0, 1, 2)] == [0, 0, 0]
    assert series.coeff_monomial(h**3) != 0


@pytest.mark.parametrize("log_density", [-(x**4) / 4 - x, -(x**2) / 2 - sp.exp(x)])
def test_langevin_is_one_leapfrog_step(log_density):
    """Its proposal is q' and its Metropolis–Hastings ratio exp(−ΔH), identically in x, p and h."""
    force = force_of(log_density, [x])
    q, p = leapfrog(force, sp.Matrix([x]), sp.Matrix([P[0]]), h)
    assert proved(q[0], x + h**2 / 2 * force([x])[0] + h * P[0])
    error = hamiltonian(log_density.xreplace({x: q[0]}), p) - hamiltonian(log_density, sp.Matrix([P[0]]))
    assert symad.equal(langevin_log_ratio(log_density, [x], q, h), -error).status in ("proved", "tested")


# ---- location and scale, inversion ---------------------------------------------------------------


def test_location_scale_has_exact_derivatives():
    mu, sigma, z = sp.symbols("mu sigma z", real=True)
    sample = location_scale(mu, sigma, z)
    assert symad.verify(sample, (mu, sigma), gradient=(sp.Integer(1), z)).status == "proved"


rate = sp.Symbol("rate", positive=True)
CLOSED = {
    "exponential": (1 - sp.exp(-rate * x), -sp.log(1 - u) / rate),
    "logistic": (1 / (1 + sp.exp(-x)), sp.log(u / (1 - u))),
    "Cauchy": (sp.atan(x) / sp.pi + sp.Rational(1, 2), sp.tan(sp.pi * (u - sp.Rational(1, 2)))),
    "Gumbel": (sp.exp(-sp.exp(-x)), -sp.log(-sp.log(u))),
    "normal": (sp.erf(x / sp.sqrt(2)) / 2 + sp.Rational(1, 2), sp.sqrt(2) * sp.erfinv(2 * u - 1)),
    "Rayleigh": (1 - sp.exp(-(sp.Symbol("r", positive=True) ** 2) / 2), sp.sqrt(-2 * sp.log(1 - u))),
}


@pytest.mark.parametrize("name", CLOSED)
def test_quantiles_that_sympy_can_solve_for(name):
    cdf, known = CLOSED[name]
    (variable,) = cdf.free_symbols - {rate}  # r of Rayleigh's law is positive: the other root is refused
    found = quantile(cdf, variable, u)
    for level in (0.03, 0.5, 0.97):
        at = {u: level, rate: 2}
        assert float(found.subs(at)) == pytest.approx(float(known.subs(at)), rel=1e-12, abs=1e-14)


@pytest.mark.thorough
def test_no_closed_quantile():
    with pytest.raises(SymadError, match="finds no inverse"):
        quantile((sp.erf(x) + sp.tanh(x)) / 4 + sp.Rational(1, 2), x, u)


def test_samples_by_inversion_are_differentiated_implicitly():
    """A mixture of two normal laws: ∂x/∂w = −F_w/F_x at fixed u, by the implicit function theorem."""
    w = sp.Symbol("w", positive=True)

    def normal(z):
        return sp.erf(z / sp.sqrt(2)) / 2 + sp.Rational(1, 2)

    cdf = w * normal(x) + (1 - w) * normal(x - 3)
    draw = symad.implicit(cdf - u, x, (u, w))
    point, slope = draw(0.3, 0.4, 1.0), symad.gradient(draw, w)(0.3, 0.4, 1.0)
    at = {x: point, w: 0.4}
    assert float(cdf.subs(at)) == pytest.approx(0.3, rel=1e-12)
    assert slope == pytest.approx(float((-cdf.diff(w) / cdf.diff(x)).subs(at)), rel=1e-10)


def test_the_functions_run_on_arrays():
    """The formula that was proved is the code that the samplers run."""
    q, p = np.array([[0.3, -0.2]]), np.array([[0.5, 1.0]])
    slope = symad.gradient(symad.trace(BANANA, Q))
    ours = leapfrog(lambda v: np.array([slope(*v[0])]), q, p, 0.1, 3)
    exact = leapfrog(force_of(BANANA, Q), sp.Matrix(q[0]), sp.Matrix(p[0]), 0.1, 3)
    assert np.allclose(ours[0][0], [float(v) for v in exact[0]], rtol=1e-13)
    assert hamiltonian(np.array([0.0]), p).tolist() == [0.625]
