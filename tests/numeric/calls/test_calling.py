"""Bound calls of compiled functions, with and without Python's headers."""

import gc
import threading
import time

import numpy as np
import pytest

from symad.numeric.compiler import c_calls
from symad.numeric.compiler.c_compiler import compile_c, compiler

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")

SOURCE = """\
#include <stdint.h>
#include <time.h>
void scaled_sum(const int64_t *frame)  /* x, its length, y */
{
    const double *x = (const double *)(intptr_t)frame[0];
    double *y = (double *)(intptr_t)frame[2];
    y[0] = 0;
    for (int64_t k = 0; k < frame[1]; ++k) y[0] += 3*x[k];
}
void wait_for(const int64_t *frame)  /* says that it runs, waits for a number at most 3 s, says if it came */
{
    volatile double *state = (volatile double *)(intptr_t)frame[0];
    const time_t start = time(NULL);
    state[0] = 1;
    while (!state[1] && time(NULL) < start + 3) {}
    state[2] = state[1];
}
"""


@pytest.fixture(params=["headers", "ctypes"])
def without_headers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways to call."""
    missing = bool(request.param == "ctypes")
    if missing:
        monkeypatch.setattr(c_calls, "_binder", lambda: None)
    elif c_calls._binder() is None:
        pytest.skip("Python's headers are not installed")
    return missing


@pytest.mark.thorough
@pytest.mark.parametrize("operations", [10, 10**6])
def test_arrays_are_read_and_written_in_place_and_kept_alive(without_headers: bool, operations: int) -> None:
    library = compile_c(SOURCE)
    assert library is not None
    x, y = np.arange(5.0), np.zeros(1)
    call = c_calls.bound(library.scaled_sum, [x, 5, y], operations)
    assert call() is None and y[0] == 30
    x += 1
    call()
    assert y[0] == 45
    seen = y
    del x, y, library
    gc.collect()
    call()
    assert seen[0] == 45


def test_long_calls_let_other_threads_run(without_headers: bool) -> None:
    library = compile_c(SOURCE)
    assert library is not None
    state = np.zeros(3)
    call = c_calls.bound(library.wait_for, [state], c_calls.MAX_LOCKED + 1)
    thread = threading.Thread(target=call)
    thread.start()
    while not state[0]:
        time.sleep(0.001)
    state[1] = 1  # while the call waits for it
    thread.join()
    assert state[2] == 1
