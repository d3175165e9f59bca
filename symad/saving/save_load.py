"""Graphs in files: JSON text that contains data only, so that loading a file executes nothing in it.

A file lists the nodes, arguments first: the name of the op's class, its fields, and the positions
of its arguments. Ops are looked up by name among the existing classes, fields are checked against
the types that the class declares, and shapes are computed anew. Nodes are hash-consed, so loading a graph
that is still in memory returns this graph.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from symad.core.graph import Graph, Node, Origin, leaves, topological
from symad.core.identifiers import brief, is_variable, without_surrogates
from symad.core.process import within
from symad.core.signatures import Inputs, Json, Traceable
from symad.core.variables import Variable, Variables, scopes
from symad.errors import SavingError, SymadError
from symad.saving.atomic_files import write_text
from symad.saving.saved_limits import (
    BUDGET,
    MAX_ERROR,
    MAX_TEXT,
    DimensionBudget,
    check_document,
    check_shape,
)
from symad.saving.saved_ops import check_node, check_op, classes, read_op
from symad.saving.saved_structures import (
    Classes,
    read_calling,
    read_structure,
    write_calling,
    write_structure,
)
from symad.saving.saved_values import read_value, write_value
from symad.tracing import as_graph
from symad.tracing.ranged import Ranged, function_of_body

FORMAT, VERSION = "symad graph", 1

DAMAGE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""The exceptions that Python raises for a damaged file."""


def save(f: Traceable, path: Path | str, inputs: Inputs | None = None) -> Path:
    """Write a graph to a file; returns the path, so that ``load(save(g, path)) is g``.

    The file is written completely or not at all: until then an older one stays unchanged.

    Args:
        f: an argument of `symad.trace`.
        path: the path of the file, usually ending in ``.json``.
        inputs: order and grouping of the arguments, as in `symad.trace`.

    Returns:
        The path.

    Raises:
        SavingError: a function is not registered, or an input is of an unknown kind.
        TypeError: the path is neither a str nor a Path.

    Example:
        >>> import sympy, symad, tempfile, pathlib
        >>> x = sympy.Symbol("x", real=True)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "cube.json"
        >>> _ = symad.save(symad.trace(x**3), path)
        >>> symad.load(path)(2)
        8
    """
    return write_text(_path("save", path), dumps(as_graph(f, None, inputs)))


def _path(function: str, path: Path | str) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"{function}: path is {brief(path)} of type {type(path).__name__}; give a str or Path"
        )
    return Path(path)


def load(path: Path | str, classes: Classes = ()) -> Graph:
    """Read a graph from a file written by `save`. Nothing in the file is executed or imported.

    Expressions are built without being evaluated; sizes, depths and numbers are limited
    (`symad.saving.saved_limits`), so that a hostile file is refused and does not keep the machine busy.

    Args:
        path: the path of the file.
        classes: the dataclasses and named tuples that the graph takes or returns.

    Returns:
        The graph.

    Raises:
        SavingError: the file is not a saved graph, is damaged, or uses ops, functions or classes unknown
            here.
        TypeError: the path is neither a str nor a Path.

    Example:
        >>> import sympy, symad, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "cube.json"
        >>> cube = symad.trace(sympy.Symbol("x") ** 3)
        >>> symad.load(symad.save(cube, path)) is cube
        True
    """
    source = _path("load", path)
    about = source.stat()
    if not stat.S_ISREG(about.st_mode):
        raise SavingError(f"{source.name} is not an ordinary file, so it is not a saved graph")
    if about.st_size > MAX_TEXT:
        raise SavingError(f"{source.name} has {about.st_size} bytes; at most {MAX_TEXT} are read")
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SavingError(f"{source.name} is not text, so it is not a saved graph") from None
    try:
        return loads(text, classes)
    except SavingError as error:
        raise SavingError(f"{source.name}: {_short(str(error))}") from None


def _short(text: str) -> str:
    """The beginning and the end of a long error message, as damaged files can cause."""
    half = MAX_ERROR // 2
    return text if len(text) <= MAX_ERROR else f"{text[:half]} ... {text[-half:]}"


def dumps(f: Traceable) -> str:
    """A graph as JSON text."""
    document = {"format": FORMAT, "version": VERSION, **_write_graph(as_graph(f))}
    nodes = ",\n  ".join(json.dumps(node, ensure_ascii=False) for node in document.pop("nodes"))
    head = ",\n ".join(f'"{k}": {json.dumps(v, ensure_ascii=False)}' for k, v in document.items())
    return without_surrogates(f'{{{head},\n "nodes": [\n  {nodes}\n ]}}\n')


def pickled(graph: Graph) -> tuple[Callable[..., Graph], tuple[object, ...]]:
    """The data of a graph for pickle: its text, and the function that reads it."""
    return loads, (dumps(graph), graph.classes)


def loads(text: str, classes: Classes = ()) -> Graph:
    """A graph from JSON text; see `load`."""
    if len(text) > MAX_TEXT:
        raise SavingError(f"the text has {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, SavingError):
            raise
        raise SavingError(f"this is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SavingError(f'this is not a saved graph: it does not say "format": "{FORMAT}"')
    if document.get("version") != VERSION:
        raise SavingError(
            f"the file has version {document.get('version')!r} of the format; this symad reads "
            f"version {VERSION}"
        )
    check_document(document)
    try:
        with within(BUDGET, DimensionBudget()):
            return _read_graph(document, classes)
    except SavingError:
        raise
    except RecursionError:
        raise SavingError("a value is nested too deeply") from None
    except DAMAGE as error:
        raise SavingError(f"the file is damaged: {type(error).__name__}: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise SavingError(f"{name} is not a number that a saved graph can contain")


# ---- writing -------------------------------------------------------------------------------------


def _write_graph(graph: Graph) -> dict[str, Any]:
    origin = graph.origin
    named = () if origin is None else (*([] if origin.value is None else [origin.value]), *origin.wrt)
    order = topological([*graph.input_nodes, *graph.output_nodes, *named])
    number = {node: k for k, node in enumerate(order)}
    made = (
        None
        if origin is None
        else [
            list(origin.labels),
            None if origin.value is None else number[origin.value],
            [number[n] for n in origin.wrt],
        ]
    )
    return {
        "name": graph.name,
        "report": graph.report,
        "inputs": [number[n] for n in graph.input_nodes],
        "outputs": [number[n] for n in graph.output_nodes],
        "structure": write_structure(graph.structure),
        "origin": made,
        **write_calling(graph),
        **({"variables": _write_variables(graph)} if graph.variables else {}),
        "nodes": [_write_node(n, number) for n in order],
    }


def _write_variables(graph: Graph) -> list[Json]:
    found = scopes(graph.output_nodes)
    scope_number = {scope: k for k, scope in enumerate(found)}
    number = {scope: {node: j for j, node in enumerate(inside)} for scope, inside in found.items()}
    return [[scope_number[v.scope], number[v.scope][v.node], v.name] for v in graph.variables]


def _write_node(node: Node, number: dict[Node, int]) -> list[Json]:
    name = type(node.op).__name__
    if classes().get(name) is not type(node.op):
        raise SavingError(f"the op {name} cannot be saved; it lives only while graphs are transformed")
    values = [_write_field(getattr(node.op, field.name)) for field in fields(node.op)]
    return [name, values, [number[a] for a in node.args]]


def _write_field(value: Any) -> Json:
    if isinstance(value, type) and issubclass(value, Ranged):
        return ["range", value.kind, _write_graph(value.body)]
    return ["graph", _write_graph(value)] if isinstance(value, Graph) else write_value(value)


# ---- reading -------------------------------------------------------------------------------------


def _read_graph(saved: Any, classes: Classes = ()) -> Graph:
    match saved:
        case {
            "name": str(name),
            "report": str(report),
            "inputs": list(inputs),
            "outputs": list(outputs),
            "structure": structure,
            "nodes": list(entries),
        }:
            pass
        case _:
            raise SavingError("name, report, inputs, outputs, structure or nodes are missing")
    nodes: list[Node] = []
    for k, entry in enumerate(entries):
        nodes.append(_read_node(entry, nodes, k))
    made = read_structure(structure, len(outputs), classes)
    if leaves(made) != len(outputs):
        raise SavingError(f"{len(outputs)} outputs do not fill a structure of {leaves(made)}")
    for node in (ins := [_pick(nodes, i, "input") for i in inputs]):
        if not hasattr(node.op, "symbol"):
            raise SavingError(f"an input of the graph is a {type(node.op).__name__}")
    outs = tuple(_pick(nodes, o, "output") for o in outputs)
    given = set(ins)
    if len(given) < len(ins):
        raise SavingError("the graph has one input twice")
    origin = _read_origin(saved.get("origin"), nodes)
    value = () if origin is None or origin.value is None else (origin.value,)
    for node in topological((*outs, *value)):
        if hasattr(node.op, "symbol") and node not in given:
            raise SavingError(f"the graph uses {node.op.symbol}, which is not one of its inputs")
    calling = read_calling(saved, len(ins), len(outs), classes)
    variables = _read_variables(saved.get("variables", []), outs)
    return Graph(tuple(ins), outs, made, name, report, origin, *calling, variables)


def _read_variables(saved: Json, outputs: tuple[Node, ...]) -> Variables:
    """The names of values; a value is saved as the number of its scope and its number in there."""
    match saved:
        case []:
            return ()
        case list(entries) if all(isinstance(entry, list) and len(entry) == 3 for entry in entries):
            found = [(scope, list(inside)) for scope, inside in scopes(outputs).items()]
            ranges = [len(inside) for _, inside in found]
            if all(_is_variable(entry, ranges) for entry in entries):
                return tuple(Variable(found[k][0], found[k][1][j], name) for k, j, name in entries)
    raise SavingError("the names of values are damaged")


def _is_variable(entry: list[Json], ranges: list[int]) -> bool:
    """True for the number of a scope, the number of a value in there, and a name."""
    scope, number, name = entry
    if type(scope) is not int or type(number) is not int or not isinstance(name, str):
        return False
    return 0 <= scope < len(ranges) and 0 <= number < ranges[scope] and is_variable(name)


def _read_origin(saved: Any, nodes: list[Node]) -> Origin | None:
    match saved:
        case None:
            return None
        case [list(labels), value, list(wrt)] if all(isinstance(label, str) for label in labels):
            scalar = None if value is None else _pick(nodes, value, "value of the origin")
            return Origin(tuple(labels), scalar, tuple(_pick(nodes, n, "input of the origin") for n in wrt))
    raise SavingError("the origin of the graph is damaged")


def _pick(nodes: list[Node], position: int, what: str) -> Node:
    if type(position) is not int or not 0 <= position < len(nodes):
        raise SavingError(f"{position!r} is not the number of an earlier node ({what})")
    return nodes[position]


def _read_node(entry: Json, nodes: list[Node], k: int) -> Node:
    match entry:
        case [str(name), list(saved), list(positions)] if name in classes():
            op_class = classes()[name]
        case [str(name), *_] if name not in classes():
            raise SavingError(f"node {k} is of the op {name!r}, which is not known here")
        case _:
            raise SavingError(f"node {k} is not a list of an op, its fields and its arguments")
    args = tuple(_pick(nodes, p, f"argument of node {k}") for p in positions)
    try:
        op = read_op(op_class, [_read_field(value) for value in saved])
        check_op(op, len(args))
        node = Node.of(op, args)
        check_shape(node.shape)
        check_node(node)
        return node
    except SymadError as error:
        raise SavingError(f"node {k} ({name}): {error}") from None
    except DAMAGE as error:
        raise SavingError(f"node {k} ({name}) is damaged: {type(error).__name__}: {error}") from None


def _read_field(saved: Json) -> Any:
    match saved:
        case ["graph", dict(body)]:
            return _read_graph(body)
        case ["range", str(kind), dict(body)]:
            return function_of_body(kind, _read_graph(body))
    return read_value(saved)
