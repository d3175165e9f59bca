"""Generated CuPy code against CuPy's own wheel, on a machine without a device (`make gpu-static`).

Every name exists, every call binds to its signature, and every kernel compiles in the text that CuPy writes
around it, for all architectures that the wheel supports.
"""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import LoweringError
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from symad.numeric.training.optimizers import SGD, adamw
from tests.gpu.cupy_agreement import on_device
from tests.gpu.launch_cases import CASES as MODELS
from tests.gpu.lowering.generative_cases import CASES as GENERATIVE
from tests.gpu.lowering.op_cases import SCALARS, example_graphs, example_values, x, y, z
from tests.gpu.static import wheel

pytestmark = pytest.mark.thorough
if not wheel.at_hand():
    pytest.skip("needs CuPy's wheel: make gpu-static", allow_module_level=True)

DTYPES = ("float64", "float32", "float16", "bfloat16")


def examined(graph, dtype, values, least=75):
    """Checks the names, calls and kernels of the code of a graph; returns the number of compiled texts."""
    try:
        kernel = lower(graph, backend="cupy", dtype=dtype)
    except LoweringError as problem:  # refused by name before anything is compiled
        assert dtype in ("float16", "bfloat16"), problem
        return 0
    assert list(wheel.faults(kernel.source)) == []

    def call():
        kernel(*on_device(sys.modules["cupy"], values, dtype))

    return compiled(wheel.texts(call, kernel.source), least)


def compiled(texts, least=75):
    """Checks that texts compile; returns their number."""
    found = dict.fromkeys(texts)
    for text, options, lowest in found:
        for architecture in wheel.architectures(text, max(least, lowest)):
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


def tiled(table, q, v, rows):
    """Rows of a table, a product, a scan, and attention with a score that approximations change."""
    k = functions.scan(lambda h, x: np.tanh(x + h @ v[0, 0, :8]), np.zeros(8), table[rows])
    out = functions.attention(q, k[None, None], v, causal=True, score=lambda s, *_: 9 * sp.tanh(s / 9))
    return (out**2).sum() + (q[0, 0] @ table.T).sum()


def near(x, y, width):
    return functions.pairwise(
        lambda x, y, w: sp.exp(-(x - y).dot(x - y) / w), x, y, params={"w": width}
    ).sum()


RNG = np.random.default_rng(1)
GRAPHS = {
    "tiled": (tiled, [(7, 8), (1, 1, 12, 8), (1, 1, 12, 8), (12,)], 3),
    "pairs": (near, [(20, 64), (30, 64), ()], None),
}
OPTIONS = (
    {"tf32": True}, {"atomics": True}, {"wait": True}, {"capture": True}, {"fast": True}, {"wide": True},
    {"tensor_cores": False}, {"autotune": False}, {"pair_products": "tf32x3"}, {"pair_products": "bf16"},
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", GRAPHS)
def test_options(name, options, dtype):
    function, shapes, index = GRAPHS[name]
    graph = symad.value_and_gradient(symad.trace(function, shapes), wrt=[0, 1])
    values = [RNG.normal(size=s) if k != index else RNG.integers(0, 7, s) for k, s in enumerate(shapes)]
    with symad.gpu.options(**options):
        assert examined(graph, dtype, values, 80 if "capture" in options else 75) > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("optimizer", [SGD(0.1, momentum=0.9), adamw(0.01)], ids=repr)
def test_steps_of_training(optimizer, dtype):
    function, shapes, data = MODELS["feedforward"]
    graph = trace_model(function, shapes, *data)
    parameters = {k: RNG.normal(size=s) for k, s in shapes.items()}

    def call():
        step = symad.gpu.training_step(graph, parameters, optimizer, clip=1.0, dtype=dtype)
        for _ in range(2):
            step(*map(sys.modules["cupy"].asarray, data))

    assert compiled(wheel.texts(call), 80) > 3


def test_what_cupy_has_not_is_found():
    """Names that do not exist, and calls that do not bind."""
    source = (
        "import cupy as cp\nfrom cupyx.scipy.special import erf\ncp.where(1, b=2)\ncp.no_such(3)\nerf(1)\n"
    )
    assert len(list(wheel.faults(source))) == 2


def test_a_half_precision_that_cupy_has_not_is_found():
    """bfloat16 is a type of ml_dtypes, not of CuPy."""
    source = lower(symad.trace(lambda a: a @ np.eye(3), [(3, 3)]), backend="cupy", dtype="bfloat16").source
    assert list(wheel.faults(source)) == []
    wrong = source.replace("ml_dtypes.bfloat16", "cp.bfloat16")
    assert any("cp.bfloat16 does not exist" in fault for fault in wheel.faults(wrong))


def test_half_precision_without_its_guard_is_found():
    """Without the text for devices before 8.0, kernels of half precisions do not compile there."""
    graph = symad.trace(lambda W, xs: functions.scan(lambda h, x: W @ h + x, np.zeros(3), xs), 2 * [(3, 3)])
    kernel = lower(graph, backend="cupy", dtype="bfloat16")

    def call():
        kernel(*on_device(sys.modules["cupy"], [np.eye(3), np.eye(3)], "bfloat16"))

    halves = re.compile(r"#else  // numbers are stored in half precision.*?(?=#endif)", re.DOTALL)
    text, options, _ = next(found for found in wheel.texts(call, kernel.source) if halves.search(found[0]))
    assert 75 in wheel.architectures(text, 75)
    assert not wheel.log_of(text, options, 75).startswith("error")
    assert "pack_bf16" in wheel.log_of(halves.sub("", text), options, 75)
