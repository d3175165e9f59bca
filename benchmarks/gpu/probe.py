"""The cost of launches on a GPU, and a test whether Hopper's instructions can be used from CuPy.

It gives host and device time of an empty RawKernel, an ElementwiseKernel, a matrix product and a replayed
CUDA graph; and for compute capability 9.0 whether CuPy compiles for sm_90a, and whether a TMA descriptor can
be passed to a kernel by value. A probe that fails is reported with its reason.

Usage: python benchmarks/gpu/probe.py [--out FILE.json]
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.report import require_device, save, surroundings

EMPTY = 'extern "C" __global__ void empty(float* x) {}'

TMA = """
struct alignas(128) Map { unsigned long long v[16]; };
extern "C" __global__ void copy(const __grid_constant__ Map map, float* out) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long bar;
  unsigned at = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
    asm volatile("fence.proxy.async;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(at), "r"(1024));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" :: "r"(to), "l"(&map), "r"(0), "r"(8), "r"(at) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at) : "memory");
  for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = tile[i];
}
"""


def cost(cp: Any, call: Callable[[], Any], many: int = 200) -> dict[str, float]:
    """Microseconds of one call: on the host while the queue is not full, and on the device."""
    for _ in range(10):
        call()
    cp.cuda.Device().synchronize()
    host, device = [], []
    for _ in range(7):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        begin = time.perf_counter()
        for _ in range(many):
            call()
        host.append((time.perf_counter() - begin) / many)
        stop.record()
        stop.synchronize()
        device.append(cp.cuda.get_elapsed_time(start, stop) / 1e3 / many)
    return {"host_us": 1e6 * statistics.median(host), "device_us": 1e6 * statistics.median(device)}


def raw_kernel(cp: Any) -> dict[str, float]:
    kernel, x = cp.RawKernel(EMPTY, "empty"), cp.zeros(32, cp.float32)
    return cost(cp, lambda: kernel((1,), (32,), (x,)))


def elementwise_kernel(cp: Any) -> dict[str, float]:
    kernel = cp.ElementwiseKernel("float32 x", "float32 y", "y = 2*x + 1", "probe")
    x, y = cp.zeros(1024, cp.float32), cp.zeros(1024, cp.float32)
    return cost(cp, lambda: kernel(x, y))


def matrix_product(cp: Any) -> dict[str, float]:
    a = cp.zeros((64, 64), cp.float32)
    out = cp.zeros_like(a)
    return cost(cp, lambda: cp.matmul(a, a, out=out))


def graph_of_100(cp: Any) -> dict[str, float]:
    """100 elementwise kernels in one graph; the cost is that of the whole graph."""
    kernel = cp.ElementwiseKernel("float32 x", "float32 y", "y = 2*x + 1", "probe")
    x, y = cp.zeros(1024, cp.float32), cp.zeros(1024, cp.float32)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        kernel(x, y)
        stream.synchronize()
        stream.begin_capture()
        for _ in range(100):
            kernel(x, y)
        graph = stream.end_capture()
        return cost(cp, lambda: graph.launch(stream), many=20)


def hopper(cp: Any) -> dict[str, Any]:
    """RawModule with -arch=sm_90a, and a tile that is copied through a TMA descriptor."""
    if cp.cuda.Device().compute_capability != "90":
        return {"skipped": "needs compute capability 9.0"}
    module = cp.RawModule(code=TMA, options=("-std=c++17", "-arch=sm_90a"))
    source = cp.arange(64 * 32, dtype=cp.float32).reshape(64, 32)
    out = cp.zeros(256, cp.float32)
    module.get_function("copy")((1,), (32,), (tensor_map(source, (8, 32)), out))
    exact = bool((out.reshape(8, 32) == source[8:16]).all())
    return {"tile_arrived": exact}


def tensor_map(array: Any, box: tuple[int, int]) -> Any:
    """A TMA descriptor of a float32 matrix: 128 bytes that CuPy passes by value."""
    encode = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    raw = np.zeros(256, np.uint8)
    blob = raw[-raw.ctypes.data % 128 :][:128]
    long, short = ctypes.c_uint64, ctypes.c_uint32
    rows, columns = array.shape
    status = encode(
        ctypes.c_void_p(blob.ctypes.data), 7, 2, ctypes.c_void_p(array.data.ptr),
        (long * 2)(columns, rows), (long * 1)(columns * 4), (short * 2)(box[1], box[0]),
        (short * 2)(1, 1), 0, 0, 0, 0,
    )  # fmt: skip
    if status:
        raise RuntimeError(f"cuTensorMapEncodeTiled answers {status}")
    return blob.view(np.dtype([("v", "u8", 16)]))


PROBES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "empty RawKernel": raw_kernel,
    "ElementwiseKernel": elementwise_kernel,
    "64 x 64 product by cuBLAS": matrix_product,
    "CUDA graph of 100 kernels": graph_of_100,
    "sm_90a and TMA": hopper,
}


def main() -> int:
    """Run every probe and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu_probe.json"))
    arguments = parser.parse_args()

    cp = require_device()
    report: dict[str, Any] = surroundings()
    for name, probe in PROBES.items():
        try:
            report[name] = probe(cp)
        except Exception as error:
            report[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(name, report[name], flush=True)
        save(arguments.out, report, complete=False)
    save(arguments.out, report, complete=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
