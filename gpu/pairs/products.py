"""Kernel sums on tensor cores: functions of inner products and norms of points with 32 to 128 components.

With σ_r = a_r ⟨x, y⟩ + b_r |x|² + c_r |y|², f(x, y) = F(σ, θ) needs one matrix product for all pairs. If the
option is set (`symad.gpu.options(pair_products=...)`), values and gradients in float32 are computed this way.
The errors are below

    "tf32x3"   2⁻¹⁹ (|x|² + |y|²) for |x − y|², 2⁻²⁰ |x| |y| for ⟨x, y⟩: 22 bits of each factor, float32 sums;
    "bf16"     2⁻⁸ (|x| + |y|) for |x − y|, 2⁻⁷ |x| |y| for ⟨x, y⟩: the sums of points rounded to 8 bits.

A pair's term in x̄_i is A y_j + B x_i, where A = c ∂F/∂σ·a, B = 2 c ∂F/∂σ·b and c is the cotangent of f. For
given A and B its error is below 2⁻¹⁹ or 2⁻⁷ times |A y_j| + |B x_i|, and likewise for ȳ_j.

Points far from the origin lose digits: subtract their mean first.
"""

from __future__ import annotations

import sympy as sp

from symad.gpu.attention_kernels.plan import ELEMENTS as ELEMENT_TYPES
from symad.gpu.compile import kernel_text
from symad.gpu.device_formulas import Device
from symad.gpu.pairs.kernel_text import PairPlan, pair_text
from symad.numeric.pairs.pair_functions import PairFunction, X, Y

MIN_COMPONENTS, MAX_COMPONENTS = 32, 128
"""Components of a point for which tensor cores are used. The minimum is an estimate from instruction counts.
Up to the maximum, a point fits in a thread's registers and the error bounds hold."""

ELEMENTS = {"tf32x3": ELEMENT_TYPES["float32"], "bf16": ELEMENT_TYPES["bfloat16"]}
ROWS = 64


def has_products(function: PairFunction) -> bool:
    """Whether a pair function depends on inner products and norms only, of points the kernel supports."""
    fits = MIN_COMPONENTS <= function.dimension <= MAX_COMPONENTS
    return fits and not function.loose and _coefficients(function) is not None


def payload_columns(dimension: int, columns: int, kind: str) -> int:
    """The payload columns of a launch: a lane keeps their sums for its rows in registers without spilling."""
    return min(columns, 4 if kind == "tf32x3" and dimension > 64 else 8)


def products_source(function: PairFunction, sizes: PairPlan, reduce: str, kind: str) -> str:
    """The complete source of the kernel."""
    element = ELEMENTS[kind]
    rows = _coefficients(function) or []
    lines, weights = [], ["  cross = 0, own_x = 0, own_y = 0;"]
    for r, (a, b, c) in enumerate(rows):
        value = f"Real({a!r}) * s + Real({b!r}) * nx + Real({c!r}) * ny"
        if a**2 <= 4 * b * c:  # a form of one sign, which rounding may have violated
            value = f"{'fmaxf' if b + c > 0 else 'fminf'}({value}, Real(0))"
        lines.append(f"  sigma[{r}] = {value};")
        parts = {"cross": a, "own_x": 2 * b, "own_y": 2 * c}
        weights += [f"  {name} += Real({factor!r}) * e[{r}];" for name, factor in parts.items() if factor]
    weights.append("  cross *= w, own_x *= w, own_y *= w;")
    return "\n".join(
        [
            "#define SYMAD_REAL float",
            f"#define SYMAD_ELEMENT_BITS {8 * element.bytes}",
            kernel_text("prims.h", "tile.h", "matrix.h", "product.h"),
            pair_text(function, sizes, reduce, Device("float")),
            f"typedef {element.name} E;",
            f"constexpr int DEPTH = {_depth(function.dimension, kind)};",
            f"constexpr int PRODUCT_COLUMNS = {payload_columns(function.dimension, sizes.columns, kind)};",
            "DEVICE void pair_sigma(Real s, Real nx, Real ny, Real* sigma) {",
            *lines,
            "}",
            "DEVICE void pair_weights(const Real* e, Real w, Real& cross, Real& own_x, Real& own_y) {",
            *weights,
            "}",
            kernel_text("pair_products.cu"),
        ]
    )


def products_bytes(dimension: int, columns: int, kind: str) -> int:
    """The shared memory of a block: two tiles of points, their norms, the payload, and statistics."""
    width = _depth(dimension, kind) * ELEMENTS[kind].bytes
    pitch = 32 if width <= 32 else 64 if width <= 64 else -(-width // 128) * 128
    return 2 * ROWS * pitch + 4 * ROWS * (4 + payload_columns(dimension, columns, kind))


def _depth(dimension: int, kind: str) -> int:
    """The components of a point in a tile."""
    multiple = ELEMENTS[kind].multiple
    return -(-dimension // multiple) * multiple


def _coefficients(function: PairFunction) -> list[tuple[float, float, float]] | None:
    """(a, b, c) of each sum a Σ x_k y_k + b Σ x_k² + c Σ y_k²; None if a sum has another form."""
    found = []
    for part in function.sums:
        try:
            terms = sp.Poly(part.term, X, Y).as_dict()
        except sp.PolynomialError:
            return None
        if set(terms) - {(1, 1), (2, 0), (0, 2)} or not all(c.is_number for c in terms.values()):
            return None
        a, b, c = (float(terms.get(powers, 0)) for powers in ((1, 1), (2, 0), (0, 2)))
        found.append((a, b, c))
    return found
