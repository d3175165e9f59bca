"""Every kernel compiles for five architectures: no spills, and the instructions it is written for.

Needs the wheels nvidia-cuda-nvrtc and nvidia-cuda-nvdisasm, and no GPU.
"""

import itertools

import pytest
import sympy as sp

from symad.gpu.attention_kernels.compiled_score import compile_score
from symad.gpu.attention_kernels.plan import ELEMENTS, PLAIN_FLOAT32, plans
from symad.gpu.attention_kernels.tile_shapes import (
    BACKWARD_KV,
    BACKWARD_Q,
    DIAGONALS,
    FORWARD,
    SECOND_KV,
    SECOND_ORDER,
    SECOND_Q,
    TANGENT,
)
from symad.numeric.pairs.scores import Parameter, trace_score
from tests.gpu import nvrtc

pytestmark = pytest.mark.skipif(
    nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc (pip, no GPU)"
)

# Shared memory per block by architecture, in bytes.
ARCHITECTURES = {
    "sm_80": 163 << 10, "sm_90": 227 << 10, "sm_90a": 227 << 10, "sm_100": 227 << 10,
    "sm_120": 99 << 10,
}  # fmt: skip
KINDS = (FORWARD, BACKWARD_Q, BACKWARD_KV)
PRODUCT = {"bfloat16": "HMMA", "float16": "HMMA", "float32": "HMMA", "float64": "DMMA"}
# Bytes of spills that the compiler does not avoid although a register is free elsewhere.
KNOWN_SPILLS = {
    ("sm_100", "float64", 128, BACKWARD_Q): 8,
    ("sm_100", "float64", 128, SECOND_Q): 20,
    ("sm_100", "float64", 128, SECOND_KV): 12,
}


def compiled(name, head_dim, kind, arch, score=None, mask=None, parameters=(), causal=False):
    element = ELEMENTS[name]
    traced = trace_score(score, mask, parameters, causal)
    code = compile_score(traced, element.real)
    for plan in plans(kind, element, head_dim, head_dim, ARCHITECTURES[arch], score is None):
        yield nvrtc.compile_text(plan.source(code), arch)


def check(name, head_dim, kind, arch, **options):
    for cubin, kernels in compiled(name, head_dim, kind, arch, **options):
        kernel = kernels[f"attention_{kind}"]
        assert kernel.spilled <= KNOWN_SPILLS.get((arch, name, head_dim, kind), 0)
        assert kernel.registers <= 255
        if nvrtc.disassembler() is None:
            continue
        found = nvrtc.instructions(cubin)
        assert found[PRODUCT[name]] > 0
        assert found["LDGSTS"] > 0  # cp.async
        if name != "float64":
            assert found["LDSM"] > 0  # ldmatrix


def case(arch, name, head_dim, kind):
    few = head_dim == 128 and (name == "bfloat16" or (arch == "sm_90" and name != "float16"))
    return pytest.param(arch, name, head_dim, kind, marks=[] if few else pytest.mark.slow)


CASES = [case(*c) for c in itertools.product(ARCHITECTURES, ELEMENTS, (64, 128), KINDS)]


@pytest.mark.thorough
@pytest.mark.parametrize(("arch", "name", "head_dim", "kind"), CASES)
def test_plain_kernels(arch, name, head_dim, kind):
    check(name, head_dim, kind, arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_causal_kernels(arch, name, kind):
    for head_dim in (64, 128):
        check(name, head_dim, kind, arch, causal=True)


def soft_cap(s, b, h, i, j):
    return 20 * sp.tanh(s / 20)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arch", "name", "head_dim", "score"),
    [
        pytest.param(arch, name, head_dim, score, marks=[] if quick else pytest.mark.slow)
        for arch in ARCHITECTURES
        for name in ELEMENTS
        for head_dim in (64, 128)
        for score in (None, soft_cap)
        for quick in [(arch, head_dim, name, score) == ("sm_90", 128, "bfloat16", soft_cap)]
    ],
)
def test_second_derivatives(arch, name, head_dim, score):
    for kind in SECOND_ORDER:
        check(name, head_dim, kind, arch, score=score, causal=True)


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["sm_86", "sm_89"])
def test_tangents_of_wide_heads_in_float32_on_small_devices(arch):
    """With 99 KB of shared memory: 44 bytes of spills with tiles of 16 keys."""
    code = compile_score(trace_score(), "float")
    for plan in plans(TANGENT, ELEMENTS["float32"], 128, 128, 99 << 10, True):
        _, kernels = nvrtc.compile_text(plan.source(code), arch)
        assert kernels["attention_tangent"].spilled == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arch", [pytest.param(a, marks=[] if a == "sm_90" else pytest.mark.slow) for a in ARCHITECTURES]
)
@pytest.mark.parametrize("head_dim", [8, 48, 64, 80, 96, 112, 128])
def test_the_pass_with_atomic_additions(arch, head_dim):
    code = compile_score(trace_score(causal=True), "float")
    element, shared = ELEMENTS["bfloat16"], ARCHITECTURES[arch]
    (plan,) = plans(BACKWARD_KV, element, head_dim, head_dim, shared, atomic=True)
    cubin, kernels = nvrtc.compile_text(plan.source(code), arch)
    assert kernels["attention_backward_kv"].spilled == 0
    if nvrtc.disassembler() is not None:
        found = nvrtc.instructions(cubin)
        assert found["RED"] + found["REDG"] > 0


LESS_TIGHT = [("sm_75", 64), ("sm_90", 64), ("sm_90", 128)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arch", "head_dim"),
    [("sm_75", 128), *(pytest.param(*c, marks=pytest.mark.slow) for c in LESS_TIGHT)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_float32_without_tensor_cores(arch, head_dim, kind):
    code = compile_score(trace_score(causal=True), "float")
    for plan in plans(kind, PLAIN_FLOAT32, head_dim, head_dim, 64 << 10):
        cubin, kernels = nvrtc.compile_text(plan.source(code), arch)
        assert kernels[f"attention_{kind}"].spilled == 0
        if nvrtc.disassembler() is not None:
            found = nvrtc.instructions(cubin)
            assert found["FFMA"] > 500
            assert found["HMMA"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_with_score_functions(kind):
    def alibi_with_cap(s, b, h, i, j, slope, cap):
        return cap * sp.tanh((s + slope[h] * (j - i)) / cap)

    parameters = (Parameter("slope", 1, False), Parameter("cap", 0, False))
    options = {"score": alibi_with_cap, "parameters": parameters, "causal": True}
    for cubin, kernels in compiled("bfloat16", 128, kind, "sm_90", **options):
        assert kernels[f"attention_{kind}"].spilled <= 16
        if nvrtc.disassembler() is not None:
            assert nvrtc.instructions(cubin)["HMMA"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arch", "name", "head_dim"),
    [
        pytest.param(arch, name, head_dim, marks=[] if quick else pytest.mark.slow)
        for arch in ARCHITECTURES
        for name in ELEMENTS
        for head_dim in (64, 128, *[256] * (name == "float32"))
        for quick in [arch == "sm_90" and head_dim == 128 and name in ("bfloat16", "float64")]
    ],
)
def test_relative_tables(arch, name, head_dim):
    options = {
        "score": lambda s, b, h, i, j, table: s + table[h, sp.Max(-99, sp.Min(99, i - j)) + 99],
        "parameters": (Parameter("table", 2, False),),
    }
    for _, kernels in compiled(name, head_dim, DIAGONALS, arch, **options):
        assert kernels["attention_diagonals"].spilled == 0


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_wide_heads_compile(arch, name, kind):
    if name == "float64" and ARCHITECTURES[arch] < 227 << 10:
        pytest.skip("head dim 256 in float64 needs more shared memory than this device has")
    for _, kernels in compiled(name, 256, kind, arch):
        assert f"attention_{kind}" in kernels


def test_a_compiler_error_is_shown():
    with pytest.raises(nvrtc.NvrtcError, match="no_such_function"):
        nvrtc.compile_text('extern "C" __global__ void f() { no_such_function(); }', "sm_90")


@pytest.mark.thorough
def test_the_probe_for_hopper_compiles():
    from benchmarks.gpu.probe import TMA

    cubin, kernels = nvrtc.compile_text(TMA, "sm_90a")
    assert kernels["copy"].spilled == 0
    if nvrtc.disassembler() is not None:
        assert nvrtc.instructions(cubin)["UTMALDG"] > 0
