"""Functions that NumPy and SciPy define by another convention, or lack.

Each computes the SymPy function of the same name on real floats and arrays; SciPy is imported when
one is called. A file has one family: `elementary`, with those of users, `bessel`,
`integrals` with the gamma functions, `elliptic`.
"""

from symad.special.bessel import (
    airyai,
    airyaiprime,
    airybi,
    airybiprime,
    besseli,
    ive,
    spherical_in,
    spherical_jn,
    spherical_yn,
)
from symad.special.elementary import (
    acot,
    acoth,
    acsc,
    acsch,
    asec,
    asech,
    cot,
    coth,
    csc,
    csch,
    elementwise,
    frac,
    gelu,
    logcosh,
    maximum,
    minimum,
    normal_excess,
    normal_ratio,
    relu,
    sec,
    sech,
    silu,
    sinc,
    softplus,
    voigt_dispersion,
)
from symad.special.elliptic import elliptic_e, elliptic_moment, elliptic_pi
from symad.special.integrals import (
    assoc_legendre,
    beta,
    betainc,
    betainc_regularized,
    cosh_integral,
    cosine_integral,
    expint,
    factorial,
    fresnelc,
    fresnels,
    hermite,
    laguerre,
    lambertw,
    loggamma,
    lowergamma,
    polygamma,
    polylog,
    sine_integral,
    sinh_integral,
    uppergamma,
)

__all__ = [
    "acot", "acoth", "acsc", "acsch", "airyai", "airyaiprime", "airybi", "airybiprime", "asec", "asech",
    "assoc_legendre", "besseli", "beta", "betainc", "betainc_regularized", "cosh_integral",
    "cosine_integral", "cot", "coth", "csc", "csch", "elementwise", "elliptic_e", "elliptic_moment",
    "elliptic_pi", "expint", "factorial", "frac", "fresnelc", "fresnels", "gelu", "hermite", "ive",
    "laguerre", "lambertw", "logcosh", "loggamma", "lowergamma", "maximum", "minimum", "normal_excess",
    "normal_ratio", "polygamma", "polylog", "relu", "sec", "sech", "silu", "sinc", "sine_integral",
    "sinh_integral", "softplus", "spherical_in", "spherical_jn", "spherical_yn", "uppergamma",
    "voigt_dispersion",
]  # fmt: skip
