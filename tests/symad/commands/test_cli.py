"""The command line: what it prints, what it writes, and the exit codes that scripts rely on."""

import argparse
import json
import re
import shlex
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest
import sympy

import symad
from symad.cli import main
from symad.cli.console import OK, PIPE, REFUTED, UNDECIDED, USAGE
from symad.cli.parser import MODELS, make_parser
from symad.cli.tour.command import _summary
from symad.cli.tour.runner import Outcome, relative_difference, run_stage
from symad.cli.tour.stage import Finding, Skip, Stage, TourModel
from symad.cli.tour.stages import all_stages
from symad.load_models import load_models
from symad.verification.certificate.certificate import Certificate

MODEL = """
import numpy as np
from sympy import *
import symad

x, y = symbols("x y", real=True)
n = 3
valley = (1 - x)**2 + 100*(y - x**2)**2
traced = symad.trace(sin(x) * y)
pair = [x*y, x + y]
_hidden = x + 1


def waves():
    return {"s": sin(x), "c": cos(x)}


def scaled(factor):
    return factor * x


def loss(W, X):
    return ((X @ W) ** 2).sum()


if __name__ == "__main__":
    raise SystemExit("the main block must not run")
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL, encoding="utf-8")
    return path


class Judgment:
    """A stand-in for a certificate, which another one follows when it is rechecked."""

    bound = 0.0
    assumes = ("the front end",)
    comparisons = ()

    def __init__(self, status, later=None):
        self.status, self.later = status, later
        self.entries = [SimpleNamespace(name="∂f/∂x", status=status, reason="out of time")]

    def to_json(self):
        return json.dumps({"kept": self.status})

    def recheck(self):
        return Judgment(self.later)


@pytest.fixture
def judged(monkeypatch):
    """A stand-in for `symad.check` that answers what a test says, and notes what it was asked."""
    asked = []

    def judge(*statuses):
        answers = iter(statuses)

        def check(f, wrt=None):
            asked.append((f, wrt))
            return Judgment(next(answers))

        monkeypatch.setattr(symad, "check", check, raising=False)
        return asked

    return judge


# ---- models --------------------------------------------------------------------------------------


def test_the_models_of_a_file(model):
    models = load_models(str(model))
    assert list(models) == ["valley", "traced", "pair", "waves"]
    assert models["valley"].name == "valley"
    assert models["valley"](1.0, 1.0) == 0
    assert set(models["waves"](0.0)) == {"s", "c"}


def test_a_name_chooses_one(model):
    assert list(load_models(f"{model}:pair")) == ["pair"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{model}:nothing", "does not define 'nothing'; its models: valley, traced, pair, waves"),
        ("{model}:scaled", r"model.py:scaled takes arguments (factor)"),
        ("{model}:n", "model.py:n is of type int"),
        ("{folder}/missing.py", "there is no file"),
        ("{folder}/missing.py:valley", "there is no file"),
    ],
)
def test_models_that_are_not_there(model, target, message, capsys):
    where = target.format(model=model, folder=model.parent)
    assert main(["explain", where]) == USAGE
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ny = x / 0\n", "model.py failed at line 2: ZeroDivisionError"),
        ("raise SystemExit(0)\n", "model.py failed at line 1: SystemExit: 0"),
        ("def (:\n", "model.py failed at line 1: SyntaxError"),
        ("from sympy import *\nx = symbols('x')\n", "model.py defines no model"),
        ("def f():\n    raise KeyError('k')\n", "model.py:f failed at line 2: KeyError: 'k'"),
        ("from sympy import *\nf = Integral(symbols('x'))\n", "model.py:f cannot be traced"),
    ],
)
def test_models_that_fail(tmp_path, source, message, capsys):
    path = tmp_path / "model.py"
    path.write_text(source, encoding="utf-8")
    assert main(["explain", str(path)]) == USAGE
    assert message in capsys.readouterr().err


def test_several_models_need_a_name(model, capsys):
    assert main(["explain", str(model)]) == USAGE
    assert "defines valley, traced, pair, waves; say which" in capsys.readouterr().err


# ---- lower, explain, draw ------------------------------------------------------------------------


def test_lower_writes_a_file_that_needs_no_symad(model, tmp_path, capsys):
    out = tmp_path / "out.py"
    assert main(["lower", f"{model}:valley", "--of", "gradient", "-o", str(out)]) == OK
    assert "valley_gradient" in capsys.readouterr().out
    source = out.read_text("utf-8")
    assert "symad" not in source.replace("symad.", "").split('"""')[0]
    code = f"import runpy, sys; m = runpy.run_path({str(out)!r}); assert 'symad' not in sys.modules\n"
    code += "print(*m['valley_gradient'](-1.2, 1.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose([float(v) for v in done.stdout.split()], [-215.6, -88], rtol=1e-14)


def test_lower_prints_by_default(model, capsys):
    assert main(["lower", f"{model}:traced", "--dtype", "float32"]) == OK
    assert "def traced(" in capsys.readouterr().out


def test_lower_prints_plain_code_and_tells_what_the_passes_did(model, capsys):
    assert main(["lower", f"{model}:valley", "--of", "gradient", "--style", "plain", "--passes"]) == OK
    shown = capsys.readouterr()
    assert "def valley_gradient(" in shown.out and "inline: " not in shown.out
    assert "inline: " in shown.err and "statements" in shown.err
    assert main(["lower", f"{model}:traced", "--passes"]) == OK
    assert "stabilize: " in capsys.readouterr().err
    assert main(["lower", f"{model}:valley", "--backend", "runs", "--passes"]) == USAGE
    assert "backends numpy, c" in capsys.readouterr().err


def test_lower_names_the_function(model, capsys):
    assert main(["lower", f"{model}:valley", "--name", "hill"]) == OK
    assert "def hill(" in capsys.readouterr().out
    assert main(["lower", f"{model}:valley", "--backend", "c", "--name", "hill"]) == OK
    assert "void hill_batch(" in capsys.readouterr().out
    assert main(["lower", f"{model}:valley", "--backend", "c", "--name", "x"]) == USAGE
    assert "their libraries or generated code use this name" in capsys.readouterr().err


def test_lower_refuses_what_is_not_there(model, capsys):
    assert main(["lower", f"{model}:traced", "--backend", "fortran"]) == USAGE
    assert "backend='fortran' is not one of" in capsys.readouterr().err


def test_explain_writes_a_page_of_steps(model, capsys, tmp_path):
    target = tmp_path / "steps.html"
    assert main(["explain", f"{model}:traced", "--at", "x=0", "y=1", "--play", str(target)]) == OK
    assert capsys.readouterr().out.strip() == str(target)
    assert target.read_text("utf-8").startswith("<!doctype html>")


def test_explain_at_a_point(model, capsys):
    assert main(["explain", f"{model}:traced", "--at", "x=0", "--at", "y=1/3"]) == OK
    shown = capsys.readouterr().out
    assert main(["explain", f"{model}:traced", "--at", "x=0, y=1/3"]) == OK
    assert capsys.readouterr().out == shown
    assert main(["explain", f"{model}:traced", "--at", "x=0", "y=1/3"]) == OK  # as --inputs and --sizes
    assert capsys.readouterr().out == shown
    assert shown.startswith("traced(x, y) at x = 0, y = 1/3")
    assert "Reverse mode" in shown
    assert main(["explain", f"{model}:traced", "--at", "x=-3"]) == OK
    assert "-3.0" not in (shown := capsys.readouterr().out) and "sin(3)" in shown  # whole numbers are exact
    assert main(["explain", f"{model}:traced", "--format", "latex"]) == OK
    assert r"\begin{tabular}" in capsys.readouterr().out


@pytest.mark.parametrize("at", ["x", "x=__import__('os')", "=3", "x=[1, 'a']", "x=1/0"])
def test_values_are_numbers_only(model, at, capsys):
    assert main(["explain", f"{model}:traced", "--at", at]) == USAGE
    assert capsys.readouterr().err.startswith("symad: ")


def test_draw(model, tmp_path, capsys):
    out = tmp_path / "g.svg"
    assert main(["draw", f"{model}:valley", "--of", "hessian", "-o", str(out)]) == OK
    assert ElementTree.parse(out).getroot().tag.endswith("svg")
    assert main(["draw", f"{model}:valley", "-o", str(tmp_path / "g.gif")]) == USAGE
    assert "g.gif" in capsys.readouterr().err


# ---- check and recheck ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["proved", "tested"], OK),
        (["proved", "undecided"], UNDECIDED),
        (["undecided", "refuted"], REFUTED),
    ],
)
def test_exit_codes_of_check(model, judged, statuses, code, capsys):
    judged("proved", "proved", *statuses)
    assert main(["check", str(model)]) == code
    shown = capsys.readouterr().out
    assert all(status in shown for status in statuses)
    assert "taken on trust: the front end" in shown


@pytest.mark.parametrize(
    ("status", "shown"), [("proved", "0"), ("tested", "0"), ("measured", "–"), ("refuted", "–")]
)
def test_only_levels_with_a_bound_show_a_chance_of_error(model, judged, status, shown, capsys):
    judged(status)
    main(["check", f"{model}:valley"])
    row = next(line for line in capsys.readouterr().out.splitlines() if status in line and "│" in line)
    assert [cell.strip() for cell in row.split("│")][4] == shown


def test_check_passes_the_model_and_wrt_on(model, judged):
    asked = judged("proved")
    assert main(["check", f"{model}:valley", "--wrt", "x,y"]) == OK
    ((graph, wrt),) = asked
    assert wrt == ("x", "y")
    assert graph is load_models(f"{model}:valley")["valley"]


@pytest.mark.parametrize(("later", "code"), [("proved", OK), ("refuted", REFUTED)])
def test_certificates_can_be_kept_and_rechecked(model, judged, tmp_path, capsys, monkeypatch, later, code):
    judged("proved")
    assert main(["check", f"{model}:valley", "--json"]) == OK
    kept = tmp_path / "cert.json"
    kept.write_text(capsys.readouterr().out, encoding="utf-8")
    document = json.loads(kept.read_text("utf-8"))
    assert document["models"] == [{"name": "valley", "status": "proved", "certificate": {"kept": "proved"}}]
    model.write_text("raise SystemExit('a model file is not run again')", encoding="utf-8")

    def from_json(text):
        return Judgment(json.loads(text)["kept"], later)

    monkeypatch.setattr(Certificate, "from_json", staticmethod(from_json))
    assert main(["recheck", str(kept)]) == code
    assert ("∂f/∂x: was proved, is refuted" in capsys.readouterr().out) == (later == "refuted")


def test_certificates_of_real_models(model, tmp_path, capsys):
    assert main(["check", f"{model}:valley"]) == OK
    assert "proved" in capsys.readouterr().out
    assert main(["check", str(model), "--json"]) == OK
    kept = tmp_path / "cert.json"
    kept.write_text(capsys.readouterr().out, encoding="utf-8")
    model.unlink()
    assert main(["recheck", str(kept)]) == OK
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("valley", "traced", "pair", "waves"))
    assert "was" not in shown


@pytest.mark.parametrize("text", ["[]", "not json", '{"format": "symad certificates", "models": 3}'])
def test_other_files_are_no_certificates(tmp_path, text, capsys):
    path = tmp_path / "cert.json"
    path.write_text(text, encoding="utf-8")
    assert main(["recheck", str(path)]) == USAGE
    assert "cert.json is not a certificate" in capsys.readouterr().err


# ---- ops -----------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_ops_shows_every_operation(capsys):
    assert main(["ops"]) == OK
    shown = capsys.readouterr().out
    assert "Einsum" in shown and "jvp" in shown and "✗ missing" in shown
    assert main(["ops", "--json"]) == OK
    answers = json.loads(capsys.readouterr().out)
    assert answers["Einsum"]["transpose"] == "answered"
    assert answers["Apply"]["transpose"] == "not linear"
    assert answers["Softmax"]["definition"] == "answered"


# ---- help and usage ------------------------------------------------------------------------------

COMMANDS = ["tour", "check", "recheck", "audit", "corpus", "lower", "explain", "draw", "ops"]


def test_help_teaches(capsys):
    assert main(["--help"]) == OK
    shown = capsys.readouterr().out
    assert all(command in shown for command in COMMANDS)
    assert "exit codes" in shown and "first steps" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(command, capsys):
    assert main([command, "--help"]) == OK
    assert f"symad {command}" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("command", [[], *([c] for c in COMMANDS)], ids=str)
def test_help_fits_the_terminal(command, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*command, "--help"]) == OK
    lines = capsys.readouterr().out.splitlines()
    wide = [line for line in lines if len(line) > columns]
    assert not [line for line in wide if columns == 80 or not line.startswith(" ")]  # examples stay whole


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_says_what_it_is(command):
    commands = next(a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    silent = [a.dest for a in commands.choices[command]._actions if not a.help]
    assert silent == []


def examples_of(command):
    """The lines of help that call a command on the model file of the help itself."""
    commands = next(a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    text = re.sub(r"\\\n\s*", " ", commands.choices[command].epilog)
    lines = [line.strip() for line in text.splitlines() if line.startswith(f"  symad {command} model.py")]
    return [re.split(r"\s{2,}(?!-)", line)[0] for line in lines]


EXAMPLES = [e for command in ("lower", "explain", "draw", "check") for e in examples_of(command)]


def test_examples_are_found():
    assert len(EXAMPLES) == 20 and sum("--format latex" in example for example in EXAMPLES) == 1


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_help_work(example, tmp_path, monkeypatch, capsys):
    code = textwrap.dedent(MODELS.partition("# model.py\n")[2])
    (tmp_path / "model.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(example.partition(" > ")[0])[1:]) == OK
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lower", "{model}:valley", "-o", "{folder}/none/f.py"], "{folder}/none/f.py: No such file or"),
        (["lower", "{model}:valley", "--backend", "c", "-o", "{folder}/none/f.c"], "{folder}/none/f.c: No"),
        (["draw", "{model}:valley", "-o", "{folder}/none/f.svg"], "{folder}/none/f.svg: No such file or"),
        (["recheck", "{folder}/none.json"], "{folder}/none.json: No such file or"),
        (["corpus", "no such entry"], "no name or source in the corpus has 'no such entry'"),
    ],
)
def test_errors_name_what_was_asked_for(arguments, message, model, capsys):
    places = {"model": model, "folder": model.parent}
    assert main([a.format(**places) for a in arguments]) == USAGE
    assert capsys.readouterr().err.startswith(f"symad: {message.format(**places)}")


@pytest.mark.parametrize("arguments", [["fly"], ["draw", "m.py"], ["check"], ["tour", "nowhere"]])
def test_wrong_usage(arguments):
    assert main(arguments) == USAGE


@pytest.mark.parametrize(
    "word, use", [("verify", "check"), ("prove", "check"), ("diff", "lower --of gradient")]
)
def test_words_that_are_tried_as_commands_are_answered(word, use, capsys):
    assert main([word, "model.py"]) == USAGE
    assert capsys.readouterr().err == f"symad: there is no command '{word}'; use 'symad {use}'\n"


@pytest.mark.parametrize("command", ["check", "lower", "explain", "audit"])
@pytest.mark.parametrize("target", ["nofile.py", "nofile.py:model", "no/such/folder"])
def test_a_file_that_is_not_there_is_named(command, target, capsys):
    assert main([command, target]) == USAGE
    named = target.partition(":")[0]
    assert capsys.readouterr().err == f"symad: there is no file {named}\n"


def test_the_command_alone_prints_its_help(capsys):
    assert main([]) == OK
    alone = capsys.readouterr().out
    assert main(["--help"]) == OK
    assert alone == capsys.readouterr().out and "symad COMMAND --help" in alone


@pytest.mark.parametrize("command", [[], ["check"], ["lower"], ["explain"], ["tour"], ["audit"], ["ops"]])
def test_help_fits_a_terminal_of_80_columns(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command, "--help"]) == OK
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.thorough
def test_the_command_is_installed_as_a_module(tmp_path):
    code = "import sys; from symad.cli import main; sys.exit(main(['--version']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"symad {symad.__version__}\n")


# ---- tour ----------------------------------------------------------------------------------------


def test_the_tour_lists_its_stages(capsys):
    assert main(["tour", "--list"]) == OK
    shown = capsys.readouterr().out
    assert {"chain rule", "rosenbrock", "arm"} <= set(all_stages())
    assert all(stage.about in shown for stage in all_stages().values())


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["chain rule", "rosenbrock", "arm"])
def test_first_stages_of_the_tour(name, tmp_path, capsys):
    assert main(["tour", name, "--out", str(tmp_path / "out")]) == OK
    shown = capsys.readouterr().out
    assert "proved" in shown or "tested" in shown
    assert "ok" in shown and "FAILED" not in shown and "✗" not in shown
    assert "1 stage in" in shown and "; none failed" in shown
    assert max(map(len, shown.split("nodes  operations")[0].splitlines())) <= 80  # fits a terminal
    assert (tmp_path / "out" / f"{name}.svg").exists()


def outcome(model, **options):
    return run_stage(Stage("test", "a test", model, **options), None, lambda step: None)


def test_the_summary_names_what_failed():
    broken = Outcome(Stage("odd one", "", None), failures=["no"], seconds=2.0)
    left_out = Outcome(Stage("far one", "", None), skipped="no data", seconds=1.0)
    assert _summary([broken, left_out]) == "2 stages in 3 s; 1 skipped; failed: odd one\n"


def test_a_stage_reports_all_that_fails(judged):
    judged("refuted")
    x = sympy.Symbol("x", real=True)

    def use(made):
        return [Finding("two and two is five", False)]

    found = outcome(lambda: TourModel(sympy.sin(x), point=(0.5,), use=use))
    assert not found.ok
    assert (found.status, found.modes) == ("refuted", 8)
    assert found.findings[0].text == "two and two is five"


def test_what_is_undecided_is_told_and_is_no_failure(judged):
    judged("undecided")
    found = outcome(lambda: TourModel(sympy.sin(sympy.Symbol("x", real=True)), point=(0.5,)))
    assert found.ok
    assert found.doubts == ["1 of 1 entries are undecided, such as ∂f/∂x: out of time"]


def test_a_stage_that_breaks_does_not_end_the_tour():
    def broken():
        raise ValueError("no such data")

    assert outcome(broken).failures == ["ValueError: no such data"]

    def absent():
        raise Skip("scikit-learn is not installed")

    skipped = outcome(absent)
    assert skipped.ok and skipped.skipped == "scikit-learn is not installed"


def test_differences_are_relative_to_the_largest_entry():
    a = np.array([1.0, 1e6, np.nan])
    assert relative_difference(a, a) == 0
    assert relative_difference(a, a + np.array([0.5, 0, 0])) == pytest.approx(5e-7)
    assert relative_difference(a, np.array([1.0, np.nan, np.nan])) == np.inf
    assert relative_difference(np.zeros(2), np.zeros(2)) == 0
    assert relative_difference(np.zeros(2), np.zeros(3)) == np.inf


def test_a_function_of_arrays_is_traced_on_the_shapes_given(model, capsys):
    assert main(["check", f"{model}:loss", "--inputs", "W=4,3", "X=n,4"]) == OK
    found = capsys.readouterr().out
    assert "proved" in found and "of other sizes nothing is known" not in found  # n is a symbol: for all n
    assert main(["lower", f"{model}:loss", "--inputs", "X=n,4", "W=4,3", "--of", "gradient"]) == OK
    assert "W" in capsys.readouterr().out


FUNCTIONS = """
import numpy as np
import symad


def net(p, X):
    return np.sum(np.tanh(X @ p["W"] + p["b"]))


def scaled(x, factor=2.0):
    return factor * x**2


@symad.function(inputs=[(3,)])
def length(v):
    return np.sum(v**2)


cube = lambda u: u**3
"""


def test_functions_of_every_form(tmp_path, capsys):
    path = tmp_path / "m.py"
    path.write_text(FUNCTIONS)
    graph = load_models(f"{path}:net", ["p.W=3,2", "p.b=2", "X=n,3"])["net"]
    W, b, X = np.ones((3, 2)), np.zeros(2), np.full((4, 3), 0.1)
    assert graph({"W": W, "b": b}, X) == pytest.approx(8 * np.tanh(0.3))
    assert load_models(f"{path}:scaled", ["x"])["scaled"](3.0) == 18.0
    assert load_models(f"{path}:scaled", ["factor", "x"])["scaled"](3.0, 1.0) == 9.0
    assert load_models(f"{path}:cube", ["u"])["cube"](2.0) == 8.0
    assert list(load_models(str(path))) == ["length"]
    assert load_models(f"{path}:length")["length"](np.arange(3.0)) == 5.0
    wrong = [("scaled", ["factor"]), ("net", ["p=3", "p.b=2", "X=4,3"]), ("net", ["X=4,3", "X=4"])]
    for target, inputs in wrong:
        assert main(["lower", f"{path}:{target}", "--inputs", *inputs]) == USAGE
        assert f"m.py:{target} takes (" in capsys.readouterr().err


def test_derivatives_by_some_inputs(tmp_path, capsys):
    path = tmp_path / "m.py"
    path.write_text(FUNCTIONS)
    whole = ["lower", f"{path}:net", "--inputs", "p.W=3,2", "p.b=2", "X=4,3"]
    assert main([*whole, "--of", "gradient", "--wrt", "X", "--style", "plain"]) == OK
    printed = capsys.readouterr().out
    assert "X_bar" in printed and "W_bar" not in printed
    assert main([*whole, "--wrt", "X"]) == USAGE
    assert "--wrt is for derivatives" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "inputs", "words"),
    [
        ("loss", [], "--inputs W=3 X=3"),
        ("loss", ["--inputs", "W=4"], "takes (W, X), but --inputs gives (W)"),
        ("loss", ["--inputs", "W=4;3", "X"], "write a name and its sizes"),
        ("loss", ["--inputs", "W=4,3", "X=n,5"], "ShapeError"),
        ("valley", ["--inputs", "x=3"], "is not a function"),
        ("", ["--inputs", "x=3"], "say which"),
    ],
)
def test_shapes_that_do_not_fit_are_named(model, capsys, target, inputs, words):
    name = f"{model}:{target}" if target else str(model)
    assert main(["check", name, *inputs]) == USAGE
    assert words in capsys.readouterr().err


def test_backend_c_writes_the_file_and_its_header(model, tmp_path, capsys):
    assert main(["lower", f"{model}:valley", "--backend", "c"]) == OK
    assert "#include <math.h>" in capsys.readouterr().out
    target = tmp_path / "valley.c"
    assert main(["lower", f"{model}:valley", "--backend", "c", "-o", str(target)]) == OK
    assert "symad_valley(" in target.read_text()
    assert "#ifdef __cplusplus" in (tmp_path / "valley.h").read_text()
    assert main(["lower", f"{model}:valley", "-o", str(tmp_path / "numpy.c")]) == USAGE
    assert "backend='c' prints C" in capsys.readouterr().err


ARRAYS = """
from sympy import *
x = symbols("x")
X = MatrixSymbol("X", 3, 3)
n = symbols("n", integer=True, positive=True)
A = MatrixSymbol("A", n, n)
bessel = besselj(1, x)
matrix = HadamardProduct(X * X, X)
square = Trace(A.T * A)


def loss(W, X):
    return ((X @ W) ** 2).sum()
"""


def test_backend_c_writes_arrays_too(tmp_path, capsys):
    path, out = tmp_path / "m.py", tmp_path / "m.c"
    path.write_text(ARRAYS)
    assert main(["lower", f"{path}:matrix", "--backend", "c", "-o", str(out)]) == OK
    assert "double w[" in out.read_text() and "Its Python file" not in out.read_text()
    header = (tmp_path / "m.h").read_text()
    assert "#define SYMAD_MATRIX_SIZE_X 9\n" in header and "x[0..8] = X, shape (3, 3), row by row" in header
    printed = capsys.readouterr().out
    assert f"{out}: symad_matrix, " in printed and f"{tmp_path / 'm.h'}: symad_matrix, " in printed
    assert main(["lower", f"{path}:square", "--backend", "c", "-o", str(out)]) == USAGE
    assert "leaves n open" in capsys.readouterr().err
    sized = ["lower", f"{path}:square", "--sizes", "n=2", "--of", "gradient"]
    assert main([*sized, "--backend", "c", "-o", str(out)]) == OK
    header = (tmp_path / "m.h").read_text()
    assert "#define SYMAD_SQUARE_GRADIENT_DIM_N 2\n" in header and "A_bar, shape (2, 2)" in header
    function = ["lower", f"{path}:loss", "--inputs", "W=4,3", "X=n,4", "--sizes", "n=2", "--backend", "c"]
    capsys.readouterr()
    assert main([*function, "--passes"]) == OK
    printed = capsys.readouterr()
    assert "#include <math.h>" in printed.out and "scalars: " in printed.err


def test_sizes_are_for_every_backend(tmp_path, capsys):
    path = tmp_path / "m.py"
    path.write_text(ARRAYS)
    assert main(["lower", f"{path}:square", "--sizes", "n=2", "--of", "gradient", "--style", "plain"]) == OK
    printed = capsys.readouterr().out
    assert "A_bar" in printed and "(2, 2)" in printed
    wrong = {"m=2": "has no size m; its symbolic sizes: n", "n=two": "as in n=4", "2": "as in n=4"}
    for sizes, message in wrong.items():
        assert main(["lower", f"{path}:square", "--sizes", sizes]) == USAGE
        assert message in capsys.readouterr().err


def test_what_is_no_c_that_stands_alone_is_an_error(tmp_path, capsys):
    path = tmp_path / "m.py"
    path.write_text(ARRAYS)
    in_c = ["--backend", "c"]
    for arguments, message in (
        ([f"{path}:bessel", *in_c], "besselj is not in C's math.h"),
        ([f"{path}:matrix", *in_c, "-o", str(tmp_path / "m.h")], "ends in .c"),
        ([f"{path}:matrix", *in_c, "--style", "plain"], "leave out --style and --dtype"),
        ([f"{path}:matrix", *in_c, "--dtype", "float32"], "also in float32"),
        ([f"{path}:matrix", *in_c, "--limit", "10"], "the limit is 10; give smaller sizes"),
        ([f"{path}:matrix", "--limit", "10"], "--limit is for C that stands alone"),
    ):
        assert main(["lower", *arguments]) == USAGE
        assert message in capsys.readouterr().err
    out = tmp_path / "m.py.py"
    assert main(["lower", f"{path}:matrix", *in_c, "-o", str(out)]) == OK
    assert "import numpy as np" in out.read_text()


@pytest.mark.thorough
def test_a_reader_who_stops_is_no_error_and_no_verdict():
    process = subprocess.Popen(
        [sys.executable, "-m", "symad", "tour", "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", PIPE)


WIDE = """
import sympy as sp
x, y = sp.symbols("x y", real=True)
valley = (1 - x)**2 + sp.exp(x*y)*sp.sin(x) + sp.cos(y)*sp.tanh(x) + sp.atan(y) + sp.erf(x)
"""


@pytest.mark.parametrize(
    ("command", "most"),
    [
        (["ops"], 80), (["check"], 80), (["explain", "--at", "x=1", "y=2"], 80),
        (["lower", "--backend", "c"], 100),
    ],
)  # fmt: skip
def test_piped_output_is_not_wider_than_a_terminal(command, most, tmp_path, monkeypatch, capsys):
    """Where no terminal tells its width, tables and notes have 80 columns, and C has 100."""
    monkeypatch.delenv("COLUMNS", raising=False)
    path = tmp_path / "model.py"
    path.write_text(WIDE)
    name, *options = command
    assert main([name, *([] if name == "ops" else [f"{path}:valley"]), *options]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= most and len(lines) > 8


def test_the_table_of_operations_fits_the_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["ops"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60 and any("b jvp" in line for line in lines)
    assert not any("…" in line for line in lines)
