"""Engines that compute the parts: threads of this process, Dask's schedulers, or a Dask cluster.

All engines combine the parts by one tree that depends on the number of parts only: neighbors in pairs, then
pairs of pairs. Results therefore have the same bits for every number of workers, and in all engines.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from time import monotonic, thread_time
from types import ModuleType
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from symad.errors import EvaluationError, told
from symad.numeric.scale.chunks import Chunks, is_count
from symad.numeric.scale.tasks import ChunkError, Job, finished, joined, part
from symad.splitting.plan import Values

Item = TypeVar("Item")

SCHEDULERS = ("threads", "processes", "synchronous")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """The number of threads: as given, or as set for BLAS libraries; never more than there are cores.

    Raises:
        EvaluationError: the number is not an int ≥ 1.
    """
    if threads is None:
        found = (os.environ.get(name, "") for name in BLAS_SETTINGS)
        return min(next((int(v) for v in found if v.isdigit() and int(v) > 0), cores()), cores())
    if not is_count(threads):
        raise EvaluationError(f"threads={threads!r}: give an int ≥ 1")
    return min(int(threads), cores())


BLAS_SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class Future(Protocol):
    """A value that workers compute."""

    @property
    def key(self) -> Hashable:
        """The name of the value in the cluster."""

    def result(self, timeout: float) -> Values:
        """The value; raises TimeoutError if it is not available in time."""

    def cancel(self) -> None:
        """Cancel the computation."""


class Client(Protocol):
    """The methods of a Dask cluster's client that are used."""

    @property
    def scheduler(self) -> Any:
        """The connection to the scheduler."""

    def nthreads(self) -> Mapping[str, int]:
        """The threads of each worker."""

    def compute(self, tree: Any) -> Future:
        """Start a delayed computation."""

    def run_on_scheduler(self, function: Callable[..., Asked], **arguments: object) -> Asked:
        """The result of a function that runs on the scheduler."""


Asked = TypeVar("Asked")


def one_blas_thread(backend: str) -> AbstractContextManager[object]:
    """A context in which BLAS libraries use one thread each, if threadpoolctl is installed."""
    found = _blas_libraries(backend)
    return nullcontext() if found is None else found.limit(limits=1)


@lru_cache
def _blas_libraries(backend: str) -> Any:
    """The loaded BLAS libraries; finding them reads files, so that it is done once for each backend."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


HAND_OVER = 20e-6
"""Seconds of CPU time to hand work to a thread and take its values back: 7 µs for an empty function, 15 to
20 µs for a kernel on a part (the CPU time of calls with two threads minus that with one)."""

WORTH = 10 * HAND_OVER
"""Seconds of work from which a hand-over pays: it then costs at most a tenth of the work."""


class Pace:
    """The time per row in the last call of the function; it determines how many parts one hand-over has."""

    def __init__(self) -> None:
        """The time is unknown before the first call, in which every part is handed over alone."""
        self.seconds = math.inf

    def together(self, lengths: Sequence[int]) -> int:
        """The number of parts of these lengths that together are worth a hand-over."""
        each = self.seconds * sum(lengths) / len(lengths)
        return max(1, math.ceil(WORTH / each)) if each else len(lengths)


def in_threads(job: Job, chunks: Chunks, threads: int, pace: Pace) -> Values:
    """The values of all parts, computed in threads; small parts are handed over together, or computed here.

    At most twice as many hand-overs as threads are pending. The grouping of parts does not change any bit.
    """
    tree, rows = Tree(job), job.store(chunks.lengths)
    parts = list(enumerate(chunks.blocks()))
    count = pace.together(chunks.lengths)

    def run(*group: tuple[int, tuple[Any, ...]]) -> tuple[list[Values], float]:
        began = thread_time()
        found = [rows.take(k, part(job, k, chunks.values, *blocks)) for k, blocks in group]
        return found, thread_time() - began

    took = 0.0
    with one_blas_thread(job.backend):
        for group, seconds in in_order(run, [tuple(g) for g in batched(parts, count)], threads):
            took += seconds
            for values in group:
                tree.add(values)
    pace.seconds = took / sum(chunks.lengths)
    return finished(job, rows.give(tree.value()))


def batched(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """The items, ``count`` at a time."""
    return [items[k : k + count] for k in range(0, len(items), count)]


def in_order(run: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], threads: int) -> Iterator[Any]:
    """``run(*task)`` for all tasks, in order; after the first error no further task is started."""
    if threads == 1 or len(tasks) == 1 or hasattr(_inside, "pool"):
        yield from (run(*task) for task in tasks)
        return
    pool = _pool(threads)
    waiting = [pool.submit(run, *task) for task in tasks[: 2 * threads]]
    rest = iter(tasks[2 * threads :])
    try:
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(run, *task) for task in [next(rest, None)] if task is not None]
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """A pool of threads that is kept, so that the next call reuses the memory the system gave to them."""
    return ThreadPoolExecutor(threads, "symad", initializer=lambda: setattr(_inside, "pool", threads))


_inside = threading.local()
"""Set in the threads of a pool; these must never wait for the pool."""


if hasattr(os, "register_at_fork"):  # a child process has none of the pool's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


class Tree:
    """Values merged as they arrive, in the order of the tree of all; it holds log2 of their number."""

    def __init__(self, job: Job) -> None:
        """An empty tree."""
        self.job = job
        self.levels: list[tuple[int, Values]] = []

    def add(self, values: Values) -> None:
        """Add the next part."""
        level = 0
        while self.levels and self.levels[-1][0] == level:
            values = joined(self.job, self.levels.pop()[1], values)
            level += 1
        self.levels.append((level, values))

    def value(self) -> Values:
        """The value of all parts."""
        _, values = self.levels.pop()
        while self.levels:
            values = joined(self.job, self.levels.pop()[1], values)
        return values


# ---- Dask -------------------------------------------------------------------------------------------


def dask_tree(job: Job, chunks: Chunks) -> Any:
    """The whole computation as one delayed Dask value."""
    parts = dask_parts(job, chunks)
    delayed = _dask().delayed
    sent = delayed(job, traverse=False)
    while len(parts) > 1:
        pairs = [delayed(joined)(sent, *parts[k : k + 2]) for k in range(0, len(parts) - 1, 2)]
        parts = pairs + ([parts[-1]] if len(parts) % 2 else [])
    return delayed(finished)(sent, parts[0])


def dask_parts(job: Job, chunks: Chunks) -> list[Any]:
    """The parts as delayed values, whose keys contain the number of the chunk."""
    delayed = _dask().delayed
    sent = delayed(job, traverse=False)
    shared = delayed(chunks.values, traverse=False)
    run, token = delayed(part), uuid4().hex
    return [
        run(sent, k, shared, *blocks, shapes=shapes, dask_key_name=f"symad-part-{k}-{token}")
        for k, (blocks, shapes) in enumerate(zip(chunks.blocks(), chunks.block_shapes(), strict=True))
    ]


def by_dask(
    job: Job, chunks: Chunks, client: Client | None, scheduler: str | None, timeout: float | None
) -> Values:
    """The values of all parts, computed by one of Dask's schedulers, or on the workers of a client.

    Raises:
        ChunkError: a part failed, or the workers that computed it died repeatedly.
        EvaluationError: the cluster has no workers, or the time is up.
    """
    tree = dask_tree(job, chunks)
    client = _default_client() if client is None and scheduler is None else client
    if client is None:
        return _locally(job, chunks, tree, scheduler)
    if not client.nthreads():
        raise EvaluationError(f"{job.name}: the cluster at {client.scheduler.address} has no workers")
    future = client.compute(tree)
    try:
        return _result(job, client, future, timeout)
    except (ChunkError, EvaluationError):
        raise
    except Exception as error:
        raise _named(job, client, future, error) from error


POLL_INTERVAL, WORKER_GRACE = 2.0, 30.0
"""Seconds between two checks of a running computation, and seconds that a cluster may be without workers."""


def _result(job: Job, client: Client, future: Future, timeout: float | None) -> Values:
    """The result; an error if the time is up, or if all workers are gone for too long."""
    began = alive = monotonic()
    while True:
        now = monotonic()
        left = POLL_INTERVAL if timeout is None else min(POLL_INTERVAL, began + timeout - now)
        try:
            return future.result(timeout=max(left, 0.0))
        except TimeoutError:
            now = monotonic()
            alive = now if client.nthreads() else alive
        if now - alive > WORKER_GRACE:
            why = f"all workers of the cluster have been gone for {WORKER_GRACE:.0f} seconds"
        elif timeout is not None and now >= began + timeout:
            why = f"not done within {timeout} seconds"
        else:
            continue
        future.cancel()
        raise EvaluationError(f"{job.name}: {why}; the computation was stopped")


def _locally(job: Job, chunks: Chunks, tree: Any, scheduler: str | None) -> Values:
    """The values, computed by one of Dask's own schedulers; if data cannot be read, the chunk is found."""
    dask = _dask()
    try:
        (values,) = dask.compute(tree, **({} if scheduler is None else {"scheduler": scheduler}))
    except ChunkError:
        raise
    except BrokenExecutor as error:
        raise ChunkError(job.name, -1, "a process of the pool", f"it died: {told(error)}") from error
    except Exception as error:
        for k, blocks in enumerate(chunks.blocks()):
            try:
                dask.compute(*blocks, scheduler="synchronous")
            except Exception as cause:
                raise ChunkError(job.name, k, "reading its data", told(cause)) from cause
        raise error
    return values


def _default_client() -> Client | None:
    """The client that Dask uses by default, if one is open."""
    try:
        return sys.modules["distributed"].default_client() if "distributed" in sys.modules else None
    except ValueError:
        return None


def _named(job: Job, client: Client, future: Future, error: Exception) -> ChunkError:
    """The error for a failed task, with the chunk that needed it and the worker, according to the cluster."""
    from distributed import KilledWorker

    chunk, workers = client.run_on_scheduler(_blamed, key=future.key)
    if isinstance(error, KilledWorker):
        address = getattr(error.last_worker, "address", error.last_worker)
        why = "the worker died while it computed this chunk, and so did others that tried it: out of memory?"
        return ChunkError(job.name, chunk, f"worker {address}", why)
    return ChunkError(job.name, chunk, f"worker {', '.join(workers) or 'unknown'}", told(error))


def _blamed(dask_scheduler: Any, key: Hashable) -> tuple[int, list[str]]:
    """The number of the part to which a failed task belongs (−1 if none), and the workers that ran it."""
    task = dask_scheduler.tasks.get(key)
    blamed = getattr(task, "exception_blame", None)
    if blamed is None:
        return -1, []
    waiting, seen = [blamed], set()
    while waiting:
        found = waiting.pop()
        name = str(found.key)
        if name.startswith("symad-part-"):
            return int(name.split("-")[2]), sorted(blamed.erred_on or ())
        if found not in seen:
            seen.add(found)
            waiting.extend(found.dependents)
    return -1, sorted(blamed.erred_on or ())


def _dask() -> ModuleType:
    try:
        import dask
    except ImportError:
        raise EvaluationError("Dask is not installed: pip install 'path/to/symad[scale]'") from None
    return dask
