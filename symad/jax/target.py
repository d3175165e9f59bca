"""The JAX target: NumPy's rules with ``np`` as jax.numpy, and other rules for operations in place.

Loops are ``lax.scan``, stores ``.at[...].set``; functions that only SciPy has are called on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from symad import special
from symad.core.graph import Op
from symad.errors import LoweringError
from symad.jax import helpers as replacing
from symad.numeric.program.expressions import Compute
from symad.numeric.program.loops import Loop
from symad.numeric.program.statements import Store
from symad.numeric.targets.pasting import pasted, pasted_into
from symad.numeric.targets.scalars import Written, function_of, write
from symad.numeric.targets.statements import indented, lines, lines_of
from symad.numeric.targets.target import NUMPY, LibraryFunction, NumPy, Text, Texts
from symad.numeric.targets.writer import Writer
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.ordering import SortingPositions
from symad.ops.arrays.random import FoldIn, Uniform
from symad.ops.elementwise.apply import Apply
from symad.ops.linalg.cholesky import Cholesky
from symad.ops.linalg.solve_det import Solve
from symad.ops.sparse.csr import CompressedRows
from symad.ops.sparse.sparse_solve import SparseSolve


@dataclass(frozen=True)
class Jax(NumPy):
    """Arrays of JAX."""


JAX = Jax("jax", NUMPY.functions, NUMPY.infinity, NUMPY.not_a_number)


class JaxWriter(Writer):
    """The writer for JAX: its helpers, and its forms of SciPy's functions."""

    library = "import jax.numpy as np"
    quiet = ""

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of a helper that JAX can trace."""
        helper = pasted(getattr(replacing, function.__name__, function))
        found = pasted_into(self.module, self.pasted, helper)
        self.imports.update(line for line in found.imports if line != Writer.library)
        self.helpers.update(found.functions)
        return found.functions[-1][0]

    def function(self, function: LibraryFunction) -> str:
        """JAX's form of the function."""
        if function.module.startswith("scipy."):
            self.imports.add("import jax.scipy")
            return f"jax.{function}"
        return super().function(function)


def is_on_host(function: LibraryFunction) -> bool:
    """True if JAX has no form of a function of NumPy or SciPy."""
    if function.module == "symad.special":
        return pasted(getattr(special, function.name)).needs_scipy
    return function.module.startswith("scipy.") and function.name not in IN_JAX


IN_JAX = {"digamma", "erf", "erfc", "erfinv", "gamma"}
"""Functions of SciPy that JAX has, with all derivatives."""


@write.dispatch
def write_apply_in_jax(op: Apply, target: Jax, node: Compute, args: Texts, writer: JaxWriter) -> Written:
    function = target.functions.get(op.head)
    if function is None or not is_on_host(function):
        return function_of(op, target, node, args, writer)
    writer.imports.add("from symad.jax.calling import host_function")
    return Text(f"host_function({op.head.__name__!r}, {len(args)})({', '.join(a.text for a in args)})")


@lines.dispatch
def store_lines_in_jax(statement: Store, writer: JaxWriter) -> list[str]:
    name, place = writer.name(statement.array), writer.position(statement.position)
    return [f"{name} = {name}.at[{place}].set({writer.text(statement.expression)})"]


@lines.dispatch
def loop_lines_in_jax(statement: Loop, writer: JaxWriter) -> list[str]:
    """A scan over the index; it carries the states, and the arrays that the body stores into."""
    dtype = f"np.{writer.dtype}"
    stored = [writer.name(v) for v in dict.fromkeys(s.array for s in statement.body if isinstance(s, Store))]
    names = [*(writer.name(c.value) for c in statement.carried), *stored]
    first = [*(f"np.asarray({writer.text(c.initial)}, {dtype})" for c in statement.carried), *stored]
    step = writer.names.unique("step")
    with writer.index(statement.index) as index:
        body = [f"{_listed(names)} = carry", *lines_of(statement.body, writer)]
        after = [*(f"np.asarray({writer.text(c.next)}, {dtype})" for c in statement.carried), *stored]
    backwards = ", reverse=True" if statement.backwards else ""
    writer.imports.add("from jax import lax")
    return [
        f"def {step}(carry, {index}):",
        *indented([*body, f"return {_listed(after)}, None"]),
        f"{_listed(names)}, _ = lax.scan({step}, {_listed(first)}, np.arange({writer.dim(statement.count)})"
        f"{backwards})",
    ]


def _listed(names: list[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names)})"


@write.dispatch
def write_gather_in_jax(op: Gather, target: Jax, node: Compute, args: Texts, writer: JaxWriter) -> Written:
    """Rows; an index out of range gives NaN, since code that JAX has compiled raises no error."""
    rows = f"{writer.helper(replacing._indices)}({args[1]}, {writer.dim(node.args[0].shape[0])})"
    return Text(f"np.asarray({args[0]}).at[{rows}].get(mode='fill', fill_value=np.nan)")


@write.dispatch
def write_sorting_positions_in_jax(
    op: SortingPositions, target: Jax, node: Compute, args: Texts, writer: Any
) -> Written:
    return Text(f"np.argsort({args[0]}, axis=-1, stable=True).astype(np.{writer.dtype})")


@write.dispatch
def write_solve_in_jax(op: Solve, target: Jax, node: Compute, args: Texts, writer: JaxWriter) -> Written:
    """JAX takes vectors and matrices as right sides, as NumPy did before its version 2."""
    return Text(f"{writer.helper(replacing._solve)}({args[0]}, {args[1]}, {len(node.args[1].shape)})")


@write.dispatch
def write_cholesky_in_jax(
    op: Cholesky, target: Jax, node: Compute, args: Texts, writer: JaxWriter
) -> Written:
    """The helper: JAX's own function uses the mean of both triangles."""
    return Text(f"{writer.helper(replacing._cholesky)}({args[0]})")


def _refused(op: Op, writer: object) -> NoReturn:
    raise LoweringError(f"{type(op).__name__} has no form in JAX; evaluate the graph, or lower it to NumPy")


@write.dispatch
def write_uniform_in_jax(op: Uniform, target: Jax, node: Compute, args: Texts, writer: JaxWriter) -> Written:
    return _refused(op, writer)


@write.dispatch
def write_fold_in_in_jax(op: FoldIn, target: Jax, node: Compute, args: Texts, writer: JaxWriter) -> Written:
    return _refused(op, writer)


@write.dispatch
def write_sparse_in_jax(
    op: CompressedRows, target: Jax, node: Compute, args: Texts, writer: JaxWriter
) -> Written:
    return _refused(op, writer)


@write.dispatch
def write_sparse_solve_in_jax(
    op: SparseSolve, target: Jax, node: Compute, args: Texts, writer: Any
) -> Written:
    return _refused(op, writer)
