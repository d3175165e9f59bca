"""`lower` takes the equations of Kane's and Lagrange's methods as they are: values, Jacobians, solutions.

The references are SymPy's own: numbers substituted into the matrices and into their `diff`, to 30 digits.
"""

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

import symad
from symad.numeric import lower
from tests.numeric.against_sympy.mechanics_points import numbers, point_of
from tests.numeric.against_sympy.mechanics_systems import MORE, SYSTEMS, t

ALL = [*SYSTEMS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]


def made(name):
    return ({**SYSTEMS, **MORE})[name]()


def exact(expression, point):
    """Derivatives of coordinates first: q(t) occurs in them."""
    order = sorted(point, key=lambda s: -isinstance(s, sp.Derivative))
    for symbol in order:
        expression = expression.subs(symbol, point[symbol])
    return np.array(sp.Matrix(expression).evalf(30).tolist(), dtype=float)


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", ALL)
def test_the_matrices_are_sympys_and_so_is_the_jacobian(name):
    system = made(name)
    point = point_of(system)
    inputs = [system.q, system.u, system.others] if system.others else [system.q, system.u]
    values = [numbers(point, part) for part in inputs]
    kernel = lower((system.M, system.F), inputs=inputs)
    M, F = kernel(*values)
    np.testing.assert_allclose(M, exact(system.M, point), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(np.ravel(F), exact(system.F, point).ravel(), rtol=1e-10, atol=1e-11)
    states = [*system.q, *system.u]
    slope = lower(symad.jacobian(system.F, states, inputs=inputs))(*values)
    plain = dict(zip(point, sp.symbols(f"z:{len(point)}"), strict=True))
    order = sorted(plain, key=lambda s: -isinstance(s, sp.Derivative))
    replaced = system.F
    for symbol in order:
        replaced = replaced.subs(symbol, plain[symbol])
    reference = replaced.jacobian([plain[s] for s in states])
    at = {plain[s]: value for s, value in point.items()}
    np.testing.assert_allclose(slope, exact(reference, at), rtol=1e-10, atol=1e-10)


@pytest.mark.thorough
def test_a_double_pendulum_keeps_its_energy():
    system = made("double pendulum by Kane")
    rhs = system.M.LUsolve(system.F)
    states = [*system.q, *system.u]
    k = lower(rhs, inputs=[t, states, system.others])
    values = {"g": 9.8, "l0": 1.0, "l1": 0.7, "m0": 1.0, "m1": 0.5}
    others = np.array([values[str(s)] for s in system.others])
    start = np.array([0.4, 0.9, 0.0, 0.0])
    J = lower(symad.jacobian(rhs, states, inputs=[t, states, system.others]))
    found = solve_ivp(
        lambda time, x: k(time, x, others), (0, 3), start, method="Radau",
        jac=lambda time, x: J(time, x, others),
        rtol=1e-9, atol=1e-10,
    )  # fmt: skip
    assert found.success

    def energy(x):
        a, b, da, db = x
        g, l0, l1, m0, m1 = (values[name] for name in ("g", "l0", "l1", "m0", "m1"))
        heights = -l0 * np.cos(a), -l0 * np.cos(a) - l1 * np.cos(b)
        v0 = l0**2 * da**2
        v1 = v0 + l1**2 * db**2 + 2 * l0 * l1 * da * db * np.cos(a - b)
        return (m0 * v0 + m1 * v1) / 2 + g * (m0 * heights[0] + m1 * heights[1])

    assert abs(energy(found.y[:, -1]) - energy(start)) < 1e-6


def test_a_model_is_linearised_about_its_rest():
    system = made("cart with 2 links")
    states = [*system.q, *system.u]
    rest = dict.fromkeys(states, 0)
    point = point_of(system) | rest
    inputs = [states, system.others]
    values = [numbers(point, part) for part in inputs]
    M = lower(system.M, inputs=inputs)(*values)
    A = lower(symad.jacobian(system.F, states, inputs=inputs))(*values)
    plain = dict(zip(point, sp.symbols(f"z:{len(point)}"), strict=True))
    reference = system.F.subs(plain).jacobian([plain[s] for s in states])
    expected = exact(reference, {plain[s]: v for s, v in point.items()})
    np.testing.assert_allclose(np.linalg.solve(M, A), np.linalg.solve(M, expected), rtol=1e-10, atol=1e-10)
