"""Mistakes in backward passes of classic layers are refuted and have names, as programs and as formulas.

The layers and their mistakes are in `backward_passes`. A name must never be wrong: the words expected here
say what was changed, and changes that are none of the mistakes known must get no name.
"""

import inspect
import re

import numpy as np
import pytest

import symad
from symad.verification.certificate.certificate import Certificate
from tests.verification.programs.backward_passes import LAYERS

MEAN = "a mean of {} elements in place of their sum?"
SUM = "a sum of 3 elements in place of their mean?"
DIAGONAL = "only its diagonal p (1 − p) is there"
AXIS = "wrong axis: Σ p p_bar along axis 0, not 1"

NAMES = {
    ("dense", "mean"): {"W_bar": f"missing factor 3 ({MEAN.format(3)})"},
    ("dense", "mean of bias"): {"b_bar": f"missing factor 3 ({MEAN.format(3)})"},
    ("dense", "first row"): {"b_bar": "y_bar: only the first of 3 counts along axis 0"},
    ("square dense", "transpose"): {"x_bar": "`W` is transposed"},
    ("square dense", "transposed"): {"W_bar": "transposed"},
    ("square dense", "other operand"): {"W_bar": "`W` stands in place of `x`"},
    ("hidden", "before tanh"): {"V_bar": "`x` · `W` stands in place of `h`"},
    ("hidden", "no slope"): {"x_bar W_bar": "the derivative of tanh is missing"},
    ("hidden", "slope at the value"): {"x_bar W_bar": "tanh is taken at its value instead of its argument"},
    ("hidden", "slope of the argument"): {"x_bar W_bar": "tanh has the argument in place of the value"},
    ("hidden", "not squared"): {"x_bar W_bar": "tanh is 1 − y in place of 1 − y²"},
    ("bilinear", "transposed"): {"A_bar": "transposed"},
    ("bilinear", "transpose"): {"y_bar": "`A` is transposed"},
    ("bilinear", "dy"): {"A_bar": "y_bar is ignored"},
    ("gelu", "cube"): {"x_bar": "missing factor 3 of the path through `x^3`"},
    ("gelu", "product rule"): {"x_bar": "the path through `t` is missing"},
    ("gelu", "first term"): {"x_bar": "the path through `0.5 x` is missing"},
    ("silu", "product rule"): {"x_bar": "the path through `sigmoid(x)` is missing"},
    ("silu", "first term"): {"x_bar": "the path from `x` to `x sigmoid(x)` is missing"},
    ("logistic", "no slope"): {"x_bar w_bar": "the derivative of sigmoid is missing"},
    ("logistic", "half"): {"x_bar w_bar": "the derivative of sigmoid is y in place of y (1 − y)"},
    ("logistic", "at the value"): {"x_bar w_bar": "sigmoid is taken at its value instead of its argument"},
    ("relu", "no mask"): {"x_bar W_bar": "the derivative of `Max(z, 0)` is 1 everywhere"},
    ("relu", "inverted"): {"x_bar W_bar": "the condition of `Max(z, 0)` is inverted"},
    ("relu", "value"): {"x_bar W_bar": "extra factor `z`"},
    ("leaky", "relu"): {"x_bar": "the path through `0.1 x` is missing"},
    ("leaky", "linear"): {"x_bar": "missing factor 1/10 of the path through `0.1 x`"},
    ("dropout", "no mask"): {"x_bar": "missing factor `mask`"},
    ("dropout", "no scale"): {"x_bar": "missing factor 5/4"},
    ("layer norm", "epsilon"): {"x_bar gamma_bar": "1e-05 is forgotten"},
    ("layer norm", "gamma"): {"x_bar": "missing factor `gamma`"},
    ("layer norm", "sign"): {"x_bar": "wrong sign of the path through `var`"},
    ("layer norm", "scale"): {"x_bar": "extra factor `√(var + 1e-05)`"},
    ("layer norm", "input"): {"gamma_bar": "`x` stands in place of `normed`"},
    ("layer norm", "mean"): {"x_bar": "the path through the mean of `x` is missing"},
    ("layer norm", "statistics"): {"x_bar": "the paths through `var` and the mean of `x` are missing"},
    ("layer norm", "variance"): {"x_bar": "the path through `var` is missing"},
    ("batch norm", "statistics"): {"x_bar": "the paths through `var` and `mean` are missing"},
    ("batch norm", "n - 1"): {"x_bar": "missing factor 3/4 of the path through `mean`"},
    ("batch norm", "variance"): {"x_bar": "the path through `var` is missing"},
    ("batch norm", "mean"): {"gamma_bar": f"missing factor 4 ({MEAN.format(4)})"},
    ("RMS norm", "statistics"): {"x_bar": "the path through `rms` is missing"},
    ("RMS norm", "sum"): {"x_bar": f"missing factor 1/3 of the path through `rms` ({SUM})"},
    ("softmax", "sum"): {"x_bar": "the path through `Σ e` is missing"},
    ("softmax", "logistic"): {"x_bar": f"in the derivative of the softmax `e / Σ e`: {DIAGONAL}"},
    ("softmax", "axis"): {"x_bar": f"in the derivative of the softmax `e / Σ e`: {AXIS}"},
    ("named softmax", "sum"): {"x_bar": "the path through `Σ exp(x)` is missing"},
    ("named softmax", "logistic"): {"x_bar": DIAGONAL},
    ("named softmax", "axis"): {"x_bar": AXIS},
    ("cross-entropy", "mean"): {"x_bar": f"missing factor 1/3 ({SUM})"},
    ("cross-entropy", "sign"): {"x_bar": "wrong sign"},
    ("cross-entropy", "dy"): {"x_bar": "y_bar is ignored"},
    ("log-sum-exp", "not divided"): {"x_bar": "the derivative of log is missing"},
    ("log-sum-exp", "dy"): {"x_bar": "y_bar is ignored"},
    ("attention", "sum"): {"Q_bar K_bar": "the path through `Σ exp(S)` is missing"},
    ("attention", "scale"): {"Q_bar K_bar": "missing factor √(1/2)"},
    ("attention", "transpose"): {"K_bar": "the path through `S`: transposed"},
    ("attention", "P"): {"V_bar": "`P` is transposed"},
    ("causal attention", "mask"): {"Q_bar K_bar V_bar": "a mask is not applied"},
    ("squared error", "two"): {"x_bar w_bar y_bar": "missing factor 2"},
    ("squared error", "sign"): {"y_bar": "wrong sign"},
    ("squared error", "sum"): {"x_bar w_bar y_bar": f"missing factor 1/3 ({SUM})"},
    ("LSTM", "tanh"): {"W_bar x_bar h_bar c_bar": "the derivative of tanh is missing"},
    ("LSTM", "cell"): {"W_bar x_bar h_bar c_bar": "the path through y2_bar is missing"},
    ("LSTM", "hidden"): {"W_bar x_bar h_bar": "the path through `tanh(c_new)` is missing"},
    ("LSTM", "new cell"): {"W_bar x_bar h_bar": "`c_new` stands in place of `c`"},
    ("LSTM", "forget"): {"W_bar x_bar h_bar": "the path through `sigmoid(z[1, :])` is missing"},
    ("LSTM", "o"): {"W_bar x_bar h_bar": "`c_new` stands in place of `tanh(c_new)`"},
    ("LSTM", "f"): {"c_bar": "missing factor `sigmoid(z[1, :])`"},
    ("GRU", "gate"): {"W_bar U_bar x_bar h_bar": "missing factor `exp(− z)` of the path through `m`"},
    ("GRU", "candidate"): {"W_bar U_bar x_bar h_bar": "`sigmoid(z)` in `1 − sigmoid(z)` is missing"},
    ("GRU", "reset"): {"W_bar U_bar x_bar h_bar": "through `sigmoid(a[0, :] + b[0, :])` is missing"},
    ("GRU", "direct"): {"h_bar": "the path from `h` to `sigmoid(z) h` is missing"},
    ("RNN", "slope"): {"W_bar U_bar x_bar h_bar": "the derivative of tanh is missing"},
    ("RNN", "new state"): {"W_bar": "in each of 3 steps"},
    ("RNN", "overwritten"): {"W_bar": "only the path from `W` to `W · h` counts, of 3 that are added"},
    ("RNN", "truncated"): {"W_bar U_bar": "U · x[1, :]` is missing", "h_bar": "it should not be zero"},
    ("RNN", "transpose"): {"W_bar U_bar x_bar h_bar": "`W` is transposed, in each of 3 places"},
    ("convolution", "kernel"): {"x_bar": "`w` is reversed"},
    ("convolution", "reversed"): {"w_bar": "reversed"},
    ("average pool", "count"): {"x_bar": "missing factor 1/2"},
    ("max pool", "all"): {"x_bar": "every element counts in `max x`, not the largest alone"},
    ("max pool", "mean"): {"x_bar": "`max x` is differentiated as a mean"},
    ("embedding", "overwritten"): {"table_bar": "rows of `table` that are read several times count once"},
    ("residual", "identity"): {"x_bar": "the path from `x` to `x + inner` is missing"},
    ("residual", "branch"): {"x_bar": "the path from `x` to `x` · `W` is missing"},
    ("residual", "twice"): {"x_bar": "missing factor 1/2 of the path from `x` to `x + inner`"},
    ("solve", "transpose"): {"A_bar b_bar": "`A` is transposed"},
    ("solve", "outer"): {"A_bar": "transposed"},
    ("solve", "sign"): {"A_bar": "wrong sign"},
    ("inverse", "transpose"): {"A_bar": "`A` is transposed"},
    ("log det", "transpose"): {"A_bar": "transposed"},
    ("log det", "dy"): {"A_bar": "y_bar is ignored"},
    ("Cholesky", "diagonal"): {"A_bar": "Φ does not halve the diagonal"},
    ("Cholesky", "one half"): {"A_bar": "S = L⁻ᵀ Φ L⁻¹ without its transpose"},
    ("Cholesky", "both"): {"A_bar": "the sum with its transpose instead of one half of it"},
    ("Cholesky", "symmetrized"): {"A_bar": "symmetrized"},
    ("quadratic form", "symmetric"): {"x_bar": "the path from `x` to `A` · `x` counts twice"},
    ("quadratic form", "one path"): {"x_bar": "the path from `x` to `x` · `A` · `x` is missing"},
}  # fmt: skip
"""For each mistake words in the names that the certificate gives for the wrong outputs."""

QUICK = [
    *(("gelu", m) for m in ("cube", "product rule", "first term")),
    *(("logistic", m) for m in ("no slope", "half", "at the value")),
    *((name, m) for name, m in NAMES if name in ("silu", "relu", "leaky", "softmax", "named softmax")),
    *((name, m) for name, m in NAMES if name in ("log-sum-exp", "Cholesky", "max pool", "embedding")),
    ("dropout", "no mask"), ("dropout", "no scale"),
    ("causal attention", "mask"), ("squared error", "two"), ("LSTM", "tanh"), ("LSTM", "hidden"),
    ("GRU", "gate"), ("GRU", "candidate"), ("GRU", "reset"), ("RNN", "slope"), ("RNN", "transpose"),
    ("average pool", "count"), ("solve", "transpose"), ("inverse", "transpose"), ("log det", "transpose"),
    ("convolution", "kernel"), ("layer norm", "statistics"),
]  # fmt: skip


def program(layer, mistake):
    """The backward pass with a mistake, as a function of the inputs and of y_bar."""

    def backward(*values):
        return layer.backward(*values, mistake)

    parameters = list(inspect.signature(layer.backward).parameters.values())
    backward.__signature__ = inspect.Signature(parameters[:-1])
    return backward


def verified(name, mistake, formula=False) -> Certificate:
    layer = LAYERS[name]
    f = symad.trace(layer.forward, layer.shapes)
    backward = program(layer, mistake)
    if formula:
        shapes = [*layer.shapes, *(tuple(y.shape) for y in f.output_nodes)]
        backward = symad.trace(lambda *values: layer.backward(*values, mistake), shapes)
    wrt = [f.inputs[k] for k in layer.wrt] or list(f.inputs)
    return symad.verify(f, wrt, vjp=backward, hostile=False)


def names_in(certificate):
    return {e.name: e.blame.mistake if e.blame else "" for e in certificate.entries_of("refuted")}


def expected(case):
    return {output: words for outputs, words in NAMES[case].items() for output in outputs.split()}


def assert_named(case, certificate):
    assert certificate.status == "refuted"
    found = names_in(certificate)
    for output, words in expected(case).items():
        assert words in found[output], str(certificate)


@pytest.mark.sample(15)
@pytest.mark.parametrize("case", QUICK, ids=", ".join)
def test_a_mistake_in_a_program_is_named(case):
    assert_named(case, verified(*case))


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in NAMES if c not in QUICK], ids=", ".join)
def test_any_mistake_in_a_program_is_named(case):
    assert_named(case, verified(*case))


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in NAMES if c[0] != "embedding"], ids=", ".join)
def test_any_mistake_in_a_formula_is_named(case):
    certificate = verified(*case, formula=True)
    found = names_in(certificate)
    assert certificate.status == "refuted" and all(found.values()), str(certificate)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_a_right_backward_pass_is_not_refuted(name):
    assert verified(name, "").status == "measured"


RECHECKED = [("solve", "transpose"), ("RNN", "slope"), ("silu", "first term")]


@pytest.mark.thorough
@pytest.mark.parametrize("case", RECHECKED, ids=", ".join)
def test_a_certificate_that_is_rechecked_has_the_names(case):
    """They are found again: what a file says about a refuted entry is not believed."""
    certificate = verified(*case, formula=True)
    again = Certificate.from_json(certificate.to_json()).recheck()
    assert_named(case, again)
    assert names_in(again) == names_in(certificate)


def test_the_certificate_shows_the_name():
    certificate = verified("gelu", "product rule")
    assert "the path through `t` is missing" in repr(certificate)
    assert re.search(r"x_bar(\[\d+\])? is wrong: the path through `t` is missing", str(certificate))
    (entry,) = symad.Certificate.from_json(certificate.to_json()).entries
    assert entry.blame.mistake == "the path through `t` is missing"


def hidden(x, W):
    h = np.tanh(x @ W)
    return h * h


NAMELESS = {
    "a term of its own": lambda x, W, z, d: d + 0.01 * np.sin(x @ W),
    "another power": lambda x, W, z, d: np.abs(d) ** 1.01,
    "one element": lambda x, W, z, d: d * (1 + 1e-3 * (np.arange(3) == 1)),
    "a factor that is no number of the formula": lambda x, W, z, d: d * 1.0173,
    "a function of the argument": lambda x, W, z, d: d * np.cos(z / 9),
    "noise": lambda x, W, z, d: d * (1 + 1e-4 * np.sin(1e4 * z)),
}


@pytest.mark.parametrize("change", NAMELESS)
def test_a_change_that_is_no_known_mistake_gets_no_name(change):
    f = symad.trace(hidden, [(2, 3), (3, 3)])

    def backward(x, W, dy):
        z = x @ W
        d = NAMELESS[change](x, W, z, 2 * dy * np.tanh(z) * (1 - np.tanh(z) ** 2))
        return d @ W.T, x.T @ d

    certificate = symad.verify(f, ["x", "W"], vjp=backward, hostile=False)
    assert certificate.status == "refuted"
    assert not any(names_in(certificate).values()), str(certificate)


def test_tangent_programs_have_names_too():
    f = symad.trace(hidden, [(2, 3), (3, 3)])

    def pushed(x, W, x_dot, W_dot, mistake):
        h = np.tanh(x @ W)
        slope = 1 if mistake == "slope" else 1 - h**2
        return 2 * h * slope * (x_dot @ W + (0 if mistake == "path" else x @ W_dot))

    expected_words = {"slope": "the derivative of tanh is missing", "path": "through W_dot is missing"}
    for mistake, words in expected_words.items():
        wrong = symad.verify(f, ["x", "W"], jvp=lambda *v, m=mistake: pushed(*v, m), hostile=False)
        assert words in names_in(wrong)["y_dot"]


def test_a_gradient_has_names_too():
    f = symad.trace(lambda x, y: np.mean((np.tanh(x) - y) ** 2), [(3,), (3,)])

    def wrong(x, y):
        return 2 * (np.tanh(x) - y) / 3

    for candidate in (wrong, symad.trace(wrong, [(3,), (3,)])):
        certificate = symad.verify(f, "x", gradient=candidate, hostile=False)
        assert names_in(certificate) == {"∂f/∂x": "the derivative of tanh is missing"}


def test_a_rounded_constant_is_no_missing_factor():
    """3 · 0.044715 as a float is not three times 0.044715 as a float."""
    certificate = verified("gelu", "", formula=True)
    assert certificate.status == "refuted"
    assert not any("factor" in name for name in names_in(certificate).values())


def test_names_of_jacobians_and_hessians_are_kept():
    """Whole matrices that are transposed, or have another sign, are named again when they are rechecked."""
    vector = symad.trace(lambda a: np.tanh(a) * a.sum(), [(3,)])
    turned = symad.trace(lambda a: (np.diag((1 - np.tanh(a) ** 2) * a.sum()) + np.tanh(a)[:, None]).T, [(3,)])
    cubes = symad.trace(lambda a: (a**3).sum(), [(3,)])
    negative = symad.trace(lambda a: np.diag(-6 * a), [(3,)])
    for certificate, name in (
        (symad.verify(vector, "a", jacobian=turned), "transposed"),
        (symad.verify(cubes, "a", hessian=negative), "wrong sign"),
    ):
        for each in (certificate, symad.Certificate.from_json(certificate.to_json()).recheck()):
            refuted = [e for e in each.entries if e.status == "refuted"]
            assert refuted and {e.blame.mistake for e in refuted} == {name}
