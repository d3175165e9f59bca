"""`dir(symad)` shows the public names, and each of them is there."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import symad

ROOT = Path(__file__).resolve().parents[2]
BRIDGES = {"jax", "torch"}


def test_dir_shows_what_all_names():
    shown = {name for name in dir(symad) if not name.startswith("_")}
    assert shown == {*symad.__all__, *symad._MODULES} and shown >= BRIDGES
    assert {"check", "verify", "equal", "color", "function", "torch", "jax", "models", "numeric"} <= shown


@pytest.mark.parametrize("name", sorted({*symad.__all__, *symad._MODULES}))
def test_every_name_is_there_in_a_new_process_too(name):
    if name in BRIDGES and find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    assert getattr(symad, name) is not None


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


def test_import_star_needs_no_other_library():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['jax'] = None\nfrom symad import *\nprint(gradient)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
