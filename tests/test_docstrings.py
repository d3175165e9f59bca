"""The examples of public docstrings run, and every public function has one."""

import doctest
import inspect

import pytest
import sympy

import symad
import symad.functions
import symad.numeric
import symad.testing

FACES = (symad, symad.numeric, symad.testing, symad.functions)
WITHOUT = {"Certificate", "Graph", "Kernel", "Grade", "stop_gradient", "errors"}
"""Classes that no user makes, and a function whose docstring is its formula; so are those of SymPy's kind."""


def public(module):
    found = {name: getattr(module, name) for name in module.__all__}
    return {
        f"{module.__name__}.{n}": o
        for n, o in found.items()
        if callable(o) and n not in WITHOUT and not (isinstance(o, type) and issubclass(o, sympy.Function))
    }


PUBLIC = {name: o for module in FACES for name, o in public(module).items()}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_function_has_an_example_that_runs(name):
    function = inspect.unwrap(PUBLIC[name])
    text = inspect.getdoc(function)
    assert ">>>" in text, "give it an example"
    names = dict(vars(inspect.getmodule(function)))
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    assert all(len(line) <= 84 for line in text.splitlines() if line.lstrip().startswith((">>>", "..."))), (
        "the page is that wide"
    )
    told = []
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append).failed
    assert failed == 0, "".join(told)
