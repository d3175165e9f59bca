"""Files of users: what they print, their functions that are no models, and files of several certificates."""

import json

import pytest

from symad.cli import main
from symad.cli.console import OK, USAGE

MODEL = """
import sympy

print("loading")
x = sympy.Symbol("x", real=True)
f = sympy.sin(x)


def model():
    print("building")
    return x**2


def scaled(x, factor=2.0):
    print("tracing")
    return factor * x
"""

HELPERS = """

def settings(rate=0.1):
    return {"rate": rate}["rate"]


def main():
    print("nothing to see")
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.mark.parametrize("more", [["{}:f"], ["{}:model"], ["{}:scaled", "--inputs", "x=3"]])
def test_what_a_file_prints_is_not_in_the_results(model, more, capsys):
    """``symad check model.py:f --json > f.json`` wrote the file's own words into the JSON."""
    assert main(["check", *(word.format(model) for word in more), "--json"]) == OK
    shown = capsys.readouterr()
    assert json.loads(shown.out)["models"][0]["status"] == "proved"
    assert "loading" in shown.err


def test_functions_that_return_no_model_are_none(model, capsys):
    """A helper whose arguments have defaults, or a main(), stopped the command for all models."""
    model.write_text(MODEL + HELPERS)
    assert main(["check", str(model)]) == OK
    shown = capsys.readouterr().out
    assert " f " in shown and " model " in shown and "settings" not in shown
    assert main(["check", f"{model}:settings"]) == USAGE
    assert "model.py:settings is of type float" in capsys.readouterr().err


def test_only_arguments_without_defaults_are_asked_for(model, capsys):
    assert main(["check", f"{model}:scaled"]) == USAGE
    assert "as in --inputs x=3, or write" in capsys.readouterr().err


def test_an_error_names_the_target_without_a_file(capsys):
    assert main(["check", ":f"]) == USAGE
    assert "there is no file :f" in capsys.readouterr().err


def test_two_certificates_of_one_name_are_refused(model, tmp_path, capsys):
    """Of two models of one name the first, which may be refuted, was not looked at."""
    main(["check", f"{model}:f", "--json"])
    document = json.loads(capsys.readouterr().out)
    document["models"] *= 2
    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps(document))
    assert main(["recheck", str(kept)]) == USAGE
    assert "the name 'f' occurs twice" in capsys.readouterr().err


def test_functions_of_arguments_are_told_as_left_out(model, capsys):
    """Only their shapes make them models, and a check of a file says nothing of them."""
    model.write_text(MODEL + "\n\ndef loss(w, x):\n    return w * x\n")
    assert main(["check", str(model)]) == OK
    told = capsys.readouterr().err
    assert f"left out: loss(w, x), which needs the shapes of its arguments: {model}:loss --inputs" in told
    assert "left out: f" not in told


ARRAYS = """
import numpy as np


def loss(w, x):
    return (np.exp(-((x @ w) ** 2)) * np.cos(x @ w)).sum()
"""


@pytest.mark.parametrize("level", ["0", "1"])
def test_the_file_of_compiled_code_holds_its_level_of_optimization(model, tmp_path, level):
    model.write_text(ARRAYS)
    given = [f"{model}:loss", "--inputs", "w=40", "x=3000,40", "--backend", "c"]
    assert main(["lower", *given, "--optimize", level, "-o", str(tmp_path / "made.py")]) == OK
    assert f"], optimize={level})" in (tmp_path / "made.py").read_text()


def test_levels_and_files_that_do_not_fit_are_refused(model, tmp_path, capsys):
    """C that stands alone is not compiled here, NumPy code not at all, and a C function is no Python."""
    for options, told in (
        (["--optimize", "0"], "--optimize is for --backend c"),
        (["--optimize", "0", "--backend", "c"], "--optimize is for -o OUT.py"),
        (["--backend", "c", "-o", str(tmp_path / "v.py")], "f is a C function"),
    ):
        assert main(["lower", f"{model}:f", *options]) == USAGE
        assert told in capsys.readouterr().err
    assert not (tmp_path / "v.py").exists()
