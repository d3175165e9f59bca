"""The CPU stand-in for CUDA: it reports the mistakes that it should find, and computes correct values."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

from symad.gpu.compile import kernel_text
from tests.gpu.attention_cases import decode, encode, relative
from tests.gpu.shim.driver import (
    SCHEDULES,
    CpuModule,
    KernelError,
    sanitizer_environment,
    schedule,
)

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

# A block of 64 threads reverses 64 numbers through shared memory, copied there by cp.async.
REVERSE = """
extern "C" __global__ void reverse(const float* from, float* to) {
  DYNAMIC_SHARED(shared);
  int i = threadIdx.x;
  cp_async<4>(smem_address(shared) + smem_t(4 * i), from + i, true);
  cp_async_commit();
  WAIT
  BARRIER
  to[i] = load_shared<float>(smem_address(shared) + smem_t(4 * (63 - i)));
}
"""


def reverse(wait="cp_async_wait<0>();", barrier="block_sync();"):
    source = kernel_text("prims.h") + REVERSE.replace("WAIT", wait).replace("BARRIER", barrier)
    module = CpuModule(source)
    numbers, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    wrong = []
    for name in SCHEDULES:
        with schedule(name, seed=3):
            module.get_function("reverse")((1,), (64,), (numbers, out), shared_mem=256)
        wrong.append(not np.array_equal(out, numbers[::-1]))
    return wrong


@pytest.mark.thorough
def test_a_correct_kernel_is_correct_in_every_schedule():
    assert reverse() == [False, False, False]


def test_a_missing_wait_is_found():
    assert any(reverse(wait=""))


def test_a_missing_barrier_is_found():
    assert all(reverse(barrier=""))


@pytest.mark.thorough
def test_a_buffer_overwritten_too_early_is_found():
    """The eager schedule copies at once; the others at the wait."""
    source = kernel_text("prims.h") + """
    extern "C" __global__ void overwrite(const float* from, float* to) {
      DYNAMIC_SHARED(shared);
      smem_t mine = smem_address(shared) + smem_t(4 * threadIdx.x);
      store_shared(mine, float(threadIdx.x));
      block_sync();
      cp_async<4>(mine, from + threadIdx.x, true);  // others may not have read yet
      cp_async_commit();
      to[threadIdx.x] = load_shared<float>(smem_address(shared) + smem_t(4 * (63 - threadIdx.x)));
      cp_async_wait<0>();
    }"""
    kernel = CpuModule(source).get_function("overwrite")
    out, results = np.zeros(64, np.float32), set()
    for name in SCHEDULES:
        with schedule(name):
            kernel((1,), (64,), (np.full(64, -1, np.float32), out), shared_mem=256)
        results.add(tuple(out))
    assert len(results) > 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if (threadIdx.x < 16) __shfl_xor_sync(~0u, 1, 1);", "lane returned while its warp"),
        ("if (threadIdx.x < 16) __syncwarp(); else __ballot_sync(~0u, true);", "split between"),
        ("if (threadIdx.x >= 32) { __syncthreads(); __syncthreads(); } else if (threadIdx.x == 0)"
         " for (int i = 0; i < 3; ++i) __syncthreads(); else __syncwarp();", "deadlock|returned"),
        ("u32 r[4]; ldmatrix(r, smem_address(shared) + 8);", "not 16-byte aligned"),
    ],
)  # fmt: skip
def test_threads_that_part_ways_stop_the_launch(body, message):
    source = kernel_text("prims.h") + f"""
    extern "C" __global__ void broken() {{ DYNAMIC_SHARED(shared); (void)shared; {body} }}"""
    with pytest.raises(KernelError, match=message):
        CpuModule(source).get_function("broken")((1,), (64,), (), shared_mem=1024)


def test_threads_may_leave_before_a_barrier():
    source = """
    extern "C" __global__ void leave(int* count) {
      if (threadIdx.x >= 40) return;
      __syncthreads();
      atomicAdd(count, 1);
    }"""
    count = np.zeros(1, np.int32)
    for name in SCHEDULES:
        with schedule(name):
            CpuModule(source).get_function("leave")((2,), (64,), (count,))
    assert count[0] == 3 * 2 * 40


def test_arguments_are_checked():
    kernel = CpuModule('extern "C" __global__ void f(int n, float x) {}').get_function("f")
    with pytest.raises(KernelError, match="takes 2 arguments, 1 were given"):
        kernel((1,), (1,), (np.int32(1),))
    with pytest.raises(KernelError, match="argument 0 has 8 bytes, the kernel takes 4"):
        kernel((1,), (1,), (np.int64(1), np.float32(1)))
    with pytest.raises(KernelError, match="give a NumPy scalar"):
        kernel((1,), (1,), (1, np.float32(1)))
    with pytest.raises(KernelError, match="limit set is 49152"):
        kernel((1,), (1,), (np.int32(1), np.float32(1)), shared_mem=50000)


# One warp: c = a bᵀ and d = a b by the operand paths of tile.h, with a (16, 32), b (32, 32).
PRODUCTS = """
extern "C" __global__ void products(const E::Storage* a, const E::Storage* b, const E::Storage* w,
                                    Real* abt, E::Storage* wb) {
  DYNAMIC_SHARED(shared);
  typedef Matrix<E> P;
  smem_t ta = smem_address(shared), tb = ta + smem_t(Tile<E, 32>::size(16)), lane = threadIdx.x;
  load_tile<E, 32, 16, 32>(ta, a, 0, 16, 32, 32);
  load_tile<E, 32, 32, 32>(tb, b, 0, 32, 32, 32);
  cp_async_commit();
  cp_async_wait<0>();
  block_sync();
  int g = int(lane) / 4, t = int(lane) % 4;
  Real c[1][4][4], out[1][4][4], one[1][2] = {{1, 1}};
  clear(c[0]);
  clear(out[0]);
  product_abt<E, 32>(c, ta + smem_t(P::lane_a<32>(int(lane))), tb + smem_t(P::lane_b<32>(int(lane))));
  for (int n = 0; n < 4; ++n)
    for (int i = 0; i < 4; ++i) {
      int at = (g + i / 2 * 8) * 32 + 8 * n + 2 * t + i % 2;
      abt[at] = c[0][n][i];
      c[0][n][i] = unpack<E>(w[at]);
    }
  product_wb<E, 32>(out, c, tb + smem_t(P::lane_bt<32>(int(lane))));
  store_rows<E>(wb, out, 0, 16, 0, 32, one);
}
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "tag", "bits", "bound", "old"),
    [
        ("bfloat16", "Bf16", 16, 3e-3, False),
        ("float16", "Fp16", 16, 4e-4, False),
        ("float32", "Fp32", 32, 3e-7, False),
        ("float64", "Fp64", 64, 1e-15, False),
        ("float64", "Fp64", 64, 1e-15, True),
    ],
)
def test_matrix_products_of_every_type(name, tag, bits, bound, old):
    """``old``: the fp64 instruction of compute capability 8."""
    defines = f"#define SYMAD_REAL {'double' if bits == 64 else 'float'}\n"
    defines += f"#define SYMAD_ELEMENT_BITS {bits}\n" + "#define SYMAD_SM80\n" * old
    files = kernel_text("prims.h", "tile.h", "matrix.h", "product.h")
    source = defines + files + f"typedef {tag} E;\n" + PRODUCTS
    rng = np.random.default_rng(0)
    a, b, w = (encode(rng.normal(size=s), name) for s in ((16, 32), (32, 32), (16, 32)))
    real = np.float64 if bits == 64 else np.float32
    abt, wb = np.zeros((16, 32), real), np.zeros((16, 32), a.dtype)
    kernel = CpuModule(source).get_function("products")
    kernel((1,), (32,), (a, b, w, abt, wb), shared_mem=48 * 8 * 64)
    exact_a, exact_b, exact_w = (decode(x, name) for x in (a, b, w))
    assert relative(abt, exact_a @ exact_b.T) < min(bound, 1e-6)
    assert relative(decode(wb, name), exact_w @ exact_b) < bound


def test_the_exponential_in_double_is_right_to_an_ulp():
    source = "#define SYMAD_REAL double\n" + kernel_text("prims.h") + """
    extern "C" __global__ void powers(const double* x, double* y) {
      int i = blockIdx.x * 64 + threadIdx.x;
      y[i] = exp2_fast(x[i]);
    }"""
    edges = [0.0, 0.5, -0.5, 1.0, -1022.0, -1022.5, 1023.0, -np.inf, 1e-300]
    x = np.concatenate([np.linspace(-60, 10, 6400 - len(edges)), edges])
    y = np.zeros_like(x)
    CpuModule(source).get_function("powers")((100,), (64,), (x, y))
    wanted = np.where(x < -1022, 0, np.exp2(x))
    assert (np.abs(y - wanted) <= 2 * np.spacing(wanted)).all()
    assert y[-2] == 0
    assert y[-9] == 1


OUT_OF_BOUNDS = """
import numpy as np
from tests.gpu.shim.driver import CpuModule
source = '''extern "C" __global__ void past(const float* a, float* b) {
    b[threadIdx.x] = a[threadIdx.x + SHIFT];
}'''
a, b = np.zeros(32, np.float32), np.zeros(32, np.float32)
CpuModule(source.replace("SHIFT", "%d")).get_function("past")((1,), (32,), (a, b))
print("ran to the end")
"""


def run_sanitized(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env=sanitizer_environment(),
    )  # fmt: skip


@pytest.fixture(scope="session")
def sanitizer():
    done = run_sanitized("print(1)")
    if done.returncode:
        pytest.skip(f"AddressSanitizer does not run here: {done.stderr[-200:]}")


@pytest.mark.thorough
def test_address_sanitizer_sees_one_element_too_far(sanitizer):
    assert "ran to the end" in run_sanitized(OUT_OF_BOUNDS % 0).stdout
    bad = run_sanitized(OUT_OF_BOUNDS % 1)
    assert bad.returncode != 0
    assert "heap-buffer-overflow" in bad.stderr


ATTENTION = """
from tests.gpu.attention.first_order import draw
from tests.gpu.attention_calls import forward_backward as run
arrays, lse_bar = draw({name!r}, {sizes})
run({name!r}, arrays, lse_bar, causal={causal}, **{options})
print("clean")
"""
BIAS = (
    'dict(params={"bias": arrays[0][0, 0, :, 0] * 0.0}, '
    "score=lambda s, b, h, i, j, bias: s + bias[i])"
)
SMALL, WIDE = (1, 2, 1, 37, 41, 24, 40), (1, 1, 1, 130, 70, 128, 128)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes", "causal", "options"),
    [
        ("bfloat16", SMALL, True, "{}"),
        ("float32", SMALL, True, "{}"),
        ("float64", SMALL, True, "{}"),
        ("float32", SMALL, False, BIAS),
        ("float16", WIDE, False, "{}"),
        ("float32", WIDE, False, "{}"),
    ],
)
def test_attention_kernels_are_clean_under_sanitizers(sanitizer, name, sizes, causal, options):
    code = ATTENTION.format(name=name, sizes=sizes, causal=causal, options=options)
    done = run_sanitized(code)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "clean" in done.stdout


SECOND = """
from tests.gpu.attention.second_order import draw
from tests.gpu.attention_calls import second_order as run
run({name!r}, draw({name!r}, {sizes}), causal=True)
print("clean")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
def test_second_derivatives_are_clean_under_sanitizers(sanitizer, name):
    pytest.importorskip("torch")
    done = run_sanitized(SECOND.format(name=name, sizes=SMALL))
    assert done.returncode == 0, done.stderr[-3000:]
    assert "clean" in done.stdout
