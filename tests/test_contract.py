"""The public names, each used once as the documentation says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import sympy as sp

import symad
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
F = x**2 * y + sp.sin(y)
NAMES = [
    "trace", "to_sympy", "join", "pushforward", "pullback", "gradient", "value_and_gradient", "jacobian",
    "hessian", "hvp", "vmap", "stop_gradient", "Dual", "implicit", "jacobian_sparsity", "hessian_sparsity",
    "color", "check", "verify", "equal", "flops", "memory", "save", "load", "register_function", "Graph",
    "splits",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists_and_is_documented(name: str) -> None:
    assert getattr(symad, name).__doc__


def test_graphs_show_inputs_outputs_nodes() -> None:
    g = symad.trace(F)
    assert g.inputs == (x, y)
    assert len(g.outputs) == 1
    assert set(g.outputs) <= set(g.nodes)
    assert g(2.0, 0.0) == 0.0


def test_pushforward_and_pullback_signatures() -> None:
    value, tangent = symad.pushforward(F, x)(2.0, 1.0, 1.0)
    assert (float(value), float(tangent)) == pytest.approx((4 + np.sin(1), 4.0))
    value, x_bar, y_bar = symad.pullback(F)(2.0, 1.0, 3.0)
    assert (float(x_bar), float(y_bar)) == pytest.approx((12.0, 3 * (4 + np.cos(1))))


def test_join_shares_one_sweep() -> None:
    joined = symad.join(F, symad.gradient(F), symad.hessian(F))
    value, gradient, hessian = lower(joined)(2.0, 1.0)
    assert value == pytest.approx(4 + np.sin(1))
    assert gradient == pytest.approx((4.0, 4 + np.cos(1)))
    assert hessian.shape == (2, 2)


def test_sparse_derivatives_are_csr_arrays() -> None:
    n = sp.Symbol("n", integer=True, positive=True)
    u, i = sp.IndexedBase("u", shape=(n,)), sp.Symbol("i", integer=True)
    chain = symad.trace(sp.Sum((u[i + 1] - u[i] ** 2) ** 2 + (1 - u[i]) ** 2, (i, 0, n - 2))).at({n: 30})
    point = np.linspace(-1, 1, 30)
    dense = symad.hessian(chain)(point)
    for mode in (
        "forward-over-reverse",
        "reverse-over-forward",
        "reverse-over-reverse",
        "forward-over-forward",
    ):
        value = symad.hessian(chain, mode=mode, sparse=True)(point)
        assert isinstance(value, scipy.sparse.csr_array)
        assert np.allclose(value.toarray(), dense, rtol=1e-12)
        assert value.nnz == 88
    pattern = symad.hessian_sparsity(chain, None)
    assert scipy.sparse.issparse(pattern)
    assert pattern.nnz == 88
    rows = symad.trace([x * y, sp.sin(x)])
    assert symad.jacobian_sparsity(rows, [x, y]).toarray().tolist() == [[True, True], [True, False]]
    jacobian = symad.jacobian(rows, sparse=True)(2.0, 3.0)
    assert np.allclose(jacobian.toarray(), [[3, 2], [np.cos(2), 0]])


@pytest.mark.parametrize(("kind", "colors"), [("column", 3), ("row", 3), ("star", 3), ("acyclic", 2)])
def test_color(kind: str, colors: int) -> None:
    band = scipy.sparse.diags_array([np.ones(9), np.ones(10), np.ones(9)], offsets=[-1, 0, 1]).tocsr()
    assert symad.color(band, kind=kind).num_colors == colors


def test_bidirectional_coloring_of_an_arrow() -> None:
    arrow = np.eye(10)
    arrow[0] = arrow[:, 0] = 1
    coloring = symad.color(scipy.sparse.csr_array(arrow), kind="bidirectional")
    assert coloring.num_colors == 3
    row_colors, column_colors = coloring.colors
    assert len(set(row_colors[row_colors > 0])) + len(set(column_colors[column_colors > 0])) == 3


def test_certificates_have_the_promised_fields() -> None:
    good = symad.verify(F, x, gradient=2 * x * y)
    assert good.status == "proved"
    assert good.bound == 0
    assert good.witness is None
    good.raise_if_refuted()
    bad = symad.verify(F, (x, y), gradient=(2 * x * y, x**2 + sp.sin(y)))
    assert bad.status == "refuted"
    assert [e.status for e in bad.entries].count("refuted") == 1
    assert bad.witness is not None
    assert "sin" in str(bad) or "y" in str(bad)
    with pytest.raises(Exception, match=r"refuted|wrong|differ"):
        bad.raise_if_refuted()


def test_a_users_numeric_gradient_is_verified() -> None:
    right = symad.verify(F, (x, y), gradient=lambda a, b: (2 * a * b, np.square(a) + np.cos(b)))
    wrong = symad.verify(F, (x, y), gradient=lambda a, b: (2 * a * b, np.square(a) - np.cos(b)))
    assert right.status == "measured"
    assert wrong.status == "refuted"


def test_testing_helpers() -> None:
    from symad import testing

    testing.assert_derivative(F, x, gradient=2 * x * y)
    with pytest.raises(AssertionError):
        testing.assert_derivative(F, x, gradient=2 * x)
    testing.check_rule(symad.trace(sp.tanh(x)).outputs[0])


def test_costs() -> None:
    n, m, k = sp.symbols("n m k", integer=True, positive=True)
    product = sp.MatrixSymbol("A", n, m) * sp.MatrixSymbol("B", m, k)
    assert sp.expand(symad.flops(product) - 2 * n * m * k) == 0
    assert symad.memory(F) > 0


def test_save_and_load(tmp_path: Path) -> None:
    g = symad.hessian(F)
    symad.save(g, tmp_path / "h.json")
    assert symad.load(tmp_path / "h.json") is g


def test_explain_and_draw(tmp_path: Path) -> None:
    assert "12" in str(symad.trace(x + x**2).explain(x=3))
    symad.trace(F).draw(tmp_path / "f.svg")
    symad.trace(F).draw(tmp_path / "f.dot")
    assert (tmp_path / "f.svg").read_text().startswith("<")
    assert "digraph" in (tmp_path / "f.dot").read_text()


def test_gpu_faces_run_on_numpy_arrays() -> None:
    from symad.gpu import attention, pairwise

    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 5, 4))
    scores = np.einsum("bhid,bhjd->bhij", q, k) / 2
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert np.allclose(attention(q, k, v), weights @ v, rtol=1e-10)
    points, b = np.random.default_rng(1).normal(size=(2, 6, 3))
    direct = np.exp(-((points[:, None] - b[None]) ** 2).sum(-1)) @ np.ones((6, 1))
    ours = pairwise(
        lambda s, t: sp.exp(-sum((s[i] - t[i]) ** 2 for i in range(3))), points, b, np.ones((6, 1))
    )
    assert np.allclose(ours, direct, rtol=1e-12)


def test_backends() -> None:
    kernel = lower(F, backend="c")
    assert "#include <math.h>" in kernel.c_source
    assert kernel(2.0, 1.0) == pytest.approx(4 + np.sin(1), rel=1e-15)
    assert "cupy" in lower(F, backend="cupy").source
    with pytest.raises(symad.errors.LoweringError, match="is not one of"):
        lower(F, backend="fortran")
