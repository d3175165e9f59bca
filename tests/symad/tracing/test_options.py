"""Options of NumPy's functions: each is used, or cannot change the result, or is refused by name.

The tests go through the signatures of all functions that are traced. Every option that changes the result has
a case below, whose expected values are NumPy's.
"""

import ast
import inspect
import textwrap
import warnings

import numpy as np
import pytest
import sympy

import symad
from symad.errors import TraceError
from symad.numeric import lower
from symad.tracing.from_numpy.options import LAYOUT as ORDERS
from symad.tracing.from_numpy.options import STORAGE, bound, signature_of
from symad.tracing.from_numpy.registry import LAYOUT
from symad.tracing.proxies.array_protocol import FUNCTIONS, UFUNCS

rng = np.random.default_rng(8)
A = rng.normal(size=(3, 4))
B = rng.normal(size=(3, 4))
S = A @ A.T + np.eye(3)
V = rng.normal(size=3)
U = rng.normal(size=3)
C = rng.normal(size=(2, 3, 4))
G = np.where(A > 1, np.nan, A)
M = A > 0
SOME = np.arange(12).reshape(3, 4) % 5 > 0

CASES = [
    (np.reshape, (A, (2, 6)), {"order": "F"}), (np.reshape, (C, (4, -1)), {"order": "F"}),
    (np.reshape, (A,), {"shape": (4, 3)}), (np.ravel, (C,), {"order": "F"}), (np.ravel, (A,), {"order": "A"}),
    (np.transpose, (C,), {"axes": (1, 2, 0)}), (np.size, (C,), {"axis": 1}),
    (np.squeeze, (C[:1],), {"axis": 0}),
    (np.expand_dims, (A,), {"axis": (0, 2)}), (np.full_like, (A, 2.0), {"shape": (2, 2)}),
    (np.zeros_like, (A,), {"shape": (2,)}), (np.ones_like, (A,), {"shape": (2,)}),
    (np.select, ([M, B > 0], [A, B]), {"default": 7}), (np.clip, (A,), {"a_min": -0.5, "a_max": 0.5}),
    (np.clip, (A,), {"min": -0.5, "max": 0.5}),
    *[(f, (A,), {"axis": 1, "keepdims": True, "initial": 0.5, "where": M})
      for f in (np.sum, np.prod, np.max, np.min, np.amax, np.amin, np.nansum)],
    *[(f, (A,), {"axis": 0, "keepdims": True, "where": B < 1}) for f in (np.mean, np.nanmean)],
    *[(f, (A,), {"axis": 0, "where": SOME, "ddof": 1, "keepdims": True}) for f in (np.var, np.std)],
    *[(f, (A,), {"axis": 1, "mean": A.mean(axis=1, keepdims=True), "correction": 1})
      for f in (np.var, np.std)],
    *[(f, (G,), {"axis": 1, "ddof": 1, "keepdims": True}) for f in (np.nanvar, np.nanstd)],
    *[(f, (G,), {"axis": 1, "keepdims": True}) for f in (np.nanmax, np.nanmin, np.nanprod)],
    (np.nan_to_num, (G,), {"nan": 1.0, "posinf": 2.0, "neginf": -2.0}),
    (np.average, (A,), {"axis": 1, "weights": B**2, "keepdims": True, "returned": True}),
    (np.average, (A,), {"axis": 0, "weights": V**2}),
    (np.average, (C,), {"axis": (2, 0), "weights": rng.uniform(size=(4, 2))}),
    (np.ptp, (A,), {"axis": 0, "keepdims": True}),
    *[(f, (A > 0,), {"axis": 0, "keepdims": True, "where": B < 0}) for f in (np.all, np.any)],
    (np.count_nonzero, (A,), {"axis": 1, "keepdims": True}),
    *[(f, (A,), {"axis": 0}) for f in (np.cumsum, np.cumprod)],
    *[(f, (A,), {"axis": 1, "include_initial": True})
      for f in map(np.__dict__.get, ("cumulative_sum", "cumulative_prod")) if f],
    (np.diff, (A,), {"n": 2, "axis": 0, "prepend": 0.0, "append": B[:2]}),
    (np.concatenate, ([A, B],), {"axis": 1}), (np.stack, ([A, B],), {"axis": 1}),
    (np.append, (A, B), {"axis": 0}),
    (np.split, (A, 2), {"axis": 1}), (np.array_split, (A, 3), {"axis": 1}),
    (np.repeat, (A, [1, 0, 2]), {"axis": 0}), (np.repeat, (V, np.array([1, 0, 2])), {}),
    (np.roll, (A, 1), {"axis": 1}), (np.flip, (A,), {"axis": 1}),
    (np.pad, (A, ((1, 2), (0, 3))), {"mode": "constant", "constant_values": 5}),
    (np.pad, (A, {0: 1}), {"mode": "edge"}),
    (np.pad, (A, {-1: (1, 2)}), {"mode": "reflect", "reflect_type": "even"}),
    (np.take, (A, [-1, 5, 2]), {"axis": 1, "mode": "wrap"}),
    (np.take, (A, [-1, 5, 2]), {"axis": 1, "mode": "clip"}),
    (np.take_along_axis, (A, np.argsort(A, axis=0)), {"axis": 0}),
    *[(f, (C,), {"offset": 1, "axis1": 1, "axis2": 2}) for f in (np.diagonal, np.trace)],
    (np.diag, (V,), {"k": 1}), (np.diagflat, (V,), {"k": -1}), (np.tril, (A,), {"k": 1}),
    (np.triu, (A,), {"k": 1}),
    (np.meshgrid, (V, U), {"sparse": True, "indexing": "ij"}),
    (np.linspace, (V, U), {"num": 4, "endpoint": False, "retstep": True, "axis": 1}),
    (np.rot90, (C,), {"k": 3, "axes": (1, 2)}), (np.delete, (A, 1), {"axis": 1}),
    (np.insert, (A, 1, 5), {"axis": 0}),
    (np.bincount, (np.array([0, 2, 2]),), {"weights": V, "minlength": 5}),
    (np.argsort, (A,), {"axis": 0}), (np.sort, (A,), {"axis": 0}),
    *[(f, (A,), {"axis": 0, "keepdims": True}) for f in (np.argmax, np.argmin, np.median)],
    *[(f, (A, 0.3), {"axis": 0, "method": "linear", "keepdims": True}) for f in (np.quantile, np.percentile)],
    (np.searchsorted, (np.sort(V), U), {"side": "right"}),
    (np.searchsorted, (V, U), {"sorter": np.argsort(V)}),
    (np.digitize, (U, np.array([-1.0, 0, 1])), {"right": True}),
    (np.ediff1d, (V,), {"to_end": [1.0], "to_begin": 0.0}),
    *[(f, (A,), {"x": V, "axis": 0}) for f in map(np.__dict__.get, ("trapezoid",)) if f],
    *[(f, (A,), {"dx": 0.5}) for f in map(np.__dict__.get, ("trapezoid",)) if f],
    (np.gradient, (A,), {"axis": 1, "edge_order": 2}), (np.convolve, (V, U), {"mode": "same"}),
    (np.correlate, (V, U), {"mode": "full"}), (np.vander, (V,), {"N": 2, "increasing": True}),
    (np.interp, (V, np.sort(U), V), {"left": 1.0, "right": 2.0}),
    (np.interp, (5 * V, [0.9, -0.2, 0.3], V), {"period": 1.5}),
    (np.tensordot, (A, B), {"axes": ([0], [0])}), (np.linalg.tensordot, (A, B), {"axes": ([0], [0])}),
    (np.einsum, (A, [0, 1], B, [0, 1], [1]), {}),
    (np.einsum, (C, [0, Ellipsis], V[:2], [0]), {"optimize": True}),
    (np.cross, (A[:, :3].T, A[:, :3]), {"axisa": 0, "axisb": 1, "axisc": 0}), (np.cross, (A, B), {"axis": 0}),
    (np.linalg.cross, (A, B), {"axis": 0}), (np.linalg.cholesky, (S,), {"upper": True}),
    *[(f, (S + np.triu(B[:, :3]),), {"UPLO": "U"}) for f in (np.linalg.eigvalsh,)],
    (np.linalg.svd, (S,), {"compute_uv": False, "hermitian": True}),
    (np.linalg.svd, (A,), {"compute_uv": False, "full_matrices": False}),
    (np.linalg.cond, (S,), {"p": 1}), *[(np.linalg.norm, (A,), {"ord": p, "axis": 1, "keepdims": True})
                                        for p in (0, 1, 3, -np.inf)],
    (np.linalg.norm, (np.array([1.0, 0, 2]),), {"ord": 0}),
    *[(f, (A,), {"axis": 0, "keepdims": True, "ord": 0})
      for f in [getattr(np.linalg, "vector_norm", None)] if f],
    *[(f, (C,), {"keepdims": True, "ord": 1}) for f in [getattr(np.linalg, "matrix_norm", None)] if f],
    *[(f, (C,), {"offset": 1}) for f in (np.linalg.diagonal, np.linalg.trace)],
    (np.cov, (A,), {"y": B, "rowvar": True, "bias": True}), (np.cov, (A,), {"ddof": 2, "rowvar": False}),
    (np.cov, (A,), {"fweights": [1, 2, 3, 1], "aweights": [0.5, 1, 2, 1]}),
    (np.cov, (A,), {"fweights": [1, 2, 3, 1]}),
    (np.corrcoef, (A,), {"y": B, "rowvar": False}), (np.unstack, (C,), {"axis": 1}),
    (np.hsplit, (A, 2), {}), (np.vsplit, (A, 3), {}), (np.dsplit, (C, 2), {}),
    (np.matrix_transpose, (C,), {}),
    (np.swapaxes, (A, 0, 0), {}),
    (np.add.reduce, (A,), {"axis": 1, "keepdims": True, "initial": 2.0, "where": M}),
    (np.maximum.reduce, (A,), {"axis": None, "initial": 5.0}),
    (np.logaddexp.reduce, (A,), {"keepdims": True}),
    (np.multiply.accumulate, (A,), {"axis": 1}), (np.maximum.accumulate, (A,), {"axis": 1}),
    (np.round, (3 * A,), {"decimals": 1}), (np.around, (30 * A,), {"decimals": -1}),
    *[(f, (A, A + 1e-3 * B), {"rtol": 1e-3, "atol": 1e-4}) for f in (np.isclose, np.allclose)],
    *[(f, (G, G + 0), {"equal_nan": True}) for f in (np.isclose, np.allclose, np.array_equal)],
    (np.isclose, (np.array([np.inf, np.inf, np.nan, 1.0]), np.array([np.inf, 1.0, np.nan, 1.0])), {}),
    *[(f, (np.array([np.inf, -np.inf, np.nan, 1.0]),), {})
      for f in (np.isposinf, np.isneginf, np.isinf, np.isfinite, np.isnan, np.nan_to_num)],
    (np.rint, (np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994,
        4503599627370497.5, -1e-300, np.inf]),), {}),
    (np.piecewise, (A, [M, B > 1], [np.sin, 3.0, lambda v: v**2]), {}),
    (np.piecewise, (V, [V > 0], [lambda v: -v]), {}),
    (np.polyadd, (V, A[0]), {}), (np.polysub, (V, A[0]), {}), (np.polymul, (V, A[0]), {}),
    (np.poly, (V,), {}),
    (np.polyder, (A[0],), {"m": 2}), (np.polyint, (V,), {"m": 2, "k": [1.0, 2.0]}),
    (np.polyint, (V,), {"m": 1}),
    (np.polyfit, ([0.5, 1.0, 4.0, 7.0], A[0]), {"deg": 2, "w": [1.0, 2.0, 1.0, 3.0]}),
    (np.polyval, (V, A), {}),
    (np.vecdot, (A, B), {"axis": 0, "keepdims": True}), (np.multiply.outer, (V, U), {}),
]  # fmt: skip

KNOWN = (bool, int, str, tuple, type(None), list)
"""Types of arguments that stay as they are; arrays of floats become inputs."""


def is_value(v):
    return isinstance(v, np.ndarray) and v.dtype == float


def split(args, options):
    """The arrays among the arguments, and a function of them."""
    flat = [v for a in args for v in (a if isinstance(a, list) else [a])]
    arrays = [v for v in flat if is_value(v)]

    def fill(values):
        rest = iter(values)

        def one(a):
            return [one(v) for v in a] if isinstance(a, list) else next(rest) if is_value(a) else a

        return [one(a) for a in args]

    return arrays, lambda function: lambda *values: function(*fill(values), **options)


def as_list(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__} {' '.join(c[2])}")
def test_values_are_those_of_numpy(case):
    function, args, options = case
    if function is np.pad and isinstance(args[1], dict) and np.lib.NumpyVersion(np.__version__) < "2.3.0":
        pytest.skip("NumPy pads axes by name since 2.3")
    arrays, calling = split(args, options)
    graph = symad.trace(calling(function), arrays)
    wanted = as_list(function(*args, **options))
    for call in (graph, lower(graph)):
        found = as_list(call(*arrays))
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def names_read(answer):
    """The parameters of an answer, without those that are its operands; and the names that its code reads."""
    parameters = inspect.signature(answer).parameters
    tree = ast.parse(textwrap.dedent(inspect.getsource(answer)))
    loads = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return parameters, loads


@pytest.mark.thorough
def test_every_parameter_of_an_answer_is_read():
    unread = {
        f"{answer.__name__}({name})"
        for answer in {getattr(answer, "func", answer) for answer in FUNCTIONS.values()}  # of a partial, too
        for name in names_read(answer)[0]
        if name not in names_read(answer)[1]
    }
    never = {"full_like(a)", "iscomplexobj(x)", "isrealobj(x)", "result_type(arrays_and_dtypes)"}
    assert unread - never - {"einsum(optimize)"} == set()


class Odd:
    """A value that is no default of any option."""


def options_of(function, answer):
    given = signature_of(function)
    for name, parameter in given.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        yield name, parameter, name in inspect.signature(answer).parameters


@pytest.mark.skipif(
    signature_of(np.concatenate) is None, reason="NumPy 2.4 tells the signatures of all functions"
)
def test_every_option_is_read_or_refused_or_storage():
    for function, answer in FUNCTIONS.items():
        required = [
            p for p in signature_of(function).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]  # fmt: skip
        for name, parameter, read in options_of(function, answer):
            if read or name in STORAGE or parameter in required:
                assert read or name in STORAGE or parameter.kind is parameter.POSITIONAL_ONLY, (
                    function,
                    name,
                )
                continue
            assert not (name == "order" and function not in LAYOUT and parameter.default in ORDERS[:4]), (
                function
            )
            with pytest.raises(TraceError, match=rf"{name}=Odd"):
                bound(function, answer, "f", (0,) * len(required), {name: Odd()}, function in LAYOUT)


@pytest.mark.skipif(
    signature_of(np.concatenate) is None, reason="NumPy 2.4 tells the signatures of all functions"
)
def test_every_option_that_is_read_has_a_case():
    tried = {(function, name) for function, _, options in CASES for name in options}
    missing = {
        f"{function.__name__}({name})"
        for function, answer in FUNCTIONS.items()
        for name, parameter, read in options_of(function, answer)
        if read and parameter.default is not parameter.empty and (function, name) not in tried
    }
    # the condition alone is refused; NumPy has eigh's vectors up to signs, and nothing in what is empty
    assert missing - {"where(x)", "where(y)", "eigh(UPLO)", "empty_like(shape)"} == set()


def refused(f, *shapes, match):
    with pytest.raises(TraceError, match=match):
        symad.trace(f, list(shapes))


@pytest.mark.parametrize("name", ["sum", "mean", "var", "prod", "cumsum", "concatenate", "einsum"])
def test_integer_types_are_refused(name):
    function = getattr(np, name)
    first = {"concatenate": lambda a: [a, a], "einsum": lambda a: a}.get(name, lambda a: a)
    head = ("ij->j",) if name == "einsum" else ()
    for dtype in (int, "int32", bool, np.complex128):
        refused(
            lambda a, d=dtype: function(*head, first(a), dtype=d),
            (3, 4),
            match=rf"np\.{name}\(\.\.\., dtype=",
        )
    wanted = function(*head, first(A), dtype=float)
    assert np.allclose(
        symad.trace(lambda a: function(*head, first(a), dtype=float), [A])(A), wanted, rtol=1e-14
    )


def test_positions_and_methods_read_the_same_options():
    refused(lambda a: np.sum(a, 0, int), (3, 4), match="dtype=")
    refused(lambda a: a.sum(0, int), (3, 4), match="dtype=")
    refused(lambda a: a.reshape(2, 6, order="X"), (3, 4), match="order='X'")
    refused(lambda a: np.sort(a, order="x"), (3,), match="order='x'")
    refused(lambda a: np.sort(a, order="C"), (3,), match="order='C'")
    graph = symad.trace(
        lambda a: [
            a.reshape(2, 6, order="F"),
            a.flatten("F"),
            a.ravel(),
            a.transpose(1, 0),
            a.sum(1, keepdims=True),
        ],
        [A],
    )
    wanted = [A.reshape(2, 6, order="F"), A.flatten("F"), A.ravel(), A.T, A.sum(1, keepdims=True)]
    for a, b in zip(graph(A), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


UFUNC_OPTIONS = {
    "axes": [(0, 1)] * 3,
    "axis": 0,
    "keepdims": True,
    "dtype": int,
    "signature": "dd->d",
    "where": M,
}


@pytest.mark.parametrize("option", UFUNC_OPTIONS)
def test_options_of_ufuncs_are_refused(option):
    """All ufuncs; those with a signature of their own (matmul, vecdot, ...) as well."""
    more = [getattr(np, name) for name in ("matmul", "vecdot", "matvec", "vecmat", "logical_and", "divmod")]
    for ufunc in {*(u for u in UFUNCS if isinstance(u, np.ufunc)), *more}:
        if ufunc is np.vecdot and option in ("axis", "keepdims"):
            continue
        args = (1.0,) * (ufunc.nin - 1)
        with pytest.raises((TraceError, TypeError), match=option):  # NumPy itself refuses some
            symad.trace(lambda a, u=ufunc, r=args: u(a, *r, **{option: UFUNC_OPTIONS[option]}), [(3, 4)])


def test_options_of_reductions_of_ufuncs_are_refused():
    refused(lambda a: np.add.reduce(a, dtype=int), (3, 4), match="dtype")
    refused(lambda a: np.add.accumulate(a, dtype=int), (3, 4), match="dtype")
    refused(lambda a: np.logaddexp.reduce(a, where=M), (3, 4), match="where")
    refused(lambda a: np.logaddexp.reduce(a, initial=1.0), (3, 4), match="initial")
    refused(lambda a: np.logical_and.reduce(a > 0, initial=True), (3, 4), match="initial")
    refused(lambda a: np.multiply.outer(a, a, dtype=int), (3,), match="dtype")
    refused(lambda a: np.maximum.reduce(a, where=M), (3, 4), match="initial=")


def test_derivatives_of_deviations_of_equal_elements_are_zero():
    for shape, f in (((3, 1), lambda a: np.std(a, axis=1).sum()), ((4,), np.std), ((2, 2), np.nanstd)):
        slope = symad.gradient(symad.trace(f, [shape]))
        for call in (slope, lower(slope)):
            assert np.array_equal(call(np.full(shape, 1.5)), np.zeros(shape))
    values, graph = np.array([1.0, 2.0, 4.0]), symad.trace(np.std, [(3,)])
    by_hand = (values - values.mean()) / (3 * values.std())
    np.testing.assert_allclose(symad.gradient(graph)(values), by_hand, rtol=1e-14)


def test_derivatives_of_sums_of_chosen_elements():
    graph = symad.trace(lambda a: np.sum(a**2, where=M) + np.max(a, initial=-1.0, where=M), [A])
    wanted = np.where(M, 2 * A, 0) + (np.max(A) == A)
    assert np.array_equal(symad.gradient(graph)(A), wanted)


def test_common_calls_bind_no_signature(monkeypatch):
    """Binding takes longer than all else that tracing such a call does."""

    def f(x, y):
        chosen = np.where(y > 0, y, 0.0) if signature_of(np.where) else y  # has one since NumPy 2.4
        return np.sum(x, axis=0) + np.max(x) + np.mean(x, 0, keepdims=True) + chosen

    def refused(*args, **options):
        raise AssertionError("a signature was bound")

    inputs = [sympy.MatrixSymbol("x", 2, 3), sympy.MatrixSymbol("y", 1, 3)]
    symad.trace(f, inputs)
    monkeypatch.setattr("symad.tracing.run_on_proxies._parameter_names", lambda f, inputs: ["x", "y"])
    monkeypatch.setattr("inspect.Signature.bind", refused)
    symad.trace(f, inputs)


@pytest.mark.parametrize("function", [np.var, np.std, np.nanvar, np.cov])
@pytest.mark.parametrize(("length", "ddof"), [(0, 0), (0, 1), (1, 1), (1, 2), (2, 3), (3, 1)])
def test_variances_of_fewer_elements_than_degrees_of_freedom(function, length, ddof) -> None:
    a = np.arange(1.0, 1 + length)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = function(a, ddof=ddof)
    for count in (length, sympy.Symbol("n", integer=True)):
        if count is length or length > 0:  # a count that is a symbol is taken to be 1 or more
            f = symad.trace(lambda u: function(u, ddof=ddof), [(count,)])
            np.testing.assert_array_equal(f(a), right)
