"""C text that all kernels of a module share: from the arrays of a ufunc to contiguous pieces and rows.

A kernel goes over rows of contiguous elements. What calls it is compiled once for all kernels of a module.
The compiler must not make a copy for each of them: copies of this code and of the loop would take two thirds
of the time of compilation.
"""

from __future__ import annotations

from symad.numeric.compiler.c_templates import filled

MIN_PARALLEL = 1 << 16
"""Arrays with at least this many elements are divided among threads.

Origin: not recorded, and not measured with several threads.
"""

PIECE_LENGTH = 1024
"""Elements that one thread processes at a time; also the size of the buffers.

From 64 to 16,384, the time of a chain on halves of rows differs by 5 % at the most (bench_thresholds.py,
"pieces in C").
"""

COMMON = """
#if defined __GNUC__ && !defined __clang__
#define SYMAD_ONCE __attribute__((noinline, noclone)) static
#elif defined __GNUC__
#define SYMAD_ONCE __attribute__((noinline)) static
#else
#define SYMAD_ONCE static
#endif
// n elements of 8, 4 or 1 bytes, from one place to another
SYMAD_ONCE void symad_copy(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t step, ptrdiff_t n,
                           int size) {
  if (size == 8) for (ptrdiff_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * step, 8);
  else if (size == 4) for (ptrdiff_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * step, 4);
  else for (ptrdiff_t i = 0; i < n; i++) to[i * to_step] = from[i * step];
}
// a kernel of rows; an operand of size 0 is a number for each row, the others are contiguous rows
typedef void (*symad_kernel)(const ptrdiff_t rows, const ptrdiff_t columns, char *const *at,
                             const ptrdiff_t *steps);
"""

PIECES = f"""
// a kernel on long rows, which are cut into pieces; an operand of size 0 is a number for all of them
SYMAD_ONCE void symad_pieces(symad_kernel run, int inputs, int count, const unsigned char *sizes, char **args,
                             const ptrdiff_t *dimensions, const ptrdiff_t *steps) {{
  const ptrdiff_t size = dimensions[0];
  bool near = true;
  for (int k = 0; k < count; k++) near &= !sizes[k] || steps[k] == sizes[k];
  if (near && size < {MIN_PARALLEL}) {{
    run(1, size, args, steps);
  }} else if (near) {{
#pragma omp parallel for schedule(static)
    for (ptrdiff_t at = 0; at < size; at += {PIECE_LENGTH}) {{
      char *there[count];
      for (int k = 0; k < count; k++) there[k] = args[k] + at * sizes[k];
      run(1, size - at < {PIECE_LENGTH} ? size - at : {PIECE_LENGTH}, there, steps);
    }}
  }} else {{
    const ptrdiff_t most = size < {PIECE_LENGTH} ? size + 1 : {PIECE_LENGTH};
    double buffers[count * most];
    char *there[count];
    for (ptrdiff_t at = 0; at < size; at += {PIECE_LENGTH}) {{
      const ptrdiff_t n = size - at < {PIECE_LENGTH} ? size - at : {PIECE_LENGTH};
      for (int k = 0; k < count; k++) {{
        const bool direct = !sizes[k] || steps[k] == sizes[k];
        there[k] = direct ? args[k] + at * steps[k] : (char *)(buffers + k * most);
        if (!direct && k < inputs && (at == 0 || steps[k]))  // no later piece is longer
          symad_copy(there[k], sizes[k], args[k] + at * steps[k], steps[k], n, sizes[k]);
      }}
      run(1, n, there, steps);
      for (int k = inputs; k < count; k++)
        if (steps[k] != sizes[k])
          symad_copy(args[k] + at * steps[k], steps[k], there[k], sizes[k], n, sizes[k]);
    }}
  }}
}}
"""

ROWS = f"""
SYMAD_ONCE void symad_rows(symad_kernel run, int inputs, int count, const unsigned char *sizes, char **args,
                           const ptrdiff_t *dimensions, const ptrdiff_t *steps) {{
  const ptrdiff_t rows = dimensions[0], columns = dimensions[1];
  ptrdiff_t core[count];
  bool near = true;
  for (int k = 0, next = count; k < count; k++) {{
    core[k] = sizes[k] ? steps[next++] : 0;
    if (columns == 1) core[k] = sizes[k];  // NumPy gives axes of one element the step 0
    near &= core[k] == sizes[k];
  }}
  if (near && rows * columns < {MIN_PARALLEL}) {{
    run(rows, columns, args, steps);
  }} else if (near) {{
    const ptrdiff_t some = 1 + {PIECE_LENGTH} / (columns + 1);
#pragma omp parallel for schedule(static)
    for (ptrdiff_t row = 0; row < rows; row += some) {{
      char *there[count];
      for (int k = 0; k < count; k++) there[k] = args[k] + row * steps[k];
      run(rows - row < some ? rows - row : some, columns, there, steps);
    }}
  }} else {{
    char *copies = malloc(count * 8 * columns + 1), *there[count];
    if (!copies) abort();  // not one row more fits into memory
    for (ptrdiff_t row = 0; row < rows; row++) {{
      for (int k = 0; k < count; k++) {{
        char *const here = args[k] + row * steps[k];
        there[k] = core[k] == sizes[k] ? here : copies + k * 8 * columns;
        if (there[k] != here && k < inputs) symad_copy(there[k], sizes[k], here, core[k], columns, sizes[k]);
      }}
      run(1, columns, there, steps);
      for (int k = inputs; k < count; k++)
        if (core[k] != sizes[k])
          symad_copy(args[k] + row * steps[k], core[k], there[k], sizes[k], columns, sizes[k]);
    }}
    free(copies);
  }}
}}
"""


def drivers(text: str) -> str:
    """The drivers that the kernels of a module call."""
    parts = [driver for name, driver in (("symad_pieces(", PIECES), ("symad_rows(", ROWS)) if name in text]
    return "".join([COMMON, *parts]) if parts else ""


def driven(name: str, by_rows: bool, inputs: int, sizes: list[str]) -> list[str]:
    """The function that NumPy calls: it passes the kernel ``name_row`` to its driver.

    Args:
        name: the name of the function.
        by_rows: whether NumPy gives rows, not long arrays.
        inputs: the number of inputs; results follow.
        sizes: for each operand the size of its elements in C.
    """
    driver = "symad_rows" if by_rows else "symad_pieces"
    return [
        f"void {name}(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *data) {{",
        f"  static const unsigned char sizes[] = {{{', '.join(sizes)}}};",
        "  (void)data;",
        f"  {driver}({name}_row, {inputs}, {len(sizes)}, sizes, args, dimensions, steps);",
        "}",
    ]


# ---- the entries of a sparse matrix, gathered from an array of its parts -------------------------


SIGNATURE = "(n),(m)->(m)"

TEXT = f"""void ${{name}}(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *data) {{
  const $real *restrict values = (const $real *)args[0];
  const int *restrict places = (const int *)args[1];
  $real *restrict entries = ($real *)args[2];
  const ptrdiff_t size = dimensions[2];
  (void)steps;
  (void)data;
#pragma omp parallel for simd schedule(static) if (size >= {MIN_PARALLEL})
  for (ptrdiff_t i = 0; i < size; i++) entries[i] = values[places[i]];
}}
"""
"""One gather. The module itself makes the arrays, so they are contiguous and do not overlap."""


def gather_source(name: str, real: str) -> str:
    """The kernel entries[i] = values[index[i]]."""
    return filled(TEXT, {"real": real, "name": name}.__getitem__)
