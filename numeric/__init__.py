"""Lowering: derivative graphs to readable NumPy (and native) code, and running it.

`lowering` is the start: `lower` chooses a backend of `backends` and returns a `Kernel`. The stages are
graph passes (`passes`), the schedule (`scheduling`), passes on programs (`program`, `expressions`,
`program_passes`) and text (`targets`), in the order of `pipelines`. The backends are `plain` text,
`scalars`, `numpy_arrays` and `compiled_arrays` (with `compiler` and `fusion`). What uses kernels:
`solvers`, `training`, `sampling`, `eager` attention and sums over pairs, and `scale` for several processes.
"""

if __name__ != "symad.numeric":  # the checkout also shows this folder as a top-level package
    raise ImportError("import symad.numeric, not numeric: a second copy would register rules twice")

from importlib import import_module
from typing import TYPE_CHECKING

from symad.core.elsewhere import missing
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import lower

if TYPE_CHECKING:
    from symad.numeric.eager.attention import attention
    from symad.numeric.eager.pairwise import pairwise
    from symad.numeric.fixed_inputs import given
    from symad.numeric.solvers.least_squares import least_squares
    from symad.numeric.solvers.minimize import minimize
    from symad.numeric.standalone_c import c_file

__all__ = ["Kernel", "attention", "c_file", "given", "least_squares", "lower", "minimize", "pairwise"]

_LATER = {
    "attention": "symad.numeric.eager.attention",
    "c_file": "symad.numeric.standalone_c",
    "given": "symad.numeric.fixed_inputs",
    "least_squares": "symad.numeric.solvers.least_squares",
    "minimize": "symad.numeric.solvers.minimize",
    "pairwise": "symad.numeric.eager.pairwise",
}
"""Public names whose modules are loaded on first use."""


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise missing("module 'symad.numeric'", name, __all__)


def __dir__() -> list[str]:
    """The public names, including those loaded on first use."""
    return sorted(__all__)
