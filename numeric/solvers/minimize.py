"""Unconstrained minimisation with derivatives of any order: Newton's method, Newton-CG, L-BFGS.

    minimize(f, x0, method="newton")

`symad.numeric.solvers.newton` implements Newton's method and Newton-CG. The quasi-Newton method (`l-bfgs`)
and the exact trust-region method (`trust-exact`) are SciPy's, with symad's gradients and Hessians.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.core.escaping import not_one_of
from symad.core.signatures import ByInput, Inputs, Traceable, Tree
from symad.errors import EvaluationError
from symad.numeric.solvers.newton import Minimum, Path, newton, newton_cg
from symad.numeric.solvers.solver_variables import Unknowns, Vector, is_scalar


def minimize(
    f: Traceable,
    x0: Tree,
    *,
    data: ByInput | None = None,
    method: str = "newton",
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
        method: "newton" (modified Cholesky factors and a line search; Hessians that are mostly zero are
            computed and factored as sparse matrices), "newton-cg" (trust region by conjugate gradients, with
            Hessian-vector products only), "trust-exact" (dense Hessians) or "l-bfgs". The last two are
            SciPy's; "l-bfgs" gives up where f is no longer finite.
        tolerance: the largest allowed component of |∇f|.
        iterations: the most steps.
        watch: called with the start and with the point after every step, in the form of ``x0``.
        inputs: order and grouping of the arguments, as in `symad.trace`; an argument that is a dict, list or
            dataclass of arrays is given, and found, as such an object.

    Returns:
        A `Minimum`, whose ``converged`` says whether it is one.

    Raises:
        EvaluationError: f is not a scalar, names do not fit, f is not finite at the start, or a dense Hessian
            would fill the memory.
    """
    if method not in METHODS:
        raise EvaluationError(not_one_of("method", method, METHODS))
    problem, start = Unknowns.make(f, x0, data, inputs)
    if not is_scalar(problem.graph):
        raise EvaluationError("minimize takes a scalar function; for a vector of residuals use least_squares")
    return METHODS[method](Path(problem, start, tolerance, watch), iterations)


HUGE = 1e100
"""The value passed instead of an infinite one where only finite values are accepted."""


# ---- SciPy's methods --------------------------------------------------------------------------------


def _by_scipy(name: str, options: dict[str, Any], path: Path, iterations: int) -> Minimum:
    """A method of scipy.optimize.minimize, with symad's derivatives."""
    from scipy.optimize import minimize as scipy_minimize

    problem, last = path.problem, (path.x, path.value, path.gradient)

    def follow(x: Vector) -> None:
        known = last if np.array_equal(x, last[0]) else (np.array(x), *problem.value_and_gradient(x))
        path.move(*known)

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

    with np.errstate(all="ignore"):
        found = scipy_minimize(
            both, path.x, jac=True, method=name, callback=follow,
            options=options | {"maxiter": iterations},
            hess=hessian if name == "trust-exact" else None,
        )  # fmt: skip
    path.x, (path.value, path.gradient) = found.x, problem.value_and_gradient(found.x)
    return path.stopped(str(found.message))


def l_bfgs(path: Path, iterations: int) -> Minimum:
    """SciPy's L-BFGS-B, without bounds (Byrd, Lu, Nocedal, Zhu 1995)."""
    options = {"gtol": path.tolerance, "ftol": 0.0, "maxcor": 20, "maxfun": 20 * iterations}
    return _by_scipy("L-BFGS-B", options, path, iterations)


def trust_exact(path: Path, iterations: int) -> Minimum:
    """SciPy's trust-region method with an exact subproblem (Moré and Sorensen 1983)."""
    options = {"gtol": path.tolerance, "max_trust_radius": 1e10}
    return _by_scipy("trust-exact", options, path, iterations)


Method = Callable[[Path, int], Minimum]

METHODS: dict[str, Method] = {
    "newton": newton,
    "newton-cg": newton_cg,
    "trust-exact": trust_exact,
    "l-bfgs": l_bfgs,
}
