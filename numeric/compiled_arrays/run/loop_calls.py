"""Calls of compiled loops."""

from __future__ import annotations

from symad.numeric.compiled_arrays.c.c_body import NAME
from symad.numeric.compiled_arrays.c.loop_text import loop_source
from symad.numeric.compiled_arrays.writer import NativeWriter
from symad.numeric.numpy_arrays.loop_statements import loop_comment
from symad.numeric.program.loops import Loop


def loop_call(loop: Loop, writer: NativeWriter) -> list[str]:
    """The statement that runs a compiled loop, after its comment."""
    source, text = loop_source(NAME, loop, writer.dtype)
    name = writer.loop(text, source)
    fixed = [writer.operand(each.expression) for each in loop.fixed]
    given, made = ([writer.operand(row.array) for row in loop.rows if row.filled is k] for k in (False, True))
    (state,) = (writer.operand(carried.initial) for carried in loop.carried)
    lists = ", ".join(f"[{', '.join(side)}]" for side in (given, fixed, made))
    call = f'run_loop({name}, "{writer.dtype}", {writer.atom(loop.count)}, {state}, {lists})'
    return [*loop_comment(loop, writer), call]
