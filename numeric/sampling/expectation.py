"""Monte Carlo: E f(X) ≈ (1/N) Σ f(x_i), with its standard error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import symad
from symad.core.graph import Graph
from symad.core.signatures import ByInput, Inputs, Traceable, Tree
from symad.errors import EvaluationError, ShapeError
from symad.numeric.lowering import lower
from symad.numeric.plain_numbers import plain_fields
from symad.tracing import as_graph

Array = np.ndarray


@dataclass(frozen=True, repr=False)
class Estimate:
    """A mean over N independent samples, and its standard error s/√N; arrays if f is one."""

    mean: Any
    error: Any
    count: int

    __repr__ = plain_fields

    def __str__(self) -> str:
        return f"{self.mean} ± {self.error} ({self.count} samples)"


def expectation(
    f: Traceable, samples: Tree, data: ByInput | None = None, *, inputs: Inputs | None = None
) -> Estimate:
    """The mean of f over independent samples.

    Args:
        f: a function with one output, in any form that `symad.trace` takes, or a Graph.
        samples: samples of the inputs that are not in ``data``, N of each along the first axis: a mapping by
            symbol or name, or an array for a single input. Draws of Markov chains are not independent; use
            `symad.numeric.sampling.diagnostics.standard_error` for them.
        data: the values of the other inputs.
        inputs: the inputs of f, as in `symad.trace`; a Python function needs them.

    Raises:
        EvaluationError: fewer than two samples, several outputs, or inputs without a value.
        ShapeError: the numbers of samples of the inputs differ.
    """
    graph = as_graph(f, inputs=inputs).ungrouped()
    names = [str(s) for s in graph.inputs]
    given = {str(k): np.asarray(v, dtype=np.float64) for k, v in (data or {}).items()}
    if not isinstance(samples, Mapping):
        free = [name for name in names if name not in given]
        if len(free) != 1:
            raise EvaluationError(f"samples of {', '.join(free)}: give a mapping with the samples of each")
        samples = {free[0]: samples}
    drawn = {str(k): np.asarray(v, dtype=np.float64) for k, v in samples.items()}
    missing = [name for name in names if name not in drawn and name not in given]
    if missing or graph.structure is not None:
        what = f"values for {', '.join(missing)}" if missing else "one output, not several"
        raise EvaluationError(f"the expectation of {graph.name} needs {what}")
    counts = {v.shape[:1] for v in drawn.values()}
    if len(counts) != 1 or () in counts:
        shapes = ", ".join(f"{k} {v.shape}" for k, v in drawn.items())
        raise ShapeError(f"the samples have one length along their first axis, not {shapes}")
    values = _values(graph, names, drawn, given)
    if len(values) < 2:
        raise EvaluationError(f"a standard error takes two samples at least, not {len(values)}")
    return Estimate(values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values)), len(values))


def _values(graph: Graph, names: list[str], drawn: dict[str, Array], given: dict[str, Array]) -> Array:
    """The value of f at every sample."""
    kernel = lower(symad.vmap(graph, [0 if name in drawn else None for name in names]))
    return np.asarray(kernel(*[drawn[name] if name in drawn else given[name] for name in names]))
