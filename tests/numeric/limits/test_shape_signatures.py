"""Symbolic sizes in all combinations: repeated, shifted, multiplied and summed, in one shape and in several.

A call has to find the sizes from the arrays given, in every style and on every backend, and to refuse arrays
that fit no sizes. Expected gradients are cosines; whether arrays fit is decided by trying all small sizes.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import LoweringError
from symad.numeric import lower
from tests.gpu.cupy_standin import installed

n, m = sp.symbols("n m", integer=True, positive=True)
DIMS = (n, n, m, n + 1, 2 * n, n + m, 3, 2 * n + 1, n - 1, m * n, n + 2 * m)
WAYS = (("numpy", "fast"), ("numpy", "plain"), ("c", "fast"), ("cupy", "fast"))


def signature(number):
    """One to three shapes with up to three axes, at least one of them symbolic."""
    rng = np.random.default_rng([number, 11])
    while True:
        ranks = rng.integers(0, 4, rng.integers(1, 4))
        shapes = [tuple(DIMS[k] for k in rng.integers(0, len(DIMS), rank)) for rank in ranks]
        if any(isinstance(d, sp.Basic) for shape in shapes for d in shape):
            return shapes


def numbers(shapes, values):
    return [tuple(int(sp.sympify(d).subs(values)) for d in shape) for shape in shapes]


def is_fixed(shapes):
    """Whether sizes follow one by one, each from an axis with one unknown size."""
    symbols = [d.free_symbols for shape in shapes for d in shape if isinstance(d, sp.Basic)]
    known = set()
    while new := [s - known for s in symbols if len(s - known) == 1]:
        known |= set().union(*new)
    return known == set().union(*symbols)


def fits(shapes, given):
    """Whether some sizes give these shapes."""
    return any(numbers(shapes, {n: a, m: b}) == given for a, b in itertools.product(range(9), repeat=2))


def examined(number):
    shapes = signature(number)
    f = symad.gradient(symad.trace(lambda *u: sum(np.sum(np.sin(x)) for x in u), shapes), mode="reverse")
    right = numbers(shapes, {n: 3, m: 2})
    rng = np.random.default_rng(number)
    values = [rng.normal(size=shape) for shape in right]
    wrong = None
    places = [(k, axis) for k, shape in enumerate(right) for axis in range(len(shape))]
    for k, axis in places:
        other = [*right]
        other[k] = tuple(d + (a == axis) for a, d in enumerate(right[k]))
        if not fits(shapes, other):
            wrong = [np.zeros(shape) for shape in other]
            break
    for backend, style in WAYS:
        with installed() as cp:
            if not is_fixed(shapes):
                with pytest.raises(LoweringError, match="dimension"):
                    lower(f, backend, style=style)
                continue
            kernel = lower(f, backend, style=style)
            put = cp.asarray if backend == "cupy" else np.asarray
            found = kernel(*map(put, values))
            for one, value in zip(found if isinstance(found, tuple) else (found,), values, strict=True):
                one = one.get() if hasattr(one, "get") else one
                np.testing.assert_allclose(one, np.cos(value), rtol=1e-13)
            if wrong is not None:
                with pytest.raises(ValueError, match=r"shape|short|size"):
                    kernel(*map(put, wrong))
    if is_fixed(shapes):
        assert np.allclose(np.concatenate([np.ravel(v) for v in _tuple(f(*values))]), _cosines(values))


def _tuple(result):
    return result if isinstance(result, tuple) else (result,)


def _cosines(values):
    return np.concatenate([np.cos(v).ravel() for v in values])


@pytest.mark.parametrize("number", range(0, 240, 24))
def test_a_sample_of_signatures(number) -> None:
    examined(number)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 240, 20))
def test_signatures(first) -> None:
    for number in range(first, first + 20):
        examined(number)


def test_a_square_matrix_in_plain_style() -> None:
    f = symad.gradient(symad.trace(lambda x: np.sum(np.sin(x)), [(n, n)]))
    kernel = lower(f, style="plain")
    assert np.array_equal(
        kernel(np.eye(3))[0] if isinstance(kernel(np.eye(3)), tuple) else kernel(np.eye(3)), np.cos(np.eye(3))
    )
    with pytest.raises(ValueError, match=r"x must have shape \(3, 3\), not \(3, 4\)"):
        kernel(np.ones((3, 4)))
