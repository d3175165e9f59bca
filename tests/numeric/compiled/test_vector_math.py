"""Elementary functions in C against mpmath: units in the last place, and the special values of IEEE 754."""

import ctypes
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.compiled_arrays.ufuncs import PLAIN, compiled, load
from symad.numeric.compiler.c_compiler import compile_c, compiler
from symad.numeric.compiler.math.vector_math import definitions

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

NAMES = ("exp", "expm1", "tanh", "sigmoid", "softplus", "log", "log1p", "sin", "cos", "erfc")
ULPS = {"erfc": 7.0}
"""Allowed errors; 2.5 for all others."""
TYPES = {"float": np.float32, "double": np.float64}
EXACT: dict[str, Any] = {
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
}
IEEE: dict[str, Any] = {
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(0, x),
    "erfc": special.erfc,
}


@cache
def source(real: str) -> str:
    text = "#include <math.h>\n#include <stddef.h>\n" + definitions(NAMES, real)
    for name in NAMES:
        text += f"""
void loop_{name}(char **args, const ptrdiff_t *sizes, const ptrdiff_t *steps, void *data) {{
  (void)steps, (void)data;
  #pragma omp simd
  for (ptrdiff_t i = 0; i < sizes[0]; i++) (({real} *)args[1])[i] = symad_{name}((({real} *)args[0])[i]);
}}"""
    return text


def values(name: str, x: Any, options: str) -> Any:
    """The function of all elements, with vector instructions (and fused multiply-adds) or without."""
    real = "float" if x.dtype == np.float32 else "double"
    library = load(source(real)) if options == "vectors" else compile_c(source(real), PLAIN)
    y = np.empty_like(x)
    addresses = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    getattr(library, f"loop_{name}")(addresses, (ctypes.c_ssize_t * 1)(len(x)), None, None)
    return y


def points(name: str, dtype: Any) -> Any:
    rng = np.random.default_rng(0)
    double = dtype == np.float64
    largest = {"exp": 2.85, "expm1": 2.85, "sigmoid": 2.87, "softplus": 2.87}.get(name, 5) if double else 1.9
    sizes = 10.0 ** rng.uniform(-8, largest, 300)
    x = np.concatenate([sizes, -sizes, rng.normal(size=400), rng.uniform(-1, 1, 400)]).astype(dtype)
    if name.startswith("log"):
        powers = 10.0 ** rng.uniform(*((-307, 308) if double else (-37, 38)), 300)
        x = np.concatenate([np.abs(x), powers, 1 + x / 1e3, -rng.uniform(0, 1, 300)]).astype(dtype)
        return x[x > (0 if name == "log" else -1)]
    if name in ("sin", "cos"):  # near multiples of π/2, and so far that π needs many digits
        far = 10.0 ** rng.uniform(5, 300 if double else 38, 200)
        x = np.concatenate([x, np.pi / 2 * np.arange(-300, 300), far, [355, 710, 103993, 104348]])
    tail = rng.uniform(-6, 27.2 if double else 10.05, 400) if name == "erfc" else []
    return np.concatenate([x, tail]).astype(dtype)


both = pytest.mark.parametrize("options", ["vectors", "plain"])
every = pytest.mark.parametrize("name", NAMES)
reals = pytest.mark.parametrize("real", TYPES)


@pytest.mark.sample(5)
@both
@every
@reals
def test_errors_are_a_few_units_in_the_last_place(real: str, name: str, options: str) -> None:
    dtype = TYPES[real]
    x = points(name, dtype)
    y = values(name, x, options)
    worst = 0.0
    exact = EXACT.get(name) or getattr(mpmath, name)
    with mpmath.workdps(40):
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            expected = exact(mpmath.mpf(a))
            if abs(expected) > np.finfo(dtype).max:
                assert np.isinf(b)
                continue
            unit = float(np.spacing(dtype(abs(float(expected)))))  # of subnormal numbers too
            worst = max(worst, float(abs(mpmath.mpf(b) - expected) / unit))
    assert worst < ULPS.get(name, 2.5)


@both
@every
@reals
def test_special_values_are_those_of_ieee_754(real: str, name: str, options: str) -> None:
    dtype = TYPES[real]
    huge, small = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, huge, -huge, 1e3, -1e3, -1, -2, 40 * small], dtype)
    x = np.repeat(x, 5)  # in whole vectors and in what is left of them
    with np.errstate(all="ignore"):
        expected = (IEEE.get(name) or getattr(np, name))(x.astype(np.float64)).astype(dtype)
    found = values(name, x, options)
    exact = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(found[exact], expected[exact])
    np.testing.assert_allclose(found[~exact], expected[~exact], rtol=8 * np.finfo(dtype).eps)
    zeros = (expected == 0) & (x == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


@both
def test_the_logistic_function_falls_to_the_smallest_numbers(options: str) -> None:
    x = np.array([-87.5, -88.0, -95.0, -100.0, -103.0, -103.9, -104.1, -1e30], np.float32)
    expected = special.expit(x.astype(np.float64)).astype(np.float32)
    assert expected[5] == np.finfo(np.float32).smallest_subnormal
    assert expected[6] == 0
    np.testing.assert_array_max_ulp(values("sigmoid", x, options), expected, 1)


@reals
def test_strides_and_empty_arrays_go_through_numpy(real: str) -> None:
    letter = np.dtype(TYPES[real]).char
    exp, tanh = compiled(source(real), [(f"loop_{n}", f"{letter}->{letter}", "") for n in ("exp", "tanh")])
    x = np.linspace(-2, 2, 24, dtype=TYPES[real]).reshape(4, 6)
    assert exp(x[:0]).shape == (0, 6)
    np.testing.assert_allclose(tanh(np.ascontiguousarray(x.T)).T, np.tanh(x), rtol=1e-6)


@pytest.mark.thorough
@reals
def test_chains_with_sines_are_right_for_far_arguments(real: str) -> None:
    """One kernel with two results, and a sum; arguments near, far and not finite in one array."""

    def both(x: Any, y: Any) -> Any:
        return np.sin(x) * np.exp(y), np.cos(x) + y, np.sum(np.sin(x) * y)

    dtype = TYPES[real]
    kernel = lower(symad.trace(both, inputs=[(3001,), (3001,)]), backend="c", dtype=np.dtype(dtype).name)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3001)).astype(dtype)
    x[[5, 700, 3000]] = 1e7, -3e30, 2.0**21
    sine, cosine = (np.array([float(f(mpmath.mpf(v))) for v in x.tolist()]) for f in (mpmath.sin, mpmath.cos))
    product, shifted, total = kernel(x, y)
    rtol = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(product, sine * np.exp(y.astype(float)), rtol=rtol)
    np.testing.assert_allclose(shifted, cosine + y, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(total, np.sum(sine * y), rtol=100 * rtol)
    assert "symad_near_sin" in kernel.c_source
    x[[9, 800]] = np.inf, np.nan
    with np.errstate(all="ignore"):
        assert list(np.flatnonzero(np.isnan(kernel(x, y)[0]))) == [9, 800]


def test_sines_in_steps_of_loops_are_right_for_far_arguments() -> None:
    """s' = s/2 + sin c."""
    graph = symad.trace(
        lambda s, c: functions.scan(lambda s, c: 0.5 * s + np.sin(c), s, c), inputs=[(5,), (6, 5)]
    )
    s, c = np.linspace(-2, 2, 5), np.linspace(-2e7, 3e7, 30).reshape(6, 5)
    expected, state = [], s
    for row in c:
        state = 0.5 * state + np.array([float(mpmath.sin(mpmath.mpf(v))) for v in row.tolist()])
        expected.append(state)
    np.testing.assert_allclose(lower(graph, backend="c")(s, c), expected, rtol=1e-13)
