"""Products of matrices that are large copies, some steps at a time: numbers, and where blocks are used."""

import numpy as np
import pytest

import symad
from symad.numeric import lower
from symad.numeric.passes.blocking.blocked_products import BLOCK, MIN_NUMBERS, steps_at_a_time
from symad.ops.basic.contraction import contract
from symad.ops.basic.sources import fresh_input

RNG = np.random.default_rng(0)
STEPS, ROWS, COLUMNS, BATCH = 101, 90, 33, 50  # 621 000 numbers, 21 steps at a time, the last block has 17


def gradient(text, *shapes):
    return symad.trace(lambda a, b: np.einsum(text, a, b), inputs=list(shapes))


FORMS = {
    "steps first": ("tik,tjk->ij", (STEPS, ROWS, BATCH), (STEPS, COLUMNS, BATCH)),
    "the narrow one first": ("tjk,tik->ji", (STEPS, COLUMNS, BATCH), (STEPS, ROWS, BATCH)),
    "batch first": ("kit,kjt->ij", (BATCH, ROWS, STEPS), (BATCH, COLUMNS, STEPS)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", FORMS)
def test_blocks_give_the_sum_over_all_steps(form, dtype):
    text, *shapes = FORMS[form]
    kernel = lower(gradient(text, *shapes), dtype=dtype)
    assert "_summed(" in kernel.source
    a, b = (RNG.standard_normal(s).astype(dtype) for s in shapes)
    expected = np.einsum(text, a.astype(np.longdouble), b.astype(np.longdouble))
    found = kernel(a, b)
    assert found.dtype == dtype
    assert np.all(np.abs(found - expected) <= np.finfo(dtype).eps * np.einsum(text, np.abs(a), np.abs(b)))
    kept = found.copy()
    kernel(2 * a, b)
    assert np.array_equal(found, kept)


def test_small_products_and_matrices_that_others_read_stay_whole():
    small = gradient("tik,tjk->ij", (10, 8, 4), (10, 9, 4))
    assert "_summed(" not in lower(small).source
    together = symad.trace(
        lambda a, b, c: (np.einsum("tik,tjk->ij", a, b), np.einsum("tik,tjk->ij", a, c)),
        inputs=[(STEPS, ROWS, BATCH), (STEPS, COLUMNS, BATCH), (STEPS, COLUMNS, BATCH)],
    )
    assert "_summed(" not in lower(together).source  # both read one copy of a
    in_place = gradient("tki,tkj->ij", (STEPS, BATCH, ROWS), (STEPS, BATCH, COLUMNS))
    assert "_summed(" not in lower(in_place).source  # matrices in memory already


@pytest.mark.parametrize(("rows", "steps"), [(100, 655), (10_000, 12), (BLOCK, 1)])
def test_steps_at_a_time_fill_a_block(rows, steps):
    a, b = fresh_input((1000, rows, 1)), fresh_input((1000, 100, 1))
    assert steps_at_a_time(contract(["tik", "tjk"], "ij", a, b)) == steps
    assert 1000 * (rows + 100) >= MIN_NUMBERS or rows == 100
