"""What ops that say where things stand in memory evaluate to; their printed form is that, too."""

import numpy as np
import pytest

from symad.core.questions import evaluate
from symad.numeric.kernel import compile_source
from symad.numeric.numpy_arrays.elementwise_helpers import CLEAR
from symad.numeric.passes.memory_layout.block_matrices import Mosaic
from symad.numeric.passes.memory_layout.memory_spans import Cleared, Spread
from symad.numeric.passes.memory_layout.overlapping_pads import Overlay


def test_an_overlay_adds_each_part_where_it_stands():
    op = Overlay((1, 0, 2), (1, 1, -1), 5)
    parts = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), np.array([100.0, 200.0, 300.0])
    np.testing.assert_array_equal(evaluate(op, parts), [10.0, 21.0, -98.0, -197.0, -300.0])


def test_a_mosaic_has_its_blocks_row_by_row():
    op = Mosaic((3, 3), ((0, 0), (0, 2), (2, 0)), ((2, 2), (2, 1), (1, 3)))
    blocks = np.arange(4.0).reshape(2, 1, 2), np.array([[7.0], [8.0]]), np.array([[4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(evaluate(op, blocks), [[0, 1, 7], [2, 3, 8], [4, 5, 6]])


def test_a_spread_shows_elements_by_strides():
    flat = np.arange(20.0)
    shown = np.lib.stride_tricks.as_strided(flat, (3, 4), (5 * 8, 8))
    np.testing.assert_array_equal(evaluate(Spread((3, 4), (5, 1)), (flat,)), shown)


@pytest.mark.parametrize(("width", "step", "size"), [(3, 5, 18), (4, 5, 19), (2, 7, 9), (3, 5, 3)])
def test_gaps_are_cleared_as_printed_code_does(width, step, size):
    flat = np.arange(1.0, size + 1)
    wanted = [value if k % step < width else 0 for k, value in enumerate(flat)]  # it ends after a whole row
    np.testing.assert_array_equal(evaluate(Cleared(((width, step),)), (flat,)), wanted)
    clear = compile_source("_clear", f"import numpy as np\n\n\n{CLEAR}").function
    np.testing.assert_array_equal(clear(flat, ((width, step),)), wanted)
