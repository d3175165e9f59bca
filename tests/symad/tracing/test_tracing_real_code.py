"""NumPy code as people write it: filled arrays, masks, operators in place, distributions of SciPy."""

import threading

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

import symad
from symad.errors import ShapeError, TraceError
from symad.numeric import lower

rng = np.random.default_rng(16)


def fill_zeros(a):
    v = np.zeros(a.shape)
    v[0] = a[1] ** 2
    v[1:3] += a[:2] * 3
    return v


def fill_in_loops(a):
    table = np.zeros((3, len(a)))
    table[0] = 1.0
    for i in range(1, 3):
        for j in range(len(a)):
            table[i, j] = table[i - 1, j] * a[j] + i
    return table.T.sum(axis=1) * table[2].max() + np.exp(table).mean() + -table[1] @ a


def fill_others(a):
    v, w = np.empty(len(a)), np.full(a.shape, 2.0)
    v[:] = a
    w *= a
    w -= 1.0
    u = np.ones((2, len(a))) + 1
    u[1] = v * w
    return np.concatenate([u, [v], np.stack([w, v])]) / 2


def slices(a):
    table = np.zeros((3, 5))
    for k, row in enumerate(table):
        row[:] = a**k
        row[k:] += 1
    b = a * 1
    tail = b[2:]
    tail *= 3
    inner = tail[:2]
    inner -= a[0]
    head, pair = b[:4], np.zeros(2)
    first = pair[:1]
    pair[0] = a[1]
    first += a[2]
    b[3] = a[0] ** 2
    table[1, 1:] *= b[1:] + pair.sum() + head[3] + inner[1]
    return table @ b


def write_out(a):
    v = np.zeros(5)
    np.multiply(a, 2.0, out=v)
    np.add(v, a, out=v)
    w = a.copy()
    np.clip(w, -0.5, 0.5, out=w)
    np.sum(np.stack([v, w]), axis=0, out=v)
    return v


def in_place(a):
    b = a * 2
    c = b
    c += 1  # b is the same array
    c **= 2
    c /= b[0]
    s = a[0]
    t = s
    t *= 3  # numbers are values
    return b + s * t


def masks(a):
    v = np.zeros(a.shape)
    small, size = np.less_equal(np.abs(a), 0.6), np.abs(a)
    rest = ~small * (a > -0.9)
    v[small] = 0.5 * a[small] ** 2
    v[rest] = 0.6 * (size[rest] - 0.3) * np.sign(a)[rest]
    v[~(small | rest)] += 7.0
    return v


def reductions_of_masks(a):
    m = a > 0
    chosen = a[m]
    above = chosen[chosen > 0.3]
    means = [np.mean(a[m] ** 2), a[m].max(), np.min(a[~m]), np.prod(a[m] + 1)]
    return np.array([chosen.sum(), *means, above.sum(), chosen.size])


def positions(a):
    slope = np.abs(a) ** 1.5
    slope[np.flatnonzero(a < 0)] *= -1
    where = np.where(a > 0.2)
    slope[where] = np.sqrt(a[where])
    b = np.outer(a, a) * 1
    b[np.nonzero(b > 0)] += 1
    return slope + b.sum(axis=0)


def rows_of_masks(a):
    table = np.stack([a, a**2, a**3], axis=1)
    table[a > 0] = 2 * table[a > 0] + np.array([1.0, 2.0, 3.0])
    table[a < 0] = np.array([4.0, 5.0, 6.0])
    return table


def conditions(a):
    inside = (a > -0.5) * (a < 0.5)
    either = (a > 0.5) + inside
    return np.array([inside.sum(), either.sum()]) + np.where(inside, a, 0).sum() + (1 - either) @ a


def conversions(a):
    b = np.asarray(a, dtype=float)
    c = np.atleast_1d(np.array([a[0], a[1] * 2]))
    c[0] = 3 * c[1]
    if np.any(np.iscomplex(a)) or np.iscomplex(a[0]):
        return a * 1j
    assert np.isscalar(a) is False and np.isscalar(a[0]) and not np.iscomplexobj(a)
    with np.errstate(all="ignore"):
        b = b / np.maximum(np.abs(b), np.finfo(float).eps)
    return np.concatenate([b, c, np.array([[1.0, a[2]]])[0], np.where(np.iscomplex(a), 0, a)])


def vectorised(a):
    bend = np.vectorize(lambda x, y: np.sin(x) * y if y is not None else x)
    return bend(a, 2.0) + bend(a, a)


CASES = [
    fill_zeros, fill_in_loops, fill_others, slices, write_out, in_place, masks, reductions_of_masks,
    positions, rows_of_masks, conditions, conversions, vectorised,
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_values_and_slopes_are_those_of_numpy(f):
    x = np.array([0.31, -0.72, 0.55, -1.3, 0.94])
    along = rng.normal(size=5)
    graph = symad.trace(f, [(5,)])
    wanted = f(x.copy())
    for call in (graph, lower(graph), lower(graph, backend="c")):
        np.testing.assert_allclose(call(x), wanted, rtol=1e-13)
    moved = [f(x + s * along) for s in (1e-6, -1e-6)]
    slope = symad.pushforward(graph)(x, along)[1]
    np.testing.assert_allclose(slope, (moved[0] - moved[1]) / 2e-6, rtol=1e-6, atol=1e-7)


def refused(f, *shapes, match, error=TraceError):
    with pytest.raises(error, match=match):
        symad.trace(f, list(shapes))


def test_what_depends_on_data_names_the_line():
    def of_another_mask(a):
        b = a * 1
        b[a > 0] = a[a < 1]
        return b

    def counted(a):
        return np.arange(len(a[a > 0]))

    line = r"\(test_tracing_real_code.py, line \d+: "
    refused(of_another_mask, (3,), match=rf"to elements of another condition.*{line}b\[a > 0\] = a\[a < 1\]")
    refused(counted, (3,), match=rf"the length of elements that a condition chooses.*{line}.*np.where")
    refused(lambda a: a[a > 0] + np.arange(3.0), (3,), match="an operation, beside an array, of")
    refused(lambda a: np.sort(a[a > 0]), (3,), match="np.sort of the elements")
    refused(lambda a: a[a > 0], (3,), match=rf"{line}.*how many there are depends on data")


def test_a_branch_in_a_package_names_its_line():
    """The line of the library's own code, not the one that called symad."""
    links = pytest.importorskip("statsmodels.robust.norms")
    refused(links.AndrewWave().weights, (3,), match=r"norms\.py, line \d+: if np\.any\(small\):")


def test_memory_that_is_shared_is_refused():
    def column(a):
        table = np.zeros((3, 2))
        first = table.T
        first[0] = a
        return table

    def with_a_view(a):
        v = np.zeros(3)
        column = v.reshape(3, 1)
        v[1] = a[0]
        return column

    def part_in_place(a):
        tail = a.reshape(3, 1)
        tail *= 2
        return a

    def wider(a):
        b = a * 1
        b += np.ones((2, 3))
        return b

    refused(column, (3,), match="a reshaped or transposed form shares")
    refused(with_a_view, (3,), match="a reshaped or transposed form shares")
    refused(part_in_place, (3,), match=r"\*= of a traced value .*may be a view")
    refused(wider, (3,), match=r"y \+= x of a traced y of shape \(3,\).*\(2, 3\)", error=ShapeError)


def test_an_array_made_around_a_traced_function_is_not_filled_inside():
    def f(a):
        total = np.zeros(3)

        def inner(z):
            total[0] = z
            return z

        return symad.trace(inner, [()])(a[0])

    refused(f, (3,), match="belongs to the traced function f")


def test_numpy_is_as_before_after_tracing():
    names = ("asarray", "array", "zeros", "empty", "ones", "full", "isscalar")
    before = [getattr(np, name) for name in names] + [scipy.stats.rv_continuous.pdf, np.vectorize.__call__]
    seen = []

    def f(a):
        other = threading.Thread(target=lambda: seen.append(np.zeros(3)))
        other.start()
        other.join()
        assert type(np.zeros(3, dtype=int)) is np.ndarray
        raise KeyError("broken")

    with pytest.raises(KeyError):
        symad.trace(f, [(2,)])
    after = [getattr(np, name) for name in names] + [scipy.stats.rv_continuous.pdf, np.vectorize.__call__]
    assert before == after and type(seen[0]) is np.ndarray


def test_memory_of_a_filled_array_holds_no_number():
    kept = []

    def f(a):
        v = np.zeros(2)
        v[0] = a[0]
        kept.append(v)
        return v

    symad.trace(f, [(2,)])
    assert np.isnan(np.ndarray.view(kept[0], np.ndarray)).all()


# ---- SciPy --------------------------------------------------------------------------------------

CONTINUOUS = {
    "norm": (), "cauchy": (), "gamma": (2.5,), "beta": (2.0, 3.0), "t": (4.0,), "expon": (), "logistic": (),
    "laplace": (), "lognorm": (0.7,), "weibull_min": (1.7,), "uniform": (), "chi2": (3.0,), "gumbel_r": (),
    "pareto": (2.0,), "invgamma": (2.0,), "f": (3.0, 4.0),
}  # fmt: skip
QUANTILES = (
    "lognorm", "weibull_min", "norm", "cauchy", "expon", "logistic", "laplace", "gumbel_r", "pareto",
    "uniform",
)  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    """Inside and outside of the support, with location and scale traced as well."""
    distribution, shapes = getattr(scipy.stats, name), CONTINUOUS[name]
    x, q = np.array([-1.3, 0.2, 0.7, 2.0, 3.0]), np.array([0.0, 0.1, 0.5, 0.9, 1.0, 1.2])
    for method in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"):
        at = q if method in ("ppf", "isf") else x

        def call(*args, method=method, **options):
            return getattr(distribution, method)(*args, **options)

        if at is q and name not in QUANTILES:
            with pytest.raises(TraceError, match=rf"scipy.stats.{name}.(ppf|isf) .*no formula"):
                symad.trace(lambda v, call=call: call(v, *shapes), [at])
            continue
        graph = symad.trace(lambda v, m, s, call=call: call(v, *shapes, loc=m, scale=s), [at, (), ()])
        found = graph(at, 0.3, 1.7)
        np.testing.assert_allclose(found, call(at, *shapes, loc=0.3, scale=1.7), rtol=1e-11, err_msg=method)


DISCRETE = {"poisson": (2.2,), "binom": (5.0, 0.3), "nbinom": (2.5, 0.4), "geom": (0.3,), "bernoulli": (0.3,)}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    shapes = DISCRETE[name]
    distribution, k = getattr(scipy.stats, name), np.array([0.0, 1.0, 2.0, 3.5, -1.0])
    for method in ("pmf", "logpmf"):

        def call(*args, method=method):
            return getattr(distribution, method)(*args)

        graph = symad.trace(lambda v, *p, call=call: call(v, *p), [k, *shapes])
        np.testing.assert_allclose(graph(k, *shapes), call(k, *shapes), rtol=1e-11)


def test_frozen_distributions_and_their_scores():
    """d/dm Σ log N(x; m, s) = Σ (x − m)/s²."""
    x = rng.normal(size=4)
    graph = symad.trace(lambda m, s: scipy.stats.norm(loc=m, scale=s).logpdf(x).sum(), [(), ()])
    score = symad.gradient(graph)(0.4, 1.3)
    expected = [(x - 0.4).sum() / 1.69, ((x - 0.4) ** 2 / 1.3**3 - 1 / 1.3).sum()]
    np.testing.assert_allclose(score, expected, rtol=1e-12)


FUNCTIONS = ["chdtr", "chdtrc", "gdtr", "gdtrc", "fdtr", "fdtrc", "stdtr", "pdtr", "pdtrc", "cosm1"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_distribution_functions_of_scipy_special(name):
    function = getattr(scipy.special, name)
    points = [np.array([1.5, 2.0, 3.0]), np.array([0.4, 2.5, 1.1]), np.array([0.7, 1.2, 2.2])][: function.nin]
    graph = symad.trace(lambda *v: function(*v), points)
    np.testing.assert_allclose(graph(*points), function(*points), rtol=1e-12)


def test_polygamma_and_zeta_of_scipy():
    x = np.array([0.7, 1.9, 4.2])
    for f in (lambda v: scipy.special.polygamma(2, v), lambda v: scipy.special.zeta(3, v)):
        np.testing.assert_allclose(symad.trace(f, [(3,)])(x), f(x), rtol=1e-13)
    slope = symad.gradient(symad.trace(lambda v: scipy.special.polygamma(1, v).sum(), [(3,)]))(x)
    np.testing.assert_allclose(slope, scipy.special.polygamma(2, x), rtol=1e-13)


def test_the_rosenbrock_function_of_scipy():
    """Value, gradient and Hessian as SciPy programs them."""
    value = symad.trace(scipy.optimize.rosen, [(4,)])
    for kind, function in (("gradient", scipy.optimize.rosen_der), ("hessian", scipy.optimize.rosen_hess)):
        certificate = symad.verify(value, **{kind: symad.trace(function, [(4,)])})
        assert certificate.status in ("proved", "tested"), certificate


def test_arrays_made_empty_are_filled_in_place():
    def filled(x):
        squares, rest = np.empty_like(x), np.empty_like(x, shape=(2,))
        np.multiply(x, x, out=squares)
        np.exp(squares, out=squares)
        rest[0], rest[1] = x[0], 2 * x[1]
        return squares.sum() * rest

    x = np.array([0.3, 1.2, -0.7])
    graph = symad.trace(filled, [(3,)])
    np.testing.assert_allclose(graph(x), filled(x))
