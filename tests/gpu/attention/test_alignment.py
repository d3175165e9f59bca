"""Arrays that start at no multiple of 16 bytes: kernels copy 16 bytes at once in aligned arrays only."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import symad
from symad.functions import attention
from symad.gpu import module_text
from symad.gpu.attention_kernels.compiled_score import compile_score
from symad.gpu.attention_kernels.plan import ELEMENTS, FORWARD, plans
from symad.numeric import lower
from symad.numeric.pairs.scores import trace_score
from tests.gpu import nvrtc
from tests.gpu.attention_calls import forget, forward_backward, second_order
from tests.gpu.attention_cases import NAMES, encode
from tests.gpu.cupy_agreement import library
from tests.gpu.foreign import Foreign
from tests.gpu.shim.driver import KernelError, schedule

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
RNG = np.random.default_rng(4)
SHAPES = [(1, 2, 37, 16), (1, 1, 45, 16), (1, 1, 45, 16), (1, 2, 37, 16)]


def shifted(array, places):
    """The same numbers some elements after a multiple of 16 bytes."""
    memory = np.zeros(array.size + places + 16, array.dtype)
    start = (-memory.ctypes.data // array.itemsize) % (16 // array.itemsize) + places
    made = memory[start : start + array.size].reshape(array.shape)
    made[...] = array
    return made


def aligned(array):
    return array.ctypes.data % 16 == 0


def run(arrays, name, tensor_cores=True):
    out, lse, bars = forward_backward(name, arrays, None, causal=True, tensor_cores=tensor_cores)
    return out, lse, bars.q, bars.k, bars.v


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("name", [*NAMES, "plain"])
def test_odd_places_give_the_same_bits(name, order):
    """Also where copies happen at once, as those through registers do."""
    cores = name != "plain"
    dtype = "float32" if name == "plain" else name
    arrays = [encode(RNG.normal(size=s), dtype) for s in SHAPES]
    with schedule(order):
        expected = run(arrays, dtype, cores)
        for places in (1, 3) if name == "bfloat16" else (1,):
            odd = [shifted(a, places) for a in arrays]
            assert not any(aligned(a) for a in odd)
            for found, wanted in zip(run(odd, dtype, cores), expected, strict=True):
                assert found.tobytes() == wanted.tobytes()


@pytest.mark.thorough
def test_the_shim_stops_at_what_would_stop_a_device(monkeypatch):
    arrays = [shifted(encode(RNG.normal(size=s), "bfloat16"), 1) for s in SHAPES]
    blind = module_text.LAUNCH.replace("a.data.ptr % 16", "False")
    assert blind != module_text.LAUNCH
    monkeypatch.setattr(module_text, "LAUNCH", blind)
    forget()
    with pytest.raises(KernelError, match="not aligned"):
        run(arrays, "bfloat16")
    forget()


def loss(b, q, k, v):
    return (attention(q, k, v, causal=True) ** 2).sum() * b.sum()


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_packed_inputs_and_views_in_modules(dtype):
    """Three numbers before q: it starts at an odd place of the one vector; views of others may too."""
    pytest.importorskip("ml_dtypes")
    shapes = [(3,), (1, 2, 9, 8), (1, 2, 9, 8), (1, 2, 9, 8)]
    graph = symad.value_and_gradient(symad.trace(loss, shapes))
    values = [RNG.normal(size=s).astype(dtype) for s in shapes]
    with library() as cp:
        apart = lower(graph, backend="cupy", dtype=dtype)(*map(cp.asarray, values))
        x = np.concatenate([v.ravel() for v in values])
        assert x[:3].nbytes % 16  # so that the view of q starts there
        value, slope = lower(graph, backend="cupy", dtype=dtype, packed=True)(cp.asarray(x))
        assert value.get().tobytes() == apart[0].get().tobytes()
        wanted = np.concatenate([a.get().ravel() for a in apart[1:]])
        assert slope.shape == x.shape and slope.get().tobytes() == wanted.tobytes()
        odd = [Foreign(shifted(v, 1)) for v in values]
        for found, right in zip(lower(graph, backend="cupy", dtype=dtype)(*odd), apart, strict=True):
            assert found.get().tobytes() == right.get().tobytes()


@pytest.mark.thorough
def test_products_of_second_order():
    arrays = [encode(RNG.normal(size=s), "float32") for s in SHAPES]
    dots = [encode(RNG.normal(size=s), "float32") for s in SHAPES]

    rows = [RNG.normal(size=(1, 2, 37)).astype("f4") for _ in range(2)]

    def cotangents(turn):
        groups = [arrays[:3], (arrays[3], rows[0]), dots[:3], (dots[3], rows[1])]
        return second_order("float32", [[turn(a) for a in group] for group in groups])

    for found, wanted in zip(cotangents(lambda a: shifted(a, 1)), cotangents(lambda a: a), strict=True):
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.thorough
@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("name", NAMES)
def test_the_variant_compiles(name):
    element = ELEMENTS[name]
    code = compile_score(trace_score(None, None, (), True), element.real)
    for plan in plans(FORWARD, element, 64, 64, 227 << 10, True):
        text = "#define SYMAD_UNALIGNED\n" + plan.source(code)
        _, kernels = nvrtc.compile_text(text, "sm_90")
        assert kernels["attention_forward"].registers <= 255


def test_too_many_batches_are_named():
    graph = symad.trace(lambda q, k, v: attention(q, k, v), [(70000, 1, 1, 2)] * 3)
    with library() as cp:
        value = cp.asarray(np.zeros((70000, 1, 1, 2), np.float32))
        with pytest.raises(ValueError, match="at most 65535 heads and batches, not 1 and 70000"):
            lower(graph, backend="cupy", dtype="float32")(value, value, value)
