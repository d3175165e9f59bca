"""`dir(symad)` lists the public names, and each of them exists."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import sympy

import symad

ROOT = Path(__file__).resolve().parents[3]
BRIDGES = {"jax", "torch"}


def test_dir_shows_what_all_names():
    shown = {name for name in dir(symad) if not name.startswith("_")}
    assert shown == {*symad.__all__, *symad._MODULES} and shown >= BRIDGES
    assert {"check", "verify", "equal", "color", "function", "torch", "jax", "models", "numeric"} <= shown


@pytest.mark.parametrize("module", ["functions", "gpu", "numeric", "testing"])
def test_dir_of_a_module_shows_its_public_names(module):
    shown = {name for name in dir(import_module(f"symad.{module}")) if not name.startswith("_")}
    assert shown == set(import_module(f"symad.{module}").__all__)


def test_what_is_shown_at_the_prompt_is_a_line():
    x = sympy.Symbol("x", real=True)
    graph = symad.trace(sympy.sin(x) * x)
    certificate = symad.check(graph)
    assert repr(certificate) == "<Certificate derivatives of f: PROVED (exact: no probability of error)>"
    assert repr(graph.explain(x=1.0)).startswith("<Explanation of f(x) at x = 1: ")
    total = symad.trace(lambda X: (X**2).sum(), [(sympy.Symbol("n", integer=True, positive=True),)])
    sums = symad.splits(total, {"X": 0})
    many = symad.trace(sum(sympy.symbols("a0:200", real=True)))
    made = (certificate, graph, many, graph.explain(), sums, symad.memory_plan(100, "sqrt"))
    shown = [repr(one) for one in made]
    assert max(map(len, shown)) < 120 and not any("\n" in text for text in shown)
    with pytest.raises(symad.errors.ShapeError, match="give a dict"):
        symad.splits(total, ["X"])


@pytest.mark.parametrize("name", sorted({*symad.__all__, *symad._MODULES}))
def test_every_name_is_there_in_a_new_process_too(name):
    if name in BRIDGES and find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    assert getattr(symad, name) is not None


@pytest.mark.thorough
def test_names_that_are_loaded_on_use_load_nothing_before():
    code = (
        "import sys, symad; dir(symad); late = ('numeric', 'torch', 'jax', 'verification')\n"
        "print([name for name in late if f'symad.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_bridge_without_its_library_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "symad.torch", raising=False)
    with pytest.raises(ModuleNotFoundError, match="bridge to PyTorch"):
        symad.__getattr__("torch")


@pytest.mark.thorough
def test_import_star_needs_no_other_library():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['jax'] = None\nfrom symad import *\nprint(gradient)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_messages_about_many_inputs_are_bounded():
    many = symad.trace(sum(sympy.symbols("a0:200", real=True)))
    kernel = symad.numeric.lower(many)
    assert len(repr(kernel)) < 150
    asked = (
        lambda: kernel(1.0), lambda: many(1.0), lambda: symad.gradient(many, "q"), lambda: many.explain(q=1),
        lambda: symad.verify(many, gradient=[1]),
    )  # fmt: skip
    for ask in asked:
        with pytest.raises((TypeError, symad.errors.SymadError)) as told:
            ask()
        assert 50 < len(str(told.value)) < 900 and "200 in all" in str(told.value)
