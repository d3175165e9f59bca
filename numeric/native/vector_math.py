"""Elementary functions as branch-free C, so that a compiler turns loops over them into vector code.

The C library's functions are calls, one element at a time. These are polynomials after a reduction of the
argument, written with selections instead of branches:

- exp x = 2ᵏ(1 + r + r²P(r)), k = round(x/log 2), r = x − k log 2 in two parts, |r| ≤ (log 2)/2;
- log x = k log 2 + 2 artanh s, x = 2ᵏm, 1/√2 ≤ m < √2, s = (m − 1)/(m + 1);
- tanh x = u/(u + 2) with u = exp(2x) − 1, which keeps its leading digits near 0;
- erfc z = t exp(P(t) − z²), t = 2/(2 + z), for z ≥ 0 (single precision).

Infinities, NaN, zeros and subnormal numbers are as in the C library. Errors are a few units in the last
place, which tests/numeric/test_vector_math.py measures.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.numeric.printers.c_math import EXP_TAIL, LOG_TAIL

# REAL, INT, F and the constants below are replaced for each precision.
TEXT: dict[str, str] = {
    "bits": """typedef union { REAL f; INT i; } symad_bits;
static inline REAL symad_as_real(INT i) { symad_bits b; b.i = i; return b.f; }
static inline INT symad_as_bits(REAL f) { symad_bits b; b.f = f; return b.i; }
""",
    "exponential": """static inline REAL symad_reduced(REAL x, REAL *r, INT *k) {
  const REAL shifted = x * LOG2E + SHIFT, whole = shifted - SHIFT;
  const REAL rest = (x - whole * LN2_HIGH) - whole * LN2_LOW;
  *k = symad_as_bits(shifted) - symad_as_bits(SHIFT);
  *r = rest;
  return EXP_SERIES;  // exp(rest) - 1
}
static inline REAL symad_power_of_two(INT k) { return symad_as_real((k + BIAS) << MANTISSA); }
""",
    "exp": """static inline REAL symad_exp(REAL x) {
  const REAL above = x > EXP_HIGH ? EXP_HIGH : x, y = above < EXP_LOW ? EXP_LOW : above;
  REAL r;
  INT k;
  const REAL more = symad_reduced(y, &r, &k);
  const INT half = k >> 1;
  return (1 + more) * symad_power_of_two(half) * symad_power_of_two(k - half);
}
""",
    "expm1": """static inline REAL symad_expm1(REAL x) {
  const REAL above = x > EXP_HIGH ? EXP_HIGH : x, y = above < EXPM1_LOW ? EXPM1_LOW : above;
  REAL r;
  INT k;
  const REAL more = symad_reduced(y, &r, &k);
  const INT half = k >> 1;
  const REAL one = symad_power_of_two(half), other = symad_power_of_two(k - half);
  const REAL made = k > BIAS ? (1 + more) * one * other : more * (one * other) + (one * other - 1);
  return x == 0 ? x : made;
}
""",
    "tanh": """static inline REAL symad_tanh(REAL x) {
  const REAL size = x < 0 ? -x : x, y = size > TANH_HIGH ? 2 * TANH_HIGH : 2 * size;
  REAL r;
  INT k;
  const REAL more = symad_reduced(y, &r, &k), scale = symad_power_of_two(k);
  const REAL u = more * scale + (scale - 1), made = u / (u + 2);
  return x == 0 ? x : x < 0 ? -made : made;
}
""",
    "log": """static inline REAL symad_log(REAL x) {
  const REAL scaled = x < SMALLEST ? x * GROWN : x;
  const INT bits = symad_as_bits(scaled), moved = bits - ROOT_HALF, k = moved >> MANTISSA;
  const REAL m = symad_as_real(bits - (k << MANTISSA)), s = (m - 1) / (m + 1), z = s * s;
  const REAL whole = (REAL)(x < SMALLEST ? k - GROWTH : k);
  const REAL half = (REAL)0.5 * (m - 1) * (m - 1), rest = s * (half + z * (LOG_SERIES)) + whole * LN2_LOW;
  const REAL made = whole * LN2_HIGH - ((half - rest) - (m - 1));
  const REAL positive = x > LARGEST ? x : made;
  return x > 0 ? positive : x == 0 ? -INFINITY_ : x - x + NAN_;
}
""",
    "log1p": """static inline REAL symad_log1p(REAL x) {
  const REAL u = 1 + x, lost = (x - (u - 1)) / u, made = symad_log(u);
  return u > 0 && u <= LARGEST && x != 0 ? made + lost : x == 0 ? x : made;
}
""",
    "erfc": """static inline REAL symad_erfc(REAL x) {
  const REAL size = x < 0 ? -x : x, z = size > 20 ? 20 : size, t = 1 / (1 + (REAL)0.5 * z);
  const REAL h = symad_as_real(symad_as_bits(z) & ~(INT)0xfff), low = (z - h) * (z + h);
  const REAL made = t * symad_exp((ERFC_SERIES) - low) * symad_exp(-h * h);
  return x != x ? x : x < 0 ? 2 - made : made;
}
""",
}

NEEDS: dict[str, tuple[str, ...]] = {
    "exp": ("bits", "exponential"),
    "expm1": ("bits", "exponential"),
    "tanh": ("bits", "exponential"),
    "log": ("bits",),
    "log1p": ("bits", "log"),
    "erfc": ("bits", "exponential", "exp"),
}
"""What each function needs before it."""

ORDER = tuple(TEXT)

ERFC = (
    -1.2655122103075869, 1.000020943046116, 0.37417608818367715, 0.09577241223365032, -0.18006151231337936,
    0.25671506729831634, -1.0869556590563945, 1.423171945188338, -0.7684580854035477, 0.14636138445251246,
    0.004769650990903117,
)  # fmt: skip
"""P for single precision: interpolation at Chebyshev points; see `symad.numeric.steps`."""


def _horner(coefficients: Sequence[float], name: str, suffix: str) -> str:
    text = f"{coefficients[-1]!r}{suffix}"
    for c in reversed(coefficients[:-1]):
        text = f"({text} * {name} + {c!r}{suffix})"
    return text


def _exp_series(tail: Sequence[float], suffix: str) -> str:
    """r + r²(1/2 + r/6 + …), the small part added last."""
    return f"rest + rest * rest * {_horner(tail, 'rest', suffix)}"


SHORT_EXP = (0.5, 0.16666576666119928, 0.04166655421298415, 0.008363232883682618, 0.0013926250831497611)
"""(exp r − 1 − r)/r² in powers of r to 7·10⁻⁸, for single precision: interpolated at Chebyshev points."""

SHORT_LOG = (0.6666666655404201, 0.4000012221181065, 0.28550778633191964, 0.23331614471843498)
"""(2 artanh(s)/s − 2)/s² in powers of s² to 10⁻⁹."""


CONSTANTS: dict[str, dict[str, str]] = {
    "double": {
        "REAL": "double", "INT": "long long", "LOG2E": "1.4426950408889634", "SHIFT": "0x1.8p52",
        "LN2_HIGH": "0x1.62e42fefa38p-1", "LN2_LOW": "0x1.ef35793c7673p-45",
        "EXP_SERIES": _exp_series(EXP_TAIL, ""),
        "BIAS": "1023", "MANTISSA": "52", "EXP_HIGH": "710.0", "EXP_LOW": "-746.0", "EXPM1_LOW": "-40.0",
        "TANH_HIGH": "22.0", "SMALLEST": "0x1p-1022", "GROWN": "0x1p54", "GROWTH": "54",
        "ROOT_HALF": "0x3fe6a09e667f3bcdLL", "LOG_SERIES": _horner(LOG_TAIL, "z", ""),
        "LARGEST": "0x1.fffffffffffffp1023",
        "INFINITY_": "(1.0 / 0.0)", "NAN_": "(0.0 / 0.0)",
    },
    "float": {
        "REAL": "float", "INT": "int", "LOG2E": "1.442695041f", "SHIFT": "0x1.8p23f",
        "LN2_HIGH": "0x1.62e4p-1f", "LN2_LOW": "0x1.7f7d1cp-20f", "EXP_SERIES": _exp_series(SHORT_EXP, "f"),
        "BIAS": "127", "MANTISSA": "23", "EXP_HIGH": "89.0f", "EXP_LOW": "-104.5f", "EXPM1_LOW": "-20.0f",
        "TANH_HIGH": "10.0f", "SMALLEST": "0x1p-126f", "GROWN": "0x1p25f", "GROWTH": "25",
        "ROOT_HALF": "0x3f3504f3", "LOG_SERIES": _horner(SHORT_LOG, "z", "f"), "LARGEST": "0x1.fffffep127f",
        "INFINITY_": "(1.0f / 0.0f)", "NAN_": "(0.0f / 0.0f)", "ERFC_SERIES": _horner(ERFC, "t", "f"),
    },
}  # fmt: skip


def available(name: str, real: str) -> bool:
    """Whether there is a vector form of a function in a precision."""
    return name in NEEDS and (name != "erfc" or real == "float")


def definitions(names: set[str], real: str) -> str:
    """The C text of some functions, with what they need, in order."""
    wanted = set(names)
    while missing := {need for name in wanted for need in NEEDS.get(name, ())} - wanted:
        wanted |= missing
    text = "".join(TEXT[name] for name in ORDER if name in wanted)
    for word in sorted(CONSTANTS[real], key=len, reverse=True):
        text = text.replace(word, CONSTANTS[real][word])
    return text
