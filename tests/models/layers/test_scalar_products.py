"""Scalar products: coordinates, functions, sentences, reproducing kernels, reconstruction up to rotation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

import symad
from symad.models.generative import kernels
from symad.models.layers import scalar_products as dot

RNG = np.random.default_rng(0)


def proved(left: object, right: object) -> bool:
    certificate = symad.equal(left, right)
    assert certificate.status == "proved", str(certificate)
    return True


def test_coordinates() -> None:
    a = RNG.normal(size=(4, 4))
    m = a @ a.T + 0.1 * np.eye(4)
    upper = dot.coordinates(m)
    assert np.array_equal(upper, np.triu(upper))
    assert np.allclose(upper.T @ upper, m, rtol=1e-13)
    assert np.array_equal(upper, np.linalg.cholesky(m).T)
    x, y = RNG.normal(size=(2, 4))
    assert dot.product(x, m, y) == pytest.approx((upper @ x) @ (upper @ y), rel=1e-12)


def test_coordinates_are_proved() -> None:
    """xᵀMy = (Lx)ᵀ(Ly), for all sizes, and the product is symmetric in 3 dimensions."""
    n = sp.Symbol("n", integer=True, positive=True)
    left = symad.trace(lambda x, L, y: dot.product(x, L.T @ L, y), [(n,), (n, n), (n,)])
    right = symad.trace(lambda x, L, y: (L @ x) @ (L @ y), [(n,), (n, n), (n,)])
    for size in (1, 2, 3):
        assert proved(left.at({n: size}), right.at({n: size}))


def test_gradients_of_a_product_are_certified() -> None:
    assert symad.check(symad.trace(dot.product, [(2,), (2, 2), (2,)])).status == "proved"


def test_what_is_no_scalar_product() -> None:
    with pytest.raises(symad.errors.SymadError, match=r"smallest eigenvalue is -1.000e\+00.*jitter"):
        dot.coordinates([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(symad.errors.SymadError, match="M and Mᵀ differ by 1"):
        dot.coordinates([[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(symad.errors.ShapeError, match=r"\(2, 3\)"):
        dot.coordinates(np.ones((2, 3)))


@pytest.mark.thorough
def test_functions() -> None:
    """Legendre's polynomials are orthogonal with squares 2/(2n + 1); sines on [0, π] with π/2."""
    t = sp.Symbol("t", real=True)
    for n, m in itertools.product(range(4), repeat=2):
        expected = sp.Rational(2, 2 * n + 1) if n == m else 0
        assert dot.of_functions(sp.legendre(n, t), sp.legendre(m, t), t, -1, 1) == expected
    assert dot.of_functions(sp.sin(t), sp.sin(2 * t), t, 0, sp.pi) == 0
    assert dot.of_functions(sp.sin(2 * t), sp.sin(2 * t), t, 0, sp.pi) == sp.pi / 2


# ---- kernel matrices ------------------------------------------------------------------------------


def test_sentences() -> None:
    """The product of sentences is that of the weighted sums of their words' features."""
    words = RNG.normal(size=(5, 3))
    alpha, beta = RNG.normal(size=(2, 5))
    gram = kernels.gram(kernels.inner, words)
    assert dot.of_sentences(alpha, gram, beta) == pytest.approx((alpha @ words) @ (beta @ words), rel=1e-12)
    one_hot = kernels.gram(kernels.inner, np.eye(4)[[0, 1, 1, 3]])
    same = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    assert np.array_equal(one_hot, same)
    assert np.linalg.matrix_rank(one_hot) == 3  # a repeated word makes it singular,
    assert kernels.reconstruct(one_hot).shape == (4, 3)  # which the reconstruction survives


def test_the_economy_of_the_kernel_trick() -> None:
    """Proteins by their strings of four: 20⁴ features each, or a number for each pair."""
    letters = "ACDEFGHIKLMNPQRSTVWY"
    words = ["".join(RNG.choice(list(letters), 60)) for _ in range(8)]
    words[1] = words[0][5:] + words[0][:5]  # a relative
    places = {"".join(s): k for k, s in enumerate(itertools.product(letters, repeat=4))}
    explicit = np.zeros((len(words), len(places)))
    for row, word in zip(explicit, words, strict=True):
        for k in range(57):
            row[places[word[k : k + 4]]] += 1
    gram = dot.spectrum_gram(words, 4)
    assert np.array_equal(gram, explicit @ explicit.T)
    assert gram[0, 1] > 40 > 10 > gram[0, 2:].max()
    assert explicit.shape[1] == 160_000
    assert (100 * explicit.shape[1], 100**2) == (16_000_000, 10_000)  # stored scalars of 100 proteins


def cayley(*numbers: sp.Symbol) -> sp.Matrix:
    """(I − S)(I + S)⁻¹: every rotation without a half turn, rational in the entries of S = −Sᵀ."""
    size = {1: 2, 3: 3}[len(numbers)]
    s = sp.zeros(size, size)
    for value, (i, j) in zip(numbers, itertools.combinations(range(size), 2), strict=True):
        s[i, j], s[j, i] = value, -value
    identity = sp.eye(size)
    return ((identity - s) * (identity + s).inv()).applyfunc(sp.cancel)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1, 3])
def test_reconstruction_up_to_rotation_is_proved(count: int) -> None:
    """φ_i = Q K e_i with the product of Q K⁻¹ Qᵀ gives K back, for every K = LᵀL and every rotation Q."""
    q = cayley(*sp.symbols(f"s0:{count}", real=True))
    size = q.shape[0]
    assert (q.T * q).applyfunc(sp.cancel) == sp.eye(size)
    if size == 2:
        a, b, c = sp.symbols("a b c", real=True)
        k = sp.Matrix([[a, b], [b, c]])
    else:  # a matrix with a symbol in it, positive definite where |b| < 1
        b = sp.Symbol("b", real=True)
        k = sp.Matrix([[2, b, 0], [b, 2, 1], [0, 1, 2]])
    metric = (q * k.inv() * q.T).applyfunc(sp.together)
    found = (q * k).T * metric * (q * k)
    for left, right in zip(found, k, strict=True):
        assert proved(left, right)


def test_rotated_points_have_the_same_matrix() -> None:
    """(QX)ᵀ(QX) = XᵀX for points as columns: what `reconstruct` finds is unique up to that."""
    q = cayley(*sp.symbols("s0:3", real=True))
    points = sp.Matrix(3, 2, sp.symbols("x0:6", real=True))
    rotated = q * points
    for left, right in zip(rotated.T * rotated, points.T * points, strict=True):
        assert proved(left, right)
    x = RNG.normal(size=(6, 3))
    found = kernels.reconstruct(x @ x.T)
    rotation = np.linalg.lstsq(found, x, rcond=None)[0]
    assert np.allclose(rotation.T @ rotation, np.eye(3), atol=1e-10)
    assert np.allclose(found @ rotation, x, atol=1e-10)


# ---- reproducing kernels --------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "degree"), [(1, 2), (2, 2), (2, 3), (3, 2)])
def test_reproducing_property_of_polynomials(n: int, degree: int) -> None:
    """f(x) = ⟨w, φ(x)⟩; k(x, ·) has the coordinates φ(x), so ⟨f, k(x, ·)⟩ = f(x): f written out is f."""
    x, y = list(sp.symbols(f"x1:{n + 1}", real=True)), list(sp.symbols(f"y1:{n + 1}", real=True))
    w = sp.Matrix(sp.symbols(f"w1:{kernels.feature_dimension(n, degree) + 1}", real=True))
    phi = kernels.polynomial_features(y, degree)
    kernel_section = sp.Poly(sp.expand(sum(a * b for a, b in zip(x, y, strict=True)) ** degree), *y)
    coordinates = [  # of k(x, ·) in the basis of the features, read off its coefficients in y
        kernel_section.coeff_monomial(sp.Mul(*[v**e for v, e in zip(y, exponents, strict=True)]))
        / feature.subs(dict.fromkeys(y, 1))
        for exponents, feature in zip(kernels.multi_indices(n, degree), phi, strict=True)
    ]
    f_at_x = w.dot(phi).subs(dict(zip(y, x, strict=True)))
    assert proved(w.dot(sp.Matrix(coordinates)), f_at_x)


def test_reproducing_property_of_brownian_motion() -> None:
    """k(s, t) = min(s, t) reproduces f with f(0) = 0 under ⟨f, g⟩ = ∫₀¹ f'(t) g'(t) dt, by SymPy."""
    t = sp.Symbol("t", real=True)
    s = sp.Symbol("s", positive=True)
    for f in (t, t**3 - 2 * t, sp.sin(3 * t), sp.exp(t) - 1):
        below = dot.of_functions(sp.diff(f, t), sp.Integer(1), t, 0, s)  # where min(s, t) = t
        above = dot.of_functions(sp.diff(f, t), sp.Integer(0), t, s, 1)
        assert proved(below + above, f.subs(t, s))
    points = np.sort(RNG.uniform(size=6))
    assert kernels.smallest_eigenvalue(np.minimum(points[:, None], points)) > 0


def test_reproducing_property_of_sums_of_kernels() -> None:
    """⟨f, k(x, ·)⟩ = αᵀK e = f(x) for f = Σ α_i k(x_i, ·), at points of the set and elsewhere."""
    points, alpha = RNG.normal(size=(6, 2)), RNG.normal(size=6)
    values = {kernels.length: 0.8}
    new = RNG.normal(size=(1, 2))
    section = np.append(np.zeros(6), 1.0)
    gram = kernels.gram(kernels.rbf(), np.concatenate([points, new]), None, values)
    f_new = sum(
        a * np.exp(-((p - new[0]) ** 2).sum() / (2 * 0.64)) for a, p in zip(alpha, points, strict=True)
    )
    assert dot.of_sentences(np.append(alpha, 0.0), gram, section) == pytest.approx(f_new, rel=1e-12)
