"""Every example runs to its end and prints what it found."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = {"matplotlib", "sklearn", "statsmodels", "torch"}


def optional_libraries(path):
    """The libraries of extras that an example imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        yield from OPTIONAL & {name.split(".")[0] for name in names}


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_example_runs(path, tmp_path):
    for library in optional_libraries(path):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed (extras data, draw; or torch)")
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip()
