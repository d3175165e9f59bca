"""PyTorch: elementwise and special functions by reverse mode, twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from symad.audits.claims import Claim, group
from symad.audits.elementwise import AuditedLibrary, claims, named

PLAIN = (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square", "reciprocal",
    "abs", "sigmoid", "erf", "erfc", "erfinv", "logit", "digamma", "sinc", "logaddexp", "hypot", "atan2",
    "pow", "xlogy", "maximum", "minimum",
)  # fmt: skip

IN_NN = {
    "log_sigmoid": "logsigmoid", "softplus": "softplus", "softsign": "softsign", "relu": "relu",
    "relu6": "relu6", "leaky_relu": "leaky_relu", "elu": "elu",
    "celu": "celu", "selu": "selu", "silu": "silu", "mish": "mish",
    "gelu": "gelu", "hard_tanh": "hardtanh", "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish",
    "tanhshrink": "tanhshrink",
}  # fmt: skip

IN_SPECIAL = {
    "i0": "i0", "i1": "i1", "i0e": "i0e", "i1e": "i1e", "j0": "bessel_j0", "j1": "bessel_j1", "entr": "entr",
    "xlog1py": "xlog1py", "normal_cdf": "ndtr", "log_normal_cdf": "log_ndtr", "normal_quantile": "ndtri",
    "gammaln": "gammaln",
}  # fmt: skip


@group("torch")
def elementwise() -> Iterator[Claim]:
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

    functions = named(torch, dict(zip(PLAIN, PLAIN, strict=True)))
    functions |= named(torch.nn.functional, IN_NN) | named(torch.special, IN_SPECIAL)
    functions["gelu_tanh"] = lambda v: torch.nn.functional.gelu(v, approximate="tanh")
    functions["trigamma"] = lambda v: torch.special.polygamma(1, v)

    def number(value: float) -> torch.Tensor:
        return torch.tensor(float(value), dtype=torch.float64, requires_grad=True)

    yield from claims(AuditedLibrary(functions, number, derivative, {}, frozenset({"j0", "j1"})))
