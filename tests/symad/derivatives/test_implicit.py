"""Implicit differentiation against closed-form solutions, in every mode and at higher orders."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower

x, y, a, b = sp.symbols("x y a b", positive=True)


def test_square_root_by_newton() -> None:
    solution = symad.implicit(x**2 - a, x)
    assert solution(2.0, 1.0) == pytest.approx(np.sqrt(2.0), rel=1e-15)
    assert symad.gradient(solution, a)(2.0, 1.0) == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives_of_a_root(mode: str) -> None:
    solution = symad.implicit(x**2 - a * b, x, (a, b))
    exact = sp.hessian(sp.sqrt(a * b), (a, b)).subs({a: 2, b: 3})
    values = symad.hessian(solution, (a, b), mode=mode)(2.0, 3.0, 1.0)
    assert np.allclose(values, np.array(exact.evalf(20).tolist(), dtype=float), rtol=1e-13)


def test_third_derivative() -> None:
    solution = symad.implicit(x**3 - a, x)
    third = symad.gradient(symad.gradient(symad.gradient(solution, a), a), a)
    exact = float(sp.cbrt(a).diff(a, 3).subs(a, 2).evalf(20))
    assert float(third(2.0, 1.0)) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_system_of_two_equations(mode: str) -> None:
    equations = [x + y - a, x * y - b]
    solution = symad.implicit(equations, (x, y), (a, b))
    root = sp.sqrt(a**2 - 4 * b)
    closed = sp.Matrix([(a + root) / 2, (a - root) / 2])
    point = {a: 5, b: 3}
    assert np.allclose(solution(5.0, 3.0, 4.0, 1.0), [float(c.subs(point)) for c in closed], rtol=1e-14)
    exact = np.array(closed.jacobian((a, b)).subs(point).evalf(20).tolist(), dtype=float)
    jacobian = symad.jacobian(solution, (a, b), mode=mode)
    assert np.allclose(jacobian(5.0, 3.0, 4.0, 1.0), exact, rtol=1e-13)


def test_linear_system_with_matrix_parameters() -> None:
    m, v, z = sp.MatrixSymbol("M", 3, 3), sp.MatrixSymbol("v", 3, 1), sp.MatrixSymbol("z", 3, 1)
    solution = symad.implicit(m * z - v, z, (m, v))
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=(3, 1))
    assert np.allclose(solution(matrix, right, np.zeros((3, 1))), np.linalg.solve(matrix, right), rtol=1e-13)
    inverse = np.linalg.inv(matrix)
    jacobian = symad.jacobian(solution, (m, v))(matrix, right, np.zeros((3, 1)))
    assert np.allclose(jacobian[:, 9:], inverse, rtol=1e-12)
    assert np.allclose(jacobian[:, :9], -np.kron(inverse, (inverse @ right).T), rtol=1e-12)


def test_argmin_by_its_optimality_condition() -> None:
    """argmin_x (x − a)² + b x²  =  a/(1 + b)."""
    condition = symad.gradient((x - a) ** 2 + b * x**2, x)
    solution = symad.implicit(condition, x, (a, b))
    exact = [float(d.subs({a: 2, b: 3})) for d in ((a / (1 + b)).diff(a), (a / (1 + b)).diff(b))]
    assert np.allclose(symad.gradient(solution, (a, b))(2.0, 3.0, 0.0), exact, rtol=1e-14)


def test_fixed_point_at_fifty_digits() -> None:
    solution = symad.implicit(x - sp.cos(a * x), x)
    with mpmath.workdps(50):
        value = solution(mpmath.mpf(1), mpmath.mpf("0.7"))
        assert abs(value - mpmath.findroot(lambda t: t - mpmath.cos(t), 0.7)) < mpmath.mpf(10) ** -45
        slope = symad.gradient(solution, a)(mpmath.mpf(1), mpmath.mpf("0.7"))
        exact = -value * mpmath.sin(value) / (1 + mpmath.sin(value))
        assert abs(slope - exact) < mpmath.mpf(10) ** -44


def test_a_users_solver_is_called_and_not_differentiated() -> None:
    calls = []

    def bisect(guess: np.ndarray, target: float) -> np.ndarray:
        calls.append(target)
        low, high = 0.0, 10.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if middle**2 < target else (low, middle)
        return np.array([low])

    solution = symad.implicit(x**2 - a, x, solver=bisect)
    assert symad.gradient(solution, a)(9.0, 1.0) == pytest.approx(1 / 6, rel=1e-12)
    assert calls == [9.0]


def test_batches_of_problems() -> None:
    solution = symad.vmap(symad.implicit(x**2 - a, x), in_axes=(0, None))
    assert np.allclose(solution(np.array([1.0, 4.0, 9.0]), 1.0), [1, 2, 3], rtol=1e-14)


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(symad.errors.ShapeError, match="1 equations for 2 unknowns"):
        symad.implicit(x + y - a, (x, y))
    with pytest.raises(symad.errors.EvaluationError, match=r"did not converge|singular"):
        symad.implicit(x**2 + a, x)(1.0, 0.5)


@pytest.mark.parametrize("derived", [lambda g: g, symad.jacobian, lambda g: symad.hessian(g, (a, b))])
def test_generated_newton(derived: object) -> None:
    graph = derived(symad.implicit(x**3 + a * x - b, x, (a, b)))  # type: ignore[operator]
    assert np.allclose(lower(graph)(2.0, 5.0, 1.0), graph(2.0, 5.0, 1.0), rtol=1e-12)


def test_newton_in_single_precision() -> None:
    """The tolerance is one that float32 can reach."""
    kernel = lower(symad.implicit(x**3 + a * x - 2, x), dtype="float32")
    found = kernel(0.7, 1.0)
    roots = np.roots([1, 0, 0.7, -2])
    assert np.asarray(found).dtype == np.float32
    assert float(found) == pytest.approx(float(roots[roots.imag == 0].real[0]), rel=1e-6)


def test_batches_of_batches_of_roots_and_their_derivatives():
    """y³ + y = a b for all pairs of a and b: y' = b/(3y² + 1) in a, by hand."""
    root = symad.implicit(symad.trace(lambda y, a, b: y**3 + y - a * b, [(), (), ()]), "y")
    table = symad.vmap(symad.vmap(root, in_axes=(None, 0, None)), in_axes=(0, None, None))
    loss = symad.trace(lambda a, b: (table(a, b, 0.5) ** 2).sum(), [(2,), (3,)])
    a, b = np.array([1.0, -2.0]), np.array([0.5, 2.0, 3.0])
    y = np.array([[np.roots([1, 0, 1, -p * q]) for q in b] for p in a])
    y = y[np.isreal(y)].real.reshape(2, 3)
    rate = 2 * y / (3 * y**2 + 1)
    for f in (loss, lower(loss)):
        assert np.isclose(f(a, b), (y**2).sum(), rtol=1e-13)
    for g in (symad.gradient(loss), symad.gradient(loss, mode="forward"), lower(symad.gradient(loss))):
        found = g(a, b)
        np.testing.assert_allclose(found[0], rate @ b, rtol=1e-12)
        np.testing.assert_allclose(found[1], a @ rate, rtol=1e-12)
    second = (2 / (3 * y**2 + 1) ** 2 - 12 * y**2 / (3 * y**2 + 1) ** 3) @ b**2
    np.testing.assert_allclose(np.diag(symad.hessian(loss, 0)(a, b)), second, rtol=1e-11)
