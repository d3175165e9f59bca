"""Comparison of models with torch in double precision, value and all gradients."""

import numpy as np
import pytest

import symad
from symad.models.layers.parameters import trace_model
from symad.numeric import lower


def agrees_with_torch(f, shapes, reference, *data, seed=0, scale=0.5, sizes=None):
    """``f(p, *data)`` is a number; ``reference`` computes it with torch from a dict of tensors.

    Compares, at random normal parameters, the value and the gradients of all parameters, by the generated
    code and by evaluating the graph. ``sizes`` are inputs for tracing in place of the data's own shapes.
    """
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    p = {name: scale * rng.standard_normal(shape) for name, shape in shapes.items()}
    tensors = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in p.items()}
    expected = reference(torch, tensors, *map(torch.as_tensor, data))
    expected.backward()
    graph = symad.value_and_gradient(trace_model(f, shapes, *(sizes or data)), list(shapes))
    arguments = (*p.values(), *data)
    wanted = {
        name: np.zeros(p[name].shape) if v.grad is None else v.grad.numpy() for name, v in tensors.items()
    }
    # Some gradients are zero up to rounding, such as that of the keys' bias in attention.
    largest = max(np.abs(g).max() for g in wanted.values())
    for found in (graph(*arguments), lower(graph)(*arguments)):
        np.testing.assert_allclose(found[0], expected.item(), rtol=1e-10)
        for name, gradient in zip(shapes, found[1:], strict=True):
            np.testing.assert_allclose(gradient, wanted[name], rtol=1e-10, atol=1e-13 * largest, err_msg=name)
    np.testing.assert_allclose(f(p, *data), expected.item(), rtol=1e-10)
