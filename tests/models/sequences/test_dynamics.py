"""Attention as dynamics: torch, the gradient flow, the integrator's order, clusters."""

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

import symad
from symad.errors import ShapeError, SymadError
from symad.models.sequences.dynamics import AttentionDynamics, clusters, energy
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


def on_sphere(n, d, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("sphere", [False, True])
@pytest.mark.parametrize("normalizer", ["softmax", "count"])
def test_torch(sphere, normalizer):
    model = AttentionDynamics(3, 2, 1.5, sphere, normalizer)
    x, y = on_sphere(4, 3), rng.normal(size=(4, 3))

    def reference(torch, p, x, y):
        def velocity(x):
            s = 1.5 * (x @ p["Q"].T) @ (x @ p["K"].T).T
            a = torch.softmax(s, -1) if normalizer == "softmax" else torch.exp(s) / 4
            v = a @ x @ p["V"].T
            return v - (x * v).sum(-1, keepdim=True) * x if sphere else v

        h = 0.25
        for _ in range(4):
            k1 = velocity(x)
            k2 = velocity(x + h / 2 * k1)
            k3 = velocity(x + h / 2 * k2)
            k4 = velocity(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return ((x - y) ** 2).mean()

    agrees_with_torch(lambda p, x, y: model.loss(p, x, y, 1.0, 4), model.shapes, reference, x, y)


def test_the_motion_climbs_the_energy():
    """dx/dt = n ∂E/∂x projected, for all x and β = 2: an identity, not a comparison at a point."""
    n, d = 3, 2
    model = AttentionDynamics(d, beta=2, normalizer="count")
    slope = symad.gradient(symad.trace(lambda x: energy(x, 2), [(n, d)]), 0)

    def climb(x):
        g = n * slope(x)
        return g - np.sum(x * g, axis=-1, keepdims=True) * x

    identity = {k: v.astype(int) for k, v in model.identity().items()}
    motion = symad.trace(lambda x: model.velocity(identity, x), [(n, d)])
    assert symad.equal(motion, symad.trace(climb, [(n, d)])).status in ("proved", "tested")
    other = symad.trace(lambda x: n * slope(x), [(n, d)])
    assert symad.equal(motion, other).status == "refuted"
    x = on_sphere(8, 3, seed=1)
    path = AttentionDynamics(3, beta=2.0, normalizer="count").trajectory(
        AttentionDynamics(3).identity(), x, 10.0, 100
    )
    energies = [energy(v, 2.0) for v in path]
    assert (np.diff(energies[:40]) > 0).all()
    assert (np.diff(energies) >= -1e-12).all()  # at last all are in one point


def test_trajectories_against_scipy():
    model = AttentionDynamics(3, beta=2.0)
    p, x = model.init(2), on_sphere(5, 3)
    exact = solve_ivp(
        lambda t, v: model.velocity(p, v.reshape(5, 3)).ravel(), (0, 2), x.ravel(), rtol=1e-12, atol=1e-13
    ).y[:, -1].reshape(5, 3)  # fmt: skip
    errors = [np.abs(model.trajectory(p, x, 2.0, n)[-1] - exact).max() for n in (20, 40, 80)]
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(rates, 4, atol=0.25)
    np.testing.assert_allclose(np.linalg.norm(model.trajectory(p, x, 2.0, 80), axis=-1), 1, atol=1e-6)


def test_tokens_cluster():
    """All in one point at last, and in several groups on the way when β is large."""
    x, one = on_sphere(24, 3, seed=4), AttentionDynamics(3).identity()
    assert clusters(x) > 15
    assert clusters(AttentionDynamics(3, beta=1.0).trajectory(one, x, 30.0, 300)[-1]) == 1
    sharp = AttentionDynamics(3, beta=20.0).trajectory(one, x, 15.0, 600)[-1]
    assert 1 < clusters(sharp) < 12


def test_permuting_the_particles_permutes_the_motion():
    model, order = AttentionDynamics(2), np.array([2, 0, 1])
    shapes = [(3, 2), *model.shapes.values()]

    def moved(x, Q, K, V):
        return model.velocity({"Q": Q, "K": K, "V": V}, x)

    before = symad.trace(lambda x, *p: moved(x[order], *p), shapes)
    after = symad.trace(lambda x, *p: moved(x, *p)[order], shapes)
    assert symad.equal(before, after).status in ("proved", "tested")


def test_one_graph_for_any_number_of_particles():
    n, d = sympy.symbols("n d", integer=True, positive=True)
    model = AttentionDynamics(d)
    graph = symad.trace(
        lambda x, Q, K, V: model.trajectory({"Q": Q, "K": K, "V": V}, x, 1.0, 50)[49],
        [(n, d), *model.shapes.values()],
    )
    assert len(graph.nodes) < 200
    small = AttentionDynamics(3)
    p, x = small.init(0), on_sphere(4, 3)
    np.testing.assert_allclose(graph(x, *p.values()), small.trajectory(p, x, 1.0, 50)[-1], rtol=1e-12)


@pytest.mark.thorough
def test_certificate_and_errors():
    model = AttentionDynamics(1, beta=1)
    small = symad.trace(
        lambda x, Q, K, V: model.velocity({"Q": Q, "K": K, "V": V}, x), [(2, 1)] + [(1, 1)] * 3
    )
    assert symad.check(small).status in ("proved", "tested")
    with pytest.raises(SymadError, match="normalizer='sum'"):
        AttentionDynamics(2, normalizer="sum")
    with pytest.raises(ShapeError, match=r"shape \(n, 3\), not \(4, 2\)"):
        AttentionDynamics(3).velocity(AttentionDynamics(3).identity(), np.zeros((4, 2)))
    with pytest.raises(SymadError, match="at least one step"):
        AttentionDynamics(2).trajectory(AttentionDynamics(2).identity(), on_sphere(3, 2), 1.0, 0)
