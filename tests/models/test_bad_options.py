"""Every model refuses invalid sizes, counts and names with an error that names the field."""

import dataclasses
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import sympy

import symad.models
from symad.errors import ShapeError, SymadError
from symad.models.generative import diffusion, divergences, gaussian_process, kernels, named_kernels
from symad.models.layers import losses, margin_losses, normalization, pointwise_losses
from symad.models.layers.options import SIZES
from symad.models.sequences import ar, arma
from symad.models.sequences.arx import ARX
from symad.models.sequences.ctc import ctc
from symad.models.sequences.recurrent import Recurrent
from symad.models.transformers import attention
from symad.models.transformers.transformer import Transformer

GOOD = {
    "Autoencoder": {"widths": (4, 2)}, "FeedForward": {"widths": (4, 2)}, "Diffusion": {"hidden": (3,)},
    "GAN": {"generator": (3,), "critic": (3,)}, "Classifier": {"side": 8}, "Adversaries": {"side": 8},
    "Recurrent": {"kind": "lstm"}, "Encoder": {"body": Transformer(5, 4, 4, 1, 2, mask="none")},
    "ARX": {"lags": (1, 2)},
}  # fmt: skip


MADE = (
    *("Contest", "Divergence", "Regression", "NamedKernel", "ReversibleChain", "LagFit", "Deer", "NGram"),
    *("Preset", "Tokenizer"),
)
"""What functions return, and tables."""


def models():
    found = {}
    for module in pkgutil.walk_packages(symad.models.__path__, "symad.models."):
        for cls in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(cls) and cls.__module__ == module.name and dataclasses.is_dataclass(cls):
                found[cls.__name__] = cls
    return {name: cls for name, cls in found.items() if name not in MADE}


MODELS = models()


def good(cls):
    """Sizes 4 and heads 2 for what has no default."""
    made = dict(GOOD.get(cls.__name__, {}))
    for field in dataclasses.fields(cls):
        if field.name not in made and field.default is dataclasses.MISSING:
            made[field.name] = 2 if field.name in ("heads", "layers") else 4
    return made


@pytest.mark.parametrize("name", MODELS)
def test_sizes_that_are_none(name):
    cls = MODELS[name]
    cls(**good(cls))
    for field in dataclasses.fields(cls):
        if field.type in SIZES:
            for wrong in (
                -1,
                2.5,
                "4",
                True,
                sympy.Symbol("n", integer=False),
                sympy.Symbol("n", negative=True),
            ):
                given = (4, wrong) if field.type.startswith("tuple") else wrong
                with pytest.raises(ShapeError, match=f"{name}\\({field.name}="):
                    cls(**good(cls) | {field.name: given})


@pytest.mark.parametrize("name", MODELS)
def test_names_that_are_none(name):
    cls = MODELS[name]
    for field in dataclasses.fields(cls):
        if field.type == "str" or str(field.type).startswith("str |"):
            with pytest.raises(SymadError, match="nonsense"):
                cls(**good(cls) | {field.name: "nonsense"})


def test_symbols_and_numbers_of_numpy_are_sizes():
    n = sympy.Symbol("n", integer=True, positive=True)
    for size in (n, sympy.Symbol("m"), 2 * n + 1, np.int64(4), sympy.Integer(4)):
        symad.models.rnn.RNN(size, size, size)
        symad.models.feedforward.FeedForward((size, 4))


@pytest.mark.parametrize("target", [np.zeros(3), np.zeros((1, 3)), np.zeros((3, 3))])
def test_losses_do_not_broadcast(target):
    """(3, 1) against (3,) would be nine differences."""
    predicted = np.zeros((3, 1))
    elementwise = ("squared", "absolute", "huber", "quantile", "logistic", "divergence", "poisson")
    for loss in (
        losses.mean_squared_error,
        losses.huber,
        *(getattr(pointwise_losses, n) for n in elementwise),
    ):
        with pytest.raises(ShapeError, match=r"\(3, 1\)"):
            loss(predicted, target)
        symad.trace(lambda x, loss=loss: loss(x, 0.5), [(3, 1)])
        with pytest.raises(ShapeError, match=r"\(3, 1\)"):
            symad.trace(lambda x, loss=loss: loss(x, target), [(3, 1)])


@pytest.mark.parametrize("name", [n for n in MODELS if n not in ("ARX", "Adversaries", "Diffusion")])
def test_parameters_that_do_not_fit(name):
    """One array missing, or of a shape that would be broadcast."""
    model = MODELS[name](**good(MODELS[name]))
    methods = ("apply", "scores", "features", "encode", "predict", "score", "velocity", "loss")
    method = next(found for m in methods if callable(found := getattr(model, m, None)))
    own = [v for v in inspect.signature(method).parameters.values() if v.default is v.empty]
    data = [np.zeros((2, 4), int)] * (len(own) - 1)
    p = model.init(0)
    for key, value in p.items():
        with pytest.raises(ShapeError, match=f"{key} has the shape"):
            method(p | {key: np.zeros((1,) * (value.ndim + 1))}, *data)
    with pytest.raises(ShapeError, match="lack"):
        method({}, *data)


def test_data_that_do_not_fit_are_named():
    from symad.models.sequences.lstm import LSTM
    from symad.models.transformers import attention, positions

    lstm, heads = LSTM(3, 2, 1), attention.MultiHead(4, 2)
    x = np.zeros((5, 4))
    for wrong, message in (
        (lambda: lstm.apply(lstm.init(), x), r"LSTM\.\w+ of x \(5, 4\)"),
        (
            lambda: heads.apply(heads.init(), x, mask=np.ones((2, 3), bool)),
            r"mask \(2, 3\) does not fit",
        ),
        (lambda: attention.attention(x, x, x, cap=0), "cap"),
        (lambda: positions.rotate(x[:, :3], np.arange(5)), "d = 3 is not even"),
        (lambda: losses.focal(x, x[:, :1]), r"\(5, 1\)"),
        (lambda: losses.info_nce(x, x, 0.0), "temperature"),
        (lambda: losses.huber(x, x, -1.0), "delta"),
        (lambda: arma.log_likelihood(np.array([1.5]), np.zeros(0), 0.0, 1.0, np.ones(5)), "not stationary"),
        (lambda: arma.log_likelihood(np.array([0.5]), np.zeros(0), 0.0, -1.0, np.ones(5)), "variance"),
        (lambda: arma.log_likelihood(np.zeros((1, 1)), np.zeros(0), 0.0, 1.0, np.ones(5)), "phi"),
        (lambda: Transformer(5, 4, 4, 1, 2, epsilon=-1.0), "epsilon"),
    ):
        with pytest.raises(SymadError, match=message):
            wrong()


Z, R = np.ones((3, 4)) * 1j, np.ones((3, 4))
COMPLEX = {
    "a loss": lambda: losses.mean_squared_error(Z, R),
    "Huber": lambda: losses.huber(Z, R),
    "cross-entropy": lambda: losses.cross_entropy(Z, np.array([0, 1, 2])),
    "soft targets": lambda: losses.cross_entropy(R, Z),
    "focal": lambda: losses.focal(Z, R),
    "InfoNCE": lambda: losses.info_nce(R, Z),
    "hinge": lambda: margin_losses.hinge_embedding(Z, R),
    "soft margin": lambda: margin_losses.soft_margin(Z, R),
    "ranking": lambda: margin_losses.ranking(R, Z, R),
    "cosine": lambda: margin_losses.cosine_embedding(R, Z, R[:, 0]),
    "multi-margin": lambda: margin_losses.multi_margin(Z, np.array([0, 1, 2])),
    "sets of classes": lambda: margin_losses.multi_label_margin(Z, R),
    "triplet": lambda: margin_losses.triplet(R, R, Z),
    "CTC": lambda: ctc(Z, np.array([1]), None, None),
    "layer norm": lambda: normalization.layer_norm(Z, R[0]),
    "RMS norm": lambda: normalization.rms_norm(Z, R[0]),
    "batch norm": lambda: normalization.batch_norm(Z, R[0], R[0]),
    "attention": lambda: attention.attention(R, Z, R),
    "a bias": lambda: attention.attention(R, R, R, bias=np.ones((3, 3)) * 1j),
    "a layer": lambda: Recurrent("gru", 4, 2).apply(Recurrent("gru", 4, 2).init(0), Z),
    "weights": lambda: Recurrent("gru", 4, 2).apply(
        {k: v * 1j for k, v in Recurrent("gru", 4, 2).init(0).items()}, R
    ),
    "a kernel": lambda: named_kernels.RBF()(Z),
    "a product": lambda: named_kernels.DotProduct()(R, Z),
    "a kernel matrix": lambda: kernels.gram(kernels.rbf(), Z, None, {kernels.length: 1.0}),
    "a regression": lambda: named_kernels.kernel_ridge(named_kernels.RBF(), None, 0.1, R, Z[:, 0], R),
    "a Gaussian process": lambda: gaussian_process.condition(kernels.rbf(), {}, 0.1, Z, R[:, 0]),
    "ARMA": lambda: arma.log_likelihood(np.array([0.5]), np.zeros(0), 0.0, 1.0, Z[0]),
    "ARX": lambda: ARX((1,)).fit(Z[0]),
    "AR": lambda: ar.fit(Z[0], 1),
    "noised": lambda: diffusion.noised(Z, R, 0.5),
    "denoised": lambda: diffusion.denoised(R, Z, 0.5),
    "posterior": lambda: diffusion.posterior_mean(Z, R, 0.4, 0.5),
    "score": lambda: diffusion.score_of(Z, 0.5),
    "divergence": lambda: divergences.kl(np.array([0.5 + 0j, 0.5]), np.array([0.5, 0.5])),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_arrays_are_refused(name):
    """They compute in NumPy, and some give real numbers that mean nothing."""
    with pytest.raises(SymadError, match=r"complex128.* symad works over the real numbers"):
        COMPLEX[name]()


def test_attention_names_what_does_not_fit():
    Q = np.ones((4, 5, 2))
    for wrong, message in (
        (lambda: attention.attention(Q, np.ones((4, 5, 3)), Q), r"queries \(4, 5, 2\) and keys \(4, 5, 3\)"),
        (lambda: attention.attention(Q, Q, Q, np.ones((5, 4), bool)), r"mask \(5, 4\)"),
        (lambda: attention.attention(Q, Q, Q, bias=np.ones((3, 5))), r"bias \(3, 5\)"),
        (lambda: attention.attention(Q, Q, Q, additive=np.ones((5, 5), bool)), "give them as mask"),
    ):
        with pytest.raises(ShapeError, match=message):
            wrong()


def test_series_and_kernels_name_what_does_not_fit():
    with pytest.raises(ShapeError, match="nan at 1"):
        arma.log_likelihood(np.array([0.5]), np.zeros(0), 0.0, 1.0, np.array([1.0, np.nan]))
    with pytest.raises(SymadError, match="one length"):
        named_kernels.RationalQuadratic([1.0, 2.0])
    for f in (named_kernels.log_marginal_likelihood, named_kernels.posterior):
        with pytest.raises(ShapeError, match=r"points \(3, 4\).*not \(2,\)"):
            f(named_kernels.RBF(), None, R, np.ones(2), *([R] if f is named_kernels.posterior else []))
