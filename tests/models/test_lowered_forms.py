"""The newer families in every lowered form: NumPy, plain, C, runs with its refusal, the CuPy stand-in."""

import numpy as np
import pytest
import sympy

import symad
from symad import functions as F
from symad.errors import LoweringError
from symad.models.generative import gan, named_kernels
from symad.models.generative.diffusion import Diffusion, posterior_mean
from symad.models.generative.divergences import gaussian_kl_full
from symad.models.generative.vae import VAE
from symad.models.layers import activations, losses, margin_losses, pointwise_losses
from symad.models.layers.parameters import trace_model
from symad.models.sequences import arma
from symad.models.sequences.arx import ARX
from symad.models.sequences.ctc import ctc
from symad.models.sequences.recurrent import Recurrent
from symad.models.transformers.attention import MultiHead
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from tests.gpu.cupy_agreement import agree

g = np.random.default_rng(4)
X, Y, SQUARE = g.normal(size=(5, 3)), g.normal(size=(5, 3)), g.normal(size=(3, 3))
SIGNS = np.sign(Y)


def of_model(model, f, *data):
    p = model.init(1)
    graph = trace_model(f, model.shapes, *data)
    return graph, [v + 0.3 * g.normal(size=v.shape) for v in p.values()] + list(data)


def of_function(f, *values):
    return symad.trace(f, [np.shape(v) for v in values]), list(values)


def recurrent(kind, **options):
    model = Recurrent(kind, 3, 2, bidirectional=True, **options)
    lengths = np.array([4, 2])

    def total(p, x):
        return (model.apply(p, x, lengths=lengths)[0] ** 2).sum()

    return of_model(model, total, g.normal(size=(4, 2, 3)))


def heads(**options):
    model = MultiHead(4, 4, key=2, **options)
    hidden = np.where(np.triu(np.ones((5, 5)), 1) > 0, -np.inf, 0.0)

    def total(p, x):
        return (model.apply(p, x, additive=hidden) ** 2).sum()

    return of_model(model, total, g.normal(size=(5, 4)))


ROTARY = Transformer(7, 5, 4, 1, 2, position="rotary", rotary="interleaved", key_heads=1, window=2, cap=5.0)
DIFFUSION = Diffusion(2, (3,), 4, predicts="velocity")
KERNEL = 1.5 * named_kernels.RBF([0.5, 1.0, 2.0]) + named_kernels.RationalQuadratic(0.7, 1.3) * (
    named_kernels.Periodic(1.2, 3.0) + named_kernels.Polynomial(2, 0.5, 1.0)
)
VARIATIONAL = VAE(
    3, 2, 2, likelihood="gaussian", deviation=0.7, prior=lambda z: -np.sum(np.log(np.cosh(z)), axis=1)
)
HINGE = gan.GAN(3, 2, (3,), (3,), game=gan.HINGE, penalty=2.0)
SQUARES = gan.GAN(3, 2, (3,), (3,), game=gan.LEAST_SQUARES)
PADE = symad.trace(lambda a: np.tanh(a).sum() * np.exp(-(a * a).sum()), [(3,)])

CASES = {
    "rnn": recurrent("rnn"), "lstm": recurrent("lstm", projection=3), "gru": recurrent("gru"),
    "attention": heads(key_heads=2, scale=0.3, cap=4.0),
    "transformer": of_model(ROTARY, ROTARY.loss, np.array([1, 2, 3, 0]), np.array([2, 3, 0, 6])),
    "diffusion": of_model(
        DIFFUSION, lambda p, x, e, t: DIFFUSION.loss(p, x, e, np.full((3, 1), 0.4), t),
        g.normal(size=(3, 2)), g.normal(size=(3, 2)), g.normal(size=(3, 4)),
    ),
    "cross-entropy": of_function(
        lambda z: losses.cross_entropy(z, np.array([0, 2, -1, 1, 0]), np.array([1.0, 2.0, 0.5]), 0.1, -1), X
    ),
    "focal": of_function(lambda z: losses.focal(z, (SIGNS + 1) / 2, 2.0, 0.3), X),
    "InfoNCE": of_function(losses.info_nce, X, Y),
    **{
        name: of_function(lambda a, b, f=f: f(a, b).sum(), X, Y)
        for name, f in (
            ("Huber", pointwise_losses.huber), ("quantile", pointwise_losses.quantile),
            ("logistic", pointwise_losses.logistic), ("Poisson", pointwise_losses.poisson),
            ("triplet", lambda a, b: margin_losses.triplet(a, b, a[::-1], 3.0, swap=True)),
            ("cosine", lambda a, b: margin_losses.cosine_embedding(a, b, np.array([1.0, -1, 1, -1, 1]))),
            ("multi-margin", lambda a, b: margin_losses.multi_margin(a, np.array([0, 1, 2, 1, 0])) * b[:, 0]),
        )
    },
    "CTC": of_function(
        lambda z: ctc(F.log_softmax(z, axis=-1), *map(np.array, ([[1, 1], [2, 1]], [5, 4], [2, 1]))).sum(),
        g.normal(size=(5, 2, 3)),
    ),
    "KL": of_function(
        lambda m, A, n, B: gaussian_kl_full(m, A @ A.T + np.eye(3), n, B @ B.T + np.eye(3)),
        X[0], SQUARE, Y[0], Y[:3],
    ),
    "ARMA": of_function(
        lambda phi, theta, y: arma.log_likelihood(0.3 * np.tanh(phi), theta, 0.1, 2.0, y),
        X[0, :2], Y[0, :1], Y.ravel(),
    ),
    "ARX": of_function(
        lambda w, v, c, y, u: ARX((1, 3), 2).loss({"w": w, "v": v, "c": c}, y, u),
        g.normal(size=2), g.normal(size=2), 0.3, g.normal(size=9), g.normal(size=(9, 2)),
    ),
    **{
        name: of_function(lambda a, f=f: np.sin(f(a)).sum(), SQUARE)
        for name, f in (
            ("qr", lambda a: F.qr(a)[0]), ("svd", lambda a: F.svd(a)[0] ** 2), ("lu", lambda a: F.lu(a)[1]),
            ("pinv", lambda a: F.pinv(a[:, :2])), ("lstsq", lambda a: F.lstsq(a[:, :2], a[:, 2])),
            ("expm", F.expm),
        )
    },
    "Gaussian process": of_function(
        lambda t, x, y: named_kernels.log_marginal_likelihood(KERNEL, t, x, y, 0.1), KERNEL.theta, X, Y[:, 0]
    ),
    "kernel ridge": of_function(
        lambda t, x, y: (named_kernels.kernel_ridge(KERNEL, t, 0.3, x, y, x[:2] + 0.1) ** 2).sum(),
        KERNEL.theta, X, Y[:, 0],
    ),
    "VAE": of_model(VARIATIONAL, VARIATIONAL.loss, X, g.normal(size=(5, 2))),
    "GAN": of_model(HINGE, HINGE.critic_loss, X, g.normal(size=(5, 2)), g.uniform(size=5)),
    "least squares": of_model(SQUARES, SQUARES.generator_loss, g.normal(size=(5, 2))),
    "posterior": of_function(lambda x, z: np.sin(posterior_mean(x, z, 0.4, 0.6)).sum(), X, Y),
    "jet": of_function(lambda a, v: sum(symad.jet(PADE, 5)(a, v)), X[0], Y[0]),
    **{
        name: of_function(lambda x, name=name: activations.activation(name)(x).sum(), X)
        for name in ("leaky_relu", "elu", "mish", "gelu_tanh")
    },
}  # fmt: skip


LONG = ("rnn", "gru", "transformer", "diffusion", "kernel ridge", "GAN")
"""Others have the same ops in small."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in CASES])
def test_value_and_gradient(name):
    graph, values = CASES[name]
    wrt = [n for n, v in zip(graph.inputs, values, strict=True) if np.asarray(v).dtype.kind == "f"]
    graph = symad.value_and_gradient(graph, wrt)
    expected = [np.asarray(v, float) for v in graph(*values)]
    scale = max(np.abs(v).max() for v in expected)
    for f in (lower(graph), lower(graph, style="plain"), lower(graph, backend="c")):
        for one, other in zip(f(*values), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12 * scale)
    agree(graph, values, rtol=1e-10, where="stand-in")


def test_runs_take_scalar_functions_and_name_arrays():
    """The backend "runs" executes scalar graphs; models of arrays are refused with the reason."""
    x = sympy.Symbol("x", real=True)
    jet = symad.jet(sympy.exp(sympy.sin(x)) / (1 + x**2), 6)
    np.testing.assert_allclose(lower(jet, backend="runs")(0.3, 1.0), lower(jet)(0.3, 1.0), rtol=1e-12)
    for name in ("lstm", "CTC", "ARMA", "expm"):
        with pytest.raises(LoweringError, match="runs"):
            lower(CASES[name][0], backend="runs")
