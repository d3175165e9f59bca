"""SymPy's own tests of lambdify, run with `lower` in its place: all pass except those of this table.

`lower` refuses only three kinds of calls: complex numbers; other modules and printers, with all calls whose
values are text or expressions; and expressions without a meaning for arrays of numbers. The last two kinds of
the table are no refusals: `lower` computes where lambdify raises an error, or returns the same numbers in
another form.
"""

import inspect
import math

import numpy as np
import pytest
import sympy as sp
from sympy.utilities.tests import test_lambdify as theirs

from symad.errors import SymadError
from symad.numeric import lower

COMPLEX = "complex numbers"
MODULES = "other modules and printers"
TEXT = "text: expressions and arguments as text, docstrings, line caches, the words of the code"
SYMBOLS = "expressions as values and results (a graph takes them)"
MEANING = "functions without a meaning; arguments without a declared shape or order"
COMPUTED = "lambdify raises an error, lower computes"
FORM = "the same numbers in another form"

TABLE = {
    COMPLEX: """cmath_acos cmath_acosh cmath_asin cmath_asinh cmath_atan cmath_atanh cmath_complex_identities
        cmath_cos cmath_cosh cmath_log cmath_sin cmath_sinh cmath_sqrt cmath_tan cmath_tanh imag_real
        issue9474 issue_17898 scipy_fns scipy_polys""",
    MODULES: """atoms cupy_array_arg cupy_array_arg_using_numpy cupy_dotproduct issue_12173 issue_12984
        issue_14941 issue_20070 issue_9334 issue_9871 jax_array_arg jax_array_arg_using_numpy jax_dotproduct
        lambdify_Derivative_zeta matrix mpmath_lambda mpmath_precision namespace_order number_precision
        numexpr_printer numexpr_userfunctions numpy_numexpr numpy_old_matrix own_namespace_1 own_namespace_2
        sinc_mpmath special_printers sym_integral sympy_lambda tensorflow_array_arg tensorflow_basic_math
        tensorflow_complexes tensorflow_logical_operations tensorflow_multi_max tensorflow_multi_min
        tensorflow_piecewise tensorflow_placeholders tensorflow_relational tensorflow_variables""",
    TEXT: """lambdify_docstring lambdify_docstring_size_limit_matrix lambdify_docstring_size_limit_nested_expr
        lambdify_docstring_size_limit_simple_symbol lambdify_inspect lambdify_linecache str_args""",
    SYMBOLS: "dummification issue_15827 sym_list_args sym_single_arg",
    MEANING: "curly_matrix_symbol deprecated_set lambdify_Derivative_custom_printer numpy_matrix",
    COMPUTED: "imps vector_discontinuous",
    FORM: "issue_13881 lambdify_imps scipy_sparse_matrix",
}
KIND = {f"test_{name}": kind for kind, names in TABLE.items() for name in names.split()}
NAMES = sorted(name for name in vars(theirs) if name.startswith("test_"))
OURS = (None, math, "math", "numpy", "scipy")
"""The modules for which `lower` stands in."""


class OtherModuleError(Exception):
    """lambdify was asked for code of another module, or by another printer."""


REFUSED = (OtherModuleError, SymadError, TypeError, ValueError)
REFUSALS = {
    COMPLEX: (*REFUSED, AssertionError),  # NaN where the value is complex
    MODULES: (Exception, pytest.skip.Exception),  # absent libraries are skipped; others read our code in vain
    TEXT: (*REFUSED, AssertionError),
    SYMBOLS: REFUSED,
    MEANING: REFUSED,
    FORM: (ValueError, AssertionError),
}


class Number(float):
    """A float that equals SymPy's integers, as an int does: lambdify returns an int for one."""

    def __eq__(self, other):
        return float(self) == int(other) if isinstance(other, sp.Integer) else super().__eq__(other)

    __hash__ = float.__hash__


def as_given(expression, result):
    """The result, with lists where the expression has them: `lower` returns tuples."""
    if isinstance(expression, (list, tuple)) and isinstance(result, tuple):
        return type(expression)(map(as_given, expression, result))
    return Number(result) if type(result) in (float, np.float64) else result


def stand_in(args, expr, modules=None, printer=None, **style):
    """lambdify by `lower`; how names are written and subexpressions shared is no part of the result."""
    asked = modules if isinstance(modules, (list, tuple)) else [modules]
    other = [m for m in asked if not any(m is ours or m == ours for ours in OURS)]
    if other or printer is not None:
        raise OtherModuleError(other or printer)
    kernel = lower(expr, inputs=list(args) if isinstance(args, tuple) else args)

    def function(*values):
        return as_given(expr, kernel(*values))

    function.__doc__, function.__wrapped__ = kernel.__doc__, kernel.__wrapped__
    return function


@pytest.fixture
def by_lower(monkeypatch):
    """Their module, with the stand-in."""
    monkeypatch.setattr(theirs, "lambdify", stand_in)


@pytest.mark.parametrize("name", NAMES)
def test_sympys_test_of_lambdify(name, by_lower, monkeypatch):
    kind = KIND.get(name)
    if kind == COMPUTED:
        monkeypatch.setattr(theirs, "raises", lambda error, function: function())
    if kind in (None, COMPUTED):
        return vars(theirs)[name]()
    with pytest.raises(REFUSALS[kind]):
        vars(theirs)[name]()


def test_the_table_names_tests_that_exist():
    assert KIND.keys() <= set(NAMES)
    assert sum(len(names.split()) for names in TABLE.values()) == len(KIND)


def test_what_has_another_form_has_the_same_numbers(by_lower):
    column = sp.MatrixSymbol("X", 3, 1)
    square = theirs.lambdify(column, column * column.T, "numpy")  # lambdify's is 14, the dot product
    np.testing.assert_array_equal(square(np.array([1, 2, 3])), [[1, 2, 3], [2, 4, 6], [3, 6, 9]])
    x, y = theirs.x, theirs.y
    assert theirs.lambdify(x, {x: x + 100})(3) == {"x": 103}  # lambdify's key is 3, here it is a label
    dense = theirs.lambdify((x, y), sp.SparseMatrix([[x, 0], [0, y]]), "scipy")(1, 2)
    np.testing.assert_array_equal(dense, [[1, 0], [0, 2]])


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["test_scipy_fns", "test_scipy_polys"])
def test_special_functions_over_the_real_numbers(name, by_lower):
    """Their tests at complex points, at the points' real parts; positive, for what is complex below 0."""
    text = inspect.getsource(vars(theirs)[name])
    real = text.replace("1j*", "0*").replace("uniform(-10, 10)", "uniform(0.1, 10)")
    assert real.count("0*") - text.count("0*") == text.count("1j*") > 0
    space = dict(vars(theirs))
    # The text is the installed SymPy's own test, without its complex numbers.
    exec(compile(real, theirs.__file__, "exec"), space)
    space[name]()
