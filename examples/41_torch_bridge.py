"""A symad graph as a PyTorch function, differentiable any number of times.

`Bridge` wraps a graph as `torch.autograd.Function`: forward is the lowered graph, backward the lowered
pullback, which is a bridge again, so a gradient of a gradient works too. On the CPU tensors and NumPy
arrays share memory; on a CUDA device tensors and CuPy arrays do, by DLPack, and nothing is copied.
The function here is attention with a soft cap: PyTorch's fused attention has neither the cap nor second
derivatives.
Run: python examples/41_torch_bridge.py
"""

from functools import cached_property

import numpy as np
import sympy as sp
import torch

import symad
from symad.functions import attention
from symad.graph import Graph, TupleOf
from symad.numeric import lower


class Bridge:
    """A graph with several inputs and outputs as a function of tensors."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kernels: dict[tuple[str, str], symad.numeric.Kernel] = {}

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs, connected to the inputs in PyTorch's graph."""
        return _Call.apply(self, *tensors)

    @cached_property
    def pullback(self) -> "Bridge":
        """(x..., ȳ...) -> x̄..., as a bridge."""
        full = symad.pullback(self.graph)
        count = len(self.graph.output_nodes)
        bars = full.output_nodes[count:]
        return Bridge(full.with_outputs(bars, TupleOf((None,) * len(bars)), full.name))

    def run(self, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Call the lowered graph on the memory of the tensors."""
        backend = "cupy" if tensors[0].is_cuda else "numpy"
        dtype = str(tensors[0].dtype).removeprefix("torch.")
        key = backend, dtype
        if key not in self.kernels:
            self.kernels[key] = lower(self.graph, backend=backend, dtype=dtype)
        if backend == "cupy":
            import cupy

            stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
            with stream:  # after what PyTorch has queued, before what it queues next
                values = self.kernels[key](*(cupy.from_dlpack(t.detach()) for t in tensors))
            made = values if isinstance(values, tuple) else (values,)
            return tuple(torch.from_dlpack(a) for a in made)
        values = self.kernels[key](*(t.detach().numpy() for t in tensors))
        made = values if isinstance(values, tuple) else (values,)
        return tuple(torch.from_numpy(np.array(a)) for a in made)


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx, bridge, *tensors):
        ctx.bridge = bridge
        ctx.save_for_backward(*tensors)
        return bridge.run(tensors)

    @staticmethod
    def backward(ctx, *bars):
        return None, *ctx.bridge.pullback(*ctx.saved_tensors, *bars)


def capped(q, k, v, cap):
    """Causal attention with scores cap tanh(s / cap)."""
    return attention(
        q, k, v, causal=True, params={"cap": cap},
        score=lambda s, b, h, i, j, cap: cap * sp.tanh(s / cap),
    )  # fmt: skip


def reference(q, k, v, cap):
    """The same in PyTorch, over all pairs."""
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
    bridge = Bridge(symad.trace(capped, [shape, shape, shape, ()]))
    direction = [torch.randn_like(t) for t in arguments]

    results = {}
    for name, function in (("symad", lambda *a: bridge(*a)[0]), ("torch", reference)):
        loss = (function(*arguments) ** 3).sum()
        gradients = torch.autograd.grad(loss, arguments, create_graph=True)
        slope = sum((g * d).sum() for g, d in zip(gradients, direction, strict=True))
        product = torch.autograd.grad(slope, arguments)
        results[name] = torch.cat([loss[None], *(t.flatten() for t in (*gradients, *product))])
    apart = (results["symad"] - results["torch"]).abs().max().item()
    print(f"on {device}: loss, gradients and Hessian-vector product differ by {apart:.0e}")
    assert apart < 1e-10
    small = [t.detach()[..., :3, :2].clone().requires_grad_() for t in arguments[:3]]
    inner = Bridge(symad.trace(capped, [small[0].shape] * 3 + [()]))
    call = [*small, arguments[3]]
    assert torch.autograd.gradcheck(lambda *a: inner(*a)[0], call)
    assert torch.autograd.gradgradcheck(lambda *a: inner(*a)[0], call)
    print("torch.autograd.gradcheck and gradgradcheck agree")


def _has_cupy() -> bool:
    try:
        import cupy
    except Exception:
        return False
    return bool(cupy.is_available())


if __name__ == "__main__":
    main()
