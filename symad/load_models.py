"""Finding models in the user's files, which are run on purpose; no other file is ever executed."""

from __future__ import annotations

import inspect
import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FunctionType
from typing import Any

import sympy
from sympy.tensor.array.expressions import ArraySymbol
from sympy.tensor.array.expressions.array_expressions import _ArrayExpr

from symad.core.dims import Dim, Shape
from symad.core.graph import Graph
from symad.core.signatures import Traceable
from symad.errors import SymadError, told
from symad.tracing import trace

RUN_NAME = "symad_model"
"""``__name__`` while a model file runs, so that a block under ``if __name__ == "__main__"`` does not run."""

SYMPY = (sympy.Expr, sympy.MatrixBase, sympy.NDimArray, sympy.MatrixExpr, _ArrayExpr)


class ModelError(SymadError, ValueError):
    """A file does not run, or does not define the requested model."""


def split_target(target: str) -> tuple[Path, str | None]:
    """FILE and NAME of ``FILE[:NAME]``; a colon in the name of the file itself is recognized.

    Raises:
        ModelError: there is no such file.
    """
    if Path(target).is_file():
        return Path(target), None
    file, colon, name = target.rpartition(":")
    if colon and Path(file).is_file():
        return Path(file), name
    raise ModelError(f"there is no file {(colon and name.isidentifier() and file) or target}")


def load_models(target: str, inputs: Sequence[str] | None = None) -> dict[str, Graph]:
    """The graphs of ``FILE[:NAME]`` by name; see `load_written`."""
    return {name: graph for name, (_, graph) in load_written(target, inputs).items()}


def load_written(target: str, inputs: Sequence[str] | None = None) -> dict[str, tuple[Traceable, Graph]]:
    """The models of ``FILE[:NAME]`` by name, in their original form and as graphs: one model, or all.

    Args:
        target: the file, and the name of a model in it.
        inputs: the shapes of the arguments of a function, as `shape_of` reads them.

    Raises:
        ModelError: the file fails, or contains no such model.
    """
    path, name = split_target(target)
    namespace = run_file(path)
    if name is not None:
        if name not in namespace:
            known = ", ".join(_candidates(namespace)) or "none"
            raise ModelError(f"{path.name} does not define {name!r}; its models: {known}")
        return {name: _graph(path, name, namespace[name], inputs)}
    if inputs:
        raise ModelError(f"--inputs is for one function; say which: {target}:NAME")
    _tell_skipped(path, target, namespace)
    values = {n: _called(path, n, namespace[n]) for n in _candidates(namespace)}
    models = {n: _graph(path, n, value) for n, value in values.items() if _is_given(value)}
    if not models:
        raise ModelError(
            f"{path.name} defines no model: no SymPy expression, Graph or function without arguments "
            "at module level"
        )
    return models


def load_model(target: str, inputs: Sequence[str] | None = None) -> tuple[str, Graph]:
    """The one model of ``FILE:NAME``, or of a file that defines just one.

    Raises:
        ModelError: the file contains several.
    """
    models = load_models(target, inputs)
    if len(models) > 1:
        raise ModelError(f"{target} defines {', '.join(models)}; say which: {target}:{next(iter(models))}")
    return next(iter(models.items()))


def run_file(path: Path) -> dict[str, Any]:
    """The names that a file defines; it may import modules of its folder, as a script may."""
    sys.path.insert(0, str(path.parent))
    try:
        with _of_users(path, path.name):
            return runpy.run_path(str(path), run_name=RUN_NAME)
    finally:
        sys.path.remove(str(path.parent))


@contextmanager
def _of_users(path: Path, whose: str) -> Iterator[None]:
    """The user's code runs: what it prints goes to stderr, because stdout may be a file of results.

    Raises:
        ModelError: it fails.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        raise ModelError(f"{whose} failed{_place(error, path)}: {told(error)}") from error


def _place(error: BaseException, path: Path) -> str:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    found = line or (lines[-1] if lines else None)
    return f" at line {found}" if found else ""


def _candidates(namespace: Mapping[str, object]) -> list[str]:
    """The names that are models: no bare symbols or numbers, and no imported objects."""
    return [n for n, value in namespace.items() if not n.startswith("_") and _is_model(value)]


def _tell_skipped(path: Path, target: str, namespace: Mapping[str, object]) -> None:
    """Name the file's functions of arguments on stderr: only their shapes make them models."""
    for name, value in namespace.items():
        own = isinstance(value, FunctionType) and value.__module__ == RUN_NAME and not name.startswith("_")
        if own and isinstance(value, FunctionType) and not _takes_nothing(value):
            told = f"left out: {name}{inspect.signature(value)}, which needs the shapes of its arguments"
            print(f"{path.name}: {told}: {target}:{name} --inputs ...", file=sys.stderr)


def _is_model(value: object) -> bool:
    if isinstance(value, FunctionType):
        return value.__module__ == RUN_NAME and _takes_nothing(value)
    if isinstance(value, (list, tuple)) and value:
        return all(map(_is_model, value))
    if isinstance(value, dict) and value:
        return all(map(_is_model, value.values()))
    atoms = (sympy.Symbol, sympy.MatrixSymbol, ArraySymbol, sympy.IndexedBase)
    if isinstance(value, atoms) or getattr(value, "is_number", False):
        return False
    return isinstance(value, (Graph, *SYMPY)) or _is_decorated(value)


def _is_decorated(value: object) -> bool:
    """True if it is a result of `symad.function`."""
    return isinstance(getattr(value, "graph", None), Graph)


def _takes_nothing(function: FunctionType) -> bool:
    parameters = inspect.signature(function).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return all(p.default is not p.empty or p.kind in variable for p in parameters)


def shape_of(text: str) -> tuple[str, Shape]:
    """Name and shape from ``W=4,3``: numbers, or names of sizes that stay symbols; ``x`` alone is a scalar.

    ``p.W`` is the entry W of an argument p that is a dict.

    Raises:
        ModelError: the text has another form.
    """
    name, _, sizes = text.partition("=")
    dims = [size.strip() for size in sizes.split(",") if size.strip()]
    named = all(part.isidentifier() for part in name.split("."))
    if not named or not all(size.isdigit() or size.isidentifier() for size in dims):
        raise ModelError(
            f"--inputs {text}: write a name and its sizes, as in W=4,3 or X=n,4; x alone is a scalar, and "
            "p.W the entry W of a dict p"
        )
    return name, tuple(
        int(size) if size.isdigit() else sympy.Symbol(size, integer=True, positive=True) for size in dims
    )


def _grouped(shapes: Mapping[str, tuple[Dim, ...]]) -> dict[str, Any] | None:
    """The shapes by argument, those of dotted names in dicts; None if a name is both."""
    made: dict[str, Any] = {}
    for name, shape in shapes.items():
        *outer, last = name.split(".")
        place = made
        for part in outer:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                return None
        if last in place:
            return None
        place[last] = shape
    return made


def _traced(path: Path, name: str, function: FunctionType, inputs: Sequence[str]) -> Graph:
    """A function of arrays, traced with the shapes of the command line.

    Raises:
        ModelError: the names are not those of its parameters, or it fails.
    """
    shapes = dict(map(shape_of, inputs))
    given = _grouped(shapes) if len(shapes) == len(inputs) else None
    known = inspect.signature(function).parameters
    first = list(known)[: len(given or ())]  # later parameters may have defaults
    rest = [p for p in known.values() if p.name not in first and p.default is p.empty]
    if given is None or set(given) != set(first) or rest:
        raise ModelError(
            f"{path.name}:{name} takes ({', '.join(known)}), but --inputs gives ({', '.join(shapes)}); "
            "give each argument once; those with defaults at the end may be left out"
        )
    with _of_users(path, f"{path.name}:{name}"):
        return trace(function, [given[parameter] for parameter in first])


def _called(path: Path, name: str, value: object) -> Any:
    """What a function without arguments returns; any other value as it is.

    Raises:
        ModelError: the function takes arguments, or fails.
    """
    if not isinstance(value, FunctionType):
        return value
    if not _takes_nothing(value):
        parameters = inspect.signature(value).parameters.values()
        first = [p.name for p in parameters if p.default is p.empty]
        raise ModelError(
            f"{path.name}:{name} takes arguments {inspect.signature(value)}; give their shapes, as in "
            f"--inputs {' '.join(f'{p}=3' for p in first)}, or write a "
            "function without arguments that returns a SymPy object or a Graph"
        )
    with _of_users(path, f"{path.name}:{name}"):
        return value()


def _is_given(value: object) -> bool:
    """True if a value may be a model: what `trace` takes without knowing its inputs."""
    return isinstance(value, (Graph, list, tuple, dict, *SYMPY)) or _is_decorated(value)


def _graph(path: Path, name: str, value: Any, inputs: Sequence[str] | None = None) -> tuple[Traceable, Graph]:
    if inputs and isinstance(value, FunctionType):
        graph = _traced(path, name, value, inputs)
        return value, graph.named(name)
    if inputs:
        raise ModelError(f"{path.name}:{name} is not a function; --inputs gives the shapes of arguments")
    value = _called(path, name, value)
    if not _is_given(value):
        raise ModelError(
            f"{path.name}:{name} is of type {type(value).__name__}; a model is a SymPy object, a Graph, "
            "a function without arguments that returns one, or a function whose shapes --inputs gives"
        )
    try:
        graph = trace(value)
    except SymadError as error:
        raise ModelError(f"{path.name}:{name} cannot be traced: {error}") from error
    return value, graph.named(name)
