"""CPU seconds of coqc for each operation of a certificate: models of the tests, and chains of growing length.

Run with ``python benchmarks/verification/bench_coq.py``; needs coqc and Coquelicot.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from symad.verification.coq import CertifiedModel, write_coq
from symad.verification.coq.write import LIBRARY
from tests.verification.checker.coq_models import MODELS, lstm_cell, rosenbrock

CASES = {
    **MODELS,
    "rosenbrock_25": rosenbrock(25),
    "rosenbrock_50": rosenbrock(50),
    "lstm_3": lstm_cell(3),
}


def deep(n):
    """A chain of n layers, each used twice in the next: as an expression it has 2^n parts."""

    def chain(x, y):
        for _ in range(n):
            x = np.sin(x) * np.exp(y - x * x)
        return x

    return chain, [(), ()]


CASES.update({f"chain_{n}": deep(n) for n in (5, 10, 20)})


def cpu_seconds(folder, name):
    """User and system time of coqc on a file.

    Raises:
        RuntimeError: coqc rejects the file.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["coqc", "-w", "none", name], cwd=folder, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    if shutil.which("coqc") is None:
        sys.exit("coqc is not installed (Debian: apt-get install coq libcoq-coquelicot)")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        first = True
        for name, (f, inputs) in CASES.items():
            graph = (symad.trace(f, inputs) if inputs else symad.trace(f)).named(name)
            path = write_coq(CertifiedModel(f, graph, graph.inputs), folder / f"{name}.v", hessian=False)
            if first:
                seconds = sum(cpu_seconds(folder, library) for library in LIBRARY)
                (folder / "nothing.v").write_text("Require Import SymadCertificates.\n", encoding="utf-8")
                start = cpu_seconds(folder, "nothing.v")
                print(f"library: {seconds:.1f} s; start of coqc: {start:.2f} s (subtracted below)")
                print(f"{'model':<14}{'operations':>12}{'seconds':>10}{'ms an operation':>18}")
                first = False
            operations = int(re.search(r"All have (\d+) operations", path.read_text())[1])
            seconds = cpu_seconds(folder, path.name) - start
            each = 1000 * seconds / operations
            print(f"{name:<14}{operations:>12}{seconds:>10.2f}{each:>18.2f}", flush=True)


if __name__ == "__main__":
    main()
