"""Sums, products and integrals of `symad.tracing.ranged` as functions of a printed module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symad.errors import LoweringError
from symad.numeric.plain import plain_program
from symad.numeric.targets.statements import indented, lines_of
from symad.numeric.targets.writer import SOURCES, Writer
from symad.tracing.ranged import BY_FLOATS, Ranged

if TYPE_CHECKING:
    import sympy


def ranged_source(head: type[sympy.Basic], name: str, writer: Writer) -> str:
    """A function of (low, high, parameters), with the function of its terms inside.

    Raises:
        LoweringError: the library is not NumPy.
    """
    if writer.np != "np":
        raise LoweringError(f"a {head.kind} whose range is only known in a call has no form for {writer.np}")
    program = plain_program(head.body)
    terms = writer.beside()
    variable, *parameters = map(terms.name, program.inputs)
    lines = lines_of(program.statements, terms)
    given = ", ".join(["low", "high", *parameters])
    return "\n".join([
        f"def {name}({given}):",
        f'    """The {head.kind} of the terms from low to high."""',
        f"    def term({', '.join([variable, *parameters])}):",
        *indented(indented([*lines, f"return {terms.text(program.results[0])}"])),
        "",
        f"    return {writer.helper(BY_FLOATS[head.kind])}(term, {given})",
    ])  # fmt: skip


SOURCES[Ranged] = ranged_source
