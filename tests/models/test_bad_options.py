"""Every model refuses sizes, counts and names that are none, by the name of the field."""

import dataclasses
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import sympy

import symad.models
from symad.errors import ShapeError, SymadError
from symad.models.layers import losses, pointwise_losses
from symad.models.layers.options import SIZES
from symad.models.transformers.transformer import Transformer

GOOD = {
    "Autoencoder": {"widths": (4, 2)}, "FeedForward": {"widths": (4, 2)}, "Diffusion": {"hidden": (3,)},
    "GAN": {"generator": (3,), "critic": (3,)}, "Classifier": {"side": 8}, "Adversaries": {"side": 8},
    "Recurrent": {"kind": "lstm"}, "Encoder": {"body": Transformer(5, 4, 4, 1, 2, mask="none")},
    "ARX": {"lags": (1, 2)},
}  # fmt: skip


MADE = (
    *("Contest", "Divergence", "Regression", "Kernel", "ReversibleChain", "Fit", "Deer", "NGram", "Preset"),
    "Tokenizer",
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
