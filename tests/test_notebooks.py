"""The notebooks of docs/ run from the first cell to the last; every exercise has an answer that is right."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    exercises = [source for source in code if source.startswith(tuple(f"# {k}." for k in range(1, 6)))]
    assert len(exercises) == 5 and code[-1].count(".right") == 5


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 10
