"""The corpus of derivatives: every verdict is established, every witness holds without symad's rules."""

import json

import mpmath
import pytest
import sympy

import symad
from symad import corpus
from symad.cli import main
from symad.cli.console import OK
from symad.errors import SavingError

ENTRIES = corpus.load()


def test_it_holds_sixty_entries_with_sources():
    names = [entry.name for entry in ENTRIES]
    assert len(names) == len(set(names)) >= 60
    assert sum(entry.verdict == "wrong" for entry in ENTRIES) >= 25
    assert all(entry.source for entry in ENTRIES)
    assert all((entry.witness is not None) == (entry.verdict == "wrong") for entry in ENTRIES)
    assert symad.corpus is corpus


@pytest.mark.sample(68)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_verdict_is_established(entry):
    certificate = entry.establish()
    assert entry.holds(certificate), certificate


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.verdict == "wrong"], ids=lambda entry: entry.name)
def test_every_witness_holds_by_numerical_differentiation(entry):
    """50-digit differences of the formula, and the claim, at the point of the entry."""
    symbols = sorted(entry.formula.free_symbols | entry.claim.free_symbols, key=str)
    assert {str(s) for s in symbols} == set(entry.witness.point)
    point = [entry.witness.point[str(s)] for s in symbols]
    with mpmath.workdps(50):
        at = [mpmath.mpf(q.numerator) / q.denominator for q in point]
        function = sympy.lambdify(symbols, entry.formula, "mpmath")
        orders = tuple(entry.order.get(str(s), 0) for s in symbols)
        true = mpmath.diff(function, at, orders) if any(orders) else function(*at)
        claimed = mpmath.mpf(sympy.lambdify(symbols, entry.claim, "mpmath")(*at))
        assert abs(true - mpmath.mpf(entry.witness.true)) < mpmath.mpf("1e-11") * max(abs(true), 1)
        assert abs(claimed - mpmath.mpf(entry.witness.claimed)) < mpmath.mpf("1e-11") * max(abs(claimed), 1)
    assert abs(true - claimed) > 1e-6
    if entry.domain is not None:
        exact = {s: sympy.Rational(q.numerator, q.denominator) for s, q in zip(symbols, point, strict=True)}
        assert entry.domain.subs(exact) == sympy.true


def test_the_command_tells_what_is_wrong(capsys):
    assert main(["corpus", "casadi", "--verbose"]) == OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 as stated" in shown and "casadi/issues/2585" in shown and "claimed -1.17520119364" in shown


@pytest.mark.parametrize(
    "change",
    [
        {"formula": "__import__('os').system('true')"},
        {"formula": ["sympy.sympify", ["symbol", "x", {}]]},
        {"order": {"nothing": 1}},
        {"order": {"x": 10**9}},
        {"verdict": "perhaps"},
        {"claim": ["^", 9, ["^", 9, ["^", 9, 9]]]},
        {"domain": 3.5},
        {"witness": {"at": {"x": "1/0"}}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_damaged_files_are_refused(tmp_path, change):
    good = json.loads((corpus.FOLDER / "wrong.json").read_text("utf-8"))[0]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([good]))
    assert corpus.read(path)[0].name == good["name"]
    path.write_text(json.dumps([{**good, **change}]))
    with pytest.raises(SavingError):
        corpus.read(path)
    path.write_text("[")
    with pytest.raises(SavingError, match="is not a corpus"):
        corpus.read(path)
