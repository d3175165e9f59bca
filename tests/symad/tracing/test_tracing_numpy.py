"""NumPy's functions of order, curves, statistics and assembly on traced values, against NumPy."""

import re
from pathlib import Path

import numpy as np
import pytest

import symad
from symad.core.graph import Graph
from symad.errors import EvaluationError, ShapeError, TraceError
from symad.numeric import lower
from symad.tracing.from_numpy import ufuncs as _ufuncs  # noqa: F401  (fills the tables)
from symad.tracing.proxies.array_protocol import FUNCTIONS, UFUNCS
from symad.tracing.run_on_proxies import trace_function as _trace  # noqa: F401
from tests.symad.evaluation.agreement import tangents_agree, values_agree

rng = np.random.default_rng(8)
# far enough apart for differences to keep the order
A = rng.permutation(np.linspace(-0.9, 0.85, 12)).reshape(3, 4)
V, U = np.array([-0.85, 0.33, -0.15, 0.71, 0.02]), np.array([0.5, 0.2, 0.9, 0.7])
PLACES = np.array([-1.0, -0.4, 0.1, 0.3, 1.0])
TRAPEZOID = getattr(np, "trapezoid", None) or getattr(np, "trapz")  # noqa: B009  (until NumPy 2.0)

ORDER = {
    "sort": lambda a, v: [np.sort(a), np.sort(a, axis=0), np.sort(a, axis=None), np.sort(v[::-1])],
    "argsort": lambda a, v: [np.take_along_axis(a, np.argsort(a, axis=0), axis=0), v[np.argsort(v)]],
    "extremes": lambda a, v: [
        v[np.argmax(v)], np.take_along_axis(a, np.argmin(a, axis=1, keepdims=True), axis=1), v[v.argmin()],
        np.ravel(a)[np.argmax(a)], np.ravel(a)[np.argmax(a, keepdims=True)],
    ],
    "median": lambda a, v: [np.median(v), np.median(a), np.median(a, axis=0), np.median(a, 1, keepdims=True)],
    "quantile": lambda a, v: [
        np.quantile(v, 0.3), np.quantile(a, 0.0, axis=1), np.quantile(a, [0.1, 0.25, 1.0], axis=0),
        np.quantile(a, [[0.1], [0.9]], axis=(0, 1), keepdims=True), np.percentile(a, 35, axis=1),
    ],
    "nearest": lambda a, v: np.take(v, np.minimum(np.searchsorted(PLACES, v), 4)) * v,
}  # fmt: skip

CURVES = {
    "gradient": lambda a, v: [
        np.gradient(v), np.gradient(v, 0.3), np.gradient(v, PLACES), np.gradient(v, PLACES, edge_order=2),
        np.gradient(v, edge_order=2), np.gradient(a, 0.1, axis=1), *np.gradient(a, 0.1, PLACES[:4]),
    ],
    "gradient over traced places": lambda a, v: np.gradient(v**2, v),
    "trapezoid": lambda a, v: [
        TRAPEZOID(v), TRAPEZOID(v, dx=0.2), TRAPEZOID(v, PLACES), TRAPEZOID(a, axis=0), TRAPEZOID(a, a**2),
        TRAPEZOID(a, a, axis=0), TRAPEZOID(v**2, v),
    ],
    "convolve": lambda a, v: [
        np.convolve(*pair, mode=mode)
        for pair in [(v, a[0]), (a[0], v), (v, a[0, :1]), (v, PLACES[:3]), (v, v)]
        for mode in ("full", "same", "valid")
    ],
    "correlate": lambda a, v: [
        np.correlate(*pair, mode=mode)
        for pair in [(v, a[0]), (a[0], v), (v, a[0, :3]), (a[0, :2], v), (a[0], v[:2]), (a[0], a[1])]
        for mode in ("full", "same", "valid")
    ],
    "polyval": lambda a, v: [np.polyval(v, a), np.polyval([1.0, 2.0, 3.0], v), np.polyval(v, 0.5)],
    "vander": lambda a, v: [np.vander(v), np.vander(v, 3, increasing=True)],
    "interp": lambda a, v: [
        np.interp(a, PLACES, v), np.interp(2 * v, PLACES, PLACES**2), np.interp(0.2, PLACES, v),
        np.interp(2 * a, PLACES, v, left=-3.0, right=v[0]), np.interp(a, np.array([0.5]), v[:1]),
        np.interp(0.05, np.sort(v), PLACES), np.interp(np.array([-2.0, 0.0, 2.0]), PLACES, v),
    ],
    "sinc": lambda a, v: np.sinc(a),
    "ediff1d": lambda a, v: [np.ediff1d(a), np.ediff1d(v, to_begin=v[0], to_end=[1.0, 2.0])],
}  # fmt: skip

REST = {
    "cov": lambda a, v: [
        np.cov(a), np.cov(a, rowvar=False), np.cov(v), np.cov(v, v**2, ddof=0), np.cov(a, bias=True),
    ],
    "corrcoef": lambda a, v: [np.corrcoef(a), np.corrcoef(v, v**3), np.corrcoef(a, rowvar=False)],
    "missing values": lambda a, v: [
        np.nansum(a, axis=0), np.nanmean(a, axis=1, keepdims=True), np.nansum(v), np.where(np.isnan(a), 2, a),
    ],
    "dstack": lambda a, v: [np.dstack([a, a**2]), np.dstack([v, v])],
    "block": lambda a, v: [
        np.block([[a, a[:, :1]], [v]]), np.block([v, v[:2]]), np.block([[np.eye(4)], [a]]), np.block(v[0]),
    ],
    "meshgrid": lambda a, v: [
        *np.meshgrid(v, a[0]), *np.meshgrid(v, PLACES, indexing="ij"), *np.meshgrid(v, a[0], sparse=True),
        *np.meshgrid(v, a[0, :2], a[1, :3]), *np.meshgrid(v),
    ],
    "linspace": lambda a, v: [
        np.linspace(v[0], v[1], 4), np.linspace(v, 2, 3), np.linspace(v[0], 1, 4, endpoint=False),
        np.linspace(a[0], a[1], 3, axis=-1), np.linspace(v[0], 2.0, 1),
        np.linspace(0, v[1], 5, retstep=True)[1],
    ],
    "rot90": lambda a, v: [np.rot90(a), np.rot90(a, 2), np.rot90(a, -1), np.rot90(a, 5, axes=(1, 0))],
    "delete": lambda a, v: [np.delete(v, 1), np.delete(v, [0, -1]), np.delete(a, slice(1, 3), axis=1)],
    "insert": lambda a, v: [
        np.insert(v, 1, v[0]), np.insert(v, 5, 2.0), np.insert(v, -1, 2.0), np.insert(a, 1, v[:4], axis=0),
        np.insert(a, 0, 7.0, axis=1),
    ],
    "bincount": lambda a, v: [
        np.bincount([0, 2, 2, 0, 1], weights=v), np.bincount([0, 1, 1], v[:3], minlength=4),
    ],
    "running extremes": lambda a, v: [
        np.maximum.accumulate(v), np.minimum.accumulate(a, axis=1), np.maximum.accumulate(a),
        np.logaddexp.accumulate(a, axis=1),
    ],
    "logaddexp.reduce": lambda a, v: [np.logaddexp.reduce(v), np.logaddexp.reduce(a, axis=1)],
    "signs": lambda a, v: [np.copysign(a, a[::-1]), np.modf(5 * v)[0], np.where(np.signbit(v), v, 2 * v)],
    "attributes": lambda a, v: [np.swapaxes(a, 0, 1) @ a, v * v.dtype.itemsize, v[v.argmax()]],
    "multi_dot": lambda a, v: [
        np.linalg.multi_dot([a, a.T, a]), np.linalg.multi_dot([v[:3], a, v[:4]]),
        np.linalg.multi_dot([a.T, v[:3]]),
    ],
}  # fmt: skip
CASES = ORDER | CURVES | REST


def as_list(f):
    def g(*args):
        made = f(*args)
        return list(made) if isinstance(made, (tuple, list)) else made

    return g


@pytest.mark.parametrize("name", CASES)
def test_values_and_tangents(name):
    values_agree(as_list(CASES[name]), A, V)
    tangents_agree(as_list(CASES[name]), A, V)


@pytest.mark.filterwarnings("ignore::sympy.utilities.exceptions.SymPyDeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_lowered_and_by_way_of_sympy(name):
    graph = symad.trace(as_list(CASES[name]), [A.shape, V.shape])
    expected = graph(A, V)
    found = lower(graph)(A, V)
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    again = symad.trace(symad.to_sympy(graph), inputs=graph.inputs)
    for a, b in zip(again.output_nodes, graph.output_nodes, strict=True):
        found, expected = (Graph(graph.input_nodes, (y,))(A, V) for y in (a, b))
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.skipif(not hasattr(np.linalg, "vector_norm"), reason="names of NumPy 2")
def test_names_of_numpy_2():
    def f(a, v):
        linalg = np.linalg
        return [
            linalg.vector_norm(a), linalg.vector_norm(a, axis=1, keepdims=True),
            linalg.vector_norm(v, ord=1),
            linalg.matrix_norm(a), linalg.diagonal(a), linalg.trace(a), linalg.outer(v, v),
            np.vecdot(a, a),
            linalg.cross(v[:3], a[:, 0]), linalg.tensordot(a, a, axes=2), np.unstack(a)[1], np.concat([a, a]),
            np.cumulative_sum(v), np.cumulative_prod(a, axis=0), np.permute_dims(a, (1, 0)), a.mT @ a,
            np.astype(a, float),
        ]  # fmt: skip

    values_agree(f, A, V)
    tangents_agree(f, A, V)
    if hasattr(np, "matvec"):
        values_agree(lambda a, v: [np.matvec(a, v[:4]), np.vecmat(v[:3], a)], A, V)


def test_the_page_names_functions_that_are_traced():
    page = (Path(__file__).parents[3] / "docs" / "numpy.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [\w, ]+ \| (.*) \|$", page, re.MULTILINE)[:10]
    names = {name for row in rows for group in re.findall(r"`([^`]*)`", row) for name in group.split()}
    plain = {n.removeprefix("linalg.") for n in names if re.fullmatch(r"(linalg\.)?\w+", n)}
    assert len(plain) > 90
    found = {n: getattr(np, n, getattr(np.linalg, n, None)) for n in plain}
    of_matrices = {getattr(np, name, None) for name in ("matvec", "vecmat", "vecdot")}
    known = {*FUNCTIONS, *UFUNCS, *of_matrices, None}
    assert [n for n, function in found.items() if function not in known] == []


# ---- equal elements, missing elements, lengths and types ----------------------------------------


def test_equal_elements_keep_their_order():
    ties = np.array([2.0, 1.0, 2.0, 1.0, 1.0])
    for f in (np.argsort, np.argmax, np.argmin):
        options = {"kind": "stable"} if f is np.argsort else {}
        graph = symad.trace(lambda v, f=f, o=options: f(v, **o), [(5,)])
        assert np.array_equal(graph(ties), f(ties, **options))
        assert np.array_equal(lower(graph)(ties), f(ties, **options))
        assert np.array_equal(lower(graph, dtype="float32")(ties.astype("float32")), f(ties, **options))


@pytest.mark.thorough
def test_missing_elements():
    with_gaps = np.array([[1.0, np.nan, 3.0, np.nan], [np.nan, 2.0, 5.0, 1.0], [4.0, 1.0, 0.0, 2.0]])
    cases = [
        lambda a: np.nansum(a, axis=0), lambda a: np.nanmean(a, axis=1), lambda a: np.argmax(a, axis=1),
        lambda a: np.argmin(a, axis=0), lambda a: np.where(np.isnan(a), -1, a), lambda a: np.sort(a, axis=1),
    ]  # fmt: skip
    for f in cases:
        graph = symad.trace(f, [(3, 4)])
        for backend in (graph, lower(graph), lower(graph, backend="c")):
            np.testing.assert_array_equal(backend(with_gaps), f(with_gaps))
    loss = symad.trace(lambda a: np.nansum(a**2), [(3, 4)])
    np.testing.assert_array_equal(symad.gradient(loss, wrt=0)(with_gaps), 2 * np.nan_to_num(with_gaps))
    np.testing.assert_array_equal(lower(symad.gradient(loss, wrt=0))(with_gaps), 2 * np.nan_to_num(with_gaps))


def test_symbolic_lengths():
    from sympy import Symbol

    n = Symbol("n", integer=True, positive=True)
    graph = symad.trace(lambda v: [np.sort(v), np.argmax(v), np.gradient(v), TRAPEZOID(v)], [(n,)])
    for point in (V, U):
        expected = [np.sort(point), np.argmax(point), np.gradient(point), TRAPEZOID(point)]
        for a, b, c in zip(graph(point), lower(graph)(point), expected, strict=True):
            np.testing.assert_allclose(a, c, rtol=1e-14)
            np.testing.assert_allclose(b, c, rtol=1e-14)


def test_sorted_values_in_single_precision_stay_single():
    kernel = lower(symad.trace(lambda v: np.sort(v) * np.argsort(v), [(5,)]), dtype="float32")
    found = kernel(V.astype("float32"))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.sort(V) * np.argsort(V), rtol=1e-6)


def test_batches_of_sorted_lines():
    lines = symad.vmap(symad.trace(lambda v: np.sort(v) * np.argmin(v), [(4,)]))
    np.testing.assert_allclose(lines(A), np.sort(A, axis=1) * np.argmin(A, axis=1)[:, None])


@pytest.mark.thorough
def test_a_sum_of_sorted_elements_is_certified():
    """The sum of the three largest of four is the sum without the least."""
    top = symad.trace(lambda v: np.sum(np.sort(v)[1:]), [(4,)])
    rest = symad.trace(lambda v: np.sum(v) - np.min(v), [(4,)])
    wrong = symad.trace(lambda v: np.sum(v) - np.max(v), [(4,)])
    assert symad.equal(top, wrong).status == "refuted"
    assert symad.equal(top, rest).status != "refuted"
    assert symad.check(symad.trace(lambda v: np.median(v) ** 3, [(2,)])).status != "refuted"
    assert symad.check(symad.trace(lambda v: v[np.argmax(v)] ** 3, [(3,)])).status == "tested"


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda v: np.sort(v[0]), "axis"),
        (lambda v: np.quantile(v, 1.5), r"q = 1\.5 is outside"),
        (lambda v: np.percentile(v, 101), r"np\.percentile: q = 101 is outside of \[0, 100\]"),
        (lambda v: np.quantile(v, v[0]), "numbers q"),
        (lambda v: np.percentile(v, v[0]), r"np\.percentile of traced values needs numbers q"),
        (lambda v: np.quantile(v, 0.5, method="lower"), "method='linear'"),
        (lambda v: np.digitize(v, [1, 0]), "ascend"),
        (lambda v: np.searchsorted(v, v, side="middle"), "'middle'"),
        (lambda v: np.gradient(v, v, v), "2 spacings for 1 axes"),
        (lambda v: np.gradient(v[:1]), "2 or more elements along axis 0, not 1"),
        (lambda v: np.gradient(v, edge_order=3), "edge_order=3"),
        (lambda v: np.convolve(v, v[:, None]), r"vector of known length, not shape \(5, 1\)"),
        (lambda v: np.convolve(v, v, mode="half"), "mode='half'"),
        (lambda v: np.interp(0.5, [0, 2, 1, 3, 4], v), "ascend"),
        (lambda v: np.interp(0.5, [0, 1], v), r"xp \(2,\) and fp \(5,\) need one shape"),
        (lambda v: np.block([[v], v]), "nested to one depth"),
        (lambda v: np.meshgrid(v, indexing="x"), "indexing='x'"),
        (lambda v: np.insert(v, [1, 2], 0.0), r"one position; use np\.concatenate"),
        (lambda v: np.insert(v, 9, 0.0), "position 9"),
        (lambda v: np.bincount(v), "needs minlength"),
        (lambda v: np.bincount([0, 1], v), r"positions \(2,\) and weights \(5,\)"),
        (lambda v: np.linalg.multi_dot([v, v, v]), "multi_dot takes matrices"),
        (lambda v: np.cov(v[:, None, None]), "one or two axes, not 3"),
    ],
)
def test_bad_input_is_told(f, message):
    with pytest.raises((TraceError, ShapeError), match=message):
        symad.trace(f, [(5,)])


def test_symbols_have_no_order():
    from sympy import symbols

    with pytest.raises(EvaluationError, match="order of symbols"):
        symad.trace(lambda v: np.sort(v), [(2,)])(np.array(symbols("x y"), dtype=object))
