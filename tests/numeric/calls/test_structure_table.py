"""Every call with parameters in every structure: dicts, lists, tuples, dataclasses, dotted names."""

from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import symad
from symad.errors import EvaluationError, ShapeError
from symad.numeric import scale
from symad.numeric.training.loop import train
from symad.numeric.training.optimizers import SGD
from tests.gpu.cupy_agreement import library
from tests.numeric.calls.structure_cases import B_BAR, CALLS, DATA, KINDS, W_BAR, B, Case, T, W, X

NAMES = list(KINDS)


@pytest.mark.sample(17, without=("certificates-",))
@pytest.mark.parametrize(("call", "kind"), [(f, NAMES[k % len(NAMES)]) for k, f in enumerate(CALLS)])
def test_every_call_takes_a_structure(call, kind, tmp_path: Path) -> None:
    call(Case(kind), tmp_path)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("call", CALLS[:1])
def test_every_structure_is_taken(call, kind, tmp_path: Path) -> None:
    call(Case(kind), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("call", CALLS[1:])
def test_every_call_takes_every_structure(call, kind, tmp_path: Path) -> None:
    call(Case(kind), tmp_path)


def test_ordered_dicts_come_back_as_dicts() -> None:
    """As torch's state dicts are: their order is kept, and load_state_dict takes a dict."""
    case, p = Case("dict"), OrderedDict([("w", W), ("b", B)])
    case.same(symad.gradient(case.graph, "p")(p, X, T))


def test_what_does_not_fit_is_named() -> None:
    case = Case("dict")
    with pytest.raises(EvaluationError, match="p has the keys w, b; the value given lacks b"):
        train(case.graph, {"w": W}, [DATA], SGD(0.1), steps=1)
    with pytest.raises(EvaluationError, match="parameters are p, q, but the inputs of loss begin with p, x"):
        train(case.graph, {"p": case.p, "q": 1.0}, [DATA], SGD(0.1), steps=1)
    with pytest.raises(EvaluationError, match="'u' is none of them"):
        train(case.graph, case.p, [{"u": X}], SGD(0.1), steps=1)
    with pytest.raises(EvaluationError, match=r"in_axes\[0\] has the keys w, b"):
        symad.vmap(case.graph, [{"w": 0}, None, None])
    with pytest.raises(ShapeError, match=r"in_axes.*is not an int"):
        symad.vmap(case.graph, [{"w": 0, "b": "1"}, None, None])
    with pytest.raises(EvaluationError, match="p has the keys w, b"):
        scale.sweep(case.graph, {"p": {"w": W}}, DATA)
    with pytest.raises(EvaluationError, match="'q' is not an input of loss"):
        case.graph.explain(q=1)


def test_names_of_parameters_may_be_those_of_arguments() -> None:
    """A dict with the keys of the first argument is its value, also where these are names of arguments."""
    loss = symad.trace(lambda x, t: (x["x"] * t) ** 2, [{"x": ()}, ()])
    found = train(loss, {"x": 3.0}, [(2.0,)], SGD(0.1), steps=1).parameters
    assert found == {"x": pytest.approx(3.0 - 0.1 * 2 * 3.0 * 4.0)}


@pytest.mark.thorough
def test_steps_on_a_device_take_structures() -> None:
    case = Case("nested")
    with library() as cp:
        step = symad.gpu.training_step(case.graph, case.p, SGD(0.1), dtype="float64", capture=False)
        step(cp.asarray(X), cp.asarray(T))
        moved = case.parts(step.parameters())
        case.same(case.make(*(v.get() for v in moved)), W - 0.1 * W_BAR, B - 0.1 * B_BAR)
        assert isinstance(np.asarray(moved[0].get()), np.ndarray)
