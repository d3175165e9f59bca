"""Tile classes of masks against the dense masks: never wrong, and exact where it matters."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from symad.numeric.pairs.scores import parameters_of, trace_score
from tests.numeric.passes.tile_classes import EMPTY, FULL, PARTIAL, Tiling, classify

N, M = 70, 90
DOC = np.sort(np.random.default_rng(0).integers(0, 6, 90))


def dense_classes(allowed, tiling):
    """The classes by looking at every entry."""
    shape = tiling.shape
    allowed = np.broadcast_to(allowed, (*shape[:2], tiling.length_q, tiling.length_k))
    result = np.empty(shape, np.int8)
    for b, h, i, j in np.ndindex(*shape):
        rows = slice(i * tiling.rows, (i + 1) * tiling.rows)
        part = allowed[b, h, rows, j * tiling.columns : (j + 1) * tiling.columns]
        result[b, h, i, j] = FULL if part.all() else PARTIAL if part.any() else EMPTY
    return result


def both(mask, dense, rows=16, columns=8, params=None, batch=1, heads=1):
    tiling = Tiling(batch, heads, N, M, rows, columns)
    score = trace_score(mask=mask, parameters=parameters_of(params))
    found = np.broadcast_to(classify(score, tiling, params or {}), tiling.shape)
    i, j = np.arange(N)[:, None], np.arange(M)
    b = np.arange(batch)[:, None, None, None]
    h = np.arange(heads)[:, None, None]
    return found, dense_classes(dense(b, h, i, j), tiling)


EXACT = {
    "none": (lambda b, h, i, j: sp.true, lambda b, h, i, j: np.array(True)),
    "causal": (lambda b, h, i, j: j <= i, lambda b, h, i, j: j <= i),
    "strict": (lambda b, h, i, j: i > j, lambda b, h, i, j: j < i),
    "window": (
        lambda b, h, i, j: (j <= i) & (i - j < 11),
        lambda b, h, i, j: (j <= i) & (i - j < 11),
    ),
    "both sides": (
        lambda b, h, i, j: sp.Abs(i - j) <= 9,
        lambda b, h, i, j: abs(i - j) <= 9,
    ),
    "prefix": (
        lambda b, h, i, j: (j < 21) | (j <= i),
        lambda b, h, i, j: (j < 21) | (j <= i),
    ),
    "not causal": (lambda b, h, i, j: sp.Not(j <= i), lambda b, h, i, j: j > i),
    "shifted": (lambda b, h, i, j: j - (M - N) <= i, lambda b, h, i, j: j - (M - N) <= i),
    "fraction": (lambda b, h, i, j: i / 3 <= j, lambda b, h, i, j: i <= 3 * j),
    "blocks": (
        lambda b, h, i, j: sp.Eq(sp.floor(i / 16), sp.floor(j / 16)),
        lambda b, h, i, j: i // 16 == j // 16,
    ),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(("rows", "columns"), [(16, 8), (7, 13), (1, 1), (128, 128)])
def test_exact(name, rows, columns):
    mask, dense = EXACT[name]
    found, expected = both(mask, dense, rows, columns)
    if name == "blocks" and (rows, columns) != (16, 8):
        sound(found, expected)
    else:
        np.testing.assert_array_equal(found, expected)


def sound(found, expected):
    assert (expected[found == EMPTY] == EMPTY).all()
    assert (expected[found == FULL] == FULL).all()


def test_documents_by_the_extremes_of_each_tile():
    found, expected = both(
        lambda b, h, i, j, doc: sp.Eq(doc[i], doc[j]) & (j <= i),
        lambda b, h, i, j: (DOC[i] == DOC[j]) & (j <= i),
        params={"doc": DOC},
    )
    sound(found, expected)
    assert (found == EMPTY).sum() >= 0.9 * (expected == EMPTY).sum()


def test_masks_of_batch_and_head():
    prefix = np.array([5, 60, 33])
    found, expected = both(
        lambda b, h, i, j, n: sp.Or(j < n[b], (j <= i) & (h > 0)),
        lambda b, h, i, j: (j < prefix[b]) | ((j <= i) & (h > 0)),
        params={"n": prefix},
        batch=3,
        heads=2,
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.thorough
@given(
    a=st.integers(-3, 3), b=st.integers(-3, 3), c=st.integers(-40, 40), d=st.integers(1, 9),
    kind=st.sampled_from([sp.Le, sp.Lt, sp.Ge, sp.Gt, sp.Eq, sp.Ne]),
    join=st.sampled_from([sp.And, sp.Or, sp.Xor]),
    function=st.sampled_from(["mod", "floor", "abs", "min", "square"]),
)  # fmt: skip
def test_any_mask_is_sound(a, b, c, d, kind, join, function):
    def part(i, j, s):
        functions = {
            "mod": lambda: s.Mod(i + a * j, d),
            "floor": lambda: s.floor((i - j) / d),
            "abs": lambda: s.Abs(i - 2 * j),
            "min": lambda: s.Min(i, a * j),
            "square": lambda: (i - j) ** 2,
        }
        return functions[function]()

    def mask(_, h, i, j):
        return join(kind(a * i + b * j, c), kind(part(i, j, sp), c))

    class Dense:
        Mod, Abs, Min = staticmethod(np.mod), staticmethod(np.abs), staticmethod(np.minimum)

        @staticmethod
        def floor(x):
            return np.floor(np.round(x, 9))

    compare = {
        sp.Le: np.less_equal, sp.Lt: np.less, sp.Ge: np.greater_equal, sp.Gt: np.greater,
        sp.Eq: np.equal, sp.Ne: np.not_equal,
    }[kind]  # fmt: skip
    joined = {sp.And: np.logical_and, sp.Or: np.logical_or, sp.Xor: np.logical_xor}[join]

    def dense(_, h, i, j):
        return joined(compare(a * i + b * j, c), compare(part(i, j, Dense), c))

    found, expected = both(mask, dense, 9, 14)
    sound(found, expected)
