"""Training: optimizers against torch, batches, schedules, checkpoints, bad data."""

import math

import numpy as np
import pytest

import symad
from symad.errors import EvaluationError
from symad.models.layers import maximum
from symad.models.layers.feedforward import FeedForward
from symad.models.layers.parameters import trace_model
from symad.numeric.training.loop import batches, train
from symad.numeric.training.optimizers import SGD, Adam, RMSprop, adamw, clip_gradients
from symad.numeric.training.schedules import staircase, warmup_cosine, warmup_root

rng = np.random.default_rng(0)
MODEL = FeedForward((3, 4, 1))
X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
LOSS = MODEL.graph(8)


def torch_run(optimizer, steps, clip=None, schedule=None):
    torch = pytest.importorskip("torch")
    p = {k: torch.tensor(v, requires_grad=True) for k, v in MODEL.init(0).items()}
    decayed = [v for v in p.values() if v.ndim > 1]
    others = [v for v in p.values() if v.ndim <= 1]
    run = optimizer(torch.optim, decayed, others)
    pace = schedule(torch.optim.lr_scheduler, run) if schedule else None
    for _, (x, y) in zip(range(steps), batches(X, Y, size=8, seed=1), strict=False):
        run.zero_grad()
        S = torch.tanh(torch.as_tensor(x) @ p["W1"] + p["b1"]) @ p["W2"]
        ((S - torch.as_tensor(y)) ** 2).mean().backward()
        if clip:  # torch's own function adds 1e-6 to the norm that it divides by
            norm = torch.sqrt(sum((v.grad**2).sum() for v in p.values()))
            assert norm > clip
            for v in p.values():
                v.grad *= clip / norm
        run.step()
        if pace:
            pace.step()
    return {k: v.detach().numpy() for k, v in p.items()}


def torch_adamw(optim, decayed, others):
    groups = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
    return optim.AdamW(groups, lr=0.01, weight_decay=0.1)


@pytest.mark.parametrize(
    ("ours", "theirs", "clip"),
    [
        (SGD(0.1), lambda optim, a, b: optim.SGD(a + b, lr=0.1), None),
        (SGD(0.05, 0.9), lambda optim, a, b: optim.SGD(a + b, lr=0.05, momentum=0.9), None),
        (Adam(0.01), lambda optim, a, b: optim.Adam(a + b, lr=0.01), None),
        (Adam(0.01, 0.8, 0.99, 1e-5), lambda optim, a, b: optim.Adam(a + b, 0.01, (0.8, 0.99), 1e-5), None),
        (adamw(0.01, 0.1, "matrices"), torch_adamw, None),
        (adamw(0.01, 0.1), lambda optim, a, b: optim.AdamW(a + b, lr=0.01, weight_decay=0.1), None),
        (Adam(0.01, penalty=0.1), lambda optim, a, b: optim.Adam(a + b, lr=0.01, weight_decay=0.1), None),
        (Adam(0.01, epsilon=0), lambda optim, a, b: optim.Adam(a + b, lr=0.01, eps=0), None),
        (
            SGD(0.05, 0.9, 0.01, nesterov=True),
            lambda optim, a, b: optim.SGD(a + b, 0.05, 0.9, weight_decay=0.01, nesterov=True),
            None,
        ),
        (RMSprop(0.005), lambda optim, a, b: optim.RMSprop(a + b, lr=0.005), None),
        (
            RMSprop(0.002, 0.9, 1e-6, 0.8, True, 0.01),
            lambda optim, a, b: optim.RMSprop(a + b, 0.002, 0.9, 1e-6, 0.01, 0.8, True),
            None,
        ),
        (SGD(0.1), lambda optim, a, b: optim.SGD(a + b, lr=0.1), 0.05),
        (Adam(0.01), lambda optim, a, b: optim.Adam(a + b, lr=0.01), 0.01),
    ],
)
def test_optimizers_against_torch(ours, theirs, clip):
    found = train(LOSS, MODEL.init(0), batches(X, Y, size=8, seed=1), ours, 100, clip=clip)
    for name, value in torch_run(theirs, 100, clip).items():
        np.testing.assert_allclose(found.parameters[name], value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (staircase(5, 0.3), lambda s, run: s.StepLR(run, 5, 0.3)),
        (warmup_cosine(0, 20, 0.1), lambda s, run: s.CosineAnnealingLR(run, 20, 0.1 * 0.02)),
        (warmup_root(6), lambda s, run: s.LambdaLR(run, lambda k: min((k + 1) / 6, (6 / (k + 1)) ** 0.5))),
    ],
)
def test_schedules_against_torch(ours, theirs):
    found = train(LOSS, MODEL.init(0), batches(X, Y, size=8, seed=1), Adam(0.02), 20, schedule=ours)
    expected = torch_run(lambda optim, a, b: optim.Adam(a + b, lr=0.02), 20, schedule=theirs)
    for name, value in expected.items():
        np.testing.assert_allclose(found.parameters[name], value, rtol=1e-12, atol=1e-12)


def test_batches_hold_every_sample_once_a_round():
    stream = batches(np.arange(10), np.arange(10) ** 2, size=5, seed=3)
    for _ in range(3):
        (a, b), (c, d) = next(stream), next(stream)
        assert sorted([*a, *c]) == list(range(10))
        np.testing.assert_array_equal(np.r_[b, d], np.r_[a, c] ** 2)
    with pytest.raises(EvaluationError, match="batches of 11"):
        batches(np.arange(10), size=11)
    with pytest.raises(EvaluationError, match="9, 10 samples"):
        batches(np.arange(10), np.arange(9), size=2)


def test_clipping_limits_the_norm_of_all_arrays_together():
    g = {"a": np.array([3.0]), "b": np.array([[4.0]])}
    assert clip_gradients(g, 10) is g
    clipped = clip_gradients(g, 1.0)
    np.testing.assert_allclose([clipped["a"][0], clipped["b"][0, 0]], [0.6, 0.8])


def test_schedules():
    assert [staircase(2, 0.5)(k) for k in range(6)] == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert [warmup_root(4)(k) for k in (0, 3, 15)] == [0.25, 1.0, 0.5]
    with pytest.raises(EvaluationError, match="every=0: it must be at least 1"):
        staircase(0)
    factor = warmup_cosine(4, 104, floor=0.1)
    assert [factor(k) for k in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert factor(4) == 1.0
    assert math.isclose(factor(54), 0.55)
    assert math.isclose(factor(104), 0.1)
    assert math.isclose(factor(500), 0.1)


@pytest.mark.parametrize("optimizer", [SGD(0.05, 0.9), Adam(0.01, decay=0.01)])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, optimizer):
    path = tmp_path / "run.npz"
    whole = train(LOSS, MODEL.init(0), batches(X, Y, size=8), optimizer, 20)
    train(LOSS, MODEL.init(0), batches(X, Y, size=8), optimizer, 7, checkpoint=path)
    rest = train(LOSS, MODEL.init(5), batches(X, Y, size=8), optimizer, 20, checkpoint=path, resume=True)
    assert rest.losses == whole.losses
    for name, value in whole.parameters.items():
        np.testing.assert_array_equal(rest.parameters[name], value)


def test_checkpoints_of_another_model_are_refused(tmp_path):
    path = tmp_path / "run.npz"
    train(LOSS, MODEL.init(0), batches(X, Y, size=8), SGD(0.1), 1, checkpoint=path)
    wider = FeedForward((3, 5, 1))
    with pytest.raises(EvaluationError, match=r"parameter/W1 with the shape \(3, 4\).*\(3, 5\)"):
        train(
            wider.graph(8), wider.init(0), batches(X, Y, size=8), SGD(0.1), 2,
            checkpoint=path, resume=True,
        )  # fmt: skip
    with pytest.raises(EvaluationError, match="lacks state/m/W1"):
        train(LOSS, MODEL.init(0), batches(X, Y, size=8), Adam(), 2, checkpoint=path, resume=True)
    with pytest.raises(EvaluationError, match="training runs in float32; give dtype='float64'"):
        train(
            LOSS, MODEL.init(0), batches(X, Y, size=8), SGD(0.1), 2,
            checkpoint=path, resume=True, dtype="float32",
        )  # fmt: skip
    arrays = dict(np.load(path))
    arrays["parameter/b1"][1] = np.nan
    np.savez(path, **arrays)
    with pytest.raises(EvaluationError, match="NaN or infinity in parameter/b1"):
        train(LOSS, MODEL.init(0), batches(X, Y, size=8), SGD(0.1), 2, checkpoint=path, resume=True)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(EvaluationError, match="not a checkpoint that can be read"):
        train(LOSS, MODEL.init(0), batches(X, Y, size=8), SGD(0.1), 2, checkpoint=path, resume=True)


def test_pickles_are_never_read(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, losses=np.array([{}], dtype=object))
    with pytest.raises(EvaluationError, match="not a checkpoint"):
        train(LOSS, MODEL.init(0), batches(X, Y, size=8), SGD(0.1), 2, checkpoint=path, resume=True)


def test_bad_data_are_named_before_training():
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(EvaluationError, match=r"data array 0 holds nan at \(3, 1\)"):
        batches(bad, Y, size=8)
    with pytest.raises(EvaluationError, match=r"X holds nan at \(3, 1\)"):
        train(LOSS, MODEL.init(0), [(bad[:8], Y[:8])], SGD(0.1), 1)
    with pytest.raises(EvaluationError, match="the data end before step 1"):
        train(LOSS, MODEL.init(0), [(X[:8], Y[:8])], SGD(0.1), 2)
    with pytest.raises(EvaluationError, match="a batch of 1 arrays for loss, whose data are X, Y"):
        train(LOSS, MODEL.init(0), [(X[:8],)], SGD(0.1), 1)
    with pytest.raises(EvaluationError, match="the parameters are b1, W1, W2"):
        p = MODEL.init(0)
        train(LOSS, {k: p[k] for k in ("b1", "W1", "W2")}, [], SGD(0.1), 1)
    with pytest.raises(EvaluationError, match=r"the loss is .* at step"), np.errstate(all="ignore"):
        train(LOSS, MODEL.init(0), batches(X, Y, size=8), SGD(1e200), 50)


def test_a_gradient_that_is_no_number_stops_training_before_it_spoils_the_parameters():
    root = trace_model(lambda p, x: np.mean(np.sqrt(p["w"]) * x), {"w": (2,)}, (2,))
    with (
        pytest.raises(EvaluationError, match=r"at step 0 the gradient by w holds inf at \(1,\); lower"),
        np.errstate(divide="ignore"),
    ):
        train(root, {"w": np.array([1.0, 0.0])}, [(np.ones(2),)], SGD(0.1), 1)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: SGD(-0.1), "rate out of range"),
        (lambda: SGD(0.1, 1.0), "momentum out of range"),
        (lambda: SGD(0.1, nesterov=True), "nesterov out of range"),
        (lambda: RMSprop(alpha=1.0, epsilon=-1e-8), "alpha, epsilon out of range"),
        (lambda: Adam(beta1=1.0, decay=-1), "beta1, decay out of range"),
    ],
)
def test_optimizers_refuse_impossible_settings(make, wrong):
    with pytest.raises(EvaluationError, match=wrong):
        make()


def test_settings_of_training_are_checked():
    with pytest.raises(EvaluationError, match="clip=0"):
        train(LOSS, MODEL.init(0), [], SGD(0.1), 1, clip=0)


def test_seeds_decide_the_batches():
    first, again, other = (next(batches(np.arange(50), size=20, seed=k))[0] for k in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_progress_is_shown(capsys):
    train(LOSS, MODEL.init(0), batches(X, Y, size=8), SGD(0.1), 3, progress=True)
    assert "loss" in capsys.readouterr().out


@pytest.mark.thorough
def test_training_narrows_but_does_not_close_the_gap_to_the_exact_maximum():
    """Exact weights exist; from random ones Adam finds good ones only."""
    stream = ((maximum.batch(np.random.default_rng(k)),) for k in range(10**6))
    for name in ("absolute_loss", "squared_loss"):
        loss = trace_model(getattr(maximum, name), maximum.SHAPES, (5, 256))
        found = train(loss, maximum.init(1), stream, Adam(0.01), 600)
        assert 0 < np.mean(found.losses[-50:]) < 0.2 * np.mean(found.losses[:5])
        test = maximum.batch(np.random.default_rng(10**7))
        exact = loss(*maximum.exact_parameters().values(), test)
        assert exact < 1e-12 < loss(*found.parameters.values(), test)


def test_structures_of_parameters_train_as_named_ones_do(tmp_path):
    """Nested dicts and lists come back as they went in, also from a checkpoint."""
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(20, 3)), rng.normal(size=20)
    W, b = rng.normal(size=3), np.zeros(())
    nested = symad.trace(
        lambda p, X, t: ((X @ p["layers"][0]["w.0"] + p["b"] - t) ** 2).mean(),
        [{"layers": [{"w.0": (3,)}], "b": ()}, (20, 3), (20,)],
    )
    named = symad.trace(lambda W, b, X, t: ((X @ W + b - t) ** 2).mean(), [(3,), (), (20, 3), (20,)])
    data = [(X, target)] * 12
    expected = train(named, {"W": W, "b": b}, data, Adam(0.1), steps=12)
    tree = {"layers": [{"w.0": W}], "b": b}
    kept = tmp_path / "kept.npz"
    train(nested, tree, data, Adam(0.1), steps=5, checkpoint=kept)
    found = train(nested, tree, data, Adam(0.1), steps=12, checkpoint=kept, resume=True)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-12)
    np.testing.assert_allclose(found.parameters["layers"][0]["w.0"], expected.parameters["W"], rtol=1e-12)
    with pytest.raises(EvaluationError, match="p has the keys layers, b; the value given lacks b"):
        train(nested, {"layers": [{"w.0": W}]}, data, Adam(0.1), steps=1)


def test_epsilon_0_leaves_parameters_without_slopes_where_they_are():
    p = {"w": np.array([1.0, 2.0])}
    for optimizer in (Adam(0.1, epsilon=0), RMSprop(0.1, epsilon=0)):
        moved, _ = optimizer.step(p, {"w": np.array([3.0, 0.0])}, optimizer.start(p), 1.0)
        assert moved["w"][1] == 2.0
        assert np.isfinite(moved["w"][0])
        assert moved["w"][0] < 1
