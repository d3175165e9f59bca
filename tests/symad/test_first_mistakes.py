"""The most common mistakes of a first hour: each message names what was given, and says what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
import symad.numeric
from symad import functions as F
from symad.display.grades import Grade
from symad.numeric import lower

x, y = sp.symbols("x y", real=True)
z, n = sp.Symbol("z"), sp.Symbol("n", integer=True, positive=True)
f = x * y
A, v = sp.MatrixSymbol("A", 3, 3), sp.MatrixSymbol("v", 3, 1)
rng = np.random.default_rng(0)
total = symad.trace(lambda a: a.sum(), [(3,)])


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
    "a missing input": (lambda: lower(f, inputs=[x]), ("depends on y", "inputs=['x']")),
    "a missing value": (lambda: lower(f)(1.0), ("takes 2 values (x, y)", "1 was given; missing: y")),
    "too many values": (lambda: lower(f)(1.0, 2.0, 3.0), ("takes 2 values (x, y)", "3 were given")),
    "a wrong keyword": (lambda: lower(f)(x=1.0, z=2.0), ("(x, y)", "'z' is none of them")),
    "one value, not two": (lambda: lower(x**2)(1.0, 2.0), ("takes 1 value (x)", "2 were given")),
    "a complex value": (lambda: lower(f)(1j, 2.0), ("x must hold real numbers, not 1j",)),
    "text as a value": (lambda: lower(f)("a", 2.0), ("x must hold real numbers, not 'a'",)),
    "no value": (lambda: lower(f)(None, 2.0), ("x must hold real numbers, not None",)),
    "text in a list": (lambda: lower(total)([1, 2, "c"]), ("a must hold real numbers, not [1, 2, 'c']",)),
    "a wrong shape": (lambda: lower(total)(np.ones(4)), ("a must have shape (3,), not (4,)",)),
    "rows of two lengths": (lambda: lower(total)([[1, 2], [3]]), ("a was given nested lists", "array")),
    "arguments for a backend": (lambda: lower(f, [x, y]), ("backend=[x, y]", "lower(f, inputs=[x, y])")),
    "an unknown backend": (lambda: lower(f, backend="cuda"), ("'cuda'", "'numpy', 'c', 'runs', 'cupy'")),
    "an integer type": (lambda: lower(f, dtype="int32"), ("'int32'", "'float64', 'float32'")),
    "lower of symad": (lambda: symad.lower, ("no attribute 'lower'", "it is symad.numeric.lower")),
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
    "a method of PyTorch": (lambda: traced(lambda a: a.detach()), ("'detach'", "an array of NumPy")),
    "an option of PyTorch": (lambda: traced(lambda a: a.sum(dim=0)), ("np.sum: ", "'dim'", "takes a, axis")),
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


def test_tools_that_ask_for_private_names_get_no_guess() -> None:
    with pytest.raises(AttributeError, match=r"no attribute '__wrapped__'$"):
        _ = symad.__wrapped__


def test_errors_that_a_traced_function_raises_are_its_own() -> None:
    def refuses(a: Any) -> Any:
        raise ValueError("a is needed in meters")

    with pytest.raises(ValueError, match="a is needed in meters") as caught:
        traced(refuses)
    assert type(caught.value) is ValueError
