"""Elementary functions as branch-free C, so that a compiler turns loops over them into vector code.

The C library's functions are calls, one element at a time. These are polynomials after a reduction of the
argument, written with selections instead of branches:

- exp x = 2ᵏ exp r, k = round(x/log 2), r = x − k log 2 in two parts, |r| ≤ (log 2)/2;
- tanh x = ±u/(1 + u) with u = (exp 2|x| − 1)/2, which keeps its leading digits near 0;
- σ(x) = (1 or e)/(1 + e), e = exp(−|x|);
- log x = k log 2 + log(1 + f), √½ ≤ 1 + f < √2: a polynomial in single precision, 2 artanh(f/(2 + f)) in
  double;
- log(1 + x) is log u for u = 1 + x rounded, what was lost added to f;
- erfc z = t P(t) exp(−z²), t = c/(c + z), for z ≥ 0, with z² as h² + (z − h)(z + h), h of few digits.

Adding 1.5·2ᵐ (m bits of mantissa) rounds to an integer, which the low bits then hold; a shift makes 2ᵏ of
them. Range reduction after Cody and Waite, "Software Manual for the Elementary Functions" (1980), chapters 5,
6 and 13. Infinities, NaN, zeros and subnormal numbers are as in the C library. Errors are a few units in the
last place, which tests/numeric/test_vector_math.py measures.

A loop over one of these is as fast as its number of vector instructions: Horner's scheme has the fewest,
comparisons are avoided, and one division runs beside the rest for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from symad.numeric.printers.c_math import EXP_TAIL, LOG_TAIL

# REAL, BITS, SIGNED and the constants below are replaced for each precision.
TEXT: dict[str, str] = {
    "bits": """#ifdef FAST_FMA
#define FMA(a, b, c) FUSED(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
typedef union { REAL f; BITS b; } symad_word;
static inline REAL symad_as_real(BITS b) { symad_word w; w.b = b; return w.f; }
static inline BITS symad_as_bits(REAL f) { symad_word w; w.f = f; return w.b; }
static inline REAL symad_size(REAL x) { return symad_as_real(symad_as_bits(x) & ~SIGN); }
static inline REAL symad_signed(REAL size, REAL x) {
  return symad_as_real(symad_as_bits(size) | (symad_as_bits(x) & SIGN));
}
""",
    "exponential": """// k + 2 BIAS in the low bits, k = round(x/log 2)
static inline BITS symad_multiple(REAL x) { return symad_as_bits(FMA(x, LOG2E, SHIFT)); }
// k stops where exp overflows; r goes on, so that infinity and NaN pass
static inline BITS symad_finite(BITS k) {
  const SIGNED given = (SIGNED)k, most = (SIGNED)HIGHEST;
  return (BITS)(given < most ? given : most);
}
static inline REAL symad_rest(REAL x, BITS k) {
  const REAL whole = symad_as_real(k) - SHIFT;
  return FMA(-whole, LN2_LOW, FMA(-whole, LN2_HIGH, x));
}
// p 2^k in two steps: 2^k may be out of the range of normal numbers
static inline REAL symad_scaled(REAL p, BITS k) {
  const BITS half = k >> 1;
  return p * symad_as_real(half << MANTISSA) * symad_as_real((k - half) << MANTISSA);
}
""",
    "exp": """static inline REAL symad_exp(REAL x) {
  const BITS k = symad_finite(symad_multiple(x));
  const REAL r = symad_rest(x, k);
  return x < EXP_LOW ? 0 : symad_scaled(EXP_OF_R, k);
}
""",
    "expm1": """static inline REAL symad_expm1(REAL x) {
  const BITS k = symad_finite(symad_multiple(x));
  const REAL r = symad_rest(x, k), half = symad_as_real((k - (BIAS + 1)) << MANTISSA);
  const REAL made = 2 * FMA(half, EXPM1_OF_R, half - (REAL)0.5);
  return x < EXPM1_LOW ? -1 : symad_signed(made, x);
}
""",
    "tanh": """static inline REAL symad_tanh(REAL x) {
  const REAL size = symad_size(x), shifted = FMA(size, 2 * LOG2E, SHIFT - BIAS), k = shifted - (SHIFT - BIAS);
  const REAL r = FMA(-k, (REAL)0.5 * LN2_LOW, FMA(-k, (REAL)0.5 * LN2_HIGH, size));
  const REAL scale = symad_as_real(symad_as_bits(shifted) << MANTISSA);
  const REAL u = FMA(scale, RISE_OF_R, FMA((REAL)0.5, scale, (REAL)-0.5));
  return symad_signed(size > TANH_HIGH ? 1 : u / (1 + u), x);
}
""",
    "sigmoid": """static inline REAL symad_sigmoid(REAL x) {
  const REAL size = symad_size(x);
  const BITS k = symad_multiple(-size);
  const REAL r = symad_rest(-size, k), e = size > -(EXP_LOW) ? 0 : symad_scaled(EXP_OF_R, k);
  return (x < 0 ? e : 1) / (1 + e);
}
""",
    "logarithm": """// bits of x over those of sqrt(1/2), and 2 BIAS + 2 more in the exponent
static inline BITS symad_moved(REAL x) { return symad_as_bits(x) + (OFFSET - ROOT_HALF); }
static inline REAL symad_fraction(BITS moved) { return symad_as_real((moved & LOW_BITS) + ROOT_HALF) - 1; }
static inline REAL symad_exponent(BITS moved) { return symad_as_real((moved >> MANTISSA) | WHOLE_BITS); }
static inline REAL symad_log_sum(REAL f, REAL k) {  // log(1 + f) + k log 2
  LOG_SUM
}
""",
    "log": """static inline REAL symad_log(REAL x) {
  const BITS moved = symad_moved(x < SMALLEST ? x * GROWN : x);
  const REAL k = symad_exponent(moved) - (x < SMALLEST ? WHOLE + GROWTH : WHOLE);
  const REAL made = symad_log_sum(symad_fraction(moved), k), ordinary = x <= LARGEST ? made : x;
  return x > 0 ? ordinary : x == 0 ? -INFINITY_ : NAN_;
}
""",
    "log1p": """static inline REAL symad_log1p(REAL x) {
  const REAL u = 1 + x, lost = x - (u - 1);
  const BITS moved = symad_moved(u), twice = (OFFSET + TWO) - (moved & ~LOW_BITS);  // 2/2^k
  const REAL f = FMA(lost, (REAL)0.5 * symad_as_real(twice), symad_fraction(moved));
  const REAL made = symad_signed(symad_size(symad_log_sum(f, symad_exponent(moved) - WHOLE)), x);
  const REAL ordinary = x <= LARGEST ? made : x;
  return u > 0 ? ordinary : u == 0 ? -INFINITY_ : NAN_;
}
""",
    "erfc": """static inline REAL symad_erfc(REAL x) {
  const REAL size = symad_size(x), t = ERFC_POLE / (ERFC_POLE + size), s = t - (REAL)0.5;
  const REAL h = symad_as_real(symad_as_bits(size) & LEADING), low = (size - h) * (size + h);
  const BITS k = symad_multiple(-size * size);
  const REAL r = symad_rest(-h * h, k) - low;
  const REAL tail = size > ERFC_HIGH ? 0 : symad_scaled(t * ERFC_SERIES * EXP_OF_R, k);
  return x < 0 ? 2 - tail : tail;
}
""",
}

NEEDS: dict[str, tuple[str, ...]] = {
    "exp": ("bits", "exponential"),
    "expm1": ("bits", "exponential"),
    "tanh": ("bits",),
    "sigmoid": ("bits", "exponential"),
    "log": ("bits", "logarithm"),
    "log1p": ("bits", "logarithm"),
    "erfc": ("bits", "exponential"),
}
"""What each function needs before it."""

ORDER = tuple(TEXT)

ERFC = (
    0.27399891525012277, 0.4882743645404412, 0.7732087022652409, 1.081707662626376, 1.3234063515111643,
    1.392087497931815, 1.2221042386275824, 0.8438417061317337, 0.39117155852426544, 0.035962761098435665,
    -0.11649340348801858, -0.09052872586477818, -0.003723599182766651, 0.038634810575785536,
    0.019237915068485625, -0.011734956825889218, -0.013902457527569367, 0.0028466385695353896,
    0.008149675856155215, -0.0012602500661354759, -0.0036282148540221887, 0.0014504759984193898,
)  # fmt: skip
"""erfc(z) exp(z²)/t, t = 4/(4 + z), in powers of t − ½ for z < 27.3: to 2·10⁻¹⁷, after Remez."""

SHORT_ERFC = (
    0.35800230212168416, 0.5889296401971543, 0.7869712197100099, 0.8279110520861168, 0.6374789273510163,
    0.2862544131641469, -0.025960621965179082, -0.13130087411719243, -0.04265914027159348,
    0.057021262376095595,
)  # fmt: skip
"""The same with t = 3/(3 + z) for z < 10.1: to 6·10⁻⁹, interpolated at Chebyshev points."""

SHORT_EXP = (0.5, 0.16666576666119928, 0.04166655421298415, 0.008363232883682618, 0.0013926250831497611)
"""(exp r − 1 − r)/r² in powers of r to 7·10⁻⁸, for single precision: interpolated at Chebyshev points."""

SHORT_LOG = (
    0.33333316891440773, -0.2500078311979796, 0.20002276483826895, -0.16625373697310125,
    0.14181680424006196, -0.13121961617489872, 0.12876615510806821, -0.07870836848401579,
)  # fmt: skip
"""(log(1 + f) − f + f²/2)/f³ in powers of f: the result to 6·10⁻⁹, after Remez."""


def _horner(coefficients: Sequence[float], name: str, suffix: str) -> str:
    text = f"{coefficients[-1]!r}{suffix}"
    for c in reversed(coefficients[:-1]):
        text = f"FMA({text}, {name}, {c!r}{suffix})"
    return text


def _exponentials(tail: Sequence[float], suffix: str) -> dict[str, str]:
    """exp r, exp r − 1, and (exp 2r − 1)/2."""
    rise = [c * 2.0 ** (k + 1) for k, c in enumerate(tail)]
    return {
        "EXP_OF_R": _horner((1.0, 1.0, *tail), "r", suffix),
        "EXPM1_OF_R": f"FMA(r * r, {_horner(tail, 'r', suffix)}, r)",
        "RISE_OF_R": f"FMA(r * r, {_horner(rise, 'r', suffix)}, r)",
    }


LOG_BY_ARTANH = f"""const REAL s = f / (2 + f), z = s * s, h = (REAL)0.5 * f * f;
  const REAL rest = s * FMA(z, {_horner(LOG_TAIL, "z", "")}, h);
  return FMA(k, LN2_HIGH, f - (h - FMA(k, LN2_LOW, rest)));"""

LOG_BY_POWERS = f"""const REAL one = FMA(f * f, {_horner((-0.5, *SHORT_LOG), "f", "f")}, f);
  return FMA(k, LN2_HIGH, FMA(k, LN2_LOW, one));"""

CONSTANTS: dict[str, dict[str, str]] = {
    "double": {
        "REAL": "double", "BITS": "unsigned long long", "SIGNED": "long long", "FAST_FMA": "FP_FAST_FMA",
        "FUSED": "fma", "SIGN": "0x8000000000000000ULL", "LOG2E": "1.4426950408889634",
        "SHIFT": "(0x1.8p52 + 2046)", "HIGHEST": "(0x43380000000007feULL + 1024)",
        "LN2_HIGH": "0x1.62e42fefa38p-1", "LN2_LOW": "0x1.ef35793c7673p-45", **_exponentials(EXP_TAIL, ""),
        "BIAS": "1023", "MANTISSA": "52", "EXP_LOW": "-746.0", "EXPM1_LOW": "-40.0", "TANH_HIGH": "22.0",
        "SMALLEST": "0x1p-1022", "GROWN": "0x1p54", "GROWTH": "54", "LARGEST": "0x1.fffffffffffffp1023",
        "OFFSET": "(2048ULL << 52)", "ROOT_HALF": "0x3fe6a09e667f3bcdULL", "TWO": "0x4000000000000000ULL",
        "LOW_BITS": "0xfffffffffffffULL", "WHOLE_BITS": "0x4330000000000000ULL", "WHOLE": "(0x1p52 + 2048)",
        "LOG_SUM": LOG_BY_ARTANH, "ERFC_POLE": "4.0", "ERFC_HIGH": "27.3", "LEADING": "0xfffffffff8000000ULL",
        "ERFC_SERIES": _horner(ERFC, "s", ""), "INFINITY_": "(1.0 / 0.0)", "NAN_": "(0.0 / 0.0)",
    },
    "float": {
        "REAL": "float", "BITS": "unsigned", "SIGNED": "int", "FAST_FMA": "FP_FAST_FMAF",
        "FUSED": "fmaf", "SIGN": "0x80000000U", "LOG2E": "1.442695041f",
        "SHIFT": "(0x1.8p23f + 254)", "HIGHEST": "(0x4b4000feU + 128)",
        "LN2_HIGH": "0x1.62e4p-1f", "LN2_LOW": "0x1.7f7d1cp-20f", **_exponentials(SHORT_EXP, "f"),
        "BIAS": "127", "MANTISSA": "23", "EXP_LOW": "-104.5f", "EXPM1_LOW": "-20.0f", "TANH_HIGH": "10.0f",
        "SMALLEST": "0x1p-126f", "GROWN": "0x1p25f", "GROWTH": "25", "LARGEST": "0x1.fffffep127f",
        "OFFSET": "(256U << 23)", "ROOT_HALF": "0x3f3504f3U", "TWO": "0x40000000U",
        "LOW_BITS": "0x7fffffU", "WHOLE_BITS": "0x4b000000U", "WHOLE": "(0x1p23f + 256)",
        "LOG_SUM": LOG_BY_POWERS, "INFINITY_": "(1.0f / 0.0f)", "NAN_": "(0.0f / 0.0f)",
        "ERFC_POLE": "3.0f", "ERFC_HIGH": "10.1f",
        "LEADING": "0xfffff000U", "ERFC_SERIES": _horner(SHORT_ERFC, "s", "f"),
    },
}  # fmt: skip


def available(name: str, real: str) -> bool:
    """Whether there is a vector form of a function in a precision."""
    return name in NEEDS


def definitions(names: set[str], real: str) -> str:
    """The C text of some functions, with what they need, in order."""
    wanted = set(names)
    while missing := {need for name in wanted for need in NEEDS.get(name, ())} - wanted:
        wanted |= missing
    text = "".join(TEXT[name] for name in ORDER if name in wanted)
    chosen = CONSTANTS[real]
    words = re.compile(rf"\b({'|'.join(chosen)})\b")
    for _ in range(2):  # series have constants of their own
        text = words.sub(lambda found: chosen[found[1]], text)
    return text
