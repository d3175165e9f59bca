"""Distributions of scipy.stats on traced values: their own formulas are traced.

The public methods (pdf, cdf, ppf, ...) check and sort arrays of numbers; the formulas of a distribution are
its private methods (``_pdf``, ``_cdf``, ...), which SciPy calls at (x − loc)/scale, inside of the support.
While a function is traced and scipy.stats is loaded, the public methods call them with traced values as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from symad.errors import SymadError, TraceError
from symad.tracing.elements.chosen import Chosen
from symad.tracing.elements.filled import holds_traced, unfilled
from symad.tracing.users_line import users_line

if TYPE_CHECKING:
    from symad.core.arrays import Array, ArrayLike

DENSITIES = {"pdf": 0.0, "logpdf": -np.inf, "pmf": 0.0, "logpmf": -np.inf}
"""The methods that are densities, and their value outside of the support."""

TAILS = {"cdf": (0.0, 1.0), "logcdf": (-np.inf, 0.0), "sf": (1.0, 0.0), "logsf": (0.0, -np.inf)}
"""The distribution functions, and their values below and above the support."""

QUANTILES = {"ppf": 1, "isf": -1}
"""The inverses of cdf and sf, and their directions."""

Formula: TypeAlias = "Callable[..., Array]"

WAYS: dict[str, tuple[tuple[str, Formula], ...]] = {
    "pdf": (("_pdf", np.positive), ("_logpdf", np.exp)),
    "logpdf": (("_logpdf", np.positive), ("_pdf", np.log)),
    "pmf": (("_pmf", np.positive), ("_logpmf", np.exp)),
    "logpmf": (("_logpmf", np.positive), ("_pmf", np.log)),
    "cdf": (("_cdf", np.positive), ("_sf", lambda s: 1 - s), ("_logcdf", np.exp)),
    "logcdf": (("_logcdf", np.positive), ("_cdf", np.log)),
    "sf": (("_sf", np.positive), ("_cdf", lambda c: 1 - c), ("_logsf", np.exp)),
    "logsf": (("_logsf", np.positive), ("_sf", np.log), ("_cdf", lambda c: np.log1p(-c))),
    "ppf": (("_ppf", np.positive),),
    "isf": (("_isf", np.positive),),
}
"""The formula for each method in terms of the private ones that a distribution may define."""


def t_log_density(x: Array, df: Array) -> Array:
    """log Γ((ν + 1)/2) − log Γ(ν/2) − log(νπ)/2 − (ν + 1)/2 log(1 + x²/ν)."""
    from scipy.special import gammaln

    whole = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(np.pi * df) / 2
    return whole - (df + 1) / 2 * np.log1p(x * x / df)


def lognormal_log_density(x: Array, s: Array) -> Array:
    """−log²x/(2s²) − log(s x √(2π))."""
    return -(np.log(x) ** 2) / (2 * s**2) - np.log(s * x * np.sqrt(2 * np.pi))


OWN: dict[tuple[str, str], Formula] = {
    ("t", "_logpdf"): t_log_density,
    ("lognorm", "_logpdf"): lognormal_log_density,
    ("cauchy", "_ppf"): lambda q: np.tan(np.pi * (q - 0.5)),
    ("cauchy", "_isf"): lambda q: np.tan(np.pi * (0.5 - q)),
}
"""Private methods that are compiled code in SciPy, or compute with arrays of numbers."""


def replacements() -> list[tuple[type, dict[str, Formula]]]:
    """The public methods of distributions, and their replacements while a function is traced."""
    stats = sys.modules.get("scipy.stats")
    bases = [b for b in (getattr(stats, "rv_continuous", None), getattr(stats, "rv_discrete", None)) if b]
    return [(b, {n: _method(vars(b)[n], n) for n in WAYS if n in vars(b)}) for b in bases]


@cache
def _method(original: Formula, name: str) -> Formula:
    """A public method, which uses the distribution's own formula for traced values."""

    @wraps(original)
    def method(self: Any, x: ArrayLike, *args: Any, **options: Any) -> Any:
        given = (x, *args, *options.values())
        if not holds_traced(given) and not any(isinstance(v, Chosen) for v in given):
            return original(self, x, *args, **options)
        named = {k: unfilled(v) for k, v in options.items()}
        shapes, loc, scale = self._parse_args(*map(unfilled, args), **named)
        support = self._get_support(*shapes)
        x = unfilled(x)
        if name in QUANTILES:
            return _quantile(_formula(self, name, x, shapes), name, x, loc, scale, support)
        is_discrete = not hasattr(self, "pdf")
        y = x - loc if is_discrete else (x - loc) / scale
        found = _formula(self, name, y, shapes)
        if name in TAILS:
            return _inside(found, y, support, TAILS[name])
        if is_discrete:
            found = np.where(self._nonzero(y, *shapes), found, DENSITIES[name])
        else:
            found = found / scale if name == "pdf" else found - np.log(scale)
        return _inside(found, y, support, (DENSITIES[name], DENSITIES[name]))

    return method


def _formula(self: Any, name: str, y: Array, shapes: Sequence[Array]) -> Any:
    """A method of the standard distribution, from the first of its own formulas that can be traced.

    Raises:
        TraceError: no formula can be traced.
    """
    told = "SciPy integrates or searches"
    for private, change in WAYS[name]:
        formula = OWN.get((self.name, private)) or getattr(self, private, None)
        if formula is None or _is_numeric(formula):
            continue
        try:
            return change(formula(y, *shapes))
        except (SymadError, TypeError, ValueError, AttributeError) as problem:
            told = " ".join(str(problem).split())[:200]
    if name == "isf":
        return _formula(self, "ppf", 1 - y, shapes)
    raise TraceError(
        f"scipy.stats.{self.name}.{name}{users_line()} has no formula that can be traced ({told}); write the "
        "formula in its place"
    )


def _is_numeric(formula: ArrayLike) -> bool:
    """True if a private method is the one that differentiates, integrates or searches numerically."""
    return getattr(formula, "__qualname__", "").startswith(("rv_continuous.", "rv_generic.", "rv_discrete."))


def _inside(found: Array, y: Array, support: tuple[Array, Array], outside: tuple[float, float]) -> Array:
    """A value inside of the support, and those below and above it."""
    (low, high), (below, above) = support, outside
    if not _is(low, -np.inf):
        found = np.where(y >= low, found, below)
    return found if _is(high, np.inf) else np.where(y <= high, found, above)


def _is(bound: Array | float, value: float) -> bool:
    """True if a bound of a support is a number, and this one."""
    return not holds_traced(bound) and bool(np.all(bound == value))


def _quantile(found: Array, name: str, q: Any, loc: Any, scale: Any, support: tuple[Array, Array]) -> Array:
    """The quantile for 0 < q < 1, the ends of the support at 0 and 1, NaN elsewhere."""
    first, last = (end * scale + loc for end in support[:: QUANTILES[name]])
    ends = np.where(q == 0, first, np.where(q == 1, last, np.nan))
    return np.where((q > 0) & (q < 1), found * scale + loc, ends)
