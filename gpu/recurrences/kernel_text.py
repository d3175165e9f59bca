"""The CUDA text of a loop over time.

    recurrence(arrays, rows, first, last, from, to, joined, begins)

computes the levels from..to − 1 of the steps first..last − 1 for the rows of its block: all levels of all
steps, or, if several blocks share the columns, one level of one step per launch. With ``joined`` the last
level of the previous step is computed first, by the same threads for the same elements. With ``begins`` the
states that begin with 0 are set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symad.core.graph import Node
from symad.gpu.compile import kernel_files
from symad.gpu.cupy_library import real_type
from symad.gpu.recurrences.step import ElementLoad, Index, InnerProduct, LoopStep, StepPart
from symad.numeric.fusion.c_expressions import KernelBody, statements

THREADS, LANES, SHARED = 256, 64, 48 << 10
"""Threads of a block, columns of its tile, and the bytes of shared memory that every device provides."""

TOGETHER = 4
"""The most sums that share one read of their left factor."""

BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}
ELEMENT = {"float64": "Fp64", "float32": "Fp32", "float16": "Fp16", "bfloat16": "Bf16"}


@dataclass(frozen=True)
class ArgumentPlaces:
    """The places of arrays in the kernel's argument.

    Attributes:
        number: the number of each input of the body and of each stored value.
        results: for each value, the arrays it is written to, and how many rows of time later.
        kinds: "bool" for arrays of conditions.
    """

    number: Mapping[Node, int]
    results: Mapping[Node, Sequence[tuple[int, int]]]
    late: frozenset[Node]
    """Stored values that are read one row of time after their number: new states."""
    flags: frozenset[int]
    """The arrays of conditions."""


def recurrence_source(
    step: LoopStep,
    places: ArgumentPlaces,
    count: int,
    dtype: str,
    rows: object,
    zeros: Sequence[tuple[int, int]],
) -> list[str]:
    """The source of the kernel, in pieces.

    Args:
        step: the computation of one step.
        places: the places of its arrays.
        count: the number of arrays.
        dtype: the dtype of the elements.
        rows: the number of rows, if it is known.
        zeros: the arrays of states that begin with 0, and their columns.
    """
    columns, height = tile(step, rows)
    writer = _KernelWriter(step, places, dtype)
    parts = [writer.part(k, part) for k, part in enumerate(step.parts)]
    products = max([len(found) for part in step.parts for _, _, found in _grouped(step, part)], default=1)
    depth = 32
    room = SHARED // (8 if dtype == "float64" else 4)
    while (height + products * columns) * (depth + 1) > room and depth > 1:
        depth //= 2
    head = f"#define SYMAD_REAL {real_type(dtype)}\n#define SYMAD_ELEMENT_BITS {BITS[dtype]}\n"
    sizes = f"constexpr int ROWS = {height}, COLUMNS = {columns}, DEPTH = {depth}, ARRAYS = {count};\n"
    middle = f"typedef {ELEMENT[dtype]} E;\n{sizes}"
    preamble = writer.preamble()
    own = "\n".join([*([preamble] if preamble else []), *parts, _entry(step, zeros)]) + "\n"
    return [head, *kernel_files("prims.h"), middle, *kernel_files("recurrence.h"), own]


def tile(step: LoopStep, rows: object) -> tuple[int, int]:
    """The columns and rows of a block's tile."""
    widest = max(part.width for part in step.parts)
    columns = min(LANES, 1 << max(0, (widest - 1)).bit_length())
    most = THREADS // columns
    if not step.batched:
        return columns, 1
    wanted = 1 << max(0, (rows - 1)).bit_length() if isinstance(rows, int) else 4
    return columns, max(1, min(most, wanted, 16))


def _grouped(step: LoopStep, part: StepPart) -> list[tuple[ElementLoad, int, list[Node]]]:
    """The sums of a part, grouped by left factor and length, at most `TOGETHER` in a group."""
    found: dict[tuple[ElementLoad, int], list[Node]] = {}
    for scalar, leaf in step.used(part):
        if isinstance(leaf, InnerProduct):
            found.setdefault((leaf.left, leaf.depth), []).append(scalar)
    return [
        (left, depth, scalars[k : k + TOGETHER])
        for (left, depth), scalars in found.items()
        for k in range(0, len(scalars), TOGETHER)
    ]


class _KernelWriter:
    """Writes the parts of one kernel."""

    def __init__(self, step: LoopStep, places: ArgumentPlaces, dtype: str) -> None:
        self.step, self.places, self.dtype = step, places, dtype
        self.real = real_type(dtype)
        self.helpers: dict[str, None] = {}

    def preamble(self) -> str:
        """The functions that the elements call."""
        body = KernelBody(self.real)
        for name in self.helpers:
            body.helper(name)
        return body.preamble() if self.helpers else ""

    def time(self, array: Node) -> str:
        """The row of time at which an array is read."""
        return "t + 1" if array in self.places.late else "t"

    def place(self, load: ElementLoad) -> str:
        """A loaded element."""
        number = self.places.number[load.array]
        terms = [_term(number, axis, kind, at) for axis, (kind, at) in enumerate(load.index)]
        offset = " + ".join(term for term in terms if term) or "0"
        if number in self.places.flags:
            array = f"arrays.at[{number}]"
            return f"((const bool*){array}.place + ({self.time(load.array)}) * {array}.step)[{offset}]"
        return f"unpack<E>(place(arrays.at[{number}], {self.time(load.array)})[{offset}])"

    def factor(self, load: ElementLoad, across: str, start: str) -> str:
        """A factor of a product, from the first row or column of the tile."""
        number, fixed = self.places.number[load.array], []
        distance, deep = "0", "0"
        for axis, (kind, at) in enumerate(load.index):
            stride = f"arrays.at[{number}].axis[{axis}]"
            if kind == across:
                distance = stride
                fixed.append(f"({start} + {at}) * {stride}")
            elif kind == "depth":
                deep = stride
                fixed.append(f"{at} * {stride}")
            else:
                fixed.append(f"{at} * {stride}")
        where = " + ".join([f"place(arrays.at[{number}], {self.time(load.array)})", *fixed])
        return f"{{{where}, {distance}, {deep}}}"

    def part(self, k: int, part: StepPart) -> str:
        """The function of one part."""
        lines: list[str] = []
        names: dict[Node, str] = {}
        for g, (left, depth, scalars) in enumerate(_grouped(self.step, part)):
            count = len(scalars)
            rights = [self.step.leaves[s].right for s in scalars]  # type: ignore[union-attr]  # a product's
            factors = ", ".join(self.factor(right, "column", "first") for right in rights)
            lines += [
                f"Real sum{g}[{count}] = {{}};",
                f"const Factor right{g}[{count}] = {{{factors}}};",
                f"add_products(sum{g}, Factor{self.factor(left, 'row', 'top')}, right{g}, {depth}, "
                f"rows - top, {part.width} - first, shared);",
            ]
            names |= {scalar: f"sum{g}[{j}]" for j, scalar in enumerate(scalars)}
        lines += ["if (n >= rows || c >= " + f"{part.width}) continue;"]
        body = KernelBody(self.real)
        for j, (scalar, leaf) in enumerate(self.step.used(part)):
            if isinstance(leaf, ElementLoad):
                kind = "bool" if self.places.number[leaf.array] in self.places.flags else self.real
                lines.append(f"const {kind} x{j} = {self.place(leaf)};")
                names[scalar] = f"x{j}"
        results = statements([s.scalar for s in part.stores], names, body)
        self.helpers |= dict.fromkeys(body.helpers)
        lines += body.lines
        for store, value in zip(part.stores, results, strict=True):
            for number, later in self.places.results[store.value]:
                lines.append(self.write(number, later, self.lead(part, store.start), value))
        head = [
            f"DEVICE void part_{k}(const Arrays& arrays, long long rows, long long t, Real* shared) {{",
            "  const long long top = blockIdx.x * (long long)ROWS, n = top + threadIdx.x / COLUMNS;",
            f"  for (long long first = blockIdx.y * (long long)COLUMNS; first < {part.width}; "
            "first += gridDim.y * (long long)COLUMNS) {",
            "    const long long c = first + threadIdx.x % COLUMNS;",
        ]
        return "\n".join([*head, *(f"    {line}" for line in lines), "  }", "}"])

    def lead(self, part: StepPart, start: int) -> Index:
        """The place of an element in its array."""
        column = (("column", start),)
        return (("row", 0), *column) if self.step.batched else column

    def write(self, number: int, later: int, index: Index, value: str) -> str:
        """The statement that stores an element."""
        offset = " + ".join(filter(None, (_term(number, axis, *pair) for axis, pair in enumerate(index))))
        kind, text = ("bool", value) if number in self.places.flags else ("Storage", f"rounded<E>({value})")
        time = f"(t + {later})" if later else "t"
        start = f"(({kind}*)arrays.at[{number}].place + {time} * arrays.at[{number}].step)"
        return f"{start}[{offset}] = {text};"


def _term(number: int, axis: int, kind: str, at: int) -> str:
    stride = f"arrays.at[{number}].axis[{axis}]"
    if kind == "row":
        return f"n * {stride}"
    if kind == "column":
        return f"(c + {at}) * {stride}" if at else f"c * {stride}"
    return f"{at} * {stride}" if at else ""


def _entry(step: LoopStep, zeros: Sequence[tuple[int, int]]) -> str:
    """The kernel: levels of steps, with a barrier after each."""
    lines = [
        'extern "C" __global__ void __launch_bounds__(THREADS, 1)',
        "    recurrence(Arrays arrays, long long rows, long long first, long long last, int from, int to, "
        "int joined, int begins) {",
        "  DYNAMIC_SHARED(memory);",
        "  Real* shared = reinterpret_cast<Real*>(memory);",
        "  const long long n = blockIdx.x * (long long)ROWS + threadIdx.x / COLUMNS;",
        "  if (begins) {",
    ]
    column = (("column", 0),)
    for number, width in zeros:
        places = (("row", 0), *column) if step.batched else column
        offset = " + ".join(filter(None, (_term(number, axis, *pair) for axis, pair in enumerate(places))))
        store = f"((Storage*)arrays.at[{number}].place)[{offset}] = rounded<E>(Real(0));"
        lines += [
            f"    for (int c = threadIdx.x % COLUMNS; c < {width} && n < rows; c += COLUMNS) {store}",
        ]
    lines += ["    block_sync();", "  }", "  for (long long t = first; t < last; ++t) {"]
    final = [k for k, part in enumerate(step.parts) if part.level == step.levels - 1]
    if step.joins():
        lines += [f"    if (joined) part_{k}(arrays, rows, t - 1, shared);" for k in final]
    for level in range(step.levels):
        members = [k for k, part in enumerate(step.parts) if part.level == level]
        calls = " ".join(f"part_{k}(arrays, rows, t, shared);" for k in members)
        lines += [f"    if (from <= {level} && {level} < to) {{ {calls} }}", "    block_sync();"]
    return "\n".join([*lines, "  }", "}"])
