"""Elementwise functions by formula, for libraries that provide most of them under one name each.

The claims are about the value, the first and the second derivative of each: JAX by `jax.grad`, PyTorch by
reverse mode, autograd by `autograd.grad`, all in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import sympy
from sympy import Abs, Max, Min, Piecewise, Rational, erf, erfc, exp, log, pi, sqrt

from symad.audits.claims import Claim, group
from symad.core.arrays import ArrayLike

if TYPE_CHECKING:
    import numpy as np


x = sympy.Symbol("x", real=True)
p = sympy.Symbol("x", positive=True)

SIGMOID = 1 / (1 + exp(-x))
NORMAL = (1 + erf(x / sqrt(2))) / 2
SELU_SCALE = sympy.Float("1.0507009873554804934193349852946", 32)
SELU_ALPHA = sympy.Float("1.6732632423543772848170429916717", 32)

FORMULAS: dict[str, sympy.Expr] = {
    "sin": sympy.sin(x), "cos": sympy.cos(x), "tan": sympy.tan(x),
    "asin": sympy.asin(x), "acos": sympy.acos(x), "atan": sympy.atan(x),
    "sinh": sympy.sinh(x), "cosh": sympy.cosh(x), "tanh": sympy.tanh(x),
    "asinh": sympy.asinh(x), "acosh": sympy.acosh(p), "atanh": sympy.atanh(x),
    "exp": exp(x), "exp2": 2**x, "expm1": exp(x) - 1,
    "log": log(p), "log2": log(p) / log(2), "log10": log(p) / log(10), "log1p": log(1 + p),
    "sqrt": sqrt(p), "rsqrt": 1 / sqrt(p), "cbrt": p ** Rational(1, 3),
    "square": x**2, "reciprocal": 1 / x, "abs": Abs(x),
    "sigmoid": SIGMOID, "log_sigmoid": -log(1 + exp(-x)), "logit": log(p) - log(1 - p),
    "softplus": log(1 + exp(x)), "softsign": x / (1 + Abs(x)),
    "relu": Max(x, 0), "relu6": Min(Max(x, 0), 6), "leaky_relu": Piecewise((x, x > 0), (x / 100, True)),
    "elu": Piecewise((x, x > 0), (exp(x) - 1, True)),
    "celu": Piecewise((x, x > 0), (exp(x) - 1, True)),
    "selu": SELU_SCALE * Piecewise((x, x > 0), (SELU_ALPHA * (exp(x) - 1), True)),
    "silu": x * SIGMOID, "mish": x * sympy.tanh(log(1 + exp(x))),
    "gelu": x * NORMAL,
    "gelu_tanh": x / 2 * (1 + sympy.tanh(sqrt(2 / pi) * (x + sympy.Float("0.044715", 20) * x**3))),
    "hard_tanh": Max(-1, Min(1, x)), "hard_sigmoid": Max(0, Min(1, x / 6 + Rational(1, 2))),
    "hard_swish": x * Max(0, Min(1, x / 6 + Rational(1, 2))),
    "tanhshrink": x - sympy.tanh(x),
    "squareplus": (x + sqrt(x**2 + 4)) / 2,
    "log_cosh": log(sympy.cosh(x)), "softabs": sqrt(1 + x**2),
    "erf": erf(x), "erfc": erfc(x), "erfinv": sympy.erfinv(x),
    "normal_cdf": NORMAL, "log_normal_cdf": log(NORMAL),
    "normal_quantile": sqrt(2) * sympy.erfinv(2 * x - 1),
    "gammaln": sympy.loggamma(p), "digamma": sympy.polygamma(0, p), "trigamma": sympy.polygamma(1, p),
    "i0": sympy.besseli(0, x), "i1": sympy.besseli(1, x),
    "i0e": exp(-Abs(x)) * sympy.besseli(0, x), "i1e": exp(-Abs(x)) * sympy.besseli(1, x),
    "j0": sympy.besselj(0, x), "j1": sympy.besselj(1, x),
    "sinc": Piecewise((sympy.sin(pi * x) / (pi * x), sympy.Ne(x, 0)), (1, True)),
    "entr": -p * log(p), "spence": sympy.polylog(2, 1 - p),
    "expi": sympy.Ei(p), "exp1": sympy.expint(1, p),
}  # fmt: skip
"""f(x) for each function; a positive symbol means that the libraries define it for x > 0 only."""

WHERE = {"logit": p < 1}
"""Conditions for formulas that have values beyond the function's domain."""

A, B = sympy.symbols("a b", real=True)
A_POSITIVE, B_POSITIVE = sympy.symbols("a b", positive=True)
BETALN = sympy.loggamma(A_POSITIVE) + sympy.loggamma(B_POSITIVE) - sympy.loggamma(A_POSITIVE + B_POSITIVE)

FORMULAS_OF_TWO: dict[str, sympy.Expr] = {
    "logaddexp": log(exp(A) + exp(B)),
    "hypot": sqrt(A**2 + B**2),
    "atan2": sympy.atan2(A, B),
    "pow": A_POSITIVE**B,
    "xlogy": A * log(B_POSITIVE),
    "xlog1py": A * log(1 + B_POSITIVE),
    "betaln": BETALN,
    "maximum": Max(A, B),
    "minimum": Min(A, B),
    "rel_entr": A_POSITIVE * log(A_POSITIVE / B_POSITIVE),
    "kl_div": A_POSITIVE * log(A_POSITIVE / B_POSITIVE) - A_POSITIVE + B_POSITIVE,
}
"""f(a, b): the arguments in the order of their names."""


@dataclass(frozen=True)
class AuditedLibrary:
    """The interface of a library.

    Args:
        functions: the library's function for each formula.
        number: makes the library's array of a number.
        derivative: the derivative of a function of arrays, by one of its arguments.
        known: what is known about claims that fail, by name and kind.
        values_only: functions for which the library provides no derivative.
    """

    functions: Mapping[str, Callable[..., Any]]
    number: Callable[[Any], Any]
    derivative: Callable[[Callable[..., Any], int], Callable[..., Any]]
    known: Mapping[tuple[str, str], str]
    values_only: frozenset[str] = frozenset()


def named(module: ModuleType, paths: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
    """The functions of a module by our names; one that this version lacks raises when it is called."""
    return {name: getattr(module, path, _missing(module, path)) for name, path in paths.items()}


def _missing(module: ModuleType, path: str) -> Callable[..., ArrayLike]:
    def function(*values: object) -> NoReturn:
        raise NotImplementedError(f"{module.__name__} has no {path} in this version")

    return function


def claims(library: AuditedLibrary) -> Iterator[Claim]:
    """Value, first and second derivative of every function that the library has."""
    for name, function in library.functions.items():
        formula = FORMULAS.get(name, FORMULAS_OF_TWO.get(name))
        if formula is None:
            raise LookupError(f"there is no formula for {name}")
        count = len(formula.free_symbols)
        first = [library.derivative(function, k) for k in range(count)]
        second = [[library.derivative(d, k) for k in range(count)] for d in first]
        asked = {
            "value": _called(library, [function]),
            "gradient": _called(library, first),
            "hessian": _called(library, [d for row in second for d in row], count),
        }
        options = {"where": WHERE[name]} if name in WHERE else {}
        for kind, asker in asked.items():
            if kind != "value" and name in library.values_only:
                continue
            yield Claim(name, kind, formula, asker, None, options, known=library.known.get((name, kind), ""))


def _called(
    library: AuditedLibrary, functions: list[Callable[..., Any]], side: int = 0
) -> Callable[..., ArrayLike]:
    """Functions of the library's arrays as one function of numbers; ``side``: the rows of a matrix."""

    def call(*values: float) -> np.ndarray | float | tuple[float, ...]:
        import numpy as np

        given = [library.number(value) for value in values]
        found = [float(function(*given)) for function in functions]
        return np.reshape(found, (side, side)) if side else found[0] if len(found) == 1 else tuple(found)

    return call


# ---- JAX -----------------------------------------------------------------------------------------


NUMPY = {
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1")},
    **{name: name for name in ("log", "log2", "log10", "log1p", "sqrt", "square", "reciprocal", "abs")},
    **{name: name for name in ("sinc", "logaddexp", "maximum", "minimum")},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "atan2": "arctan2", "pow": "power",
}  # fmt: skip
"""The names in NumPy, which other libraries have taken."""

JAX_ACTIVATIONS = {
    "sigmoid": "sigmoid", "log_sigmoid": "log_sigmoid", "softplus": "softplus",
    "softsign": "soft_sign",
    "relu": "relu", "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu", "celu": "celu",
    "selu": "selu", "silu": "silu", "mish": "mish", "gelu_tanh": "gelu", "hard_tanh": "hard_tanh",
    "hard_sigmoid": "hard_sigmoid", "hard_swish": "hard_swish", "squareplus": "squareplus",
}  # fmt: skip

JAX_SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "logit": "logit", "digamma": "digamma",
    "gammaln": "gammaln", "i0": "i0", "i1": "i1", "i0e": "i0e", "i1e": "i1e", "entr": "entr",
    "xlogy": "xlogy", "xlog1py": "xlog1py", "normal_cdf": "ndtr", "log_normal_cdf": "log_ndtr",
    "normal_quantile": "ndtri", "spence": "spence", "betaln": "betaln", "rel_entr": "rel_entr",
    "kl_div": "kl_div", "expi": "expi", "exp1": "exp1",
}  # fmt: skip

JAX_KNOWN = {
    ("spence", "gradient"): "NaN at 1.4 and 1.6 (jax 0.10.2)",
}
BETALN_KNOWN = "h/(1 + h) stands where 1/(1 + h) should: off by 1e-6 where an argument is ≥ 8 (jax 0.10.2)"


@group("jax")
def jax_functions() -> Iterator[Claim]:
    """jax.numpy, jax.nn and jax.scipy.special."""
    import jax

    jax.config.update("jax_enable_x64", True)
    functions = named(jax.numpy, NUMPY | {"cbrt": "cbrt", "hypot": "hypot"})
    functions |= named(jax.nn, JAX_ACTIVATIONS) | named(jax.scipy.special, JAX_SPECIAL)
    functions["gelu"] = lambda v: jax.nn.gelu(v, approximate=False)
    functions["rsqrt"] = jax.lax.rsqrt
    functions["trigamma"] = lambda v: jax.scipy.special.polygamma(1, v)

    def number(value: float) -> jax.Array:
        return jax.numpy.asarray(float(value))

    yield from claims(
        AuditedLibrary(functions, number, lambda function, k: jax.grad(function, argnums=k), JAX_KNOWN)
    )


@group("jax")
def large_arguments() -> Iterator[Claim]:
    """betaln where an argument is at least 8, near its zero: errors count relative to the value."""
    import jax

    jax.config.update("jax_enable_x64", True)
    u, v = sympy.symbols("u v", positive=True)
    formula = BETALN.subs({A_POSITIVE: 8 + u, B_POSITIVE: (3 + v) / 8}, simultaneous=True)

    def betaln(u: sympy.Expr, v: sympy.Expr) -> float:
        return float(jax.scipy.special.betaln(8 + float(u), (3 + float(v)) / 8))

    options = {"where": sympy.And(u < 1, v < 1)}
    yield Claim("betaln(8 + u, (3 + v)/8)", "value", formula, betaln, None, options, known=BETALN_KNOWN)


# ---- PyTorch -------------------------------------------------------------------------------------


TORCH_PLAIN = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square", "reciprocal",
    "abs", "sigmoid", "erf", "erfc", "erfinv", "logit", "digamma", "sinc", "logaddexp", "hypot", "atan2",
    "pow", "xlogy", "maximum", "minimum",
)  # fmt: skip

TORCH_IN_NN = {
    "log_sigmoid": "logsigmoid", "softplus": "softplus", "softsign": "softsign", "relu": "relu",
    "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu",
    "celu": "celu", "selu": "selu", "silu": "silu", "mish": "mish",
    "gelu": "gelu", "hard_tanh": "hardtanh", "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish",
    "tanhshrink": "tanhshrink",
}  # fmt: skip

TORCH_IN_SPECIAL = {
    "i0": "i0", "i1": "i1", "i0e": "i0e", "i1e": "i1e", "j0": "bessel_j0", "j1": "bessel_j1", "entr": "entr",
    "xlog1py": "xlog1py", "normal_cdf": "ndtr", "log_normal_cdf": "log_ndtr", "normal_quantile": "ndtri",
    "gammaln": "gammaln",
}  # fmt: skip


@group("torch")
def torch_functions() -> Iterator[Claim]:
    """torch, torch.nn.functional and torch.special, in double precision."""
    import torch

    def derivative(function: Callable[..., torch.Tensor], k: int) -> Callable[..., torch.Tensor]:
        def by(*values: torch.Tensor) -> torch.Tensor:
            given = [v.detach().requires_grad_() if not v.requires_grad else v for v in values]
            result = function(*given)
            if not result.requires_grad:
                return torch.zeros_like(result)
            (found,) = torch.autograd.grad(result, given[k], create_graph=True, materialize_grads=True)
            return found

        return by

    functions = named(torch, dict(zip(TORCH_PLAIN, TORCH_PLAIN, strict=True)))
    functions |= named(torch.nn.functional, TORCH_IN_NN) | named(torch.special, TORCH_IN_SPECIAL)
    functions["gelu_tanh"] = lambda v: torch.nn.functional.gelu(v, approximate="tanh")
    functions["trigamma"] = lambda v: torch.special.polygamma(1, v)

    def number(value: float) -> torch.Tensor:
        return torch.tensor(float(value), dtype=torch.float64, requires_grad=True)

    yield from claims(AuditedLibrary(functions, number, derivative, {}, frozenset({"j0", "j1"})))


# ---- autograd ------------------------------------------------------------------------------------


AUTOGRAD_SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "logit": "logit", "sigmoid": "expit", "digamma": "psi",
    "gammaln": "gammaln", "i0": "i0", "i1": "i1", "j0": "j0", "j1": "j1", "betaln": "betaln",
}  # fmt: skip


@group("autograd")
def autograd_functions() -> Iterator[Claim]:
    """autograd.numpy and autograd.scipy.special."""
    import autograd
    import autograd.numpy
    import autograd.scipy.special

    functions = named(autograd.numpy, NUMPY) | named(autograd.scipy.special, AUTOGRAD_SPECIAL)

    def derivative(function: Callable[..., ArrayLike], k: int) -> Callable[..., ArrayLike]:
        return autograd.grad(function, k)

    yield from claims(AuditedLibrary(functions, float, derivative, {}))
