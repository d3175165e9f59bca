"""Helper functions of printed modules: ordinary Python here, whose source is pasted into the modules.

A printed module stands alone, so it must contain the functions that it calls. A helper is an ordinary,
tested function. Its source is pasted without annotations, together with the helpers that it calls and the
imports that it needs.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from symad.numeric.modules.module_text import Names


@dataclass(frozen=True)
class Pasted:
    """The text that one helper adds to a module: import lines, and functions by name, callees first."""

    imports: tuple[str, ...]
    functions: tuple[tuple[str, str], ...]
    needs_scipy: bool = False


@cache
def pasted(function: Callable[..., Any], prefix: str = "", np: str = "np") -> Pasted:
    """The source of a function without annotations, with everything it uses from its own module.

    Args:
        function: a function of symad.
        prefix: text before the names of the functions, so that they differ from a user's names.
        np: the name of the library used in place of NumPy; the module imports it itself.
    """
    (tree,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(tree, ast.FunctionDef)
    bare = _Bare().visit(tree)
    imports: dict[str, None] = {}
    functions: dict[str, str] = {}
    needs_scipy = False
    module, called = function.__globals__, [n.id for n in ast.walk(bare) if isinstance(n, ast.Name)]
    for name in dict.fromkeys(called):
        used = inspect.unwrap(module[name]) if callable(module.get(name)) else module.get(name)  # if cached
        ours = isinstance(used, types.FunctionType) and used.__module__.startswith("symad.")
        if isinstance(used, types.FunctionType) and ours and used is not function:
            inner = pasted(used, prefix, np)
            imports.update(dict.fromkeys(inner.imports))
            functions.update(inner.functions)
            needs_scipy = needs_scipy or inner.needs_scipy
        elif not ours and (name != "np" or np == "np"):
            imports.update(dict.fromkeys(_import_of(used, name)))
            needs_scipy = needs_scipy or getattr(used, "__name__", "").startswith("scipy")
    if prefix:
        own = {name for name in called if prefix + name in functions} | {function.__name__}
        bare = _Renamed({name: prefix + name for name in own}).visit(bare)
    if np != "np":
        bare = _Renamed({"np": np}).visit(bare)
    functions[prefix + function.__name__] = ast.unparse(bare)
    return Pasted(tuple(imports), tuple(functions.items()), needs_scipy or _imports_scipy(bare))


def pasted_into(names: Names, chosen: dict[str, str], found: Pasted) -> Pasted:
    """Helpers, renamed where another name of the module is the same.

    ``chosen`` holds the names already given to helpers. Names that begin with an underscore are kept: no
    value and no entry point has such a name.
    """
    for name, _ in found.functions:
        if not name.startswith("_") and name not in chosen:
            chosen[name] = names.unique(name)
    if all(chosen.get(name, name) == name for name, _ in found.functions):
        return found
    sources = ((name, _Renamed(chosen).visit(ast.parse(source))) for name, source in found.functions)
    functions = tuple((chosen.get(name, name), ast.unparse(tree)) for name, tree in sources)
    return Pasted(found.imports, functions, found.needs_scipy)


def _imports_scipy(tree: ast.AST) -> bool:
    """Whether a function imports SciPy itself."""
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    return any(name.startswith("scipy") for name in names)


def _import_of(used: object, name: str) -> list[str]:
    """The line that imports a module or a function under a name; none for other objects."""
    if isinstance(used, types.ModuleType):
        return [f"import {name}" if used.__name__ == name else f"import {used.__name__} as {name}"]
    if isinstance(used, (types.FunctionType, types.BuiltinFunctionType)):
        return [f"from {(used.__module__ or '').lstrip('_')} import {name}"]
    return []


class _Renamed(ast.NodeTransformer):
    """Renames functions."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A use of the function."""
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The definition of the function."""
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name)
        return node


class _Bare(ast.NodeTransformer):
    """Removes annotations, which would need imports of their own."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function without its result type."""
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """An argument without its type."""
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """An annotated assignment as a plain assignment."""
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)
