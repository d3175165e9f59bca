"""Autoencoders: the linear one is PCA, proved for small sizes with symbols; deep ones against torch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import symad
from symad.models.generative.autoencoder import Autoencoder, LinearAutoencoder
from symad.numeric import lower

N = sp.Symbol("N", integer=True, positive=True)


def proved(left: object, right: object) -> bool:
    certificate = symad.equal(left, right)
    assert certificate.status == "proved", str(certificate)
    return True


def loss_of_moments(encoder: sp.Matrix, decoder: sp.Matrix, covariance: sp.Matrix) -> sp.Expr:
    """½ E|x − W_d W_e x|² = ½ tr((I − A) C (I − A)ᵀ), A = W_d W_e, for data with E x xᵀ = C."""
    rest = sp.eye(covariance.shape[0]) - decoder * encoder
    return sp.Trace(rest * covariance * rest.T).doit() / 2


def axes(n: int, k: int) -> tuple[sp.Matrix, sp.Matrix]:
    """Any k orthonormal columns W of n, and those left: a rotation (Cayley), rational in its parameters."""
    s = sp.zeros(n, n)
    for i, j in itertools.combinations(range(n), 2):
        s[i, j] = sp.Symbol(f"s{i}{j}", real=True)
        s[j, i] = -s[i, j]
    q = ((sp.eye(n) - s) * (sp.eye(n) + s).inv()).applyfunc(sp.cancel)
    return q[:, :k], q[:, k:]


def test_the_loss_is_that_of_the_moments() -> None:
    model = LinearAutoencoder(2, 1)
    w, v = sp.Matrix(1, 2, sp.symbols("w1 w2", real=True)), sp.Matrix(2, 1, sp.symbols("v1 v2", real=True))
    x = sp.Matrix(3, 2, sp.symbols("x0:6", real=True))
    graph = symad.to_sympy(model.graph(3))
    given = dict(zip([s for s in model.graph(3).inputs], (w, v, x), strict=True))
    written = sp.sympify(graph).subs({k: sp.ImmutableDenseMatrix(a) for k, a in given.items()}).doit()
    assert proved(written, loss_of_moments(w, v, x.T * x / 3))


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (3, 2)])
def test_the_linear_autoencoder_is_pca(n: int, k: int) -> None:
    """In the axes of C = diag(λ_1 ≥ ... ≥ λ_n), for every orthonormal decoder W and every encoder E,

        2 loss = Σ_{j>k} λ_j + |(E − Wᵀ) C^½|² + Σ_{i≤k} (λ_i − λ_k) l_i² + Σ_{j>k} (λ_k − λ_j) (1 − l_j²),

    l_i the lengths of the rows of the n − k directions that W leaves out, at most 1: so no code of width k
    does better than the first k principal components, which reach Σ_{j>k} λ_j. A decoder W R that is not
    orthonormal, with the encoder E, is the decoder W with the encoder R E.
    """
    rates = sp.symbols(f"lambda1:{n + 1}", positive=True)
    covariance = sp.diag(*rates)
    w, left = axes(n, k)
    e = sp.Matrix(k, n, sp.symbols(f"e0:{k * n}", real=True))
    # completing the square in the encoder, Wᵀ W = I
    rest = e - w.T
    square = sp.Trace(rest * covariance * rest.T).doit()
    lost = sp.Trace(left.T * covariance * left).doit()  # the variance in the directions left out
    assert proved(2 * loss_of_moments(e, w, covariance), square + lost)
    least = sum(rates[k:])
    split = sum((rates[i] - rates[k - 1]) * (left.row(i) * left.row(i).T)[0] for i in range(k))
    split += sum((rates[k - 1] - rates[j]) * (1 - (left.row(j) * left.row(j).T)[0]) for j in range(k, n))
    assert proved(lost, least + split)
    for j in range(n):  # l_j² = 1 − |w_j|² for the rows of a rotation
        assert proved((left.row(j) * left.row(j).T)[0] + (w.row(j) * w.row(j).T)[0], sp.Integer(1))


@pytest.mark.thorough
@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 2)])
def test_the_gradient_vanishes_at_the_principal_axes(n: int, k: int) -> None:
    """By symad, for C = Q diag(λ) Qᵀ: W_e = Q_kᵀ, W_d = Q_k are stationary. Any Q for n = 2, one for 3."""
    rates = sp.symbols(f"lambda1:{n + 1}", positive=True)
    kept, rest = axes(n, k)
    if n == 3:
        turn = {sp.Symbol(f"s{i}", real=True): sp.Rational(1, 2 + int(i)) for i in ("01", "02", "12")}
        kept, rest = kept.subs(turn), rest.subs(turn)
    q = kept.row_join(rest)
    covariance = (q * sp.diag(*rates) * q.T).applyfunc(sp.cancel)
    e, d = sp.Matrix(k, n, sp.symbols(f"e0:{k * n}")), sp.Matrix(n, k, sp.symbols(f"d0:{k * n}"))
    symbols = [*e, *d]
    slopes = symad.to_sympy(symad.gradient(loss_of_moments(e, d, covariance), symbols))
    best = dict(zip(symbols, [*kept.T, *kept], strict=True))
    for slope in slopes:
        assert sp.cancel(slope.subs(best)) == 0
    value = loss_of_moments(kept.T, kept, covariance)
    assert proved(sp.cancel(value), sum(rates[k:]) / 2)


def test_its_best_loss_is_scikit_learns() -> None:
    x = load_digits().data[:300] / 16
    x = x - x.mean(axis=0)
    pca = PCA(5).fit(x)
    model = LinearAutoencoder(64, 5)
    loss = model.loss({"W_e": pca.components_, "W_d": pca.components_.T}, x)
    assert loss == pytest.approx(((x - pca.inverse_transform(pca.transform(x))) ** 2).sum() / 600, rel=1e-12)


def test_a_code_as_wide_as_the_data_loses_nothing() -> None:
    """Over-complete: any W_e with a left inverse W_d."""
    rng = np.random.default_rng(0)
    encoder, x = rng.normal(size=(5, 3)), rng.normal(size=(7, 3))
    p = {"W_e": encoder, "W_d": np.linalg.pinv(encoder)}
    assert LinearAutoencoder(3, 5).loss(p, x) == pytest.approx(0, abs=1e-25)


@pytest.mark.thorough
def test_derivatives_are_certified() -> None:
    assert symad.check(LinearAutoencoder(2, 1).graph(1)).status == "proved"
    assert symad.check(Autoencoder((1, 1, 1)).graph(1)).status in ("proved", "tested")


def test_deep_loss_and_gradients_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    model = Autoencoder((6, 5, 4, 2))
    rng = np.random.default_rng(0)
    p = {n: a + 0.1 * rng.normal(size=a.shape) for n, a in model.init(0).items()}
    x = rng.normal(size=(8, 6))
    value, *slopes = lower(symad.value_and_gradient(model.graph(N), list(p)))(*p.values(), x)
    tensors = {n: torch.tensor(a, requires_grad=True) for n, a in p.items()}
    made = torch.tensor(x)
    for side in "ed":
        for k in (1, 2):
            made = torch.tanh(made @ tensors[f"{side}_W{k}"] + tensors[f"{side}_b{k}"])
        made = made @ tensors[f"{side}_W3"]
    expected = ((torch.tensor(x) - made) ** 2).sum() / 16
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=1e-12)
    for ours, theirs in zip(slopes, tensors.values(), strict=True):
        np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-10, atol=1e-14)
