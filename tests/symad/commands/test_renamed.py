"""Names of arguments that have changed: the earlier ones work, and say so."""

import importlib

import numpy as np
import pytest

import symad
from symad.core.given import renamed
from symad.models.generative.measures import coverage, mode_coverage
from symad.models.sequences.dynamics import AttentionDynamics
from symad.numeric.training.adversarial import Player
from symad.numeric.training.loop import train
from symad.numeric.training.optimizers import SGD, RMSprop

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
LOSS = symad.trace(lambda w: (w**2).sum(), [(2,)])

CASES = {
    "RMSprop": (RMSprop, {}, "centred", "centered", True),
    "Player": (Player, {"loss": LOSS, "names": ["w"]}, "optimiser", "optimizer", SGD(0.1)),
    "dynamics": (AttentionDynamics, {"width": 3}, "normaliser", "normalizer", "count"),
    "modes": (mode_coverage, {"samples": POINTS, "radius": 0.1}, "centres", "centers", POINTS[:2]),
    "coverage": (coverage, {"samples": POINTS, "data": POINTS}, "neighbours", "neighbors", 2),
}


@pytest.mark.parametrize("name", CASES)
def test_earlier_names_of_arguments_work_and_say_so(name):
    make, others, earlier, now, value = CASES[name]
    with pytest.warns(FutureWarning, match=f"{earlier}= is {now}= now"):
        found = make(**others, **{earlier: value})
    assert found == make(**others, **{now: value})
    with pytest.raises(TypeError, match=f"earlier name of {now}"):
        make(**others, **{earlier: value, now: value})


def test_training_takes_the_earlier_name():
    with pytest.warns(FutureWarning, match="optimiser= is optimizer= now"):
        found = train(LOSS, {"w": np.ones(2)}, [()], optimiser=SGD(0.25), steps=1)
    assert np.allclose(found.parameters["w"], 0.5)  # 1 − 0.25 · 2


def test_the_earlier_module_has_what_the_new_one_has():
    earlier = importlib.import_module("symad.numeric.training.optimisers")
    new = importlib.import_module("symad.numeric.training.optimizers")
    with pytest.warns(FutureWarning, match=r"training.optimizers now"):
        assert (earlier.SGD, earlier.Optimiser) == (new.SGD, new.Optimizer)


def test_signatures_are_those_of_today():
    @renamed(colour="color")
    def paint(wall, color="white"):
        return wall, color

    assert list(paint.__wrapped__.__code__.co_varnames) == ["wall", "color"]
    assert paint("north", "red") == ("north", "red")


@pytest.mark.parametrize(
    ("module", "earlier", "now"),
    [
        ("symad.corpus", "Entry", "CorpusEntry"),
        ("symad.corpus", "Witness", "WrongPoint"),
        ("symad.models.generative.named_kernels", "Kernel", "NamedKernel"),
        ("symad.models.sequences.ar", "Fit", "LagFit"),
        ("symad.sympy_functions.matrix_functions", "Softmax", "MatrixSoftmax"),
        ("symad.sympy_functions.matrix_functions", "LogSumExp", "MatrixLogSumExp"),
    ],
)
def test_earlier_names_of_classes_are_theirs_with_a_warning(module, earlier, now):
    found = importlib.import_module(module)
    with pytest.warns(FutureWarning, match=f"{module}.{earlier} is {now} now"):
        assert getattr(found, earlier) is getattr(found, now)
    with pytest.raises(AttributeError, match="'Other'"):
        _ = found.Other
