"""JAX: elementwise, special and activation functions by `jax.grad`, twice, in double precision."""

from __future__ import annotations

from collections.abc import Iterator

import sympy

from symad.audits.claims import Claim, group
from symad.audits.elementwise import A_POSITIVE, B_POSITIVE, BETALN, AuditedLibrary, claims, named

NUMPY = {
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10",
    "log1p": "log1p", "sqrt": "sqrt", "cbrt": "cbrt", "square": "square", "reciprocal": "reciprocal",
    "abs": "abs", "sinc": "sinc", "logaddexp": "logaddexp", "hypot": "hypot", "atan2": "arctan2",
    "pow": "power", "maximum": "maximum", "minimum": "minimum",
}  # fmt: skip

ACTIVATIONS = {
    "sigmoid": "sigmoid", "log_sigmoid": "log_sigmoid", "softplus": "softplus",
    "softsign": "soft_sign",
    "relu": "relu", "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu", "celu": "celu",
    "selu": "selu", "silu": "silu", "mish": "mish", "gelu_tanh": "gelu", "hard_tanh": "hard_tanh",
    "hard_sigmoid": "hard_sigmoid", "hard_swish": "hard_swish", "squareplus": "squareplus",
}  # fmt: skip

SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "logit": "logit", "digamma": "digamma",
    "gammaln": "gammaln", "i0": "i0", "i1": "i1", "i0e": "i0e", "i1e": "i1e", "entr": "entr",
    "xlogy": "xlogy", "xlog1py": "xlog1py", "normal_cdf": "ndtr", "log_normal_cdf": "log_ndtr",
    "normal_quantile": "ndtri", "spence": "spence", "betaln": "betaln", "rel_entr": "rel_entr",
    "kl_div": "kl_div", "expi": "expi", "exp1": "exp1",
}  # fmt: skip

KNOWN = {
    ("spence", "gradient"): "NaN at 1.4 and 1.6 (jax 0.10.2)",
}
BETALN_KNOWN = "h/(1 + h) stands where 1/(1 + h) should: off by 1e-6 where an argument is ≥ 8 (jax 0.10.2)"


@group("jax")
def elementwise() -> Iterator[Claim]:
    """jax.numpy, jax.nn and jax.scipy.special."""
    import jax

    jax.config.update("jax_enable_x64", True)
    functions = named(jax.numpy, NUMPY) | named(jax.nn, ACTIVATIONS) | named(jax.scipy.special, SPECIAL)
    functions["gelu"] = lambda v: jax.nn.gelu(v, approximate=False)
    functions["rsqrt"] = jax.lax.rsqrt
    functions["trigamma"] = lambda v: jax.scipy.special.polygamma(1, v)

    def number(value: float) -> jax.Array:
        return jax.numpy.asarray(float(value))

    yield from claims(
        AuditedLibrary(functions, number, lambda function, k: jax.grad(function, argnums=k), KNOWN)
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
