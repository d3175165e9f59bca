"""CUDA: the CuPy backend and symad's own kernels. CuPy is imported on first use, not here.

`lower` is the start: it makes a `Kernel` whose code runs on the device, which `compile` finds.
It replaces fused ops without a kernel by their definitions; `passes` fuse nodes and recognize those for
which there are kernels; `array_printer` prints the module by the rules of `printers`,
with the functions in `module_text`. `attention_kernels` and `pairs` have attention and sums over pairs,
`recurrences` loops, `training` recorded steps; kernels written by hand are in the files of gpu/kernels.
"""

if __name__ != "symad.gpu":  # the checkout also shows this folder as a top-level package
    raise ImportError("import symad.gpu, not gpu: a second copy would register rules twice")

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symad.gpu.eager import attention, pairwise
    from symad.gpu.lower import check_indices
    from symad.gpu.recording import recorded
    from symad.gpu.settings import options
    from symad.gpu.training.optimizer import LossScale
    from symad.gpu.training.step import training_step

__all__ = ["LossScale", "attention", "check_indices", "options", "pairwise", "recorded", "training_step"]

_LATER = {
    "LossScale": "symad.gpu.training.optimizer",
    "attention": "symad.gpu.eager",
    "check_indices": "symad.gpu.lower",
    "options": "symad.gpu.settings",
    "pairwise": "symad.gpu.eager",
    "recorded": "symad.gpu.recording",
    "training_step": "symad.gpu.training.step",
}
"""Public names whose modules are loaded on first use."""


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'symad.gpu' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, including those loaded on first use."""
    return sorted(__all__)
