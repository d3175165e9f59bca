"""Time of ``import symad`` against ``import sympy, numpy``, each in a fresh process.

Runs are interleaved, so that a slow moment of the machine falls on both; medians are compared.
Usage: python benchmarks/bench_import.py [--runs 15] [--limit 1.8]; exits 1 if the ratio is above
the limit.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATEMENTS = ("import sympy, numpy", "import symad")


def seconds(statement: str) -> float:
    """Wall time of one statement in a new interpreter, start-up of the interpreter excluded."""
    code = (
        "import time; start = time.perf_counter()\n"
        f"{statement}\n"
        "print(time.perf_counter() - start)"
    )
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout)


def main() -> int:
    """Measure, print, and compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--limit", type=float, default=1.8)
    options = parser.parse_args()

    for statement in STATEMENTS:  # compiles bytecode, warms the file cache
        seconds(statement)
    times: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(options.runs):
        for statement in STATEMENTS:
            times[statement].append(seconds(statement))

    libraries = ("sympy", "numpy", "scipy", "plum-dispatch")
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
          + ", ".join(f"{name} {version(name)}" for name in libraries))
    print(time.strftime("%Y-%m-%d"), f"{options.runs} interleaved runs")
    medians = {statement: statistics.median(taken) for statement, taken in times.items()}
    for statement, taken in times.items():
        print(f"{statement:<22} median {medians[statement] * 1e3:7.1f} ms, "
              f"range {min(taken) * 1e3:.1f} to {max(taken) * 1e3:.1f}")
    ratio = medians["import symad"] / medians["import sympy, numpy"]
    print(f"ratio {ratio:.2f} (limit {options.limit})")
    return int(ratio > options.limit)


if __name__ == "__main__":
    sys.exit(main())
