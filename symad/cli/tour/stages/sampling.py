"""Random numbers, Markov chains and minimizers, each compared with exact results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import sympy

import symad
from symad import functions
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.models.generative.sampling import force_of, leapfrog

Array = np.ndarray


@stage("random numbers", "noise as an input: a Monte Carlo mean whose gradient is exact for that noise")
def random_numbers() -> TourModel:
    """The mean of exp(w z) over normal z made from a key; its expectation is exp(w²/2)."""
    key = functions.key(2026)
    small = symad.trace(lambda w, key: monte_carlo(w, key, 3), [(), (4,)])
    return TourModel(monte_carlo, (0.5, key), [(), (4,)], wrt=["w"], use=noise, check=small)


def monte_carlo(w: Array, key: Array, count: int = 4000) -> Array:
    """(1/N) Σ exp(w z_i)."""
    return np.exp(w * functions.randn(key, count)).mean()


def noise(made: Made) -> list[Finding]:
    """Equal bits in two precisions, a zero derivative by the key, and the expectation."""
    from symad.numeric import lower

    key = functions.key(2026)
    fine, coarse = (
        lower(symad.trace(lambda k: functions.rand(k, 9), [(4,)]), dtype=dtype)(key)
        for dtype in ("float64", "float32")
    )
    apart = float(np.abs(fine - coarse).max() * 2**24)
    value, w_bar, key_bar = lower(symad.value_and_gradient(made.graph))(0.5, key)
    z = functions.randn(key, 4000)
    error = float(np.std(z * np.exp(z / 2)) / np.sqrt(4000))
    exact = 0.5 * np.exp(0.125)
    return [
        Finding(
            f"the float32 numbers are the float64 numbers, moved by at most {apart:.3f} of half a cell",
            apart <= 1,
        ),
        Finding(
            f"∂/∂w of the mean of exp(w z) at w = 1/2 is {w_bar:.4f} ± {error:.4f}; "
            f"of its expectation {exact:.4f}",
            abs(w_bar - exact) < 4 * error,
        ),
        Finding("the derivative by the key is 0", not np.any(key_bar) and bool(np.isfinite(value))),
    ]


BANANA = "−x²/8 − (y − x²/4)²"


@stage("hamiltonian sampling", f"Metropolis and Hamiltonian Monte Carlo on log π = {BANANA}")
def hamiltonian_sampling() -> TourModel:
    """A curved density: x ~ N(0, 4), y | x ~ N(x²/4, 1/2)."""
    return TourModel(banana(), (0.5, 1.0), use=chains)


def banana() -> sympy.Expr:
    """The log-density, up to a constant."""
    x, y = sympy.symbols("x y", real=True)
    return -(x**2) / 8 - (y - x**2 / 4) ** 2


def chains(made: Made) -> list[Finding]:
    """E y = 1 by both samplers, the effective draws of each, and the volume of the leapfrog map."""
    from symad.numeric.sampling.diagnostics import standard_error
    from symad.numeric.sampling.markov_chains import hmc, metropolis

    options: Any = {"chains": 50, "count": 300, "warmup": 300, "seed": 1}
    walk = metropolis(made.graph, [0.0, 0.0], **options)
    paths = hmc(made.graph, [0.0, 0.0], leaps=12, step=0.2, **options)
    found = []
    for name, draws in (("Metropolis", walk), ("Hamiltonian", paths)):
        mean, error = float(draws.mean[1]), standard_error(draws.flat[:, :, 1])
        found.append(
            Finding(
                f"{name}: E y = {mean:.3f} ± {error:.3f} (exactly 1), {draws.effective_sizes[1]:.0f} "
                f"effective of {draws.flat[:, :, 1].size} draws, R̂ {draws.r_hat[1]:.3f}",
                abs(mean - 1) < 4 * error,
            )
        )
    x, y, p, r, h = sympy.symbols("x y p r h", real=True)
    end = leapfrog(force_of(banana(), (x, y)), sympy.Matrix([x, y]), sympy.Matrix([p, r]), h)
    jacobian = sympy.Matrix([*end[0], *end[1]]).jacobian([x, y, p, r])
    status = symad.equal(jacobian.det(), sympy.Integer(1)).status
    found.append(Finding(f"the leapfrog map keeps volume: det = 1 is {status}", status == "proved"))
    if made.plots is not None:
        _picture(made.plots, walk.flat, paths.flat)
    return found


def _picture(folder: Path, walk: Array, paths: Array) -> None:
    """The draws of one chain of each sampler."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, draws, title in zip(axes, (walk, paths), ("Metropolis", "Hamiltonian"), strict=True):
        axis.plot(*draws[0].T, "-", lw=0.4, color="0.6")
        axis.plot(*draws[0].T, ".", ms=3)
        axis.set_title(f"{title}: 300 draws of one chain")
    figure.savefig(folder / "sampling.png", dpi=130)


TEMPERATURES = [50 + 5 * k for k in range(16)]
RESISTANCES = [
    34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872,
]  # fmt: skip


@stage("curve fit", "a thermistor's resistance a exp(b/(T + c)), fitted, against certified values")
def curve_fit() -> TourModel:
    """Meyer's data, NIST StRD problem MGH10, rated of higher difficulty; the sum of squares."""
    a, b, c = sympy.symbols("a b c", real=True)
    rows = [a * sympy.exp(b / (t + c)) - y for t, y in zip(TEMPERATURES, RESISTANCES, strict=True)]
    return TourModel(sympy.Add(*[r**2 for r in rows]) / 2, (0.006, 6000.0, 340.0), use=fit)


def fit(made: Made) -> list[Finding]:
    """The certified parameters and standard errors, from NIST's harder start."""
    from symad.numeric import least_squares, minimize

    a, b, c = made.graph.inputs
    rows = [a * sympy.exp(b / (t + c)) - y for t, y in zip(TEMPERATURES, RESISTANCES, strict=True)]
    found = least_squares(symad.trace(rows, (a, b, c)), [0.02, 4000.0, 250.0])
    certified = np.array([5.6096364710e-03, 6.1813463463e03, 3.4522363462e02])
    errors = np.array([1.5687892471e-04, 2.3309021107e01, 7.8486103508e-01])
    digits = -np.log10(np.abs(np.array(found.x) / certified - 1).max())
    shown = ", ".join(f"{v:.6g} ± {e:.2g}" for v, e in zip(found.x, found.standard_errors(), strict=True))
    newton = minimize(made.graph, [0.02, 4000.0, 250.0], iterations=1000)
    return [
        Finding(
            f"a, b, c = {shown} in {found.iterations} steps: {digits:.0f} digits of NIST's values",
            bool(found.converged) and digits > 6,
        ),
        Finding(
            "the standard errors agree with NIST's as well",
            bool(np.allclose(found.standard_errors(), errors, rtol=1e-5)),
        ),
        Finding(
            f"Newton's method with the whole Hessian finds the sum of squares {2 * newton.value:.6f} in "
            f"{newton.iterations} steps; NIST's is 87.945855",
            abs(2 * newton.value - 87.945855171) < 1e-5,
        ),
    ]
