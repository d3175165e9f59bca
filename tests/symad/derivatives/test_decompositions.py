"""QR, SVD, LU, pseudo-inverse, least squares, exponential: LAPACK, torch, SciPy, 50 digits, proofs."""

from fractions import Fraction
from math import factorial

import mpmath
import numpy as np
import pytest
import scipy.linalg

import symad
from symad import functions as F
from symad.errors import ShapeError, TraceError
from symad.library.decompositions import pade
from symad.numeric import lower

torch = pytest.importorskip("torch")
rng = np.random.default_rng(0)
SQUARE, TALL = rng.normal(size=(4, 4)), rng.normal(size=(5, 3))
WIDE, B = rng.normal(size=(3, 5)), rng.normal(size=(5, 2))


def positive(Q, R):
    """LAPACK's factors with the signs of a positive diagonal."""
    signs = np.sign(np.diagonal(R))
    return Q * signs, signs[:, None] * R


def of_torch(f):
    """Factors of torch with those signs."""

    def run(a):
        Q, R = torch.linalg.qr(a)
        signs = torch.sign(torch.diagonal(R)).detach()
        return f(Q * signs, signs[:, None] * R)

    return run


def tensors(a):
    return torch.linalg.svd(a, full_matrices=False)


W = rng.normal(size=(5, 3))
Wt = torch.tensor(W)
SCALARS = {
    "qr": (
        lambda a: (F.qr(a)[0] * W).sum() + F.qr(a)[1].sum(),
        of_torch(lambda Q, R: (Q * Wt).sum() + R.sum()),
        TALL,
    ),
    "svd": (
        lambda a: (F.svd(a)[0] ** 2 * W).sum() + (F.svd(a)[1] ** 3).sum() + (F.svd(a)[2][0] ** 4).sum(),
        lambda a: (
            (tensors(a)[0] ** 2 * Wt).sum() + (tensors(a)[1] ** 3).sum() + (tensors(a)[2].T[0] ** 4).sum()
        ),
        TALL,
    ),
    "pinv": (
        lambda a: (F.pinv(a) ** 2 * W.T).sum(),
        lambda a: (torch.linalg.pinv(a) ** 2 * Wt.T).sum(),
        TALL,
    ),
    "pinv of rows": (
        lambda a: (F.pinv(a) ** 2 * W).sum(),
        lambda a: (torch.linalg.pinv(a) ** 2 * Wt).sum(),
        WIDE,
    ),
    "lstsq": (
        lambda a: (F.lstsq(a, B) ** 2).sum(),
        lambda a: (torch.linalg.pinv(a) @ torch.tensor(B)).pow(2).sum(),
        TALL,
    ),
    "least norm": (
        lambda a: (F.lstsq(a, B[:3]) ** 2).sum(),
        lambda a: (torch.linalg.pinv(a) @ torch.tensor(B[:3])).pow(2).sum(),
        WIDE,
    ),
    "lu": (
        lambda a: np.sin(F.lu(a)[1]).sum() + (F.lu(a)[2] ** 2).sum(),
        lambda a: torch.sin(torch.linalg.lu(a)[1]).sum() + (torch.linalg.lu(a)[2] ** 2).sum(),
        SQUARE,
    ),
    "expm": (lambda a: np.sin(F.expm(a)).sum(), lambda a: torch.sin(torch.matrix_exp(a)).sum(), SQUARE),
    "batched solve": (
        lambda a: (np.linalg.solve(a.reshape(3, 2, 2), B[:2]) ** 2).sum(),
        lambda a: (torch.linalg.solve(a.reshape(3, 2, 2), torch.tensor(B[:2])) ** 2).sum(),
        rng.normal(size=12),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", SCALARS)
def test_values_and_gradients_are_those_of_torch(name):
    ours, theirs, at = SCALARS[name]
    tensor = torch.tensor(at, requires_grad=True)
    expected = theirs(tensor)
    expected.backward()
    graph = symad.value_and_gradient(symad.trace(ours, [at.shape]))
    assert ours(at) == pytest.approx(expected.item(), rel=1e-11)
    for f in (graph, lower(graph), lower(graph, backend="c")):
        value, gradient = f(at)
        assert value == pytest.approx(expected.item(), rel=1e-11)
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), rtol=1e-10, atol=1e-11)


def test_factors_are_lapacks():
    Q, R = F.qr(TALL)
    for one, other in zip((Q, R), positive(*np.linalg.qr(TALL)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    order, L, U = F.lu(SQUARE)
    P, L_, U_ = scipy.linalg.lu(SQUARE)
    np.testing.assert_allclose(SQUARE[order.astype(int)], P.T @ SQUARE, rtol=0)
    np.testing.assert_allclose((L, U), (L_, U_), rtol=1e-12, atol=1e-14)
    for a in (TALL, WIDE, SQUARE):
        U, values, V = F.svd(a)
        np.testing.assert_allclose(values, np.linalg.svd(a, compute_uv=False), rtol=1e-12)
        np.testing.assert_allclose(U * values @ V.T, a, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(U.T @ U, np.eye(len(values)), atol=1e-13)
        np.testing.assert_allclose(F.pinv(a), np.linalg.pinv(a), rtol=1e-11, atol=1e-13)


def test_ill_conditioned_columns():
    """With κ(A) = 10⁶ the columns of Q are orthogonal to rounding, and A = Q R."""
    Q0, R0 = np.linalg.qr(rng.normal(size=(20, 6)))
    a = Q0 @ np.diag(np.logspace(0, -6, 6)) @ np.linalg.qr(R0)[0]
    Q, R = F.qr(a)
    assert np.abs(Q.T @ Q - np.eye(6)).max() < 1e-14
    assert np.abs(Q @ R - a).max() < 1e-15


@pytest.mark.thorough
@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 30.0, 1e3])
def test_the_exponential_is_scipys(scale):
    a = scale * (SQUARE - SQUARE.T if scale > 100 else SQUARE)  # that of large skew matrices is a rotation
    expected = scipy.linalg.expm(a)
    tolerance = 1e-13 * max(1.0, scale)
    for f in (
        F.expm,
        lower(symad.trace(F.expm, [(4, 4)])),
        lower(symad.trace(F.expm, [(4, 4)]), backend="c"),
    ):
        np.testing.assert_allclose(
            f(a), expected, rtol=10 * tolerance, atol=tolerance * np.abs(expected).max()
        )


@pytest.mark.thorough
def test_given_squarings():
    a = SQUARE / np.abs(SQUARE).sum(0).max()
    expected = scipy.linalg.expm(a)
    for f in (lambda a: F.expm(a, 2), lower(symad.trace(lambda a: F.expm(a, 2), [(4, 4)]), backend="c")):
        np.testing.assert_allclose(f(a), expected, rtol=1e-13, atol=1e-14)
    with pytest.raises(ShapeError, match="squarings=-1"):
        F.expm(a, -1)


def test_the_exponential_solves_its_equation_to_fifty_digits():
    """D/dt exp(tA) = A exp(tA), by the derivative of the graph."""
    pushed = symad.pushforward(symad.trace(lambda t, a: F.expm(t * a), [(), (3, 3)]), wrt="t")
    with mpmath.workdps(70):
        a = np.vectorize(mpmath.mpf, otypes=[object])(SQUARE[:3, :3])
        value, slope = pushed(mpmath.mpf("1.3"), a, mpmath.mpf(1))
        assert np.abs(slope - a @ value).max() < mpmath.mpf(10) ** -48 * np.abs(value).max()


def test_frechet_derivatives_of_the_exponential():
    E = rng.normal(size=(4, 4))
    pushed = symad.pushforward(symad.trace(F.expm, [(4, 4)]))(SQUARE, E)
    expected = scipy.linalg.expm_frechet(SQUARE, E)
    for one, other in zip(pushed, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_fifty_digits():
    a = [["0.3", "-1.2"], ["2.5", "0.7"]]
    with mpmath.workdps(60):
        exact = np.array([[mpmath.mpf(v) for v in row] for row in a])
        found = symad.trace(F.expm, [(2, 2)])(exact)
        expected = mpmath.expm(mpmath.matrix(exact.tolist()), method="taylor")
        assert (
            max(abs(found[i, j] - expected[i, j]) for i in range(2) for j in range(2)) < mpmath.mpf(10) ** -48
        )
        Q, R = symad.trace(F.qr, [(2, 2)])(exact)
        q, r = mpmath.qr(mpmath.matrix(exact.tolist()))
        sign = [mpmath.sign(r[k, k]) for k in range(2)]
        assert (
            max(abs(R[i, j] - sign[i] * r[i, j]) for i in range(2) for j in range(2)) < mpmath.mpf(10) ** -50
        )
        assert (
            max(abs(Q[i, j] - q[i, j] * sign[j]) for i in range(2) for j in range(2)) < mpmath.mpf(10) ** -50
        )


def test_stacks():
    many = rng.normal(size=(6, 3, 3))
    np.testing.assert_allclose(
        F.expm(many), np.stack([scipy.linalg.expm(a) for a in many]), rtol=1e-11, atol=1e-13
    )
    graph = symad.trace(lambda a: F.qr(a)[1], [(6, 3, 3)])
    np.testing.assert_allclose(graph(many), np.stack([F.qr(a)[1] for a in many]), rtol=1e-11, atol=1e-13)


def like(a, columns=2):
    return 0 * a[:columns, :columns] + np.eye(columns)


def composed(values, left, right=None):
    """U diag(w) Vᵀ, of which V is U if it is not given."""
    return left * values @ (left if right is None else right).T


UPPER = np.array([[0.0, 1.0], [0.0, 0.0]])
IDENTITIES = {
    "A = Q R": (lambda a: F.qr(a)[0] @ F.qr(a)[1], lambda a: a + 0, (3, 2)),
    "QᵀQ = I": (lambda a: F.qr(a)[0].T @ F.qr(a)[0], like, (3, 2)),
    "A[p] = L U": (lambda a: F.lu(a)[1] @ F.lu(a)[2], lambda a: a[F.lu(a)[0]], (2, 2)),
    "A X A = A": (lambda a: a @ F.pinv(a) @ a, lambda a: a + 0, (3, 2)),
    "X A X = X": (lambda a: F.pinv(a) @ a @ F.pinv(a), F.pinv, (3, 2)),
    "A X symmetric": (lambda a: a @ F.pinv(a), lambda a: (a @ F.pinv(a)).T, (3, 2)),
    "X A = I": (lambda a: F.pinv(a) @ a, like, (3, 2)),
    "rows: A X = I": (lambda a: a @ F.pinv(a), like, (2, 3)),
    "AᵀA x = Aᵀb": (
        lambda a: a[:, :2].T @ (a[:, :2] @ F.lstsq(a[:, :2], a[:, 2])), lambda a: a[:, :2].T @ a[:, 2], (3, 3)
    ),
    "least norm: A x = b": (lambda a: a[:, :2] @ F.lstsq(a[:, :2], a[:, 2]), lambda a: a[:, 2], (1, 3)),
    "a stack of A x = b": (
        lambda a: a[:, :, :2] @ np.linalg.solve(a[:, :, :2], a[:, :, 2:]), lambda a: a[:, :, 2:], (2, 2, 3)
    ),
    "A x = b": (lambda a: a[:, :2] @ np.linalg.solve(a[:, :2], a[:, 2]), lambda a: a[:, 2], (2, 3)),
    "V diag(w) Vᵀ = A + Aᵀ": (
        lambda a: composed(*np.linalg.eigh(a + a.T)), lambda a: a + a.T, (3, 3)
    ),
    "VᵀV = I": (lambda a: np.linalg.eigh(a)[1].T @ np.linalg.eigh(a)[1], lambda a: like(a, 3), (3, 3)),
    **{
        f"U diag(σ) Vᵀ = A, {n} x {n}": (
            lambda a: composed(F.svd(a)[1], F.svd(a)[0], F.svd(a)[2]), lambda a: a + 0, (n, n)
        )
        for n in (2, 3, 5)
    },
    "UᵀU = I": (lambda a: F.svd(a)[0].T @ F.svd(a)[0], like, (2, 2)),
    "VᵀV = I of singular vectors": (lambda a: F.svd(a)[2].T @ F.svd(a)[2], lambda a: like(a, 4), (4, 4)),
    "A Aᵀ U = U diag(σ²)": (
        lambda a: a @ a.T @ F.svd(a)[0], lambda a: F.svd(a)[0] * F.svd(a)[1] ** 2, (3, 3)
    ),
    "r₁₃(A) r₁₃(−A) = I": (lambda a: pade(a) @ pade(-a), like, (2, 2)),
    **{
        f"exp(A) exp(−A) = I, {k} squarings": (lambda a, k=k: F.expm(a, k) @ F.expm(-a, k), like, (2, 2))
        for k in (1, 3)
    },
    "A exp(A) = exp(A) A": (lambda a: a @ F.expm(a, 1), lambda a: F.expm(a, 1) @ a, (2, 2)),
    "d exp(tA)/dt = A exp(tA), A² = 0": (
        lambda a: symad.pushforward(symad.trace(lambda t: F.expm(t * UPPER, 2), [()]))(a[0, 0], 1.0)[1],
        lambda a: UPPER @ F.expm(a[0, 0] * UPPER, 2), (1, 1)
    ),
    "r₁₃ of a nilpotent matrix": (
        lambda a: pade(a * UPPER), lambda a: like(a) + a * UPPER, (2, 2)
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", IDENTITIES)
def test_defining_identities_are_certified(name):
    left, right, shape = IDENTITIES[name]
    certificate = symad.equal(*(symad.trace(f, [shape]) for f in (left, right)))
    assert certificate.status in ("proved", "tested"), certificate


FALSE = {
    "det V = 1, but LAPACK chooses the signs": (
        lambda a: np.linalg.det(np.linalg.eigh(a + a.T)[1]), lambda a: 1 + 0 * a[0, 0]
    ),
    "vectors of a matrix whose eigenvalues are equal": (
        lambda a: composed(np.diagonal(one(a).T @ (a + a.T) @ one(a)), one(a)), lambda a: a + a.T
    ),
    "V diag(w) V": (lambda a: F.svd(a)[0] * F.svd(a)[1] @ F.svd(a)[2], lambda a: a + 0),
    "det(U Vᵀ) = 1": (lambda a: np.linalg.det(F.svd(a)[0] @ F.svd(a)[2].T), lambda a: 1 + 0 * a[0, 0]),
    "U = V": (lambda a: F.svd(a)[0], lambda a: F.svd(a)[2]),
}  # fmt: skip


def one(a):
    """Eigenvectors of det(A) I."""
    return np.linalg.eigh(np.linalg.det(a) * np.eye(a.shape[0]))[1]


@pytest.mark.thorough
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", FALSE)
def test_what_holds_for_other_vectors_only_is_not_certified(name, size):
    certificate = symad.equal(*(symad.trace(f, [(size, size)]) for f in FALSE[name]))
    assert certificate.status in ("undecided", "refuted"), certificate


@pytest.mark.slow
def test_the_derivatives_of_the_quotient_are_certified():
    assert symad.check(symad.trace(lambda a: pade(a)[0, 1], [(2, 2)])).status in ("proved", "tested")


@pytest.mark.thorough
def test_the_derivatives_of_singular_values_are_certified():
    assert symad.check(symad.trace(lambda a: F.svd(a)[1].sum(), [(2, 2)])).status in ("proved", "tested")


def test_the_quotient_of_the_exponential_is_its_series_to_the_26th_power():
    """p(x) − eˣ p(−x) = O(x²⁷), as rational numbers: the definition of Padé's r₁₃."""
    p = [Fraction(factorial(26 - j), factorial(j) * factorial(13 - j)) for j in range(14)] + [
        Fraction(0)
    ] * 14
    for k in range(27):
        product = sum(Fraction(1, factorial(k - j)) * (-1) ** j * p[j] for j in range(k + 1))
        assert product == p[k]
    a = Fraction(1, 4)
    ours = symad.trace(pade, [(1, 1)])(np.array([[a]], dtype=object))[0, 0]
    quotient = sum(c * a**j for j, c in enumerate(p)) / sum(c * (-a) ** j for j, c in enumerate(p))
    assert ours == quotient
    with mpmath.workdps(80):  # at the largest norm that is not scaled, to relative 10⁻⁵⁰
        exact = mpmath.exp(mpmath.mpf(1) / 4)
        assert abs(mpmath.mpf(quotient.numerator) / quotient.denominator / exact - 1) < mpmath.mpf(10) ** -50


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_singular_vectors_in_fifty_digits(shape):
    """A = U diag(σ) Vᵀ with orthonormal columns, and the slope of σ is u vᵀ."""
    values = rng.normal(size=shape)
    graph = symad.trace(F.svd, [shape])
    with mpmath.workdps(60):
        a = np.vectorize(mpmath.mpf, otypes=[object])(values)
        U, sigma, V = graph(a)
        bound, k = mpmath.mpf(10) ** -50, min(shape)
        for defect in ((U * sigma) @ V.T - a, U.T @ U - np.eye(k), V.T @ V - np.eye(k)):
            assert np.abs(defect).max() < bound
        first = symad.gradient(symad.trace(lambda a: F.svd(a)[1][0], [shape]))(a)
        assert np.abs(first - np.outer(U[:, 0], V[:, 0])).max() < bound


def test_complex_numbers_are_refused():
    a = SQUARE + 1j
    for f in (F.qr, F.svd, F.lu, F.pinv, F.expm, lambda a: F.lstsq(a, a[0])):
        with pytest.raises(TraceError, match="complex128; symad works over the real numbers"):
            f(a)


def test_what_has_no_factors_is_refused():
    dependent = np.ones((3, 2))
    for f in (F.qr, F.pinv, symad.trace(F.qr, [(3, 2)]), lower(symad.trace(F.pinv, [(3, 2)]))):
        with pytest.raises(np.linalg.LinAlgError):
            f(dependent)
    with pytest.raises(ShapeError, match="rows"):
        F.qr(WIDE)
    with pytest.raises(ShapeError, match="square"):
        F.expm(TALL)
    with pytest.raises(ShapeError, match="lstsq"):
        F.lstsq(TALL, B[:2])
    assert np.isnan(F.expm(np.array([[1e7]]))).all()
    for name, advice in (("qr", "functions.qr"), ("pinv", "functions.pinv"), ("svd", "functions.svd")):
        with pytest.raises(TraceError, match=advice):
            symad.trace(getattr(np.linalg, name), [(3, 3)])
