"""The header of a C file: the layout of its vectors of inputs and results, names in C, and prototypes."""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy

from symad.core.arguments import Argument
from symad.core.dims import Shape, format_shape, size
from symad.core.graph import Graph, Node, Structure
from symad.core.identifiers import ascii_identifier, brief, short_name
from symad.core.structures import VectorOf, leaves
from symad.errors import LoweringError
from symad.numeric.modules.module_text import Names, one_line
from symad.numeric.passes.memory_layout.packed_entries import scalars_of, stored_entries
from symad.ops.basic.sources import symbol_of

# ---- the places of a C function's inputs and results, and their names in C -----------------------


C_KEYWORDS = {
    *("auto", "case", "char", "const", "default", "do", "double", "enum", "extern", "float", "goto"),
    *("inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static"),
    *("struct", "switch", "typedef", "union", "unsigned", "void", "volatile"),
}
"""Keywords of C that are not keywords of Python, which no value has as a name anyway."""

CPP_KEYWORDS = {
    *("alignas", "alignof", "and_eq", "asm", "bitand", "bitor", "bool", "catch", "char16_t", "char32_t"),
    *("char8_t", "co_await", "co_return", "co_yield", "compl", "concept", "const_cast", "consteval"),
    *("constexpr", "constinit", "decltype", "delete", "dynamic_cast", "explicit", "export", "false"),
    *("friend", "mutable", "namespace", "new", "noexcept", "not_eq", "nullptr", "operator", "or_eq"),
    *("private", "protected", "public", "reinterpret_cast", "requires", "static_assert", "static_cast"),
    *("template", "this", "thread_local", "throw", "true", "typeid", "typename", "using", "virtual"),
    *("wchar_t", "xor", "xor_eq"),
}
"""Keywords of C++ that C lacks: C++ programs include the headers too."""

MACROS = {"memcpy", "I", "NAN", "NULL", "INFINITY", "EOF", "linux", "unix", "near", "far"}
"""Names that headers or compilers may define, and the function that copies arguments."""

MAX_PARAMETERS = 127
"""The number of parameters that every C compiler must accept (C99, 5.2.4.1).

Origin: the C standard.
"""


@dataclass(frozen=True)
class Slot:
    """An input or a result in the vector of all inputs or results.

    Attributes:
        title: the user's name for it.
        code: the name as a C identifier, different from all others.
        shape: the shape of its entries, which are stored in row-major order; () for a number.
        start: the position of the first entry.
        count: the number of entries; for a sparse matrix, of stored entries.
        told: a further description, if any.
    """

    title: str
    code: str
    shape: Shape
    start: int
    count: int
    told: str = ""

    @property
    def form(self) -> str:
        """The shape, and the order of the entries."""
        return self.told or (f"shape {format_shape(self.shape)}, row by row" if self.shape else "")

    def slots(self, vector: str) -> str:
        """Its part of a vector."""
        last = self.start + self.count - 1
        several = f"{vector}[{self.start}..{last}]" if self.count else "nothing"
        return f"{vector}[{self.start}]" if self.count == 1 else several


@dataclass(frozen=True)
class CallLayout:
    """All inputs and all results, in order, the values of symbolic sizes, and the parameters of a call.

    A parameter is an input, or a vector of scalar inputs that the user has grouped.
    """

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    sizes: Mapping[str, int]
    parameters: tuple[Slot, ...]

    @property
    def has_arguments(self) -> bool:
        """Whether the file has a function with one parameter for each argument and result."""
        return len(self.parameters) + len(self.outputs) <= MAX_PARAMETERS

    @property
    def input_count(self) -> int:
        """The length of the vector of inputs."""
        return sum(place.count for place in self.inputs)

    @property
    def output_count(self) -> int:
        """The length of the vector of results."""
        return sum(place.count for place in self.outputs)


def layout_of(
    inputs: Sequence[Node],
    scalars: Graph,
    labels: Sequence[str] = (),
    sizes: Mapping[sympy.Symbol, int] | None = None,
    arguments: Sequence[Argument] = (),
) -> CallLayout:
    """The layout of a function of the user's ``inputs``, which are printed as a graph of their entries.

    ``labels`` are names of the outputs, such as x_bar, by default the keys of dicts; ``arguments`` say how
    the user groups the inputs, by default not at all.
    """
    names = Names(C_KEYWORDS | CPP_KEYWORDS | MACROS)
    places = _places([_input(node) for node in inputs], names)
    titles = map(one_line, labels or _keys(scalars.structure))
    results = [
        (title, title or ("result" if scalars.structure is None else "result_1"), node.shape, *_stored(node))
        for title, node in zip(titles, scalars.output_nodes, strict=True)
    ]
    named = {one_line(symbol): number for symbol, number in (sizes or {}).items()}
    return CallLayout(places, _places(results, names), named, tuple(_parameters(places, arguments, names)))


def _parameters(inputs: tuple[Slot, ...], arguments: Sequence[Argument], names: Names) -> Iterator[Slot]:
    """The inputs, but one place for all entries of a vector whose entries are inputs."""
    if not arguments:
        yield from inputs
    start = 0
    for a in arguments:
        own = inputs[start : start + leaves(a.structure)]
        start += len(own)
        if isinstance(a.structure, VectorOf) and own:
            code = names.unique(ascii_identifier(a.code or a.name))
            yield Slot(one_line(a.name), code, a.structure.shape, own[0].start, len(own))
        else:
            yield from own


Given = tuple[str, str, Shape, int, str]
"""The title, wanted name, shape, number of entries, and description of an input or result."""


def _input(node: Node) -> Given:
    symbol = symbol_of(node)
    told = "an integer" if symbol.is_integer and not node.shape else ""
    return one_line(symbol), short_name(symbol), node.shape, int(size(node.shape)), told


def _places(given: Sequence[Given], names: Names) -> tuple[Slot, ...]:
    made, start = [], 0
    for title, wanted, shape, count, told in given:
        made.append(Slot(title, names.unique(ascii_identifier(wanted)), shape, start, count, told))
        start += count
    return tuple(made)


def _stored(output: Node) -> tuple[int, str]:
    """The number of entries of an output, and the description of a sparse matrix."""
    sparse = bool(output.shape) and stored_entries(output) is not None
    form = f"the stored entries of a sparse matrix {format_shape(output.shape)}, row by row"
    return len(scalars_of(output)), form if sparse else ""


def _keys(structure: Structure) -> list[str]:
    """For each output, the keys of the dicts that contain it, joined by dots."""
    if structure is None:
        return [""]
    keys = getattr(structure, "keys", [""] * len(structure.items))
    pairs = zip(keys, structure.items, strict=True)
    return [f"{key}.{inner}".strip(".") for key, item in pairs for inner in _keys(item)]


GIVEN, FOUND = "given_", "found_"
"""The vectors in a function with parameters; no parameter's name ends in an underscore like these."""


def print_header(name: str, layout: CallLayout, source: str) -> str:
    """Prototypes usable from C++, sizes as constants, and the place of each input and result.

    The header of another function (``source``) of the same name is an error, since its sizes would be those
    of this one.
    """
    own = f"{name.upper()}_{hashlib.sha256(source.encode()).hexdigest()[:12].upper()}"
    guard = f"{name.upper()}_H"
    told = f'{guard}: another function has the name {name}; choose one by c_file(f, name="...")'
    constants = "\n".join(_constants(name.upper(), layout))
    parts = [
        f"{_layout(layout)}\nvoid {name}(const double *x, double *y);",
        *([_with_arguments(name, layout)] if layout.has_arguments else []),
        f"/* The same at many points: x[points][{layout.input_count}], y[points][{layout.output_count}]. */\n"
        f"void {name}_batch(const double *x, double *y, size_t points);",
        "/* The same with the addresses of x and y in an array. */\n"
        f"void {name}_bound(const int64_t *frame);",
    ]
    prototypes = "\n\n".join(parts)
    return f"""\
#ifndef {guard}
#define {guard}
#define {own}
#include <stddef.h>
#include <stdint.h>

{constants}

#ifdef __cplusplus
extern "C" {{
#endif

{prototypes}

#ifdef __cplusplus
}}
#endif
#elif !defined {own}
#error "{told}"
#endif
"""


def _constants(prefix: str, layout: CallLayout) -> Iterator[str]:
    """The lengths of both vectors and of all arrays, and the values of symbolic sizes.

    Where names differ in their case only, a number follows, and a comment says which is which.
    """
    wanted = [("INPUTS", layout.input_count, ""), ("OUTPUTS", layout.output_count, "")]
    arrays = [place for place in (*layout.parameters, *layout.outputs) if place.shape]
    wanted += [(f"SIZE_{place.code.upper()}", place.count, place.code) for place in arrays]
    wanted += [(f"DIM_{symbol.upper()}", number, symbol) for symbol, number in layout.sizes.items()]
    names = Names()
    for kind, number, of in wanted:
        name = names.unique(f"{prefix}_{kind}")
        told = "" if name == f"{prefix}_{kind}" else f"  /* of {of} */"
        yield f"#define {name} {number}{told}"


def _layout(layout: CallLayout) -> str:
    """A comment that describes each entry of x and y."""
    lines = [f"{symbol} = {number}" for symbol, number in layout.sizes.items()]
    for place in layout.inputs:
        lines.append(f"{place.slots('x')} = {place.title}{_after(place)}")
    for number, place in enumerate(layout.outputs, 1):
        title = f": {place.title}" if place.title else ""
        lines.append(f"{place.slots('y')} = output {number}{title}{_after(place)}")
    return "\n".join(["/*", *(f"   {line}" for line in lines), "*/"])


def _after(place: Slot) -> str:
    return f", {place.form}" if place.form else ""


def _with_arguments(name: str, layout: CallLayout) -> str:
    """The prototype with one parameter for each argument and result, one per line."""
    places = [*layout.parameters, *layout.outputs]
    texts = parameters(layout)
    ends = [*("," for _ in texts[1:]), *("" for _ in texts[:1])]
    shapes = [f"  /* {_title(p)}{format_shape(p.shape)} */" if p.shape else "" for p in places]
    lines = [f"    {text}{end}{shape}" for text, end, shape in zip(texts, ends, shapes, strict=True)]
    joined = "\n".join(lines)
    told = "/* The same with a parameter for each of them; arrays row by row. */"
    return f"{told}\nvoid {name}_args(\n{joined}\n);"


def _title(place: Slot) -> str:
    """What the user calls a place, if that is another name than in C."""
    return f"{place.title} " if place.title and place.code != ascii_identifier(place.title) else ""


def parameters(layout: CallLayout) -> list[str]:
    """The declarations of a function with a parameter for each argument and result."""
    given = [f"const double *{p.code}" if p.shape else f"double {p.code}" for p in layout.parameters]
    return [*given, *(f"double *{p.code}" for p in layout.outputs)]


def argument_function(name: str, layout: CallLayout) -> Iterable[str]:
    """The lines of the function with a parameter for each argument and result."""
    yield f"void {name}_args({', '.join(parameters(layout))})"
    yield "{"
    yield f"    double {GIVEN}[{max(layout.input_count, 1)}] = {{0}}, {FOUND}[{max(layout.output_count, 1)}];"
    for p in layout.parameters:
        if p.shape and p.count:
            yield f"    memcpy({GIVEN} + {p.start}, {p.code}, {p.count}*sizeof *{GIVEN});"
        else:
            yield f"    (void){p.code};" if p.shape else f"    {GIVEN}[{p.start}] = {p.code};"
    yield f"    {name}({GIVEN}, {FOUND});"
    for p in layout.outputs:
        if p.shape and p.count:
            yield f"    memcpy({p.code}, {FOUND} + {p.start}, {p.count}*sizeof *{FOUND});"
        else:
            yield f"    (void){p.code};" if p.shape else f"    *{p.code} = {FOUND}[{p.start}];"
    yield "}"


# ---- names that users give to functions in C -----------------------------------------------------


STANDARD = {
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos"),
    *("cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod"),
    *("frexp", "gamma", "hypot", "ilogb", "isfinite", "isinf", "isnan", "j0", "j1", "jn", "ldexp", "lgamma"),
    *("llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "main", "memset"),
    *("modf", "nan", "nearbyint", "nextafter", "pow", "remainder", "remquo", "rint", "round", "scalbn"),
    *("signbit", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "w", "x", "y", "y0", "y1", "yn"),
}
"""Functions of math.h, the main function of a program, and the parameters of generated functions."""


def checked_c_name(name: str) -> str:
    """A name that a user gives a function in C.

    Raises:
        LoweringError: it is not a name, or C or C++ use it themselves.
    """
    plain = isinstance(name, str) and name.isascii() and name.isidentifier()
    if not plain or "_" in (name[0], name[-1]):  # helpers end in an underscore
        raise LoweringError(f"name={brief(name)}: a name in C has ASCII letters, digits, and _ inside it")
    if keyword.iskeyword(name) or name in C_KEYWORDS | CPP_KEYWORDS | MACROS | STANDARD:
        raise LoweringError(
            f"name={name!r}: C, C++, their libraries or generated code use this name themselves; "
            "choose another one"
        )
    return name
