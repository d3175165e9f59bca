"""The first session on a device: ordered commands, each of which ends within nine minutes.

Correctness comes first, then the sanitizers, the cost of launches, attention and kernel sums compared
with their peers, and models. Each command writes its own JSON file to benchmarks/results/ and can be run
alone. A command that fails does not stop the others; one that takes too long is interrupted, and its
measurements so far are kept.

Usage: python benchmarks/gpu/session.py [--list] [--from STEP] [--only STEP]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.report import require_device

ROOT = Path(__file__).resolve().parents[2]
SECONDS, GRACE = 510.0, 25.0
"""Seconds until a command is interrupted, and then until it is killed: within nine minutes together."""


@dataclass(frozen=True)
class Step:
    """A command of the session: the question it answers, and its arguments after ``python``."""

    name: str
    answers: str
    command: tuple[str, ...]


def _tests(name: str, answers: str, *selected: str) -> Step:
    out = f"benchmarks/results/gpu_tests_{name}.json"
    return Step(name, answers, ("benchmarks/gpu/device_tests.py", "--out", out, "-q", *selected))


def _bench(name: str, answers: str, *options: str) -> Step:
    return Step(name, answers, (f"benchmarks/gpu/{name}.py", *options))


STEPS = (
    _tests("lowered", "is every op and model right on the real CuPy?", "-k", "cupy and not attention"),
    _tests("kernels", "are attention and kernel sums right, at all shapes?", "-k", "attention or pair"),
    _tests("rest", "everything else that needs a device", "-k", "not cupy and not attention and not pair"
           " and not sanitizer"),
    _tests("sanitizer", "does compute-sanitizer find races or bad addresses?", "-k", "sanitizer"),
    _bench("probe", "what does a launch cost, of each kind, and a replay of a graph?"),
    _bench("attention", "attention beside FlashAttention, cuDNN, FlexAttention", "--quick"),
    _bench("attention", "the same at all lengths"),
    _bench("pairwise", "kernel sums beside KeOps"),
    _bench("models", "training steps beside torch eager, torch.compile and jax", "--quick"),
    _bench("models", "the same at full size"),
)  # fmt: skip


def run(number: int, step: Step) -> bool:
    """Run one command; return whether it succeeded in time."""
    print(f"\n[{number}] {step.answers}\n    python {' '.join(step.command)}", flush=True)
    begin = time.perf_counter()
    command = [sys.executable, *step.command]
    status = ended(subprocess.Popen(command, cwd=ROOT, start_new_session=True), SECONDS, GRACE)
    print(f"[{number}] exit status {status} after {time.perf_counter() - begin:.0f} s", flush=True)
    return status == 0


def ended(command: subprocess.Popen[bytes], seconds: float, grace: float) -> int:
    """The exit status of a command with its own process group; it is interrupted in time, or else killed."""
    for time_left, stop in ((seconds, signal.SIGINT), (grace, signal.SIGKILL)):
        try:
            return command.wait(time_left)
        except subprocess.TimeoutExpired:
            print(f"    {stop.name} after {time_left:.0f} s", flush=True)
            os.killpg(command.pid, stop)
    return command.wait()


def main() -> int:
    """Run the steps; the exit status is the number of those that failed, 2 without a device."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--list", action="store_true", help="show the commands and run none")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="STEP", help="start here")
    parser.add_argument("--only", type=int, metavar="STEP", help="run this step only")
    arguments = parser.parse_args()
    chosen = [arguments.only] if arguments.only else list(range(arguments.first, len(STEPS) + 1))
    if not all(1 <= number <= len(STEPS) for number in chosen):
        parser.error(f"the steps are 1 to {len(STEPS)}")
    if arguments.list:
        for number in chosen:
            step = STEPS[number - 1]
            print(f"{number}. {step.answers}\n   python {' '.join(step.command)}")
        return 0
    require_device()
    return sum(not run(number, STEPS[number - 1]) for number in chosen)


if __name__ == "__main__":
    sys.exit(main())
