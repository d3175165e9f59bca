"""Text is never read as an expression: SymPy would execute it, also inside of containers."""

import os

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.strict_sympify import as_sympy, holds_text

x = sp.Symbol("x", real=True)
TEXT = "__import__('os').environ.__setitem__('SYMAD_TEXT', 'executed')"
GIVEN = [TEXT, (TEXT,), [TEXT], {TEXT}, frozenset([TEXT]), {TEXT: TEXT}, {"a": (TEXT,)}, [(TEXT,)]]

SCALAR = {
    "expm1": 1, "gelu": 1, "hypot": 2, "log1p": 1, "logaddexp": 2, "relu": 1, "sigmoid": 1, "silu": 1,
    "softplus": 1, "stop_gradient": 1, "xlogy": 2, "gammainc": 2, "gammaincc": 2, "hyp0f1": 2, "hyp1f1": 3,
    "hyp2f1": 4, "ive": 2, "log_ndtr": 1, "owens_t": 2, "voigt_profile": 3,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_executed():
    os.environ.pop("SYMAD_TEXT", None)
    yield
    assert os.environ.pop("SYMAD_TEXT", None) is None


def refused(call):
    with pytest.raises((symad.errors.SymadError, TypeError, ValueError)):
        call()
    assert "SYMAD_TEXT" not in os.environ


@pytest.mark.parametrize("name", SCALAR)
def test_scalar_functions(name):
    head, count = getattr(functions, name), SCALAR[name]
    for given in GIVEN:
        for k in range(count):
            for other in (0.5, x):
                args = [other] * count
                args[k] = given
                refused(lambda args=args: head(*args))


@pytest.mark.parametrize(
    "name",
    ["trace", "gradient", "hessian", "jacobian", "check", "flops", "memory", "pullback", "pushforward"],
)
def test_functions_of_a_function(name):
    for given in GIVEN:
        refused(lambda given=given: getattr(symad, name)(given))


def test_both_sides_values_and_kernels():
    graph = symad.trace(x * x)
    calls = (graph, symad.numeric.lower(graph), lambda g: symad.equal(x, g), lambda g: symad.equal(g, x))
    for given in GIVEN:
        for call in calls:
            refused(lambda call=call, given=given: call(given))


def test_what_holds_text():
    assert all(map(holds_text, GIVEN))
    assert not any(map(holds_text, (1, x, (1, x), [x], {x: 1}, sp.Matrix([x]), np.ones(2))))
    assert as_sympy((1, x)) == sp.Tuple(1, x)
    for given in GIVEN:
        with pytest.raises(sp.SympifyError):
            as_sympy(given)
