"""Convolutional networks on images: torch, shapes of the pair, digits."""

import numpy as np
import pytest

import symad
from symad.errors import ShapeError
from symad.models.layers.convolutional import Adversaries, Classifier
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from symad.numeric.training.adversarial import Player, train_in_turn
from symad.numeric.training.loop import batches, train
from symad.numeric.training.optimizers import Adam
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
PAIR = Adversaries(8, 1, 2, 3)
IMAGES = rng.uniform(size=(3, 8, 8, 1))


def filters(W):
    return W.permute(3, 2, 0, 1)


def torch_scores(torch, p, x):
    F = torch.nn.functional
    x = x.permute(0, 3, 1, 2)
    for k in (1, 2):
        x = F.max_pool2d(torch.relu(F.conv2d(x, filters(p[f"W{k}"]), p[f"b{k}"], padding=1)), 2)
    return x.permute(0, 2, 3, 1).flatten(1) @ p["W3"] + p["b3"]


def torch_discriminate(torch, p, x):
    F = torch.nn.functional
    x = x.permute(0, 3, 1, 2)
    for k in (1, 2):
        x = F.leaky_relu(F.conv2d(x, filters(p[f"D{k}"]), p[f"d{k}"], 2, 1), 0.2)
    return (x.permute(0, 2, 3, 1).flatten(1) @ p["D3"] + p["d3"])[:, 0]


def torch_generate(torch, p, z):
    F = torch.nn.functional
    x = torch.relu(z @ p["G1"] + p["g1"]).reshape(-1, 2, 2, 4).permute(0, 3, 1, 2)
    x = torch.relu(F.conv_transpose2d(x, filters(p["G2"]), p["g2"], 2, 1))
    x = torch.sigmoid(F.conv_transpose2d(x, filters(p["G3"]), p["g3"], 2, 1))
    return x.permute(0, 2, 3, 1)


def test_classifier_against_torch():
    model = Classifier(8, 1, 2, 4)

    def reference(torch, p, x, y):
        return torch.nn.functional.cross_entropy(torch_scores(torch, p, x), y)

    agrees_with_torch(model.loss, model.shapes, reference, IMAGES, np.array([0, 3, 1]))


def test_discriminator_against_torch():
    made = rng.uniform(size=(2, 8, 8, 1))

    def reference(torch, p, real, made):
        F = torch.nn.functional
        good, bad = (torch_discriminate(torch, p, x) for x in (real, made))
        return F.softplus(-good).mean() + F.softplus(bad).mean()

    agrees_with_torch(PAIR.discriminator_loss, PAIR.discriminator_shapes, reference, IMAGES, made)


def test_generator_against_torch():
    q, z = PAIR.init_discriminator(1), rng.normal(size=(5, 3))

    def reference(torch, p, z):
        fixed = {k: torch.tensor(v) for k, v in q.items()}
        scores = torch_discriminate(torch, fixed, torch_generate(torch, p, z))
        return torch.nn.functional.softplus(-scores).mean()

    agrees_with_torch(lambda p, z: PAIR.generator_loss(p, q, z), PAIR.generator_shapes, reference, z)


def test_the_generator_makes_images():
    made = PAIR.generate(PAIR.init_generator(0), rng.normal(size=(5, 3)))
    assert made.shape == (5, 8, 8, 1)
    assert (made > 0).all()
    assert (made < 1).all()


@pytest.mark.slow
def test_the_game_on_digits():
    """After a few rounds samples have the mean of the data; before they are grey."""
    x = pytest.importorskip("sklearn.datasets").load_digits().images[..., None] / 16
    pair, size, draw = Adversaries(8, 1, 16, 6), 32, np.random.default_rng(2)

    def judge(p, real, z):
        return pair.discriminator_loss(p, real, pair.generate(p, z))

    def deceive(p, z):
        return pair.generator_loss(p, p, z)

    def images():
        while True:
            yield x[draw.integers(0, len(x), size)], draw.normal(size=(size, 6))

    graphs = (
        trace_model(judge, pair.shapes, (size, 8, 8, 1), (size, 6)),
        trace_model(deceive, pair.shapes, (size, 6)),
    )
    sides = pair.discriminator_shapes, pair.generator_shapes
    players = [Player(g, list(s), Adam(0.004, beta1=0.5)) for g, s in zip(graphs, sides, strict=True)]
    codes = ((z,) for _, z in images())
    start = pair.init(0)
    played = train_in_turn(players, start, [images(), codes], 100, average=0.97)
    z = draw.normal(size=(300, 6))
    before, after = (
        np.abs(pair.generate(p, z).mean(axis=0) - x.mean(axis=0)).mean() for p in (start, played.averages)
    )
    assert after < 0.6 * before


@pytest.mark.thorough
def test_digits():
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    x, y = digits.images[..., None] / 16, digits.target
    model = Classifier(8, 1, 8, 10)
    loss = trace_model(model.loss, model.shapes, (64, 8, 8, 1), (64,))
    found = train(loss, model.init(0), batches(x[:1400], y[:1400], size=64), Adam(0.01), 120)
    right = model.scores(found.parameters, x[1400:]).argmax(axis=1) == y[1400:]
    assert right.mean() > 0.9


@pytest.mark.thorough
def test_certificate_and_code():
    model = Adversaries(4, 1, 1, 1)
    p, q = model.init_generator(0), model.init_discriminator(1)
    kept = {k: v for k, v in p.items() if k != "G1"}
    small = symad.trace(lambda G1: np.sum(model.generate(kept | {"G1": G1}, np.array([[1.0]]))), [(1, 2)])
    assert symad.check(small).status in ("proved", "tested")
    graph = trace_model(lambda p, z: model.generator_loss(p, q, z), model.generator_shapes, (2, 1))
    z = rng.normal(size=(2, 1))
    np.testing.assert_allclose(lower(graph)(*p.values(), z), model.generator_loss(p, q, z), rtol=1e-12)


def test_sides_must_be_halved_twice():
    for make in (Classifier, Adversaries):
        with pytest.raises(ShapeError, match="side 6"):
            make(6, 1, 2, 3)
