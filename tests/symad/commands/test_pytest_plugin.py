"""The pytest plugin: certificates in failing tests, and nothing imported in runs that do not use it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symad.pytest

ROOT = Path(__file__).parents[3]
x, y = sp.symbols("x y", real=True)


def run(tmp_path, text, *options):
    """pytest in a process of its own, with the plugin as the entry point loads it."""
    path = tmp_path / "test_user.py"
    path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_symad", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        [*command, str(path)], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )


USED = """
import numpy as np
import pytest
import sympy
import symad.pytest

x = sympy.Symbol("x", real=True)

@symad.pytest.derivative(sympy.log(sympy.cosh(x)), wrt=x)
def test_right():
    return np.tanh

@symad.pytest.derivative(sympy.log(sympy.cosh(x)), wrt=x)
def test_wrong():
    return np.sinh

@pytest.mark.parametrize("factor", [3, 4])
@symad.pytest.derivative(x**3, wrt=x, level="proved", code=True)
def test_with_parameters(factor, tmp_path):
    return lambda v: factor * v * v

def test_with_the_fixture(symad_verify):
    assert symad_verify(x**2, x, hessian=lambda v: 2.0).status == "measured"
"""


@pytest.mark.thorough
def test_failing_tests_print_the_certificate(tmp_path):
    done = run(tmp_path, USED)
    assert done.returncode == 1 and "2 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    failures = done.stdout
    assert ("test_wrong" in failures and "REFUTED" in failures and "tanh" in failures) or "x = " in failures
    assert "symad certificates: 2 measured, 1 proved, 2 refuted" in failures


def test_runs_without_certificates_import_nothing(tmp_path):
    text = """
import sys
def test_nothing():
    assert not {"symad", "sympy", "numpy", "scipy"} & set(sys.modules)
"""
    done = run(tmp_path, text)
    assert done.returncode == 0 and "symad" not in done.stdout, done.stdout + done.stderr


def test_levels_and_kinds():
    assert symad.pytest.verify(x**2 * y, x, gradient=2 * x * y, level="proved").status == "proved"
    with pytest.raises(AssertionError, match=r"(?s)MEASURED.*asks for: tested"):
        symad.pytest.verify(x**2, x, gradient=lambda v: 2 * v, level="tested")
    code = symad.pytest.verify(x**2, x, gradient=lambda v: 2 * v, level="proved", code=True)
    assert code.status == "proved"
    assert symad.pytest.verify(
        lambda v: np.sum(v**2), inputs=[(3,)], gradient=lambda v: 2 * v, code=True, level="tested"
    )
    with pytest.raises(AssertionError, match="REFUTED"):
        symad.pytest.verify(x**2, x, gradient=3 * x)
    with pytest.raises(ValueError, match="level is"):
        symad.pytest.verify(x, gradient=1, level="sure")
    with pytest.raises(ValueError, match="kind is one of"):
        symad.pytest.derivative(x, kind="slope")
