"""Fits of data that are computed part by part: every step of a solver is one pass over the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

import symad
from symad.core.dims import solve_dims
from symad.core.graph import Graph
from symad.core.identifiers import not_one_of
from symad.core.signatures import ByInput, Over, Traceable, Tree
from symad.errors import EvaluationError
from symad.numeric.scale.chunks import check_lengths_known, is_dask
from symad.numeric.scale.colors import sparse_hessian
from symad.numeric.scale.distribute import Distributed, SplitError, distribute
from symad.numeric.scale.tasks import FactorJob
from symad.numeric.solvers.least_squares import Fit, fitted
from symad.numeric.solvers.minimize import METHODS
from symad.numeric.solvers.named_values import Named
from symad.numeric.solvers.newton import Minimum, Path
from symad.numeric.solvers.solver_variables import (
    MAX_DENSE,
    MAX_DENSITY,
    MIN_SPARSE,
    Unknowns,
    Vector,
    check_names,
    is_scalar,
)
from symad.splitting.plan import cut_of
from symad.tracing import as_graph

if TYPE_CHECKING:
    from symad.core.signatures import Inputs


@dataclass(frozen=True)
class Parts(Unknowns):
    """Unknowns of a function whose data are computed part by part."""

    over: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    with_hessian: bool = False
    """Whether value, gradient and dense Hessian are computed in one pass over the data."""

    @staticmethod
    def of(
        f: Traceable, x0: Tree, data: ByInput, over: Over, inputs: Inputs | None, options: Mapping[str, Any]
    ) -> tuple[Parts, Vector]:
        """The unknowns, and the vector of their first values; all sizes except those of parts are numbers.

        Raises:
            EvaluationError: a name is not an input's, an input has no value, or the start is not finite.
            ShapeError: the sizes do not fit.
        """
        whole = as_graph(f, inputs=inputs)
        by_name = Named.of(whole)
        given = by_name.values([(str(k), v) for k, v in data.items()])
        given = {k: v if is_dask(v) else np.asarray(v) for k, v in given.items()}
        for name, value in given.items():
            if is_dask(value):
                check_lengths_known(name, value)
        form, pairs = by_name.start(x0, given)
        start = by_name.values(pairs)
        graph = whole.ungrouped()
        places = [str(s) for s in graph.inputs]
        check_names(graph.name, places, start, given)
        arrays = {k: np.asarray(v, dtype=np.float64) for k, v in start.items()}
        shapes = [
            (k, n.shape, tuple((arrays[k] if k in arrays else given[k]).shape))
            for k, n in zip(places, graph.input_nodes, strict=True)
        ]
        length = cut_of(graph, over).length
        sizes = {s: v for s, v in solve_dims(shapes).items() if s != length}
        names = tuple(start)
        made = Parts(
            graph.at(sizes), names, tuple(arrays[k].shape for k in names),
            {places.index(k): given[k] for k in given}, form,
            tuple(by_name.structure(name) for name, _ in pairs),
            {str(k): v for k, v in over.items()}, options, named=by_name,
        )  # fmt: skip
        return made, made.pack([arrays[k] for k in names])

    def lowered(self, graph: Graph) -> Distributed:
        """A derivative as a function that is computed part by part."""
        return distribute(graph, self.over, **self.options)

    @cached_property
    def _all(self) -> Callable[[Vector], tuple[float, Vector, Vector]]:
        """f, ∇f and ∇²f in one pass; the values at the last point are kept."""
        wrt = self._wrt()
        kernel = self.lowered(
            symad.join(symad.value_and_gradient(self.graph, wrt), symad.hessian(self.graph, wrt))
        )
        last: list[Any] = [None, None]

        def at(v: Vector) -> tuple[float, Vector, Vector]:
            if last[0] is None or not np.array_equal(last[0], v):
                (value, *slopes), hessian = kernel(*self.arguments(v))
                last[:] = [np.array(v), (float(value), self.pack(slopes), np.asarray(hessian))]
            return last[1]

        return at

    @cached_property
    def value_and_gradient(self) -> Callable[[Vector], tuple[float, Vector]]:
        """f and ∇f in one pass."""
        return (lambda v: self._all(v)[:2]) if self.with_hessian else super().value_and_gradient

    @cached_property
    def hessian(self) -> Callable[[Vector], Vector]:
        """∇²f, dense."""
        return (lambda v: self._all(v)[2]) if self.with_hessian else super().hessian

    @cached_property
    def curvature(self) -> Callable[[Vector], Any]:
        """The Hessian: sparse if f is a sum or mean of rows whose Hessians have few entries, else dense.

        Raises:
            EvaluationError: a dense Hessian would fill the memory.
        """
        n = sum(self.sizes)
        if n >= MIN_SPARSE and set(symad.splits(self.graph, self.over).rules) <= {"sum", "mean"}:
            one = self.graph.at({cut_of(self.graph, self.over).length: 1})
            if symad.hessian_sparsity(one, self._wrt()).nnz <= MAX_DENSITY * n * n:
                hessian = sparse_hessian(self.graph, self._wrt(), self.over, **self.options)
                return lambda v: hessian(*self.arguments(v))
        if n > MAX_DENSE:
            raise EvaluationError(
                f"the Hessian of {self.graph.name} by its {n} unknowns has {n}² entries: use 'newton-cg' or "
                "'l-bfgs'"
            )
        return self.hessian


def minimize(
    f: Traceable,
    x0: Tree,
    *,
    data: ByInput,
    over: Over,
    method: str = "newton",
    tolerance: float = 1e-8,
    iterations: int = 500,
    watch: Callable[[Any], None] | None = None,
    inputs: Inputs | None = None,
    **options: Any,
) -> Minimum:
    """A local minimum of a scalar function of data, which is computed part by part.

    Args:
        f: a function, in any form that `symad.trace` takes; all inputs that are not in ``data`` are unknowns.
        x0: the first values of the unknowns, as in `symad.numeric.minimize`.
        data: the values of the other inputs by name: NumPy or Dask arrays.
        over: the axes along which the data are cut, as in `symad.splits`.
        method: "newton", "newton-cg", "trust-exact" or "l-bfgs", as in `symad.numeric.minimize`. The first
            and the third hold a dense Hessian, the others vectors only.
        tolerance: the largest allowed component of |∇f|.
        iterations: the most steps.
        watch: called with the start and with the point after every step.
        inputs: the inputs of f, as in `symad.trace`; a Python function needs them.
        options: options of `symad.numeric.scale.distribute`: client, scheduler, threads, rows, backend, ...

    Raises:
        SplitError: f cannot be computed part by part.
        EvaluationError: f is not a scalar, names do not fit, or f is not finite at the start.
    """
    if method not in METHODS:
        raise EvaluationError(not_one_of("method", method, METHODS))
    problem, start = Parts.of(f, x0, data, over, inputs, options)
    if not is_scalar(problem.graph):
        raise EvaluationError("minimize takes a scalar function; for a vector of residuals use least_squares")
    if method in ("newton", "trust-exact") and sum(problem.sizes) < MIN_SPARSE:
        problem = replace(problem, with_hessian=True)
    return METHODS[method](Path(problem, start, tolerance, watch), iterations)


@dataclass(frozen=True)
class Residuals(Parts):
    """Residuals r of which the solver gets the triangular factor R of [J r], which has the same products."""

    @cached_property
    def _factor(self) -> Callable[[Vector], Vector]:
        graph = symad.join(self.graph, symad.jacobian(self.graph, self._wrt()))
        kernel = self.lowered(graph)
        if not kernel.plan.direct or any(
            p.kind != "rows" or p.weight is not None for p in kernel.plan.pieces
        ):
            raise SplitError(kernel.certificate)
        job = FactorJob(**kernel.job.__dict__)
        factor = replace(kernel, job=job)
        last: list[Any] = [None, None]

        def at(v: Vector) -> Vector:
            if last[0] is None or not np.array_equal(last[0], v):
                (found,) = factor.run(factor.chunks(*self.arguments(v)))
                last[:] = [np.array(v), found]
            return last[1]

        return at

    @cached_property
    def residuals(self) -> Callable[[Vector], Vector]:
        """The last column of R, whose norm is that of r."""
        return lambda v: self._factor(v)[:, -1]

    @cached_property
    def residuals_and_jacobian(self) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The columns of R."""
        return lambda v: (self._factor(v)[:, -1], self._factor(v)[:, :-1])

    @property
    def count(self) -> int:
        """The number of residuals."""
        arguments = self.arguments(np.zeros(sum(self.sizes)))
        rows = zip(map(str, self.graph.inputs), self.graph.input_nodes, arguments, strict=True)
        sizes = solve_dims([(name, node.shape, tuple(np.shape(v))) for name, node, v in rows])
        return sum(int(np.prod(o.shape)) for o in self.graph.at(sizes).outputs)


def least_squares(
    f: Traceable,
    x0: Tree,
    *,
    data: ByInput,
    over: Over,
    method: str = "levenberg-marquardt",
    tolerance: float = 1e-10,
    iterations: int = 500,
    watch: Callable[[Any], None] | None = None,
    inputs: Inputs | None = None,
    **options: Any,
) -> Fit:
    """A local minimum of ½ |r(x)|² for residuals of data, which are computed part by part.

    Every part keeps the triangular factor of its Jacobian and residuals, so that the fit is as accurate as
    with orthogonal factors. ``Fit.residuals`` is a vector of the same norm as r, with few entries.

    Args:
        f: the residuals, rows of the data, in any form that `symad.trace` takes.
        x0: the first values of the unknowns.
        data: the values of the other inputs by name: NumPy or Dask arrays.
        over: the axes along which the data are cut.
        method: "levenberg-marquardt" or "gauss-newton".
        tolerance: the largest slope, see `symad.numeric.solvers.least_squares.Fit`.
        iterations: the most steps.
        watch: called with the start and with the point after every step.
        inputs: the inputs of f, as in `symad.trace`; a Python function needs them.
        options: options of `symad.numeric.scale.distribute`.

    Raises:
        SplitError: the residuals are not rows of the data.
        EvaluationError: names do not fit, or the residuals are not finite at the start.
    """
    base, start = Parts.of(f, x0, data, over, inputs, options)
    problem = Residuals(**base.__dict__)
    return fitted(problem, start, method, "dense", tolerance, iterations, watch)
