"""A function evaluated at many values: sweeps and Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

import symad
from symad import functions
from symad.core.arrays import Array
from symad.core.dims import is_concrete
from symad.core.graph import Graph
from symad.core.signatures import ByInput, Traceable
from symad.errors import EvaluationError, ShapeError
from symad.numeric.sampling.expectation import Estimate
from symad.numeric.scale.chunks import is_dask
from symad.numeric.scale.distribute import Distributed, distribute
from symad.numeric.solvers.named_values import Named
from symad.tracing import as_graph

if TYPE_CHECKING:
    from symad.core.dims import Shape
    from symad.core.signatures import Inputs


DEFAULT_PARTS = 64
"""The default number of parts; a larger number keeps many workers evenly busy."""


def sweep(
    f: Traceable,
    values: ByInput,
    shared: ByInput | None = None,
    *,
    inputs: Inputs | None = None,
    **options: Any,
) -> Any:
    """The values of f at many values of some inputs: parameters, initial values, ensembles.

    Args:
        f: a function, in any form that `symad.trace` takes.
        values: for some arguments, by name, N values along the first axis: NumPy or Dask arrays; for an
            argument that is a dict, list or dataclass of arrays, such an object.
        shared: the values of the other inputs.
        inputs: the inputs of f, as in `symad.trace`; a Python function needs them.
        options: options of `symad.numeric.scale.distribute`: client, scheduler, threads, rows, backend, ...

    Returns:
        The results of f with a leading axis of length N.

    Raises:
        EvaluationError: a name is not an input's, or an input has no value.
        ShapeError: the numbers of values of the inputs differ.
    """
    whole = as_graph(f, inputs=inputs)
    graph, by_name = whole.ungrouped(), Named.of(whole)
    names = [str(s) for s in graph.inputs]
    found = by_name.values([(str(k), v) for k, v in values.items()])
    many = {k: v if is_dask(v) else np.asarray(v) for k, v in found.items()}
    given = by_name.values([(str(k), v) for k, v in (shared or {}).items()])
    _check(graph, names, many, given)
    _check_lengths(many)
    kernel = distribute(symad.vmap(graph, [0 if n in many else None for n in names]), dict.fromkeys(many, 0),
                        **_in_parts(options, len(next(iter(many.values())))))  # fmt: skip
    return kernel(*(many[n] if n in many else given[n] for n in names))


def _in_parts(options: Mapping[str, Any], count: int) -> dict[str, Any]:
    return {"rows": max(1, -(-count // DEFAULT_PARTS)), **options}


def _check(graph: Graph, names: Sequence[str], many: Mapping[str, Array], given: Mapping[str, Array]) -> None:
    unknown = [k for k in (*many, *given) if k not in names]
    missing = [k for k in names if k not in many and k not in given]
    if unknown or missing or not many:
        what = f"no input is called {', '.join(unknown)}" if unknown else f"no value of {', '.join(missing)}"
        raise EvaluationError(
            f"{graph.name}({', '.join(names)}): {what if unknown or missing else 'values is empty'}"
        )


def _check_lengths(many: Mapping[str, Array]) -> None:
    lengths = {k: np.shape(v)[:1] for k, v in many.items()}
    if len(set(lengths.values())) > 1 or () in lengths.values():
        shapes = ", ".join(f"{k} {np.shape(v)}" for k, v in many.items())
        raise ShapeError(f"sweep: the values have one length along their first axis, not {shapes}")


# ---- Monte Carlo ------------------------------------------------------------------------------------

DRAWS: dict[str, Callable[..., Array]] = {"normal": functions.randn, "uniform": functions.rand}


def monte_carlo(
    f: Traceable,
    draws: Mapping[sympy.Basic | str, str],
    samples: int,
    shared: ByInput | None = None,
    *,
    seed: int = 0,
    inputs: Inputs | None = None,
    **options: Any,
) -> Estimate:
    """The mean of f over random inputs, with its standard error.

    Sample i draws its numbers from its own Philox stream, fold_in(key(seed), i), so that the samples do not
    depend on how they are divided among workers.

    Args:
        f: a function with one output, in any form that `symad.trace` takes.
        draws: for each random argument "normal" or "uniform": independent standard numbers of its shape, or
            of the shapes of all arrays in it.
        samples: the number of samples, at least 2.
        shared: the values of the other inputs.
        seed: the seed of the key.
        inputs: the inputs of f, as in `symad.trace`; a Python function needs them.
        options: options of `symad.numeric.scale.distribute`.

    Raises:
        EvaluationError: a name or a kind of draws does not exist, f has several outputs, or samples < 2.
    """
    whole = as_graph(f, inputs=inputs)
    graph, by_name = whole.ungrouped(), Named.of(whole)
    names = [str(s) for s in graph.inputs]
    kinds = by_name.values([(str(k), v) for k, v in draws.items()], lambda kind: isinstance(kind, str))
    fixed = by_name.values([(str(k), v) for k, v in (shared or {}).items()])
    given = {k: np.asarray(v, dtype=np.float64) for k, v in fixed.items()}
    _check(graph, names, kinds, given)
    wrong = [f"{k}={v!r}" for k, v in kinds.items() if v not in DRAWS]
    if wrong or graph.structure is not None or isinstance(samples, bool) or samples < 2:
        what = (
            f"{wrong[0]}: draws are {', '.join(map(repr, DRAWS))}"
            if wrong
            else "one output, two samples at least"
        )
        raise EvaluationError(f"monte_carlo of {graph.name}: {what}")
    value = _of_sample(graph, names, kinds, given, seed)
    rest = [given[n] for n in names if n in given]
    # Moments about a typical value lose no digits to cancellation.
    pilot = np.asarray(value(0.0, *rest, np.zeros(graph.outputs[0].shape)[()])[0])
    n = sympy.Symbol("n", integer=True, positive=True)
    known = [(k, given[k].shape) for k in names if k in given]
    sizes: list[tuple[str, Shape]] = [("sample", (n,)), *known, ("pilot", pilot.shape)]
    many = symad.vmap(value, [0, *(None for _ in sizes[1:])])
    sums = symad.trace(
        lambda *values: tuple(part.sum(axis=0) for part in many(*values)),
        [_array(name, shape) for name, shape in sizes],
    )
    kernel = distribute(sums, {"sample": 0}, **_in_parts(options, samples))
    first, second = kernel(_numbers(samples, kernel), *rest, pilot)
    mean = first / samples
    variance = np.maximum(second / samples - mean**2, 0.0) * (samples / (samples - 1))
    return Estimate(pilot + mean, np.sqrt(variance / samples), samples)


def _array(name: str, shape: Shape) -> sympy.Basic:
    return sympy.IndexedBase(name, shape=shape) if shape else sympy.Symbol(name, real=True)


def _of_sample(
    graph: Graph, names: Sequence[str], kinds: Mapping[str, str], given: Mapping[str, Array], seed: int
) -> Graph:
    """The function (number of a sample, shared..., pilot) -> f − pilot and its square."""
    nodes = dict(zip(names, graph.input_nodes, strict=True))
    key = functions.key(seed)
    for name in kinds:
        if not is_concrete(nodes[name].shape):
            raise ShapeError(
                f"monte_carlo: {name} has the shape {nodes[name].shape}; give it numbers with graph.at"
            )

    def value(sample: Array, *rest: Array) -> tuple[Array, Array]:
        *values, pilot = rest
        known = dict(zip((k for k in names if k in given), values, strict=True))
        own = functions.fold_in(key, sample)
        for k, (name, kind) in enumerate(kinds.items()):
            known[name] = DRAWS[kind](functions.fold_in(own, k), nodes[name].shape)
        difference = graph(*(known[name] for name in names)) - pilot
        return difference, difference**2

    shape = graph.outputs[0].shape
    inputs = [_array("sample", ()), *(_array(k, given[k].shape) for k in names if k in given)]
    return symad.trace(value, [*inputs, _array("pilot", shape)])


def _numbers(samples: int, kernel: Distributed) -> Any:
    """The sample numbers 0, 1, ...; a Dask array where that is needed to save memory."""
    if kernel.client is None and kernel.scheduler is None:
        return np.arange(samples, dtype=np.float64)
    from dask import array

    return array.arange(samples, chunks=kernel.rows, dtype=np.float64)
