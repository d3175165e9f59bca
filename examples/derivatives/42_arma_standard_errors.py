"""Sunspots as an ARMA(2, 1) process: Newton's method, and standard errors from the exact Hessian.

The likelihood is a Kalman filter, written as a scan, which symad differentiates twice. At the maximum
H = −∇² log p is the observed information, and the roots of the diagonal of H⁻¹ are the standard errors.
statsmodels finds the same maximum; its score, by complex steps, contains the rounding of its first
covariance. Data: yearly sunspot numbers 1700-2008, shipped with statsmodels.
Run: python examples/derivatives/42_arma_standard_errors.py
"""

import numpy as np
import statsmodels.api as sm
from statsmodels.tsa.arima.model import ARIMA

import symad
from symad.models.sequences import arma
from symad.numeric import lower

NAMES = ("phi1", "phi2", "theta1", "mean", "variance")


def main() -> None:
    """Fit, compare, forecast."""
    y = sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy()
    likelihood = symad.trace(arma.log_likelihood, [(2,), (1,), (), (), y.shape])
    slopes = lower(symad.value_and_gradient(likelihood, [0, 1, 2, 3]))
    hessian = lower(symad.hessian(likelihood, [0, 1, 2, 3]))

    def parts(v):
        return v[:2], v[2:3], v[3], v[4]

    v = np.array([1.3, -0.6, 0.1, y.mean(), 250.0])
    for step in range(30):
        value, *gradient = slopes(*parts(v), y)
        slope = np.concatenate([np.ravel(g) for g in gradient])
        move = np.linalg.solve(hessian(*parts(v), y), -slope)
        # Outside of the stationary region there is no likelihood; a step that goes there, or up, is too long.
        while not slopes(*parts(v + move), y)[0] >= value - 1e-9:
            move /= 2
        v = v + move
        print(f"step {step}: log p = {value:.6f}, |slope| = {np.abs(slope).max():.1e}")
        if np.abs(move / v).max() < 1e-10:
            break

    errors = np.sqrt(np.diag(np.linalg.inv(-hessian(*parts(v), y))))
    for name, best, error in zip(NAMES, v, errors, strict=True):
        print(f"{name:9} {best:10.5f} ± {error:.5f}")

    model = ARIMA(y, order=(2, 0, 1), trend="c")
    theirs = model.fit()
    print(f"statsmodels: log p = {theirs.llf:.6f}, ours {value:.6f}")
    at = np.array([v[3], *v[:3], v[4]])
    score = model.score(at, approx_complex_step=True, approx_centered=False)
    print(f"score at symad's maximum: statsmodels {np.abs(score).max():.1e}, symad {np.abs(slope).max():.1e}")

    means, variances = arma.forecast(*parts(v), y, 11)
    for year, mean, spread in list(zip(range(2009, 2020), means, np.sqrt(variances), strict=True))[::5]:
        print(f"{year}: {mean:6.1f} ± {1.96 * spread:.1f}")
    assert abs(theirs.llf - value) < 1e-4
    assert np.abs(slope).max() < 1e-8


if __name__ == "__main__":
    main()
