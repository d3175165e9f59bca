"""Lowering prints one text for one formula, whatever the addresses of nodes and the hashes of strings are."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import hashlib, json, random, sys

rng = random.Random(int(sys.argv[1]))
held = [bytearray(rng.randrange(16, 600)) for _ in range(20_000)]


def disturb():
    for k in rng.sample(range(len(held)), 400):  # nodes will lie elsewhere, and in another order
        held[k] = bytearray(rng.randrange(16, 600)) if rng.random() < 0.7 else None


disturb()
import symad
from benchmarks.scalar.bench_lost_bits import FORMULAS
from symad.numeric import lower
from tests.symad.stable.digit_cases import CASES, VALUES

formulas = {name: case[0] for name, case in (CASES | VALUES).items()}
formulas |= {name: f.value for name, f in FORMULAS.items()}
found = {}
for name, f in formulas.items():
    disturb()
    inputs = sorted(f.free_symbols, key=str)
    graph = symad.trace(f, inputs)
    derivative = symad.gradient if len(inputs) > 1 else symad.hessian
    for made in (graph, derivative(graph, inputs)):
        source = lower(made).source
        found.setdefault(name, []).append(hashlib.sha256(source.encode()).hexdigest())
print(json.dumps(found))
"""


@pytest.mark.thorough
def test_two_processes_print_one_text() -> None:
    printed = []
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", SCRIPT, seed],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(json.loads(made.stdout))
    first, other = printed
    different = {name for name in first if other[name] != first[name]}
    assert len(first) > 80 and not different
