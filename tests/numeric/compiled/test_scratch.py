"""Scratch memory of compiled loops: arrays in use never overlap, and memory is used again."""

import numpy as np
import pytest

import symad
from symad import functions
from symad.numeric import lower
from symad.numeric.compiled_arrays.strided_arrays import ALIGNMENT, Scratch
from symad.numeric.compiler.c_compiler import compiler


@pytest.mark.parametrize("seed", range(20))
def test_blocks_in_use_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    scratch, blocks, most = Scratch(), [], 0
    for now in range(60):
        size, last = int(rng.integers(0, 700)), now + int(rng.integers(0, 8))
        blocks.append((scratch.new(size, now, last), size, now, last))
        used = [(first, first + n) for first, n, _, end in blocks if end >= now]
        most = max(most, sum(-(-n // ALIGNMENT) * ALIGNMENT for _, n, _, end in blocks if end >= now))
    for k, (first, size, _, last) in enumerate(blocks):
        for other, more, start, _ in blocks[k + 1 :]:
            assert start > last or first + size <= other or other + more <= first
    assert all(first % ALIGNMENT == 0 and stop <= scratch.size for first, stop in used)
    assert most <= scratch.size <= 2 * most


def test_values_use_memory_again():
    """h_t = tanh(W tanh(W tanh(W tanh(W h_{t-1})))): at any time two products are needed, not four."""
    if compiler() is None:
        pytest.skip("no C compiler")
    n = 32

    def f(W, xs, h):
        def step(h, x):
            for _ in range(4):
                h = np.tanh(W @ h) + W @ x
            return h

        return functions.scan(step, h, xs)

    rng = np.random.default_rng(0)
    W, xs, h = rng.normal(size=(n, n)) / n, rng.normal(size=(6, n)), rng.normal(size=n)
    kernel = lower(symad.trace(f, [W.shape, xs.shape, h.shape]), "c")
    (line,) = (line for line in kernel.c_source.splitlines() if "malloc(" in line)
    size = int(line.split("malloc(")[1].split(" +")[0])
    assert 8 * n <= size <= 3 * 8 * n
    wanted = []
    state = h
    for x in xs:
        for _ in range(4):
            state = np.tanh(W @ state) + W @ x
        wanted.append(state)
    np.testing.assert_allclose(kernel(W, xs, h), wanted, rtol=1e-12)
