"""A module of PyTorch against its graph, in float64: values, and gradients of all parameters and inputs."""

import numpy as np
import pytest

import symad
from symad.numeric import lower

torch = pytest.importorskip("torch")


def leaves(value):
    """The parts of nested results, without None."""
    if isinstance(value, (tuple, list)):
        return [part for v in value for part in leaves(v)]
    return [] if value is None else [value]


def arrays(value):
    return value.numpy() if isinstance(value, torch.Tensor) else value


def agrees(module, inputs, expected=None, backends=("numpy",), **named):
    """The graph of (parameters, *inputs) against ``expected(*tensors)``, by default the module itself.

    ``named`` are further arguments, tensors or options, that are not differentiated. The tolerance is 1e-10
    of the largest entry.
    """
    module = module.double().eval()
    module.zero_grad()
    g = np.random.default_rng(1)
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    wanted = leaves((expected or (lambda *t: module(*t, **named)))(*tensors))
    model = symad.torch.from_torch(module)
    fixed = {k: arrays(v) for k, v in named.items()}
    graph = model.trace(*(x.shape for x in inputs), **fixed)
    given = ([model.parameters] if model.parameters else []) + list(inputs)
    seeds = [g.normal(size=tuple(t.shape)) for t in wanted]
    sum((t * torch.tensor(s)).sum() for t, s in zip(wanted, seeds, strict=True)).backward()
    slopes = [t.grad.numpy() for t in [*module.parameters(), *tensors] if t.grad is not None]
    pulled = symad.pullback(graph)
    runs = [(graph, pulled), *((lower(graph, backend=b), lower(pulled, backend=b)) for b in backends)]
    for values, pullback in runs:
        found = leaves(values(*given))
        assert len(found) == len(wanted)
        close(found, [t.detach().numpy() for t in wanted])
        bars = pullback(*given, *seeds)[-len(given) :]
        flat = [*bars[0].values(), *bars[1:]] if model.parameters else list(bars)
        others = [*module.parameters(), *tensors]
        close([bar for bar, t in zip(flat, others, strict=True) if t.grad is not None], slopes)


def close(found, wanted):
    scale = max([np.abs(w).max() for w in wanted if np.size(w)], default=0.0)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12 * (1 + scale))
