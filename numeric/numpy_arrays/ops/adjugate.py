"""Adjugates as helper functions on singular value decompositions."""

from __future__ import annotations

import inspect
from typing import Any

from symad.core.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Text, Texts, emit
from symad.ops.linalg import adjugate
from symad.ops.linalg.adjugate import Adjugate, AdjugateTangent


def _called(printer: Any, function: Any, args: Texts) -> str:
    printer.imports.add("from typing import Any")
    printer.helper("products_without", inspect.getsource(adjugate.products_without))
    name: str = function.__name__
    printer.helper(name, inspect.getsource(function))
    return f"{name}({', '.join(args)})"


@emit.dispatch
def adjugate_emit(op: Adjugate, library: ArrayLibrary, node: Node, args: Texts, printer: Any) -> Text:
    return _called(printer, adjugate.adjugate_of, args)


@emit.dispatch
def adjugate_tangent_emit(
    op: AdjugateTangent, library: ArrayLibrary, node: Node, args: Texts, printer: Any
) -> Text:
    return _called(printer, adjugate.adjugate_tangent_of, args)
