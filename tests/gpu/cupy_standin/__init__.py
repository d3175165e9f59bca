"""A stand-in for CuPy that needs no GPU: it computes with NumPy and has the rules of CuPy's interface.

Errors here are the mistakes that generated code must not make on a GPU: mixing NumPy arrays with device
arrays, reading a device array implicitly (bool, float, iteration), results of a wider type than the operands,
and functions that CuPy does not have. Bodies of generated kernels are compiled by the C compiler, with
every implicit widening of float to double an error. `empty` is filled with NaN. Launches, copies and
synchronizations are counted (`cuda.counts`). Comments that state how CuPy behaves name the file and the lines
in CuPy 14.2.0, and in 13.6.0 in brackets where they differ.

    with installed(): ...    # `import cupy` gives this module inside
"""

from __future__ import annotations

import contextlib
import importlib
import sys

NAMES = {
    "cupy": "tests.gpu.cupy_standin.module",
    "cupy.cuda": "tests.gpu.cupy_standin.cuda",
    "cupy_backends": "tests.gpu.cupy_standin.backends",
    "cupy_backends.cuda": "tests.gpu.cupy_standin.backends",
    "cupy_backends.cuda.libs": "tests.gpu.cupy_standin.backends",
    "cupy_backends.cuda.libs.cublas": "tests.gpu.cupy_standin.cublas",
    "cupyx": "tests.gpu.cupy_standin.extras",
    "cupyx.scipy": "tests.gpu.cupy_standin.extras",
    "cupyx.scipy.special": "tests.gpu.cupy_standin.special",
    "cupyx.scipy.linalg": "tests.gpu.cupy_standin.extras",
    "cupyx.scipy.sparse": "tests.gpu.cupy_standin.extras",
}


@contextlib.contextmanager
def installed():
    """Make `import cupy` and `import cupyx` give the stand-in."""
    before = {name: sys.modules.get(name) for name in NAMES}
    modules = {name: importlib.import_module(path) for name, path in NAMES.items()}
    sys.modules.update(modules)
    try:
        yield modules["cupy"]
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
