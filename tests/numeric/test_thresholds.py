"""Every threshold of lowering says where its value comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEASURED = (
    "bench_thresholds.py",
    "bench_layout_thresholds.py",
    "bench_scalar_thresholds.py",
    "bench_pairwise.py",
    "before_after.py",
    "Set by eye",
    "on a device",
)
"""Words of a docstring that tells the origin in a sentence of its own."""


def thresholds() -> Iterator[tuple[str, str]]:
    """The name of each constant `MIN_...` or `MAX_...` in numeric and gpu, and its docstring."""
    for path in sorted(p for folder in ("numeric", "gpu") for p in (ROOT / folder).rglob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for k, statement in enumerate(body):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name) and target.id.startswith(("MIN_", "MAX_")):
                after = body[k + 1].value if isinstance(body[k + 1], ast.Expr) else None  # type: ignore[attr-defined]
                told = after.value if isinstance(after, ast.Constant) else ""
                yield f"{path.relative_to(ROOT)}:{target.id}", str(told)


@pytest.mark.thorough
def test_every_threshold_has_an_origin() -> None:
    found = dict(thresholds())
    assert len(found) > 80
    without = [
        name
        for name, told in found.items()
        if "Origin: " not in told and not any(m in told for m in MEASURED)
    ]
    assert not without, f"say in the docstring where the value comes from ('Origin: ...'): {without}"


BENCHMARKS = sorted((ROOT / "benchmarks").glob("*/bench_*thresholds.py"))


@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmarks_name_thresholds_that_exist(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    named = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and re.fullmatch(r"[a-z_]+(\.[a-z_]+)+\.[A-Z_]+", str(node.value))
    ]
    assert named
    for path, name in (full.rsplit(".", 1) for full in named):
        source = (ROOT / "numeric" / f"{path.replace('.', '/')}.py").read_text(encoding="utf-8")
        tree = ast.parse(source)
        names = {getattr(node, "id", None) for node in ast.walk(tree)} | {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        assert name in names, f"{path}.{name}"
