"""Text is never read as an expression: SymPy would execute it, also inside of containers."""

import collections
import os

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.expressions import as_sympy

x = sp.Symbol("x", real=True)
TEXT = "__import__('os').environ.__setitem__('SYMAD_TEXT', 'executed')"


class Printed:
    """An object whose text is a program."""

    __hash__ = object.__hash__

    def __str__(self):
        return TEXT

    __repr__ = __str__


INSIDE = [TEXT, np.array([TEXT]), np.array([TEXT], object), collections.deque([TEXT]), {TEXT: 1}.keys()]
INSIDE += [collections.UserString(TEXT), Printed(), [TEXT], (TEXT,)]
GIVEN = [*INSIDE, *((given,) for given in INSIDE), *({"a": given} for given in INSIDE)]
GIVEN += [{TEXT}, frozenset([TEXT]), {TEXT: TEXT}, [(TEXT,)], {(Printed(),)}]

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
    errors = symad.errors.SymadError, TypeError, ValueError, AttributeError  # the last from NumPy, for arrays
    with pytest.raises(errors):
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


def test_numbers_expressions_and_containers_of_them():
    assert as_sympy((1, x)) == sp.Tuple(1, x)
    assert as_sympy({x: (2, x)}) == sp.Dict({x: sp.Tuple(2, x)})
    assert as_sympy({1, x}) == sp.FiniteSet(1, x)
    for given in GIVEN:
        with pytest.raises((ValueError, TypeError)):
            as_sympy(given)
