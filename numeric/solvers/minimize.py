"""Minimization with derivatives of any order: Newton's method, Newton-CG, L-BFGS; bounds and constraints.

    minimize(f, x0, method="newton")

`symad.numeric.solvers.newton` implements Newton's method and Newton-CG. The other methods are SciPy's, with
symad's gradients, Hessians and Jacobians of constraints. `symad.numeric.solvers.restrictions` reads bounds
and constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.core.identifiers import not_one_of
from symad.core.signatures import ByInput, Inputs, Traceable, Tree
from symad.errors import EvaluationError
from symad.numeric.solvers.newton import SLOPE_IS_SMALL, Minimum, Path, newton, newton_cg
from symad.numeric.solvers.restrictions import Constraint, GivenBounds, GivenConstraints, Restrictions
from symad.numeric.solvers.solver_variables import Unknowns, Vector, is_scalar


def minimize(
    f: Traceable,
    x0: Tree,
    *,
    data: ByInput | None = None,
    method: str | None = None,
    bounds: GivenBounds | None = None,
    constraints: GivenConstraints | None = None,
    tolerance: float = 1e-8,
    iterations: int = 500,
    watch: Callable[[Any], None] | None = None,
    inputs: Inputs | None = None,
) -> Minimum:
    """A local minimum of a scalar function, from a start.

    Args:
        f: a function, in any form that `symad.trace` takes, or a Graph; all its inputs that are not in
            ``data`` are unknowns.
        x0: the first values of the unknowns: an array or number for one unknown, a sequence with one entry
            for each, or a mapping by symbol or name.
        data: the values of the other inputs, by symbol or name.
        method: "newton", "newton-cg", "trust-exact" or "l-bfgs". Newton's method has modified Cholesky
            factors and a line search; Hessians that are mostly zero are sparse matrices, factored as such.
            "newton-cg" needs Hessian-vector products alone, "trust-exact" dense Hessians. The last two are
            SciPy's; "l-bfgs" gives up where f is no longer finite. With bounds: "l-bfgs". With constraints:
            "slsqp", or "trust-constr" (with Hessians), both SciPy's. The default is the first that fits:
            "newton", "l-bfgs" or "slsqp". SciPy's names "Newton-CG", "BFGS", "L-BFGS-B", "SLSQP" mean these.
        bounds: scipy.optimize.Bounds; or pairs (low, high), where None is no limit: one for each element of
            the unknowns, one for each unknown, or a mapping by symbol or name, also of a group of inputs. A
            start outside is moved inside.
        constraints: one or several of scipy.optimize's LinearConstraint and NonlinearConstraint, dicts
            {"type": "eq" or "ineq", "fun": c}, or relations of SymPy. A function c is SymPy's or a graph, of
            the inputs of f by name, or a Python function of the flat vector of unknowns. It is traced:
            symad's Jacobians and Hessians take the place of ``jac`` and ``hess``.
        tolerance: the largest allowed component of |∇f|, or of the gradient of the Lagrangian.
        iterations: the most steps.
        watch: called with the start and with the point after every step, in the form of ``x0``.
        inputs: order and grouping of the arguments, as in `symad.trace`; an argument that is a dict, list or
            dataclass of arrays is given, and found, as such an object. By default a Python function has
            inputs of the shapes of ``x0`` and ``data``.

    Returns:
        A `Minimum`, whose ``converged`` says whether it is one, and whose ``standard_errors()`` are those of
        maximum likelihood.

    Raises:
        EvaluationError: f is not a scalar, names, bounds or constraints do not fit, the method takes none, f
            is not finite at the start, or a dense Hessian would fill the memory.

    Example:
        >>> import sympy
        >>> from symad.numeric import minimize
        >>> x, y = sympy.symbols("x y", real=True)
        >>> found = minimize((1 - x) ** 2 + 100 * (y - x**2) ** 2, [-1.2, 1.0])
        >>> [round(float(v), 6) for v in found.x]
        [1.0, 1.0]
    """
    method = method if method is None else OF_SCIPY.get(str(method).lower(), method)
    if method is not None and method not in METHODS:
        raise EvaluationError(not_one_of("method", method, METHODS))
    problem, start = Unknowns.make(f, x0, data, inputs)
    if not is_scalar(problem.graph):
        raise EvaluationError("minimize takes a scalar function; for a vector of residuals use least_squares")
    restrictions = Restrictions.of(problem, bounds, constraints)
    chosen = method or _method_for(restrictions)
    if restrictions is not None:
        able = CONSTRAINED if restrictions.constraints else ("l-bfgs", *CONSTRAINED)
        if chosen not in able:
            given = "constraints" if restrictions.constraints else "bounds"
            raise EvaluationError(f"method={chosen!r} takes no {given}; use {', '.join(map(repr, able))}")
        start = restrictions.inside(start)
    return METHODS[chosen](Path(problem, start, tolerance, watch, restrictions), iterations)


CONSTRAINED = ("slsqp", "trust-constr")
"""The methods that take constraints."""


def _method_for(restrictions: Restrictions | None) -> str:
    if restrictions is None:
        return "newton"
    return "slsqp" if restrictions.constraints else "l-bfgs"


HUGE = 1e100
"""The value passed instead of an infinite one where only finite values are accepted."""


# ---- SciPy's methods --------------------------------------------------------------------------------


class _Reached(Exception):
    """The conditions of optimality hold; SciPy's methods with constraints have tests of their own alone."""


def _by_scipy(name: str, options: dict[str, Any], path: Path, iterations: int) -> Minimum:
    """A method of scipy.optimize.minimize, with symad's derivatives."""
    from scipy.optimize import Bounds
    from scipy.optimize import minimize as scipy_minimize

    problem, last, limits = path.problem, (path.x, path.value, path.gradient), path.restrictions

    def follow(x: Vector, *state: object) -> None:
        known = last if np.array_equal(x, last[0]) else (np.array(x), *problem.value_and_gradient(x))
        path.move(*known)
        if limits is not None and limits.constraints and path.small and path.feasible:
            raise _Reached

    def both(x: Vector) -> tuple[float, Vector]:
        """f and ∇f; SciPy's line search interpolates, so that it needs finite values."""
        nonlocal last
        value, gradient = path.both(x)
        last = np.array(x), value, gradient
        return (value, gradient) if np.isfinite(value) else (HUGE, np.zeros_like(x))

    def hessian(x: Vector) -> Vector:
        """The Hessian; SciPy also asks for it at points that it then rejects."""
        try:
            found = problem.hessian(x)
        except np.linalg.LinAlgError:
            found = np.eye(len(x))
        return found if np.all(np.isfinite(found)) else np.eye(len(x))

    given: dict[str, Any] = {}
    if limits is not None and limits.bounded:
        given["bounds"] = Bounds(limits.low, limits.high)
    if limits is not None and limits.constraints:
        given["constraints"] = _for_scipy(name, limits)
    try:
        with np.errstate(all="ignore"):
            found = scipy_minimize(
                both, path.x, jac=True, method=name, callback=follow,
                options=options | {"maxiter": iterations},
                hess=hessian if name in ("trust-exact", "trust-constr") else None, **given,
            )  # fmt: skip
    except _Reached:
        return path.finish(True, SLOPE_IS_SMALL)
    path.x, (path.value, path.gradient) = found.x, problem.value_and_gradient(found.x)
    if path.undefined is not None and found.status != OUT_OF_STEPS:  # SciPy calls that convergence
        at = problem.unpack(path.undefined)
        return path.stopped(f"f or its gradient is not finite at {at}, which was tried: bound x or change x0")
    return path.stopped(str(found.message))


OUT_OF_STEPS = 1
"""The status of SciPy's methods after the maximum number of iterations."""


def _for_scipy(name: str, limits: Restrictions) -> list[Any]:
    """The constraints in the form of a method: c(x) = 0 and c(x) >= 0, or low <= c(x) <= high."""
    from scipy.optimize import NonlinearConstraint

    if name == "trust-constr":
        return [
            NonlinearConstraint(c.value, c.low, c.high, jac=c.jacobian, hess=c.hessian)
            for c in limits.constraints
        ]
    made: list[Any] = []
    for c in limits.constraints:
        equal = c.low == c.high
        made += [
            _one_sided(c, "eq", c.low, equal, 1.0),
            _one_sided(c, "ineq", c.low, np.isfinite(c.low) & ~equal, 1.0),
            _one_sided(c, "ineq", c.high, np.isfinite(c.high) & ~equal, -1.0),
        ]
    return [c for c in made if c is not None]


def _one_sided(c: Constraint, kind: str, limit: Vector, chosen: Vector, sign: float) -> dict[str, Any] | None:
    """The chosen elements of sign (c(x) - limit) as a constraint of SLSQP; None if there are none."""
    if not chosen.any():
        return None
    value = lambda x: sign * (c.value(x) - limit)[chosen]  # noqa: E731
    return {"type": kind, "fun": value, "jac": lambda x: sign * c.jacobian(x)[chosen]}


def l_bfgs(path: Path, iterations: int) -> Minimum:
    """SciPy's L-BFGS-B (Byrd, Lu, Nocedal, Zhu 1995)."""
    options = {"gtol": path.tolerance, "ftol": 0.0, "maxcor": 20, "maxfun": 20 * iterations}
    return _by_scipy("L-BFGS-B", options, path, iterations)


def trust_exact(path: Path, iterations: int) -> Minimum:
    """SciPy's trust-region method with an exact subproblem (Moré and Sorensen 1983)."""
    options = {"gtol": path.tolerance, "max_trust_radius": 1e10}
    return _by_scipy("trust-exact", options, path, iterations)


def slsqp(path: Path, iterations: int) -> Minimum:
    """SciPy's sequential least squares (Kraft 1988)."""
    return _by_scipy("SLSQP", {"ftol": 1e-16}, path, iterations)


def trust_constr(path: Path, iterations: int) -> Minimum:
    """SciPy's trust region with constraints: Byrd and Omojokun (1989), Byrd, Hribar, Nocedal (1999)."""
    # its gtol ends it at any barrier, some 1e-6 inside of the limits; without that, it ends by the other two
    options = {"gtol": 0.0, "xtol": 1e-12, "barrier_tol": 1e-12}
    return _by_scipy("trust-constr", options, path, iterations)


Method = Callable[[Path, int], Minimum]

METHODS: dict[str, Method] = {
    "newton": newton,
    "newton-cg": newton_cg,
    "trust-exact": trust_exact,
    "l-bfgs": l_bfgs,
    "slsqp": slsqp,
    "trust-constr": trust_constr,
}

OF_SCIPY = {name: name for name in METHODS} | {"bfgs": "l-bfgs", "l-bfgs-b": "l-bfgs"}
"""The methods by SciPy's names, in small letters."""
