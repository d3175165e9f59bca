"""The forecast of a call: counted by hand for a small product, and by the sizes of arrays."""

import numpy as np
import pytest

import symad
from symad.errors import EvaluationError, ShapeError
from symad.numeric.scale import distribute, plan
from tests.scale.problems import OVER, data, traced


def test_a_forecast_counts_chunks_operations_and_bytes():
    """|X w − y|² of 1000 rows in parts of 300: 2·4 + 1 + 2 operations a row at least."""
    x, y, w = data(1000)
    kernel = distribute(traced(lambda x, y, w: ((x @ w - y) ** 2).sum()), OVER, rows=300, threads=1)
    found = plan(kernel, X=x, y=y, w=w)
    assert (found.chunks, found.rows, found.merges, found.workers) == (4, 300, 3, 1)
    assert found.data == x.nbytes + y.nbytes
    assert found.block == 300 * 5 * 8
    assert found.result == 8
    assert found.shared == w.nbytes
    assert found.traffic == w.nbytes + 4 * 8
    assert 11 * 1000 <= found.flops <= 13 * 1000
    assert found.block < found.memory < 3 * found.block
    assert "4 chunks of at most 300 rows, 12 kB each, 40 kB in all" in str(found)


def test_shapes_are_enough():
    kernel = distribute(
        symad.hessian(traced(lambda x, y, w: ((x @ w - y) ** 2).sum()), "w"), OVER, rows=10**6
    )
    found = plan(kernel, X=(10**8, 50), y=(10**8, 1), w=(50, 1))
    assert found.chunks == 100 and found.data == 8 * 51 * 10**8
    assert found.result == 50 * 50 * 8
    assert "40.8 GB in all" in str(found)


def test_dask_arrays_are_not_computed():
    da = pytest.importorskip("dask.array", reason="Dask is not installed: the extra scale")
    x = da.from_array(np.ones((100, 4)), chunks=(30, -1)).map_blocks(fail, dtype=float)
    kernel = distribute(traced(lambda x, y, w: ((x @ w - y) ** 2).sum()), OVER, scheduler="threads")
    assert plan(kernel, X=x, y=np.ones((100, 1)), w=np.ones((4, 1))).chunks == 4


def fail(block):
    if block.size:
        raise AssertionError("computed")
    return block


def test_shapes_that_are_none_are_named():
    kernel = distribute(traced(lambda x, y, w: ((x @ w - y) ** 2).sum()), OVER)
    for wrong in ((-10, 4), (10.5, 4), ("10", 4)):
        with pytest.raises(ShapeError, match=r"X: the shape .* has an entry that is no length"):
            plan(kernel, X=wrong, y=(10, 1), w=(4, 1))


def test_inputs_that_do_not_fit_are_named():
    kernel = distribute(traced(lambda x, y, w: ((x @ w - y) ** 2).sum()), OVER)
    with pytest.raises(EvaluationError, match="w"):
        plan(kernel, X=(10, 2), y=(10, 1))
    with pytest.raises(ShapeError, match="axis 0 of y gives n = 11"):
        plan(kernel, X=(10, 2), y=(11, 1), w=(2, 1))
