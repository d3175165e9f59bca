"""Grades of answers: the verdict, the entry at fault, and the mistake by its name."""

import sympy as sp

from symad.testing import grade

x, y = sp.symbols("x y", real=True)
F = x * y**2


def test_right_answers():
    assert grade(F, (x, y), gradient=[y**2, 2 * x * y]).right
    assert grade(F, (x, y), gradient=lambda x, y: (y * y, 2 * x * y)).right


def test_a_wrong_answer_tells_the_entry_and_the_mistake():
    made = grade(F, (x, y), gradient=[y**2, x * y])
    assert not made.right
    told = repr(made).splitlines()
    assert told[0] == "wrong (refuted)"
    assert told[1] == "∂f/∂y is wrong: missing factor 2"
    assert [line.split()[0] for line in told[2:5]] == ["at", "expected", "found"]


def test_an_answer_that_raises_says_so():
    def raises(x, y):
        return undefined_name  # noqa: F821

    assert "∂f/∂x is undecided: the function raised NameError" in repr(grade(F, (x, y), gradient=raises))


def test_no_answers():
    assert repr(grade(F, (x, y), gradient=None)) == "no answer yet"
    assert repr(grade(F, (x, y), gradient="y**2, 2*x*y")).startswith("not an answer: text")
    assert repr(grade(F, (x, y), gradient=[y**2])).startswith("not an answer")
