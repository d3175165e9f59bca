"""autograd: its wrapped NumPy and SciPy functions by `autograd.elementwise_grad`, twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from symad.audits.claims import Claim, group
from symad.audits.elementwise import AuditedLibrary, claims, named
from symad.core.arrays import ArrayLike

NUMPY = {
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10",
    "log1p": "log1p", "sqrt": "sqrt", "square": "square", "reciprocal": "reciprocal", "abs": "abs",
    "sinc": "sinc", "logaddexp": "logaddexp", "atan2": "arctan2", "pow": "power", "maximum": "maximum",
    "minimum": "minimum",
}  # fmt: skip

SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "logit": "logit", "sigmoid": "expit", "digamma": "psi",
    "gammaln": "gammaln", "i0": "i0", "i1": "i1", "j0": "j0", "j1": "j1", "betaln": "betaln",
}  # fmt: skip


@group("autograd")
def elementwise() -> Iterator[Claim]:
    """autograd.numpy and autograd.scipy.special."""
    import autograd
    import autograd.numpy
    import autograd.scipy.special

    functions = named(autograd.numpy, NUMPY) | named(autograd.scipy.special, SPECIAL)

    def derivative(function: Callable[..., ArrayLike], k: int) -> Callable[..., ArrayLike]:
        return autograd.grad(function, k)

    yield from claims(AuditedLibrary(functions, float, derivative, {}))
