"""The unknowns of a graph as one flat vector, and the derivatives that optimizers and samplers need.

Each derivative is traced and lowered once, when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.arguments import Argument, grouped_values
from symad.core.arrays import Array
from symad.core.dims import is_concrete, solve_dims
from symad.core.given import real_array
from symad.core.graph import Graph
from symad.core.identifiers import listed
from symad.core.signatures import ByInput, Inputs, Traceable, Tree
from symad.core.structures import Structure, field_names
from symad.derivatives.hessian import hessian, hvp
from symad.derivatives.jacobian import jacobian
from symad.derivatives.join import join
from symad.derivatives.sweeps import pullback, pushforward, value_and_gradient
from symad.errors import EvaluationError
from symad.numeric.lowering import lower
from symad.numeric.solvers.named_values import Named, Start, examples
from symad.sparsity.patterns.detection import hessian_sparsity
from symad.tracing import as_graph

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Vector = np.ndarray

MIN_SPARSE = 100
"""The number of unknowns from which a Hessian may be sparse.

A step of Newton's method with three entries in a row takes 0.66 of the time at 30 unknowns, 0.24 at 100, 0.08
at 200 (bench_layout_thresholds.py, "sparse Newton"); a whole minimization, most of which is the derivation,
takes 0.98 to 1.03 up to 200.
"""

MAX_DENSITY = 0.1
"""The largest share of entries that a sparse Hessian may have.

With 400 unknowns a step takes 0.02 of the time at 0.1 and 0.25 at 0.2 if the entries are in a band, 0.42 and
0.62 if not (bench_layout_thresholds.py, "density"); the factorization alone then takes 5 times as long, and
8 times with 2,000 unknowns.
"""

MIN_PROBED, MAX_DENSE = 3000, 20_000
"""Above the first number of unknowns, a few columns are examined before the pattern; above the second, a
dense Hessian is refused."""


@dataclass(frozen=True)
class Unknowns:
    """A graph whose inputs are unknowns, in one flat vector, and data with fixed values.

    Attributes:
        graph: the function; a scalar for `value` and its derivatives.
        names: the unknown inputs, in the order of the vector.
        shapes: their shapes.
        data: the values of the other inputs, by position.
        form: how the unknowns were given: "one", "sequence" or "mapping" (with its keys).
        structures: the structures of the objects that were given.
        named: the arguments of the function and the inputs inside them, by name.
    """

    graph: Graph
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    data: Mapping[int, Array]
    form: Start
    structures: tuple[Structure, ...]
    named: Named | None = field(default=None, kw_only=True)

    @staticmethod
    def make(
        f: Traceable, x0: Tree, data: ByInput | None, inputs: Inputs | None = None
    ) -> tuple[Unknowns, Vector]:
        """The unknowns, and the flat vector of their first values.

        Args:
            f: a function, in any form that `symad.trace` takes, or a Graph.
            x0: a mapping by symbol or name; or values of the arguments that are not in ``data``, in order:
                the value itself for one argument (for a scalar also a list of it), otherwise a sequence with
                one entry for each. The value of
                an argument that is a dict, list or dataclass of arrays is such an object.
            data: the values of the other arguments, by symbol or name.
            inputs: order and grouping of the arguments, as in `symad.trace`; for a Python function the shapes
                of ``x0`` and ``data`` by default.

        Raises:
            EvaluationError: a name is not an input's, an input has no value, or the start is not finite.
        """
        whole = as_graph(f, None, examples(f, x0, data) if inputs is None else inputs)
        by_name = Named.of(whole)
        given = by_name.values([(str(k), v) for k, v in (data or {}).items()])
        form, pairs = by_name.start(x0, given)
        start = by_name.values(pairs)
        graph = whole.ungrouped()
        names_ = [str(s) for s in graph.inputs]
        check_names(graph.name, names_, start, given)
        arrays = {k: np.asarray(v, dtype=np.float64) for k, v in {**start, **given}.items()}
        shapes = [(k, n.shape, arrays[k].shape) for k, n in zip(names_, graph.input_nodes, strict=True)]
        names = tuple(start)
        unknowns = Unknowns(
            graph.at(solve_dims(shapes)),
            names,
            tuple(arrays[k].shape for k in names),
            {names_.index(k): arrays[k] for k in given},
            form,
            tuple(by_name.structure(name) for name, _ in pairs),
            named=by_name,
        )
        return unknowns, unknowns.pack([arrays[k] for k in names])

    def pack(self, values: Sequence[Array]) -> Vector:
        """Values of the unknowns as one vector."""
        return np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])

    def parts(self, vector: Vector) -> list[np.ndarray]:
        """A vector as one array for each unknown; numbers for scalars."""
        return [part[()] for part in self.stacks(vector)]

    def unpack(self, vector: Vector) -> Any:
        """A vector in the form in which the start was given."""
        return self.shaped(self.parts(np.array(vector)))

    @cached_property
    def places(self) -> tuple[int, ...]:
        """For each unknown its position among the inputs."""
        inputs = [str(s) for s in self.graph.inputs]
        return tuple(inputs.index(name) for name in self.names)

    def arguments(self, vector: Vector) -> list[Array]:
        """The values of all inputs, in the graph's order."""
        return self.around(self.parts(vector))

    def around(self, parts: Sequence[Array]) -> list[Array]:
        """Values of the unknowns, with the data, as arguments in the graph's order."""
        found: dict[int, Array] = {**self.data, **dict(zip(self.places, parts, strict=True))}
        return [found[k] for k in range(len(found))]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of elements of each unknown."""
        return tuple(int(np.prod(shape)) for shape in self.shapes)

    def stacks(self, rows: Vector) -> list[np.ndarray]:
        """Vectors (..., unknowns) as one array (..., *shape) for each unknown."""
        parts, offset = [], 0
        for shape, size in zip(self.shapes, self.sizes, strict=True):
            parts.append(rows[..., offset : offset + size].reshape((*rows.shape[:-1], *shape)))
            offset += size
        return parts

    def shaped(self, parts: Sequence[Array] | list[float]) -> Any:
        """One array for each unknown in the form in which the start was given."""
        parts = grouped_values([Argument("", s) for s in self.structures], parts, lambda part: part)
        if self.form == "one":
            return parts[0]
        return tuple(parts) if self.form == "sequence" else dict(zip(self.form, parts, strict=True))

    def _wrt(self) -> list[str]:
        return list(self.names)

    def lowered(self, graph: Graph) -> Callable[..., Any]:
        """A derivative as a function of the arguments."""
        return lower(graph)

    def not_finite(self, what: str, start: Vector) -> str:
        """The message for a function that is not finite at a start; it names data that are not finite."""
        told = []
        for place, value in self.data.items():
            if (wrong := np.argwhere(~np.isfinite(value))).size or not np.all(np.isfinite(value)):
                first = tuple(map(int, wrong[0]))
                element = f" at {first}" if first else ""
                told.append(
                    f"{self.graph.inputs[place]} is {value[first]}{element}"
                    + (f", and not finite in {len(wrong)} of {value.size} elements" if len(wrong) > 1 else "")
                )
        where = f"{what} not finite at the start {self.unpack(start)}"
        if told:
            return f"{where}, and neither are the data: {'; '.join(told)}; leave these out, or mask them in f"
        return f"{where}: choose another x0"

    @property
    def count(self) -> int | None:
        """The number of residuals if `residuals` returns a shorter vector of the same norm; else None."""
        return None

    # ---- derivatives of scalar functions -----------------------------------------------------------

    @cached_property
    def value(self) -> Callable[[Vector], float]:
        """f."""
        kernel = self.lowered(self.graph)
        return lambda v: float(kernel(*self.arguments(v)))

    @cached_property
    def value_and_gradient(self) -> Callable[[Vector], tuple[float, Vector]]:
        """f and ∇f in one sweep."""
        kernel = self.lowered(value_and_gradient(self.graph, self._wrt()))

        def both(v: Vector) -> tuple[float, Vector]:
            value, *slopes = kernel(*self.arguments(v))
            return float(value), self.pack(slopes)

        return both

    @cached_property
    def hessian(self) -> Callable[[Vector], Vector]:
        """∇²f, dense."""
        kernel = self.lowered(hessian(self.graph, self._wrt()))
        return lambda v: np.asarray(kernel(*self.arguments(v)))

    @cached_property
    def curvature(self) -> Callable[[Vector], Vector | csr_array]:
        """∇²f: sparse if it is known to have few entries, otherwise dense.

        Raises:
            EvaluationError: a dense Hessian would fill the memory.
        """
        chosen: list[Callable[[Vector], Vector | csr_array]] = []

        def hessian(v: Vector) -> Vector | csr_array:
            if not chosen:
                chosen.append(self._sparse_hessian() if self._is_sparse(v) else self._dense_hessian())
            return chosen[0](v)

        return hessian

    def _is_sparse(self, v: Vector) -> bool:
        """Whether few entries of ∇²f can be nonzero; for many unknowns some columns are examined first."""
        n = len(v)
        for k in (0, n // 2, n - 1) if n > MIN_PROBED else ():
            column = self.hessian_product(v, np.eye(1, n, k)[0])
            if np.count_nonzero(column) > MAX_DENSITY * n:
                return False
        most = MAX_DENSITY * n * n
        return n >= MIN_SPARSE and bool(hessian_sparsity(self.graph, self._wrt()).nnz <= most)

    def _sparse_hessian(self) -> Callable[[Vector], csr_array]:
        kernel = self.lowered(hessian(self.graph, self._wrt(), sparse=True))
        return lambda v: kernel(*self.arguments(v))

    def _dense_hessian(self) -> Callable[[Vector], Vector]:
        n = sum(self.sizes)
        if n > MAX_DENSE:
            raise EvaluationError(
                f"the Hessian of {self.graph.name} by its {n} unknowns has {n}² entries, too many for "
                "Newton's method: use method='newton-cg' or 'l-bfgs'"
            )
        return self.hessian

    @cached_property
    def hessian_product(self) -> Callable[[Vector, Vector], Vector]:
        """∇²f(v) p, without the Hessian."""
        kernel = self.lowered(hvp(self.graph, self._wrt()))

        def product(v: Vector, p: Vector) -> Vector:
            found = kernel(*self.arguments(v), *self.parts(p))
            return self.pack(found if isinstance(found, tuple) else [found])

        return product

    # ---- derivatives of vector functions ------------------------------------------------------------

    @cached_property
    def residuals(self) -> Callable[[Vector], Vector]:
        """All outputs as one vector."""
        kernel = self.lowered(self.graph)
        return lambda v: self.flat(kernel(*self.arguments(v)))

    @cached_property
    def residuals_and_jacobian(self) -> Callable[[Vector], tuple[Vector, Vector]]:
        """All outputs and their dense Jacobian in one sweep."""
        kernel = self.lowered(join(self.graph, jacobian(self.graph, self._wrt())))

        def both(v: Vector) -> tuple[Vector, Vector]:
            values, jacobian = kernel(*self.arguments(v))
            return self.flat(values), np.asarray(jacobian)

        return both

    @cached_property
    def sparse_jacobian(self) -> Callable[[Vector], csr_array]:
        """The Jacobian as a CSR array, by coloring."""
        kernel = self.lowered(jacobian(self.graph, self._wrt(), sparse=True))
        return lambda v: kernel(*self.arguments(v))

    @cached_property
    def jacobian_product(self) -> Callable[[Vector, Vector], Vector]:
        """J(v) p, by the pushforward."""
        kernel = self.lowered(pushforward(self.graph, self._wrt()))
        count = len(self.graph.outputs)

        def product(v: Vector, p: Vector) -> Vector:
            found = self.leaves(kernel(*self.arguments(v), *self.parts(p)))
            return self.pack(found[count:])

        return product

    @cached_property
    def transposed_product(self) -> Callable[[Vector, Vector], Vector]:
        """J(v)ᵀ w, by the pullback."""
        kernel = self.lowered(pullback(self.graph, self._wrt()))
        count = len(self.graph.outputs)
        plain = self.lowered(self.graph)

        def product(v: Vector, w: Vector) -> Vector:
            arguments, cotangents, offset = self.arguments(v), [], 0
            for value in self.leaves(plain(*arguments)):
                size = np.size(value)
                cotangents.append(w[offset : offset + size].reshape(np.shape(value))[()])
                offset += size
            return self.pack(self.leaves(kernel(*arguments, *cotangents))[count:])

        return product

    def flat(self, outputs: Tree) -> Vector:
        """The outputs of the graph as one vector."""
        return self.pack(self.leaves(outputs))

    def leaves(self, outputs: Any) -> list[Array]:
        """Nested outputs in order."""
        if isinstance(outputs, dict):
            outputs = tuple(outputs.values())
        if names := field_names(type(outputs)):
            outputs = tuple(getattr(outputs, name) for name in names)
        if isinstance(outputs, (tuple, list)):
            return [leaf for part in outputs for leaf in self.leaves(part)]
        return [outputs]


def check_names(graph: str, inputs: list[str], start: dict[str, Tree], given: dict[str, Tree]) -> None:
    """Raises EvaluationError for names that are not inputs, inputs without a value, and non-finite starts."""
    unknown = [k for k in (*start, *given) if k not in inputs]
    if unknown:
        raise EvaluationError(f"{', '.join(unknown)}: no input of {graph}, which has {listed(inputs)}")
    missing = [k for k in inputs if k not in start and k not in given]
    if missing:
        raise EvaluationError(f"{graph} also needs values for {', '.join(missing)}: give them in data")
    twice = [k for k in start if k in given]
    if twice:
        raise EvaluationError(f"{', '.join(twice)}: given in x0 and in data")
    for name, value in start.items():
        numbers = real_array(graph, f"the start of {name}", value)
        if not np.all(np.isfinite(np.asarray(numbers, dtype=np.float64))):
            raise EvaluationError(f"the start of {name} is {value!r}, which is not finite")


def is_scalar(graph: Graph) -> bool:
    """Whether a graph has one output, a scalar."""
    if graph.structure is not None or not is_concrete(graph.outputs[0].shape):
        return False
    return int(np.prod(graph.outputs[0].shape)) == 1


def entries_of(matrix: np.ndarray) -> Vector:
    """The entries of a dense or sparse matrix."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.data)
