"""Running one stage of the tour: trace, differentiate in every mode, check, lower, use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import symad
from symad.cli.tour.stage import Finding, Made, Skip, Stage, TourModel
from symad.core.arrays import Array
from symad.core.dims import size
from symad.core.graph import Graph
from symad.core.process import without_collecting
from symad.derivatives.hessian import MODES
from symad.errors import DerivativeError, told
from symad.numbers.dual import Dual, split
from symad.tracing.wrt import scalar_output, select_wrt

STEPS = ("trace", "differentiate", "check", "lower", "use")

AGREE = 1e-8
"""The maximum relative difference between modes, or between code and graph."""

MAX_COLUMNS_COMPARED = 40
"""The number of elements above which Hessians are compared by their products with a vector."""


@dataclass
class Outcome:
    """The results of a stage."""

    stage: Stage
    nodes: int = 0
    modes: int = 0
    difference: float = 0.0
    status: str = ""
    lines: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """Claims that are neither proved nor refuted; they are reported, and are no failure."""
    skipped: str = ""
    pictures: list[str] = field(default_factory=list)
    """Names of the pictures that the stage has drawn."""

    @property
    def ok(self) -> bool:
        """True if nothing failed."""
        return not self.failures and all(f.ok for f in self.findings)


def run_stage(stage: Stage, out: Path | None, step: Callable[[str], None]) -> Outcome:
    """Run a stage; ``step`` is called with each step before it starts. Failures are collected, not raised."""
    outcome = Outcome(stage)
    before = _pictures(out)
    start = time.perf_counter()
    try:
        _run(stage, outcome, out, step)
    except Skip as reason:
        outcome.skipped = str(reason)
    except Exception as error:  # a failing stage must not end the tour
        outcome.failures.append(told(error))
    outcome.seconds = time.perf_counter() - start
    outcome.pictures = sorted(name for name, time_ in _pictures(out).items() if before.get(name) != time_)
    return outcome


def _pictures(folder: Path | None) -> dict[str, int]:
    """The pictures in a folder, with the times at which they were written."""
    files = folder.iterdir() if folder is not None else ()
    return {path.name: path.stat().st_mtime_ns for path in files if path.suffix in {".svg", ".png"}}


@without_collecting
def _run(stage: Stage, outcome: Outcome, out: Path | None, step: Callable[[str], None]) -> None:
    step("trace")
    model = stage.model()
    graph = model.graph(stage.name)
    outcome.nodes = len(graph.nodes)
    with _recorded(outcome, "differentiating"):
        step("differentiate")
        _differentiate(model, graph, outcome)
    with _recorded(outcome, "checking"):
        step("check")
        _check(model, graph, outcome)
    kernel = None
    with _recorded(outcome, "lowering"):
        step("lower")
        kernel = _lower(model, graph, outcome)
    if out is not None:
        with _recorded(outcome, "drawing"):
            graph.draw(out / f"{stage.name}.svg")
    step("use")
    outcome.findings += model.use(Made(graph, kernel, out))


@contextmanager
def _recorded(outcome: Outcome, doing: str) -> Iterator[None]:
    """Turn an exception into a failure, so that the later steps still run."""
    try:
        yield
    except Exception as error:
        outcome.failures.append(f"{doing}: {told(error)}")


def _differentiate(model: TourModel, graph: Graph, outcome: Outcome) -> None:
    """Every mode at the point; all must agree, Dual numbers included."""
    nodes, _ = select_wrt(graph, model.wrt)
    values = [np.asarray(v, dtype=float)[()] for v in model.point]
    positions = [graph.input_nodes.index(n) for n in nodes]
    directions = [_direction(np.shape(values[k]), k) for k in positions]
    made = [("pushforward", _tangents(symad.pushforward(graph, model.wrt)(*values, *directions)))]
    made.append(("Dual numbers", _by_duals(graph, values, positions, directions)))
    _compare(made, outcome)
    try:
        scalar_output(graph, "a gradient")
    except DerivativeError:
        rows = [(m, symad.jacobian(graph, model.wrt, mode=m)(*values)) for m in ("forward", "reverse")]
        _compare(rows, outcome)
        return
    gradients = [(m, symad.gradient(graph, model.wrt, mode=m)(*values)) for m in ("forward", "reverse")]
    _compare(gradients, outcome)
    _compare(_second(graph, model.wrt, values, directions), outcome)


def _second(graph: Graph, wrt: Any, values: list[Any], directions: list[Any]) -> list[tuple[str, Any]]:
    """All four Hessians, or, if they are large, the Hessian-vector products of three modes."""
    sizes = [size(np.shape(d)) for d in directions]
    if sum(int(s) for s in sizes) <= MAX_COLUMNS_COMPARED:
        return [(m, symad.hessian(graph, wrt, mode=m)(*values)) for m in MODES]
    products = [m for m in MODES if m != "forward-over-forward"]
    return [(m, symad.hvp(graph, wrt, mode=m)(*values, *directions)) for m in products]


def _direction(shape: tuple[int, ...], seed: int) -> Array | float:
    """A fixed direction without zeros."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)[()]


def _tangents(results: Sequence[float]) -> list[float]:
    return list(results)[len(results) // 2 :]


def _by_duals(graph: Graph, values: list[Any], positions: list[int], directions: list[Any]) -> list[Any]:
    """The tangents of the outputs by Dual numbers, which share no rule with the graph."""
    duals = list(values)
    for k, direction in zip(positions, directions, strict=True):
        duals[k] = Dual(values[k], direction)
    flat = Graph(
        graph.input_nodes, graph.output_nodes, symad.core.graph.TupleOf((None,) * len(graph.output_nodes))
    )
    return [split(result)[1] for result in flat(*duals)]


def _compare(results: list[tuple[str, Any]], outcome: Outcome) -> None:
    """Record the relative difference of results; a failure if it is more than rounding."""
    first_name, first = results[0][0], _flat(results[0][1])
    outcome.modes += len(results)
    for name, other in results[1:]:
        difference = relative_difference(first, _flat(other))
        outcome.difference = max(outcome.difference, difference)
        if not difference <= AGREE:
            outcome.failures.append(f"{name} and {first_name} differ by {difference:.1e} (relative)")


def _flat(result: Any) -> np.ndarray:
    parts = result if isinstance(result, (tuple, list)) else [result]
    return np.concatenate([np.asarray(p, dtype=float).ravel() for p in parts]) if parts else np.zeros(0)


def relative_difference(a: np.ndarray, b: np.ndarray) -> float:
    """max |a − b| / max(|a|, |b|), over all entries; infinite if only one has NaN at an entry."""
    if a.shape != b.shape or np.any(np.isnan(a) != np.isnan(b)):
        return float("inf")
    scale = max(float(np.nanmax(np.abs(a), initial=0.0)), float(np.nanmax(np.abs(b), initial=0.0)))
    gap = float(np.nanmax(np.abs(a - b), initial=0.0))
    return gap / scale if scale else gap


def _check(model: TourModel, graph: Graph, outcome: Outcome) -> None:
    checked = graph if model.check is None else symad.trace(model.check)
    wrt = model.wrt
    if isinstance(wrt, (list, tuple)) and model.check is not None:  # a small instance may have fewer inputs
        names = {str(s) for s in checked.inputs}
        wrt = [w for w in wrt if isinstance(w, int) or str(w) in names] or None
    certificate = symad.check(checked, wrt)
    outcome.status = str(certificate.status)
    if outcome.status == "refuted":
        outcome.failures.append(str(certificate))
    undecided = [e for e in certificate.entries if e.status == "undecided"]
    if undecided:
        first = undecided[0]
        outcome.doubts.append(
            f"{len(undecided)} of {len(certificate.entries)} entries are undecided, such as "
            f"{first.name}: {first.reason}"
        )


def _lower(model: TourModel, graph: Graph, outcome: Outcome) -> Any:
    """Lower the model, and its gradient if it has one; the code must agree with the graph."""
    from symad.numeric import lower

    try:
        made = symad.value_and_gradient(graph, model.wrt)
    except DerivativeError:
        made = graph
    kernel = lower(made)
    outcome.lines = kernel.source.count("\n")
    values = [np.asarray(v, dtype=float)[()] for v in model.point]
    with np.errstate(all="ignore"):  # branches that are not taken may divide by zero
        found = kernel(*values)
    difference = relative_difference(_flat(_leaves(found)), _flat(_leaves(made(*values))))
    if not difference <= AGREE:
        outcome.failures.append(f"the code differs from the graph by {difference:.1e} (relative)")
    return kernel


def _leaves(result: Any) -> list[Array | float]:
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in _leaves(part)]
    return [result]
