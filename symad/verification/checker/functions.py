"""The table of elementary functions: names, derivatives, definitions, parities and signs.

Each entry is a formula of a textbook; DLMF numbers are those of the NIST Digital Library of Mathematical
Functions. x, y are terms, and a partial derivative None is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt

import sympy
from sympy.codegen import cfunctions
from sympy.codegen.numpy_nodes import logaddexp

from symad.library import scalar_functions as own
from symad.verification.checker.terms import Term

_NAMES = (
    "exp log sin cos tan cot sec csc sinh cosh tanh coth sech csch asin acos atan asinh acosh atanh erf erfc "
    "loggamma gamma digamma polygamma sign floor ceiling Heaviside atan2 sinc"
)
HEADS: dict[object, str] = {getattr(sympy, name): name for name in _NAMES.split()} | {
    sympy.Abs: "abs", sympy.Max: "max", sympy.Min: "min", cfunctions.log1p: "log1p", logaddexp: "logaddexp",
    cfunctions.expm1: "expm1", cfunctions.exp2: "exp2", cfunctions.log2: "log2", cfunctions.log10: "log10",
    cfunctions.Sqrt: "sqrt", cfunctions.hypot: "hypot", own.sigmoid: "sigmoid", own.softplus: "softplus",
    own.relu: "relu", own.silu: "silu", own.gelu: "gelu", own.logcosh: "logcosh",
}  # fmt: skip
"""The functions of graphs, by identity: a user's function of the same name is another one."""

HALF, FLAT = Fraction(1, 2), ("sign", "floor", "ceiling", "Heaviside", "less", "at most", "equal", "real")


def call(name: str, *args: Term | int) -> Term:
    """The function of this name; the last argument is a term."""
    return args[-1].table.call(name, *args)  # type: ignore[union-attr]  # a term, as said


def inverse(i: int, j: int, a: Sequence[Term]) -> Term:
    """An element of A⁻¹ as a function of all elements of A, row by row; (Aᵀ)⁻¹ is (A⁻¹)ᵀ."""
    n = isqrt(len(a))
    turned = [a[k % n * n + k // n] for k in range(n * n)]
    i, j, a = (j, i, turned) if [t.index for t in turned] < [t.index for t in a] else (i, j, a)
    return call("inverse", i, j, *a)


def of_factor(i: int, j: int, a: Sequence[Term], k: int) -> Term:
    """∂L_ij by element k of A = L Lᵀ: d L = L Φ(L⁻¹ dA L⁻ᵀ) (Murray, arXiv:1602.07527, equation 8)."""
    n, zero = isqrt(len(a)), 0 * a[0]  # Φ takes the lower triangle with half the diagonal
    factor = [call("cholesky", *divmod(m, n), *a) if m // n >= m % n else zero for m in range(n * n)]
    parts = [factor[i * n + m] * inverse(m, k // n, factor) * (HALF if m == j else 1) for m in range(j, n)]
    return zero.table.sum(parts) * inverse(j, k % n, factor)


MATRICES: dict[str, Callable[..., Term]] = {
    "inverse": lambda i, j, a, k: -1 * inverse(i, k // isqrt(len(a)), a) * inverse(k % isqrt(len(a)), j, a),
    "cholesky": of_factor, "log det": lambda i, j, a, k: inverse(k % isqrt(len(a)), k // isqrt(len(a)), a),
}  # fmt: skip
"""d A⁻¹ = −A⁻¹ dA A⁻¹, d L, d log det A = tr(A⁻¹ dA): of element i, j by element k of A."""

DERIVATIVES: dict[str, Callable[..., tuple[Term | None, ...]]] = {
    "exp": lambda x: (call("exp", x),), "log": lambda x: (x**-1,), "sin": lambda x: (call("cos", x),),
    "cos": lambda x: (-1 * call("sin", x),), "tanh": lambda x: (1 - call("tanh", x) ** 2,),
    "asin": lambda x: ((1 - x**2) ** -HALF,), "atan": lambda x: ((1 + x**2) ** -1,),
    "asinh": lambda x: ((1 + x**2) ** -HALF,), "abs": lambda x: (call("sign", x),),
    "sigmoid": lambda x: (call("sigmoid", x) * (1 - call("sigmoid", x)),),
    "softplus": lambda x: (call("sigmoid", x),), "logcosh": lambda x: (call("tanh", x),),
    "erf": lambda x: (2 * x.table.call("pi") ** -HALF * call("exp", -1 * x**2),),  # DLMF 7.2.1
    "gamma": lambda x: (call("gamma", x) * call("polygamma", 0, x),),  # DLMF 5.2.2
    "loggamma": lambda x: (call("polygamma", 0, x),),
    "polygamma": lambda n, x: (None, call("polygamma", n + 1, x)),  # DLMF 5.15
    "atan2": lambda y, x: (x / (x**2 + y**2), -1 * y / (x**2 + y**2)),
    "pow": lambda x, y: (y * call("pow", x, y - 1), call("pow", x, y) * call("log", x)),
    "max": lambda x, y: (call("less", y, x), 1 - call("less", y, x)),  # ties are no open set
    "min": lambda x, y: (call("less", x, y), 1 - call("less", x, y)),
    **dict.fromkeys(FLAT, lambda *x: (x[0] * 0,) * len(x)),
}  # fmt: skip
"""∂f/∂x for each argument, on the open set where f is smooth."""

ALWAYS: dict[str, Callable[..., Term]] = {
    "tan": lambda x: call("sin", x) / call("cos", x), "cot": lambda x: call("cos", x) / call("sin", x),
    "sec": lambda x: call("cos", x) ** -1, "csc": lambda x: call("sin", x) ** -1, "sqrt": lambda x: x**HALF,
    "sinh": lambda x: (call("exp", x) - call("exp", -1 * x)) / 2, "coth": lambda x: call("tanh", x) ** -1,
    "cosh": lambda x: (call("exp", x) + call("exp", -1 * x)) / 2, "erfc": lambda x: 1 - call("erf", x),
    "sech": lambda x: (1 - call("tanh", x) ** 2) ** HALF, "log1p": lambda x: call("log", 1 + x),
    "csch": lambda x: 2 * (call("exp", x) - call("exp", -1 * x)) ** -1, "sinc": lambda x: call("sin", x) / x,
    "acos": lambda x: x.table.call("pi") / 2 - call("asin", x), "digamma": lambda x: call("polygamma", 0, x),
    "acosh": lambda x: call("log", x + (x - 1) ** HALF * (x + 1) ** HALF),
    "atanh": lambda x: call("log", (1 + x) / (1 - x)) / 2, "expm1": lambda x: call("exp", x) - 1,
    "exp2": lambda x: call("exp", x * x.table.call("log", 2)), "hypot": lambda x, y: (x**2 + y**2) ** HALF,
    "log2": lambda x: call("log", x) / x.table.call("log", 2), "silu": lambda x: x * call("sigmoid", x),
    "log10": lambda x: call("log", x) / x.table.call("log", 10), "relu": lambda x: call("max", x, 0 * x),
    "logaddexp": lambda x, y: call("log", call("exp", x) + call("exp", y)),
    "gelu": lambda x: x * (1 + call("erf", x * x.table.term(2) ** -HALF)) / 2,
}  # fmt: skip
"""Functions that are only short for others: they are replaced when a graph is written out."""

DEFINITIONS: dict[str, Callable[..., Term]] = {
    "tanh": lambda x: 1 - 2 * (call("exp", 2 * x) + 1) ** -1, "equal": lambda x, y: x.table.term(0),
    "asinh": lambda x: call("log", x + (x**2 + 1) ** HALF), "sign": lambda x: call("abs", x) / x,
    "logcosh": lambda x: call("log", (call("exp", x) + call("exp", -1 * x)) / 2),
    "softplus": lambda x: call("log", 1 + call("exp", x)), "less": lambda x, y: (1 + call("sign", y - x)) / 2,
    "max": lambda x, y: (x + y + call("abs", x - y)) / 2, "Heaviside": lambda x: (1 + call("sign", x)) / 2,
    "min": lambda x, y: (x + y - call("abs", x - y)) / 2, "pow": lambda x, y: call("exp", y * call("log", x)),
    "sigmoid": lambda x: (1 + call("exp", -1 * x)) ** -1, "select": lambda c, x, y: y + c * (x - y),
    "at most": lambda x, y: (1 + call("sign", y - x)) / 2, "real": lambda x: x.table.term(1),
}  # fmt: skip
"""f = definition, used where a step of the proof asks for it; `rules` has their conditions."""

ODD, EVEN = {"tanh", "asin", "atan", "asinh", "erf", "sign"}, {"logcosh"}
POSITIVE, INDICATORS = {"pi", "sigmoid", "softplus"}, {"less", "at most", "equal"}  # these are 0 or 1
TOTAL = {*DERIVATIVES, "pi", "select"} - {"log", "asin", "gamma", "loggamma", "polygamma", "atan2", "pow"}
"""Functions with a value for all real arguments."""
