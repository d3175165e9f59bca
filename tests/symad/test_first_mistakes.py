"""The most common mistakes of a first hour: each message names what was given, and says what to do."""

import functools
from collections.abc import Callable
from operator import attrgetter as of
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
import symad.numeric
from symad import functions as F
from symad.cli.parser import make_parser
from symad.core import elsewhere
from symad.display.grades import Grade
from symad.numeric import lower
from symad.numeric.lowering import BACKENDS

x, y = sp.symbols("x y", real=True)
z, n = sp.Symbol("z"), sp.Symbol("n", integer=True, positive=True)
f = x * y
A, v = sp.MatrixSymbol("A", 3, 3), sp.MatrixSymbol("v", 3, 1)
rng = np.random.default_rng(0)
total = symad.trace(lambda a: a.sum(), [(3,)])
frame = pytest.importorskip("pandas").DataFrame({"u": [1.0, 2.0], "v": [True, False], "w": ["a", "b"]})


def traced(function: Callable[..., Any], *shapes: tuple[int, ...]) -> symad.Graph:
    return symad.trace(function, list(shapes or [(4,)]))


SYMPY: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "a name for a symbol": (lambda: symad.gradient(f, "q"), ("'q'", "give q itself")),
    "a number for a symbol": (lambda: symad.gradient(f, 5), ("5 is not a Symbol",)),
    "an input twice": (lambda: symad.gradient(f, [x, x]), ("wrt=[x, x]", "name each once")),
    "text for a formula": (lambda: symad.gradient("x*y"), ("'x*y' of type str", "SymPy objects")),
    "the gradient of a vector": (lambda: symad.gradient(A * v), ("shape (3, 1)", "use jacobian")),
    "an unknown mode": (lambda: symad.gradient(f, mode="backward"), ("'backward'", "'reverse', 'forward'")),
    "an unknown Hessian": (lambda: symad.hessian(f, mode="fwd"), ("'fwd'", "'forward-over-reverse'")),
    "the Hessian of a vector": (lambda: symad.hessian(sp.Matrix([x, y])), ("(2, 1)", "use jacobian")),
    "the imaginary unit": (lambda: symad.gradient(sp.I * x), ("imaginary unit I", "real numbers")),
    "a complex symbol": (
        lambda: symad.gradient(sp.Symbol("z", complex=True) ** 2),
        ("the symbol z", "Symbol(name, real=True)"),
    ),
    "a backend with a capital": (lambda: lower(f, backend="Numpy"), ("'Numpy'", "did you mean 'numpy'?")),
    "modules of lambdify": (lambda: lower(f, modules="numpy"), ("modules= is backend= here",)),
    "a kernel for a graph": (lambda: symad.gradient(lower(f)), ("generated code", "pass its graph")),
    "a causal mask of PyTorch": (
        lambda: F.attention(np.eye(2), np.eye(2), np.eye(2), is_causal=True),
        ("is_causal= is causal= here",),
    ),
    "a missing input": (lambda: lower(f, inputs=[x]), ("depends on y", "inputs=['x']")),
    "a missing value": (lambda: lower(f)(1.0), ("takes 2 values (x, y)", "1 was given; missing: y")),
    "too many values": (lambda: lower(f)(1.0, 2.0, 3.0), ("takes 2 values (x, y)", "3 were given")),
    "a wrong keyword": (lambda: lower(f)(x=1.0, z=2.0), ("(x, y)", "'z' is none of them")),
    "one value, not two": (lambda: lower(x**2)(1.0, 2.0), ("takes 1 value (x)", "2 were given")),
    "text in a dual number": (lambda: symad.Dual("a", 1), ("made of numbers, not of 'a'",)),
    "a tangent that is None": (lambda: symad.Dual(1.0, None), ("made of numbers, not of None",)),
    "lists in a dual number": (lambda: symad.Dual([1.0, 2.0], [1, 0]), ("[1.0, 2.0]: give an array",)),
    "a complex value": (lambda: lower(f)(1j, 2.0), ("x must hold real numbers, not 1j",)),
    "text as a value": (lambda: lower(f)("a", 2.0), ("x must hold real numbers, not 'a'",)),
    "no value": (lambda: lower(f)(None, 2.0), ("x must hold real numbers, not None",)),
    "text in a list": (lambda: lower(total)([1, 2, "c"]), ("a must hold real numbers, not [1, 2, 'c']",)),
    "a wrong shape": (lambda: lower(total)(np.ones(4)), ("a must have shape (3,), not (4,)",)),
    "rows of two lengths": (lambda: lower(total)([[1, 2], [3]]), ("a was given nested lists", "array")),
    "arguments for a backend": (lambda: lower(f, [x, y]), ("backend=[x, y]", "lower(f, inputs=[x, y])")),
    "an unknown backend": (
        lambda: lower(f, backend="fast"),
        ("'fast'", "'numpy', 'c', 'runs', 'cupy'", "'runs' is for large scalar functions"),
    ),
    "a type of backend runs": (lambda: lower(f, "runs", "float32"), ("(for large scalar functions)",)),
    "CUDA for a backend": (lambda: lower(f, backend="cuda"), ("'cuda'", "backend='cupy' runs on a GPU")),
    "JAX for a backend": (lambda: lower(f, backend="jax"), ("'jax'", "symad.jax makes functions")),
    "PyTorch for a backend": (lambda: lower(f, "torch"), ("'torch'", "symad.torch.as_function")),
    "an integer type": (lambda: lower(f, dtype="int32"), ("'int32'", "'float64', 'float32'")),
    "lower of symad": (lambda: symad.lower, ("no attribute 'lower'", "it is symad.numeric.lower")),
    "a function of NumPy": (lambda: symad.sin, ("symad reads numpy.sin and sympy.sin",)),
    "a class of SymPy": (lambda: symad.Matrix, ("symad reads sympy.Matrix",)),
    "a function of symad.functions": (lambda: symad.softmax, ("it is symad.functions.softmax",)),
    "NumPy in symad.functions": (lambda: F.exp, ("symad reads numpy.exp and sympy.exp",)),
    "a short name of functions": (lambda: F.softmx, ("did you mean symad.functions.softmax?",)),
    "a name of symad in numeric": (lambda: symad.numeric.gradient, ("it is symad.gradient",)),
    "the source of a graph": (lambda: of("source")(total), ("use symad.numeric.lower(f).source",)),
    "a method of graphs": (lambda: of("hessian")(total), ("a Graph has", "it is symad.hessian")),
    "argnums of JAX": (lambda: symad.gradient(f, argnums=0), ("'argnums'", "argnums= is wrt= here")),
    "keywords of SciPy": (lambda: symad.verify(f, jac=[y, x]), ("'jac'", "gradient= or jacobian= here")),
    "an option misspelled": (lambda: lower(f, backnd="c"), ("'backnd'", "backnd= is backend= here")),
    "an unknown option": (lambda: lower(f, fast=True), ("'fast'", "it takes f, backend, dtype")),
    "three symbols in a row": (lambda: symad.gradient(f, x, "reverse", None, y), ("wrt=[...]",)),
    "symbols for a seed": (lambda: symad.check(f, x, y), ("seed", "not y", "in one list, wrt=[...]")),
    "two symbols of one name": (
        lambda: lower(x * sp.Symbol("x", positive=True)),
        ("x (real=True)", "x (positive=True)", "make the symbol once", "inputs=[...]"),
    ),
    "a function to register": (
        lambda: symad.register_function(lambda u: u),
        ("'implementation'", 'register_function("cube", implementation'),
    ),
    "one derivative, no list": (
        lambda: symad.register_function("cube", lambda u: u**3, lambda u: 3 * u**2),
        ("derivatives is a function", "give a list"),
    ),
    "a list of functions": (lambda: symad.trace([np.sin, abs]), ("inside of a list", "lambda x, y: [")),
    "a short name": (lambda: symad.gradiant, ("'gradiant'", "did you mean symad.gradient?")),
    "a name of SymPy": (lambda: symad.lambdify, ("use symad.numeric.lower",)),
    "a name of JAX": (lambda: symad.jacfwd, ("use symad.jacobian",)),
    "two symbols apart": (lambda: symad.hessian(f, x, y), ("mode=y", "go in one list, wrt=[...]")),
    "a pattern of ragged lists": (lambda: symad.color([[1, 0], [1]]), ("rows of equal length",)),
    "an equation": (lambda: symad.gradient(sp.Eq(x, 1)), ("is a condition", "left side minus the right")),
    "a comparison": (lambda: symad.check(x > 1), ("is a condition", "Max(left - right, 0)")),
    "an ending of a file": (lambda: lower(f).save("model.txt"), ("model.txt", "not as .txt", ".py, .c")),
    "an axis list too short": (lambda: symad.vmap(f, in_axes=(0,)), ("has 1 entry", "f has 2 inputs")),
}

ARRAYS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "no inputs": (lambda: symad.trace(lambda a: a.sum()), ("inputs=[...]", "(a)")),
    "a number of inputs": (
        lambda: symad.trace(lambda a, b: a, [(3,)]),
        ("inputs has 1 entry", "<lambda>(a, b)", "one entry for each parameter"),
    ),
    "a shape for the inputs": (
        lambda: symad.trace(lambda a: a, (3,)),
        ("inputs=(3,)", "inputs=[(3,)] for an array of this shape"),
    ),
    "a negative size": (lambda: traced(lambda a: a @ np.eye(-1)), ("np.eye(-1)", "test_first", "x.shape[0]")),
    "half a size": (lambda: traced(lambda a: np.zeros(2.5) + a), ("np.zeros(2.5)", "an integer >= 0")),
    "steps of nothing": (lambda: traced(lambda a: a + np.arange(0, 4, 0)), ("np.arange(0, 4, 0)", "zero")),
    "an empty list": (
        lambda: traced(lambda a: np.concatenate([])),
        ("fails (test_first_mistakes.py, line", "need at least one array", "arrays of numbers"),
    ),
    "a missing argument": (lambda: traced(lambda a: np.dot(*[a])), ("np.dot(*[a])", "missing 1", "'b'")),
    "parts of two lengths": (
        lambda: traced(lambda a: np.array([a, a[:2]])),
        ("entries of different shapes", "np.concatenate"),
    ),
    "text for an input": (lambda: symad.trace(lambda a: a, ["a"]), ("given as 'a'", "such as (3,)")),
    "nothing returned": (lambda: traced(lambda a: None), ("returned None", "numbers, arrays")),
    "shapes of a product": (lambda: traced(lambda a, b: a @ b, (3, 2), (3,)), ("a (3, 2) and b (3,)",)),
    "shapes of a sum": (lambda: traced(lambda a, b: a + b, (3,), (4,)), ("a (3,), b (4,)", "broadcast")),
    "a branch on data": (lambda: traced(lambda a: a if a > 0 else -a, ()), ("truth value", "np.where")),
    "a loop over data": (lambda: traced(lambda a: range(int(a)), ()), ("int()", "constant")),
    "math.sin": (lambda: traced(lambda a: __import__("math").sin(a), ()), ("float()", "NumPy's functions")),
    "a mask": (lambda: traced(lambda a: a[a > 0]), ("x[x > 0]", "depends on data", "np.where")),
    "an unsupported call": (lambda: traced(np.unique), ("np.unique is not supported", "np.sort")),
    "eigenvalues": (lambda: traced(lambda a: np.linalg.eig(a)[0], (3, 3)), ("np.linalg.eig", "eigh")),
    "complex numbers": (lambda: traced(lambda a: a * 1j), ("1j", "not a real number")),
    "random numbers": (lambda: traced(lambda a: rng.normal(a)), ("traced value", "functions.randn")),
    "an axis too far": (lambda: traced(lambda a: np.sum(a, axis=3)), ("axis=3", "has 1 axis")),
    "text for an axis": (lambda: traced(lambda a: F.logsumexp(a, axis="a")), ("axis='a'", "integer")),
    "the axis of a softmax": (lambda: traced(lambda a: F.softmax(a, axis=2)), ("axis=2", "shape (4,)")),
    "text for a shift": (lambda: traced(lambda a: np.roll(a, "x")), ("np.roll(shift='x')", "integer")),
    "a traced size": (lambda: traced(lambda a: np.arange(a), ()), ("np.arange", "depend on data")),
    "a traced number of steps": (lambda: traced(lambda a: np.linspace(0, 1, a), ()), ("np.linspace", "data")),
    "text in a sum": (lambda: traced(lambda a: a + "b"), ("a traced value and 'str'",)),
    "None in a sum": (lambda: traced(lambda a: a + None), ("a traced value and 'NoneType'",)),
    "a step as in JAX": (
        lambda: traced(lambda a: F.scan(lambda h, u: (h + u, h), 0.0, a)),
        ("scan: the step returns a pair", "(state, output) in JAX", "the next state alone"),
    ),
    "a step of arrays as in JAX": (
        lambda: F.scan(lambda h, u: (h + u, h), 0.0, np.ones(3)),
        ("scan: the step returns a pair",),
    ),
    "a step without output": (
        lambda: traced(lambda a: F.fold(lambda h, u: (h + u, None), a[0], a)),
        ("fold: the step returns a pair",),
    ),
    "two states as in JAX": (
        lambda: traced(lambda a: F.scan(lambda h, u: ((h[0] + u, h[1]), u), (0.0, 1.0), a)),
        ("scan: the step returns a pair",),
    ),
    "names of lax.scan": (
        lambda: F.scan(lambda h, u: h, init=0.0, xs=np.ones(3)),
        ("init= is initial= here", "xs= is inputs= here"),
    ),
    "shapes of attention": (
        lambda: F.attention(np.ones((3, 4)), np.ones((3, 5)), np.ones((3, 4))),
        ("attention: ", "q (3, 4), k (3, 5), v (3, 4)", "q and k share"),
    ),
    "dim of PyTorch": (lambda: F.softmax(np.ones(3), dim=0), ("'dim'", "dim= is axis= here")),
    "keepdim of PyTorch": (lambda: F.logsumexp(np.ones(3), keepdim=True), ("keepdim= is keepdims= here",)),
    "dim in a trace": (lambda: traced(lambda a: F.softmax(a, dim=0)), ("softmax", "dim= is axis= here")),
    "text in a DataFrame": (
        lambda: lower(symad.trace(lambda a: a.sum(), [(2, 3)]))(frame),
        ("a must hold real numbers, not 'a'",),
    ),
    "a DataFrame in a trace": (
        lambda: traced(lambda a: frame[["u", "v"]] @ a, (2,)),
        ("pandas.DataFrame", "df.to_numpy()"),
    ),
    "a method of PyTorch": (lambda: traced(lambda a: a.detach()), ("'detach'", "an array of NumPy")),
    "an option of PyTorch": (
        lambda: traced(lambda a: a.sum(dim=0)),
        ("np.sum: ", "'dim'", "takes a, axis", "dim= is axis= here"),
    ),
    "steps of a number": (lambda: F.scan(lambda h, u: h, 0.0, 5), ("scan: inputs=5", "an array (T, ...)")),
    "an index too far": (lambda: traced(lambda a: a[7]), ("index 7", "length 4")),
    "a wrong reshape": (lambda: traced(lambda a: a.reshape(5)), ("(4,) into (5,)",)),
    "no size": (
        lambda: symad.hessian_sparsity(traced(lambda a: (a**2).sum(), (n,))),
        ("dimensions n", "graph.at"),
    ),
}

LECTURE: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "no claim": (lambda: symad.verify(f, x), ("exactly one claim", "gradient=", "given: none")),
    "two claims": (lambda: symad.verify(f, x, gradient=y, hessian=0), ("given: gradient, hessian",)),
    "text for a claim": (lambda: symad.verify(f, x, gradient="y"), ("'y' is text", "SymPy expression")),
    "another symbol": (lambda: symad.verify(f, x, gradient=z), ("depends on z", "Use these symbols")),
    "grad for gradient": (lambda: symad.verify(f, grad=[y, x]), ("'grad'", "grad= is gradient= here")),
    "a list of derivatives": (
        lambda: symad.verify(f, gradient=[lambda x, y: y, lambda x, y: x]),
        ("inside of a list", "give one function that returns the list"),
    ),
    "too few parts": (lambda: symad.verify(f, gradient=y), ("2 parts (by x, by y)", "has 1; give a list")),
    "too many parts": (lambda: symad.verify(f, x, gradient=[y, x]), ("1 part (by x)", "has 2; give a list")),
    "other arguments": (lambda: symad.verify(f, x, gradient=lambda a: a), ("takes (a)", "with (x, y)")),
    "text returned": (lambda: symad.verify(f, x, gradient=lambda x, y: "s"), ("∂f/∂x", "a str")),
    "a domain of others": (lambda: symad.verify(f, x, gradient=y, where=z > 0), ("about z", "x, y")),
    "a level of hints": (lambda: Grade(None).hint(3), ("levels 1 and 2", "3")),
    "an unknown input": (lambda: symad.trace(f).explain(x=1, q=2), ("'q' is not an input", "x, y")),
    "a format of pictures": (lambda: symad.trace(f).draw("a.bmp"), (".svg, .png", "a.bmp")),
    "a box for one": (lambda: symad.error_bound(f, {x: (1, 2)}), ("lacks y", "(smallest, largest)")),
}


@pytest.mark.parametrize("case", [*SYMPY.values(), *ARRAYS.values(), *LECTURE.values()],
                         ids=[*SYMPY, *ARRAYS, *LECTURE])  # fmt: skip
def test_a_mistake_is_told_with_its_names_and_its_remedy(case: Any) -> None:
    call, parts = case
    with pytest.raises((symad.errors.SymadError, TypeError, ValueError, AttributeError)) as caught:
        call()
    told = str(caught.value)
    assert all(part in told for part in parts), told
    assert "\n" not in told and "Proxy" not in told and "<U" not in told


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
def test_wrong_arguments_of_a_kernel_are_one_error_however_they_are_given(backend: str) -> None:
    """Errors of symad, which are those of Python as well."""
    kernel = lower(f, backend=backend)
    for given, named in ((1.0,), {}), ((1.0, 2.0, 3.0), {}), ((), {"x": 1.0}), ((1.0,), {"q": 2.0}):
        with pytest.raises(symad.errors.EvaluationError, match="takes 2 values"):
            kernel(*given, **named)
    for value in ("a", 1j, None):
        with pytest.raises(symad.errors.EvaluationError, match="x must hold real numbers"):
            kernel(value, 2.0)
        with pytest.raises(symad.errors.EvaluationError, match="x must hold real numbers"):
            kernel(y=2.0, x=value)
    shaped = lower(total, backend="numpy" if backend == "runs" else backend)
    for values, keywords in ((np.ones(4),), {}), ((), {"a": np.ones(4)}):
        with pytest.raises(symad.errors.ShapeError, match="must have shape"):
            shaped(*values, **keywords)
    assert issubclass(symad.errors.EvaluationError, TypeError)
    assert issubclass(symad.errors.ShapeError, ValueError)


def test_a_table_of_several_types_is_read_where_it_holds_numbers() -> None:
    kernel = lower(symad.trace(lambda a, b: (a @ b).sum(), [(2, 2), (2,)]))
    assert kernel(frame[["u", "v"]], np.ones(2)) == 4.0  # 1 + True + 2 + False


def test_no_word_for_another_library_is_a_name_here() -> None:
    """A hint never hides what exists: names, options and commands of the tables are none of ours."""
    assert not set(elsewhere.NAMES) & {*symad.__all__, *F.__all__, *symad.numeric.__all__}
    assert not set(elsewhere.BACKENDS) & set(BACKENDS)
    helped = make_parser().format_help()
    assert all(f"symad {word} " not in helped for word in elsewhere.COMMANDS)
    for use in elsewhere.NAMES.values():
        assert callable(functools.reduce(getattr, use.split("(")[0].split(".")[1:], symad))


def test_modules_of_the_package_that_are_not_loaded_are_told() -> None:
    """``symad.gpu`` is no attribute before its import, as in this process it may be after another test."""
    told = str(elsewhere.missing("module 'symad'", "gpu", symad.__all__))
    assert told == "module 'symad' has no attribute 'gpu'; import symad.gpu first"


def test_tools_that_ask_for_private_names_get_no_guess() -> None:
    with pytest.raises(AttributeError, match=r"no attribute '__wrapped__'$"):
        _ = symad.__wrapped__


def test_errors_that_a_traced_function_raises_are_its_own() -> None:
    def refuses(a: Any) -> Any:
        raise ValueError("a is needed in meters")

    with pytest.raises(ValueError, match="a is needed in meters") as caught:
        traced(refuses)
    assert type(caught.value) is ValueError
