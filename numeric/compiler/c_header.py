"""The header of a C file, which programs include: prototypes, and the layout of both vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from symad.core.dims import format_shape
from symad.core.identifiers import ascii_identifier
from symad.numeric.compiler.c_layout import CallLayout, Slot
from symad.numeric.modules.names import Names

GIVEN, FOUND = "given_", "found_"
"""The vectors in a function with parameters; no parameter's name ends in an underscore like these."""


def print_header(name: str, layout: CallLayout, source: str) -> str:
    """Prototypes usable from C++, sizes as constants, and the place of each input and result.

    Args:
        name: the name of the C function.
        layout: the layout of its vectors.
        source: the function; the header of another function of the same name is an error, since its sizes
            would be those of this one.
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
