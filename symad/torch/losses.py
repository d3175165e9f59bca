"""Losses of PyTorch: modules with their options, computed by `symad.models`.

A rule names the options of its module; `reduced` applies its ``reduction``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from symad.errors import TraceError
from symad.functions import concatenate, log_softmax
from symad.models.layers import losses
from symad.models.layers import margin_losses as margin
from symad.models.layers import pointwise_losses as pointwise
from symad.models.sequences.ctc import ctc
from symad.torch.modules import Array, Result, Weights, layer

if TYPE_CHECKING:
    import torch


def reduced(module: torch.nn.Module, values: Array, weight: Array | None = None) -> Array:
    """The mean or sum of all elements, or the elements; ``weight`` multiplies them."""
    return pointwise.reduced(values if weight is None else values * weight, module.reduction)


@layer.dispatch
def mean_squared_error(module: nn.MSELoss, at: Weights, *data: Array) -> Result:
    """(ŷ − y)²."""
    return reduced(module, pointwise.squared(*data))


@layer.dispatch
def absolute_error(module: nn.L1Loss, at: Weights, *data: Array) -> Result:
    """|ŷ − y|."""
    return reduced(module, pointwise.absolute(*data))


@layer.dispatch
def huber(module: nn.HuberLoss, at: Weights, *data: Array) -> Result:
    """e²/2 near 0, linear beyond δ."""
    return reduced(module, pointwise.huber(data[0], data[1], delta=module.delta))


@layer.dispatch
def smooth_absolute_error(module: nn.SmoothL1Loss, at: Weights, *data: Array) -> Result:
    """Huber's divided by β; |e| for β = 0."""
    return reduced(module, pointwise.smooth_absolute(data[0], data[1], beta=module.beta))


@layer.dispatch
def logistic_loss(module: nn.BCEWithLogitsLoss, at: Weights, *data: Array) -> Result:
    """The logistic loss with the weight of positives."""
    positive = 1.0 if module.pos_weight is None else at(module.pos_weight)
    return reduced(module, pointwise.logistic(data[0], data[1], positive=positive), at(module.weight))


@layer.dispatch
def binary_cross_entropy(module: nn.BCELoss, at: Weights, *data: Array) -> Result:
    """−y log p − (1 − y) log(1 − p)."""
    return reduced(module, pointwise.binary_cross_entropy(*data), at(module.weight))


@layer.dispatch
def divergence(module: nn.KLDivLoss, at: Weights, *data: Array) -> Result:
    """p (log p − q) of log-probabilities q, with p or log p given."""
    return reduced(module, pointwise.divergence(data[0], data[1], log_target=module.log_target))


@layer.dispatch
def poisson(module: nn.PoissonNLLLoss, at: Weights, *data: Array) -> Result:
    """eᶻ − y z, or μ − y log(μ + ε), optionally with Stirling's formula."""
    options = {"logarithmic": module.log_input, "epsilon": module.eps, "full": module.full}
    return reduced(module, pointwise.poisson(data[0], data[1], **options))


@layer.dispatch
def gaussian(module: nn.GaussianNLLLoss, at: Weights, *data: Array) -> Result:
    """(log v + (ŷ − y)²/v)/2; v (...) for elements, or one for each last axis."""
    mean, target, variance = data
    if len(variance.shape) < len(mean.shape):
        variance = variance[..., None]
    return reduced(module, pointwise.gaussian(mean, target, variance, module.eps, module.full))


@layer.dispatch
def soft_margin(module: nn.SoftMarginLoss, at: Weights, *data: Array) -> Result:
    """log(1 + e^{−y z}), y = ±1."""
    return reduced(module, margin.soft_margin(*data))


@layer.dispatch
def hinge_embedding(module: nn.HingeEmbeddingLoss, at: Weights, *data: Array) -> Result:
    """Elementwise x where y = 1, max(0, m − x) where y = −1."""
    return reduced(module, margin.hinge_embedding(data[0], data[1], margin=module.margin))


@layer.dispatch
def margin_ranking(module: nn.MarginRankingLoss, at: Weights, *data: Array) -> Result:
    """max(0, m − y (a − b)), y = ±1."""
    return reduced(module, margin.ranking(data[0], data[1], data[2], margin=module.margin))


@layer.dispatch
def cosine_embedding(module: nn.CosineEmbeddingLoss, at: Weights, *data: Array) -> Result:
    """1 − cos(a, b), or max(0, cos(a, b) − m)."""
    return reduced(module, margin.cosine_embedding(data[0], data[1], data[2], margin=module.margin))


@layer.dispatch
def multi_margin(module: nn.MultiMarginLoss, at: Weights, *data: Array) -> Result:
    """Σ_{k≠j} max(0, m − x_j + x_k)^p / K."""
    options = {"p": module.p, "margin": module.margin, "weights": at(module.weight)}
    return reduced(module, margin.multi_margin(data[0], data[1], **options))


@layer.dispatch
def multi_label_margin(module: nn.MultiLabelMarginLoss, at: Weights, *data: Array) -> Result:
    """Σ_{j∈J, k∉J} max(0, 1 − x_j + x_k) / K; J are the classes before the first −1."""
    scores, classes = data
    if not isinstance(classes, np.ndarray):
        raise TraceError(
            "from_torch: MultiLabelMarginLoss reads its classes when it is traced: give an array"
        )
    first = np.cumprod(classes >= 0, axis=-1).astype(bool)
    own = (np.arange(classes.shape[-1]) == np.where(first, classes, -1)[..., None]).any(axis=-2)
    return reduced(module, margin.multi_label_margin(scores, own.astype(float)))


@layer.dispatch
def multi_label_soft_margin(module: nn.MultiLabelSoftMarginLoss, at: Weights, *data: Array) -> Result:
    """The mean of the logistic losses of all classes."""
    weight = 1.0 if module.weight is None else at(module.weight)
    return reduced(module, margin.multi_label_logistic(data[0], data[1], weights=weight))


@layer.dispatch
def triplet_margin(module: nn.TripletMarginLoss, at: Weights, *data: Array) -> Result:
    """max(0, m + d(a, p) − d(a, n)) with the distance of order p."""

    def between(a: Array, b: Array) -> Array:
        return margin.distance(a, b, module.p, module.eps)

    options = {"margin": module.margin, "between": between, "swap": module.swap}
    return reduced(module, margin.triplet(data[0], data[1], data[2], **options))


@layer.dispatch
def triplet_margin_of_a_distance(
    module: nn.TripletMarginWithDistanceLoss, at: Weights, *data: Array
) -> Result:
    """The triplet loss with ``distance_function``: of arrays, a module with a rule, or PyTorch's default."""
    given: Any = module.distance_function
    if isinstance(given, nn.PairwiseDistance):

        def between(a: Array, b: Array) -> Array:
            return margin.distance(a, b, given.norm, given.eps)

    else:
        between = (lambda a, b: layer(given, at, a, b)) if isinstance(given, nn.Module) else given
    options = {"margin": module.margin, "between": between, "swap": module.swap}
    return reduced(module, margin.triplet(data[0], data[1], data[2], **options))


def of_classes(scores: Any, targets: Any) -> tuple[Any, Any, bool]:
    """Scores with the classes last, targets in that order, and true if the targets are probabilities."""
    soft = len(targets.shape) == len(scores.shape)
    if len(scores.shape) > 2:
        scores, targets = np.moveaxis(scores, 1, -1), np.moveaxis(targets, 1, -1) if soft else targets
    return scores, targets, soft


def classified(module: torch.nn.Module, loss: Array, weight: Array) -> Array:
    """The reduction of losses of classes; their mean is weighted."""
    return losses.mean_of_classes(loss, weight) if module.reduction == "mean" else reduced(module, loss)


@layer.dispatch
def cross_entropy(module: nn.CrossEntropyLoss, at: Weights, *data: Array) -> Result:
    """−log softmax(z)_y of scores (classes,) or (N, classes, ...) and classes, or probabilities."""
    return entropy(module, at, *data)


def entropy(module: torch.nn.Module, at: Weights, scores: Array, targets: Array) -> Array:
    """The cross-entropy with the options of a module."""
    scores, targets, soft = of_classes(scores, targets)
    ignore = None if soft else module.ignore_index
    options = at(module.weight), module.label_smoothing, ignore
    return classified(module, *losses.class_losses(log_softmax(scores, axis=-1), targets, *options))


@layer.dispatch
def likelihood(module: nn.NLLLoss, at: Weights, *data: Array) -> Result:
    """−Σ w_y z_y / Σ w_y over the positions that count, of log-probabilities z."""
    scores, targets, soft = of_classes(*data)
    if soft:
        raise TraceError(f"from_torch: NLLLoss takes classes, not probabilities {tuple(targets.shape)}")
    found = losses.class_losses(scores, targets, at(module.weight), ignore=module.ignore_index)
    return classified(module, *found)


if hasattr(nn, "LinearCrossEntropyLoss"):

    @layer.dispatch
    def linear_cross_entropy(module: nn.LinearCrossEntropyLoss, at: Weights, *data: Array) -> Result:
        """The cross-entropy of a linear map of features (..., d)."""
        scores = layer(module.linear, at, data[0])
        shape = (*scores.shape[:-1], module.num_classes, *module.out_features)
        return entropy(module, at, scores.reshape(shape), data[1])


@layer.dispatch
def adaptive(module: nn.AdaptiveLogSoftmaxWithLoss, at: Weights, *data: Array) -> Result:
    """(log p of the targets, −their mean): rare classes are in clusters, log p = log p_c + log p_k."""
    x, targets = data
    head = log_softmax(layer(module.head, at, x), axis=-1)
    parts = [head[..., : module.shortlist_size]]
    for k, tail in enumerate(module.tail):
        own = log_softmax(layer(tail, at, x), axis=-1)
        parts.append(own + head[..., module.shortlist_size + k, None])
    found, _ = losses.class_losses(concatenate(parts, axis=-1), targets)
    return -found, np.mean(found)


@layer.dispatch
def connectionist(module: nn.CTCLoss, at: Weights, *data: Array) -> Result:
    """−log p(labels); the mean divides each by its number of labels, at least 1."""
    log_probabilities, labels, steps, counts = data
    batched = len(log_probabilities.shape) == 3
    if batched and len(labels.shape) == 1:
        labels = padded(labels, counts)
    steps, counts = (v if len(np.shape(v)) == batched else v[0] for v in (steps, counts))
    loss: Any = ctc(log_probabilities, labels, steps, counts, module.blank)
    if module.zero_infinity:
        loss = np.where(loss == np.inf, 0.0, loss)
    if module.reduction == "mean":
        loss = loss / np.maximum(counts, 1)
    return reduced(module, loss)


def padded(labels: Array, counts: Array) -> Array:
    """Concatenated labels, which PyTorch also accepts, as rows (N, S)."""
    if not isinstance(labels, np.ndarray) or not isinstance(counts, np.ndarray):
        raise TraceError("from_torch: CTCLoss of joined labels reads them when it is traced: give arrays")
    rows = np.zeros((len(counts), int(counts.max())), dtype=labels.dtype)
    for row, part in zip(rows, np.split(labels, np.cumsum(counts)[:-1]), strict=True):
        row[: len(part)] = part
    return rows
