"""docs/models.md lists every file of symad/models, and points at examples that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "models.md").read_text("utf-8").splitlines()
    if line.startswith("| `")
]


def test_every_model_has_one_row():
    listed = [row[0].strip("`") for row in ROWS]
    files = sorted(p.stem for p in (ROOT / "symad" / "models").rglob("*.py") if p.stem != "__init__")
    assert sorted(listed) == files


def test_rows_are_whole_and_their_examples_exist():
    numbers = {path.name[:2] for path in (ROOT / "examples").rglob("*.py")}
    for row in ROWS:
        assert len(row) == 5
        assert row[1]
        assert set(re.findall(r"\d\d", row[3])) <= numbers, row[0]


def test_models_stay_small():
    """Lines for each public class and function of the folder: 26.1 before the families were completed."""
    texts = [p.read_text("utf-8") for p in (ROOT / "symad" / "models").rglob("*.py")]
    public = [
        node.name
        for text in texts
        for node in ast.parse(text).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")
    ]
    assert sum(text.count("\n") for text in texts) / len(public) < 26
