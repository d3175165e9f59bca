"""Random numbers in NumPy: the text of `symad.evaluation.philox` goes into the module."""

from __future__ import annotations

import inspect
from typing import Any

from symad.core.graph import Node
from symad.evaluation import philox
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Text, Texts, emit
from symad.ops.fused.random import FoldIn, Uniform


def _helper(name: str, printer: Any) -> str:
    """A function of `symad.evaluation.philox` with what it calls."""
    printer.imports.add("from typing import Any")
    for needed in ("_philox", "_key_words", name):
        printer.helper(needed, inspect.getsource(getattr(philox, needed)))
    return name


@emit.dispatch
def uniform_emit(op: Uniform, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    name = _helper("_uniform", printer)
    return f"{name}({args[0]}, {printer.dims(op.shape)}, {printer.np}.{printer.dtype})"


@emit.dispatch
def fold_in_emit(op: FoldIn, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    name = _helper("_fold_in", printer)
    return f"{name}({args[0]}, {args[1]}, {printer.np}.{printer.dtype})"
