"""``float(x)`` in traced functions is x; outside them, and in all other uses, `float` is Python's."""

import math

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import TraceError

HALF = 0.5


def test_float_of_a_traced_number_is_the_number():
    def f(x, y):
        scale = float(x) ** 2
        return scale * float(y) + float("1.5") + float(2)

    graph = symad.trace(f, [(), ()])
    assert graph(3.0, 5.0) == 9 * 5 + 3.5
    assert tuple(map(float, symad.gradient(graph)(3.0, 5.0))) == (30.0, 9.0)


def test_arrays_of_one_element_and_of_several():
    assert symad.trace(lambda v: float(v[1:2]) + float(np.sum(v)), [(3,)])(np.array([1.0, 2.0, 4.0])) == 9.0
    with pytest.raises(TraceError, match=r"float\(\) of a traced array of shape \(3,\).*index it first"):
        symad.trace(lambda v: float(v), [(3,)])
    with pytest.raises(TypeError):
        symad.trace(lambda v: float([v, v]), [()])


def test_conditions_count_as_0_and_1():
    graph = symad.trace(lambda x: float(x > 0) * x, [()])
    assert (graph(2.0), graph(-2.0)) == (2.0, 0.0)


def test_what_float_is_besides():
    found = []

    def f(x):
        table = {float: 2.0, int: 3.0}
        array = np.zeros(2, dtype=float) + np.asarray([1, 2]).astype(float)
        found.extend((array.dtype == np.float64, isinstance(1.5, float), not isinstance(1, (float, str))))
        found.extend((issubclass(np.float64, float), {float} == {type(HALF)}, table[type(HALF)] == 2.0))
        found.extend((math.isinf(float("inf")), float.fromhex("0x1p-1") == HALF))
        found.append({type(float("2"))} == {float})
        return float(x) * table[float] + np.sum(array) + np.asarray(x, dtype=float)

    assert symad.trace(f, [()])(1.0) == 6.0
    assert found == [True] * 9


def test_code_that_compares_types_by_is_keeps_pythons_float():
    def f(x):
        return 2.0 * x if type(HALF) is float else x

    def g(x):
        return x if type(HALF) is not float else float(x)

    assert symad.trace(f, [()])(1.0) == 2.0
    with pytest.raises(TraceError, match=r"float\(\) of"):
        symad.trace(g, [()])


def test_helpers_methods_and_closures():
    def half(v):
        return float(v) / 2

    class Model:
        def value(self, x):
            return half(x) + float(x)

    assert symad.trace(Model().value, [()])(4.0) == 6.0
    assert symad.trace(lambda x: (lambda z: float(z) * x)(x), [()])(3.0) == 9.0


def test_a_name_of_the_module_is_the_modules():
    space = {}
    exec("def float(x):\n    return 7.0\ndef f(x):\n    return float(x) * x\n", space)
    assert symad.trace(space["f"], [()])(2.0) == 14.0


def test_nothing_outside_changes():
    x = sp.Symbol("x")
    symad.trace(lambda v: float(v) + 1, [()])
    assert type(float(1)) is float and float is type(HALF)
    with pytest.raises(TypeError):
        float(x)
