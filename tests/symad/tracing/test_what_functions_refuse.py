"""Functions of arrays refuse by name what is not real numbers: text, dates, complex numbers, objects."""

import datetime
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import TraceError

A, a = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.5, 0.25])


class Hidden:
    """An object whose text would raise if SymPy executed it."""

    def __repr__(self) -> str:
        return "1/0"


BAD = {
    "text": np.array(["1.0", "2.0"]),
    "objects of text": np.array(["x", "y"], dtype=object),
    "bytes": np.array([b"1", b"2"]),
    "dates": np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    "durations": np.array([1, 2], dtype="timedelta64[s]"),
    "complex": np.array([1j, 2.0]),
    "None": np.array([None, 1.0]),
    "dates of Python": np.array([datetime.date(2020, 1, 1)] * 2),
    "dicts": np.array([{}, {}]),
    "hidden text": np.array([Hidden(), Hidden()]),
    "lists": np.array([[1.0], [1.0, 2.0]], dtype=object),
    "records": np.zeros(2, dtype=[("x", float)]),
}
SCALAR = {"hypot": 2, "logaddexp": 2, "xlogy": 2, "owens_t": 2, "voigt_profile": 3, "gammainc": 2, "ive": 2}
SCALAR |= {"gammaincc": 2, "hyp0f1": 2, "hyp1f1": 3, "hyp2f1": 4}
SCALAR |= dict.fromkeys(["sigmoid", "softplus", "silu", "gelu", "relu", "expm1", "log1p", "log_ndtr"], 1)
WHOLE = {
    "softmax": (a,),
    "log_softmax": (a,),
    "logsumexp": (a,),
    "expm": (A,),
    "pinv": (A,),
    "qr": (A,),
    "svd": (A,),
    "lu": (A,),
    "lstsq": (A, a),
    "solve_triangular": (A, a),
    "lookup": (A, np.array([0, 1])),
    "affine_scan": (a, a),
    "attention": (A, A, A),
}
CALLS = {name: (a,) * count for name, count in SCALAR.items()} | WHOLE
PLACES = [(name, k) for name, arguments in CALLS.items() for k in range(len(arguments))]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("name", "place"), PLACES)
def test_every_argument_of_every_function(name, place, bad):
    arguments = [*CALLS[name][:place], BAD[bad], *CALLS[name][place + 1 :]]
    with pytest.raises(TraceError) as caught:
        getattr(functions, name)(*arguments)
    said = str(caught.value)
    assert said.startswith(f"{name}: ") and "give real numbers" in said
    if name in SCALAR:
        assert f"argument {place + 1}" in said


@pytest.mark.parametrize("bad", BAD)
def test_functions_of_sequences_and_of_steps(bad):
    def add(x, y):
        return x + y

    calls = {
        "concatenate": lambda v: functions.concatenate([a, v]),
        "stack": lambda v: functions.stack([a, v]),
        "scan": lambda v: functions.scan(add, a, v),
        "fold": lambda v: functions.fold(add, v, A),
        "associative_scan": lambda v: functions.associative_scan(add, v),
        "cho_solve": lambda v: functions.cho_solve((A, True), v),
        "random numbers": lambda v: functions.rand(v, (2,)),
    }
    for name, call in calls.items():
        with pytest.raises(TraceError, match=f"^{name}: "):
            call(BAD[bad])


@pytest.mark.parametrize("value", ["x", b"x", None, 1.0, np.array(1.0), object()])
def test_sequences_and_steps_are_no_other_objects(value):
    for join in (functions.stack, functions.concatenate):
        with pytest.raises(TraceError, match=f"{join.__name__} takes a sequence of arrays"):
            join(value)
    for loop in (functions.scan, functions.fold):
        with pytest.raises(TraceError, match=f"{loop.__name__}: step is .* give a function"):
            loop(value, a, A)
    with pytest.raises(TraceError, match=r"associative_scan: combine is .* give a function"):
        functions.associative_scan(value, A)


@pytest.mark.parametrize("name", ["softmax", "logsumexp", "expm", "affine_scan"])
def test_nested_lists_of_unequal_lengths(name):
    arguments = ([[1.0, 2.0], [3.0]], *CALLS[name][1:])
    with pytest.raises(TraceError, match=f"{name}: .* of unequal lengths"):
        getattr(functions, name)(*arguments)


@pytest.mark.parametrize("value", [{1.0}, {"x": 1}, (1.0, 2.0)])
def test_containers_are_no_scalars(value):
    with pytest.raises(TraceError, match="log1p was given a"):
        functions.log1p(value)


def test_numbers_of_other_kinds_are_taken_or_named():
    exact = np.array([Fraction(1, 2), Fraction(1, 4)])
    with pytest.raises(TraceError, match=r"hypot: argument 1 .* give arrays of floating-point numbers"):
        functions.hypot(exact, a)
    with pytest.raises(TraceError, match="hypot: argument 2 "):
        functions.hypot(a, sp.Symbol("x"))
    assert functions.hypot(np.array([3]), np.float32(4)) == 5
    np.testing.assert_allclose(functions.qr(A.tolist())[1], functions.qr(A)[1])
    lists = functions.concatenate([[1.0], [2.0]])
    assert np.array_equal(lists, [1, 2])
    value = functions.hypot(symad.Dual(3.0, 1.0), np.array(4.0))
    assert abs(value.tangent - 0.6) < 1e-15


def test_classes_and_paths():
    for call in (symad.gradient, symad.hessian, symad.check, symad.flops):
        with pytest.raises(TraceError, match="the Python function int"):
            call(int)
    for path in (b"file", np.array(["file"]), None, 3):
        for call in (symad.load, lambda p: symad.save(sp.Symbol("x"), p)):
            with pytest.raises(TypeError, match=r"(load|save): path is .* give a str or Path"):
                call(path)
