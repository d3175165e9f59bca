"""Reuse of memory in generated code: results stay valid, threads share no buffer, memory does not grow."""

import threading
from typing import Any

import numpy as np
import pytest

import symad
from symad.numeric import lower

N = 200


def kernel_and_values() -> tuple[Any, list[np.ndarray[Any, Any]]]:
    def program(x: Any, w: Any) -> Any:
        h = np.tanh(x @ w)
        return np.exp(-h * h) @ w, np.sum((h @ w.T - x) ** 2), h + 1

    rng = np.random.default_rng(0)
    values = [rng.normal(size=(N, N)) / 10 for _ in range(2)]
    graph = symad.trace(program, inputs=[(N, N), (N, N)])
    return lower(graph), values


def expected(x: Any, w: Any) -> tuple[Any, ...]:
    h = np.tanh(x @ w)
    return np.exp(-h * h) @ w, np.sum((h @ w.T - x) ** 2), h + 1


def agree(got: Any, values: Any) -> None:
    for one, other in zip(got, expected(*values), strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-13)


def blocks(kernel: Any) -> list[Any]:
    return [pair for pairs in kernel.namespace["_memory"].blocks.values() for pair in pairs]


def test_results_are_never_used_again() -> None:
    kernel, values = kernel_and_values()
    results = [kernel(*[k * v for v in values]) for k in range(1, 6)]
    parts = [kernel(*values)[2][3:5] for _ in range(3)]  # a view keeps its memory
    kernel(*[9 * v for v in values])
    for k, result in enumerate(results, 1):
        agree(result, [k * v for v in values])
    for part in parts:
        assert np.allclose(part, expected(*values)[2][3:5], rtol=1e-12)


def test_memory_does_not_pile_up_and_lies_on_cache_lines() -> None:
    kernel, values = kernel_and_values()
    kernel(*values)
    held = len(blocks(kernel))
    for _ in range(10):
        kernel(*values)
    assert len(blocks(kernel)) == held
    many = [kernel(*values) for _ in range(20)]
    assert len(blocks(kernel)) > held
    del many
    other = lower(symad.trace(lambda x: np.exp(x @ x) @ x, inputs=[(N, N)]))
    other(values[0])
    assert all((block.ctypes.data + start) % 64 == 0 for block, start in [*blocks(kernel), *blocks(other)])


@pytest.mark.thorough
def test_threads_have_memory_of_their_own() -> None:
    kernel, values = kernel_and_values()
    wrong = []

    def work(k: int) -> None:
        given = [k * v for v in values]
        for _ in range(20):
            try:
                agree(kernel(*given), given)
            except AssertionError as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_products_with_vectors() -> None:
    X, w, y = np.ones((9000, 3)), np.arange(3.0), np.ones(9000)
    graph = symad.trace(lambda X, w, y: ((X @ w - y) ** 2, y @ X), inputs=[(9000, 3), (3,), (9000,)])
    kernel = lower(graph)
    assert "_product" in kernel.source
    squares, sums = kernel(X, w, y)
    assert np.array_equal(squares, np.full(9000, 4.0)) and np.array_equal(sums, np.full(3, 9000.0))


def test_blocks_of_different_sizes_use_the_same_memory() -> None:
    n, d = 700, 8

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = np.where(np.tril(np.ones((n, n), bool)), q @ k.T, -np.inf)
        return symad.functions.softmax(scores, axis=-1) @ v

    graph = symad.trace(lambda q, k, v: np.sum(attention(q, k, v) ** 2), inputs=[(n, d)] * 3)
    kernel = lower(symad.value_and_gradient(graph))
    values = list(np.random.default_rng(1).normal(size=(3, n, d)))
    first = kernel(*values)
    held = [block.ctypes.data for block, _ in blocks(kernel)]
    again = kernel(*values)
    assert [block.ctypes.data for block, _ in blocks(kernel)] == held
    assert len(held) < 8  # for six blocks of rows, each with several arrays
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other)
    q, k, v = values
    scores = np.where(np.tril(np.ones((n, n), bool)), q @ k.T, -np.inf)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    assert np.isclose(first[0], np.sum((p @ v) ** 2), rtol=1e-12)
