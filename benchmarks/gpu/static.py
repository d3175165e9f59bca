"""The compiled attention kernels, analyzed without a GPU: registers, spills, instructions, bounds.

For every pass, element type and head dim it gives the registers of a thread, the bytes of spills, the shared
memory, and for the innermost loop with matrix instructions the number of each kind that a warp issues per
tile. From these follow upper bounds in TFLOP/s for the given multiprocessors and clock; the least is the
bound.

    issue     one instruction a clock and scheduler
    tensor    the matrix instructions at 63 % of the rate of the data sheet, which is what mma.sync reaches on
              compute capability 9.0 (arXiv 2402.13499)
    shared    512 bytes for each LDSM.x4, at 128 bytes a clock and multiprocessor
    special   MUFU (exponentials) at 16 a clock and multiprocessor

The bounds are not measurements. For the kernel sums on tensor cores (a Gaussian, one column of weights) it
prints registers, spills and shared memory. Usage, with the wheels nvidia-cuda-nvrtc and nvidia-cuda-nvdisasm:

    python benchmarks/gpu/static.py [--arch sm_90] [--out FILE.json]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sympy as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from symad.gpu.attention_kernels.compiled_score import compile_score
from symad.gpu.attention_kernels.plan import ELEMENTS, KernelPlan, plans
from symad.gpu.attention_kernels.tile_shapes import BACKWARD_KV, BACKWARD_Q, FORWARD, TANGENT
from symad.gpu.pairs.kernel_text import plan as pair_plan
from symad.gpu.pairs.kernel_text import products_bytes, products_source
from symad.numeric.pairs.pair_functions import trace_pair
from symad.numeric.pairs.scores import trace_score
from tests.gpu import nvrtc

ROOM = {"sm_80": 163 << 10, "sm_86": 99 << 10, "sm_89": 99 << 10, "sm_90": 227 << 10, "sm_120": 99 << 10}
PROCESSORS, CLOCK = 132, 1.755e9
"""The multiprocessors and the boost clock of an H100 or H200 SXM."""

SYNC = 0.63
"""The share of the tensor cores' rate that instructions of single warps reach."""

MMA = {  # floating-point operations of an instruction of a warp, and of a clock and multiprocessor
    "HMMA.16816.F32.BF16": (4096, 4096),
    "HMMA.16816.F32": (4096, 4096),
    "HMMA.1688.F32.TF32": (2048, 2048),
    "HMMA.1684.F32.TF32": (1024, 2048),
    "DMMA.1688": (2048, 256),
    "DMMA.8x8x4": (512, 256),
}
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.x]*)(.*)")
LABEL = re.compile(r"^(\.L\S+):")


def instructions(cubin: bytes, kernel: str) -> list[tuple[str, str]]:
    """The instructions of one kernel in order, each with its operands; labels as ("label", name)."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(nvrtc.disassembler()), "-c", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: list[tuple[str, str]] = []
    inside = False
    for line in text.split("\n"):
        if line.split()[:1] == [".section"]:
            inside = f".text.{kernel}," in line or line.rstrip().endswith(f".text.{kernel}")
        if not inside:
            continue
        label, instruction = LABEL.match(line), LINE.search(line)
        if label:
            found.append(("label", label[1]))
        elif instruction:
            found.append((instruction[2], instruction[3]))
    return found


def hottest_loop(listing: Sequence[tuple[str, str]]) -> Counter[str]:
    """The opcodes of the shortest loop that has most of the matrix instructions."""
    place = {name: k for k, (kind, name) in enumerate(listing) if kind == "label"}
    loops = []
    for k, (opcode, rest) in enumerate(listing):
        target = re.search(r"\((\.L\S+?)\)", rest) if opcode.startswith("BRA") else None
        if target and place.get(target[1], k + 1) < k:
            loops.append((place[target[1]], k + 1))
    best: Counter[str] = Counter()
    for start, end in sorted(loops, key=lambda pair: pair[1] - pair[0]):
        found = Counter(opcode for opcode, _ in listing[start:end] if opcode != "label")
        if products(found) > products(best):
            best = found
    return best


def products(found: Counter[str]) -> int:
    """The floating-point operations of the matrix instructions."""
    return sum(count * MMA[name][0] for name, count in found.items() if name in MMA)


def bounds(found: Counter[str], repeats: int) -> dict[str, float]:
    """Upper bounds in TFLOP/s for each limit; each product takes ``repeats`` instructions."""
    done = products(found)
    if not done:
        return {}
    clocks = {
        "issue": sum(found.values()) / 4,
        "tensor": sum(n * MMA[name][0] / MMA[name][1] for name, n in found.items() if name in MMA) / SYNC,
        "shared": sum(4 * n for name, n in found.items() if name.startswith("LDSM")),
        "special": sum(2 * n for name, n in found.items() if name.startswith("MUFU")),
    }
    rate = done / repeats * PROCESSORS * CLOCK / 1e12
    return {name: round(rate / clock) for name, clock in clocks.items() if clock}


def row(plan: KernelPlan, name: str, width: int, arch: str) -> dict[str, Any]:
    """The numbers of one kernel."""
    code = compile_score(trace_score(), plan.element.real)
    cubin, kernels = nvrtc.compile_text(plan.source(code), arch)
    kernel = kernels[f"attention_{plan.kind}"]
    loop = hottest_loop(instructions(cubin, f"attention_{plan.kind}"))
    kinds = Counter({part: 0 for part in ("HMMA", "DMMA", "LDSM", "MUFU", "LDS")})
    for opcode, count in loop.items():
        kinds[opcode.split(".")[0]] += count
    limits = bounds(loop, 3 if name == "float32" else 1)  # 3 × TF32
    return {
        "arch": arch, "pass": plan.kind, "dtype": name, "d": width,
        "sides": "kv" if plan.with_k and plan.with_v else "k" if plan.with_k else "v",
        "registers": kernel.registers, "spilled": kernel.spilled, "shared": plan.shared_bytes,
        "threads": plan.threads, "loop": sum(loop.values()),
        "mma": kinds["HMMA"] + kinds["DMMA"], "ldsm": kinds["LDSM"], "lds": kinds["LDS"],
        "mufu": kinds["MUFU"],
        "bounds": limits, "bound": min(limits.values(), default=0),
    }  # fmt: skip


def rows(archs: Sequence[str], dtypes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All figures."""
    for arch in archs:
        for name in dtypes:
            for width in (64, 128):
                for kind in (FORWARD, BACKWARD_Q, BACKWARD_KV, TANGENT):
                    for plan in plans(kind, ELEMENTS[name], width, width, ROOM[arch], True):
                        yield row(plan, name, width, arch)


def gaussian(x: Any, y: Any, ell: Any) -> Any:
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def pair_rows(archs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The numbers of kernel sums on tensor cores: values, and cotangents by rows and by columns."""
    for arch in archs:
        for kind in ("tf32x3", "bf16"):
            for width in (64, 128):
                function = trace_pair(gaussian, width, {"ell": None})
                source = "".join(products_source(function, pair_plan(function, 1, "float"), "sum", kind))
                shared = products_bytes(width, 1, kind)
                for name, kernel in nvrtc.compile_text(source, arch)[1].items():
                    yield {
                        "arch": arch, "kernel": name, "kind": kind, "d": width,
                        "registers": kernel.registers, "spilled": kernel.spilled, "shared": shared,
                    }  # fmt: skip


def main() -> None:
    """Print the table; write it to a file if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", nargs="*", default=["sm_80", "sm_86", "sm_89", "sm_90"], choices=ROOM)
    parser.add_argument("--dtype", nargs="*", default=["bfloat16", "float32"], choices=ELEMENTS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if nvrtc.library() is None or nvrtc.disassembler() is None:
        sys.exit("needs the wheels: pip install nvidia-cuda-nvrtc nvidia-cuda-nvdisasm")
    found = []
    print("arch   dtype    d   pass         regs spill shared  loop  mma ldsm mufu  bound by  TFLOP/s")
    for made in rows(given.arch, given.dtype):
        found.append(made)
        limit = min(made["bounds"], key=made["bounds"].get, default="-") if made["bounds"] else "-"
        print(
            f"{made['arch']:6} {made['dtype']:8} {made['d']:3} {made['pass'] + ' ' + made['sides']:14} "
            f"{made['registers']:3} {made['spilled']:4} {made['shared']:7} {made['loop']:5} {made['mma']:4} "
            f"{made['ldsm']:4} {made['mufu']:4}  {limit:8} {made['bound']:5}",
            flush=True,
        )
    print("arch   kind     d   kernel                regs spill shared")
    pairs = []
    for made in pair_rows(given.arch):
        pairs.append(made)
        print(
            f"{made['arch']:6} {made['kind']:8} {made['d']:3} {made['kernel']:22} "
            f"{made['registers']:3} {made['spilled']:4} {made['shared']:7}",
            flush=True,
        )
    if given.out:
        table = {"nvrtc": nvrtc.version(), "kernels": found, "pair_kernels": pairs}
        given.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
