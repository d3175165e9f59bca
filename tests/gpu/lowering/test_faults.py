"""Errors of CUDA, of its libraries and of the system say what to do, wherever CuPy raises them."""

from __future__ import annotations

import ast
import atexit
import errno
import re
from unittest.mock import patch

import numpy as np
import pytest

import symad
import symad.gpu
from symad.errors import LoweringError
from symad.gpu.compile import GpuError, advice
from symad.models.layers.parameters import trace_model
from symad.numeric import lower
from tests.forked import ROOT, run_interpreter
from tests.gpu.cupy_agreement import leaves, library, on_device
from tests.gpu.cupy_standin import array, cuda, kernels, module
from tests.gpu.launch_cases import CASES
from tests.gpu.lowering.op_cases import example_graphs


def error(name, text):
    """An error of a class of CuPy, which is made here by its name."""
    base = MemoryError if name == "OutOfMemoryError" else RuntimeError
    return type(name, (base,), {})(text)


ERRORS = [
    (error("OutOfMemoryError", "Out of memory allocating 8 bytes"), "out of device memory.*batch"),
    (error("CUDARuntimeError", "cudaErrorMemoryAllocation: out of memory"), "ran out of device memory"),
    (error("CUBLASError", "CUBLAS_STATUS_ALLOC_FAILED"), "ran out of device memory"),
    (error("CUBLASError", "CUBLAS_STATUS_NOT_INITIALIZED"), "memory of their own when they start"),
    (error("CUBLASError", "CUBLAS_STATUS_EXECUTION_FAILED"), "start a new one.*compute-sanitizer"),
    (error("CUSOLVERError", "CUSOLVER_STATUS_INTERNAL_ERROR"), "start a new one"),
    (error("CUDARuntimeError", "cudaErrorInsufficientDriver: insufficient for CUDA runtime"), "gpu-cuda12"),
    (error("CUDARuntimeError", "cudaErrorUnsupportedPtxVersion: the provided PTX"), "driver is older"),
    (error("CUDADriverError", "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image"), "driver is older"),
    (error("CUDADriverError", "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"), "start a new one"),
    (error("CUDARuntimeError", "cudaErrorLaunchOutOfResources: too many resources"), "narrower heads"),
    (error("CUDARuntimeError", "cudaErrorDevicesUnavailable: busy"), "nvidia-smi"),
    (error("NVRTCError", "NVRTC_ERROR_INVALID_OPTION (5)"), "NVRTC does not compile"),
    (error("CompileException", "kernel.cu(1): error"), "NVRTC does not compile"),
    (error("DynamicLibNotFoundError", "libnvrtc.so.13"), "extras.*gpu-cuda13"),
    (OSError("libcublas.so.13: cannot open shared object file"), "extras.*gpu-cuda13"),
    (PermissionError(errno.EACCES, "Permission denied", "kernel_cache"), "CUPY_CACHE_DIR"),
    (OSError(errno.EROFS, "Read-only file system"), "CUPY_CACHE_DIR"),
    (OSError(errno.ENOSPC, "No space left on device"), "CUPY_CACHE_DIR"),
]


def everything(a, table, rows):
    """A product, a solution, rows by number, a sum and an elementwise chain."""
    solution = np.linalg.solve(a @ a.T + 3 * np.eye(3), table[rows])
    return (np.sin(solution) * 2).sum() + (np.sqrt(np.arange(10.0)).reshape(5, 2) * table).sum()


GRAPH = symad.value_and_gradient(symad.trace(everything, [(3, 3), (5, 2), (3,)]), wrt=[0, 1])
VALUES = [np.eye(3), np.ones((5, 2))], np.array([0, 4, 4])
PLACES = {
    "arrays": (module, "empty"),
    "constants": (module, "array"),
    "elementwise kernels": (kernels.ElementwiseKernel, "__call__"),
    "kernels": (kernels.RawFunction, "__call__"),
    "compiled texts": (kernels.RawModule, "get_function"),
    "products": ("cublas", "gemmStridedBatchedEx"),
    "handles": (cuda.device, "get_cublas_handle"),
    "solutions": (module.linalg, "solve"),
    "devices": (cuda, "Device"),
    "pinned memory": (cuda, "alloc_pinned_memory"),
    "number of devices": (cuda.runtime, "getDeviceCount"),
}


def test_errors_of_other_kinds_are_left_alone():
    assert advice(ValueError("memory")) == advice(np.linalg.LinAlgError("Singular matrix")) == ""


@pytest.mark.parametrize("place", PLACES)
def test_every_error_at_every_place(place):
    owner, name = PLACES[place]
    if isinstance(owner, str):
        from tests.gpu.cupy_standin import cublas as owner
    with library() as cp:
        arrays = [*on_device(cp, VALUES[0]), cp.asarray(VALUES[1])]
        for problem, told in ERRORS:
            kernel = lower(GRAPH, backend="cupy")  # a kernel of its own, which has made nothing yet
            with patch.object(owner, name, side_effect=problem), pytest.raises(GpuError) as found:
                kernel(*arrays)
            assert found.value.__cause__ is problem
            message = str(found.value).replace("\n", " ")
            if place == "number of devices":  # before any array is there
                told = "free memory" if "device memory" in told else told
            assert re.search(told, message), (place, message)


def test_waiting_says_what_to_do():
    illegal = ERRORS[9][0]
    told = r"waiting for the device fails.*start a new one"
    failing = patch.object(cuda.runtime, "deviceSynchronize", side_effect=illegal)
    with library(), failing, pytest.raises(GpuError, match=told):
        symad.gpu.check_indices()


@pytest.mark.parametrize("place", ["graph", "copies"])
def test_recorded_functions_say_what_to_do(place):
    with library() as cp:
        step = symad.gpu.recorded(symad.trace(lambda a: a * 2, [(3,)]))
        a = cp.ones(3)
        owner, name = (cuda.Stream, "wait_event") if place == "graph" else (module, "empty")
        failing = patch.object(owner, name, side_effect=ERRORS[9][0])
        with failing, pytest.raises(GpuError, match="start a new"):
            step(a)


# ---- row numbers on several devices ---------------------------------------------------------------


def test_at_the_end_the_flag_of_every_device_is_read():
    """Each device's wrong index is reported, whichever device is current then."""
    with library() as cp:
        kernel = lower(symad.trace(lambda t, i: t[i].sum(), [(5, 2), (3,)]), backend="cupy")
        at_end = []
        with patch.object(atexit, "register", lambda *call: at_end.append(call)):
            for number, index in ((0, 1), (1, 7)):  # wrong on device 1 only
                with cp.cuda.Device(number):
                    kernel(cp.ones((5, 2)), cp.asarray(np.full(3, index)))
        assert [call[1:] for call in at_end] == [(0,), (1,)]
        at_end[0][0](*at_end[0][1:])
        with pytest.raises(IndexError, match=r"-5\.\.4"):
            at_end[1][0](*at_end[1][1:])
        assert cp.cuda.Device().id == 0


# ---- what the environment changes -----------------------------------------------------------------

MULTIPLYING = {"matmul", "dot", "tensordot", "inner", "vdot", "matrix_power", "lstsq", "pinv"}


def multiplies_by_cupy(text):
    """Whether code multiplies matrices by CuPy itself, where CUPY_TF32=1 rounds factors."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
        if isinstance(node, ast.Attribute) and node.attr in MULTIPLYING:
            return True
    return False


@pytest.mark.thorough
def test_the_environment_changes_no_product():
    """Products call cuBLAS with a stated type of sums, which CUPY_TF32 does not change."""
    counted = 0
    for case in example_graphs():
        try:
            text = lower(case.values[0], backend="cupy", dtype="float32").source
        except LoweringError:
            continue
        assert not multiplies_by_cupy(text), case.id
        counted += "_product(" in text
    assert counted > 10


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["rnn, 100 steps", "lstm of PyTorch", "transformer block"])
def test_the_environment_changes_sums_by_roundings_alone(name):
    """CUPY_ACCELERATORS chooses the order in which CuPy adds; the last digits may differ, no others."""
    function, shapes, data = CASES[name]
    both = symad.value_and_gradient(trace_model(function, shapes, *data), list(shapes))
    rng = np.random.default_rng(5)
    values = [*(0.3 * rng.normal(size=s) for s in shapes.values()), *data]
    expected = leaves(lower(both)(*values))
    found = {}
    with library() as cp:
        kernel = lower(both, backend="cupy", dtype="float32")
        for chosen in array.ORDERS:
            with patch.object(array, "order", [chosen]):
                found[chosen] = [a.get() for a in leaves(kernel(*on_device(cp, values, "float32")))]
            for e, g in zip(expected, found[chosen], strict=True):
                np.testing.assert_allclose(g, e, rtol=0, atol=1e-5 * max(1.0, np.abs(e).max()))
    bits = {b"".join(a.tobytes() for a in each) for each in found.values()}
    assert len(bits) > 1  # sums of CuPy were met


@pytest.mark.thorough
def test_code_does_not_depend_on_what_was_lowered_before():
    """In a new interpreter, which has lowered nothing for another backend, an op has the same code."""
    script = (
        "import sys\nfrom symad.numeric import lower\n"
        "from tests.gpu.lowering.op_cases import example_graphs\n"
        "for case in example_graphs():\n"
        "    if case.id in sys.argv[1:]: print(lower(case.values[0], backend='cupy').source)\n"
    )
    chosen = ["Root-0", "Attention-0", "PairSum-0", "Scan-0"]
    found = {case.id: case.values[0] for case in example_graphs() if case.id in chosen}
    assert "Root-0" in found
    status, printed = run_interpreter(["-c", script, *found], ROOT)
    assert status == 0, printed
    assert printed == "".join(f"{lower(graph, backend='cupy').source}\n" for graph in found.values())
