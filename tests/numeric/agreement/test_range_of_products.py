"""Numbers of any size and type: infinities and NaN, and products whose parts leave the range of floats."""

import os
from fractions import Fraction
from math import prod

import numpy as np
import pytest

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler

KINDS = [{"style": "fast"}, {"style": "plain"}, {"backend": "c"}]
ON = [k for k in KINDS if "backend" not in k or compiler()]
SEEDS = range(int(os.environ.get("SYMAD_PROGRAMS", 0)) or 12)

SMALL, LARGE = Fraction(1e-200), Fraction(1e200)
CASES = {
    "a quotient of a quotient": (
        lambda a, b: a / b / b,
        lambda a, b: a / b**2,
        (1e250, 1e200),
    ),
    "small divisors": (lambda a, b: a / b / b, lambda a, b: a / b**2, (1e-250, 1e-200)),
    "small numbers": (
        lambda a, b: a * (b * 1e-200) * (b * 1e-200),
        lambda a, b: a * b**2 * SMALL**2,
        (1e200, 1e150),
    ),
    "large numbers": (
        lambda a, b: (a * 1e200) * 1e200 * 1e-200 * b,
        lambda a, b: a * b * LARGE**2 * SMALL,
        (1e-200, 2.0),
    ),
    "large integers": (
        lambda a, b: (a * 10**200) * 10**200 * b,
        lambda a, b: a * b * 10**400,
        (1e-250, 1e-100),
    ),
    "a number as divisor": (
        lambda a, b: a / 1e200 / 1e200 * b,
        lambda a, b: a * b / LARGE**2,
        (1e200, 1e100),
    ),
}
"""The function, its exact value by fractions, and a point."""


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("name", CASES)
def test_products_keep_their_range(name, shape):
    """Two numbers as one factor, or two divisors as one, would overflow."""
    f, exact, point = CASES[name]
    wanted = np.full(shape, float(exact(*map(Fraction, point))))
    graph = symad.trace(f, [shape, shape])
    values = [np.full(shape, p) for p in point]
    for kind in ON:
        found = lower(graph, **kind)(*values)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=str(kind))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_of_squares_of_scaled_numbers(dtype):
    """Σ (c x)² with c x = 1, where c² is 0 in this type."""
    c = {"float64": 1e-200, "float32": 1e-30}[dtype]
    graph = symad.trace(lambda x: np.sum((c * x) * (c * x)), [(3,)])
    for kind in ON:
        found = lower(graph, dtype=dtype, **kind)(np.full(3, 1 / c, dtype))
        assert abs(found - 3) < 1e-5, kind


def test_slopes_of_quotients_with_large_divisors():
    """d/dx x/(1 + x²) = (1 − x²)/(1 + x²)², where (1 + x²)² overflows."""
    graph = symad.gradient(symad.trace(lambda x: np.sum(x / (1 + x * x)), [(3,)]))
    points = [1e60, 1e100, 1e150]
    wanted = [float((1 - Fraction(p) ** 2) / (1 + Fraction(p) ** 2) ** 2) for p in points]
    for kind in ON:
        np.testing.assert_allclose(lower(graph, **kind)(np.array(points)), wanted, rtol=1e-12)


def test_a_root_of_minus_infinity_is_nan_on_all_backends():
    """The exponent 0.5 of a program is a root for backend "runs", too; C's pow gives ∞."""
    graph = symad.trace(lambda x: x**0.5, [()])
    for kind in [*ON, *([{"backend": "runs"}] if compiler() else [])]:
        assert np.isnan(lower(graph, **kind)(-np.inf)), kind


def test_integers_beyond_the_floats_are_infinite_in_arrays():
    graph = symad.trace(lambda x: np.stack([x + 10**400, np.maximum(x, -(10**400)), x / 10**400]), [(2,)])
    for kind in ON:
        found = lower(graph, **kind)(np.ones(2))
        assert np.array_equal(found, [[np.inf] * 2, [1, 1], [0, 0]]), kind


@pytest.mark.parametrize("seed", SEEDS)
def test_infinities_and_nan_pass_through_random_programs(seed):
    """Generated code is finite, infinite and NaN where the graph's own evaluation is."""
    random = pytest.importorskip("tests.numeric.agreement.test_random_programs")
    shapes = random.shapes_of(seed)
    graph = symad.trace(lambda *v: random.program("numpy", seed, v)[0][0], shapes)
    kernels = [lower(graph, style=style) for style in ("fast", "plain")]
    rng = np.random.default_rng(seed)
    for special in (np.inf, -np.inf, np.nan, 0.0):
        values = [rng.normal(size=shape) for shape in shapes]
        for value in values:
            value[rng.random(value.shape) < 2 / max(2, prod(value.shape))] = special
        with np.errstate(all="ignore"):
            wanted = np.asarray(graph(*values))
            for kernel in kernels:
                found = np.asarray(kernel(*values))
                np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
                np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
