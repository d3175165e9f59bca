"""Calls of compiled loops."""

from __future__ import annotations

from symad.numeric.compiled_arrays.c.c_body import NAME
from symad.numeric.compiled_arrays.c.loop_text import loop_source
from symad.numeric.compiled_arrays.c.printing import CompiledPrinting
from symad.numeric.numpy_arrays.ops.loops import loop_comment
from symad.numeric.program.loops import Loop


def loop_call(loop: Loop, printer: CompiledPrinting) -> list[str]:
    """The statement that runs a compiled loop, after its comment."""
    source, text = loop_source(NAME, loop, printer.dtype)
    name = printer.loop(text, source)
    arrays = [printer.text_of(row.array) for row in loop.rows]
    fixed = [printer.text_of(each.expression) for each in loop.fixed]
    given, made = (
        [array for row, array in zip(loop.rows, arrays, strict=True) if row.filled is filled]
        for filled in (False, True)
    )
    (state,) = (printer.text_of(carried.initial) for carried in loop.carried)
    lists = ", ".join(f"[{', '.join(side)}]" for side in (given, fixed, made))
    call = f'run_loop({name}, "{printer.dtype}", {printer.dim(loop.count)}, {state}, {lists})'
    return [*loop_comment(loop, arrays, {}, printer), call]
