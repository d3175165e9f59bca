"""Kernel sums on tensor cores: functions of inner products and norms of points with 32 components or more.

With σ_r = a_r ⟨x, y⟩ + b_r |x|² + c_r |y|², f(x, y) = F(σ, θ) needs one product of matrices for all pairs.
Where it is asked for by name (`symad.gpu.options(pair_products=...)`), values in float32 are computed so;
gradients and everything else run on the kernels of ordinary arithmetic. For at most 128 components the
errors are below

    "tf32x3"   2⁻¹⁹ (|x|² + |y|²) for |x − y|², 2⁻²⁰ |x| |y| for ⟨x, y⟩: 22 bits of each factor, float32 sums;
    "bf16"     2⁻⁸ (|x| + |y|) for |x − y|, 2⁻⁷ |x| |y| for ⟨x, y⟩: the sums of points rounded to 8 bits.

Points far from the origin lose digits: subtract their mean before.
"""

from __future__ import annotations

import sympy as sp

from symad.gpu.compile import kernel_text
from symad.gpu.pairs.kernel_text import PairPlan, pair_text
from symad.gpu.sympy_to_cuda.printer import Style
from symad.numeric.pairs.pair_functions import PairFunction, X, Y

LEAST = 32
"""Components of a point from which on tensor cores are used; an estimate from counts of instructions."""

ELEMENTS = {"tf32x3": ("Fp32", 32), "bf16": ("Bf16", 16)}
COLUMNS = 8
"""Payload columns of a launch: sums that a lane keeps for each of its rows."""

ROWS = 64


def has_products(function: PairFunction) -> bool:
    """Whether a pair function is one of inner products and norms."""
    return function.dimension >= LEAST and not function.loose and _coefficients(function) is not None


def products_source(function: PairFunction, sizes: PairPlan, reduce: str, kind: str) -> str:
    """The kernel, whole."""
    element, bits = ELEMENTS[kind]
    rows = _coefficients(function) or []
    lines = [
        f"  sigma[{r}] = Real({a!r}) * s + Real({b!r}) * nx + Real({c!r}) * ny;"
        for r, (a, b, c) in enumerate(rows)
    ]
    return "\n".join(
        [
            "#define SYMAD_REAL float",
            f"#define SYMAD_ELEMENT_BITS {bits}",
            kernel_text("prims.h", "tile.h", "matrix.h", "product.h"),
            pair_text(function, sizes, reduce, Style("float", False)),
            f"typedef {element} E;",
            f"constexpr int PRODUCT_COLUMNS = {min(sizes.columns, COLUMNS)};",
            "DEVICE void pair_sigma(Real s, Real nx, Real ny, Real* sigma) {",
            *lines,
            "}",
            kernel_text("pair_products.cu"),
        ]
    )


def products_bytes(dimension: int, columns: int, kind: str) -> int:
    """Shared memory of a block: two tiles of points, their norms, and the payload."""
    width = -(-dimension // 16) * 16 * ELEMENTS[kind][1] // 8
    pitch = 32 if width <= 32 else 64 if width <= 64 else -(-width // 128) * 128
    return 2 * ROWS * pitch + 4 * ROWS * (2 + min(columns, COLUMNS))


def _coefficients(function: PairFunction) -> list[tuple[float, float, float]] | None:
    """(a, b, c) of each sum a Σ x_k y_k + b Σ x_k² + c Σ y_k²; None where one is of another form."""
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
