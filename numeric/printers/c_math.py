"""exp, log, tanh, σ, sin and cos in C without branches, so that compilers make vector code of their loops.

Range reduction after Cody and Waite, "Software Manual for the Elementary Functions" (1980), chapters 5, 6,
8 and 13, by splitting constants so that the products with small integers are exact; the rest by polynomials
of near-minimax coefficients (Chebyshev interpolation in 60 digits). Within two units in the last place on
all doubles, with IEEE results for infinities and NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

EXP_TAIL = (
    0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062,
    0.0013888888917213717, 0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06,
    2.7620088445409746e-07, 2.510038549551032e-08,
)  # fmt: skip
"""(exp r − 1 − r)/r² in powers of r, on |r| ≤ ln(2)/2."""

LOG_TAIL = (
    0.666666666666667, 0.3999999999989889, 0.28571428626253836, 0.22222211089379496,
    0.1818289243253687, 0.15331611722055008, 0.14617807153417325,
)  # fmt: skip
"""(2 artanh(s)/s − 2)/s² in powers of s², on |s| ≤ (√2 − 1)/(√2 + 1)."""

SIN_TAIL = (
    -0.16666666666666666, 0.008333333333330936, -0.00019841269836740532, 2.7557316093198404e-06,
    -2.5051129896450185e-08, 1.5917988979397435e-10,
)  # fmt: skip
"""(sin(r)/r − 1)/r² in powers of r², on |r| ≤ π/4."""

COS_TAIL = (
    0.041666666666666664, -0.0013888888888887389, 2.48015872987544e-05, -2.755731726587808e-07,
    2.087614504941318e-09, -1.138254464534925e-11,
)  # fmt: skip
"""(cos r − 1 + r²/2)/r⁴ in powers of r², on |r| ≤ π/4."""


def polynomial(coefficients: Sequence[float], x: str, power: int = 1) -> str:
    """Σ c_k x^k in C by Estrin's scheme: halves side by side; ``x``, ``x2``, ``x4``, ... are variables."""
    pairs = [
        f"FMA({x}, {coefficients[k + 1]!r}, {coefficients[k]!r})"
        if k + 1 < len(coefficients)
        else repr(coefficients[k])
        for k in range(0, len(coefficients), 2)
    ]
    step = 2
    while len(pairs) > 1:
        pairs = [
            f"FMA({x}{step}, {pairs[k + 1]}, {pairs[k]})" if k + 1 < len(pairs) else pairs[k]
            for k in range(0, len(pairs), 2)
        ]
        step *= 2
    return pairs[0]


BASE = """\
#ifdef FP_FAST_FMA
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) ((a)*(b) + (c))
#endif
#define ROUND_ 0x1.8p52  /* x + ROUND_ - ROUND_ is x rounded to an integer, which its low bits hold */
static inline uint64_t bits_(double x) { uint64_t b; memcpy(&b, &x, sizeof b); return b; }
static inline double of_bits_(uint64_t b) { double x; memcpy(&x, &b, sizeof x); return x; }
static inline double two_to_(double k) { return of_bits_((bits_(k + ROUND_) + 1023) << 52); }
"""

EXP = f"""\
/* exp(x) − 1 = 2^k (exp(r) − 1) + 2^k − 1, r = x − k ln 2; the result is exp(r) − 1 */
static inline double reduced_exp_(double x, double *k)
{{
    const double n = (x*0x1.71547652b82fep+0 + ROUND_) - ROUND_;
    const double r = FMA(-n, 0x1.a39ef35793c76p-33, FMA(-n, 0x1.62e42fee00000p-1, x));
    const double r2 = r*r, r4 = r2*r2, r8 = r4*r4;
    *k = n;
    return FMA(r2, {polynomial(EXP_TAIL, "r")}, r);
}}
static inline double exp_(double x)
{{
    double k;
    const double p = 1 + reduced_exp_(x > 710 ? 710 : x < -746 ? -746 : x, &k);
    const double half = (0.5*k + ROUND_) - ROUND_;
    return p*two_to_(half)*two_to_(k - half);
}}
"""

TANH = """\
static inline double tanh_(double x)  /* e/(e + 2) with e = exp(2|x|) − 1 */
{
    const double a = 2*fabs(x);
    double k;
    const double p = reduced_exp_(a > 44 ? 44 : a, &k), scale = two_to_(k);
    const double e = FMA(scale, p, scale - 1);
    return copysign(e/(e + 2), x);
}
"""

SIGMOID = """\
static inline double sigmoid_(double x)  /* without overflow, and with all digits where it is small */
{
    const double e = exp_(-fabs(x)), s = 1/(1 + e);
    return x < 0 ? e*s : s;
}
"""

LOG = f"""\
static inline double log_(double x)  /* x = 2^e (1 + f): log(1 + f) = 2 artanh(s), s = f/(2 + f) */
{{
    const double up = x < 0x1p-1022 ? 0x1p54 : 1.0, shift = x < 0x1p-1022 ? 54 : 0;
    const uint64_t b = bits_(x*up) - 0x3fe6a09e667f3bcd;  /* the bits of √½ */
    const double f = of_bits_((b & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1;
    const double e = (of_bits_(((b + (UINT64_C(1) << 62)) >> 52) | 0x4330000000000000)
                      - (0x1p52 + 1024)) - shift;
    const double s = f/(2 + f), z = s*s, z2 = z*z, z4 = z2*z2, h = 0.5*f*f;
    const double tail = z*{polynomial(LOG_TAIL, "z")};
    const double y = FMA(e, 0x1.62e42fee00000p-1, f - (h - FMA(e, 0x1.a39ef35793c76p-33, s*(h + tail))));
    return x > 0 ? (x > 0x1.fffffffffffffp1023 ? x : y) : x == 0 ? -INFINITY : NAN;
}}
"""

SINES = f"""\
#define FAR_ 0x1p20  /* beyond, π/2 needs more digits than are kept here */
static inline double sine_(double x, uint64_t quadrant)  /* sin(x + quadrant π/2) for |x| ≤ FAR_ */
{{
    const double n = (x*0x1.45f306dc9c883p-1 + ROUND_) - ROUND_;
    const double t = x - n*0x1.921fb54400000p+0, w = n*0x1.0b4611a600000p-34, d = t - w;
    const double r = d + (((t - d) - w) - n*0x1.3198a2e037073p-69);
    const double z = r*r, z2 = z*z, z4 = z2*z2;
    const double sine = FMA(r*z, {polynomial(SIN_TAIL, "z")}, r);
    const double h = 0.5*z, one = 1 - h;
    const double cosine = one + FMA(z2, {polynomial(COS_TAIL, "z")}, (1 - one) - h);
    const uint64_t q = bits_(n + ROUND_) + quadrant;
    const double y = q & 1 ? cosine : sine;
    return q & 2 ? -y : y;
}}
"""

ONE_SINE = """\
static inline double sin_(double x) { return fabs(x) <= FAR_ ? sine_(x, 0) : sin(x); }
"""

SCALARS: dict[str, tuple[tuple[str, ...], str]] = {
    "exp": ((EXP,), ""),
    "tanh": ((EXP, TANH), ""),
    "sigmoid": ((EXP, SIGMOID), ""),
    "log": ((LOG,), ""),
    "sin": ((SINES,), ONE_SINE),
    "cos": (
        (SINES,),
        ONE_SINE.replace("sin_(", "cos_(").replace(" sin(x)", " cos(x)").replace(", 0)", ", 1)"),
    ),
}
"""What every function is made of; its C name is its own with an underscore."""

ALL = """\
static void NAME_all(double *restrict p, size_t n) { for (size_t k = 0; k < n; ++k) p[k] = NAME_(p[k]); }
"""

ALL_SINES = """\
static void NAME_all(double *restrict p, size_t n)
{
    int far = 0;
    for (size_t k = 0; k < n; ++k) far |= fabs(p[k]) > FAR_;
    if (far) for (size_t k = 0; k < n; ++k) p[k] = NAME_(p[k]);
    else for (size_t k = 0; k < n; ++k) p[k] = sine_(p[k], QUADRANT);
}
"""


def math_source(names: Iterable[str]) -> str:
    """C of ``f_(x)`` for one number and ``f_all(p, n)`` for n numbers in place.

    It needs math.h, stddef.h, stdint.h and string.h.
    """
    chosen = [name for name in SCALARS if name in set(names)]
    parts = dict.fromkeys(part for name in chosen for part in SCALARS[name][0])
    loops = [
        (ALL_SINES.replace("QUADRANT", str(("sin", "cos").index(name))) if name in ("sin", "cos") else ALL)
        for name in chosen
    ]
    own = [SCALARS[n][1] + loop.replace("NAME", n) for n, loop in zip(chosen, loops, strict=True)]
    return "".join([BASE, *parts, *own]) if chosen else ""
