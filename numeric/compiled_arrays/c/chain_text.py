"""Elementwise chains as inner loops of ufuncs: C text.

The inner loop runs over contiguous arrays, so that it becomes vector code. Arrays that are not contiguous,
and broadcast numbers, are first gathered into short buffers. Long arrays are divided among threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Graph, Node
from symad.numeric.compiled_arrays.c.c_body import C_TYPE, NativeBody
from symad.numeric.compiled_arrays.c.drivers import driven
from symad.numeric.compiled_arrays.c.row_entry import Operand, row_function
from symad.numeric.fusion.c_expressions import statements
from symad.ops.elementwise.selection import Condition, Logic

WAITING_LENGTH = 256
"""Elements whose results are delayed until the arguments of all sines are known."""


def chain_source(
    name: str, body: Graph, types: Sequence[str], kinds: Sequence[str], real: str
) -> tuple[str, NativeBody]:
    """The inner loop of an elementwise body.

    Args:
        name: the name of the C function.
        body: the chain; its inputs are `Local`.
        types: NumPy's types of the inputs.
        kinds: NumPy's types of the results.
        real: the name of the floating-point type in C.
    """
    text = NativeBody(real)
    names = {local: f"a{k}" for k, local in enumerate(body.input_nodes)}
    results = statements(body.output_nodes, names, text)
    opened = [f"const {C_TYPE[t]} *x{k} = (const {C_TYPE[t]} *)at_[{k}];" for k, t in enumerate(types)]
    opened += [f"{C_TYPE[t]} *y{k} = ({C_TYPE[t]} *)at_[{len(types) + k}];" for k, t in enumerate(kinds)]
    sizes = [f"sizeof({C_TYPE[t]})" for t in (*types, *kinds)]
    at = "at + i" if text.sines else "i"
    given = [f"const {_inside(t, real)} a{k} = x{k}[{at}];" for k, t in enumerate(types)]
    lines = [
        f"SYMAD_ONCE void {name}_piece(const ptrdiff_t n, char *const *at_) {{",
        *(f"  {line}" for line in opened),
        *(
            _waiting(text, given, results, kinds)
            if text.sines
            else _each("n", [*given, *text.lines, *(f"y{k}[i] = {r};" for k, r in enumerate(results))])
        ),
        "}",
        *driven("symad_pieces", name, f"{name}_piece", len(types), sizes),
    ]
    return "\n".join(lines) + "\n", text


def _each(count: str, statements: Sequence[str], simd: str = "#pragma omp simd") -> list[str]:
    """A loop, with vector instructions unless ``simd`` is empty."""
    head = f"  for (ptrdiff_t i = 0; i < {count}; i++) {{"
    return [*([simd] if simd else []), head, *(f"    {line}" for line in statements), "  }"]


def _waiting(
    text: NativeBody, given: Sequence[str], results: Sequence[str], kinds: Sequence[str]
) -> list[str]:
    """Results of short pieces stay in buffers until all arguments of sines are known to be small enough.

    The results may overwrite the arguments, which a second computation would need.
    """
    kept = [f"t{k}[i] = {result};" for k, result in enumerate(results)]
    return [
        f"for (ptrdiff_t at = 0; at < n; at += {WAITING_LENGTH}) {{",
        f"  const ptrdiff_t count = n - at < {WAITING_LENGTH} ? n - at : {WAITING_LENGTH};",
        *(f"  {C_TYPE[kind]} t{k}[{WAITING_LENGTH}];" for k, kind in enumerate(kinds)),
        "  symad_bits far = 0;",
        *_each("count", [*given, *text.near, *kept], "#pragma omp simd reduction(|:far)"),
        "  if (far)",
        *_each("count", [*given, *text.lines, *kept], ""),
        *(f"  memcpy(y{k} + at, t{k}, count * sizeof *t{k});" for k in range(len(kinds))),
        "}",
    ]


def _inside(kind: str, real: str) -> str:
    return real if kind.startswith("float") or kind == "int64" else C_TYPE[kind]


def by_rows_source(name: str, ranks: Sequence[int]) -> str:
    """A generalized ufunc over the last two axes, which calls the inner loop ``name`` for each row.

    It is for views of parts of arrays with short rows, where NumPy's overhead per row exceeds the work.

    Args:
        name: the name of the inner loop.
        ranks: 2 for each argument and result that is an array, 0 for numbers.
    """
    count, at = len(ranks), len(ranks)
    lines = []
    for k, rank in enumerate(ranks):
        row = f" + row * steps[{at}]" if rank else ""
        lines.append(f"      at[{k}] = args[{k}] + outer * steps[{k}]{row};")
        at += rank
    inner, at = [], len(ranks)
    for rank in ranks:
        inner.append(f"steps[{at + 1}]" if rank else "0")
        at += rank
    return (
        "\n".join(
            [
                f"void {name}_rows(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps,",
                "                void *data) {",
                f"  char *at[{count}];",
                f"  const ptrdiff_t inner[{count}] = {{{', '.join(inner)}}};",
                "  for (ptrdiff_t outer = 0; outer < dimensions[0]; outer++)",
                "    for (ptrdiff_t row = 0; row < dimensions[1]; row++) {",
                *lines,
                f"      {name}(at, dimensions + 2, inner, data);",
                "    }",
                "}",
            ]
        )
        + "\n"
    )


def result_type(node: Node, dtype: str) -> str:
    """NumPy's type of the value of a node of a body."""
    return "bool" if isinstance(node.op, (Condition, Logic)) else dtype


def sum_source(
    name: str, body: Graph, types: Sequence[str], real: str, is_row: Sequence[bool] = ()
) -> tuple[str, NativeBody]:
    """The inner loop of a generalized ufunc that sums the values of an elementwise body over a row.

    Args:
        name: the name of the C function.
        body: the summands; its inputs are rows and numbers.
        types: NumPy's types of the inputs.
        real: the name of the floating-point type in C.
        is_row: which inputs are rows; by default those that have a shape.
    """
    text = NativeBody(real)
    are_rows = is_row or [bool(node.shape) for node in body.input_nodes]
    inputs = [
        Operand(f"x{k}", row, k, C_TYPE[t]) for k, (row, t) in enumerate(zip(are_rows, types, strict=True))
    ]
    names = {node: f"a{k}" for k, node in enumerate(body.input_nodes)}
    results = statements(body.output_nodes, names, text)
    outputs = [Operand(f"y{k}", False, k, real) for k in range(len(results))]
    at = "at + i" if text.sines else "i"
    given = [
        f"const {_inside(t, real)} a{k} = x{k}{f'[{at}]' if o.is_row else ''};"
        for k, (o, t) in enumerate(zip(inputs, types, strict=True))
    ]
    totals = [f"total{k}" for k in range(len(results))]
    added = [f"{total} += {result};" for total, result in zip(totals, results, strict=True)]
    together = f"#pragma omp simd reduction(+:{', '.join(totals)})"
    body_lines = [
        *(f"  {real} {total} = 0;" for total in totals),
        *(
            _waiting_sum(text, given, added, totals, real)
            if text.sines
            else _each("columns", [*given, *text.lines, *added], together)
        ),
        *(f"  *y{k} = {total};" for k, total in enumerate(totals)),
    ]
    return "\n".join(row_function(name, inputs, outputs, body_lines)) + "\n", text


def _waiting_sum(
    text: NativeBody, given: Sequence[str], added: Sequence[str], totals: Sequence[str], real: str
) -> list[str]:
    """Sums of short pieces, recomputed if an argument was too large for the branch-free sine."""
    both = f"#pragma omp simd reduction(+:{', '.join(totals)}) reduction(|:far)"
    zeros = [f"  {total} = 0;" for total in totals]
    return [
        f"for (ptrdiff_t at = 0; at < columns; at += {WAITING_LENGTH}) {{",
        f"  const ptrdiff_t count = columns - at < {WAITING_LENGTH} ? columns - at : {WAITING_LENGTH};",
        *(f"  const {real} before_{total} = {total};" for total in totals),
        "  symad_bits far = 0;",
        *zeros,
        *_each("count", [*given, *text.near, *added], both),
        "  if (far) {",
        *zeros,
        *_each("count", [*given, *text.lines, *added], ""),
        "  }",
        *(f"  {total} += before_{total};" for total in totals),
        "}",
    ]
