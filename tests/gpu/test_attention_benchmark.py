"""The attention benchmark runs through, tiny and on the CPU, so that it works once a GPU is at hand."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_rehearsal(tmp_path):
    out = tmp_path / "attention.json"
    command = [sys.executable, "benchmarks/gpu_attention.py", "--rehearse", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(out.read_text())
    ours = [r for r in report["records"] if r["name"] == "symad"]
    assert {r["direction"] for r in ours} == {"forward", "backward"}
    assert {r.get("score") for r in ours} >= {None, "plain", "ALiBi", "soft cap", "window of 1024"}
    assert not [r for r in ours if "failed" in r]
    assert all(r["error"] < 1e-6 for r in ours if "error" in r)
    assert not [r for r in report["records"] if "ms" in r]  # a rehearsal reports no times
