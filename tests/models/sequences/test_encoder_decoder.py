"""Encoder and decoder with attention: the worked numbers, torch, a toy translation."""

import numpy as np
import pytest

from symad.errors import SymadError
from symad.models.layers.parameters import trace_model
from symad.models.sequences.encoder_decoder import EncoderDecoder, context, dot_score
from symad.numeric.training.loop import batches, train
from symad.numeric.training.optimizers import Adam
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)


def test_worked_example():
    h = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 0]])
    weights, summary = context(np.array([1.0, 0, 1]), h, dot_score)
    assert weights.round(3).tolist() == [0.576, 0.212, 0.212]
    assert summary.round(3).tolist() == [0.788, 0.424, 0.788]


def torch_loss(torch, p, x, before, y, model):
    N, d = len(x), model.hidden

    def advance(name, h, c, v):
        z = torch.einsum("nd,ghd->gnh", v, p[f"W_{name}x"]) + p[f"b_{name}"][:, None]
        z = z + torch.einsum("nd,ghd->gnh", h, p[f"W_{name}h"])
        if model.cell == "tanh":
            return torch.tanh(z[0]), c
        c = torch.sigmoid(z[1]) * c + torch.sigmoid(z[0]) * torch.tanh(z[3])
        return torch.sigmoid(z[2]) * torch.tanh(c), c

    h = c = torch.zeros(N, d, dtype=torch.float64)
    history = []
    for t in range(x.shape[1]):
        h, c = advance("f", h, c, p["E_x"][x[:, t]])
        history.append(h)
    states, total = torch.stack(history, 1), 0
    for t in range(y.shape[1]):
        if model.score == "dot":
            scores = (states * h[:, None]).sum(-1)
        else:
            scores = torch.tanh((h @ p["W_s"].T)[:, None] + states @ p["W_h"].T) @ p["v"][0]
        summary = (torch.softmax(scores, -1)[..., None] * states).sum(1)
        e = p["E_y"][before[:, t]]
        h, c = advance("g", h, c, torch.cat([e, summary], -1))
        z = torch.cat([h, summary, e], -1) @ p["W_o"].T + p["b_o"]
        total = total + torch.nn.functional.cross_entropy(z, y[:, t]) / y.shape[1]
    return total


@pytest.mark.parametrize("cell", ["tanh", "lstm"])
@pytest.mark.parametrize("score", ["dot", "additive"])
def test_torch(cell, score):
    model = EncoderDecoder(6, 5, 3, 4, cell, score)
    x, y, before = rng.integers(0, 6, (3, 4)), *rng.integers(0, 5, (2, 3, 6))

    def reference(torch, p, x, before, y):
        return torch_loss(torch, p, x, before, y, model)

    agrees_with_torch(model.loss, model.shapes, reference, x, before, y)


@pytest.mark.thorough
def test_learns_to_reverse():
    """Token 0 starts; the target is the source backwards."""
    model = EncoderDecoder(6, 6, 8, 24, "lstm")
    x = rng.integers(1, 6, (400, 5))
    y = x[:, ::-1].copy()
    before = np.hstack([np.zeros((400, 1), dtype=int), y[:, :-1]])
    loss = trace_model(model.loss, model.shapes, (40, 5), (40, 5), (40, 5))
    stream = batches(x[:360], before[:360], y[:360], size=40)
    found = train(loss, model.init(0), stream, Adam(0.02), 250, clip=1.0)
    assert found.losses[-1] < 0.2 * found.losses[0]
    right = model.translate(found.parameters, x[360:], 5) == y[360:]
    assert right.mean() > 0.9


def test_unknown_cells_are_refused():
    with pytest.raises(SymadError, match="cell='gru'"):
        EncoderDecoder(6, 5, 3, 4, "gru")
