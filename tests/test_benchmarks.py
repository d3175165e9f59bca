"""Benchmarks run alone, from any folder, in small: one that nothing runs fails when it is next needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"

SMALL = {
    "scalar/bench_scalar_peers.py": ["rosenbrock 10", "--rounds", "1", "--limit", "2"],
    "arrays/bench_models.py": ["lstm", "--rounds", "1", "--dtype", "float64"],
    "arrays/bench_hessians.py": ["logistic", "--rounds", "1"],
    "arrays/bench_given.py": ["--rounds", "1"],
    "arrays/bench_passes.py": ["last state", "--passes", "last step", "--rounds", "1"],
    "arrays/bench_memory.py": ["lstm"],
    "arrays/bench_pairwise.py": ["--largest", "1000"],
    "scalar/bench_scalar_thresholds.py": ["places", "--rounds", "1"],
    "arrays/bench_thresholds.py": ["quotients", "--rounds", "1"],
    "arrays/bench_layout_thresholds.py": ["sparse Newton", "--rounds", "1"],
    "scale/bench_one_core.py": ["--small"],
    "verification/pairs.py": ["--count", "20", "--jobs", "1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SMALL)
def test_a_benchmark_runs(script, tmp_path):
    if script.endswith("peers.py"):
        pytest.importorskip("casadi")
    out = ["--out", str(tmp_path)] if script == "scale/bench_one_core.py" else []
    done = subprocess.run(
        [sys.executable, str(FOLDER / script), *SMALL[script], *out],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert any(c.isdigit() for c in done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(FOLDER.glob("*/*.py")), ids=lambda path: path.name)
def test_a_benchmark_finds_what_it_imports(script, tmp_path):
    """Also those that take minutes, or need a GPU. Only symad is found without the file's own help."""
    optional = ("torch", "jax", "casadi", "symengine", "dask", "distributed", "cupy", "asdex", "sklearn")
    code = f"""
import runpy, sys, symad
sys.path.remove({str(FOLDER.parent)!r})
sys.path.insert(0, {str(script.parent)!r})
runpy.run_path({str(script)!r}, run_name="imported")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    )
    missing = [name for name in optional if f"No module named '{name}" in done.stderr]
    assert done.returncode == 0 or missing, done.stderr
