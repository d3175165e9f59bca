"""Dask arrays: the same bits by every scheduler and on a cluster, bad chunks, workers that die."""

import os

import numpy as np
import pytest

import symad
from symad.errors import EvaluationError, ShapeError
from symad.numeric.scale import ChunkError, distribute
from tests.scale.problems import OVER, data, logistic_by_hand, mean_logistic, traced

da = pytest.importorskip("dask.array", reason="Dask is not installed: the extra scale")

ROWS = 50


def as_dask(x, y, rows=ROWS):
    return da.from_array(x, chunks=(rows, -1)), da.from_array(y, chunks=(rows, -1))


@pytest.fixture(scope="module")
def kernel():
    return distribute(symad.value_and_gradient(traced(mean_logistic), "w"), OVER, rows=ROWS)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous", None])
def test_schedulers_give_the_bits_of_numpy_arrays(kernel, scheduler):
    x, y, w = data(333)
    lazy_x, lazy_y = as_dask(x, y)
    found = kernel.on(scheduler=scheduler)(lazy_x, lazy_y, w)
    for a, b in zip(found, kernel(x, y, w), strict=True):
        assert np.array_equal(a, b)
    np.testing.assert_allclose(found[1], logistic_by_hand(x, y, w)[1], rtol=1e-12, atol=1e-14)
    mixed = kernel.on(scheduler=scheduler)(lazy_x, y, w)
    assert np.array_equal(mixed[1], found[1])


def test_rows_can_stay_dask_arrays():
    x, y, w = data(120)
    lazy_x, lazy_y = as_dask(x, y)
    both = distribute(traced(lambda x, y, w: (np.tanh(x @ w), (x * y).T)), OVER)
    first, second = both.lazy(lazy_x, lazy_y, w)
    assert first.chunks == ((50, 50, 20), (1,)) and second.chunks == ((4,), (50, 50, 20))
    np.testing.assert_allclose(first.compute(scheduler="threads"), np.tanh(x @ w), rtol=1e-14)
    np.testing.assert_allclose(second.compute(scheduler="threads"), (x * y).T, rtol=1e-14)
    with pytest.raises(EvaluationError, match="only concatenations of rows"):
        distribute(traced(mean_logistic), OVER).lazy(lazy_x, lazy_y, w)


def test_chunks_that_cannot_be_used_are_named(kernel):
    x, y, w = data(120)
    lazy_x, lazy_y = as_dask(x, y)
    with pytest.raises(
        ShapeError, match=r"the chunks of X and y do not line up: \(50, 50, 20\) and \(60, 60\)"
    ):
        kernel(lazy_x, lazy_y.rechunk((60, -1)), w)
    with pytest.raises(ShapeError, match="X is cut in 2 chunks along axis 1 too"):
        kernel(lazy_x.rechunk((50, 2)), lazy_y, w)
    with pytest.raises(ShapeError, match="w is a Dask array, but all parts need the whole of it"):
        kernel(lazy_x, lazy_y, da.from_array(w))
    with pytest.raises(ShapeError, match="chunk 1 of X is empty"):
        kernel(lazy_x.rechunk(((60, 0, 60), (4,))), lazy_y.rechunk(((60, 0, 60), (1,))), w)
    some = lazy_x[:, 0] > 0
    with pytest.raises(
        ShapeError, match=r"X has chunks whose lengths Dask does not know: call X.compute_chunk"
    ):
        kernel(lazy_x[some], lazy_y[some], w)


def fails_in_chunk(block, block_info=None, chunk=1, how=None, flag=""):
    if block_info[0]["chunk-location"][0] == chunk:
        if how == "raise":
            raise OSError("the disk is gone")
        if how == "die":
            os._exit(1)
        if how == "die once" and not os.path.exists(flag):
            open(flag, "w").close()
            os._exit(1)
    return block


def test_data_that_cannot_be_read_are_named_by_their_chunk(kernel):
    x, y, w = data(120)
    lazy_x, lazy_y = as_dask(x, y)
    broken = lazy_x.map_blocks(fails_in_chunk, how="raise", dtype=float)
    with pytest.raises(ChunkError, match="chunk 1, reading its data: OSError: the disk is gone"):
        kernel.on(scheduler="synchronous")(broken, lazy_y, w)


def test_blocks_that_are_not_as_dask_was_told_are_named(kernel):
    """What divides by the number of rows would be wrong and not known to be."""
    x, y, w = data(120)
    lazy_x, lazy_y = as_dask(x, y)
    shorter = lazy_x.map_blocks(lambda block: block[:30], dtype=float)  # its chunks are said to be as before
    with pytest.raises(ChunkError, match=r"X has the shape \(30, 4\) in this chunk, where Dask was told \("):
        kernel.on(scheduler="synchronous")(shorter, lazy_y.map_blocks(lambda b: b[:30], dtype=float), w)


@pytest.mark.slow
def test_processes_give_the_same_bits(kernel):
    x, y, w = data(333)
    found = kernel.on(scheduler="processes")(*as_dask(x, y), w)
    for a, b in zip(found, kernel(x, y, w), strict=True):
        assert np.array_equal(a, b)


# ---- a cluster on this machine ----------------------------------------------------------------------


def start_cluster(workers, more=None):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: the extra scale")
    import dask

    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.comm.timeouts.connect": "20s"}
    dask.config.set(settings | (more or {}))
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0",
        memory_limit=0, silence_logs=50,
    )  # fmt: skip


@pytest.fixture(scope="module")
def cluster_client():
    from distributed import Client

    with start_cluster(2) as cluster, Client(cluster) as found:
        yield found


@pytest.fixture
def client(cluster_client):
    """The client of two workers that are there: those that the test before has killed start again."""
    cluster_client.wait_for_workers(2, timeout=60)
    return cluster_client


@pytest.mark.thorough
def test_a_cluster_gives_the_same_bits_with_one_and_two_workers(client, kernel):
    x, y, w = data(333)
    expected = kernel(x, y, w)
    lazy = as_dask(x, y)
    for a, b in zip(kernel.on(client=client)(*lazy, w), expected, strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(kernel.on(client=client)(x, y, w), expected, strict=True):  # NumPy arrays are sent
        assert np.array_equal(a, b)
    (alone, *_) = client.scheduler_info()["workers"]
    with symad_on(client, alone):
        for a, b in zip(kernel.on(client=client)(*lazy, w), expected, strict=True):
            assert np.array_equal(a, b)


def symad_on(client, worker):
    import dask

    return dask.annotate(workers=[worker], allow_other_workers=False)


def test_kernels_are_lowered_once_in_every_process(client, kernel):
    x, y, w = data(333)
    for _ in range(3):
        kernel.on(client=client)(*as_dask(x, y), w)

    def lowered():
        from symad.numeric.scale.tasks import _kernel

        return _kernel.cache_info().currsize

    assert set(client.run(lowered).values()) <= {0, 1}


@pytest.mark.thorough
def test_faults_on_a_cluster_give_the_right_result_or_name_chunk_worker_and_cause(client, kernel, tmp_path):
    x, y, w = data(200)
    lazy_x, lazy_y = as_dask(x, y)
    on_cluster = kernel.on(client=client, timeout=120)
    broken = lazy_x.map_blocks(fails_in_chunk, how="raise", dtype=float)
    with pytest.raises(ChunkError, match=r"chunk 1, worker tcp://127.0.0.1:\d+: OSError: the disk is gone"):
        on_cluster(broken, lazy_y, w)
    with_nan = x.copy()
    with_nan[160, 0] = np.nan
    with pytest.raises(ChunkError, match=r"chunk 3, worker tcp://.*X has 1 NaN .* \[10, 0\]"):
        on_cluster(*as_dask(with_nan, y), w)
    dying = lazy_x.map_blocks(fails_in_chunk, how="die once", flag=str(tmp_path / "died"), dtype=float)
    for a, b in zip(on_cluster(dying, lazy_y, w), kernel(x, y, w), strict=True):
        assert np.array_equal(a, b)
    assert (tmp_path / "died").exists()


def test_an_open_client_is_used_without_being_named(client, kernel):
    x, y, w = data(200)
    lazy_x, lazy_y = as_dask(x, y)
    broken = lazy_x.map_blocks(fails_in_chunk, how="raise", chunk=2, dtype=float)
    with pytest.raises(ChunkError, match=r"chunk 2, worker tcp://"):
        kernel(broken, lazy_y, w)


@pytest.mark.slow
def test_a_process_that_dies_is_an_error(kernel):
    x, y, w = data(120)
    lazy_x, lazy_y = as_dask(x, y)
    deadly = lazy_x.map_blocks(fails_in_chunk, how="die", dtype=float)
    with pytest.raises(ChunkError, match="a process of the pool: it died"):
        kernel.on(scheduler="processes")(deadly, lazy_y, w)


@pytest.mark.slow
def test_a_chunk_that_kills_every_worker_is_named(client, kernel):
    x, y, w = data(200)
    lazy_x, lazy_y = as_dask(x, y)
    deadly = lazy_x.map_blocks(fails_in_chunk, how="die", chunk=2, dtype=float)
    with pytest.raises(ChunkError, match=r"chunk 2, worker tcp://.*: the worker died"):
        kernel.on(client=client, timeout=120)(deadly, lazy_y, w)


def test_a_cluster_without_workers_is_an_error_and_no_hang(kernel):
    from distributed import Client

    x, y, w = data(60)
    with (
        start_cluster(0) as cluster,
        Client(cluster) as empty,
        pytest.raises(EvaluationError, match="no workers"),
    ):
        kernel.on(client=empty)(*as_dask(x, y), w)


@pytest.mark.thorough
def test_a_worker_without_a_compiler_computes_by_numpy(client):
    """What was asked to be compiled, on a cluster of which one worker has no compiler."""
    x, y, w = data(60)
    graph = traced(lambda x, y, w: np.exp(np.sin(x @ w) * y + 0.123).sum())

    def lose():
        from symad.numeric.compiler import c_compiler

        c_compiler.shutil.which, before = (lambda name: None), c_compiler.shutil.which
        c_compiler.before = before
        os.environ.pop("CC", None)
        c_compiler.compiler.cache_clear()

    def find():
        from symad.numeric.compiler import c_compiler

        c_compiler.shutil.which = c_compiler.before
        c_compiler.compiler.cache_clear()

    def backend_of_kernels():
        from symad.numeric.scale.tasks import _kernel

        _kernel.cache_clear()
        return _kernel(job.graph, "c", "float64").c_source == ""

    kernel = distribute(graph, OVER, client, backend="c")
    job = kernel.job
    (first, *_) = client.scheduler_info()["workers"]
    client.run(lose, workers=[first])
    try:
        plain = client.run(backend_of_kernels)
        found = kernel(*as_dask(x, y, 10), w)
    finally:
        client.run(find, workers=[first])
    assert [address for address, is_numpy in plain.items() if is_numpy] == [first]
    np.testing.assert_allclose(found, np.exp(np.sin(x @ w) * y + 0.123).sum(), rtol=1e-12)


@pytest.mark.thorough
def test_a_worker_with_a_full_disk_computes_by_numpy(client, kernel, tmp_path):
    """One worker can write no file: neither the C text nor a library; a limit of file sizes stands for it."""
    resource = pytest.importorskip("resource", reason="no limits of file sizes on this system")
    x, y, w = data(60)
    graph = traced(lambda x, y, w: np.exp(np.cos(x @ w) * y + 0.456).sum())
    compiled = distribute(graph, OVER, client, backend="c", timeout=120)
    job = compiled.job

    def fill(folder):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        before, os.environ["SYMAD_CACHE"] = os.environ.get("SYMAD_CACHE"), folder
        return soft, before

    def empty(soft, before):
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        os.environ.pop("SYMAD_CACHE")
        os.environ.update({} if before is None else {"SYMAD_CACHE": before})

    def is_numpy_and_said():
        import warnings

        from symad.numeric.compiler import c_compiler
        from symad.numeric.scale.tasks import _kernel

        c_compiler._said.clear()
        _kernel.cache_clear()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = _kernel(job.graph, "c", "float64")
        return "KERNELS" not in found.source, [str(one.message) for one in said]

    (first, *_) = client.scheduler_info()["workers"]
    before = client.run(fill, str(tmp_path), workers=[first])
    try:
        plain = client.run(is_numpy_and_said)
        found = compiled(*as_dask(x, y, 10), w)
        gradient = kernel.on(client=client, timeout=120)(*as_dask(x, y), w)[1]
    finally:
        client.run(empty, *before[first], workers=[first])
    assert [address for address, (is_numpy, _) in plain.items() if is_numpy] == [first]
    (said,) = plain[first][1]
    assert "run in NumPy instead: nothing can be compiled here" in said and "File too large" in said
    np.testing.assert_allclose(found, np.exp(np.cos(x @ w) * y + 0.456).sum(), rtol=1e-12)
    np.testing.assert_allclose(gradient, logistic_by_hand(x, y, w)[1], rtol=1e-12, atol=1e-14)


def dies_at_random(block, block_info=None, flags="", deadly=()):
    """Every chunk of ``deadly`` kills the worker that reads it first."""
    if block_info and block.size:
        number = block_info[0]["chunk-location"][0]
        flag = os.path.join(flags, str(number))
        if number in deadly and not os.path.exists(flag):
            open(flag, "w").close()
            os._exit(1)
    return block


@pytest.mark.slow
def test_workers_that_die_at_random_change_no_bit(kernel, tmp_path):
    """Three deaths at chunks drawn at random, among three workers; a time limit stops what would hang."""
    from distributed import Client

    x, y, w = data(600)
    expected = kernel(x, y, w)
    deadly = np.random.default_rng().choice(12, 3, replace=False).tolist()
    lazy_x, lazy_y = as_dask(x, y)
    dying = lazy_x.map_blocks(dies_at_random, flags=str(tmp_path), deadly=deadly, dtype=float)
    failures = {"distributed.scheduler.allowed-failures": 10}  # a chunk may wait on several that die
    with start_cluster(3, failures) as cluster, Client(cluster) as client:
        found = kernel.on(client=client, timeout=120)(dying, lazy_y, w)
    assert sorted(map(int, os.listdir(tmp_path))) == sorted(deadly)
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b), deadly


@pytest.mark.slow
def test_every_number_of_workers_gives_the_same_bits(kernel):
    from distributed import Client

    x, y, w = data(777)
    expected = kernel(x, y, w)
    with start_cluster(1) as cluster, Client(cluster) as client:
        for workers in (1, 2, 3, 4):
            cluster.scale(workers)
            client.wait_for_workers(workers, timeout=60)
            for a, b in zip(kernel.on(client=client, timeout=120)(*as_dask(x, y), w), expected, strict=True):
                assert np.array_equal(a, b), workers
