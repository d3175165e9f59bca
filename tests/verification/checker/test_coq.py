"""Certificates for Coq: the printed files, which of them coqc accepts, and which it rejects."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import SavingError
from symad.functions import sigmoid
from symad.ops.basic.arithmetic import add, mul, neg
from symad.ops.basic.sources import constant
from symad.verification.coq import CoqError, write
from symad.verification.coq.layout import coq_name
from symad.verification.coq.terms import FUNCTIONS, HEADS, WITHOUT_LEMMA
from symad.verification.coq.write import LIBRARY, CertifiedModel, as_coq
from tests.kept import digest, kept
from tests.kept import folder as kept_folder
from tests.verification.checker.coq_models import MODELS, lstm_cell, pendulum, robot_arm

needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None,
    reason="coqc is not installed (Debian: apt-get install coq libcoq-coquelicot)",
)
x, y = sp.symbols("x y", real=True)

AXIOMS = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
"""What Coq's library of real numbers assumes."""


def coqc(folder, name):
    """coqc on a file, and whether it accepts it."""
    command = ["coqc", "-w", "none", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def library():
    """A folder with the compiled library, kept by its text and the version of coqc."""
    names = (*LIBRARY, "SymadRelations.v")
    texts = [files("symad.verification.coq").joinpath(name).read_text("utf-8") for name in names]
    version = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=True).stdout

    def make(folder):
        folder.mkdir()
        for name, text in zip(names, texts, strict=True):
            (folder / name).write_text(text, encoding="utf-8")
            accepted, told = coqc(folder, name)
            assert accepted, told

    return kept(kept_folder("coq") / digest(version, *texts), make)


def checked(library, text, name="f"):
    """Whether coqc accepts a text, and what it says; kept by the text and the library."""

    def make(path):
        with tempfile.TemporaryDirectory() as folder:
            for compiled in library.iterdir():
                (Path(folder) / compiled.name).symlink_to(compiled)
            (Path(folder) / f"{name}.v").write_text(text, encoding="utf-8")
            path.write_text(json.dumps(coqc(folder, f"{name}.v")), encoding="utf-8")

    path = kept(kept_folder("coq") / f"{digest(library.name, name, text)}.json", make)
    return json.loads(path.read_text("utf-8"))


def text_of(f, wrt=None, inputs=None, name="f", **options):
    graph = (symad.trace(f, inputs) if inputs else symad.trace(f)).named(name)
    return as_coq(CertifiedModel(f, graph, tuple(wrt or graph.inputs)), name, **options)


def axioms_of(told):
    return set(re.findall(r"^([A-Z]\w+(?:\.\w+)+)\s*:?", told, re.MULTILINE))


# ---- what is printed --------------------------------------------------------------------------------


def test_the_function_is_printed_as_it_was_written():
    text = text_of((1 - x) ** 2 + 100 * (y - x**2) ** 2, name="valley")
    assert "Definition valley (x y : R) : R :=\n  (1 - x) ^ 2 + 100 * (y - x ^ 2) ^ 2." in text
    assert "valley_domain" not in text  # it is smooth everywhere
    claim = "is_derive (fun t => valley t y) x (nth 0 (valley_gradient x y) 0)"
    assert claim in text
    assert "is_derive (fun t => nth 1 (valley_gradient t y) 0) x (nth 2 (valley_hessian x y) 0)" in text


def test_the_domain_is_what_the_functions_need():
    text = text_of(sp.log(x) / y + sp.sqrt(1 + x**2) + 1 / (1 + sp.exp(y)), hessian=False)
    assert "Definition f_domain (x y : R) : Prop :=\n" in text
    domain = text.split("f_domain (x y : R) : Prop :=")[1].split(".")[0]
    assert set(map(str.strip, domain.split("/\\"))) == {"0 < x", "y <> 0"}


def test_names_are_safe():
    assert coq_name("θ_1", ()) == "theta_1"
    assert coq_name("sin", ()) == "sin_2"
    assert coq_name("t1", ()) == "t1_2"  # the names of the file's own values
    assert coq_name("fun", {"fun_2"}) == "fun_3"
    assert coq_name("x.). Axiom a : False. Definition b := (", ()).isidentifier()


@pytest.mark.parametrize(
    ("f", "named"),
    [
        (sp.floor(x) * y, "floor"),
        (sp.gamma(x), "gamma"),
        (sp.Piecewise((x, x > 0)), "Piecewise"),
        (sp.Piecewise((x, sp.Eq(x, y)), (y, True)), "Eq"),
        (sp.Heaviside(x, 0) * y, "Heaviside"),
        (sp.EulerGamma * x, "EulerGamma"),
    ],
)
def test_what_has_no_lemma_is_refused_by_name(f, named):
    with pytest.raises(CoqError, match=named):
        text_of(f)


def test_symbolic_sizes_are_refused():
    n = sp.Symbol("n", integer=True, positive=True)
    certificate = symad.check(sp.Trace(sp.MatrixSymbol("X", n, n)))
    with pytest.raises(CoqError, match="n are symbols"):
        certificate.to_coq("never.v")


def test_only_certificates_of_check_hold_a_model(tmp_path):
    certificate = symad.check(x**2)
    with pytest.raises(CoqError, match="holds no model"):
        symad.equal(x + x, 2 * x).to_coq(tmp_path / "f.v")
    with pytest.raises(CoqError, match="not a name of a Coq file"):
        certificate.to_coq(tmp_path / "my proof.v")
    with pytest.raises(CoqError, match="of the library"):
        certificate.to_coq(tmp_path / LIBRARY[0])


@pytest.mark.thorough
def test_a_certificate_that_was_read_can_be_written_for_coq(tmp_path):
    certificate = symad.check((1 - x) ** 2 + 100 * (y - x**2) ** 2)
    again = type(certificate).from_json(certificate.to_json())
    assert again.status == certificate.status
    one = certificate.to_coq(tmp_path / "valley.v").read_text("utf-8")
    other = again.to_coq(tmp_path / "valley.v").read_text("utf-8")
    assert "is_derive (fun t => " in other
    derivative = one[one.index("_gradient (x y : R) : list R :=") :].split("Theorem")[0]
    assert derivative.split("Definition")[0] in other
    assert "the traced graph" in other


def test_a_forged_model_is_refused():
    document = json.loads(symad.check(x**2 * y).to_json())
    graph = document["model"]["graph"]
    for forged in ({"graph": {}, "wrt": [0]}, {"graph": graph, "wrt": [9]}, [], {"wrt": []}):
        with pytest.raises(SavingError):
            symad.verification.Certificate.from_json(json.dumps({**document, "model": forged}))


def test_the_library_is_written_next_to_the_file(tmp_path):
    path = symad.check(x * y).to_coq(tmp_path / "product.v")
    assert path.exists()
    assert {p.name for p in tmp_path.iterdir()} == {"product.v", *LIBRARY}


# ---- the table of lemmas ------------------------------------------------------------------------------


@pytest.mark.thorough
def test_every_function_of_the_derivative_table_has_a_lemma_or_a_reason():
    code = (
        "import symad; from symad.facts.functions import float_names; "
        "from symad.ops.elementwise.apply import SLOPES; "
        "print(*{head.__name__ for head in (*SLOPES, *float_names())})"
    )  # in a process of its own: other tests register functions
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    with_lemma = {head.__name__ for head in HEADS}
    assert set(told.stdout.split()) - with_lemma == set(WITHOUT_LEMMA)
    assert not with_lemma & set(WITHOUT_LEMMA)


def test_every_lemma_of_the_table_stands_in_the_library():
    library = files("symad.verification.coq")
    lemmas = set(
        re.findall(r"^Lemma (d_\w+)", library.joinpath("SymadFunctions.v").read_text("utf-8"), re.MULTILINE)
    )
    short = {"Maximum": "max", "Minimum": "min"}
    assert {f"d_{short.get(name, name.lower())}" for name in FUNCTIONS} <= lemmas
    statements = library.joinpath("SymadStatements.v").read_text("utf-8")
    for constructor, function in FUNCTIONS.items():
        assert re.search(rf"\b{constructor} => (fun|\w*\.?{re.escape(function)}\b)", statements), function


@pytest.mark.parametrize("name", [*LIBRARY, "SymadRelations.v"])
def test_nothing_in_the_library_is_assumed(name):
    text = files("symad.verification.coq").joinpath(name).read_text("utf-8")
    assert not re.search(
        r"\b(Axiom|Admitted|admit|Parameter|Hypothesis|Conjecture|Unset|bypass_check)\b", text
    )


# ---- what coqc says -------------------------------------------------------------------------------------


@needs_coq
def test_coqc_accepts_the_gradient_of_a_product(library):
    accepted, told = checked(library, text_of(x * y**2, hessian=False))
    assert accepted, told
    assert axioms_of(told) == AXIOMS


@needs_coq
@pytest.mark.thorough
def test_coqc_accepts_gradient_and_hessian_with_the_axioms_of_real_numbers(library):
    accepted, told = checked(library, text_of(sp.log(x) * sp.tanh(x * y) + (y - x**2) ** 2))
    assert accepted, told
    assert axioms_of(told) == AXIOMS


@pytest.mark.sample(1)
@needs_coq
@pytest.mark.parametrize("kind", ["in the formula alone", "in formula and data"])
def test_coqc_rejects_a_wrong_gradient(library, kind):
    text = text_of((1 - x) ** 2 + 100 * (y - x**2) ** 2, name="valley", hessian=False)
    head, tail = text.split("Definition valley_gradient ", 1)
    wrong = head + "Definition valley_gradient " + tail.replace("100 * (2", "99 * (2", 1)
    if kind == "in formula and data":
        before, after = wrong.split("Definition valley_gradient_program", 1)
        wrong = before + "Definition valley_gradient_program" + after.replace("(Int 100)", "(Int 99)", 1)
    assert wrong.count("99") == (1 if kind == "in the formula alone" else 2)
    accepted, told = checked(library, wrong, "mutant")
    assert not accepted
    assert "Error" in told


@pytest.mark.thorough
@needs_coq
def test_coqc_rejects_a_domain_that_is_too_large(library):
    text = text_of(sp.log(x) * y, hessian=False)
    wrong = text.replace("  0 < x.", "  x <> 0.").replace("Need Log (Var 1)", "Need Inv (Var 1)")
    assert wrong != text
    accepted, _ = checked(library, wrong, "mutant")
    assert not accepted


@pytest.mark.thorough
@needs_coq
def test_coqc_accepts_an_lstm_cell_of_arrays(library):
    f, inputs = lstm_cell(1)
    accepted, told = checked(library, text_of(f, inputs=inputs, hessian=False))
    assert accepted, told


BRANCHES = {
    "max_of_3": sp.Max(x, y, x * y) * y,
    "clip": sp.Min(sp.Max(x, -1), 1) * y**2,
    "absolute": sp.Abs(x * y) ** 3 + sp.sign(x) * y**2,
    "step": sp.Heaviside(x - 1) * y * x,
    "huber": sp.Piecewise((x**2 / 2, sp.Abs(x) <= 1), (sp.Abs(x) - sp.Rational(1, 2), True)) * y,
    "cases": sp.Piecewise((x, sp.And(x > 0, y < 1)), (y**2, x < -1), (x * y, True)),
    "either": sp.Piecewise((x, sp.Or(x > 1, y > 2)), (x * y, True)),
    "entropy": sp.Piecewise((x * sp.log(x), x > 0), (y, True)),
    "log_relu": sp.log(1 + sp.Max(x, 0) ** 2 + sp.exp(y)),
}
"""Models with kinks and branches: claimed away from their ties."""


def test_a_choice_is_printed_by_its_conditions_and_its_ties_are_left_out():
    text = text_of(sp.Piecewise((x**2, x > 1), (2 * x - 1, True)) + sp.Max(x, y), hessian=False)
    assert "less 1 x * x ^ 2 + (1 - less 1 x) * (- 1 + 2 * x)" in text
    assert "Rmax x y" in text
    domain = text.split("f_domain (x y : R) : Prop :=")[1].split(".")[0]
    assert set(map(str.strip, domain.split("/\\"))) == {"x - 1 <> 0", "x - y <> 0"}


@pytest.mark.parametrize("name", BRANCHES)
def test_kinks_and_branches_are_written(name):
    assert f"Theorem {name}_gradient_correct" in text_of(BRANCHES[name], name=name)


@pytest.mark.thorough
@needs_coq
@pytest.mark.parametrize("name", ["max_of_3", "cases"])
def test_coqc_accepts_kinks_and_branches(library, name):
    accepted, told = checked(library, text_of(BRANCHES[name], name=name), name)
    assert accepted, told
    assert axioms_of(told) == AXIOMS


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", BRANCHES)
def test_coqc_accepts_all_kinks_and_branches(library, name):
    accepted, told = checked(library, text_of(BRANCHES[name], name=name), name)
    assert accepted, told
    assert axioms_of(told) == AXIOMS


@pytest.mark.thorough
@needs_coq
@pytest.mark.parametrize("change", ["the other branch", "a tie"])
def test_coqc_rejects_wrong_branches(library, change):
    text = text_of(sp.Max(x, y) * x, hessian=False)
    if change == "a tie":  # the domain without its condition
        wrong = text.replace("  x - y <> 0.", "  True.").replace("Need Inv (Sub (Var 1) (Var 2)) (\n", "(")
    else:
        before, after = text.split("Definition f_gradient", 1)
        wrong = (
            before
            + "Definition f_gradient"
            + after.replace("less y x", "less x y").replace(
                "App2 Less (Var 2) (Var 1)", "App2 Less (Var 1) (Var 2)"
            )
        )
    assert wrong != text
    assert not checked(library, wrong, "mutant")[0]


@pytest.mark.thorough
@needs_coq
def test_coqc_accepts_a_quotient_that_cancels_at_some_values(library):
    """The derivative of x y log x holds x y/x, whose own derivative is as large as y/x but for x/x = 1."""
    accepted, told = checked(library, text_of(x * y * sp.log(x)))
    assert accepted, told


z, p = sp.symbols("z p", real=True)
QUOTIENTS = {
    "power": 7 / (2 * x**2),
    "witch": y / (1 + x**2) ** 2,
    "two_sums": y / (x**2 * (1 + y**2) ** 2),
    "mixed": (x + y) ** 2 / (1 + x * y) ** 3,
    "exponential": sp.exp(x) / y**2,
    "logarithm": sp.log(x / y),
    "normal": -((x - y) ** 2) / (2 * p**2) - sp.log(p**2) / 2,
}
"""Models whose derivatives are equal by x (1/x) = 1 alone, where the domain says that x is not 0."""


@pytest.mark.thorough
@needs_coq
def test_coqc_accepts_a_quotient_by_a_power(library):
    text = text_of(QUOTIENTS["witch"], name="witch")
    accepted, told = checked(library, text, "witch")
    assert accepted, told
    assert axioms_of(told) == AXIOMS


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", QUOTIENTS)
def test_coqc_accepts_quotients(library, name):
    accepted, told = checked(library, text_of(QUOTIENTS[name], name=name), name)
    assert accepted, told
    assert axioms_of(told) == AXIOMS


a, q = sp.symbols("a q", positive=True)
u = x * y + p
ELEMENTARY = {
    "softmax": sp.exp(x) / (sp.exp(x) + sp.exp(y) + sp.exp(z)),
    "logsumexp": sp.log(sp.exp(x) + sp.exp(y) + sp.exp(z)),
    "logistic_loss": sp.log(1 + sp.exp(-z * (x * y + p))),
    "bernoulli": z * sp.log(1 / (1 + sp.exp(-u))) + (1 - z) * sp.log(1 - 1 / (1 + sp.exp(-u))),
    "focal": -((1 - sigmoid(x)) ** 2) * sp.log(sigmoid(x)),
    "mixture": sp.log(sp.exp(-((x - y) ** 2) / 2) / 3 + 2 * sp.exp(-((x - z) ** 2) / 2) / 3),
    "fermi": 1 / (sp.exp((x - y) / a) + 1),
    "ratio_of_exponentials": (sp.exp(x) - sp.exp(-x)) / (sp.exp(x) + sp.exp(-x)),
    "half_integers": a ** sp.Rational(3, 2) + x * a ** sp.Rational(5, 2),
    "roots": (a + q) ** sp.Rational(1, 3) + a ** sp.Rational(1, 4) + sp.sqrt(a),
    "float": a**0.75 + x * a**1.5,
    "inverse_cube": (x**2 + y**2) ** sp.Rational(-3, 2),
    "free_exponent": x**y,
    "hill": z * a**p / (q**p + a**p),
    "rational_quadratic": (1 + (x - y) ** 2 / (2 * a * q**2)) ** (-a),
    "lennard_jones": 4 * x * ((a / q) ** 12 - (a / q) ** 6),
    "cosine": (x * z + y * p) / sp.sqrt((x**2 + y**2) * (z**2 + p**2)),
}
"""Models whose derivatives are equal by relations between exponentials, logarithms and roots."""


def test_powers_are_printed_by_one_root_of_their_base():
    text = text_of(ELEMENTARY["half_integers"], hessian=False)
    assert "Definition f (a x : R) : R :=\n  sqrt a ^ 3 + x * sqrt a ^ 5." in text
    text = text_of(a ** sp.Rational(5, 3) + a ** sp.Rational(-1, 2), hessian=False)
    assert "/ Rpower a (1 / 6) ^ 3 + Rpower a (1 / 6) ^ 10." in text
    assert "Power" not in text_of(a**3 + 1 / a**2)  # no roots where there are none


def test_a_free_exponent_is_printed_for_a_positive_base():
    text = text_of(x**y, hessian=False)
    assert "Definition f (x y : R) : R :=\n  Rpower x y." in text
    assert "Definition f_domain (x y : R) : Prop :=\n  0 < x." in text


def test_a_comparison_is_refused_by_its_sign():
    def f(x):
        return np.where(x == 1, x, x**2)

    with pytest.raises(CoqError, match="the comparison =="):
        text_of(f, inputs=[()])


@pytest.mark.thorough
@needs_coq
@pytest.mark.parametrize("name", ["softmax", "half_integers", "free_exponent"])
def test_coqc_accepts_exponentials_and_powers(library, name):
    accepted, told = checked(library, text_of(ELEMENTARY[name], name=name, hessian=False), name)
    assert accepted, told
    assert axioms_of(told) == AXIOMS


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", ELEMENTARY)
def test_coqc_accepts_relations_of_exponentials_logarithms_and_roots(library, name):
    accepted, told = checked(library, text_of(ELEMENTARY[name], name=name), name)
    assert accepted, told
    assert axioms_of(told) == AXIOMS


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize(
    "f", [a ** sp.Rational(41, 100), a**0.1, sp.log(sp.cosh(x)) + sp.sinh(x) * sp.exp(-x)]
)
def test_coqc_still_rejects_the_forms_that_the_docs_name(library, f):
    assert not checked(library, text_of(f, hessian=False), "rejected")[0]


def changed(derive, change):
    """The derivative with its output nodes changed."""

    def made(graph, wrt):
        right = derive(graph, wrt)
        return right.with_outputs(change(list(right.output_nodes)), right.structure)

    return made


LARGER = Fraction(1_000_001, 1_000_000)
FIRST_ENTRY = {
    "a millionth too large": lambda parts: [mul(constant(LARGER), parts[0]), *parts[1:]],
    "a sign": lambda parts: [neg(parts[0]), *parts[1:]],
    "a term more": lambda parts: [add(parts[0], constant(LARGER - 1)), *parts[1:]],
}


@pytest.mark.thorough
@needs_coq
def test_coqc_rejects_a_softmax_whose_gradient_is_a_millionth_too_large(library, monkeypatch):
    wrong = changed(write.gradient, FIRST_ENTRY["a millionth too large"])
    monkeypatch.setattr(write, "gradient", wrong)
    accepted, told = checked(library, text_of(ELEMENTARY["softmax"], hessian=False), "mutant")
    assert not accepted
    assert "Error" in told


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", {**QUOTIENTS, **ELEMENTARY})
@pytest.mark.parametrize("of", ["gradient", "hessian"])
@pytest.mark.parametrize("mutant", FIRST_ENTRY)
def test_coqc_rejects_changed_derivatives(library, monkeypatch, name, of, mutant):
    """The first entry is wrong, in formula and data alike."""
    f = {**QUOTIENTS, **ELEMENTARY}[name]
    right = text_of(f, name=name, hessian=of == "hessian")
    monkeypatch.setattr(write, of, changed(getattr(write, of), FIRST_ENTRY[mutant]))
    text = text_of(f, name=name, hessian=of == "hessian")
    assert text != right
    accepted, told = checked(library, text, "mutant")
    assert not accepted
    assert "Error" in told


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_coqc_accepts_the_models(library, name):
    f, inputs = MODELS[name]
    accepted, told = checked(library, text_of(f, inputs=inputs, name=name), name)
    assert accepted, told
    assert axioms_of(told) == AXIOMS


MUTANTS = {
    "a millionth too large": lambda parts: [mul(constant(LARGER), parts[0]), *parts[1:]],
    "a sign": lambda parts: [*parts[:-1], neg(parts[-1])],
    "two entries changed places": lambda parts: [parts[1], parts[0], *parts[2:]],
}
"""What is done to the parts of a gradient."""


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_coqc_rejects_mutants_of_the_models(library, monkeypatch, name, mutant):
    """Formula and data agree on the wrong gradient: what coqc refuses is that it is the derivative."""
    f, inputs = MODELS[name]
    graph = symad.trace(f, inputs) if inputs else symad.trace(f)
    right = symad.gradient(graph)
    parts = list(right.output_nodes)
    if mutant.startswith("two") and parts[0].shape != parts[1].shape:
        pytest.skip("the first two entries have different shapes")
    wrong = right.with_outputs(MUTANTS[mutant](parts), right.structure)
    rng = np.random.default_rng(0)
    point = [rng.uniform(0.5, 1.5, size=node.shape) for node in graph.input_nodes]
    apart = [np.max(np.abs(np.asarray(a) - b)) for a, b in zip(right(*point), wrong(*point), strict=True)]
    assert max(apart) > 1e-9
    monkeypatch.setattr(write, "gradient", lambda graph, wrt: wrong)
    text = text_of(f, inputs=inputs, hessian=False, name=name)
    accepted, told = checked(library, text, "mutant")
    assert not accepted
    line = int(re.search(r"line (\d+), characters", told)[1])
    read = "\n".join(text.split("\n")[:line])
    assert read.split("Lemma ")[-1].startswith(f"{name}_gradient_checked"), told


@needs_coq
@pytest.mark.slow
def test_coqc_accepts_every_function_of_the_table(library):
    """The gradient of f(x y + 1/4), whatever the domain of f is."""
    binary = {"Xlogy", "Hypot", "Logaddexp", "Maximum", "Minimum"}
    two = {head for head in HEADS if HEADS[head].constructor in binary}
    for head in HEADS:
        value = head(x * y, y) if head in two else head(x * y + sp.Rational(1, 4))
        if value.func is not head:
            continue
        accepted, told = checked(
            library, text_of(value, hessian=False), f"f_{HEADS[head].constructor.lower()}"
        )
        assert accepted, (head, told)


@needs_coq
@pytest.mark.slow
def test_coqc_rejects_every_changed_number_of_a_gradient(library):
    f, _ = robot_arm()
    text = text_of(f, hessian=False, name="arm")
    before, after = text.split("Definition arm_gradient_program : prog :=", 1)
    program, rest = after.split("\n\nLemma arm_gradient_is", 1)
    places = [m.start() for m in re.finditer(r"\(Var \d+\)", program)][::7]
    for place in places:
        number = int(re.match(r"\(Var (\d+)\)", program[place:])[1])
        other = f"(Var {number % 4 + 1})" if number != number % 4 + 1 else "(Var 5)"
        changed = program[:place] + re.sub(r"\(Var \d+\)", other, program[place:], count=1)
        claimed = f"{before}Definition arm_gradient_program : prog :={changed}\n\nLemma arm_gradient_is{rest}"
        assert not checked(library, claimed, "mutant")[0]


def test_the_models_are_the_ones_that_are_meant():
    """Values at a point against the textbook forms, computed by other means."""
    import math

    f, _ = pendulum(1)
    (g, l1, omega1, theta1) = sorted(f.free_symbols, key=str)
    value = f.subs({g: 9, l1: 2, omega1: 0.5, theta1: 0.3})
    assert float(value) == pytest.approx(0.5 * 4 * 0.25 + 9 * 2 * math.cos(0.3))
