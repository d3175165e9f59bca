"""The bridge to PyTorch, imported on use: autograd functions from graphs, their verification, modules.

`as_function` makes a graph a function of tensors, differentiable any number of times; `verify_function`
certifies the forward and backward pass of a ``torch.autograd.Function``; `from_torch` reads a
module with its weights, and `layer` is the question that every kind of module answers.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "symad.torch is the bridge to PyTorch, which is not installed here: pip install torch"
    ) from error

from symad.torch import (  # noqa: F401  (register answers)
    attending,
    elementary,
    layers,
    losses,
)
from symad.torch.bridge import TorchFunction, as_function
from symad.torch.modules import Model, Weights, from_torch, layer
from symad.torch.verifying import verify_function

__all__ = ["Model", "TorchFunction", "Weights", "as_function", "from_torch", "layer", "verify_function"]
