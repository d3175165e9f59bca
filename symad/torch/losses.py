"""Losses of PyTorch, with their reductions; those of classes are `symad.models.layers.losses`."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from symad import functions
from symad.errors import TraceError
from symad.models.layers import losses
from symad.torch.modules import Weights, layer, refuse


def reduced(module: Any, values: Any) -> Any:
    """The mean or sum of all elements, or these."""
    if module.reduction == "batchmean":
        return np.sum(values) / values.shape[0]
    if module.reduction == "none":
        return values
    return np.mean(values) if module.reduction == "mean" else np.sum(values)


@layer.dispatch
def mean_squared_error(module: nn.MSELoss, at: Weights, *data: Any) -> Any:
    """(ŷ − y)²."""
    return reduced(module, (data[0] - data[1]) ** 2)


@layer.dispatch
def absolute_error(module: nn.L1Loss, at: Weights, *data: Any) -> Any:
    """|ŷ − y|."""
    return reduced(module, np.abs(data[0] - data[1]))


@layer.dispatch
def huber(module: nn.HuberLoss, at: Weights, *data: Any) -> Any:
    """e²/2 near 0, linear beyond δ."""
    return reduced(module, losses.huber_of(np.abs(data[0] - data[1]), module.delta))


@layer.dispatch
def smooth_absolute_error(module: nn.SmoothL1Loss, at: Weights, *data: Any) -> Any:
    """Huber's divided by β; |e| for β = 0."""
    size = np.abs(data[0] - data[1])
    return reduced(module, losses.huber_of(size, module.beta) / module.beta if module.beta else size)


@layer.dispatch
def logistic_loss(module: nn.BCEWithLogitsLoss, at: Weights, *data: Any) -> Any:
    """w (p y log(1 + e^{−z}) + (1 − y) log(1 + e^z)), p the weight of positives."""
    z, y = data
    positive = functions.softplus(-z) * y
    if module.pos_weight is not None:
        positive = positive * at(module.pos_weight)
    loss = positive + functions.softplus(z) * (1 - y)
    return reduced(module, loss if module.weight is None else loss * at(module.weight))


@layer.dispatch
def binary_cross_entropy(module: nn.BCELoss, at: Weights, *data: Any) -> Any:
    """−y log p − (1 − y) log(1 − p), the logarithms at least −100, as PyTorch bounds them."""
    p, y = data
    loss = -y * np.maximum(np.log(p), -100.0) - (1 - y) * np.maximum(np.log1p(-p), -100.0)
    return reduced(module, loss if module.weight is None else loss * at(module.weight))


def of_classes(module: Any, scores: Any, targets: Any) -> tuple[Any, Any, bool]:
    """Scores with the classes last, targets in that order, and whether these are probabilities."""
    soft = len(targets.shape) == len(scores.shape)
    if len(scores.shape) > 2:
        scores, targets = np.moveaxis(scores, 1, -1), np.moveaxis(targets, 1, -1) if soft else targets
    return scores, targets, soft


@layer.dispatch
def cross_entropy(module: nn.CrossEntropyLoss, at: Weights, *data: Any) -> Any:
    """−log softmax(z)_y of scores (classes,) or (N, classes, ...) and classes, or probabilities."""
    scores, targets, soft = of_classes(module, *data)
    if module.reduction != "mean":
        refuse(module, weight=module.weight, label_smoothing=module.label_smoothing)
        return reduced(module, -losses.log_likelihoods(scores, targets))
    ignore = None if soft else module.ignore_index
    return losses.cross_entropy(scores, targets, at(module.weight), module.label_smoothing, ignore)


@layer.dispatch
def likelihood(module: nn.NLLLoss, at: Weights, *data: Any) -> Any:
    """−Σ w_y z_y / Σ w_y over the positions that count, of log-probabilities z."""
    scores, targets, soft = of_classes(module, *data)
    if soft or module.reduction != "mean":
        raise TraceError("from_torch: NLLLoss takes classes, and has a rule for reduction='mean'")
    counts = targets != module.ignore_index
    y = np.where(counts, targets, 0)
    weight = 1.0 if module.weight is None else functions.lookup(at(module.weight)[:, None], y)[..., 0]
    own = np.where(counts, weight, 0.0)
    return -np.sum(own * np.take_along_axis(scores, y[..., None], axis=-1)[..., 0]) / np.sum(own)


@layer.dispatch
def divergence(module: nn.KLDivLoss, at: Weights, *data: Any) -> Any:
    """p (log p − q) of log-probabilities q, with p or log p given."""
    q, p = data
    return reduced(module, np.exp(p) * (p - q) if module.log_target else functions.xlogy(p, p) - p * q)


@layer.dispatch
def poisson(module: nn.PoissonNLLLoss, at: Weights, *data: Any) -> Any:
    """eᶻ − y z, or μ − y log(μ + ε)."""
    refuse(module, full=module.full)
    z, y = data
    return reduced(module, np.exp(z) - y * z if module.log_input else z - y * np.log(z + module.eps))


@layer.dispatch
def gaussian(module: nn.GaussianNLLLoss, at: Weights, *data: Any) -> Any:
    """(log v + (ŷ − y)²/v)/2, v at least ε."""
    mean, y, variance = data
    v = np.maximum(variance, module.eps)
    constant = float(np.log(2 * np.pi)) / 2 if module.full else 0.0
    return reduced(module, (np.log(v) + (mean - y) ** 2 / v) / 2 + constant)


@layer.dispatch
def soft_margin(module: nn.SoftMarginLoss, at: Weights, *data: Any) -> Any:
    """log(1 + e^{−y z}), y = ±1."""
    return reduced(module, functions.softplus(-data[0] * data[1]))


@layer.dispatch
def margin_ranking(module: nn.MarginRankingLoss, at: Weights, *data: Any) -> Any:
    """max(0, m − y (a − b)), y = ±1."""
    return reduced(module, functions.relu(module.margin - data[2] * (data[0] - data[1])))


@layer.dispatch
def hinge_embedding(module: nn.HingeEmbeddingLoss, at: Weights, *data: Any) -> Any:
    """X where y = 1, max(0, m − x) where y = −1."""
    x, y = data
    return reduced(module, np.where(y == 1, x, functions.relu(module.margin - x)))
