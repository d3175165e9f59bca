"""Public docstrings: every function has an example that runs, and says what it returns and raises."""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
import re
import shutil
from functools import reduce

import numpy as np
import pytest
import sympy

import symad
import symad.functions
import symad.gpu
import symad.numeric
import symad.testing
from symad.verification.certificate.certificate import Certificate
from symad.verification.coq.terms import CoqError  # noqa: F401  (a docstring names it; loaded on use)
from tests.gpu.cupy_agreement import WHERE, library

FACES = (symad, symad.numeric, symad.gpu, symad.testing, symad.functions)
BRIDGES = ("symad.torch", "symad.jax")
"""Their libraries take seconds to import; the examples in their modules run as doctests."""
WITHOUT = {"Certificate", "Graph", "Kernel", "Grade", "LossScale", "stop_gradient", "errors"}
"""Classes that no user makes, and a function whose docstring is its formula; so are those of SymPy's kind."""
ON_A_DEVICE = {f"symad.gpu.{name}" for name in ("check_indices", "recorded", "training_step")}
"""Their examples make arrays of CuPy: here those of the stand-in."""
METHODS = {
    f"{cls.__name__}.{name}": method
    for cls in (symad.Graph, symad.numeric.Kernel, Certificate)
    for name, method in vars(cls).items()
    if not name.startswith("_") and inspect.isfunction(getattr(method, "__func__", method))
}
RAISE_NOTHING = {
    "Graph.grouped", "Graph.ungrouped", "Graph.named", "Graph.with_outputs",  # another form of a right graph
    "Certificate.entries_of", "Certificate.to_json",  # read what is there
}  # fmt: skip


def public(module):
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        f"{module.__name__}.{n}": o
        for n, o in found.items()
        if callable(o) and n not in WITHOUT and not (isinstance(o, type) and issubclass(o, sympy.Function))
    }


PUBLIC = {name: o for module in FACES for name, o in public(module).items()}
FUNCTIONS = {name: o for name, o in PUBLIC.items() if not isinstance(o, type)} | METHODS


def example(function):
    """The lines of code in a docstring."""
    lines = inspect.getdoc(function).splitlines()
    return [line for line in lines if line.lstrip().startswith((">>>", "..."))]


def failures(name, function):
    """What the example of a function prints that it should not."""
    text = inspect.getdoc(function)
    test = doctest.DocTestParser().get_doctest(text, dict(vars(inspect.getmodule(function))), name, name, 0)
    told = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    return "".join(told)


def raised(function):
    """The names of the errors in a docstring, in order."""
    section = (inspect.getdoc(function) or "").partition("\nRaises:\n")[2].partition("\n\n")[0]
    return re.findall(r"^    (\w+): ", section, re.MULTILINE)


def names_of_errors(base=Exception):
    return {base.__name__}.union(*map(names_of_errors, base.__subclasses__()))


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - ON_A_DEVICE))
def test_a_public_function_has_an_example_that_runs(name):
    function = inspect.unwrap(PUBLIC[name])
    assert example(function), "give it an example"
    assert max(map(len, example(function))) <= 84, "the page is that wide"
    assert failures(name, function) == ""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", sorted(ON_A_DEVICE))
def test_an_example_on_a_device_runs(name, where):
    function = inspect.unwrap(PUBLIC[name])
    assert example(function), "give it an example"
    assert max(map(len, example(function))) <= 84, "the page is that wide"
    with library(where):
        assert failures(name, function) == ""


# ---- results -------------------------------------------------------------------------------------


def says_what_it_returns(function):
    """Whether a docstring has a section Returns:, or nothing is returned but a context or None."""
    gives = inspect.signature(function).return_annotation
    return gives in ("None", "Iterator[None]") or "\nReturns:\n    " in inspect.getdoc(function)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_public_function_says_what_it_returns(name):
    """Its shape or form; of a method without arguments the first sentence says it."""
    function = inspect.unwrap(FUNCTIONS[name])
    said = name in METHODS and "\nArgs:\n" not in inspect.getdoc(function)
    assert said or says_what_it_returns(function), "give it a section Returns:"


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - RAISE_NOTHING))
def test_a_public_function_says_which_errors_it_raises(name):
    function = inspect.unwrap(FUNCTIONS[name])
    errors = raised(function)
    assert errors, "give it a section Raises: what it refuses itself, or what `trace` refuses of its argument"
    assert set(errors) - names_of_errors() == set()


@pytest.mark.thorough
@pytest.mark.parametrize("bridge", BRIDGES)
def test_functions_of_a_bridge_have_examples_and_say_what_they_return_and_raise(bridge):
    pytest.importorskip(bridge.partition(".")[2])
    module = importlib.import_module(bridge)
    functions = {name: o for name, o in public(module).items() if not isinstance(o, type)}
    assert functions
    for name, function in functions.items():
        assert example(function), name
        assert says_what_it_returns(function), name
        assert max(map(len, example(function))) <= 84, name
        assert raised(function), name
        assert set(raised(function)) - names_of_errors() == set(), name


x, y = sympy.symbols("x y", real=True)
ROW = symad.trace(lambda a: a, [(3,)])
KEY = symad.functions.key(1)
TWO, THREE = np.zeros(2), np.zeros(3)


def traced(function, *shapes):
    return lambda: symad.trace(lambda *arrays: function(*arrays), list(shapes))


BAD_CALLS = [
    *[(f"symad.{f}", "TraceError", lambda f=f: getattr(symad, f)(lambda a: a))
      for f in ("flops", "memory", "live_memory", "pullback", "pushforward", "value_and_gradient", "vmap")],
    *[(f"symad.{f}", "DerivativeError", lambda f=f: getattr(symad, f)(ROW, "b"))
      for f in ("pullback", "pushforward", "value_and_gradient")],
    *[(f"symad.{f}", "DerivativeError", lambda f=f: getattr(symad, f)(sympy.besselj(x, y), x))
      for f in ("pullback", "pushforward", "value_and_gradient")],
    ("symad.value_and_gradient", "DerivativeError", lambda: symad.value_and_gradient(ROW)),
    ("symad.remat", "TraceError", lambda: symad.remat("x")),
    ("symad.remat", "TraceError", traced(symad.remat(lambda a: a if a[0] > 0 else -a), (3,))),
    *[("symad.vmap", "ShapeError", lambda axes=axes: symad.vmap(ROW, axes))
      for axes in (7, "a", None, [0, 0])],
    *[(f"symad.functions.{f}", "TraceError", lambda f=f: getattr(symad.functions, f)("x"))
      for f in ("log1p", "expm1", "logsumexp", "split")],
    *[(f"symad.functions.{f}", "TraceError", lambda f=f: getattr(symad.functions, f)("x", 1))
      for f in ("logaddexp", "hypot", "randn", "fold_in")],
    *[(f"symad.functions.{f}", "ShapeError", traced(getattr(symad.functions, f), (2,), (3,)))
      for f in ("logaddexp", "hypot")],
    *[(f"symad.functions.{f}", "ShapeError", lambda f=f: getattr(symad.functions, f)(THREE, 2))
      for f in ("randn", "split", "fold_in")],
    *[(f"symad.functions.{f}", "ShapeError", lambda f=f: getattr(symad.functions, f)(KEY, 2.5))
      for f in ("randn", "split")],
    *[(f"symad.functions.{f}", "ShapeError", lambda f=f: getattr(symad.functions, f)(2.5))
      for f in ("eye", "arange")],
    ("symad.functions.eye", "ValueError", lambda: symad.functions.eye(-1)),
    *[("symad.functions.fold_in", "EvaluationError", lambda n=n: symad.functions.fold_in(KEY, n))
      for n in (-1, 2.5)],
    ("symad.functions.logsumexp", "ShapeError", traced(lambda a: symad.functions.logsumexp(a, 4), (3,))),
    ("symad.functions.concatenate", "TraceError", lambda: symad.functions.concatenate([x, y])),
    ("symad.functions.concatenate", "ValueError", lambda: symad.functions.concatenate([TWO, np.eye(2)])),
    ("symad.functions.concatenate", "ShapeError",
     traced(lambda *a: symad.functions.concatenate(a), (2, 3), (2, 4))),
    ("symad.testing.grade", "TypeError", lambda: symad.testing.grade(x, x)),
    ("symad.gpu.options", "ValueError", lambda: symad.gpu.options(pair_products="q").__enter__()),
    ("symad.gpu.training_step", "TraceError", lambda: symad.gpu.training_step("x", {}, None)),
    ("Graph.explain", "EvaluationError", lambda: ROW.explain(b=3)),
    ("Graph.draw", "EvaluationError", lambda: ROW.draw("row.txt")),
    ("Graph.to_latex", "EvaluationError",
     lambda: symad.trace(lambda a: reduce(lambda a, _: np.sin(a), range(500), a), [()]).to_latex()),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted({name for name, _, _ in BAD_CALLS}))
def test_a_bad_call_raises_the_error_that_is_said(name):
    for error, call in [(error, call) for which, error, call in BAD_CALLS if which == name]:
        assert error in raised(inspect.unwrap(FUNCTIONS[name]))
        with pytest.raises(getattr(symad.errors, error, None) or getattr(builtins, error)):
            call()
