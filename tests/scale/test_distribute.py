"""Kernels on parts of data: the values of one call on all data, the same bits whatever computes the parts."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import EvaluationError, ShapeError
from symad.numeric import lower
from symad.numeric.scale import ChunkError, SplitError, distribute, tasks
from symad.numeric.scale.engines import cores, thread_count
from tests.gpu.cupy_agreement import WHERE, library
from tests.scale.problems import OVER, W, X, Y, data, logistic_by_hand, mean_logistic, traced


def test_value_gradient_and_hessian_are_those_of_the_textbook():
    values = data()
    graph = traced(mean_logistic)
    whole = symad.join(symad.value_and_gradient(graph, "w"), symad.hessian(graph, "w"))
    (value, gradient), hessian = distribute(whole, OVER, rows=100)(*values)
    expected = logistic_by_hand(*values)
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(hessian, expected[2], rtol=1e-12, atol=1e-14)


RULES = {
    "sum": lambda x, y, w: ((x @ w - y) ** 2).sum(),
    "maximum": lambda x, y, w: np.max(x @ w - y),
    "log-sum-exp": lambda x, y, w: functions.logsumexp(500 * (x @ w)),
    "softmax-weighted mean": lambda x, y, w: functions.softmax(500 * (x @ w), axis=0).T @ x,
    "rows with a weight": lambda x, y, w: functions.softmax(x @ w, axis=0),
    "rows": lambda x, y, w: np.tanh(x @ w),
    "composed": lambda x, y, w: 1 - ((x @ w - y) ** 2).sum() / (((y**2).sum()) - y.sum() ** 2 / y.shape[0]),
    "sizes that the data alone tell": lambda x, y, w: np.tanh(x.mean(axis=0)),
    "several": lambda x, y, w: (np.tanh(x @ w), (x.T @ x) / x.shape[0], {"largest": np.max(y)}),
}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_the_value_on_all_data(rule, backend):
    if rule == "several":
        graph = symad.trace(lambda x, y, w: RULES[rule](x, y, w)[:2], [X, Y, W])
    else:
        graph = traced(RULES[rule])
    values = data(37)
    expected = lower(graph)(*values)
    for rows in (1, 5, 36, 37, 1000):
        found = distribute(graph, OVER, rows=rows, backend=backend)(*values)
        for a, b in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def leaves(value):
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


def test_the_bits_do_not_depend_on_the_number_of_threads_or_on_the_scheduler():
    values = data()
    graph = symad.value_and_gradient(traced(mean_logistic), "w")
    kernel = distribute(graph, OVER, rows=64)
    first = kernel.on(threads=1)(*values)
    for threads in (2, 3, 7):
        for a, b in zip(first, kernel.on(threads=threads)(*values), strict=True):
            assert np.array_equal(a, b)


def test_keywords_and_structures_are_those_of_the_function():
    x, y, w = data(20)
    kernel = distribute(traced(mean_logistic), OVER)
    assert kernel(y=y, w=w, X=x) == kernel(x, y, w)
    assert str(kernel.__signature__) == "(X, y, w)"
    assert repr(kernel) == "<Distributed mean_logistic(X, y, w): X along 0, y along 0; mean>"
    with pytest.raises(EvaluationError, match="w"):
        kernel(x, y)
    grouped = symad.trace(
        lambda p, x: (np.tanh(x @ p["a"]) + p["b"]).sum(),
        [{"a": (4, 1), "b": ()}, (sp.Symbol("k", integer=True), 4)],
    )
    found = distribute(grouped, {"x": 0}, rows=3)({"a": w, "b": 0.5}, x)
    np.testing.assert_allclose(found, (np.tanh(x @ w) + 0.5).sum(), rtol=1e-13)


def test_a_function_that_mixes_rows_is_refused_with_its_certificate():
    graph = traced(lambda x, y, w: (((x - x.mean(axis=0)) @ w - y) ** 2).sum())
    with pytest.raises(SplitError, match="mixes the parts") as caught:
        distribute(graph, OVER)
    assert caught.value.certificate.status == "refuted"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheduler": "gpu"}, "scheduler='gpu' is not one of 'threads', 'processes', 'synchronous'"),
        ({"client": object(), "scheduler": "threads"}, "a client or a scheduler, not both"),
        ({"nan": "ignore"}, "nan='ignore' is not one of"),
        ({"threads": 0}, "threads=0: give an int"),
        ({"threads": True}, "threads=True"),
        ({"client": "tcp://127.0.0.1:1"}, "client='tcp://127.0.0.1:1' is not a distributed.Client"),
        ({"timeout": -1}, "timeout=-1 is not a time: give seconds > 0"),
        ({"timeout": "5"}, "timeout='5' is not a time"),
    ],
)
def test_options_that_do_not_exist_are_named(options, message):
    """By `distribute`, and by `on`, which takes those that say where."""
    with pytest.raises(EvaluationError, match=message):
        distribute(traced(mean_logistic), OVER, **options)
    message = "on takes client, scheduler, threads, rows, timeout, not nan" if "nan" in options else message
    with pytest.raises(EvaluationError, match=message):
        distribute(traced(mean_logistic), OVER).on(**options)


def test_data_that_do_not_fit_are_named():
    x, y, w = data(20)
    kernel = distribute(traced(mean_logistic), OVER)
    with pytest.raises(ShapeError, match=r"axis 0 of y gives n = 19, but axis 0 of X gives n = 20"):
        kernel(x, y[1:], w)
    with pytest.raises(ShapeError, match="there are no rows"):
        kernel(x[:0], y[:0], w)
    with pytest.raises(ShapeError, match="rows=0 is not a number of rows"):
        kernel.on(rows=0)
    assert kernel.on(rows=np.int64(7))(x, y, w) == kernel.on(rows=7)(x, y, w)
    with pytest.raises(EvaluationError, match="masked"):
        kernel(x, np.ma.masked_less(y, 0), w)
    with pytest.raises(EvaluationError, match="y has the dtype complex128"):
        kernel(x, y + 0j, w)


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_nan_in_the_data_is_found_in_its_chunk_or_computed_with():
    x, y, w = data(20)
    x[13, 2] = np.nan
    kernel = distribute(traced(mean_logistic), OVER, rows=5)
    with pytest.raises(
        ChunkError, match=r"chunk 2, process \d+: ValueError: X has 1 NaN .* at \[3, 2\]"
    ) as caught:
        kernel(x, y, w)
    assert caught.value.chunk == 2
    assert np.isnan(distribute(traced(mean_logistic), OVER, rows=5, nan="propagate")(x, y, w))
    hidden = traced(lambda x, y, w: np.where(x == x, x, 0).sum() + 0 * (w * y.sum()).sum())
    np.testing.assert_allclose(distribute(hidden, OVER, rows=5)(x, y, w), np.nansum(x), rtol=1e-12)


def test_another_version_of_symad_is_named():
    x, y, w = data(20)
    kernel = distribute(traced(mean_logistic), OVER)
    old = replace(kernel, job=replace(kernel.job, version="0.0.1"))
    with pytest.raises(ChunkError, match=r"is installed there, but 0.0.1 where it was sent"):
        old(x, y, w)


def test_a_chunk_that_cannot_be_compiled_or_stored_is_named(monkeypatch):
    x, y, w = data(20)
    kernel = distribute(traced(mean_logistic), OVER, rows=5)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tasks, "_kernel", full)
    with pytest.raises(ChunkError, match=r"chunk 0, process .*No space left on device"):
        kernel(x, y, w)


def test_threads_are_as_blas_is_told_and_never_more_than_cores(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert thread_count(None) == cores()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(None) == 1
    assert thread_count(10_000) == cores()


@pytest.mark.thorough
def test_numpy_arrays_need_no_dask():
    import subprocess
    import sys

    code = (
        "import sys\n"
        "sys.modules['dask'] = sys.modules['distributed'] = None\n"
        "import numpy as np, sympy as sp, symad\n"
        "from symad.numeric.scale import distribute\n"
        "n = sp.Symbol('n', integer=True, positive=True)\n"
        "f = symad.trace(lambda x: (x**2).sum(), [sp.IndexedBase('x', shape=(n,))])\n"
        "k = distribute(f, {'x': 0}, rows=3)\n"
        "print(k(np.arange(10.0)))\n"
        "try: k.on(scheduler='threads')(np.arange(10.0))\n"
        "except symad.errors.EvaluationError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told = "Dask is not installed: pip install 'path/to/symad[scale]'"
    assert done.stdout.split("\n")[:2] == ["285.0", told], done.stderr


@pytest.mark.parametrize("where", WHERE)
def test_cupy_kernels_run_on_the_parts(where):
    x, y, w = data(40)
    graph = symad.value_and_gradient(traced(mean_logistic), "w")
    with library(where):
        found = distribute(graph, OVER, rows=16, backend="cupy", threads=1)(x, y, w)
    expected = logistic_by_hand(x, y, w)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-13)


def test_data_may_be_integers_and_lie_along_any_axis():
    table, where = (
        sp.IndexedBase("T", shape=(5, 3)),
        sp.IndexedBase("i", shape=(2, sp.Symbol("k", integer=True))),
    )
    graph = symad.trace(
        lambda t, i: (functions.lookup(t, i[0]) * functions.lookup(t, i[1])).sum(), [table, where]
    )
    values, places = np.arange(15.0).reshape(5, 3), np.random.default_rng(0).integers(0, 5, (2, 23))
    found = distribute(graph, {"i": 1}, rows=4)(values, places)
    assert found == (values[places[0]] * values[places[1]]).sum()


def test_single_precision_kernels_give_single_precision():
    x, y, w = data(200)
    found = distribute(symad.gradient(traced(mean_logistic), "w"), OVER, rows=64, dtype="float32")(x, y, w)
    assert found.dtype == np.float32
    p = 1 / (1 + np.exp(y * (x @ w)))  # the gradient is a sum of 200 terms and a penalty, each rounded
    terms = np.abs(x).T @ p / len(x) + 2 * np.abs(w)
    assert np.all(np.abs(found - logistic_by_hand(x, y, w)[1]) <= 8 * np.finfo(np.float32).eps * terms)


def test_distributed_functions_and_their_certificates_travel():
    import pickle

    x, y, w = data(50)
    kernel = distribute(traced(mean_logistic), OVER, rows=16)
    assert pickle.loads(pickle.dumps(kernel))(x, y, w) == kernel(x, y, w)
    kept = symad.Certificate.from_json(kernel.certificate.to_json())
    assert kept.status == "proved" and "combined by mean" in kept.entries[0].claim


@dataclass
class Parameters:
    weights: Any
    offset: Any


@dataclass
class Table:
    rows: Any
    targets: Any


@pytest.mark.parametrize("scheduler", [None, "threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_dataclasses_are_arguments_and_results(scheduler):
    if scheduler:
        pytest.importorskip("dask", reason="Dask is not installed: the extra scale")
    n = sp.Symbol("n", integer=True, positive=True)

    def loss(table, p):
        return ((table.rows @ p.weights + p.offset - table.targets) ** 2).mean()

    graph = symad.trace(loss, [Table((n, 3), (n,)), Parameters((3,), ())])
    rng = np.random.default_rng(0)
    a, t, w = rng.standard_normal((50, 3)), rng.standard_normal(50), rng.standard_normal(3)
    given = Table(a, t), Parameters(w, 0.5)
    over = {"table.rows": 0, "table.targets": 0}
    kernel = distribute(symad.value_and_gradient(graph, "p"), over, rows=16, scheduler=scheduler)
    value, slope = kernel(*given)
    residual = a @ w + 0.5 - t
    assert isinstance(slope, Parameters)
    np.testing.assert_allclose(value, np.mean(residual**2), rtol=1e-13)
    np.testing.assert_allclose(slope.weights, 2 * a.T @ residual / 50, rtol=1e-12)
    np.testing.assert_allclose(slope.offset, 2 * residual.mean(), rtol=1e-12)
