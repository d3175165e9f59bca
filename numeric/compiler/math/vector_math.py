"""Elementary functions as branch-free C, so that a compiler turns loops over them into vector code.

The C library's functions are calls on one element at a time. The functions here reduce the argument and
evaluate a polynomial, with selections instead of branches:

- exp x = 2ᵏ exp r with k = round(x/log 2) and r = x − k log 2 computed in two parts, |r| ≤ (log 2)/2.
- tanh x = ±u/(1 + u) with u = (exp 2|x| − 1)/2, which keeps its leading digits near 0.
- σ(x) = c/(c + c exp(−x)), with c so small that c exp(−x) is finite where σ is a subnormal number.
- log x = k log 2 + log(1 + f) with √½ ≤ 1 + f < √2: a polynomial in single precision, and
  2 artanh(f/(2 + f)) in double.
- sin and cos use r = x − n π/2, computed in three parts, for |x| ≤ 2²⁰, and the C library beyond.
- log(1 + x) is log u for u = 1 + x rounded, with the rounding error added to f.
- log(1 + exp x) = max(x, 0) + log(1 + exp(−|x|)).
- erfc z = t P(t) exp(−z²) with t = c/(c + z), for z ≥ 0; z² = h² + (z − h)(z + h), where h has few digits.

Adding 1.5·2ᵐ (m bits of mantissa) rounds to an integer, which is then in the low bits; a shift turns it into
2ᵏ. Range reduction follows Cody and Waite, "Software Manual for the Elementary Functions" (1980), chapters 5,
6, 8 and 13. Infinities, NaN, zeros and subnormal numbers are treated as in the C library. Errors are a few
units in the last place, which tests/numeric/compiled/test_vector_math.py measures.

A loop over an array is limited by its number of vector instructions: therefore Horner's scheme is used, which
has the fewest, comparisons are avoided, and a division, which runs in parallel, costs nothing. A single
evaluation is limited by the longest chain of dependent instructions, and Estrin's scheme has the shortest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from symad.numeric.compiler.c_templates import filled

# ---- coefficients of the polynomials -------------------------------------------------------------

# Those for double precision interpolate at Chebyshev points, in 60 digits, unless stated otherwise.


EXP = (
    0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062,
    0.0013888888917213717, 0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06,
    2.7620088445409746e-07, 2.510038549551032e-08,
)  # fmt: skip
"""(exp r − 1 − r)/r² in powers of r, on |r| ≤ ln(2)/2."""

SHORT_EXP = (0.5, 0.16666576666119928, 0.04166655421298415, 0.008363232883682618, 0.0013926250831497611)
"""(exp r − 1 − r)/r² in powers of r to 7·10⁻⁸, for single precision."""

LOG = (
    0.666666666666667, 0.3999999999989889, 0.28571428626253836, 0.22222211089379496,
    0.1818289243253687, 0.15331611722055008, 0.14617807153417325,
)  # fmt: skip
"""(2 artanh(s)/s − 2)/s² in powers of s², on |s| ≤ (√2 − 1)/(√2 + 1)."""

SHORT_LOG = (
    0.33333316891440773, -0.2500078311979796, 0.20002276483826895, -0.16625373697310125,
    0.14181680424006196, -0.13121961617489872, 0.12876615510806821, -0.07870836848401579,
)  # fmt: skip
"""(log(1 + f) − f + f²/2)/f³ in powers of f; the error of the result is 6·10⁻⁹, by the Remez algorithm."""

SIN = (
    -0.16666666666666666, 0.008333333333330936, -0.00019841269836740532, 2.7557316093198404e-06,
    -2.5051129896450185e-08, 1.5917988979397435e-10,
)  # fmt: skip
"""(sin(r)/r − 1)/r² in powers of r², on |r| ≤ π/4."""

SHORT_SIN = (-0.16666656025877433, 0.0083322274946362, -0.0001952252180858478)
"""The coefficients of `SIN` to 4·10⁻⁹, for single precision."""

COS = (
    0.041666666666666664, -0.0013888888888887389, 2.48015872987544e-05, -2.755731726587808e-07,
    2.087614504941318e-09, -1.138254464534925e-11,
)  # fmt: skip
"""(cos r − 1 + r²/2)/r⁴ in powers of r², on |r| ≤ π/4."""

SHORT_COS = (0.041666652218230925, -0.0013887587284204283, 2.4460252823704978e-05)
"""The coefficients of `COS` to 10⁻¹⁰, for single precision."""

ERFC = (
    0.3580023023627799, 0.5889296354465882, 0.7869711428054602, 0.8279126984018953, 0.6374813935342736,
    0.2861571692819357, -0.025864888222537574, -0.12945330950590028, -0.0467890863892488,
    0.04723667370283339, 0.036714151531897755, -0.020750323197502772, -0.023850842940911506,
    0.012950508336676244, 0.015084303383519173, -0.01076876631683855, -0.008832751806374006,
    0.009491096507082887, 0.003908702384610681, -0.006684045591724546, -0.0006923802328835254,
    0.0023513608902736055,
)  # fmt: skip
"""erfc(z) exp(z²)/t, t = 3/(3 + z), in powers of t − ½ for z < 27.3, to 6·10⁻¹⁷, by the Remez algorithm."""

SHORT_ERFC = (
    0.4216127311985117, 0.64372141769093, 0.726261657968142, 0.5480120063019948, 0.181552630314136,
    -0.10775266431822937, -0.12366824586284372, 0.027152038637806696, 0.06791966331469862,
    -0.03340427919755116,
)  # fmt: skip
"""The function of `ERFC` with t = 2.5/(2.5 + z) for z < 10.1, to 2·10⁻⁸, from Chebyshev points."""


SINES = ("sin", "cos")
"""Functions with a branch-free form for arguments up to a limit, such as ``symad_near_sin`` up to 2²⁰."""

# $NAME is one of the constants below, $name a function of this module.
TEXT: dict[str, str] = {
    "bits": """#ifdef $FAST_FMA
#define FMA(a, b, c) $FUSED(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
typedef $BITS $bits;
typedef union { $REAL f; $BITS b; } $word;
static inline $REAL $as_real($BITS b) { $word w; w.b = b; return w.f; }
static inline $BITS $as_bits($REAL f) { $word w; w.f = f; return w.b; }
static inline $REAL $size($REAL x) { return $as_real($as_bits(x) & ~$SIGN); }
static inline $REAL $signed($REAL size, $REAL x) {
  return $as_real($as_bits(size) | ($as_bits(x) & $SIGN));
}
""",
    "exponential": """// k and twice the bias in the low bits, k = round(x/log 2)
static inline $BITS $multiple($REAL x) { return $as_bits(FMA(x, $LOG2E, $SHIFT)); }
// k stops where exp overflows; r goes on, so that infinity and NaN pass
static inline $BITS $stopped($BITS k, $BITS highest) {
  const $SIGNED given = ($SIGNED)k, most = ($SIGNED)highest;
  return ($BITS)(given < most ? given : most);
}
static inline $REAL $rest($REAL x, $BITS k) {
  const $REAL whole = $as_real(k) - $SHIFT;
  return FMA(-whole, $LN2_LOW, FMA(-whole, $LN2_HIGH, x));
}
// p 2^k in two steps: 2^k may be out of the range of normal numbers
static inline $REAL $scaled($REAL p, $BITS k) {
  const $BITS half = k >> 1;
  return p * $as_real(half << $MANTISSA) * $as_real((k - half) << $MANTISSA);
}
""",
    "exp": """static inline $REAL $exp($REAL x) {
  const $BITS k = $stopped($multiple(x), $HIGHEST);
  const $REAL r = $rest(x, k);
  return x < $EXP_LOW ? 0 : $scaled($EXP_OF_R, k);
}
""",
    "expm1": """static inline $REAL $expm1($REAL x) {
  const $BITS k = $stopped($multiple(x), $HIGHEST);
  const $REAL r = $rest(x, k), half = $as_real((k - ($BIAS + 1)) << $MANTISSA);
  const $REAL made = 2 * FMA(half, FMA(r * r, $EXP_TAIL, r), half - ($REAL)0.5);
  return x < $EXPM1_LOW ? -1 : $signed(made, x);
}
""",
    "tanh": """static inline $REAL $tanh($REAL x) {
  const $REAL size = $size(x), shifted = FMA(size, 2 * $LOG2E, $SHIFT - $BIAS);
  const $REAL k = shifted - ($SHIFT - $BIAS);
  const $REAL r = FMA(-k, ($REAL)0.5 * $LN2_LOW, FMA(-k, ($REAL)0.5 * $LN2_HIGH, size));
  const $REAL scale = $as_real($as_bits(shifted) << $MANTISSA);
  const $REAL u = FMA(scale, FMA(r * r, $RISE_TAIL, r), FMA(($REAL)0.5, scale, ($REAL)-0.5));
  return $signed(size > $TANH_HIGH ? 1 : u / (1 + u), x);
}
""",
    "sigmoid": """static inline $REAL $sigmoid($REAL x) {
  const $BITS k = $stopped($as_bits(FMA(x, -($LOG2E), $TINY_SHIFT)), $TINY_HIGHEST);
  const $REAL whole = $as_real(k) - $TINY_SHIFT;
  const $REAL r = FMA(-whole, $LN2_LOW, FMA(-whole, $LN2_HIGH, -x));
  return $TINY / (x > $SIGMOID_HIGH ? $TINY : FMA($EXP_OF_R, $as_real(k << $MANTISSA), $TINY));
}
""",
    "sech": """static inline $REAL $sech($REAL x) {  // 2e/(1 + e²), e = exp(−|x|)
  const $REAL e = $exp(x < 0 ? x : -x);
  return 2 * e / (1 + e * e);
}
""",
    "logarithm": """// bits of x over those of sqrt(1/2), and 2 more than twice the bias in the exponent
static inline $BITS $moved($REAL x) { return $as_bits(x) + ($OFFSET - $ROOT_HALF); }
static inline $REAL $fraction($BITS moved) { return $as_real((moved & $LOW_BITS) + $ROOT_HALF) - 1; }
static inline $REAL $exponent($BITS moved) { return $as_real((moved >> $MANTISSA) | $WHOLE_BITS); }
static inline $REAL $log_sum($REAL f, $REAL k) {  // log(1 + f) + k log 2
  $LOG_SUM
}
""",
    "log": """static inline $REAL $log($REAL x) {
  const $BITS moved = $moved(x < $SMALLEST ? x * $GROWN : x);
  const $REAL k = $exponent(moved) - (x < $SMALLEST ? $WHOLE + $GROWTH : $WHOLE);
  const $REAL made = $log_sum($fraction(moved), k), ordinary = x <= $LARGEST ? made : x;
  return x > 0 ? ordinary : x == 0 ? -$INFINITY_ : $NAN_;
}
""",
    "one more": """static inline $REAL $log_of_one_more($REAL x) {  // log(1 + x) for -1 < x < infinity
  const $REAL u = 1 + x, lost = x - (u - 1);
  const $BITS moved = $moved(u), twice = ($OFFSET + $TWO) - (moved & ~$LOW_BITS);  // 2/2^k
  const $REAL f = FMA(lost, ($REAL)0.5 * $as_real(twice), $fraction(moved));
  return $log_sum(f, $exponent(moved) - $WHOLE);
}
""",
    "log1p": """static inline $REAL $log1p($REAL x) {
  const $REAL u = 1 + x, made = $signed($size($log_of_one_more(x)), x);
  const $REAL ordinary = x <= $LARGEST ? made : x;
  return u > 0 ? ordinary : u == 0 ? -$INFINITY_ : $NAN_;
}
""",
    "softplus": """static inline $REAL $softplus($REAL x) {
  return (x > 0 ? x : 0) + $log_of_one_more($exp(-$size(x)));
}
""",
    "sines": """// sin(x + quadrant pi/2) for |x| <= $FAR: beyond, pi/2 needs more digits than are kept here
static inline $REAL $sine($REAL x, $BITS quadrant) {
  const $REAL shifted = FMA(x, $TWO_OVER_PI, $ROUNDED), n = shifted - $ROUNDED;
  $REST_OF_QUADRANTS
  const $REAL z = r * r, h = ($REAL)0.5 * z, one = 1 - h;
  const $REAL sine = FMA(r * z, $SIN_SERIES, r), cosine = one + FMA(z * z, $COS_SERIES, (1 - one) - h);
  const $BITS q = $as_bits(shifted) + quadrant;
  return $as_real($as_bits(q & 1 ? cosine : sine) ^ ((q << $QUADRANT_SIGN) & $SIGN));
}
static inline $BITS $far($REAL x) { return $size(x) > $FAR; }
""",
    "sin": """static inline $REAL $near_sin($REAL x) {
  const $REAL y = $sine($size(x), 0);
  return $as_real($as_bits(y) ^ ($as_bits(x) & $SIGN));
}
static inline $REAL $sin($REAL x) { return $far(x) ? $LIBRARY_SIN(x) : $near_sin(x); }
""",
    "cos": """static inline $REAL $near_cos($REAL x) { return $sine(x, 1); }
static inline $REAL $cos($REAL x) { return $far(x) ? $LIBRARY_COS(x) : $near_cos(x); }
""",
    "erfc": """static inline $REAL $erfc($REAL x) {
  const $REAL size = $size(x), t = $ERFC_POLE / ($ERFC_POLE + size), s = t - ($REAL)0.5;
  const $REAL h = $as_real($as_bits(size) & $LEADING), low = (size - h) * (size + h);
  const $BITS k = $multiple(-size * size);
  const $REAL r = $rest(-h * h, k) - low;
  const $REAL tail = size > $ERFC_HIGH ? 0 : $scaled(t * $ERFC_SERIES * $EXP_OF_R, k);
  return x < 0 ? 2 - tail : tail;
}
""",
}

NEEDS: dict[str, tuple[str, ...]] = {
    "exp": ("bits", "exponential"),
    "expm1": ("bits", "exponential"),
    "tanh": ("bits",),
    "sigmoid": ("bits", "exponential"),
    "sech": ("bits", "exponential", "exp"),
    "log": ("bits", "logarithm"),
    "log1p": ("bits", "logarithm", "one more"),
    "softplus": ("bits", "exponential", "exp", "logarithm", "one more"),
    "sin": ("bits", "sines"),
    "cos": ("bits", "sines"),
    "erfc": ("bits", "exponential"),
}
"""The functions that each function needs defined before it."""

LOG_BY_ARTANH = """const $REAL s = f / (2 + f), z = s * s, h = ($REAL)0.5 * f * f;
  const $REAL rest = s * FMA(z, $LOG_TAIL, h);
  return FMA(k, $LN2_HIGH, f - (h - FMA(k, $LN2_LOW, rest)));"""

LOG_BY_POWERS = """const $REAL one = FMA(f * f, $LOG_TAIL, f);
  return FMA(k, $LN2_HIGH, FMA(k, $LN2_LOW, one));"""

THREE_PARTS = """const $REAL t = x - n * 0x1.921fb54400000p+0, w = n * 0x1.0b4611a600000p-34, d = t - w;
  const $REAL r = d + (((t - d) - w) - n * 0x1.3198a2e037073p-69);"""

IN_DOUBLE = """const double t = (double)x - (double)n * 0x1.921fb54400000p+0;
  const $REAL r = ($REAL)(t - (double)n * 0x1.0b4611a626331p-34);"""

CONSTANTS: dict[str, dict[str, str]] = {
    "double": {
        "REAL": "double", "BITS": "unsigned long long", "SIGNED": "long long", "FAST_FMA": "FP_FAST_FMA",
        "FUSED": "fma", "SIGN": "0x8000000000000000ULL", "LOG2E": "1.4426950408889634",
        "SHIFT": "(0x1.8p52 + 2046)", "HIGHEST": "(0x43380000000007feULL + 1024)",
        "LN2_HIGH": "0x1.62e42fefa38p-1", "LN2_LOW": "0x1.ef35793c7673p-45",
        "BIAS": "1023", "MANTISSA": "52", "EXP_LOW": "-746.0", "EXPM1_LOW": "-40.0", "TANH_HIGH": "22.0",
        "SMALLEST": "0x1p-1022", "GROWN": "0x1p54", "GROWTH": "54", "LARGEST": "0x1.fffffffffffffp1023",
        "OFFSET": "(2048ULL << 52)", "ROOT_HALF": "0x3fe6a09e667f3bcdULL", "TWO": "0x4000000000000000ULL",
        "LOW_BITS": "0xfffffffffffffULL", "WHOLE_BITS": "0x4330000000000000ULL", "WHOLE": "(0x1p52 + 2048)",
        "LOG_SUM": LOG_BY_ARTANH, "LEADING": "0xfffffffff8000000ULL", "ERFC_POLE": "3.0", "ERFC_HIGH": "27.3",
        "TINY": "0x1p-54", "TINY_SHIFT": "(0x1.8p52 + 969)", "TINY_HIGHEST": "(0x4338000000000000ULL + 2044)",
        "SIGMOID_HIGH": "60.0", "TWO_OVER_PI": "0x1.45f306dc9c883p-1", "ROUNDED": "0x1.8p52", "FAR": "0x1p20",
        "REST_OF_QUADRANTS": THREE_PARTS, "QUADRANT_SIGN": "62", "LIBRARY_SIN": "sin", "LIBRARY_COS": "cos",
        "INFINITY_": "(1.0 / 0.0)", "NAN_": "(0.0 / 0.0)",
    },
    "float": {
        "REAL": "float", "BITS": "unsigned", "SIGNED": "int", "FAST_FMA": "FP_FAST_FMAF",
        "FUSED": "fmaf", "SIGN": "0x80000000U", "LOG2E": "1.442695041f",
        "SHIFT": "(0x1.8p23f + 254)", "HIGHEST": "(0x4b4000feU + 128)",
        "LN2_HIGH": "0x1.62e4p-1f", "LN2_LOW": "0x1.7f7d1cp-20f",
        "BIAS": "127", "MANTISSA": "23", "EXP_LOW": "-104.5f", "EXPM1_LOW": "-20.0f", "TANH_HIGH": "10.0f",
        "SMALLEST": "0x1p-126f", "GROWN": "0x1p25f", "GROWTH": "25", "LARGEST": "0x1.fffffep127f",
        "OFFSET": "(256U << 23)", "ROOT_HALF": "0x3f3504f3U", "TWO": "0x40000000U",
        "LOW_BITS": "0x7fffffU", "WHOLE_BITS": "0x4b000000U", "WHOLE": "(0x1p23f + 256)",
        "LOG_SUM": LOG_BY_POWERS, "ERFC_POLE": "2.5f", "ERFC_HIGH": "10.1f", "LEADING": "0xfffff000U",
        "TINY": "0x1p-24f", "TINY_SHIFT": "(0x1.8p23f + 103)", "TINY_HIGHEST": "(0x4b400000U + 253)",
        "SIGMOID_HIGH": "30.0f", "TWO_OVER_PI": "0x1.45f306p-1f", "ROUNDED": "0x1.8p23f", "FAR": "0x1p20f",
        "REST_OF_QUADRANTS": IN_DOUBLE, "QUADRANT_SIGN": "30", "LIBRARY_SIN": "sinf", "LIBRARY_COS": "cosf",
        "INFINITY_": "(1.0f / 0.0f)", "NAN_": "(0.0f / 0.0f)",
    },
}  # fmt: skip

SERIES: dict[str, dict[str, tuple[str, Sequence[float]]]] = {
    "double": {
        "EXP_TAIL": ("r", EXP), "LOG_TAIL": ("z", LOG), "SIN_SERIES": ("z", SIN), "COS_SERIES": ("z", COS),
        "ERFC_SERIES": ("s", ERFC),
    },
    "float": {
        "EXP_TAIL": ("r", SHORT_EXP), "LOG_TAIL": ("f", (-0.5, *SHORT_LOG)), "SIN_SERIES": ("z", SHORT_SIN),
        "COS_SERIES": ("z", SHORT_COS), "ERFC_SERIES": ("s", SHORT_ERFC),
    },
}  # fmt: skip
"""The variables and the coefficients of polynomials."""

FLAT = """\
#ifdef __GNUC__
#define FLAT __attribute__((flatten, unused))  /* all calls inline: else no vector instructions */
#else
#define FLAT
#endif
"""

LOOP = """\
static FLAT void ${name}_all(double *restrict p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8)
        for (size_t k = 0; k < 8; ++k) p[k] = $f(p[k]);
    for (size_t k = 0; k < n; ++k) p[k] = $f(p[k]);
}
"""

LOOP_OF_SINES = """\
static FLAT void ${name}_all(double *restrict p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        unsigned long long far = 0;
        for (size_t k = 0; k < 8; ++k) far |= $far(p[k]);
        if (far) for (size_t k = 0; k < 8; ++k) p[k] = $f(p[k]);
        else for (size_t k = 0; k < 8; ++k) p[k] = $near(p[k]);
    }
    for (size_t k = 0; k < n; ++k) p[k] = $f(p[k]);
}
"""

VECTORS = ("exp", "tanh", "sigmoid", "sech", "log", *SINES)

LOOPS = {name: LOOP_OF_SINES if name in SINES else LOOP for name in VECTORS}
"""The loops of functions that scalar code evaluates on several arguments at a time."""


def array_name(name: str) -> str:
    """The name of a function of this module in kernels of arrays."""
    return f"symad_{name}"


def definitions(
    names: Iterable[str],
    real: str,
    series: Callable[..., str] | None = None,
    called: Callable[[str], str] = array_name,
) -> str:
    """The C text of some functions and of the functions they need, in order; it needs math.h."""
    wanted = set(names)
    while missing := {need for name in wanted for need in NEEDS.get(name, ())} - wanted:
        wanted |= missing
    constants = CONSTANTS[real] | _polynomials(real, series or horner)

    def named(name: str) -> str:
        return filled(constants[name], named) if name in constants else called(name)

    return filled("".join(TEXT[name] for name in TEXT if name in wanted), named)


def math_source(names: Iterable[str], called: Callable[[str], str]) -> str:
    """C in double precision: each function of x, and ``f_all(p, n)``, which applies it to n numbers in place.

    It needs math.h and stddef.h.
    """
    chosen = [name for name in LOOPS if name in set(names)]
    text = definitions(chosen, "double", estrin, called)
    for name in chosen:
        used = {"name": name, "f": called(name), "near": called(f"near_{name}"), "far": called("far")}
        text += (FLAT if name == chosen[0] else "") + filled(LOOPS[name], used.__getitem__)
    return text


@cache
def _polynomials(real: str, series: Callable[..., str]) -> dict[str, str]:
    suffix = "f" if real == "float" else ""
    made = {name: series(c, x, suffix) for name, (x, c) in SERIES[real].items()}
    _, tail = SERIES[real]["EXP_TAIL"]
    rise = [c * 2.0 ** (k + 1) for k, c in enumerate(tail)]  # (exp 2r - 1)/2 = r + r^2 (...)
    # in one polynomial if that takes no more roundings
    exp = horner((1.0, 1.0, *tail), "r", suffix) if series is horner else "(1 + FMA(r * r, $EXP_TAIL, r))"
    return made | {"RISE_TAIL": series(rise, "r", suffix), "EXP_OF_R": exp}


def horner(coefficients: Sequence[float], x: str, suffix: str) -> str:
    """Σ c_k x^k in C with the fewest operations."""
    text = f"{coefficients[-1]!r}{suffix}"
    for c in reversed(coefficients[:-1]):
        text = f"FMA({text}, {x}, {c!r}{suffix})"
    return text


def estrin(coefficients: Sequence[float], x: str, suffix: str) -> str:
    """Σ c_k x^k in C by Estrin's scheme: both halves are evaluated in parallel."""
    terms, power = [f"{c!r}{suffix}" for c in coefficients], x
    while len(terms) > 1:
        odd = terms[-1:] if len(terms) % 2 else []
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [f"FMA({power}, {high}, {low})" for low, high in pairs] + odd
        power = f"({power} * {power})"
    return terms[0]
