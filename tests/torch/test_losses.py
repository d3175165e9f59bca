"""All losses of PyTorch with their options and reductions: values and gradients in float64."""

import numpy as np
import pytest

import symad
from symad.errors import SymadError

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from tests.torch.agreement import agrees  # noqa: E402

g = np.random.default_rng(0)
N, K = 5, 4
Z, Y = g.normal(size=(2, N, K))
P, Q = g.dirichlet(np.ones(K), size=(2, N))
SIGNS, BITS = np.sign(g.normal(size=(N, K))), (g.uniform(size=(N, K)) < 0.5).astype(float)
SIGN = np.array([1.0, -1, 1, -1, -1])
CLASSES, GAPS = np.array([2, 0, 3, 1, 1]), np.array([2, -100, 3, -100, 1])
IMAGES, PIXELS = g.normal(size=(2, K, 3, 2)), g.integers(0, K, (2, 3, 2))
LABELS = np.array([[3, 0, -1, 1], [1, -1, -1, -1], [-1, 0, 1, 2], [0, 1, 2, 3], [2, 3, 1, -1]])
COUNTS = g.poisson(2.0, (N, K)).astype(float)
A, B, C = g.normal(size=(3, N, K))
W = torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)
PATHS, WORDS = g.normal(size=(7, N, K)), g.integers(1, K, (N, 3))
STEPS, LENGTHS = np.array([7, 5, 6, 7, 4]), np.array([3, 1, 2, 0, 2])


def log_softmax(z):
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def far_apart(a, b):
    return abs(a - b).sum(-1)


CASES = {
    "L1Loss": [({}, [Z], [Y])],
    "MSELoss": [({}, [Z, Y], [])],
    "HuberLoss": [({"delta": 0.5}, [Z, Y], [])],
    "SmoothL1Loss": [({"beta": 0.3}, [Z], [Y]), ({"beta": 0.0}, [Z], [Y])],
    "CrossEntropyLoss": [
        ({}, [Z], [CLASSES]), ({"weight": W, "label_smoothing": 0.1}, [Z], [GAPS]),
        ({"ignore_index": 1, "weight": W}, [Z], [CLASSES]),
        ({"label_smoothing": 0.2, "weight": W}, [Z, P], []),
        ({"weight": W, "label_smoothing": 0.1}, [IMAGES], [PIXELS]), ({}, [Z[0]], [CLASSES[0]]),
        ({}, [IMAGES], [np.moveaxis(g.dirichlet(np.ones(K), size=(2, 3, 2)), -1, 1)]),
    ],
    "NLLLoss": [
        ({}, [log_softmax(Z)], [CLASSES]), ({"weight": W}, [log_softmax(Z)], [GAPS]),
        ({"weight": W}, [IMAGES], [PIXELS]), ({"ignore_index": 0}, [Z], [CLASSES]),
    ],
    "PoissonNLLLoss": [
        ({}, [Z], [COUNTS]), ({"full": True}, [Z], [COUNTS]),
        ({"log_input": False, "full": True}, [P], [COUNTS]),
    ],
    "GaussianNLLLoss": [
        ({}, [Z, Y, P + 0.1], []), ({"full": True, "eps": 0.2}, [Z, Y, P], []), ({}, [Z, Y, P[:, :1]], []),
        ({}, [Z, Y, P[:, 0]], []),
    ],
    "KLDivLoss": [({}, [log_softmax(Z), P], []), ({"log_target": True}, [log_softmax(Z), np.log(P)], [])],
    "BCELoss": [({}, [P], [Q]), ({"weight": W}, [P], [BITS])],
    "BCEWithLogitsLoss": [({}, [Z, Q], []), ({"weight": W, "pos_weight": 2 * W}, [Z * 30], [BITS])],
    "HingeEmbeddingLoss": [({"margin": 0.7}, [Z], [SIGNS])],
    "MultiLabelMarginLoss": [({}, [Z], [LABELS]), ({}, [Z[0]], [LABELS[0]])],
    "SoftMarginLoss": [({}, [Z * 40], [SIGNS])],
    "MultiLabelSoftMarginLoss": [({}, [Z], [BITS]), ({"weight": W}, [Z], [BITS])],
    "CosineEmbeddingLoss": [({"margin": 0.2}, [A, B], [SIGN]), ({}, [A[0], B[0]], [np.array(-1.0)])],
    "MarginRankingLoss": [({"margin": 0.3}, [A, B], [SIGNS])],
    "MultiMarginLoss": [
        ({}, [Z], [CLASSES]), ({}, [Z[0]], [CLASSES[0]]),
        ({"p": 2, "margin": 0.5, "weight": W}, [Z], [CLASSES]),
    ],
    "TripletMarginLoss": [
        ({"margin": 2.0}, [A, B, C], []), ({"p": 1, "swap": True, "margin": 9.0}, [A, B, C], []),
        ({"p": 3.0, "margin": 3.0}, [A, B, C], []),
    ],
    "TripletMarginWithDistanceLoss": [
        ({"margin": 2.0}, [A, B, C], []),
        ({"distance_function": far_apart, "swap": True, "margin": 5.0}, [A, B, C], []),
    ],
    "CTCLoss": [
        ({}, [PATHS], [WORDS, STEPS, LENGTHS]),
        ({"blank": 2, "zero_infinity": True}, [PATHS], [WORDS % 2, STEPS, LENGTHS]),
        ({}, [PATHS], [WORDS[WORDS >= 0][: LENGTHS.sum()], STEPS, LENGTHS]),
        ({}, [PATHS[:, 0]], [WORDS[0], np.array(7), np.array(3)]),
    ],
}  # fmt: skip
FLAT = [(name, k) for name, cases in CASES.items() for k in range(len(cases))]


class Normalized(nn.Module):
    """Scores, of which PyTorch's CTC takes the logarithms of softmax."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, z, *others):
        return self.inner(z.log_softmax(-1), *others)


@symad.torch.layer.dispatch
def normalized(module: Normalized, at: symad.torch.Weights, *data: object) -> object:
    return symad.torch.layer(module.inner, at, symad.functions.log_softmax(data[0], axis=-1), *data[1:])


class Fixed(nn.Module):
    """A loss whose targets stay as they are."""

    def __init__(self, inner, others):
        super().__init__()
        self.inner, self.others = inner, others

    def forward(self, *inputs):
        return self.inner(*inputs, *map(torch.as_tensor, self.others))


@symad.torch.layer.dispatch
def fixed(module: Fixed, at: symad.torch.Weights, *data: object) -> object:
    return symad.torch.layer(module.inner, at, *data, *module.others)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "k"), FLAT)
def test_values_and_gradients(name, k):
    options, inputs, others = CASES[name][k]
    for reduction in ("mean", "sum", "none") + ("batchmean",) * (name == "KLDivLoss"):
        module = getattr(nn, name)(reduction=reduction, **options).double()
        module = Fixed(Normalized(module) if name == "CTCLoss" else module, others)
        agrees(module, inputs, backends=("c",) if reduction == "mean" else ())


@pytest.mark.skipif(not hasattr(nn, "LinearCrossEntropyLoss"), reason="an older PyTorch")
@pytest.mark.parametrize("options", [{}, {"bias": True, "label_smoothing": 0.1, "out_features": (2,)}])
def test_linear_cross_entropy(options):
    torch.manual_seed(0)
    targets = g.integers(0, 3, (N, *options.get("out_features", ())))
    agrees(Fixed(nn.LinearCrossEntropyLoss(K, 3, **options).double(), [targets]), [Z])


@pytest.mark.parametrize("bias", [True, False])
def test_adaptive_softmax(bias):
    torch.manual_seed(0)
    module = nn.AdaptiveLogSoftmaxWithLoss(K, 12, [3, 7], div_value=2.0, head_bias=bias).double()
    agrees(Fixed(module, [np.array([0, 11, 4, 2, 7])]), [Z])


APART = {"LinearCrossEntropyLoss", "AdaptiveLogSoftmaxWithLoss"}


def test_no_loss_is_missing():
    found = {name for name in vars(nn) if name.endswith("Loss")}
    assert found - {"NLLLoss2d"} - APART == set(CASES)


def test_second_derivatives_of_the_classification_of_paths():
    """PyTorch has none; mpmath's differences of a sum over all paths, written out."""
    from itertools import product

    from symad.models.sequences.ctc import ctc

    def labels_of(path):
        joined = [k for j, k in enumerate(path) if j == 0 or k != path[j - 1]]
        return [k for k in joined if k != 0]

    paths = [path for path in product(range(3), repeat=4) if labels_of(path) == [1, 1]]
    assert len(paths) == 5
    graph = symad.trace(lambda z: ctc(z, np.array([1, 1]), None, None), [(4, 3)])

    def every_path(z):
        sums = [sum(z[t, k] for t, k in enumerate(path)) for path in paths]
        return -symad.functions.logsumexp(symad.functions.stack(sums))

    spelled = symad.trace(every_path, [(4, 3)])
    z = g.normal(size=(4, 3))
    for made in (symad.gradient, symad.hessian):
        np.testing.assert_allclose(made(graph)(z), made(spelled)(z), rtol=1e-10, atol=1e-13)


def test_what_does_not_fit_is_refused():
    from symad.models.layers import margin_losses, pointwise_losses
    from symad.models.sequences.ctc import ctc

    for wrong, message in (
        (lambda: pointwise_losses.reduced(Z, "avg"), "reduction='avg'"),
        (lambda: margin_losses.multi_margin(Z, CLASSES, p=3), "p=3"),
        (lambda: margin_losses.multi_margin(Z, CLASSES[:2]), r"\(2,\)"),
        (lambda: margin_losses.multi_label_margin(Z, BITS[0]), r"\(4,\)"),
        (lambda: ctc(PATHS, WORDS[:2], STEPS, LENGTHS), r"\(2, 3\)"),
        (lambda: ctc(PATHS, WORDS, STEPS[:2], LENGTHS), "steps"),
        (lambda: ctc(PATHS, WORDS, STEPS + 1, LENGTHS), "0..7"),
        (lambda: ctc(PATHS, WORDS, STEPS, LENGTHS, blank=4), "blank=4"),
        (lambda: ctc(PATHS, WORDS + 3, STEPS, LENGTHS), r"not an integer in 0\.\.3"),
    ):
        with pytest.raises((SymadError, IndexError), match=message):
            wrong()
