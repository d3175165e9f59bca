"""Bounds and constraints of a minimization, as scipy.optimize takes them, and the conditions of optimality.

A constraint is low ≤ c(x) ≤ high, with c of the flat vector of unknowns; an equation has low = high. At a
minimum there are multipliers λ with ∇f = Σ λ ∇c over the active constraints and bounds, λ ≥ 0 at a lower
limit and λ ≤ 0 at an upper one (Karush, Kuhn and Tucker). Source: Nocedal and Wright, "Numerical
Optimization" (2006), theorem 12.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import sympy
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.dims import solve_dims
from symad.core.graph import Graph
from symad.derivatives.hessian import hessian
from symad.errors import EvaluationError, SymadError
from symad.numeric.solvers.solver_variables import Unknowns, Vector
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import mul
from symad.ops.basic.contraction import sum_all
from symad.ops.basic.shaping import flatten
from symad.ops.basic.sources import input_node
from symad.tracing import as_graph, made_of, regrouped, trace

GivenBounds: TypeAlias = "Any"
"""scipy.optimize.Bounds; or pairs (low, high) for each unknown or each element; or a mapping to pairs."""

GivenConstraints: TypeAlias = "Any"
"""A constraint or several: those of scipy.optimize, dicts with "type" and "fun", or relations of SymPy."""

ACTIVE = 1e-6
"""A constraint is active within this distance of its limit, relative to the limit if that is above 1."""


@dataclass(frozen=True)
class Constraint:
    """low ≤ c(x) ≤ high for a function c of unknowns; all (m,)."""

    unknowns: Unknowns
    low: Vector
    high: Vector

    def value(self, x: Vector) -> Vector:
        """c(x)."""
        return np.atleast_1d(self.unknowns.residuals(x))

    def jacobian(self, x: Vector) -> Vector:
        """The Jacobian of c, (m, n)."""
        return self.unknowns.residuals_and_jacobian(x)[1]

    def hessian(self, x: Vector, weights: Vector) -> Vector:
        """Σ_i weights_i ∇²c_i, (n, n)."""
        return np.asarray(self._hessian(*self.unknowns.arguments(x), weights))

    @cached_property
    def _hessian(self) -> Callable[..., Any]:
        graph = self.unknowns.graph
        c = concatenate([flatten(node) for node in graph.output_nodes])
        symbol = ArraySymbol("multipliers_of_constraints", c.shape)
        weights = input_node(symbol, c.shape)
        weighted = Graph((*graph.input_nodes, weights), (sum_all(mul(c, weights)),), None, graph.name)
        return self.unknowns.lowered(hessian(weighted, list(self.unknowns.names)))


@dataclass(frozen=True)
class Restrictions:
    """Bounds of the flat vector of unknowns, (n,) each, and constraints."""

    low: Vector
    high: Vector
    constraints: tuple[Constraint, ...] = ()

    @staticmethod
    def of(
        problem: Unknowns, bounds: GivenBounds | None, constraints: GivenConstraints | None
    ) -> Restrictions | None:
        """The restrictions as `symad.numeric.minimize` takes them; None if there are none.

        Raises:
            EvaluationError: they do not fit the unknowns; the message says which.
        """
        if bounds is None and constraints is None:
            return None
        several = constraints if isinstance(constraints, (list, tuple)) else [constraints]
        made = [] if constraints is None else [_constraint(problem, c, k) for k, c in enumerate(several)]
        return Restrictions(*_limits(problem, bounds), tuple(c for c in made if c is not None))

    @property
    def bounded(self) -> bool:
        """Whether an unknown has a bound."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def inside(self, x: Vector) -> Vector:
        """The nearest point within the bounds."""
        return np.clip(x, self.low, self.high)

    def violation(self, x: Vector) -> float:
        """The largest distance of x and of the c(x) from their limits."""
        worst = float(np.max(np.maximum(self.low - x, x - self.high), initial=0.0))
        for c in self.constraints:
            value = c.value(x)
            worst = max(worst, float(np.max(np.maximum(c.low - value, value - c.high), initial=0.0)))
        return worst

    def conditions(self, x: Vector, gradient: Vector) -> Optimality:
        """The multipliers that come closest to the conditions of optimality."""
        from scipy.optimize import lsq_linear

        at_low, at_high = _active(x, self.low, self.high)
        rows, least, most, weights = [], [], [], []
        for c in self.constraints:
            below, above = _active(c.value(x), c.low, c.high)
            used = np.flatnonzero(below | above)
            rows.append(c.jacobian(x)[used])
            least.append(np.where(above, -np.inf, 0.0)[used])
            most.append(np.where(below, np.inf, 0.0)[used])
            weights.append((used, len(c.low)))
        free = ~(at_low | at_high)
        active = np.concatenate(rows) if rows else np.zeros((0, len(x)))
        multipliers = np.zeros(len(active))
        if len(active):
            signs = np.flatnonzero(~free)
            units = np.zeros((len(x), len(signs)))
            units[signs, np.arange(len(signs))] = 1.0
            low = np.concatenate([*least, np.where(at_high, -np.inf, 0.0)[signs]])
            high = np.concatenate([*most, np.where(at_low, np.inf, 0.0)[signs]])
            found = lsq_linear(np.hstack([active.T, units]), gradient, (low, high), tol=1e-14)
            multipliers = found.x[: len(active)]
        rest = gradient - active.T @ multipliers
        rest = np.where(at_low, np.minimum(rest, 0), rest)
        rest = np.where(at_high, np.where(at_low, 0, np.maximum(rest, 0)), rest)
        parts, first = [], 0
        for used, length in weights:
            whole = np.zeros(length)
            whole[used] = multipliers[first : first + len(used)]
            parts.append(whole)
            first += len(used)
        return Optimality(rest, free, active, tuple(parts))


@dataclass(frozen=True)
class Optimality:
    """How well a point meets the conditions of optimality.

    Attributes:
        rest: ∇f − Σ λ ∇c, without what bounds balance, (n,).
        free: the unknowns that are not at a bound, (n,).
        active: the gradients of the active constraints, (k, n).
        multipliers: λ for each constraint, 0 where it is not active.
    """

    rest: Vector
    free: Vector
    active: Vector
    multipliers: tuple[Vector, ...]

    def directions(self) -> Vector:
        """An orthonormal basis (n, d) of the directions along all active constraints and bounds."""
        from scipy.linalg import null_space

        basis = null_space(self.active[:, self.free]) if len(self.active) else np.eye(int(self.free.sum()))
        whole = np.zeros((len(self.free), basis.shape[1]))
        whole[self.free] = basis
        return whole


def curvature_of(problem: Unknowns, restrictions: Restrictions, x: Vector, found: Optimality) -> Vector:
    """The Hessian of the Lagrangian, ∇²f − Σ λ ∇²c, (n, n)."""
    total = problem.hessian(x)
    for c, weights in zip(restrictions.constraints, found.multipliers, strict=True):
        if weights.any():
            total = total - c.hessian(x, weights)
    return total


def _active(value: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Where a value is at its lower and at its upper limit."""
    with np.errstate(invalid="ignore"):
        return (
            value - low <= ACTIVE * np.maximum(1, np.abs(np.where(np.isfinite(low), low, 0))),
            high - value <= ACTIVE * np.maximum(1, np.abs(np.where(np.isfinite(high), high, 0))),
        )


# ---- what users give --------------------------------------------------------------------------------


def _limits(problem: Unknowns, bounds: GivenBounds | None) -> tuple[Vector, Vector]:
    """The lowest and highest values of the flat vector."""
    n = sum(problem.sizes)
    if bounds is None:
        return np.full(n, -np.inf), np.full(n, np.inf)
    if hasattr(bounds, "lb"):
        return _checked(problem, np.array(_limit(bounds.lb, (n,))), np.array(_limit(bounds.ub, (n,))))
    if isinstance(bounds, Mapping):
        given = _by_unknown(problem, bounds)
        pairs, shapes = [given.get(name, (None, None)) for name in problem.names], problem.shapes
    else:
        pairs = list(bounds) if isinstance(bounds, (Sequence, np.ndarray)) else [bounds]
        shapes = problem.shapes if len(pairs) == len(problem.names) else ((),) * n
        if len(pairs) != len(shapes):
            raise EvaluationError(
                f"bounds: {len(pairs)} pairs for {len(problem.names)} unknowns with {n} elements; give one "
                "pair (low, high) for each unknown, or for each element, or scipy.optimize.Bounds"
            )
    low, high = [], []
    for pair, shape in zip(pairs, shapes, strict=True):
        _check_pair(pair)
        low.append(np.ravel(_limit(-np.inf if pair[0] is None else pair[0], shape)))
        high.append(np.ravel(_limit(np.inf if pair[1] is None else pair[1], shape)))
    return _checked(problem, np.concatenate(low), np.concatenate(high))


def _by_unknown(problem: Unknowns, bounds: Mapping[Any, Any]) -> dict[str, Any]:
    """The pairs of unknowns, from those of symbols, and of arguments or inputs by name.

    The limits of a pair are numbers, or have the structure of the argument; a list of tuples has a pair for
    each element.
    """
    assert problem.named is not None
    found: dict[str, Any] = {}
    for key, pair in bounds.items():
        name = str(key)
        if isinstance(pair, list) and all(isinstance(p, tuple) and len(p) == 2 for p in pair):
            pair = tuple(
                [-end if p[k] is None else p[k] for p in pair] for k, end in enumerate((np.inf, -np.inf))
            )
        _check_pair(pair)
        if isinstance(key, sympy.Basic):
            made = {name: pair}
        else:
            low, high = (problem.named.values([(name, limit)], is_whole=_is_number) for limit in pair)
            made = {k: (low[k], high[k]) for k in low}
        if wrong := [k for k in made if k not in problem.names or k in found]:
            told = "given twice" if wrong[0] in found else f"none of the unknowns {', '.join(problem.names)}"
            raise EvaluationError(f"bounds: {', '.join(wrong)} is {told}")
        found |= made
    return found


def _is_number(value: Any) -> bool:
    return value is None or (np.ndim(value) == 0 and not isinstance(value, Mapping))


def _check_pair(pair: Any) -> None:
    if not isinstance(pair, (Sequence, np.ndarray)) or len(pair) != 2:
        raise EvaluationError(f"bounds: {pair!r} is no pair (low, high)")


def _limit(value: Any, shape: tuple[int, ...]) -> Vector:
    try:
        return np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"bounds: {value!r} is no number or array of shape {shape} ({error})") from None


def _checked(problem: Unknowns, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    if (wrong := np.flatnonzero(~(low <= high))).size:
        names = [name for name, size in zip(problem.names, problem.sizes, strict=True) for _ in range(size)]
        k = wrong[0]
        raise EvaluationError(f"bounds: no value of {names[k]} is between {low[k]} and {high[k]}")
    return low, high


TYPES = {"eq": (0.0, 0.0), "ineq": (0.0, np.inf)}
"""The limits of SciPy's types of constraints."""


def _constraint(problem: Unknowns, given: Any, k: int) -> Constraint | None:
    """One constraint; None for one that always holds."""
    if given is True or given is sympy.true:
        return None
    if hasattr(given, "A"):  # scipy.optimize.LinearConstraint
        matrix = given.A.toarray() if hasattr(given.A, "toarray") else np.atleast_2d(given.A)
        return _limited(_of_vector(problem, lambda x: matrix @ x, k), given.lb, given.ub)
    if hasattr(given, "fun"):  # scipy.optimize.NonlinearConstraint
        return _limited(_unknowns(problem, given.fun, k), given.lb, given.ub)
    if isinstance(given, Mapping) and given.get("type") in TYPES and "fun" in given:
        function, args = given["fun"], tuple(given.get("args", ()))
        fun = (lambda x: function(x, *args)) if args else function
        return _limited(_unknowns(problem, fun, k), *TYPES[given["type"]])
    if isinstance(given, (sympy.Eq, sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt)):
        kind = "eq" if isinstance(given, sympy.Eq) else "ineq"
        sign = -1 if isinstance(given, (sympy.Le, sympy.Lt)) else 1
        return _limited(_unknowns(problem, sign * (given.lhs - given.rhs), k), *TYPES[kind])
    raise EvaluationError(
        f"constraints: {given!r} is none of scipy.optimize's LinearConstraint and NonlinearConstraint, a "
        'dict with "type" ("eq" or "ineq") and "fun", or a relation of SymPy such as x + y <= 1'
    )


def _unknowns(problem: Unknowns, fun: Any, k: int) -> Unknowns:
    """The function of a constraint: of the inputs of the problem by name, or of the flat vector."""
    if callable(fun) and not isinstance(made_of(fun), (Graph, sympy.Basic)):
        return _of_vector(problem, fun, k)
    graph = as_graph(fun).ungrouped()
    known = {str(s): s for s in problem.graph.inputs}
    if unknown := [str(s) for s in graph.inputs if str(s) not in known]:
        raise EvaluationError(
            f"constraints: number {k} is about {', '.join(unknown)}, but the inputs are {', '.join(known)}; "
            "inputs= may name symbols that do not occur in f"
        )
    shapes = dict(zip(problem.names, problem.shapes, strict=True)) | {
        str(problem.graph.inputs[place]): np.shape(value) for place, value in problem.data.items()
    }
    dims = [(str(s), n.shape, shapes[str(s)]) for s, n in zip(graph.inputs, graph.input_nodes, strict=True)]
    return replace(problem, graph=regrouped(graph.at(solve_dims(dims)), problem.graph.inputs))


def _of_vector(problem: Unknowns, fun: Callable[..., Any], k: int) -> Unknowns:
    """A function of the flat vector, as SciPy's constraints are, traced."""
    n = sum(problem.sizes)
    try:
        graph = trace(fun, [(n,)])
    except SymadError as error:
        raise EvaluationError(
            f"constraints: the function of number {k}, of the flat vector of the {n} elements of "
            f"{', '.join(problem.names)}, cannot be traced; {error}"
        ) from error
    (name,) = map(str, graph.inputs)
    return Unknowns(graph, (name,), ((n,),), {}, "one", (None,))


def _limited(unknowns: Unknowns, low: Any, high: Any) -> Constraint:
    count = sum(int(np.prod(tuple(map(int, node.shape)))) for node in unknowns.graph.output_nodes)
    return Constraint(unknowns, np.array(_limit(low, (count,))), np.array(_limit(high, (count,))))
