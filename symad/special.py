"""Functions that NumPy and SciPy have under another convention, or not at all.

Each computes the SymPy function of the same name on real floats and arrays; SciPy is imported when
one is called.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np


def sec(x: Any) -> Any:
    """1/cos x."""
    return 1 / np.cos(x)


def csc(x: Any) -> Any:
    """1/sin x."""
    return np.true_divide(1, np.sin(x))


def cot(x: Any) -> Any:
    """1/tan x."""
    return np.true_divide(1, np.tan(x))


def sech(x: Any) -> Any:
    """1/cosh x, as 2e/(1 + e²) with e = exp(−|x|), which does not overflow."""
    e = np.exp(-np.abs(x))
    return 2 * e / (1 + e * e)


def csch(x: Any) -> Any:
    """1/sinh x."""
    return np.true_divide(1, np.sinh(x))


def coth(x: Any) -> Any:
    """1/tanh x."""
    return np.true_divide(1, np.tanh(x))


def asec(x: Any) -> Any:
    """Arccos(1/x)."""
    return np.arccos(np.true_divide(1, x))


def acsc(x: Any) -> Any:
    """Arcsin(1/x)."""
    return np.arcsin(np.true_divide(1, x))


def acot(x: Any) -> Any:
    """Arctan(1/x), SymPy's branch: π/2 at 0."""
    return np.arctan(np.true_divide(1, x))


def asech(x: Any) -> Any:
    """Arcosh(1/x)."""
    return np.arccosh(np.true_divide(1, x))


def acsch(x: Any) -> Any:
    """Arsinh(1/x)."""
    return np.arcsinh(np.true_divide(1, x))


def acoth(x: Any) -> Any:
    """Artanh(1/x)."""
    return np.arctanh(np.true_divide(1, x))


def sinc(x: Any) -> Any:
    """Sin(x)/x, unnormalised, 1 at 0."""
    return np.sinc(np.true_divide(x, np.pi))


def frac(x: Any) -> Any:
    """The fractional part x − floor(x)."""
    return x - np.floor(x)


def maximum(*values: Any) -> Any:
    """The largest, elementwise; NaN wins."""
    return reduce(np.maximum, values)


def minimum(*values: Any) -> Any:
    """The smallest, elementwise; NaN wins."""
    return reduce(np.minimum, values)


def loggamma(x: Any) -> Any:
    """Log Γ(x) for x > 0, NaN elsewhere: SymPy's function is complex there."""
    from scipy.special import gammaln

    return np.where(np.asarray(x) > 0, gammaln(x), np.nan)[()]


def polygamma(order: Any, x: Any) -> Any:
    """The derivative of the digamma function of integer order ≥ 0, on the whole real line.

    Negative x by reflection, ψ_n(x) = (−1)^n ψ_n(1 − x) − π d^n/dx^n cot(πx) (DLMF 5.15.6): SciPy's Hurwitz
    zeta is only defined at x > 0. The derivatives of the cotangent are polynomials in it.
    """
    from math import copysign, floor, isfinite, pi, tan

    from scipy import special

    order_, x_ = np.asarray(order), np.asarray(x, dtype=float)
    if np.all(order_ == 0):
        return special.digamma(x)
    if np.all(x_ > 0):
        return special.polygamma(order_, x_)[()]

    def one(n: float, v: float) -> float:
        if v > 0:
            return float(special.polygamma(n, v))
        if not isfinite(v):
            return float("nan")
        if v == floor(v):  # a pole: odd orders grow to +∞ on both sides
            return float("inf") if n % 2 else float("nan")
        r = v - floor(v + 0.5)
        c = 1 / tan(pi * r) if abs(r) < 0.25 else copysign(tan(pi * (0.5 - abs(r))), r)
        powers = [0, 1]  # of c; d/dx c^k = −π k (c^(k−1) + c^(k+1))
        for _ in range(int(n)):
            slope = [k * a for k, a in enumerate(powers)][1:]
            powers = [-p - q for p, q in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
        steep = 0.0
        for a in reversed(powers):
            steep = steep * c + a
        return float((-1) ** int(n) * special.polygamma(n, 1 - v) - pi ** (n + 1) * steep)

    return np.vectorize(one, otypes=[float])(order_, x_)[()]


def normal_ratio(x: Any) -> Any:
    """φ(x)/Φ(x) = √(2/π)/erfcx(−x/√2) for the density and distribution function of the normal law."""
    from scipy.special import erfcx

    return 0.7978845608028654 / erfcx(-0.7071067811865476 * x)


def normal_excess(x: Any) -> Any:
    """φ(x)/Φ(x) + x; below −5 the continued fraction 1/(t + 2/(t + 3/(t + ...))), t = −x (DLMF 7.9.2)."""
    from scipy.special import erfcx

    t, tail = np.maximum(np.negative(x), 5.0), 0.0
    for k in range(32, 0, -1):
        tail = k / (t + tail)
    return np.where(np.less(x, -5.0), tail, 0.7978845608028654 / erfcx(-0.7071067811865476 * x) + x)[()]


def factorial(x: Any) -> Any:
    """Γ(x + 1)."""
    from scipy.special import gamma

    return gamma(np.add(x, 1.0))


def spherical_jn(n: Any, x: Any) -> Any:
    """Spherical Bessel function of the first kind, j_n = sqrt(π/(2x)) J_{n+1/2}; on the line for integer n.

    The power series serves small x: that of SciPy loses digits there.
    """
    from scipy.special import jv, spherical_jn

    n, x = np.asarray(n, dtype=float), np.asarray(x, dtype=float)
    if not np.all((n == np.floor(n)) & (n >= 0)):
        return np.sqrt(np.pi / (2 * x)) * jv(n + 0.5, x)
    small, order, term = np.abs(x) < 1.0, n.astype(int), np.ones(np.broadcast(n, x).shape)
    series = np.zeros(term.shape)
    for k in range(1, 13):  # x^n/(2n+1)!! Σ (−x²/2)^k / (k! (2n+3)...(2n+2k+1))
        series, term = series + term, term * -0.5 * np.where(small, x * x, 0.0) / (k * (2 * n + 2 * k + 1))
    first = np.ones(series.shape)
    for k in range(1, int(order.max(initial=0)) + 1):
        first = np.where(k <= n, first * x / (2 * k + 1), first)
    return np.where(small, first * series, spherical_jn(order, np.where(small, 1.0, x)))[()]


def spherical_yn(n: Any, x: Any) -> Any:
    """Spherical Bessel function of the second kind, y_n = sqrt(π/(2x)) Y_{n+1/2}."""
    from scipy.special import yv

    return np.sqrt(np.pi / (2 * np.asarray(x, dtype=float))) * yv(np.add(n, 0.5), x)


def spherical_in(n: Any, x: Any) -> Any:
    """Modified spherical Bessel function of the first kind, i_n(−x) = (−1)^n i_n(x)."""
    from scipy.special import spherical_in as of_positive

    order, x_ = np.asarray(n, dtype=float).astype(np.int64), np.asarray(x, dtype=float)
    return (np.where((x_ < 0) & (order % 2 == 1), -1.0, 1.0) * of_positive(order, np.abs(x_)))[()]


def hermite(n: Any, x: Any) -> Any:
    """The Hermite function H_n: a polynomial for integers n ≥ 0, which may be floats, else by mpmath."""
    from scipy.special import eval_hermite

    degree = np.asarray(n, dtype=float)
    whole = (degree == np.floor(degree)) & (degree >= 0)
    value = eval_hermite(np.where(whole, degree, 0).astype(np.int64), x)
    if np.all(whole):
        return value
    import mpmath

    other = np.vectorize(lambda a, v: float(mpmath.hermite(a, v)), otypes=[float])(n, x)
    return np.where(whole, value, other)[()]


def laguerre(n: Any, x: Any) -> Any:
    """The Laguerre function L_n; degrees n ≥ 0 by the recurrence, as SciPy's series loses digits with n x."""
    from scipy.special import eval_laguerre

    degree = np.asarray(n, dtype=float)
    whole = (degree == np.floor(degree)) & (degree >= 0)
    value = eval_laguerre(np.where(whole, degree, 0).astype(np.int64), x)
    return value if np.all(whole) else np.where(whole, value, eval_laguerre(degree, x))[()]


def airyai(x: Any) -> Any:
    """Airy function Ai."""
    from scipy.special import airy

    return airy(x)[0]


def airyaiprime(x: Any) -> Any:
    """Derivative of the Airy function Ai."""
    from scipy.special import airy

    return airy(x)[1]


def airybi(x: Any) -> Any:
    """Airy function Bi."""
    from scipy.special import airy

    return airy(x)[2]


def airybiprime(x: Any) -> Any:
    """Derivative of the Airy function Bi."""
    from scipy.special import airy

    return airy(x)[3]


def sine_integral(x: Any) -> Any:
    """Si(x) = ∫_0^x sin(t)/t dt."""
    from scipy.special import sici

    return sici(x)[0]


def cosine_integral(x: Any) -> Any:
    """Ci(x) for x ≥ 0; NaN elsewhere: SymPy's function is complex there."""
    from scipy.special import sici

    return np.where(np.less(x, 0), np.nan, sici(x)[1])[()]


def sinh_integral(x: Any) -> Any:
    """Shi(x)."""
    from scipy.special import shichi

    return shichi(x)[0]


def cosh_integral(x: Any) -> Any:
    """Chi(x) for x ≥ 0; NaN elsewhere: SymPy's function is complex there."""
    from scipy.special import shichi

    return np.where(np.less(x, 0), np.nan, shichi(x)[1])[()]


def fresnels(x: Any) -> Any:
    """Fresnel integral S."""
    from scipy.special import fresnel

    return fresnel(x)[0]


def fresnelc(x: Any) -> Any:
    """Fresnel integral C."""
    from scipy.special import fresnel

    return fresnel(x)[1]


def lambertw(x: Any, branch: Any = 0) -> Any:
    """Lambert's W on the real line; NaN where it is complex."""
    from scipy.special import lambertw as complex_lambertw

    w = complex_lambertw(x, np.asarray(branch, dtype=int)[()])
    return np.where(np.abs(w.imag) > 0, np.nan, w.real)[()]


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    return np.logaddexp(0.0, x)


def logcosh(x: Any) -> Any:
    """log(cosh(x)) = log(1 + 2 sinh(x/2)²), and |x| − log 2 where cosh overflows or the rest is lost."""
    small = np.minimum(np.abs(x), 20.0)
    return np.log1p(2 * np.sinh(0.5 * small) ** 2) + (np.abs(x) - small)


def relu(x: Any) -> Any:
    """max(x, 0)."""
    return np.maximum(x, 0.0)


def silu(x: Any) -> Any:
    """X/(1 + exp(−x))."""
    from scipy.special import expit

    return x * expit(x)


def gelu(x: Any) -> Any:
    """X erfc(−x/√2)/2: accurate also where 1 + erf would cancel."""
    from scipy.special import erfc

    return 0.5 * x * erfc(-np.asarray(x) * 0.7071067811865476)


def beta(x: Any, *y: Any) -> Any:
    """B(x, y), and B(x, x) of one argument."""
    from scipy.special import beta as of_two

    return of_two(x, *(y or (x,)))


def elliptic_e(*args: Any) -> Any:
    """E(m), complete, or E(z | m)."""
    from scipy.special import ellipe, ellipeinc

    return ellipe(*args) if len(args) == 1 else ellipeinc(*args)


def elliptic_pi(n: Any, *args: Any) -> Any:
    """Π(n | m), complete, or Π(n; z | m), in Carlson's forms (DLMF 19.25.14).

    Beyond |z| = π/2 whole periods are added; where n sin² z > 1 on the way the value is NaN.
    """
    from scipy.special import elliprf, elliprj

    z, m = (np.pi / 2, args[0]) if len(args) == 1 else args
    turns = np.round(np.true_divide(z, np.pi)) if len(args) == 2 else 0.0
    s = np.sin(z - turns * np.pi)
    c = np.cos(z - turns * np.pi) ** 2 if len(args) == 2 else 0.0
    part = s * elliprf(c, 1 - m * s * s, 1.0) + n / 3 * s**3 * elliprj(c, 1 - m * s * s, 1.0, 1 - n * s * s)
    if np.any(turns != 0):
        whole = elliprf(0.0, 1 - m, 1.0) + n / 3 * elliprj(0.0, 1 - m, 1.0, 1 - n)
        part = part + np.where(turns != 0, 2 * turns * whole, 0.0)
    return np.where((n * s * s > 1) | ((turns != 0) & (n > 1)), np.nan, part)[()]


def _double_exponential() -> tuple[Any, Any, Any]:
    """Nodes u and 1 − u of (0, 1), and weights (Takahasi and Mori 1974).

    Steps of 1/64 reach full precision also for integrands that have poles as close to an end as m allows.
    """
    t = np.arange(-237, 238) / 64
    q = np.exp(-np.pi * np.sinh(np.abs(t)))
    small, large = q / (1 + q), 1 / (1 + q)
    u, rest = np.where(t < 0, small, large), np.where(t < 0, large, small)
    return u, rest, np.pi / 64 * np.cosh(t) * small * large


def elliptic_moment(p: Any, r: Any, q: Any, n: Any, *args: Any) -> Any:
    """∫_0^z sin^2p θ (1 − n sin² θ)^(−r) (1 − m sin² θ)^(−q − 1/2) dθ of (n, z, m); to z = π/2 of (n, m).

    ∞ where the complete integral diverges, NaN where the integrand has no value on the way.
    """
    z, m = args if len(args) == 2 else (np.inf, args[0])
    values = np.broadcast_arrays(*[np.asarray(v, dtype=float) for v in (p, r, q, n, z, m)])
    flat = np.stack([v.ravel() for v in values])
    made = np.empty(flat.shape[1])
    for orders in np.unique(flat[:3], axis=1).T:  # one, unless orders come as arrays
        (places,) = np.nonzero(np.all(flat[:3] == orders[:, None], axis=0))
        for k in range(0, len(places), 256):
            here = places[k : k + 256]
            made[here] = _moments(tuple(map(int, orders)), *flat[3:, here, None])
    return made.reshape(values[0].shape)[()]


def _moments(orders: tuple[int, ...], n: Any, z: Any, m: Any) -> Any:
    """Of columns; z = ∞ stands for the complete integral."""
    low = 6.123233995736766e-17  # π/2 less its float
    whole = np.isinf(z)
    turns = np.where(whole, 0.0, np.round(z / np.pi))
    with np.errstate(all="ignore"):
        part = np.where(whole, np.pi / 2, (z - turns * np.pi) - turns * 2 * low)
        beside = np.where(whole, 0.0, (np.pi / 2 - np.abs(part)) + low)
        found = _to_angle(orders, n, m, part, beside)
        if np.any(turns != 0):
            complete = _to_angle(orders, n, m, np.full_like(z, np.pi / 2), np.zeros_like(z))
            found = found + np.where(turns != 0, 2 * turns * complete, 0.0)
    return found[:, 0]


def _whole_power(x: Any, exponent: int) -> Any:
    """x ** exponent by products, much faster than np.power."""
    if exponent < 0:
        return 1 / _whole_power(x, -exponent)
    return reduce(np.multiply, [x] * exponent) if exponent else 1.0


def _to_angle(orders: tuple[int, ...], n: Any, m: Any, z: Any, beside: Any) -> Any:
    """The integral to z in [−π/2, π/2], where π/2 − |z| is ``beside``."""
    p, r, q = orders
    u, rest, weights = _double_exponential()
    sine, cosine = np.sin(np.abs(z) * u) ** 2, np.sin(beside + np.abs(z) * rest) ** 2

    def without(k: Any) -> Any:  # 1 − k sin²
        return np.where(k <= 0, 1 - k * sine, cosine + (1 - k) * sine)

    under = without(m)
    made = weights * _whole_power(sine, p) / (_whole_power(under, q) * np.sqrt(under))
    if r:
        made = made / _whole_power(without(n), r)
    total = z * np.sum(made, axis=-1, keepdims=True)
    end = np.sin(z) ** 2
    widest = np.maximum(m, n) if r > 0 else m
    diverges = (beside == 0) & (widest == 1)
    valid = np.where(beside == 0, widest, widest * end) < 1
    return np.where(diverges, np.copysign(np.inf, z), np.where(valid, total, np.nan))


def lowergamma(s: Any, x: Any) -> Any:
    """γ(s, x) = ∫_0^x t^(s−1) e^(−t) dt for s > 0, x ≥ 0; NaN elsewhere."""
    from scipy.special import gamma, gammainc

    return np.where(np.greater(s, 0), gammainc(s, x) * gamma(s), np.nan)[()]


def uppergamma(s: Any, x: Any) -> Any:
    """Γ(s, x) = ∫_x^∞ t^(s−1) e^(−t) dt for x ≥ 0; s ≤ 0 by mpmath."""
    from scipy.special import gamma, gammaincc

    if np.all(np.greater(s, 0)):
        return gammaincc(s, x) * gamma(s)
    import mpmath

    def one(a: float, v: float) -> float:
        return float(mpmath.gammainc(a, v)) if v > 0 else float("inf") if v == 0 else float("nan")

    return np.vectorize(one, otypes=[float])(s, x)[()]


def expint(order: Any, x: Any) -> Any:
    """E_ν(x) = ∫_1^∞ e^(−x t) t^(−ν) dt for x > 0; orders that are no integers ≥ 0 by mpmath."""
    from scipy.special import expn

    order_, x_ = np.asarray(order, dtype=float), np.asarray(x, dtype=float)
    if np.all((order_ >= 0) & (order_ == np.floor(order_))):
        return expn(order_.astype(np.int64), x_)[()]
    import mpmath

    def one(a: float, v: float) -> float:
        return float(mpmath.expint(a, v)) if v > 0 else float("nan")

    return np.vectorize(one, otypes=[float])(order_, x_)[()]


def polylog(order: Any, x: Any) -> Any:
    """Li_s(x) = Σ_k x^k / k^s, continued to x ≤ 1; the orders 1, 0 and 2 in closed form, others by mpmath."""
    from scipy.special import spence

    order_, x_ = np.asarray(order, dtype=float), np.asarray(x, dtype=float)
    if np.all(order_ == 2):
        return spence(1 - x_)[()]
    if np.all(order_ == 1):
        return -np.log1p(-x_)
    if np.all(order_ == 0):
        return x_ / (1 - x_)
    import mpmath

    def one(s: float, v: float) -> float:
        value = mpmath.polylog(s, v) if v < 1 else mpmath.zeta(s) if v == 1 and s > 1 else mpmath.nan
        return float(mpmath.re(value))

    return np.vectorize(one, otypes=[float])(order_, x_)[()]


def betainc(a: Any, b: Any, low: Any, high: Any) -> Any:
    """∫_low^high t^(a−1) (1 − t)^(b−1) dt within 0 ≤ t ≤ 1, for a, b > 0."""
    from scipy.special import beta, betainc

    return beta(a, b) * (betainc(a, b, high) - betainc(a, b, low))


def betainc_regularized(a: Any, b: Any, low: Any, high: Any) -> Any:
    """The same over B(a, b)."""
    from scipy.special import betainc

    return betainc(a, b, high) - betainc(a, b, low)


def voigt_dispersion(x: Any, sigma: Any, gamma: Any) -> Any:
    """Im w((x + iγ)/(σ√2))/(σ √(2π)), the Hilbert transform of Voigt's profile."""
    from scipy.special import wofz

    root = np.multiply(sigma, 1.4142135623730951)
    return wofz((x + 1j * np.asarray(gamma)) / root).imag / (root * 1.7724538509055159)


def assoc_legendre(n: Any, m: Any, x: Any) -> Any:
    """Associated Legendre functions of degree n and order m, with the phase (−1)^m."""
    from scipy.special import lpmv

    return lpmv(m, n, x)


def elementwise(name: str, function: Any, *values: Any) -> Any:
    """A user's function of floats and arrays: a new array of their common shape and type.

    Raises:
        TypeError: the function does not take arrays, or what it returns are no real numbers.
        ValueError: what it returns has another shape.
    """
    shape = np.broadcast_shapes(*[np.shape(v) for v in values])
    try:
        made = np.asarray(function(*values))
    except TypeError as error:
        if not shape:
            raise
        raise TypeError(
            f"{name} has to take NumPy arrays, as numpy.vectorize makes it do: {error}"
        ) from error
    if made.dtype.kind not in "fiub":
        raise TypeError(f"{name} has to return real numbers, not {made.dtype}")
    if made.shape != shape:
        raise ValueError(f"{name} has to work elementwise: of shape {shape} it makes {made.shape}")
    kinds = [v.dtype for v in values if hasattr(v, "dtype")]
    return np.array(made, dtype=np.result_type(*kinds, np.float32) if kinds else np.float64)[()]
