"""The temporal convolutional network and the state space model: torch, causality, both scans."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.functions import affine_scan, associative_scan
from symad.models.layers.parameters import trace_model
from symad.models.sequences import state_space as ss
from symad.models.sequences.state_space import StateSpace
from symad.models.sequences.tcn import TCN
from symad.numeric import lower
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


def torch_tcn(torch, p, x, levels, taps):
    F = torch.nn.functional
    z = x.permute(1, 2, 0)
    for level in range(1, levels + 1):
        r = 2 ** (level - 1)

        def causal(v, W, b, r=r):
            return F.conv1d(F.pad(v, (r * (taps - 1), 0)), W.permute(2, 1, 0), b, dilation=r)

        u = torch.relu(causal(z, p[f"W1_{level}"], p[f"b1_{level}"]))
        v = torch.relu(causal(u, p[f"W2_{level}"], p[f"b2_{level}"]))
        skip = torch.einsum("nct,cd->ndt", z, p[f"S_{level}"]) if f"S_{level}" in p else z
        z = torch.relu(v + skip)
    return z.permute(2, 0, 1) @ p["W_hy"].T + p["c_y"]


@pytest.mark.parametrize("inputs", [2, 4])
def test_temporal_convolution_against_torch(inputs):
    model = TCN(inputs, 4, 2, levels=2, taps=3)
    assert ("S_1" in model.shapes) == (inputs == 2)
    x, y = rng.normal(size=(9, 3, inputs)), rng.normal(size=(9, 3, 2))

    def reference(torch, p, x, y):
        return ((torch_tcn(torch, p, x, 2, 3) - y) ** 2).mean()

    agrees_with_torch(model.loss, model.shapes, reference, x, y)


@pytest.mark.parametrize(("levels", "taps"), [(1, 2), (2, 2), (2, 3)])
def test_receptive_field_from_the_pattern(levels, taps):
    """∂y_t/∂x_{t'} ≠ 0 for t − R < t' ≤ t and for no other t'."""
    model = TCN(1, 1, 1, levels, taps)
    p, n = {k: np.ones(s) for k, s in model.shapes.items()}, 16
    graph = symad.trace(lambda x: model.apply(p, x), [(n, 1)])
    seen = symad.jacobian_sparsity(graph, [0]).toarray()
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    np.testing.assert_array_equal(seen, (distance >= 0) & (distance < model.receptive_field))


def torch_state_space(torch, p, x, model):
    """Loops over time; every state apart."""
    F, (T, N, _) = torch.nn.functional, x.shape

    def rms(v, gamma):
        return F.rms_norm(v, v.shape[-1:], gamma, 1e-5)

    x = x @ p["W_in"] + p["c_in"]
    inner = model.expand * model.hidden
    for k in range(1, model.layers + 1):
        q = {name.split("_", 1)[1]: v for name, v in p.items() if name.startswith(f"block{k}_")}
        u, z = (rms(x, q["gamma"]) @ q["W_i"]).split(inner, -1)
        padded = F.pad(u.permute(1, 2, 0), (model.taps - 1, 0))
        u = F.silu(F.conv1d(padded, q["w"].T[:, None, :], q["c"], groups=inner).permute(2, 0, 1))
        delta = F.softplus(u @ q["W_delta"] + q["b_delta"])
        A, h, rows = -torch.exp(q["a"]), torch.zeros(N, inner, model.state, dtype=torch.float64), []
        for t in range(T):
            B, C = u[t] @ q["W_B"], u[t] @ q["W_C"]
            h = torch.exp(delta[t][..., None] * A) * h + (delta[t] * u[t])[..., None] * B[:, None, :]
            rows.append((h * C[:, None, :]).sum(-1))
        x = x + ((torch.stack(rows) + q["D"] * u) * F.silu(z)) @ q["W_o"]
    return rms(x, p["gamma"]) @ p["W_hy"].T + p["c_y"]


@pytest.mark.parametrize("parallel", [False, True])
def test_state_space_against_torch(parallel):
    model = StateSpace(2, 3, 2, state=2, layers=2, taps=3, parallel=parallel)
    x, y = rng.normal(size=(5, 2, 2)), rng.normal(size=(5, 2, 2))

    def reference(torch, p, x, y):
        return ((torch_state_space(torch, p, x, model) - y) ** 2).mean()

    agrees_with_torch(model.loss, model.shapes, reference, x, y)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 37])
def test_the_parallel_recurrence_is_the_sequential_one(length):
    A, b = rng.uniform(0.2, 1.1, (length, 3, 2)), rng.normal(size=(length, 3, 2))
    loop, h = [], np.zeros((3, 2))
    for t in range(length):
        h = A[t] * h + b[t]
        loop.append(h)
    np.testing.assert_allclose(ss.linear_recurrence(A, b), loop, rtol=1e-15)
    np.testing.assert_allclose(affine_scan(A, b), loop, rtol=1e-12, atol=1e-14)
    # The same by the general product of pairs.
    joined = associative_scan(lambda e, f: (f[0] * e[0], f[0] * e[1] + f[1]), (A, b))[1]
    np.testing.assert_allclose(joined, loop, rtol=1e-12, atol=1e-14)


def test_both_recurrences_are_one_polynomial():
    shapes = [(5, 1), (5, 1)]
    loop = symad.trace(ss.linear_recurrence, shapes)
    rounds = symad.trace(affine_scan, shapes)
    values = [np.array(sympy.symbols(f"{v}:5", real=True), dtype=object).reshape(5, 1) for v in "ab"]
    for one, other in zip(loop(*values).ravel(), rounds(*values).ravel(), strict=True):
        assert sympy.expand(one - other) == 0


def test_both_forms_of_the_model_agree():
    loop, rounds = (StateSpace(2, 3, 2, parallel=parallel) for parallel in (False, True))
    p, x, y = loop.init(1), rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    results = [
        lower(symad.value_and_gradient(trace_model(m.loss, m.shapes, x.shape, y.shape), list(p)))(
            *p.values(), x, y
        )
        for m in (loop, rounds)
    ]
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def test_one_sequence_is_a_batch_of_one():
    for model in (StateSpace(2, 3, 1), TCN(2, 3, 1)):
        p, x = model.init(2), rng.normal(size=(7, 2))
        np.testing.assert_allclose(model.apply(p, x[:, None])[:, 0], model.apply(p, x), rtol=1e-13)


def test_state_space_is_causal_from_the_pattern():
    model = StateSpace(1, 1, 1, state=1, expand=1)
    p = model.init(0)
    seen = symad.jacobian_sparsity(symad.trace(lambda x: model.apply(p, x), [(6, 1)]), [0]).toarray()
    np.testing.assert_array_equal(seen, np.tril(np.ones((6, 6), dtype=bool)))


def test_a_selective_model_may_ignore_an_input():
    """With Δ → 0 the state stays as it is, with Δ large it forgets: what a fixed model cannot do."""
    x, B = np.array([[2.0], [5.0], [1.0]]), np.ones((3, 1))
    delta = np.array([[1.0], [0.0], [0.0]])
    y = ss.selective_scan(x, delta, np.array([[-1.0]]), B, B)
    np.testing.assert_array_equal(y[:, 0], [2, 2, 2])
    y = ss.selective_scan(x, np.array([[1.0], [50.0], [1.0]]), np.array([[-1.0]]), B, B)
    np.testing.assert_allclose(y[1, 0], 250, rtol=1e-15)


def test_initial_steps_lie_between_a_thousandth_and_a_tenth():
    p = StateSpace(1, 8, 1).init(0)
    steps = np.log1p(np.exp(p["block1_b_delta"]))
    assert steps.min() >= 1e-3
    assert steps.max() <= 0.1
    np.testing.assert_allclose(-np.exp(p["block1_a"][0]), [-1, -2, -3, -4])


@pytest.mark.parametrize("parallel", [False, True])
def test_graphs_do_not_grow_with_time(parallel):
    T = sympy.Symbol("T", integer=True, positive=True)
    model = StateSpace(1, 2, 1, parallel=parallel)
    p, kernel = model.init(0), lower(trace_model(model.loss, model.shapes, (T, 1), (T, 1)))
    for length in (1, 6, 50):
        x, y = rng.normal(size=(length, 1)), rng.normal(size=(length, 1))
        np.testing.assert_allclose(kernel(*p.values(), x, y), model.loss(p, x, y), rtol=1e-12)


@pytest.mark.thorough
def test_derivatives_are_certified():
    graph = symad.trace(
        lambda x, d, A, B, C: np.sum(ss.selective_scan(x, d, A, B, C) ** 2),
        [(2, 1), (2, 1), (1, 1), (2, 1), (2, 1)],
    )
    assert symad.check(graph).status in ("proved", "tested")
    model = TCN(1, 1, 1, levels=1, taps=2)
    p = model.init(0)
    kept = {k: v for k, v in p.items() if not k.startswith("W")}
    filters = [k for k in p if k.startswith("W")]
    small = symad.trace(
        lambda *W: np.sum(
            model.apply(kept | dict(zip(filters, W, strict=True)), np.array([[1.0], [2.0]])) ** 2
        ),
        [p[k].shape for k in filters],
    )
    assert symad.check(small).status in ("proved", "tested")


def test_bad_input():
    with pytest.raises(ShapeError, match=r"T ≥ 1, not \(0, 2\)"):
        TCN(2, 3, 1).apply(TCN(2, 3, 1).init(), np.zeros((0, 2)))
    with pytest.raises(ShapeError, match=r"T ≥ 1, not \(0, 2\)"):
        StateSpace(2, 3, 1).apply(StateSpace(2, 3, 1).init(), np.zeros((0, 2)))
    x, B = np.zeros((3, 2)), np.zeros((3, 4))
    with pytest.raises(ShapeError, match=r"A \(4, 2\)"):
        ss.selective_scan(x, x, np.zeros((4, 2)), B, B)
