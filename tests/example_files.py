"""The example files, smaller sizes for tests, and what they need."""

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = {"matplotlib", "sklearn", "statsmodels", "torch", "dask", "distributed"}
EXAMPLES = sorted((ROOT / "examples").rglob("[0-9]*.py"), key=lambda path: path.name)

SMALLER = {
    "04_pendulum": ["--links", "4"],
    "06_sparse_newton": ["--n", "30"],
    "07_brusselator": ["--n", "12"],
    "08_optimal_control": ["--steps", "50"],
    "11_character_transformer": ["--steps", "40"],
    "32_convolutional_gan": ["--rounds", "20"],
}


def module_beside(name):
    """A module that examples share, such as the one that draws colorings."""
    path = ROOT / "examples" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def needs(path):
    for library in optional_libraries(path):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed (extras data, draw, scale; or torch)")
