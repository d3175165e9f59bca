"""Functions that users implement: how generated code calls them, and which files can contain such calls.

A function that a module has under its own name is imported from there. Any other function (a lambda, a nested
function, one of ``__main__``) is looked up in `CALLS`, which exists in this process only.
"""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symad.core.graph import Graph
from symad.errors import LoweringError
from symad.numbers.function_values import implementation
from symad.ops.elementwise.apply import Apply
from symad.tracing.ranged import Ranged

if TYPE_CHECKING:
    import sympy

CALLS: dict[str, Callable[..., Any]] = {}
"""Functions without an import path, by the names that generated code uses for them."""

SOURCE = '''
def {name}(*values):
    """{head}, as the user implements it."""
    return {elementwise}("{head}", {callable}, *values)
'''


def users_call(head: type[sympy.Basic], name: str, elementwise: str) -> tuple[str, str]:
    """The line that imports what a SymPy head's user implements, and the source of the helper ``name``.

    ``elementwise`` is the module's name for `symad.special.elementwise`.

    Raises:
        LoweringError: the head has no implementation.
    """
    function = implementation(head)
    if function is None:
        raise LoweringError(
            f"{head.__name__} has no NumPy or SciPy form; rewrite it, or register an implementation with "
            "symad.register_function"
        )
    path = import_path(function)
    if path is not None:
        module, attribute = path
        text = f"{module}.{attribute}"
        imported = f"import {module}"
    else:
        text = f'CALLS["{_key(head.__name__, function)}"]'
        imported = f"from {__name__} import CALLS"
    source = SOURCE.format(name=name, head=head.__name__, callable=text, elementwise=elementwise)
    return imported, source.strip()


def _key(name: str, function: Callable[..., Any]) -> str:
    """The name of a function in `CALLS`: the name of its head, followed by a number if that is taken."""
    key, k = name, 2
    while CALLS.setdefault(key, function) is not function:
        key, k = f"{name}_{k}", k + 1
    return key


def import_path(function: Callable[..., Any]) -> tuple[str, str] | None:
    """The module and the name from which this very function can be imported; None if there are none."""
    name = str(getattr(function, "__qualname__", None) or getattr(function, "__name__", ""))
    modules = [getattr(function, "__module__", None)]
    if type(function).__name__ == "ufunc":  # ufuncs do not always know their module
        modules = ["numpy", "scipy.special"]
    for module in modules:
        if not module or module == "__main__" or module not in sys.modules:
            continue
        words = [*module.split("."), *name.split(".")]
        if not all(word.isidentifier() and not keyword.iskeyword(word) for word in words):
            continue
        found: Any = sys.modules[module]
        for word in name.split("."):
            found = getattr(found, word, None)
        if found is function:
            return module, name
    return None


def check_importable(graph: Graph, path: Path | str) -> None:
    """Refuse to write a file that calls a function which exists in this process only.

    Raises:
        LoweringError: the message names the function and a way out.
    """
    for head in dict.fromkeys(_heads(graph)):
        function = implementation(head)
        if function is not None and import_path(function) is None and not issubclass(head, Ranged):
            raise LoweringError(
                f"{path}: the function {head.__name__} is implemented by {function!r}, which a file cannot "
                "import, because no module has it under its name; define it at the top level of a module, "
                "and register it from there"
            )


def _heads(graph: Graph) -> Iterator[sympy.FunctionClass]:
    """The functions that a graph applies, also in the bodies of its loops."""
    for node in graph.nodes:
        if isinstance(node.op, Apply):
            yield node.op.head
        for field in fields(node.op):
            inner = getattr(node.op, field.name)
            if isinstance(inner, Graph):
                yield from _heads(inner)
