"""Residual networks, neural ODEs and reversible networks against torch, SciPy and each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import symad
from symad.errors import ShapeError
from symad.models.layers import neural_ode
from symad.models.layers.parameters import trace_model
from symad.models.layers.residual import ResNet
from symad.numeric import lower

RNG = np.random.default_rng(0)


def close(found, expected, rtol=1e-10):
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("memory", ["all", "sqrt", ("binomial", 3)])
def test_a_residual_network_equals_torch(memory):
    torch = pytest.importorskip("torch")
    model = ResNet(3, 5, 7, 2, 6, step=0.3, memory=memory)
    p = {name: RNG.normal(size=shape) for name, shape in model.shapes.items()}
    x, y = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 2))
    graph = symad.value_and_gradient(trace_model(model.loss, model.shapes, (4, 3), (4, 2)), wrt=list(p))
    t = {name: torch.tensor(v, requires_grad=True) for name, v in p.items()}
    state = torch.tensor(x) @ t["E"].T
    for k in range(6):
        state = state + 0.3 * (torch.tanh(state @ t["W"][k].T + t["b"][k]) @ t["V"][k].T + t["c"][k])
    loss = torch.mean((state @ t["R"].T + t["r"] - torch.tensor(y)) ** 2)
    loss.backward()
    expected = [loss.detach(), *(v.grad for v in t.values())]
    close(graph(*p.values(), x, y), expected)
    close(lower(graph)(*p.values(), x, y), expected)
    assert model.apply(p, x).shape == (4, 2)
    with pytest.raises(ShapeError, match="3 inputs was given x of shape"):
        model.apply(p, x[:, :2])


def test_the_initial_state_keeps_its_size_through_many_layers():
    model = ResNet(8, 64, 64, 1, 200)
    p = model.init(0)
    assert set(p) == set(model.shapes)
    x = RNG.normal(size=(50, 8))
    start = x @ p["E"].T
    inner = ResNet(64, 64, 64, 64, 200)
    end = inner.apply(p | {"E": np.eye(64), "R": np.eye(64), "r": np.zeros(64)}, start)
    assert 0.5 < np.std(end) / np.std(start) < 3


def field(x, t, W, V):
    return V @ np.tanh(W @ x + np.sin(t))


W, V, X0 = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 4)), RNG.normal(size=3)
SPAN = (0.0, 1.5)


def exact():
    """x(t_1) and the derivatives of Σ x(t_1)² by SciPy, from the sensitivity equations."""
    n, m = 3, 24

    def rhs(t, z):
        x, s = z[:n], z[n:].reshape(n, n + m)
        pre = W @ x + np.sin(t)
        slope = V @ ((1 - np.tanh(pre) ** 2)[:, None] * W)
        by_w = np.einsum("ij,j,k->ijk", V, 1 - np.tanh(pre) ** 2, x).reshape(n, 12)
        by_v = np.einsum("ij,k->ijk", np.eye(n), np.tanh(pre)).reshape(n, 12)
        moved = slope @ s + np.hstack([np.zeros((n, n)), by_w, by_v])
        return np.concatenate([V @ np.tanh(pre), moved.ravel()])

    start = np.concatenate([X0, np.hstack([np.eye(n), np.zeros((n, m))]).ravel()])
    end = solve_ivp(rhs, SPAN, start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    x, s = end[:n], end[n:].reshape(n, n + m)
    bars = 2 * x @ s
    return x, [bars[:3], bars[3:15].reshape(4, 3), bars[15:].reshape(3, 4)]


def discrete(steps, method="rk4", memory="all"):
    def loss(x, W, V):
        return np.sum(neural_ode.integrate(field, x, (W, V), SPAN, steps, method, memory) ** 2)

    return symad.gradient(symad.trace(loss, inputs=[(3,), (4, 3), (3, 4)]))


def continuous(steps, method="rk4"):
    end = neural_ode.integrate(field, X0, (W, V), SPAN, steps, method)
    return neural_ode.adjoint(field, end, 2 * end, (W, V), SPAN, steps, method)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
def test_both_gradients_converge_with_the_order_of_the_method(method, order):
    _, expected = exact()
    errors = []
    for steps in (40, 80):
        both = discrete(steps, method)(X0, W, V), continuous(steps, method)[1:]
        errors.append([max(np.abs(f - e).max() for f, e in zip(g, expected, strict=True)) for g in both])
    rates = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert np.all(np.abs(rates - order) < 0.35)


def test_the_first_is_the_gradient_of_what_is_computed():
    """A complex step of the computed loss meets the one; the other is off by the solver's error."""
    steps, step = 12, 1e-30j
    moved = neural_ode.integrate(field, X0, (W + step * np.eye(4, 3), V), SPAN, steps)
    difference = np.sum(moved**2).imag / step.imag
    ours, other = (np.sum(g * np.eye(4, 3)) for g in (discrete(steps)(X0, W, V)[1], continuous(steps)[2]))
    assert ours == pytest.approx(difference, rel=1e-12)
    assert 1e-7 < abs(other / ours - 1) < 1e-2
    back = continuous(steps)[0]
    assert 1e-9 < np.abs(back - X0).max() < 1e-2  # x(t_0) is found again up to that error too


@pytest.mark.parametrize("memory", ["sqrt", "binomial", "recompute"])
def test_policies_change_the_memory_only(memory):
    close(lower(discrete(50, memory=memory))(X0, W, V), discrete(50)(X0, W, V), 1e-11)


def test_the_gradient_equals_torch_through_the_same_steps():
    torch = pytest.importorskip("torch")
    x, w, v = (torch.tensor(a, requires_grad=True) for a in (X0, W, V))

    def f(x, t):
        return v @ torch.tanh(w @ x + np.sin(t))

    h, state = 1.5 / 20, x
    for k in range(20):
        t = k * h
        k1 = f(state, t)
        k2 = f(state + h / 2 * k1, t + h / 2)
        k3 = f(state + h / 2 * k2, t + h / 2)
        k4 = f(state + h * k3, t + h)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    torch.sum(state**2).backward()
    close(discrete(20)(X0, W, V), [x.grad, w.grad, v.grad])


def test_the_adjoint_can_be_traced():
    def f(end, bar, W, V):
        return neural_ode.adjoint(field, end, bar, (W, V), SPAN, 9)

    graph = symad.trace(f, inputs=[(3,), (3,), (4, 3), (3, 4)])
    end = neural_ode.integrate(field, X0, (W, V), SPAN, 9)
    close(lower(graph)(end, 2 * end, W, V), continuous(9))


def test_mistakes_are_told():
    with pytest.raises(ShapeError, match="0 steps"):
        neural_ode.integrate(field, X0, (W, V), SPAN, 0)
    with pytest.raises(ShapeError, match="by 'rk5': needs at least 1, and one of euler, heun, rk4"):
        neural_ode.integrate(field, X0, (W, V), SPAN, 3, "rk5")
