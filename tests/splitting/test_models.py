"""Models over their batch: how the library's losses, layers and networks split over parts of the samples."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.models.layers import feedforward, losses, normalization, regression
from symad.models.sequences import lstm
from symad.models.transformers import transformer
from tests.splitting.whole_and_parts import agree, is_wrong_at_its_witness

N, d, k = sp.symbols("N d k", integer=True, positive=True)


def array(name, *shape):
    return sp.IndexedBase(name, shape=shape)


def test_regressions_are_means():
    for loss in (regression.least_squares_loss(), regression.logistic_loss()):
        g = symad.trace(loss)
        over = {"X": 0, "y": 0}
        for f in (g, symad.gradient(g, regression.w), symad.hessian(g, regression.w)):
            found = symad.splits(f, over)
            assert found.rules == ("mean",) * len(found.rules), str(found)
            assert agree(found) > 0


def test_cross_entropy_is_a_mean_and_a_masked_one_a_quotient_of_sums():
    scores, targets, mask = array("z", N, 4), array("t", N), array("m", N)
    g = symad.trace(losses.cross_entropy, [scores, targets])
    found = symad.splits(g, {"z": 0, "t": 0})
    assert found.rules == ("mean",) and agree(found) > 0
    g = symad.trace(losses.masked_cross_entropy, [scores, targets, mask])
    found = symad.splits(g, {"z": 0, "t": 0, "m": 0})
    assert found.rules == ("composed",) and agree(found) > 0


def test_layer_norms_split_and_batch_norm_does_not():
    x, gamma, beta = array("x", N, d), array("g", d), array("b", d)
    for norm in (normalization.layer_norm, normalization.rms_norm):
        found = symad.splits(symad.trace(norm, [x, gamma]), {"x": 0})
        assert found.rules == ("concatenation",) and agree(found) > 0
    found = symad.splits(symad.trace(normalization.batch_norm, [x, gamma, beta]), {"x": 0})
    assert found.status == "refuted" and is_wrong_at_its_witness(found)
    fixed = symad.trace(normalization.batch_norm_predict, [x, gamma, beta, array("m", d), array("v", d)])
    assert symad.splits(fixed, {"x": 0}).rules == ("concatenation",)


@pytest.mark.parametrize("kind", ["feedforward", "lstm", "transformer"])
def test_networks_are_means_over_a_batch_and_so_are_their_gradients(kind):
    if kind == "feedforward":
        model = feedforward.FeedForward((3, 4, 2))
        data, targets = (3,), (2,)
    elif kind == "lstm":
        model = lstm.LSTM(2, 3, 2)
        data, targets = (4, 2), (4, 2)
    else:
        model = transformer.Transformer(vocabulary=5, width=4, heads=2, layers=1, context=4)
        data, targets = (4,), (4,)
    p = model.init(0)
    one = symad.trace(model.loss, [{name: np.shape(v) for name, v in p.items()}, data, targets])
    many = symad.vmap(one, [None, 0, 0])
    names = [str(s) for s in many.ungrouped().inputs][-2:]
    over = dict.fromkeys(names, 0)
    found = symad.splits(many, over)
    assert found.rules == ("concatenation",), str(found)
    assert agree(found, 1e-9) > 0
    batch = sp.Symbol("B", integer=True)
    shapes = {name: np.shape(v) for name, v in p.items()}
    mean = symad.trace(lambda q, x, y: np.mean(many(q, x, y)), [shapes, (batch, *data), (batch, *targets)])
    names = [str(s) for s in mean.ungrouped().inputs][-2:]
    slopes = symad.splits(
        symad.value_and_gradient(mean, list(mean.ungrouped().inputs[:-2])), dict.fromkeys(names, 0)
    )
    assert set(slopes.rules) == {"mean"}, str(slopes)
