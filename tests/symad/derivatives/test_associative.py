"""Associative scans against the recurrence run step by step; derivatives against those of a scan."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from sympy.tensor.array.expressions import ArraySymbol

import symad
from symad import functions
from symad.derivatives.hessian import MODES
from symad.errors import ShapeError
from symad.numeric import lower
from tests.counting import calls

T, n = sp.symbols("T n", integer=True, positive=True)
RNG = np.random.default_rng(0)


def one_by_one(a, b, h, reverse=False):
    """The definition."""
    found = []
    for a_t, b_t in zip(*((v[::-1] for v in (a, b)) if reverse else (a, b)), strict=True):
        h = (a_t @ h if a_t.ndim > b_t.ndim else a_t * h) + b_t
        found.append(h)
    return np.stack(found[::-1] if reverse else found)


def arrays(steps, matrices):
    a = RNG.uniform(-0.9, 0.9, (steps, 3, 3) if matrices else (steps, 3))
    return a, RNG.normal(size=(steps, 3)), RNG.normal(size=3)


def symbols(length, matrices):
    shapes = (length, 3, 3) if matrices else (length, 3), (length, 3), (3,)
    return [ArraySymbol(name, shape) for name, shape in zip("abh", shapes, strict=True)]


def joined(length, matrices, reverse=False):
    return symad.trace(
        lambda a, b, h: functions.affine_scan(a, b, h, reverse=reverse), symbols(length, matrices)
    )


def stepped(length, matrices, reverse=False):
    def f(a, b, h):
        if reverse:
            a, b = a[::-1], b[::-1]
        y = functions.scan(lambda c, x: (x[0] @ c if matrices else x[0] * c) + x[1], h, (a, b))
        return y[::-1] if reverse else y

    return symad.trace(f, symbols(length, matrices))


@pytest.mark.parametrize("matrices", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8, 13, 100])
def test_affine_steps(steps, reverse, matrices):
    values = arrays(steps, matrices)
    expected = one_by_one(*values, reverse)
    graph = joined(T, matrices, reverse)
    for found in (graph(*values), lower(graph)(*values), functions.affine_scan(*values, reverse=reverse)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("matrices", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_derivatives_are_those_of_the_scan(matrices, reverse, mode):
    values = arrays(5, matrices)
    found = symad.jacobian(joined(5, matrices, reverse), mode=mode)(*values)
    expected = symad.jacobian(stepped(5, matrices, reverse), mode="forward")(*values)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_hessians(mode):
    def cubed(make):
        inner = make(4, False)
        return symad.trace(lambda a, b, h: np.sum(inner(a, b, h) ** 3), symbols(4, False))

    values = arrays(4, False)
    found = symad.hessian(cubed(joined), mode=mode)(*values)
    expected = symad.hessian(cubed(stepped))(*values)
    for row, other in zip(found, expected, strict=True):
        for f, e in zip(row, other, strict=True):
            np.testing.assert_allclose(f, e, rtol=1e-10, atol=1e-11)


def test_gradients_with_symbolic_length_have_no_loop():
    graph = symad.trace(lambda a, b, h: np.sum(functions.affine_scan(a, b, h) ** 2), symbols(T, False))
    kernel = lower(symad.gradient(graph))
    assert "for " not in kernel.source[kernel.source.index(f"def {kernel.name}(") :]
    values = arrays(9, False)
    expected = symad.gradient(
        symad.trace(
            lambda a, b, h: np.sum(functions.scan(lambda c, x: x[0] * c + x[1], h, (a, b)) ** 2),
            symbols(9, False),
        )
    )(*values)
    for f, e in zip(kernel(*values), expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-11, atol=1e-13)


PRODUCTS = {
    "sums": (lambda e, f: e + f, lambda x: np.cumsum(x, axis=0)),
    "maxima": (lambda e, f: np.maximum(e, f), lambda x: np.maximum.accumulate(x, axis=0)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("steps", [1, 2, 3, 6, 7, 16, 33])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_products(name, steps, reverse):
    combine, reference = PRODUCTS[name]
    x = ArraySymbol("x", (steps, 2))
    graph = symad.trace(lambda x: functions.associative_scan(combine, x, reverse=reverse), [x])
    values = RNG.normal(size=(steps, 2))
    expected = reference(values[::-1])[::-1] if reverse else reference(values)
    plain = functions.associative_scan(combine, values, reverse=reverse)
    for found in (graph(values), lower(graph)(values), plain):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def test_products_of_matrices_keep_their_order():
    x = ArraySymbol("x", (6, 2, 2))
    graph = symad.trace(lambda x: functions.associative_scan(lambda e, f: f @ e, x), [x])
    values = RNG.normal(size=(6, 2, 2))
    expected = [values[0]]
    for v in values[1:]:
        expected.append(v @ expected[-1])
    np.testing.assert_allclose(graph(values), expected, rtol=1e-12)
    both = symad.jacobian(graph, mode="forward")(values), symad.jacobian(graph, mode="reverse")(values)
    np.testing.assert_allclose(*both, rtol=1e-11, atol=1e-13)


def test_pairs_are_elements():
    """(a, b) joined are the affine recurrence."""

    def f(a, b):
        return functions.associative_scan(lambda e, f: (f[0] * e[0], f[0] * e[1] + f[1]), (a, b))[1]

    a, b, _ = arrays(11, False)
    graph = symad.trace(f, symbols(11, False)[:2])
    np.testing.assert_allclose(lower(graph)(a, b), one_by_one(a, b, np.zeros(3)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(f(a, b), one_by_one(a, b, np.zeros(3)), rtol=1e-12, atol=1e-14)


def test_batches():
    values = arrays(5, True)
    batched = symad.vmap(joined(5, True), (None, 0, None))
    b = np.stack([values[1], 2 * values[1]])
    expected = [one_by_one(values[0], row, values[2]) for row in b]
    np.testing.assert_allclose(batched(values[0], b, values[2]), expected, rtol=1e-12)


@pytest.mark.thorough
def test_ten_thousand_steps():
    """No statement for a step: the graph of the affine scan does not grow, the other grows by log T."""


    def kernel(steps):
        x = ArraySymbol("x", (steps, 2))
        last = symad.trace(lambda x: functions.associative_scan(np.multiply, x)[-1, 0], [x])
        return lower(symad.gradient(last))

    few, many = (len(kernel(steps).source.splitlines()) for steps in (10, 10_000))
    assert many < 6 * few
    few, many = (calls(lambda steps=steps: kernel(steps)) for steps in (11, 10_001))
    assert many < 10 * few


def test_mistakes_are_told():
    a, b, h = symbols(T, False)
    with pytest.raises(ShapeError, match=r"known length.*affine_scan takes symbolic lengths"):
        symad.trace(lambda a: functions.associative_scan(lambda e, f: e + f, a), [a])
    with pytest.raises(ShapeError, match=r"elements have shapes \(3,\), their product \(\)"):
        x = ArraySymbol("x", (4, 3))
        symad.trace(lambda x: functions.associative_scan(lambda e, f: np.sum(e), x), [x])
    with pytest.raises(ShapeError, match="must have one shape"):
        symad.trace(lambda a, b: functions.affine_scan(a[:, :, None, None], b), [a, b])
    with pytest.raises(ShapeError, match="initial state has shape"):
        symad.trace(lambda a, b, h: functions.affine_scan(a, b, h[:2]), [a, b, h])
