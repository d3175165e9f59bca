"""A function of data as a kernel that runs on parts of the data: in threads, processes, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import sympy

from symad.core.arguments import Argument, SignatureOf, bind, flat_values
from symad.core.arrays import Array
from symad.core.dims import bind as bind_dims
from symad.core.graph import Graph
from symad.core.identifiers import not_one_of, visible
from symad.core.signatures import Inputs, Over, Traceable, Tree
from symad.core.structures import pack
from symad.errors import EvaluationError, ShapeError
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import lower
from symad.numeric.scale.chunks import Chunks, DaskArray, chunks_of, is_count
from symad.numeric.scale.engines import (
    SCHEDULERS,
    Client,
    Pace,
    by_dask,
    dask_parts,
    in_threads,
    thread_count,
)
from symad.numeric.scale.tasks import Job
from symad.saving.save_load import dumps
from symad.splitting import Splitting, splits
from symad.splitting.plan import Plan


class SplitError(EvaluationError):
    """A function is not known to be computable part by part; carries the certificate."""

    def __init__(self, certificate: Splitting) -> None:
        """``certificate`` names the op that mixes the parts."""
        super().__init__(str(certificate))
        self.certificate = certificate


@dataclass(frozen=True, eq=False, repr=False)
class Distributed:
    """A function computed part by part; it is called like the function, by position or by name.

    Data are NumPy arrays or Dask arrays; all other values are as for a kernel. See `distribute`.
    """

    graph: Graph
    certificate: Splitting
    job: Job
    client: Client | None = None
    scheduler: str | None = None
    threads: int | None = None
    rows: int | None = None
    timeout: float | None = None
    pace: Pace = field(default_factory=Pace)

    __signature__ = SignatureOf()

    def __post_init__(self) -> None:
        _check_places(self.client, self.scheduler, self.threads, self.rows, self.timeout)

    def __repr__(self) -> str:
        names = ", ".join(argument.name for argument in self.graph.arguments)
        over = ", ".join(f"{name} along {axis}" for name, axis in (self.certificate.over or {}).items())
        return visible(
            f"<Distributed {self.graph.name}({names}): {over}; {', '.join(self.certificate.rules)}>"
        )

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of a call, in order."""
        return self.graph.arguments

    @property
    def plan(self) -> Plan:
        """The computation on every part, and the computation after them."""
        found = self.certificate.plan
        assert found is not None
        return found

    @cached_property
    def _after(self) -> Callable[[tuple[tuple[sympy.Symbol, int], ...]], Kernel]:
        """Makes the kernel that runs on the combined values; their shapes need not determine all sizes."""
        return lru_cache(maxsize=8)(lambda sizes: lower(self.plan.after.at(dict(sizes))))

    def __call__(self, *values: Tree, **named: Tree) -> Any:
        """Evaluates the function."""
        chunks = self.chunks(*values, **named)
        found = self.run(chunks)
        plan = self.plan
        count = len(plan.after.input_nodes) - len(plan.needs)
        inputs = [*found[:count], *(chunks.values[k] for k in plan.needs)]
        if plan.direct:
            by_node = dict(zip(plan.after.input_nodes, inputs, strict=True))
            return pack(plan.after.structure, [by_node[o] for o in plan.after.output_nodes])
        return self._after(tuple(chunks.sizes.items()))(*inputs)

    def chunks(self, *values: Tree, **named: Tree) -> Chunks:
        """The values of all inputs, checked, with the data cut into parts."""
        given = bind(self.graph.name, self.graph.arguments, values, named)
        flat = flat_values(self.graph.arguments, given)
        return chunks_of(self.graph.ungrouped(), self.plan.cut, flat, self.rows)

    def run(self, chunks: Chunks) -> tuple[Array, ...]:
        """The combined values of the parts."""
        if self.client is not None or self.scheduler is not None or chunks.lazy:
            return by_dask(self.job, chunks, self.client, self.scheduler, self.timeout)
        return in_threads(self.job, chunks, thread_count(self.threads), self.pace)

    def lazy(self, *values: Tree, **named: Tree) -> Any:
        """The results as Dask arrays that are computed on demand, for functions that return rows only.

        Raises:
            EvaluationError: an output is not a concatenation of rows, or the values are not Dask arrays.
        """
        chunks = self.chunks(*values, **named)
        plan = self.plan
        if not plan.direct or any(p.kind != "rows" or p.weight is not None for p in plan.pieces):
            raise EvaluationError(f"{self.graph.name}: only concatenations of rows can stay Dask arrays")
        if not chunks.lazy:
            raise EvaluationError(f"{self.graph.name}: lazy takes Dask arrays")
        parts = dask_parts(self.job, chunks)
        places = {node: k for k, node in enumerate(plan.after.input_nodes)}
        return pack(
            plan.after.structure, [self._rows(places[o], parts, chunks) for o in plan.after.output_nodes]
        )

    def _rows(self, k: int, parts: Sequence[Array], chunks: Chunks) -> DaskArray:
        from dask import array, delayed

        axis, node = self.plan.pieces[k].axis, self.plan.local.output_nodes[k]
        made = []
        for length, values in zip(chunks.lengths, parts, strict=True):
            shape = bind_dims(node.shape, {**chunks.sizes, chunks.cut.length: length})
            block = delayed(_first_block)(values, k)
            made.append(array.from_delayed(block, shape, dtype=self.job.dtype))
        return array.concatenate(made, axis=axis)

    def on(self, **changed: Any) -> Distributed:
        """The same function with another ``client``, ``scheduler``, ``threads``, ``rows`` or ``timeout``.

        Raises:
            EvaluationError: the option does not exist, or its value is not allowed.
        """
        if unknown := sorted(set(changed) - set(PLACES)):
            raise EvaluationError(f"on takes {', '.join(PLACES)}, not {', '.join(unknown)}")
        return replace(self, **changed)


PLACES = ("client", "scheduler", "threads", "rows", "timeout")
"""Options that determine where a function is computed, and in which parts."""


def _check_places(
    client: Client | None, scheduler: str | None, threads: int | None, rows: int | None, timeout: float | None
) -> None:
    """Raises EvaluationError for values that these options must not have, and ShapeError for ``rows``."""
    if scheduler is not None and scheduler not in SCHEDULERS:
        raise EvaluationError(not_one_of("scheduler", scheduler, SCHEDULERS))
    if client is not None and scheduler is not None:
        raise EvaluationError("give a client or a scheduler, not both")
    if client is not None and not (hasattr(client, "nthreads") and hasattr(client, "compute")):
        raise EvaluationError(f"client={client!r} is not a distributed.Client: give Client(address)")
    thread_count(threads)
    if rows is not None and not is_count(rows):
        raise ShapeError(f"rows={rows!r} is not a number of rows: give an int ≥ 1")
    seconds = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (seconds and timeout > 0):
        raise EvaluationError(f"timeout={timeout!r} is not a time: give seconds > 0")


def _first_block(values: tuple[Array, ...], k: int) -> Array:
    ((block, _),) = values[k]
    return block


def distribute(
    f: Traceable,
    over: Over,
    client: Client | None = None,
    *,
    scheduler: str | None = None,
    threads: int | None = None,
    rows: int | None = None,
    backend: str = "numpy",
    dtype: str = "float64",
    nan: str = "raise",
    timeout: float | None = None,
    inputs: Inputs | None = None,
) -> Distributed:
    """A kernel of f that computes its data part by part and combines the results as `symad.splits` proves.

    The parts are the chunks of Dask arrays, or ``rows`` rows of NumPy arrays. They are combined by a tree
    that depends on their number only: for given parts the result has the same bits with any number of
    workers, if each worker computes with one BLAS thread. The kernel is sent as saved text and lowered once
    in every process.

    Args:
        f: a function, in any form that `symad.trace` takes.
        over: the axes of the inputs that hold data, as in ``{"X": 0, "y": 0}``.
        client: a ``distributed.Client``; its workers compute the parts.
        scheduler: one of Dask's schedulers instead: "threads", "processes" or "synchronous". Without client
            and scheduler, NumPy arrays are computed in threads of this process (Dask is not needed), Dask
            arrays by Dask's default.
        threads: the number of threads for NumPy arrays; by default the number set for BLAS
            (``OMP_NUM_THREADS``), and never more than there are cores.
        rows: the rows of a part of NumPy arrays; by default a part has about 8 MiB.
        backend: the backend of the kernels, see `symad.numeric.lower`: "numpy", "c", "cupy" (on workers with
            a GPU).
        dtype: the precision of the kernels.
        nan: "raise" raises an error that names the chunk whose data made a result NaN; "propagate" goes on
            computing, as NumPy does.
        timeout: seconds after which a computation on a client is stopped.
        inputs: order and grouping of the arguments, as in `symad.trace`.

    Raises:
        SplitError: no rule computes f part by part; the error shows the op that mixes the parts.
        ShapeError: an axis cannot be split.
        EvaluationError: an option does not exist.
    """
    if nan not in ("raise", "propagate"):
        raise EvaluationError(f"nan={nan!r} is not one of 'raise', 'propagate'")
    _check_places(client, scheduler, threads, rows, timeout)
    found = splits(f, over, inputs)
    if found.plan is None or found.graph is None:
        raise SplitError(found)
    local, cut = found.plan.local, found.plan.cut
    job = Job(
        found.graph.name, dumps(local), backend, dtype, found.plan.pieces,
        tuple(str(s) for s in local.inputs), tuple(k for k, _ in cut.axes), nan == "raise",
    )  # fmt: skip
    if client is None and scheduler != "processes":
        job.kernel  # noqa: B018  (so that an error in lowering is raised here, not in a task)
    return Distributed(found.graph, found, job, client, scheduler, threads, rows, timeout)
