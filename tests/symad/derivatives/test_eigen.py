"""Eigenvalues and eigenvectors of symmetric matrices, singular values, and the norms made of them."""

import numpy as np
import pytest

import symad
from symad.derivatives.hessian import MODES
from symad.errors import EvaluationError, ShapeError, TraceError
from symad.numeric import lower
from tests.symad.evaluation.agreement import tangents_agree

rng = np.random.default_rng(11)
X = rng.normal(size=(6, 4))
S = X.T @ X
STACK = rng.normal(size=(5, 4, 3))
WEIGHTS = np.arange(1.0, 5.0)

CASES = {
    "eigenvalues": lambda x: np.linalg.eigvalsh(x.T @ x) * WEIGHTS,
    "eigenvectors": lambda x: np.linalg.eigh(x.T @ x)[1] ** 2 @ WEIGHTS,  # whatever the signs
    "named parts": lambda x: (lambda e: e.eigenvectors**2 @ e.eigenvalues)(np.linalg.eigh(x.T @ x)),
    "the upper triangle": lambda x: np.linalg.eigvalsh(np.triu(x.T @ x) + 0, UPLO="U"),
    "the lower triangle": lambda x: np.linalg.eigvalsh(np.tril(x.T @ x)),
    "a matrix logarithm": lambda x: (lambda w, v: (v * np.log(w)) @ v.T)(*np.linalg.eigh(x.T @ x)),
    "singular values": lambda x: [np.linalg.svd(m, compute_uv=False) for m in (x, x.T, x @ x.T @ x)],
    "norms": lambda x: [
        np.linalg.norm(x, 2), np.linalg.norm(x, -2), np.linalg.norm(x, "nuc"), np.linalg.norm(x.T, "nuc"),
    ],
    "condition numbers": lambda x: [
        np.linalg.cond(x), np.linalg.cond(x.T @ x, 1), np.linalg.cond(x[:4], "fro"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_tangents_are_those_of_numpy(name):
    found, wanted = symad.trace(CASES[name], [X.shape])(X), CASES[name](X)
    for a, b in zip(*((r if isinstance(r, (list, tuple)) else [r]) for r in (found, wanted)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11)
    tangents_agree(CASES[name], X)


def test_stacks():
    def gram(x):
        return np.linalg.eigvalsh(np.swapaxes(x, -1, -2) @ x)

    np.testing.assert_allclose(symad.trace(gram, [STACK.shape])(STACK), gram(STACK), rtol=1e-12)
    tangents_agree(gram, STACK)
    tangents_agree(lambda x: np.linalg.norm(x, 2, axis=(1, 2)), STACK)
    each = symad.vmap(symad.trace(gram, [(4, 3)]))
    np.testing.assert_allclose(each(STACK), gram(STACK), rtol=1e-12)


IN_TORCH = ["eigenvalues", "eigenvectors", "a matrix logarithm", "singular values", "norms"]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", IN_TORCH)
def test_gradients_equal_those_of_torch(name, backend):
    torch = pytest.importorskip("torch")
    weights = torch.tensor(WEIGHTS)

    def in_torch(x):
        w, v = torch.linalg.eigh(x.T @ x)
        return [
            (w * weights).sum(),
            (v**2 @ weights).sum(),
            ((v * torch.log(w)) @ v.T).sum(),
            sum(torch.linalg.svdvals(m).sum() for m in (x, x.T, x @ x.T @ x)),
            sum(torch.linalg.matrix_norm(x, p) for p in (2, -2, "nuc", "nuc")),
        ][IN_TORCH.index(name)]

    def total(x):
        made = CASES[name](x)
        return sum(np.sum(part) for part in made) if isinstance(made, list) else np.sum(made)

    x = torch.tensor(X, requires_grad=True)
    in_torch(x).backward()
    slope = lower(symad.gradient(symad.trace(total, [X.shape]), wrt=0), backend=backend)
    np.testing.assert_allclose(slope(X), x.grad.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives(mode):
    """Σ w² = tr S², of S = XᵀX."""
    by_values = symad.trace(lambda x: np.sum(np.linalg.eigvalsh(x.T @ x) ** 2), [X.shape])
    by_products = symad.trace(lambda x: np.sum((x.T @ x) ** 2), [X.shape])
    expected = symad.hessian(by_products, 0)(X)
    np.testing.assert_allclose(symad.hessian(by_values, 0, mode=mode)(X), expected, rtol=1e-9, atol=1e-9)


def test_equal_eigenvalues():
    """Symmetric functions of them have derivatives there; the vectors have none, and say so."""
    trace_of = symad.trace(lambda a: np.sum(np.linalg.eigvalsh(a)), [(3, 3)])
    for backend in (symad.gradient(trace_of, 0), lower(symad.gradient(trace_of, 0))):
        np.testing.assert_allclose(backend(2 * np.eye(3)), np.eye(3), atol=1e-15)
    determinant = symad.trace(lambda a: np.prod(np.linalg.eigvalsh(a)), [(3, 3)])
    np.testing.assert_allclose(symad.gradient(determinant, 0)(2 * np.eye(3)), 4 * np.eye(3), atol=1e-14)
    turned = symad.trace(lambda a: np.sum(np.linalg.eigh(a)[1] ** 3), [(3, 3)])
    with np.errstate(all="ignore"):
        assert np.isnan(symad.gradient(turned, 0)(2 * np.eye(3))).any()


def test_small_singular_values_keep_their_digits():
    """Singular values 1 and 1e-9: of the Gram matrix nothing would be left of the second."""
    u, v = np.linalg.qr(rng.normal(size=(3, 3)))[0][:, :2], np.linalg.qr(rng.normal(size=(2, 2)))[0]
    a = u * np.array([1.0, 1e-9]) @ v.T
    found = symad.trace(lambda a: np.linalg.svd(a, compute_uv=False), [(3, 2)])(a)
    np.testing.assert_allclose(found, [1.0, 1e-9], rtol=1e-6)


def test_many_digits():
    """The roots of t² − 4 t + 1 are 2 ± √3."""
    import mpmath

    graph = symad.trace(np.linalg.eigvalsh, [(2, 2)])
    with mpmath.workdps(40):
        a = np.array([[mpmath.mpf(1), mpmath.sqrt(2)], [mpmath.sqrt(2), mpmath.mpf(3)]], dtype=object)
        low, high = graph(a)
        assert abs(low - (2 - mpmath.sqrt(3))) < 1e-38
        assert abs(high - (2 + mpmath.sqrt(3))) < 1e-38


def test_what_has_no_eigenvalues_here():
    graph = symad.trace(np.linalg.eigvalsh, [(2, 2)])
    from sympy import symbols

    with pytest.raises(EvaluationError, match="floating-point numbers"):
        graph(np.array([symbols("a b"), symbols("b c")], dtype=object))
    with pytest.raises(ShapeError, match=r"square matrix, not \(2, 3\)"):
        symad.trace(np.linalg.eigvalsh, [(2, 3)])
    with pytest.raises(TraceError, match="UPLO='X'"):
        symad.trace(lambda a: np.linalg.eigvalsh(a, "X"), [(2, 2)])
    with pytest.raises(TraceError, match=r"np\.linalg\.eigh"):
        symad.trace(np.linalg.eig, [(2, 2)])
    with pytest.raises(TraceError, match=r"svd\(a, compute_uv=False\)"):
        symad.trace(np.linalg.svd, [(2, 2)])


def test_saved_and_in_single_precision(tmp_path):
    graph = symad.gradient(symad.trace(lambda x: np.sum(np.linalg.eigvalsh(x.T @ x) ** 2), [X.shape]), 0)
    assert symad.load(symad.save(graph, tmp_path / "eigen.json")) is graph
    slope = lower(graph, dtype="float32")(X.astype("float32"))
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, 4 * X @ S, rtol=0, atol=2e-6 * np.abs(4 * X @ S).max())


@pytest.mark.thorough
def test_the_derivative_is_certified_but_for_identities_of_eigenvalues():
    by_values = symad.trace(lambda x: np.sum(np.linalg.eigvalsh(x) ** 2), [(2, 2)])
    assert symad.check(by_values).status in ("proved", "tested")
    wrong = symad.trace(lambda x: np.sum(np.linalg.eigvalsh(x) ** 3), [(2, 2)])
    assert symad.equal(by_values, wrong).status == "refuted"
