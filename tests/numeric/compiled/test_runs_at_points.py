"""Runs at many points: rows that are reused, pairs of operations as one, frames for each thread."""

import threading
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.numpy_arrays.scalars.level_runs import LevelRun, steps_of
from symad.numeric.passes import prepare
from symad.numeric.passes.memory_layout.packed_entries import output_scalars
from symad.numeric.scalars import lower_runs
from symad.numeric.scalars.c_interpreter import PARTS
from symad.numeric.scalars.lanes import JOINED, joined, point_plan
from symad.numeric.scalars.lower_runs import AHEAD, NEAR, fetched_ahead

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def test_rows_are_used_again_but_never_while_they_are_read() -> None:
    x = sp.symbols("x:12", real=True)
    f = sp.Add(*[sp.tanh(sp.sin(a) * b + sp.cos(c)) ** 3 for a, b, c in zip(x, x[3:], x[5:], strict=False)])
    graph = prepare(symad.gradient(f, x))
    made = point_plan(graph, output_scalars(graph))
    given = made.inputs + len(made.constants)
    assert made.rows - given < len(made.runs) / 2
    values: dict[int, int] = {k: -1 for k in range(given)}  # which operation a row holds
    steps, wanted = joined(*steps_of(graph, output_scalars(graph)))
    order = [k for k, (_, operands) in enumerate(steps.operations) if operands]
    for number, run, result in zip(order, made.runs, made.written.tolist(), strict=True):
        assert run.start >= given
        for operand, row in zip(steps.operations[number][1], run.operands, strict=True):
            assert values[int(row[0])] in (operand, -1)
        values[run.start] = number
        assert result == -1 or (wanted[result] == number and made.results[result] == run.start)
    held = [k for k in range(len(wanted)) if k not in made.written]  # they are copied at the end
    assert [values[int(row)] for row in made.results[held]] == [wanted[k] for k in held]


def test_results_that_nothing_reads_need_no_row_of_their_own() -> None:
    def rows(count: int) -> int:
        x = sp.symbols(f"x:{count}", real=True)
        chain = symad.gradient(sp.Add(*[100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in pairwise(x)]), x)
        graph = prepare(chain)
        made = point_plan(graph, output_scalars(graph))
        return made.rows - made.inputs - len(made.constants)

    assert rows(20) == rows(60) < 10


@needs_compiler
def test_batches_of_two_axes_use_their_frames_again_and_no_two_threads_share_one() -> None:
    x = sp.symbols("x:9", real=True)
    graph = prepare(symad.trace([sp.sin(a) * b for a, b in pairwise(x)], inputs=list(x)))
    runs = lower_runs.scalars(graph)
    columns = np.random.default_rng(0).normal(size=(4, 9, 500))
    expected = [runs.at_points(list(part)) for part in columns]
    np.testing.assert_allclose(expected[0], np.sin(columns[0, :-1]) * columns[0, 1:], rtol=1e-14)
    assert len(runs.idle) == 1
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(100):
            if not np.array_equal(runs.at_points(list(columns[k])), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and 1 <= len(runs.idle) <= 4


PAIRS = [
    lambda a, b, c: a * b + c,
    lambda a, b, c: c + a * b,
    lambda a, b, c: a * b - c,
    lambda a, b, c: c - a * b,
    lambda a, b, c: a * b * c,
    lambda a, b, c: (a + b) * c,
    lambda a, b, c: c * (a - b),
]


@needs_compiler
def test_joined_operations_round_as_the_two_do() -> None:
    def f(*x):
        return tuple(pair(*x[3 * k : 3 * k + 3]) for k, pair in enumerate(PAIRS))

    graph = symad.trace(f, sp.symbols(f"x:{3 * len(PAIRS)}", real=True))
    points = np.random.default_rng(8).normal(size=(3 * len(PAIRS), 200))
    names = {run.function for run in point_plan(graph, output_scalars(graph)).runs}
    assert names == set(JOINED)
    for found, expected in zip(lower(graph, backend="runs")(*points), f(*points), strict=True):
        assert np.array_equal(found, expected)


def test_what_others_read_is_not_joined() -> None:
    x = sp.symbols("x:3", real=True)
    shared = symad.trace(lambda a, b, c: (a * b + c, a * b - c), x)
    given = symad.trace(lambda a, b, c: (a * b + c, a * b), x)
    for graph in (shared, given):
        assert "multiply" in {run.function for run in point_plan(graph, output_scalars(graph)).runs}


def test_rows_of_inputs_are_fetched_once_before_they_are_needed():
    """In parts where there are runs enough; what the first runs need comes too late."""

    def step(k, each):  # the first of ``each`` runs needs input k/each
        return LevelRun("negative", 1000 + k, (np.array([k // each if k % each == 0 else 999 + k]),))

    for each, parts in ((1, 1), (PARTS + 2, PARTS)):
        inputs = 60
        ahead, found = fetched_ahead([step(k, each) for k in range(each * inputs)], inputs)
        assert found == parts and len(ahead) == each * inputs
        asked = [number for number in ahead.tolist() if number >= 0]
        assert asked == [*range(asked[0], parts * inputs)] and asked[0] % parts == 0
        assert asked[0] // parts * each <= NEAR + parts + each
        for run, number in enumerate(ahead.tolist()):
            if number >= 0:
                assert NEAR < each * (number // parts) - run <= AHEAD


@needs_compiler
@pytest.mark.parametrize("points", (127, 128, 129, 300, 9_000, 9_001))
def test_many_points_have_the_bits_of_parts_of_them(points: int) -> None:
    """Blocks that share points, results on cache lines or not, and results past the caches (over 2 MiB)."""
    x = sp.symbols("x:40", real=True)
    outputs = [a * b - sp.exp(-a) for a, b in pairwise(x)] + [x[3], x[0] * x[1] - sp.exp(-x[0]), sp.Float(2)]
    kernel = lower(symad.trace(outputs, inputs=list(x)), "runs")
    columns = np.random.default_rng(0).normal(size=(40, points))
    got = np.array(kernel(*columns))
    a, b = columns[:-1], columns[1:]
    products = a * b - np.exp(-a)
    expected = [*products, columns[3], products[0], np.full(points, 2.0)]
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-14)
    cut = np.hstack([np.array(kernel(*part)) for part in np.array_split(columns, 3, axis=1)])
    np.testing.assert_array_equal(got, cut)
    rows = [row.reshape(1, points) for row in columns]
    np.testing.assert_array_equal(np.array(kernel(*rows))[:, 0], got)
