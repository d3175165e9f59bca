"""Functions of one row as inner loops of generalized ufuncs: the C text that calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.numeric.compiled_arrays.c.drivers import driven


@dataclass(frozen=True)
class Operand:
    """An argument or result of a row function."""

    name: str
    is_row: bool
    """True for a row, false for a single number."""
    position: int
    """The number of the input or result of the kernel to which the row belongs."""
    type: str
    """The type of its elements in C."""


def row_function(
    name: str, inputs: Sequence[Operand], outputs: Sequence[Operand], body: Sequence[str]
) -> list[str]:
    """The loop over rows with the statements for one row, and the function that NumPy calls."""
    every = [*inputs, *outputs]
    opened = []
    for k, o in enumerate(every):
        const = "const " if k < len(inputs) else ""
        place = f"({const}{o.type} *)(at[{k}] + row * steps[{k}])"
        by_value = k < len(inputs) and not o.is_row
        declared = f"const {o.type} {o.name} = *" if by_value else f"{const}{o.type} *{o.name} = "
        opened.append(f"{declared}{place};")
    rows = "const ptrdiff_t rows, const ptrdiff_t columns, char *const *at, const ptrdiff_t *steps"
    return [
        f"SYMAD_ONCE void {name}_row({rows}) {{",
        "for (ptrdiff_t row = 0; row < rows; row++) {",
        *(f"  {line}" for line in opened),
        *body,
        "}",
        "}",
        *driven("symad_rows", name, f"{name}_row", len(inputs), [_size(o) for o in every]),
    ]


def _size(operand: Operand) -> str:
    return f"sizeof({operand.type})" if operand.is_row else "0"


def signature(inputs: Sequence[Operand], outputs: Sequence[Operand]) -> str:
    """The signature of arguments and results in NumPy's notation: (n),()->(n)."""
    left, right = (",".join("(n)" if o.is_row else "()" for o in side) for side in (inputs, outputs))
    return f"{left}->{right}"
