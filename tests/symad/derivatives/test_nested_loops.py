"""Derivatives of loops inside loops, whose inner steps read values of the outer ones.

The inputs of all bodies are numbered from 0, so those of an inner body may be equal to those around it.
"""

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.numeric import lower

torch = pytest.importorskip("torch")


def steps(step, c, xs, memory=None):
    """The states of a loop, in PyTorch."""
    states = []
    for x in xs:
        c = step(c, x)
        states.append(c)
    return torch.stack(states)


def folded(step, c, xs, memory):
    return functions.fold(step, c, xs, memory=memory)


def a_scan(lib, loop, a, xs, ys):
    def outer(c, x):
        k = lib.sin(c) * x
        return loop(lambda h, y: lib.tanh(h * k + y * lib.cos(k)), c, ys)[-1]

    return loop(outer, a, xs)[-1].sum()


def a_scan_over_states(lib, loop, a, xs, ys):
    def outer(c, x):
        inner = loop(lambda h, y: lib.tanh(h * lib.exp(-c * c) + y * x), x * c, ys)
        return lib.sin(c) + inner.sum(0)

    return (loop(outer, a, xs) ** 2).sum()


def three_deep(lib, loop, a, xs, ys):
    def middle(c, x):
        k = lib.cos(c + x)
        return loop(lambda h, y: lib.sin(loop(lambda g, z: g * h * k + z, h, ys)[-1] * y), c, ys[:2])[-1]

    return loop(middle, a, xs)[-1].sum()


def of_torch(name, values):
    given = [torch.tensor(v, requires_grad=True) for v in values]
    return given, CASES[name](torch, steps, *given)


CASES = {"one step": a_scan, "all states": a_scan_over_states, "three deep": three_deep}
rng = np.random.default_rng(3)
VALUES = [rng.normal(size=2), rng.normal(size=(3, 2)), rng.normal(size=(4, 2))]
DOTS = [rng.normal(size=v.shape) for v in VALUES]


def traced(name):
    return symad.trace(lambda *a: CASES[name](np, functions.scan, *a), [v.shape for v in VALUES])


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_tangents_and_gradients(name):
    graph = traced(name)
    given, value = of_torch(name, VALUES)
    bars = torch.autograd.grad(value, given)
    wanted = sum(float((b * torch.tensor(d)).sum()) for b, d in zip(bars, DOTS, strict=True))
    forward = symad.pushforward(graph)
    assert np.isclose(forward(*VALUES, *DOTS)[-1], wanted, rtol=1e-12)
    for mode in ("forward", "reverse"):
        for got, bar in zip(symad.gradient(graph, mode=mode)(*VALUES), bars, strict=True):
            np.testing.assert_allclose(got, bar.numpy(), rtol=1e-11, atol=1e-13)
    for backend in ("numpy", "c"):
        assert np.isclose(lower(forward, backend=backend)(*VALUES, *DOTS)[-1], wanted, rtol=1e-12)


MODES = ("forward-over-reverse", "reverse-over-forward", "reverse-over-reverse", "forward-over-forward")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["one step", "all states"])
def test_hessians(name, mode):
    def loss(a):
        return CASES[name](torch, steps, a, *map(torch.tensor, VALUES[1:]))

    wanted = torch.autograd.functional.hessian(loss, torch.tensor(VALUES[0])).numpy()
    found = symad.hessian(traced(name), [0], mode=mode)(*VALUES)
    np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("memory", ["all", "sqrt", 2, ("binomial", 2)])
def test_folds_inside_of_a_scan(memory):
    def program(a, xs, ys):
        def outer(c, x):
            k = np.sin(c) * x
            return folded(lambda h, y: np.tanh(h * k + y * np.cos(k)), c, ys, memory)

        return np.sum(functions.scan(outer, a, xs)[-1])

    graph = symad.trace(program, [v.shape for v in VALUES])
    given, value = of_torch("one step", VALUES)
    bars = torch.autograd.grad(value, given)
    wanted = sum(float((b * torch.tensor(d)).sum()) for b, d in zip(bars, DOTS, strict=True))
    for backend in ("numpy", "c"):
        forward = lower(symad.pushforward(graph), backend=backend)
        assert np.isclose(forward(*VALUES, *DOTS)[-1], wanted, rtol=1e-11)
        found = lower(symad.gradient(graph), backend=backend)(*VALUES)
        for got, bar in zip(found, bars, strict=True):
            np.testing.assert_allclose(got, bar.numpy(), rtol=1e-10, atol=1e-12)


def test_parts_inside_of_a_scan():
    def program(a, xs, ys):
        def outer(c, x):
            part = symad.remat(lambda c, k: np.sin(c * k) + k * k)
            return part(c, np.cos(c) * x)

        return np.sum(functions.scan(outer, a, xs)[-1] * ys[0])

    graph = symad.trace(program, [v.shape for v in VALUES])
    given = [torch.tensor(v, requires_grad=True) for v in VALUES]
    a, xs, ys = given

    def outer(c, x):
        k = torch.cos(c) * x
        return torch.sin(c * k) + k * k

    bars = torch.autograd.grad((steps(outer, a, xs)[-1] * ys[0]).sum(), given)
    for got, bar in zip(symad.gradient(graph)(*VALUES), bars, strict=True):
        np.testing.assert_allclose(got, bar.numpy(), rtol=1e-11, atol=1e-13)


def test_roots_of_functions_of_their_own_parameters():
    """x³ + p x = 1 at p = a², where the tangent 2 a holds an input of the residual."""
    x, a = sp.symbols("x a", positive=True)
    root = symad.implicit(x**3 + a * x - 1, x)
    graph = symad.trace(lambda a, guess: root(a * a, guess) + root(a, guess), [(), ()])
    second = symad.gradient(symad.gradient(graph, [0]), [0])

    def exact(p):
        return sp.nsolve(x**3 + p * x - 1, x, 0.5, prec=40)

    h, p = sp.Float("1e-10", 40), sp.Float("1.3", 40)
    total = [exact((p + k * h) ** 2) + exact(p + k * h) for k in (-1, 0, 1)]
    slope = symad.gradient(graph, [0])
    assert np.isclose(float(np.squeeze(slope(1.3, 0.5))), float((total[2] - total[0]) / (2 * h)), rtol=1e-10)
    wanted = float((total[2] - 2 * total[1] + total[0]) / h**2)
    assert np.isclose(float(np.squeeze(second(1.3, 0.5))), wanted, rtol=1e-8)
