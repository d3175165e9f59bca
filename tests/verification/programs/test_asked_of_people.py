"""`verify` with vjp=, jvp=, where= and constants=; certificates from files without any."""

import json

import numpy as np
import pytest
import sympy as sp
from sympy import Max, Min, Rational, cos, exp, log, sin, sqrt, symbols

import symad
from symad.cli import main
from symad.errors import TraceError

x, y = symbols("x y", real=True)
p = symbols("p", positive=True)
F = [x**2 * y, sin(x * y)]


def layer(W, v):
    return np.tanh(W @ v)


LAYER = symad.trace(layer, [(3, 2), (2,)])


def by_hand(W, v, y_bar):
    s = y_bar * (1 - np.tanh(W @ v) ** 2)
    return np.outer(s, v), W.T @ s


# ---- products -----------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_backward_pass_of_a_vector_valued_function():
    assert symad.verify(LAYER, ["W", "v"], vjp=by_hand).status == "measured"
    wrong = symad.verify(LAYER, ["W", "v"], vjp=lambda W, v, d: (by_hand(W, v, d)[0], v * 0))
    assert wrong.status == "refuted"
    assert {e.name for e in wrong.entries_of("refuted")} == {"v_bar"}


@pytest.mark.thorough
def test_a_backward_pass_with_a_context():
    def backward(ctx, dy):
        return by_hand(*ctx.saved_tensors, dy)

    def half(ctx, dy):
        return [g / 2 for g in backward(ctx, dy)]

    assert symad.verify(LAYER, ["W", "v"], vjp=backward).status == "measured"
    assert symad.verify(LAYER, ["W", "v"], vjp=half).status == "refuted"
    only_v = symad.verify(LAYER, "v", vjp=lambda ctx, dy: (None, backward(ctx, dy)[1]))
    assert only_v.status == "measured"


def test_a_backward_pass_of_two_outputs():
    def vjp(x, y, a, b):
        return 2 * x * y * a + y * np.cos(x * y) * b, x * x * a + x * np.cos(x * y) * b

    assert symad.verify(F, [x, y], vjp=vjp).status == "measured"
    assert symad.verify(F, [x, y], vjp=lambda x, y, a, b: vjp(x, y, b, a)).status == "refuted"


def test_products_as_formulas():
    y1, y2 = symbols("y1_bar y2_bar", real=True)
    c = cos(x * y)
    right = [2 * x * y * y1 + y * c * y2, x**2 * y1 + x * c * y2]
    assert symad.verify(F, [x, y], vjp=right).status in ("proved", "tested")
    assert symad.verify(F, [x, y], vjp=right[::-1]).status == "refuted"
    u, v = symbols("x_dot y_dot", real=True)
    pushed = [2 * x * y * u + x**2 * v, c * (y * u + x * v)]
    assert symad.verify(F, [x, y], jvp=pushed).status in ("proved", "tested")
    assert symad.verify(F, [x, y], jvp=[pushed[0], c * y * u]).status == "refuted"


@pytest.mark.thorough
def test_a_tangent_program():
    def jvp(W, v, W_dot, v_dot):
        return (1 - np.tanh(W @ v) ** 2) * (W_dot @ v + W @ v_dot)

    assert symad.verify(LAYER, ["W", "v"], jvp=jvp).status == "measured"
    assert symad.verify(LAYER, ["W", "v"], jvp=lambda W, v, a, b: jvp(W, v, a, 0 * b)).status == "refuted"


# ---- where --------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_claim_inside_a_domain():
    """The derivative of a clipped rate is that of the rate inside the clip alone."""
    rate = Min(Max(x, Rational(1, 100)), 50)
    f = 3 * log(rate) - rate
    inside = 3 / x - 1
    assert symad.verify(f, x, gradient=inside).status == "refuted"
    domain = sp.And(x > Rational(1, 100), x < 50)
    held = symad.verify(f, x, gradient=inside, where=domain)
    assert held.status in ("proved", "tested"), str(held)
    assert any("the claim is made where" in note for note in held.notes)
    assert symad.verify(f, x, gradient=inside + 1, where=domain).status == "refuted"
    assert symad.verify(f, x, gradient=lambda v: 3 / v - 1, where=domain).status == "measured"
    assert symad.verify(f, x, gradient=lambda v: 3 / v - 1, hostile=False).status == "refuted"
    assert symad.verify(f, x, gradient=lambda v: 3 / v, where=domain).status == "refuted"


def test_a_domain_as_a_function_of_arrays():
    f = symad.trace(lambda v: np.sum(np.abs(v)), [(3,)])
    (v,) = f.inputs
    right = symad.verify(f, v, gradient=np.ones_like, where=lambda v: v > 0)
    assert right.status == "measured"
    assert symad.verify(f, v, gradient=np.ones_like).status == "refuted"


def test_a_domain_of_a_product_is_a_function_of_the_inputs_alone():
    f = symad.trace(np.log, [(3,)])
    right = symad.verify(f, "x", vjp=lambda x, dy: np.where(x > 50, 0, dy / x), where=lambda x: x < 50)
    assert right.status == "measured"
    wrong = symad.verify(f, "x", vjp=lambda x, dy: 2 * dy / x, where=lambda x: x < 50)
    assert wrong.entries[0].blame.mistake == "missing factor 1/2"
    formula = symad.trace(lambda x, dy: dy / x, [(3,), (3,)])
    assert symad.verify(f, "x", vjp=formula, where=lambda x: x < 50).status in ("proved", "tested")


def test_a_condition_on_something_else_is_an_error():
    with pytest.raises(TraceError, match="where= is about z, but the inputs are x"):
        symad.verify(x**2, x, gradient=2 * x, where=sp.Symbol("z", real=True) > 0)
    with pytest.raises(TraceError, match="is a SymPy condition or a function of the inputs, not 3"):
        symad.verify(x**2, x, gradient=2 * x, where=3)


# ---- rounded constants --------------------------------------------------------------------------


def test_guards_count_as_zero_where_constants_are_rounded():
    """A constant as small as 1e-20 is one in sums and bounds only, never a factor."""
    x = sp.Symbol("x", real=True)
    f, g = sp.log(x + 1e-20) + sp.Max(x, sp.Float(2.0**-52)) / 3, 1 / x + sp.Rational(1, 3)
    rounded = symad.verify(f, x, gradient=g, where=x > 0, constants="rounded")
    assert rounded.status in ("proved", "tested") and any("1e-20 as 0" in note for note in rounded.notes)
    assert symad.verify(f, x, gradient=g, where=x > 0).status == "refuted"
    assert symad.verify(1e-20 * x**2, x, gradient=3e-20 * x, constants="rounded").status == "refuted"


def test_rounded_constants_are_a_hint_and_an_option():
    f, g = p ** (1 / 3), (1 / 3) * p ** (-2 / 3)
    certificate = symad.verify(f, p, gradient=g)
    assert certificate.status == "refuted"
    assert certificate.entries[0].blame.mistake == "a rounded constant"
    assert 'constants="rounded"' in " ".join(str(certificate).split())
    rounded = symad.verify(f, p, gradient=g, constants="rounded")
    assert rounded.status == "proved"
    assert any("as 1/3" in note for note in rounded.notes)
    wrong = symad.verify(f, p, gradient=g * 1.000001, constants="rounded")
    assert wrong.status == "refuted"
    assert not any("rounded" in note for note in symad.verify(f, p, gradient=2 * g).notes)


@pytest.mark.thorough
def test_decimal_constants_are_a_hint_and_an_option():
    """The slope of GELU has 3 · 0.044715 as one float."""

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))

    def backward(x, y_bar, cube=3 * 0.044715):
        t = np.tanh(0.7978845608028654 * (x + 0.044715 * x**3))
        slope = 0.7978845608028654 * (1 + cube * x**2)
        return y_bar * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * slope)

    f = symad.trace(gelu, [(2,)])
    candidate = symad.trace(lambda x, y_bar: backward(x, y_bar), [(2,), (2,)])
    certificate = symad.verify(f, vjp=candidate)
    assert certificate.status == "refuted"
    assert any("0.134145 as 26829/200000" in note for note in certificate.notes)
    assert symad.verify(f, vjp=candidate, constants="rounded").status == "proved"
    for wrong in (0.134146, 0.134145 * (1 + 1e-12), 0.044715):
        candidate = symad.trace(lambda x, y_bar, c=wrong: backward(x, y_bar, c), [(2,), (2,)])
        assert symad.verify(f, vjp=candidate, constants="rounded").status == "refuted"


def test_constants_with_roots_and_pi():
    f = sqrt(2 / sp.pi) * exp(-(x**2))
    g = -2 * 0.7978845608028654 * x * exp(-(x**2))
    assert symad.verify(f, x, gradient=g, constants="rounded").status == "proved"
    assert (
        symad.verify(f, x, gradient=-2 * 0.7978 * x * exp(-(x**2)), constants="rounded").status == "refuted"
    )
    with pytest.raises(ValueError, match="exact"):
        symad.verify(f, x, gradient=g, constants="any")


# ---- kept certificates --------------------------------------------------------------------------


def test_a_file_without_certificates_is_an_error(tmp_path, capsys):
    path = tmp_path / "empty.json"
    path.write_text(json.dumps({"format": "symad certificates", "version": 1, "models": []}))
    assert main(["recheck", str(path)]) == 2
    assert "not a certificate" in "".join(capsys.readouterr())


def test_markup_in_the_name_of_a_model_is_text(tmp_path, capsys):
    kept = json.loads(symad.check(x**2).to_json())
    models = [{"name": "[/bold]a[red", "status": "proved", "certificate": kept}]
    path = tmp_path / "named.json"
    path.write_text(json.dumps({"format": "symad certificates", "version": 1, "models": models}))
    assert main(["recheck", str(path)]) == 0
    assert "[/bold]a[red" in capsys.readouterr().out


def test_what_was_only_assumed_stays_so_when_checked_again():
    class Silent(sp.Function):
        def fdiff(self, argindex=1):
            return 2 * self.args[0]

    certificate = symad.verify(Silent(x), x, gradient=2 * x)
    assert certificate.status == "measured"
    assert certificate.recheck().status == "measured"


@pytest.mark.parametrize("where", [x, x + 1, sp.Symbol("q"), 3])
def test_a_domain_is_a_condition(where):
    """SymPy counts symbols among the conditions; one is no domain of a claim about numbers."""
    with pytest.raises(TraceError, match="where= is a SymPy condition or a function of the inputs, not"):
        symad.verify(x**2, gradient=2 * x, where=where)
