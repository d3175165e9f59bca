"""Systems of two to four equations as arithmetic of Python's numbers.

A call of ``np.linalg.solve`` takes 2.8 µs at these sizes. Written out, elimination takes 0.8 µs for two
equations, 1.2 µs for three, 1.6 µs for the inverse of order three, 1.8 µs for four.
"""

from __future__ import annotations

from symad.numeric.numpy_arrays.writer import ArrayWriter, Fast
from symad.numeric.program.expressions import Compute
from symad.numeric.targets.linear_algebra import write_call
from symad.numeric.targets.scalars import Written, write
from symad.numeric.targets.target import Text, Texts
from symad.ops.linalg.solve_det import Solve

MAX_PRODUCTS = 80
"""A system (n, n) with k right sides is written out if n² (n + k) is at most this.

Origin: at 54 and 80 the code takes 0.55 and 0.62 of the time of LAPACK's call; at 128 and 150, 0.97 and 0.84,
and its text is 60 lines long.
"""


@write.dispatch
def write_fast_solve(op: Solve, target: Fast, node: Compute, args: Texts, writer: ArrayWriter) -> Written:
    shape = node.args[1].shape
    n, k = shape[-2:]
    small = isinstance(n, int) and isinstance(k, int) and n > 1 and k > 0 and n * n * (n + k) <= MAX_PRODUCTS
    if not small or len(shape) > 2 or len(node.args[0].shape) > 2 or target.np != "np":
        return write_call(op, target, node, args, writer)
    name = writer.helper(f"_solve_{n}_{k}", solve_text(n, k, writer.type_text))
    return Text(f"{name}({args[0]}, {args[1]})")


def solve_text(n: int, k: int, dtype: str) -> str:
    """The function that solves A x = B for A (n, n) and B (n, k), by elimination with the largest pivots.

    A pivot that is 0 is left to LAPACK, which raises LinAlgError.
    """
    a = [[f"a{i}{j}" for j in range(n)] for i in range(n)]
    b = [[f"b{i}{j}" for j in range(k)] for i in range(n)]
    lines = [f"{_rows(a)} = a.tolist()", f"{_rows(b)} = b.tolist()"]
    for p in range(n):
        for i in range(p + 1, n):
            here, there = a[p][p:] + b[p], a[i][p:] + b[i]
            lines.append(f"if abs({a[i][p]}) > abs({a[p][p]}):")
            lines.append(f"    {', '.join(here + there)} = {', '.join(there + here)}")
        for i in range(p + 1, n):
            lines.append(f"factor = {a[i][p]}/{a[p][p]}")
            pairs = zip(a[i][p + 1 :] + b[i], a[p][p + 1 :] + b[p], strict=True)
            lines += [f"{changed} -= factor*{pivot}" for changed, pivot in pairs]
    for p in reversed(range(n)):
        for j in range(k):
            known = "".join(f" - {a[p][q]}*{b[q][j]}" for q in range(p + 1, n))
            over = f"({b[p][j]}{known})" if known else b[p][j]
            lines.append(f"{b[p][j]} = {over}/{a[p][p]}")
    return "\n".join([
        f"def _solve_{n}_{k}(a, b):",
        f'    """The solution of {n} equations by elimination with the largest pivots."""',
        "    try:",
        *(f"        {line}" for line in lines),
        "    except ZeroDivisionError:",
        "        return np.linalg.solve(a, b)",
        f"    return np.array(({_rows(b)}), {dtype})",
    ])  # fmt: skip


def _rows(names: list[list[str]]) -> str:
    """Rows of names as nested tuples."""
    return ", ".join(f"({', '.join(row)}{',' * (len(row) == 1)})" for row in names)
