"""Generated CuPy code against CuPy's own wheel, on a machine without a device (`make gpu-static`).

Every name exists, every call binds to its signature, and every kernel compiles in the text that CuPy writes
around it, for all architectures that the wheel supports.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

import symad
from symad.errors import LoweringError
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from tests.gpu.cupy_agreement import on_device
from tests.gpu.launch_cases import CASES as MODELS
from tests.gpu.lowering.generative_cases import CASES as GENERATIVE
from tests.gpu.lowering.op_cases import SCALARS, example_graphs, example_values, x, y, z
from tests.gpu.static import wheel

pytestmark = pytest.mark.thorough
if not wheel.at_hand():
    pytest.skip("needs CuPy's wheel: make gpu-static", allow_module_level=True)

DTYPES = ("float64", "float32", "float16", "bfloat16")


def examined(graph, dtype, values):
    """Checks the names, calls and kernels of the code of a graph; returns the number of compiled texts."""
    try:
        kernel = lower(graph, backend="cupy", dtype=dtype)
    except LoweringError as problem:  # refused by name before anything is compiled
        assert dtype in ("float16", "bfloat16"), problem
        return 0
    assert list(wheel.faults(kernel.source)) == []

    def call():
        kernel(*on_device(sys.modules["cupy"], values, dtype))

    found = dict.fromkeys(wheel.texts(kernel.source, call))
    for text, options, least in found:
        for architecture in [a for a in wheel.ARCHITECTURES if a >= least]:
            log = wheel.log_of(text, options, architecture)
            assert not log.startswith("error"), f"sm_{architecture}\n{log}\n{text}"
    return len(found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("graph", "dims"), list(example_graphs()))
def test_ops(graph, dims, dtype):
    if any(type(n.op).__name__ == "Dimension" for n in graph.nodes):
        pytest.skip("no input tells the dimension")
    examined(graph, dtype, example_values(graph, dims))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("e", SCALARS, ids=str)
def test_scalar_functions(e, dtype):
    graph = symad.trace(e, (x, y, z))
    for derived in (graph, symad.value_and_gradient(graph), symad.hessian(graph)):
        assert examined(derived, dtype, (0.4, 1.3, 0.7)) > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*MODELS, *GENERATIVE])
def test_models(name, dtype):
    if name in MODELS:
        function, shapes, data = MODELS[name]
    else:
        model, loss, data = GENERATIVE[name]
        function, shapes = getattr(model, loss), model.shapes
    graph = symad.value_and_gradient(trace_model(function, shapes, *(np.shape(d) for d in data)))
    rng = np.random.default_rng(1)
    values = [rng.normal(size=node.shape) for node in graph.input_nodes[: -len(data)]]
    assert examined(graph, dtype, [*values, *data]) > 0


def test_what_cupy_has_not_is_found():
    """Names that do not exist, and calls that do not bind."""
    source = (
        "import cupy as cp\nfrom cupyx.scipy.special import erf\ncp.where(1, b=2)\ncp.no_such(3)\nerf(1)\n"
    )
    assert len(list(wheel.faults(source))) == 2
