"""Functions of one row as inner loops of generalized ufuncs: the C text that calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_PARALLEL = 1 << 16
"""Arrays with at least this many elements are divided among threads.

Origin: not recorded, and not measured with several threads.
"""


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


def row_head(name: str, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> str:
    """The first line of a row function."""
    taken = [f"const {o.type} {'*' if o.is_row else ''}{o.name}" for o in inputs]
    made = [f"{o.type} *{o.name}" for o in outputs]
    return f"static void {name}_row(const ptrdiff_t columns, {', '.join([*taken, *made])}) {{"


def signature(inputs: Sequence[Operand], outputs: Sequence[Operand]) -> str:
    """The signature of arguments and results in NumPy's notation: (n),()->(n)."""
    left, right = (",".join("(n)" if o.is_row else "()" for o in side) for side in (inputs, outputs))
    return f"{left}->{right}"


def entry(name: str, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> list[str]:
    """The function that NumPy calls: it processes row after row, divided among threads."""
    every = [*inputs, *outputs]
    rows = [k for k, o in enumerate(every) if o.is_row]
    core = {k: f"steps[{len(every) + j}]" for j, k in enumerate(rows)}
    near = " && ".join(f"{core[k]} == sizeof({every[k].type})" for k in rows)
    direct = [
        f"*({o.type} *)(args[{k}] + row * steps[{k}])"
        if k < len(inputs) and not o.is_row
        else f"({o.type} *)(args[{k}] + row * steps[{k}])"
        for k, o in enumerate(every)
    ]
    copied = [f"b{k}" if o.is_row else direct[k] for k, o in enumerate(every)]
    far = {k: f"*({every[k].type} *)(args[{k}] + row * steps[{k}] + j * {core[k]})" for k in rows}
    loop = "      for (ptrdiff_t j = 0; j < columns; j++) "
    return [
        f"void {name}(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *data) {{",
        "  const ptrdiff_t rows = dimensions[0], columns = dimensions[1];",
        "  (void)data;",
        f"  if (({near}) && rows * columns < {MIN_PARALLEL}) {{",
        "    for (ptrdiff_t row = 0; row < rows; row++)",
        f"      {name}_row(columns, {', '.join(direct)});",
        f"  }} else if ({near}) {{",
        "#pragma omp parallel for schedule(static)",
        "    for (ptrdiff_t row = 0; row < rows; row++)",
        f"      {name}_row(columns, {', '.join(direct)});",
        "  } else {",
        f"    char *copies = malloc({len(rows)} * 8 * columns + 1);",
        "    if (!copies) abort();  // not one row more fits into memory",
        *(f"    {every[k].type} *b{k} = (void *)(copies + {j} * 8 * columns);" for j, k in enumerate(rows)),
        "    for (ptrdiff_t row = 0; row < rows; row++) {",
        *(f"{loop}b{k}[j] = {far[k]};" for k in rows if k < len(inputs)),
        f"      {name}_row(columns, {', '.join(copied)});",
        *(f"{loop}{far[k]} = b{k}[j];" for k in rows if k >= len(inputs)),
        "    }",
        "    free(copies);",
        "  }",
        "}",
    ]
