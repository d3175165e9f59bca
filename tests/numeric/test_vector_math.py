"""Elementary functions in C against mpmath: units in the last place, and the special values of IEEE 754."""

import mpmath
import numpy as np
import pytest

from symad.numeric.compiling import compiler
from symad.numeric.native.ufuncs import compiled
from symad.numeric.native.vector_math import available, definitions

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

NAMES = ("exp", "expm1", "tanh", "log", "log1p", "erfc")
ULPS = {"erfc": 7.0}
"""Allowed errors; 2.2 for all others."""
TYPES = {"float": np.float32, "double": np.float64}


def loops(real):
    names = [n for n in NAMES if available(n, real)]
    text = "#include <stddef.h>\n" + definitions(set(names), real)
    for name in names:
        text += f"""
void loop_{name}(char **args, const ptrdiff_t *sizes, const ptrdiff_t *steps, void *data) {{
  (void)steps, (void)data;
  #pragma omp simd
  for (ptrdiff_t i = 0; i < sizes[0]; i++) (({real} *)args[1])[i] = symad_{name}((({real} *)args[0])[i]);
}}"""
    letter = np.dtype(TYPES[real]).char
    made = compiled(text, [(f"loop_{name}", f"{letter}->{letter}", "") for name in names])
    return dict(zip(names, made, strict=True))


@pytest.fixture(scope="module", params=TYPES)
def functions(request):
    return request.param, loops(request.param)


def points(name, dtype):
    rng = np.random.default_rng(0)
    largest = {"exp": 2.9, "expm1": 2.85}.get(name, 5) if dtype == np.float64 else 1.9
    sizes = 10.0 ** rng.uniform(-8, largest, 300)
    x = np.concatenate([sizes, -sizes, rng.normal(size=400)]).astype(dtype)
    if name == "log":
        x = np.concatenate([np.abs(x), 10.0 ** rng.uniform(-37, 37, 300).astype(dtype), 1 + x[:300] / 1e3])
        x = x[x > 0]
    return (x[x > -1] if name == "log1p" else x).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_a_few_units_in_the_last_place(functions, name):
    real, made = functions
    if name not in made:
        pytest.skip("the C library's is used in this precision")
    dtype = TYPES[real]
    x = points(name, dtype)
    with np.errstate(all="ignore"):
        y = made[name](x)
    assert y.dtype == dtype
    worst = 0.0
    with mpmath.workdps(40):
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            exact = getattr(mpmath, name)(mpmath.mpf(a))
            if abs(exact) < np.finfo(dtype).tiny or abs(exact) > np.finfo(dtype).max:
                continue
            unit = float(np.spacing(dtype(abs(float(exact)))))
            worst = max(worst, float(abs(mpmath.mpf(b) - exact) / unit))
    assert worst < ULPS.get(name, 2.2)


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_ieee_754(functions, name):
    from scipy import special

    real, made = functions
    if name not in made:
        pytest.skip("the C library's is used in this precision")
    dtype = TYPES[real]
    huge, small = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, huge, -huge, 1e3, -1e3, -1, -2, 40 * small], dtype)
    with np.errstate(all="ignore"):
        expected = (special.erfc if name == "erfc" else getattr(np, name))(x.astype(np.float64)).astype(dtype)
        found = made[name](x)
    exact = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(found[exact], expected[exact])
    np.testing.assert_allclose(found[~exact], expected[~exact], rtol=8 * np.finfo(dtype).eps)
    zeros = (expected == 0) & (x == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


def test_strides_and_empty_arrays_go_through_numpy(functions):
    real, made = functions
    x = np.linspace(-2, 2, 24, dtype=TYPES[real]).reshape(4, 6)
    assert made["exp"](x[:0]).shape == (0, 6)
    np.testing.assert_allclose(made["tanh"](np.ascontiguousarray(x.T)).T, np.tanh(x), rtol=1e-6)
