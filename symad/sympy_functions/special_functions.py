"""Special functions that SymPy lacks, or has in a general form only: 0F1, 1F1, 2F1, Owen's T, Voigt.

They have no form in elementary functions. Their values to many digits come from Arb, or from mpmath by
quadrature and complex error functions; derivatives by parameters without a known formula come from
`parameter_derivatives`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mpmath
import sympy
from sympy.core.function import ArgumentIndexError

from symad.core.arrays import Array, Number
from symad.facts.functions import state
from symad.numbers.function_values import mpmath_function
from symad.sympy_functions.scalar_functions import on_arrays

if TYPE_CHECKING:
    import flint


class SpecialFunction(sympy.Function):
    """A real function that is defined by its values; it acts elementwise on arrays and traced values."""

    def __new__(cls, *args: sympy.Expr, **options: Any) -> sympy.Expr:
        """The expression; a value or traced value for arrays and traced values."""
        elsewhere = on_arrays(cls, args)
        return super().__new__(cls, *args, **options) if elsewhere is None else elsewhere

    def _eval_evalf(self, prec: int) -> sympy.Expr:
        with mpmath.workprec(prec + 20):
            values = [a._to_mpmath(prec + 20) for a in self.args]
            return sympy.Float._new(mpmath.mpf(mpmath_function(self.func)(*values))._mpf_, prec)


class hyp0f1(SpecialFunction):
    """0F1(; b; x) = Σ_k x^k / ((b)_k k!)."""

    nargs = 2

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        """0F1(; b + 1; x)/b by x (DLMF 16.3.1)."""
        b, x = self.args
        return _by_last(self, argindex, lambda: hyp0f1(b + 1, x) / b)


class hyp1f1(SpecialFunction):
    """Kummer's 1F1(a; b; x) = Σ_k (a)_k x^k / ((b)_k k!)."""

    nargs = 3

    def fdiff(self, argindex: int = 3) -> sympy.Expr:
        """(a/b) 1F1(a + 1; b + 1; x) by x (DLMF 13.3.15)."""
        a, b, x = self.args
        return _by_last(self, argindex, lambda: a / b * hyp1f1(a + 1, b + 1, x))


class hyp2f1(SpecialFunction):
    """Gauss' 2F1(a, b; c; x) = Σ_k (a)_k (b)_k x^k / ((c)_k k!), continued to x < 1."""

    nargs = 4

    def fdiff(self, argindex: int = 4) -> sympy.Expr:
        """(ab/c) 2F1(a + 1, b + 1; c + 1; x) by x (DLMF 15.5.1)."""
        a, b, c, x = self.args
        return _by_last(self, argindex, lambda: a * b / c * hyp2f1(a + 1, b + 1, c + 1, x))


def _by_last(function: sympy.Function, argindex: int, slope: Callable[[], sympy.Expr]) -> sympy.Expr:
    if argindex != len(function.args):
        raise ArgumentIndexError(function, argindex)
    return slope()


class owens_t(SpecialFunction):
    """T(h, a) = 1/(2π) ∫_0^a exp(−h² (1 + t²)/2)/(1 + t²) dt (Owen 1956)."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """−φ(h) erf(a h/√2)/2 by h, exp(−h² (1 + a²)/2)/(2π (1 + a²)) by a."""
        h, a = self.args
        if argindex == 1:
            root = sympy.sqrt(2)
            return -sympy.exp(-(h**2) / 2) * sympy.erf(a * h / root) / (2 * root * sympy.sqrt(sympy.pi))
        return sympy.exp(-(h**2) * (1 + a**2) / 2) / (2 * sympy.pi * (1 + a**2))


class spherical_in(SpecialFunction):
    """The modified spherical Bessel function i_n(x) = √(π/(2x)) I_{n+1/2}(x); i_0(x) = sinh(x)/x."""

    nargs = 2

    def fdiff(self, argindex: int = 2) -> sympy.Expr:
        """(n i_{n−1} + (n + 1) i_{n+1})/(2n + 1), also correct at 0 (DLMF 10.51.5)."""
        n, x = self.args
        below = n * spherical_in(n - 1, x) if n != 0 else 0
        return _by_last(self, argindex, lambda: (below + (n + 1) * spherical_in(n + 1, x)) / (2 * n + 1))


class polylog_slope(SpecialFunction):
    """d^k/dx^k Li_s(x), where Li_s' = Li_{s−1}(x)/x is 0/0 at 0."""

    nargs = 3

    def fdiff(self, argindex: int = 3) -> sympy.Expr:
        """The function of the next order, by x."""
        k, s, x = self.args
        return _by_last(self, argindex, lambda: polylog_slope(k + 1, s, x))


class voigt_profile(SpecialFunction):
    """V(x; σ, γ) = Re w(z)/(σ √(2π)), z = (x + iγ)/(σ √2): a normal and a Cauchy density, convolved.

    w is Faddeeva's function exp(−z²) erfc(−iz); σ > 0, γ ≥ 0.
    """

    nargs = 3

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """From w' = 2i/√π − 2 z w (DLMF 7.10.2), with L = `voigt_dispersion`; by σ, V_σ = σ V_xx."""
        x, sigma, gamma = self.args
        here, other = self, voigt_dispersion(x, sigma, gamma)
        by_x = (gamma * other - x * here) / sigma**2
        by_gamma = (x * other + gamma * here - 1 / sympy.pi) / sigma**2
        return (by_x, -(here + x * by_x + gamma * by_gamma) / sigma, by_gamma)[argindex - 1]


class voigt_dispersion(SpecialFunction):
    """L(x; σ, γ) = Im w(z)/(σ √(2π)), the Hilbert transform of Voigt's profile."""

    nargs = 3

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """L_x = −V_γ and L_γ = V_x, since w is analytic."""
        x, sigma, gamma = self.args
        here, profile = self, voigt_profile(x, sigma, gamma)
        by_x = (1 / sympy.pi - x * here - gamma * profile) / sigma**2
        by_gamma = (gamma * here - x * profile) / sigma**2
        return (by_x, -(here + x * by_x + gamma * by_gamma) / sigma, by_gamma)[argindex - 1]


# ---- values -------------------------------------------------------------------------------------


def _owens_t_by_arb(h: Array, a: Array) -> flint.arb:
    """An enclosure by Arb's quadrature, which is rigorous."""
    from flint import acb, arb

    half = -(h * h) / 2
    whole = acb.integral(lambda t, analytic: (half * (1 + t * t)).exp() / (1 + t * t), acb(0), acb(a))
    return whole.real / (2 * arb.pi())


def _owens_t(h: Array, a: Array) -> Number:
    cuts = [0, a] if abs(a) <= 1 else [0, mpmath.sign(a), a]
    whole = mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), cuts)
    return whole / (2 * mpmath.pi)


def _faddeeva_by_arb(x: flint.arb, sigma: flint.arb, gamma: flint.arb) -> flint.acb:
    from flint import acb, arb

    if not sigma > 0:
        return acb(arb("nan"), arb("nan"))
    root = sigma * arb(2).sqrt()
    z = acb(x / root, gamma / root)
    return (-z * z).exp() * (acb(0, -1) * z).erfc() / (root * arb.pi().sqrt())


def _faddeeva(x: mpmath.mpf, sigma: mpmath.mpf, gamma: mpmath.mpf) -> mpmath.mpc:
    if not sigma > 0:
        return mpmath.mpc(mpmath.nan, mpmath.nan)
    with mpmath.extraprec(mpmath.mp.prec):
        root = sigma * mpmath.sqrt(2)
        z = mpmath.mpc(x, gamma) / root
        return mpmath.exp(-z * z) * mpmath.erfc(-1j * z) / (root * mpmath.sqrt(mpmath.pi))


def _spherical_in(n: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    if x == 0:
        return mpmath.mpf(n == 0)
    return mpmath.sign(x) ** int(n) * mpmath.sqrt(mpmath.pi / (2 * abs(x))) * mpmath.besseli(n + 0.5, abs(x))


def polylog_slope_value(k: mpmath.mpf, s: mpmath.mpf, x: mpmath.mpf) -> mpmath.mpf:
    """With θ = x d/dx, θ Li_s = Li_{s−1}: x^k d^k/dx^k = θ (θ − 1) ... (θ − k + 1)."""
    k = int(k)
    if x == 0:
        return mpmath.factorial(k) / mpmath.mpf(k) ** s
    if not mpmath.isfinite(x) or x > 1 or (x == 1 and s - k <= 1):  # mpmath gives ζ(s − k), or does not end
        return mpmath.nan
    with mpmath.extraprec(k * (10 + max(0, -mpmath.mag(x)))):
        terms = [mpmath.stirling1(k, j) * mpmath.polylog(s - j, x) for j in range(1, k + 1)]
        return mpmath.re(sum(terms)) / x**k


state(
    hyp0f1,
    "scipy.special.hyp0f1",
    digits=mpmath.hyp0f1,
    balls=lambda b, x: x.hypgeom_0f1(b),
    slow=True,
)
state(
    hyp1f1,
    "scipy.special.hyp1f1",
    digits=mpmath.hyp1f1,
    balls=lambda a, b, x: x.hypgeom_1f1(a, b),
    slow=True,
)
state(
    hyp2f1,
    "scipy.special.hyp2f1",
    digits=mpmath.hyp2f1,
    balls=lambda a, b, c, x: x.hypgeom_2f1(a, b, c),
    slow=True,
)
state(spherical_in, "symad.special.spherical_in", digits=_spherical_in)
state(polylog_slope, "symad.special_derivatives.polylog_slope", digits=polylog_slope_value)
state(owens_t, "scipy.special.owens_t", digits=_owens_t, balls=_owens_t_by_arb, slow=True)
state(
    voigt_profile,
    "scipy.special.voigt_profile",
    digits=lambda *args: _faddeeva(*args).real,
    balls=lambda *args: _faddeeva_by_arb(*args).real,
    slow=True,
)
state(
    voigt_dispersion,
    "symad.special.voigt_dispersion",
    digits=lambda *args: _faddeeva(*args).imag,
    balls=lambda *args: _faddeeva_by_arb(*args).imag,
    slow=True,
)
