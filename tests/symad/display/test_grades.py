"""Grades of answers: the verdict, the entry at fault, and the mistake by its name."""

import numpy as np
import pytest
import sympy as sp

import symad
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
    assert told[0] == "wrong (refuted): 1 of 2 entries right"
    assert told[1] == "∂f/∂y is wrong: missing factor 2"
    assert [line.split()[0] for line in told[2:5]] == ["at", "expected", "found"]
    assert told[-1] == "∂f/∂x is right"
    assert made.score == 0.5


def test_a_grade_does_not_contain_the_solution():
    told = repr(grade(x**2 * sp.exp(x), x, gradient=2 * x))
    assert "exp(" not in told and "e^" not in told and "smallest part" not in told
    told = repr(grade(sp.sin(x * y), (x, y), gradient=[y * sp.cos(x * y)] * 2))
    assert "expected x = " in told and "cos" not in told


def test_values_have_six_digits():
    """sin'(x) = cos(x) and not −cos(x), at the point that the grade names."""
    told = repr(grade(sp.sin(x), x, gradient=-sp.cos(x))).splitlines()
    at, expected, found = (line.split()[-1] for line in told[2:5])
    assert expected == f"{float(sp.cos(sp.Rational(at))):.6g}" and found == f"-{expected}"


def test_values_that_differ_late_are_shown_in_full():
    told = repr(grade(x, x, gradient=1 + sp.Rational(1, 10**9))).splitlines()
    values = [line.split()[1] for line in told if line.split()[0] in ("expected", "found")]
    assert values[:2] == ["1.0", "1.000000001"]


def test_hints_name_the_rules_then_all_steps_but_the_last():
    made = grade(F, (x, y), gradient=[y**2, x * y])
    assert made.hint(1) == "∂f/∂y needs: power rule, product rule"
    assert made.hint(2).splitlines()[-3:] == ["r_2 = 1", "r_1 = r_2 x", "r_y = ?"]
    with pytest.raises(ValueError, match="levels 1 and 2, not 3"):
        made.hint(3)
    assert grade(F, (x, y), gradient=[y**2, 2 * x * y]).hint() == "right, for all values (proved)"
    assert grade(F, (x, y), gradient=None).hint() == "no answer yet"


@pytest.mark.parametrize(
    ("f", "wrt", "answer", "told"),
    [
        (sp.sin(x * y), (x, y), {"value": sp.cos(x * y)}, ["s_1 = x y", "s_2 = ?"]),
        (sp.sin(x * y), (x, y), {"hessian": [[0, 0], [0, 0]]}, ["∂²f is the derivative of D f(x, y) = [y"]),
        ([x * y, sp.sin(x)], (x, y), {"jacobian": [[y, x], [sp.sin(x), 0]]}, ["t_1 = ?", "t_2 = ?"]),
        (symad.trace(lambda W, v: np.sum(np.tanh(W @ v)), [(2, 3), (3,)]), ["W"],
         {"gradient": lambda W, v: W}, ["r_1 = ", "W̄ = ?"]),
    ],
)  # fmt: skip
def test_a_hint_is_not_the_answer(f, wrt, answer, told):
    """Hints on values speak of steps, those on second derivatives of first ones; no question is answered."""
    made = grade(f, wrt, **answer)
    hint = made.hint(2)
    assert all(part in hint for part in told), hint
    assert hint.count("?") == sum("?" in part for part in told)
    assert "value" not in answer or "deriv" not in hint + made.hint(1)


def test_notebooks_show_a_grade_in_color():
    wrong, right = grade(F, (x, y), gradient=[y**2, x * y]), grade(F, (x, y), gradient=[y**2, 2 * x * y])
    assert "#c62828" in wrong._repr_html_() and "∂f/∂x is right</pre>" in wrong._repr_html_()
    assert "#2e7d32" in right._repr_html_() and right.score == 1
    odd = sp.Symbol("<b>", real=True)
    assert "<b>&" not in grade(odd**2, odd, gradient=odd)._repr_html_().replace("<b>wrong", "")
    assert "&lt;b&gt;" in grade(odd**2, odd, gradient=odd)._repr_html_()


PRODUCT = "is the product of the derivatives of its factors"
QUOTIENT = "is the quotient of the derivatives of its parts"
TWICE = symad.trace(lambda v: np.sum(np.sin(v) * v**2), [(4,)])


@pytest.mark.parametrize(
    ("f", "answer", "told"),
    [
        (x * sp.sin(x), sp.cos(x), f"`x sin(x)` {PRODUCT}"),
        (sp.sin(x) / (1 + x**2), sp.cos(x) / (2 * x), f"`sin(x) / (1 + x^2)` {QUOTIENT}"),
        (sp.exp(x**2 * sp.sin(x)), sp.exp(x**2 * sp.sin(x)) * 2 * x * sp.cos(x), f"`x^2 sin(x)` {PRODUCT}"),
        (x * y * sp.sin(x), y * sp.cos(x), f"`x y sin(x)` {PRODUCT}"),  # y is a constant
        (TWICE, lambda v: 2 * v * np.cos(v), f"`sin(v) v^2` {PRODUCT}"),
        (x**x, x * x ** (x - 1), "the path from the exponent `x` to `x^x` is missing"),
        (x**x, x**x * sp.log(x), "the path from the base `x` to `x^x` is missing"),
        (sp.sin(x) ** sp.sin(x), sp.sin(x) ** sp.sin(x) * sp.cos(x), "the path from the exponent `sin(x)`"),
    ],
)
def test_mistakes_of_products_and_powers(f, answer, told):
    made = grade(f, None if f is TWICE else x, gradient=answer)
    assert told in " ".join(repr(made).split())


def test_a_jvp_that_multiplies_tangents_is_named():
    wrong = symad.verify(TWICE, jvp=lambda v, d: np.sum(2 * v * np.cos(v) * d * d))
    assert PRODUCT in wrong.entries[0].blame.mistake


@pytest.mark.thorough
def test_an_answer_of_arrays_names_the_step_and_what_is_right():
    """softmax's derivative summed along the wrong axis."""

    def attention(q, k, v):
        return np.sum((symad.functions.softmax(q @ k.T) @ v) ** 2)

    def mine(q, k, v):
        P = np.exp(q @ k.T)
        P /= P.sum(1, keepdims=True)
        O_bar = 2 * P @ v
        P_bar = O_bar @ v.T
        S_bar = P * (P_bar - (P * P_bar).sum(0, keepdims=True))  # should be axis 1
        return S_bar @ k, S_bar.T @ q, P.T @ O_bar

    made = grade(symad.trace(attention, [(3, 2)] * 3), gradient=mine)
    assert "wrong axis: Σ p p_bar along axis 0, not 1" in repr(made)
    assert repr(made).endswith("∂f/∂v is right") and made.score == pytest.approx(1 / 3)


def test_an_answer_that_raises_says_so():
    def raises(x, y):
        return undefined_name  # noqa: F821

    assert "∂f/∂x is undecided: the function raised NameError" in repr(grade(F, (x, y), gradient=raises))


def rnn(W, U, X):
    return np.sum(symad.functions.scan(lambda h, x: np.tanh(W @ h + U @ x), np.zeros(3), X) ** 2)


def backwards(W, U, X, carry):
    """Backpropagation through time by hand; ``carry`` 0 forgets what comes back from the next step."""
    h = [np.zeros(3)]
    for x in X:
        h.append(np.tanh(W @ h[-1] + U @ x))
    bars, h_bar = (np.zeros_like(W), np.zeros_like(U), np.zeros_like(X)), np.zeros(3)
    for t in reversed(range(len(X))):
        z_bar = (1 - h[t + 1] ** 2) * (2 * h[t + 1] + carry * h_bar)
        bars[0][:] += np.outer(z_bar, h[t])
        bars[1][:] += np.outer(z_bar, X[t])
        bars[2][t] = U.T @ z_bar
        h_bar = W.T @ z_bar
    return bars


@pytest.mark.thorough
def test_backpropagation_without_the_carry_is_named():
    graph = symad.trace(rnn, [(3, 3), (3, 2), (4, 2)])
    assert grade(graph, gradient=lambda W, U, X: backwards(W, U, X, 1)).right
    made = grade(graph, gradient=lambda W, U, X: backwards(W, U, X, 0))
    assert "the carry to the step before is missing" in " ".join(repr(made).split())
    assert all("carry" in entry.blame.mistake for entry in made.entries)
    assert "computed_in" not in repr(made) and "explain" in made.hint(2)


@pytest.mark.parametrize(("f", "answer", "exact"), [(x / 3, 0.333, "1/3"), (x * sp.log(2), 0.6931, "log(2)")])
def test_a_rounded_constant_is_named(f, answer, exact):
    told = repr(grade(f, x, gradient=answer))
    assert f"{answer} is a rounded constant, in place of {exact}" in told
    assert "rounded" not in repr(grade(f, x, gradient=answer + 0.01))


def test_answers_of_the_wrong_length_name_what_is_asked():
    for answer in (lambda x, y: (y,), lambda x, y: np.array([y])):
        told = repr(grade(F, (x, y), gradient=answer))
        assert told.endswith("in place of 2 outputs: ∂f/∂x, ∂f/∂y") and "verify" not in told
    told = repr(grade(F, (x, y), gradient=[y]))
    assert told.startswith("not an answer: the gradient has 2 parts (by x, by y), but the answer has 1; give")


def test_answers_that_read_as_a_student_wrote_them():
    """A function that calls SymPy's cos gives SymPy's numbers; what `verify` alone has is not told."""
    g = sp.sin(x * y)
    assert grade(g, (x, y), gradient=lambda x, y: (y * sp.cos(x * y), x * sp.cos(x * y))).right
    assert repr(grade(g, (x, y), gradient=lambda x: x)).endswith(
        "is called with (x, y), the inputs in their order"
    )
    told = repr(grade(g, (x, y), hessian=[[1, 2]]))
    assert told == "not an answer: the Hessian has shape (2, 2), but the answer (1, 2)"


def test_no_answers():
    assert repr(grade(F, (x, y), gradient=None)) == "no answer yet"
    assert repr(grade(F, (x, y), gradient="y**2, 2*x*y")).startswith("not an answer: text")
    assert repr(grade(F, (x, y), gradient=[y**2])).startswith("not an answer")
