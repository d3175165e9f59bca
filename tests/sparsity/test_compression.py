"""Compression and recovery: shapes, dtypes, batches, accuracy, errors."""

import numpy as np
import pytest
import sympy

from symad.sparsity import ColoringError, color
from tests.sparsity.cases import band, bordered, cycle, five_point, random_integers

KINDS = ["column", "row", "star", "acyclic", "bidirectional"]


def with_values(pattern, seed, scale=None):
    """A symmetric matrix of normal numbers on a symmetric pattern, D H D if a scale D is given."""
    rng = np.random.default_rng(seed)
    values = np.triu(pattern.toarray() * rng.standard_normal(pattern.shape))
    values = values + np.triu(values, 1).T
    return values if scale is None else np.outer(scale, scale) * values


def shapes_of(found, compressed):
    return [part.shape for part in compressed] if found.kind == "bidirectional" else compressed.shape


def test_compressed_shapes():
    matrix = random_integers(np.random.default_rng(0), (12, 9), 0.3)
    for kind, wanted in (("column", lambda p: (12, p)), ("row", lambda p: (p, 9))):
        found = color(matrix, kind)
        assert found.compress(matrix).shape == wanted(found.num_colors) == found.compressed_shape
    arrow = bordered(10, 0, 1).astype(int)
    found = color(arrow, "bidirectional")
    rows, columns = found.compress(arrow)
    assert (rows.shape, columns.shape) == ((found.row_colors, 10), (10, found.column_colors))


def test_seeds_pick_out_the_classes():
    found = color(band(7, 1), "column")
    seeds = found.seeds()
    assert seeds.shape == (7, 3)
    assert np.array_equal(seeds.sum(axis=1), np.ones(7))
    assert np.array_equal(seeds.argmax(axis=1), found.colors)
    found = color(bordered(10, 0, 1), "bidirectional")
    for colors, sums in zip(found.colors, (s.sum(axis=1) for s in found.seeds()), strict=True):
        assert np.array_equal(sums, colors > 0)


@pytest.mark.parametrize("kind", ["column", "row", "star", "bidirectional"])
def test_direct_recovery_changes_no_bit(kind):
    # Entries over 200 orders of magnitude: any sum or difference would lose some.
    pattern = five_point(5)
    matrix = with_values(pattern, 1, scale=10.0 ** np.linspace(-100, 100, 25))
    found = color(pattern, kind)
    back = found.decompress(found.compress(matrix)).toarray()
    assert np.array_equal(back, matrix)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32", "bool"])
@pytest.mark.parametrize("kind", KINDS)
def test_dtypes(kind, dtype):
    pattern = band(9, 1)
    matrix = pattern.toarray().astype(dtype)
    found = color(pattern, kind)
    back = found.decompress(found.compress(matrix))
    assert back.dtype == (dtype if dtype[0] in "fc" else "int64")
    assert np.array_equal(back.toarray(), matrix.astype(back.dtype))


@pytest.mark.parametrize("kind", KINDS)
def test_symbolic_entries(kind):
    symbols = sympy.symbols("a:9")
    matrix = np.zeros((5, 5), object)
    for k in range(5):
        matrix[k, k] = symbols[k]
    for k in range(4):
        matrix[k, k + 1] = matrix[k + 1, k] = symbols[5 + k]
    found = color(matrix, kind)
    values = found.values(found.compress(matrix))
    wanted = [matrix[i, j] for i, j in zip(found.pattern.rows, found.pattern.indices, strict=True)]
    assert [sympy.expand(v) for v in values] == wanted


@pytest.mark.parametrize("method", ["substitution", "prefix"])
@pytest.mark.parametrize("kind", KINDS)
def test_leading_batch_axes(kind, method):
    pattern = five_point(4)
    batch = np.stack([[with_values(pattern, 10 * a + b) for b in range(3)] for a in range(2)])
    found = color(pattern, kind)
    values = found.values(found.compress(batch), method)
    i, j = found.pattern.rows, found.pattern.indices
    assert values.shape == (2, 3, found.pattern.nnz)
    assert np.allclose(values, batch[:, :, i, j], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["substitution", "prefix"])
@pytest.mark.parametrize("pattern", [band(400, 1), five_point(14), bordered(40, 2, 1), cycle(31)], ids=str)
def test_substitution_is_accurate_for_well_scaled_entries(pattern, method):
    matrix = with_values(pattern, 3)
    found = color(pattern, "acyclic")
    back = found.decompress(found.compress(matrix), method).toarray()
    assert np.abs(back - matrix).max() < 1e-13


def test_the_caveat_small_entries_of_badly_scaled_matrices_lose_digits():
    rng = np.random.default_rng(4)
    pattern = band(300, 1)
    matrix = with_values(pattern, 4, scale=10.0 ** rng.uniform(-4, 4, 300))
    on = pattern.toarray()
    direct, substituted = color(pattern, "star"), color(pattern, "acyclic")
    exact = direct.decompress(direct.compress(matrix)).toarray()
    assert np.array_equal(exact, matrix)
    for method in ("substitution", "prefix"):
        back = substituted.decompress(substituted.compress(matrix), method).toarray()
        relative = np.abs(back - matrix)[on] / np.abs(matrix)[on]
        assert relative.max() > 1e-10  # what direct recovery has not
        assert np.abs(back - matrix).max() < 1e-13 * np.abs(matrix).max()


def test_prefix_sums_keep_a_nan_in_its_own_tree():
    pattern = five_point(12)
    matrix = with_values(pattern, 5)
    found = color(pattern, "acyclic")
    compressed = found.compress(matrix)
    compressed[70, 0] = np.nan
    spoiled = np.isnan(found.values(compressed, "prefix"))
    assert spoiled.any()
    assert spoiled.mean() < 0.25
    good = ~spoiled
    wanted = matrix[found.pattern.rows, found.pattern.indices]
    assert np.allclose(found.values(compressed, "prefix")[good], wanted[good], atol=1e-12)


def test_deep_trees_do_not_recurse_and_are_halved():
    found = color(band(5000, 1), "acyclic")
    assert found.num_colors == 2
    assert len(found.trees.levels) == 2500
    matrix = with_values(band(50, 1), 6)
    assert np.allclose(found.trees.reads[:5], [1, 2, 5, 6, 9])
    small = color(band(50, 1), "acyclic")
    assert np.allclose(small.decompress(small.compress(matrix)).toarray(), matrix, atol=1e-13)


def test_wrong_shapes_and_methods():
    found = color(band(6, 1), "column")
    with pytest.raises(ColoringError, match=r"pattern's shape \(6, 6\), not \(5, 6\)"):
        found.compress(np.ones((5, 6)))
    with pytest.raises(ColoringError, match=r"needs shape \(6, 3\), not \[\(3, 6\)\]"):
        found.decompress(np.ones((3, 6)))
    with pytest.raises(ColoringError, match="neither 'substitution' nor 'prefix'"):
        found.decompress(np.ones((6, 3)), method="direct")
    with pytest.raises(ColoringError, match="no direct recovery"):
        _ = color(band(6, 1), "acyclic").positions
    with pytest.raises(ColoringError, match="only acyclic colorings"):
        _ = found.trees
    with pytest.raises(ColoringError, match="'diagonal' is not one of 'column', 'row'"):
        color(band(6, 1), "diagonal")
