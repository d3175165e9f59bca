"""The time of ``import symad`` against that of its dependencies: the median of new processes, in turns.

Run: python benchmarks/bench_import.py
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

CODES = {"python": "pass", "sympy and numpy": "import sympy, numpy", "symad": "import symad"}
ROUNDS = 9
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""Python keeps its bytecode, as it does for users."""


def seconds(code: str) -> float:
    """CPU time of one new process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """The table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    found = {name: [] for name in CODES}
    seconds(CODES["symad"])  # compiles the bytecode
    start = time.perf_counter()
    for _ in range(ROUNDS):
        for name, code in CODES.items():
            found[name].append(seconds(code))
    medians = {name: statistics.median(times) for name, times in found.items()}
    for name, value in medians.items():
        print(f"{name:16} {1000 * value:6.0f} ms of CPU")
    bare = medians["python"]
    ratio = (medians["symad"] - bare) / (medians["sympy and numpy"] - bare)
    whole = medians["symad"] / medians["sympy and numpy"]
    print(f"import symad / import sympy, numpy = {whole:.2f} ({ratio:.2f} without Python's start)")
    print(f"{ROUNDS} rounds in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
