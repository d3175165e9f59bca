"""The C text of a pair function for pair_sum.cu and for tensor cores, and the shape of its thread groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from symad.gpu.attention_kernels.plan import ELEMENTS as ELEMENT_TYPES
from symad.gpu.compile import kernel_files
from symad.gpu.device_formulas import Device, DeviceVariable
from symad.numeric.pairs.pair_functions import PairFunction, X, Y

THREADS = 128
_REDUCTIONS = {"sum": 0, "logsumexp": 1, "softmax": 2}
# Registers of 32 bits that a thread may use for its points; they limit the number of points per thread.
_FORWARD_REGISTERS, _BACKWARD_REGISTERS = 136, 100


@dataclass(frozen=True)
class ThreadShape:
    """The distribution of a pass over threads.

    Attributes:
        rows: the points that a group of ``lanes`` threads owns.
        lanes: the threads that share a point; each has a part of its components.
    """

    rows: int
    lanes: int

    @property
    def points(self) -> int:
        """The points that one block owns."""
        return self.rows * THREADS // self.lanes


@dataclass(frozen=True)
class PairPlan:
    """Sizes that are fixed when the kernels are compiled."""

    columns: int
    tile: int
    forward: ThreadShape
    backward: ThreadShape

    def shared_bytes(self, dimension: int, itemsize: int) -> int:
        """Dynamic shared memory of every kernel, in bytes."""
        lanes = (self.forward.lanes, self.backward.lanes)
        record = max(_record(dimension, self.columns, count, itemsize) for count in lanes)
        return max(self.tile * record, THREADS * itemsize)


def _record(dimension: int, columns: int, lanes: int, itemsize: int) -> int:
    """The bytes of a record of the shared tile, with level and delta (Record in pair_sum.cu)."""
    quad = 16 // itemsize
    part = dimension if lanes == 1 else -(-dimension // (lanes * quad)) * quad
    used = part * lanes + -(-columns // lanes) * lanes + 2
    return -(-used // quad) * 16


def plan(function: PairFunction, columns: int, real: str) -> PairPlan:
    """The payload columns per launch, the tile, the points per thread and the lanes per point.

    Several points per thread share each read of shared memory; several lanes per point keep long
    points in registers. Functions of single components need whole points in each thread.
    """
    words = 1 if real == "float" else 2
    dimension = function.dimension
    chunk = min(columns, 32 // words)

    def shape(per_component: int, limit: int, budget: int) -> ThreadShape:
        lanes = 1
        while not function.loose and dimension > limit // words * lanes and lanes < 8:
            lanes *= 2
        held = per_component * -(-dimension // lanes) + 2 * -(-chunk // lanes)
        rows = next((r for r in (4, 2) if r * held * words <= budget), 1)
        return ThreadShape(rows, lanes)

    forward = shape(1, 64, _FORWARD_REGISTERS)
    backward = shape(3, 32, _BACKWARD_REGISTERS)
    record = max(
        _record(dimension, chunk, lanes, 4 * words) for lanes in (forward.lanes, backward.lanes)
    )
    tile = 128
    while tile > 16 and tile * record > 40 * 1024:
        tile //= 2
    return PairPlan(chunk, tile, forward, backward)


def pair_text(function: PairFunction, sizes: PairPlan, reduce: str, device: Device) -> str:
    """The macros and device functions that pair_sum.cu needs."""
    small = function.dimension * sizes.forward.rows <= 16
    macros = {
        "PAIR_D": function.dimension,
        "PAIR_SUMS": len(function.sums),
        "PAIR_ENTRIES": max(len(function.entries), 1),
        "PAIR_PARAMETERS": int(bool(function.entries)),
        "PAIR_COLUMNS": sizes.columns,
        "PAIR_REDUCE": _REDUCTIONS[reduce],
        "PAIR_THREADS": THREADS,
        "PAIR_TILE": sizes.tile,
        "FORWARD_R": sizes.forward.rows,
        "FORWARD_LANES": sizes.forward.lanes,
        "FORWARD_UNROLL": 4 if small else 1,
        "BACKWARD_R": sizes.backward.rows,
        "BACKWARD_LANES": sizes.backward.lanes,
    }
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    functions = [*_term_functions(function, device), *_outer_functions(function, device)]
    return "\n".join([*lines, device.preamble(), *functions, ""])


_SUMS, _OWN = "const Real* sigma, ", "const Real* x, const Real* y, const Real* p"
_TERM = "Real x, Real y, const Real* p, int k, "


def _term_functions(function: PairFunction, device: Device) -> list[str]:
    """The functions pair_terms and pair_term_partials."""
    variables = {s: DeviceVariable(f"p[{at}]") for at, s in enumerate(function.entries)}
    variables |= {X: DeviceVariable("x", level=1), Y: DeviceVariable("y", level=1)}
    components = []
    start = 0
    for parameter in function.parameters:
        if parameter.size == function.dimension:
            variables[parameter.component] = DeviceVariable(f"p[{start} + k]")
            components.append((parameter.component, f"{start} + k"))
        start += len(parameter.symbols)
    cotangents = [sp.Dummy(f"e{r}", real=True) for r in range(len(function.sums))]
    variables |= {s: DeviceVariable(f"e[{r}]", level=1) for r, s in enumerate(cotangents)}
    terms = [(f"const Real t{r}", part.term) for r, part in enumerate(function.sums)]
    body = device.statements(terms, variables)
    body += [f"sigma[{r}] += t{r};" for r in range(len(terms))]

    def total(symbol: sp.Symbol) -> sp.Expr:
        partials = [function.term_partial(r, symbol) for r in range(len(cotangents))]
        return sp.Add(*[e * d for e, d in zip(cotangents, partials, strict=True)])

    entries = [(s, str(at)) for at, s in enumerate(function.entries)] + components
    wanted = [(place, total(symbol)) for symbol, place in entries]
    wanted = [(place, expr) for place, expr in wanted if expr != 0]
    targets = [("dx", total(X)), ("dy", total(Y))]
    targets += [(f"const Real q{at}", expr) for at, (_, expr) in enumerate(wanted)]
    partial_body = device.statements(targets, variables)
    partial_body += [f"dp[{place}] += q{at};" for at, (place, _) in enumerate(wanted)]
    return [
        _function(f"void pair_terms({_TERM}Real* sigma)", body),
        _function(
            f"void pair_term_partials({_TERM}const Real* e, Real& dx, Real& dy, Real* dp)",
            partial_body,
        ),
    ]


def _outer_functions(function: PairFunction, device: Device) -> list[str]:
    """The functions pair_value and pair_partials."""
    variables = {s: DeviceVariable(f"p[{at}]") for at, s in enumerate(function.entries)}
    variables |= {part.symbol: DeviceVariable(f"sigma[{r}]", level=1)
                  for r, part in enumerate(function.sums)}  # fmt: skip
    for name, symbols in (("x", function.x), ("y", function.y)):
        variables |= {s: DeviceVariable(f"{name}[{k}]", level=1) for k, s in enumerate(symbols)}
    wanted = [(f"ds[{r}]", part.symbol) for r, part in enumerate(function.sums)]
    wanted += [(f"dx[{k}]", function.x[k]) for k in function.loose]
    wanted += [(f"dy[{k}]", function.y[k]) for k in function.loose]
    wanted += [(f"dp[{at}]", s) for at, s in enumerate(function.entries)]
    partials = [(place, function.outer_partial(symbol)) for place, symbol in wanted]
    partials = [(place, expr) for place, expr in partials if expr != 0]
    value = device.statements([("const Real f", function.outer)], variables)
    targets = [("f", function.outer), *partials]
    return [
        _function(f"Real pair_value({_SUMS}{_OWN})", [*value, "return f;"]),
        _function(
            f"void pair_partials({_SUMS}{_OWN}, Real& f, Real* ds, Real* dx, Real* dy, Real* dp)",
            device.statements(targets, variables),
        ),
    ]


def _function(signature: str, body: Sequence[str]) -> str:
    return "\n".join([f"DEVICE {signature} {{", *(f"  {line}" for line in body), "}"])


# ---- kernel sums on tensor cores -----------------------------------------------------------------

# With σ_r = a_r ⟨x, y⟩ + b_r |x|² + c_r |y|², f(x, y) = F(σ, θ) needs one matrix product for all pairs. If
# the option is set (`symad.gpu.options(pair_products=...)`), values and gradients in float32 are computed so,
# for points of 32 to 128 components. The errors are below
#
#     "tf32x3"   2⁻¹⁹ (|x|² + |y|²) for |x − y|², 2⁻²⁰ |x| |y| for ⟨x, y⟩: 22 bits of factors, float32 sums;
#     "bf16"     2⁻⁸ (|x| + |y|) for |x − y|, 2⁻⁷ |x| |y| for ⟨x, y⟩: the sums of points rounded to 8 bits.
#
# A pair's term in x̄_i is A y_j + B x_i, where A = c ∂F/∂σ·a, B = 2 c ∂F/∂σ·b and c is the cotangent of f. For
# given A and B its error is below 2⁻¹⁹ or 2⁻⁷ times |A y_j| + |B x_i|, and likewise for ȳ_j.
#
# Points far from the origin lose digits: subtract their mean first.


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


def products_source(function: PairFunction, sizes: PairPlan, reduce: str, kind: str) -> list[str]:
    """The complete source of the kernel, in pieces."""
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
    middle = "\n".join(
        [
            pair_text(function, sizes, reduce, Device("float")),
            f"typedef {element.name} E;",
            f"constexpr int DEPTH = {_depth(function.dimension, kind)};",
            f"constexpr int PRODUCT_COLUMNS = {payload_columns(function.dimension, sizes.columns, kind)};",
            "DEVICE void pair_sigma(Real s, Real nx, Real ny, Real* sigma) {",
            *lines,
            "}",
            "DEVICE void pair_weights(const Real* e, Real w, Real& cross, Real& own_x, Real& own_y) {",
            *weights,
            "}\n",
        ]
    )
    head = f"#define SYMAD_REAL float\n#define SYMAD_ELEMENT_BITS {8 * element.bytes}\n"
    tiles = kernel_files("prims.h", "tile.h", "matrix.h", "product.h")
    return [head, *tiles, middle, *kernel_files("pair_products.cu")]


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
