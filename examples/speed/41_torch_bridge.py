"""A symad graph as a PyTorch function, differentiable any number of times.

`symad.torch.as_function` wraps a graph as a `torch.autograd.Function`: its forward is the lowered graph, its
backward the lowered pullback, which is such a function again, so that a gradient of a gradient works too.
Tensors share memory with NumPy arrays on the CPU and with CuPy arrays on a CUDA device, by DLPack; nothing is
copied. The function here is attention with a soft cap: PyTorch's fused attention has neither the cap nor
second derivatives.
Run: python examples/speed/41_torch_bridge.py
"""

import sympy as sp
import torch

import symad
from symad.functions import attention


def capped(q, k, v, cap):
    """Causal attention with scores cap tanh(s / cap)."""
    return attention(
        q, k, v, causal=True, params={"cap": cap},
        score=lambda s, b, h, i, j, cap: cap * sp.tanh(s / cap),
    )  # fmt: skip


def reference(q, k, v, cap):
    """The same function in PyTorch, over all pairs."""
    n = q.shape[2]
    t = cap * torch.tanh(q @ k.transpose(-1, -2) / q.shape[3] ** 0.5 / cap)
    hidden = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(t.masked_fill(hidden, -torch.inf), -1) @ v


def main() -> None:
    """Values, gradients and a Hessian-vector product on both sides; PyTorch's own checks."""
    device = "cuda" if torch.cuda.is_available() and _has_cupy() else "cpu"
    torch.manual_seed(0)
    shape = (1, 2, 6, 4)
    arguments = [torch.randn(shape, dtype=torch.float64, device=device) for _ in range(3)]
    arguments.append(torch.tensor(1.5, dtype=torch.float64, device=device))
    for tensor in arguments:
        tensor.requires_grad_()
    ours = symad.torch.as_function(capped, [shape, shape, shape, ()])
    direction = [torch.randn_like(t) for t in arguments]

    results = {}
    for name, function in (("symad", ours), ("torch", reference)):
        loss = (function(*arguments) ** 3).sum()
        gradients = torch.autograd.grad(loss, arguments, create_graph=True)
        slope = sum((g * d).sum() for g, d in zip(gradients, direction, strict=True))
        product = torch.autograd.grad(slope, arguments)
        results[name] = torch.cat([loss[None], *(t.flatten() for t in (*gradients, *product))])
    apart = (results["symad"] - results["torch"]).abs().max().item()
    print(f"on {device}: loss, gradients and Hessian-vector product differ by {apart:.0e}")
    assert apart < 1e-10
    small = [t.detach()[..., :3, :2].clone().requires_grad_() for t in arguments[:3]]
    inner = symad.torch.as_function(capped, [small[0].shape] * 3 + [()])
    call = [*small, arguments[3]]
    assert torch.autograd.gradcheck(inner, call)
    assert torch.autograd.gradgradcheck(inner, call)
    print("torch.autograd.gradcheck and gradgradcheck agree")


def _has_cupy() -> bool:
    try:
        import cupy
    except Exception:
        return False
    return bool(cupy.is_available())


if __name__ == "__main__":
    main()
