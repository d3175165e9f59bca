"""What an undecided certificate advises, and how long computations tell their progress."""

import io

import numpy as np
import pytest
import sympy as sp

import symad
from symad.verification import Budget
from symad.verification import budget as budgets

x = sp.Symbol("x", real=True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_budget_that_ends_names_its_option():
    f = symad.trace(lambda z: np.exp(z) / np.exp(z - z.max()).sum(), [(4,)])
    found = symad.check(f, budget=Budget(steps=2_000))
    assert found.status == "undecided"
    assert any("Budget(steps=...)" in note for note in found.notes)
    assert not any("Budget(" in note for note in symad.check(x**2).notes)


def test_the_domain_of_the_function_is_told_where_it_decides():
    found = symad.verify(sp.log(x), x, gradient=1 / sp.Abs(x))
    (entry,) = found.entries
    assert entry.status == "tested" and "where x > 0: elsewhere the function has no" in entry.claim
    assert symad.verify(sp.log(x), x, gradient=1 / sp.Abs(x), where=x > 0).status in ("proved", "tested")


def test_domains_that_touch_are_called_so():
    reason = symad.equal(sp.sqrt(x - 1), sp.sqrt(1 - x)).entries[0].reason
    assert "each side has values" in reason and "touch" in reason
    assert "touch" not in symad.equal(sp.log(-1 - x**2), sp.sqrt(x)).entries[0].reason


def test_properties_of_matrices_are_no_conditions():
    A = sp.MatrixSymbol("A", 2, 2)
    with pytest.raises(symad.errors.TraceError, match=r"Q.symmetric\(A\) is no condition on values"):
        symad.verify(sp.Determinant(A), A, gradient=A, where=sp.Q.symmetric(A))


def test_a_power_of_itself_is_told_without_branches_at_points():
    found = symad.verify(x**x, x, gradient=x**x * (sp.log(x) + 2))
    assert found.status == "refuted" and "Piecewise" not in str(found)


def test_progress_is_shown_in_terminals_after_a_while(monkeypatch):
    monkeypatch.setattr(budgets, "QUIET", -1.0)
    monkeypatch.setattr(budgets.sys, "stderr", Terminal())
    symad.check(sp.sin(x) * x)
    shown = budgets.sys.stderr.getvalue()
    assert "of at most 20,000,000 steps" in shown and shown.endswith("\r\x1b[K")
    monkeypatch.setattr(budgets.sys, "stderr", io.StringIO())
    symad.check(sp.sin(x) * x)
    assert not budgets.sys.stderr.getvalue()


def test_slices_and_decimal_factors_are_told():
    f = symad.trace(lambda z: np.sum(z[1::2] ** 3) + np.sum(z[::2]), [(6,)])
    wrong = np.arange(6) % 2
    found = symad.verify(f, gradient=lambda z: np.where(wrong, 6 * z**2, 1.0), hostile=False)
    assert "`z[1:6:2]" in found.entries[0].blame.mistake
    cubes = symad.trace(lambda z: np.sum(z**3), [(4,)])
    found = symad.verify(cubes, gradient=lambda z: 1.01 * 3 * z**2, hostile=False)
    assert found.entries[0].blame.mistake == "missing factor 1/1.01"


def test_rows_that_differ_by_a_name_alone_are_counted():
    many = sp.symbols("a0:20", real=True)
    text = str(symad.verify(sum(v**2 for v in many), many, gradient=[2 * v for v in many]))
    assert "∂f/∂a0 " in text and "... 18 more, to" in text and "∂f/∂a19 " in text and "∂f/∂a7 " not in text
