"""Derivative rules of users: wrong on a part of the domain, at any depth, or only for second derivatives."""

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions

x, y, z = sp.symbols("x y z", real=True)
n = sp.Symbol("n", integer=True, positive=True)


def user(values, *slopes, names="x"):
    """A function of a user with values of many digits, and slopes as formulas."""
    arguments = sp.symbols(names, real=True, seq=True)

    def at(formula, args):
        return sp.Add(formula, 0).subs(dict(zip(arguments, args, strict=True)), simultaneous=True)

    def fdiff(self, argindex=1):
        return at(slopes[argindex - 1], self.args)

    def evalf(self, prec):
        return at(values, self.args)._eval_evalf(prec)

    return type("given", (sp.Function,), {"fdiff": fdiff, "_eval_evalf": evalf, "__module__": __name__})


def of_gradient(f):
    """Symad's own gradient as a candidate."""
    return symad.verify(f, gradient=symad.gradient(f))


def off(condition):
    return sp.Piecewise((1, condition), (0, True))


PARTS = {
    "above the diagonal": user(x**2 * y, 2 * x * y + off(x > y), x**2, names="x y")(x, y),
    "signs that differ": user(x**2 * y, 2 * x * y + off(x * y < -1), x**2, names="x y")(x, y),
    "far from the diagonal": user(x**2 * y, 2 * x * y, x**2 + off(sp.Abs(x - y) > 1), names="x y")(x, y),
    "the third argument below": user(x * y * z, y * z + off(x > z), x * z, x * y, names="x y z")(x, y, z),
    "a short interval": user(x**3, 3 * x**2 + off((x > 1) & (x < 1.2)))(x),
    "close to 0": user(x**3, 3 * x**2 + off(sp.Abs(x) < 0.01))(x),
    "a narrow peak": user(x**3, 3 * x**2 + sp.exp(-1000 * (x - 6) ** 2))(x),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PARTS)
def test_a_rule_that_is_wrong_on_a_part_of_the_domain_is_refuted(name):
    assert of_gradient(PARTS[name]).status == "refuted"


@pytest.mark.thorough
def test_rules_that_turn_are_not_refuted_for_it():
    both = user(sp.Abs(x) ** 3, sp.Piecewise((3 * x**2, x > 0), (-3 * x**2, x < 0), (5, True)))
    assert "given the rule of given (sampled at" in repr(of_gradient(both(x)))
    right = user(x**2 * y, 2 * x * y, x**2, names="x y")
    made = of_gradient(right(x, y))
    assert made.status == "measured" and len(made.entries_of("proved")) == 2


@pytest.mark.thorough
def test_second_derivatives_use_the_rules_of_first_ones():
    first = user(x**2, user(2 * x, 3)(x))  # 2x is right, its slope is not 3
    assert symad.verify(first(x), x, gradient=2 * first(x) / x).status != "refuted"
    hessian = symad.verify(first(x), x, hessian=sp.Matrix([[3]]))
    assert [e.name for e in hessian.entries_of("refuted")] == ["the derivative of given"]
    assert symad.check(first(x)).status == "refuted"
    made = symad.check(user(x**2, user(2 * x, 2)(x))(x))
    assert made.status == "measured" and all(
        e.status == "proved" or e.name.startswith("the derivative of") for e in made.entries
    )


WRONG = symad.register_function("wrong_cube", lambda t: t**3, [lambda t: 2 * t**2], mpmath=lambda t: t**3)


def step(c, v):
    return WRONG(c) + v


INSIDE = {
    "the step of a scan": symad.trace(lambda h, u: functions.scan(step, h, u)[-1], [(), (3,)]),
    "the step of a fold": symad.trace(lambda h, u: functions.fold(step, h, u), [(), (n,)]),
    "what is computed again": symad.trace(lambda u: np.sum(functions.remat(WRONG)(u)), [(2,)]),
    "a score": symad.trace(
        lambda q, k, v: np.sum(functions.attention(q, k, v, score=lambda s, *rest: WRONG(s))), [(1, 1)] * 3
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_functions_in_loops_and_fused_ops_have_rules_too(name):
    certificate = of_gradient(INSIDE[name])
    assert [e.name for e in certificate.entries_of("refuted")] == ["the derivative of wrong_cube"]
    assert "the derivative of wrong_cube as its author defines it" in certificate.assumes


FLOATS = {  # NumPy's functions take no numbers of many digits
    "twice": (np.exp, lambda t: 2 * sp.exp(t), "refuted"),
    "beyond 3": (np.exp, lambda t: sp.exp(t) * (1 + sp.Piecewise((1, t > 3), (0, True))), "refuted"),
    "|t| with 1": (np.abs, lambda t: 1 + 0 * t, "refuted"),
    "steps with 1": (np.round, lambda t: 1 + 0 * t, "refuted"),
    "exp": (np.exp, lambda t: sp.exp(t), "measured"),
    "|t|": (np.abs, lambda t: sp.sign(t), "measured"),
    "steps": (np.floor, lambda t: 0 * t, "measured"),
    "small beside large": (lambda t: 1e20 + t, lambda t: 1 + 0 * t, "measured"),
    "single precision": (lambda t: np.sin(t, dtype=np.float32), lambda t: sp.cos(t), "measured"),
    "half precision": (lambda t: np.asarray(np.sin(t)).astype("f2"), lambda t: sp.cos(t), "measured"),
    "a kink at a place that is tried": (
        lambda t: np.where(t > 0.7, t, 2 * t - 0.7),
        lambda t: sp.Piecewise((1, t > sp.Rational(7, 10)), (2, True)),
        "measured",
    ),
    "fast": (lambda t: np.sin(1e4 * t), lambda t: 10**4 * sp.cos(10**4 * t), "measured"),
}


@pytest.mark.parametrize("name", FLOATS)
def test_functions_of_floats_refute_rules_that_are_far_off(name):
    implementation, slope, status = FLOATS[name]
    made = symad.register_function("of_floats", implementation, [slope])
    assert of_gradient(made(x) * y).status == status


# ---- nothing establishes a rule that was sampled ---------------------------------------------------

OFF_SOMEWHERE = {
    "beyond 5000": lambda t: sp.cos(t) + sp.Piecewise((1, t > 5000), (0, True)),
    "in a window": lambda t: sp.cos(t) + sp.Piecewise((1, sp.And(t > 3.01, t < 3.02)), (0, True)),
    "close to 0": lambda t: sp.cos(t) + sp.Piecewise((1, sp.Abs(t) < 1e-4), (0, True)),
    "far below 0": lambda t: sp.cos(t) + sp.Piecewise((1, t < -(10**6)), (0, True)),
}


@pytest.mark.parametrize("name", OFF_SOMEWHERE)
def test_a_rule_that_is_wrong_somewhere_is_refuted(name):
    wrong = symad.register_function("off", np.sin, [OFF_SOMEWHERE[name]], mpmath=mpmath.sin)
    assert symad.check(wrong(x)).status == "refuted"


def test_an_implementation_that_contradicts_its_many_digits_is_refuted():
    wrong = symad.register_function("other", np.cos, [sp.cos], mpmath=mpmath.sin)
    made = symad.check(wrong(x))
    assert [e.name for e in made.entries_of("refuted")] == ["the implementation of other"]


def test_a_right_rule_is_named_in_the_headline():
    right = symad.register_function("fine", np.sin, [sp.cos], mpmath=mpmath.sin)
    made = symad.check(right(x) * y)
    assert made.status == "measured" and not made
    assert "MEASURED (proved, given the rule of fine (sampled at 200 points))" in repr(made)


@pytest.mark.thorough
@pytest.mark.parametrize("error", [KeyError, RuntimeError, RecursionError, NotImplementedError])
def test_a_function_that_raises_has_no_value_there(error):
    def table(sine, t):
        if np.any(np.asarray(t) > 1):
            raise error("nothing beyond 1")
        return sine(t)

    digits = symad.register_function("digits", np.sin, [sp.cos], mpmath=lambda t: table(mpmath.sin, t))
    floats = symad.register_function("floats", lambda t: table(np.sin, t), [sp.cos])
    for made in (digits(x) * y, floats(x) * y):
        assert symad.verify(made, gradient=[y * sp.cos(x), made / y]).status == "measured"
        assert symad.verify(made, gradient=[y * sp.sin(x), made / y]).status == "refuted"


def test_a_rule_with_a_condition_of_two_parts_is_read():
    """SymPy has no derivative of what such a condition becomes: the other references are taken."""
    parts = symad.register_function(
        "parts", np.sin, [lambda t: sp.Piecewise((sp.cos(t), sp.Or(t < 3, t > 4)), (0, True))], mpmath.sin
    )
    assert symad.check(parts(x)).status == "refuted"


@pytest.mark.thorough
@pytest.mark.parametrize("slope", [lambda u: 0.1 * (3 * u**2), lambda u: 0.3 * np.cos(0.3 * u)])
def test_floats_of_a_rule_are_exact_in_every_reference(slope):
    """SymPy rounds 0.1 · 3, so that its own derivative was taken for another one."""
    f = {0.1: lambda u: 0.1 * u**3, 0.3: lambda u: np.sin(0.3 * u)}[0.1 if slope(0.0) == 0 else 0.3]
    head = symad.register_function("with_floats", f, [slope])
    assert symad.check(head(3 * x) * y).status == "measured"
    assert symad.verify(head(x) * y, x, gradient=y * head(x).diff(x)).status == "measured"
    own = user(0.1 * x**3, 0.1 * (3 * x**2))
    assert symad.check(own(3 * x) * y).status in ("measured", "proved", "tested")


@pytest.mark.thorough
def test_steps_of_rounding_refute_no_rule():
    """1 + tanh u moves in steps of 2⁻⁵³ for u < −5, and u (1 + tanh u) is linear between two of them."""
    c, d = 0.797885, 0.044715

    def gate(u):
        return np.tanh(c * (u + d * u**3))

    gelu = symad.register_function(
        "gelu_of_floats", lambda u: 0.5 * u * (1 + gate(u)),
        [lambda u: 0.5 * (1 + gate(u)) + 0.5 * u * (1 - gate(u) ** 2) * c * (1 + 3 * d * u**2)])  # fmt: skip
    assert symad.check(gelu(x) * y).status == "measured"
