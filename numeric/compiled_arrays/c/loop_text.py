"""Compiled loops as C: matrix products by BLAS, the rest as loops over arrays.

All sizes except the number of steps are numbers, so that views cost nothing and inner loops become vector
code. The statements of a step say where each value is computed (`put_results`); a value without a place is
computed in scratch memory. The state is read from where the previous step wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from symad.core.dims import Dim
from symad.core.graph import Graph, Node
from symad.higher_order.scan import Local
from symad.numeric.compiled_arrays.c.blas_calls import contraction_lines
from symad.numeric.compiled_arrays.c.c_body import C_TYPE, NativeBody
from symad.numeric.compiled_arrays.c.nest_text import NativeNest, result_type, vector_loop
from symad.numeric.compiled_arrays.c.small_systems import ELIMINATION, SINGULAR
from symad.numeric.compiled_arrays.strided_arrays import Ints, Scratch, View, contiguous, merged
from symad.numeric.compiler.c_templates import filled
from symad.numeric.fusion.nest import Nest, is_chain
from symad.numeric.fusion.nest_loops import RowLoop
from symad.numeric.program.expressions import (
    Compute,
    Expression,
    Index,
    Place,
    Position,
    Read,
    Span,
    Value,
    op_in,
)
from symad.numeric.program.loops import Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, assignments
from symad.numeric.program.uses import lifetimes
from symad.numeric.program_passes.memory.allocation import shown
from symad.numeric.program_passes.memory.result_places import parts_of
from symad.numeric.scheduling.plans import number_of
from symad.ops.basic.contraction import Einsum, permutes
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Eye
from symad.ops.linalg.solve_det import Solve


class LoopText:
    """The C text of one loop."""

    def __init__(self, loop: Loop, dtype: str) -> None:
        """Write the step."""
        self.dtype, self.real = dtype, C_TYPE[dtype]
        self.moving = [row for row in loop.rows if not row.filled]
        self.fixed = loop.fixed
        self.results = [row for row in loop.rows if row.filled]
        self.view: dict[Value, View] = {}
        self.texts: list[NativeBody] = []
        self.lines: list[str] = []
        self.scratch = Scratch()
        self.at, self.last = 0, 0
        """The number of the statement being written, and of the last one that needs its new memory."""
        self.uses_products = self.solves = False
        self.constants: dict[str, str] = {}
        """The names of constant arrays, by their elements."""
        (state,) = loop.carried
        self._named("state", state.value, self.results[0].strides)
        for k, row in enumerate(self.moving):
            self._named(f"x{k}", row.value)
        for k, given in enumerate(self.fixed):
            self._named(f"c{k}", given.value)
        for k, row in enumerate(self.results):
            self._named(f"y{k}", row.value, row.strides)
        body = Program("", (), loop.body, tuple(carried.next for carried in loop.carried), None)
        lives = lifetimes(body, shown)
        for self.at, statement in enumerate(loop.body):
            new = [made.value for made in assignments(statement) if made.over is None]
            new += [statement.value] if isinstance(statement, Allocate) else []
            self.last = max([self.at, *map(lives.end, new)])
            self._statement(statement)

    # ---- the memory of arrays --------------------------------------------------------------------

    def _named(self, name: str, value: Value, strides: Ints | None = None) -> None:
        shape = _ints(value.shape)
        self.view[value] = View(name, 0, shape, strides or contiguous(shape), self.dtype)

    def _new(self, shape: Ints, kind: str) -> View:
        """Scratch memory for an array."""
        first = self.scratch.new(prod(shape) * np.dtype(kind).itemsize, self.at, self.last)
        return View(f"({C_TYPE[kind]} *)(scratch + {first})", 0, shape, contiguous(shape), kind)

    def _place(self, made: Assign, kind: str | None = None) -> View:
        """The memory in which a value is computed."""
        shape = _ints(made.value.shape)
        self.view[made.value] = place = (
            self._new(shape, kind or self.dtype) if made.over is None else self.view[made.over]
        )
        return place

    def _of(self, expression: Expression) -> View:
        """The memory of an operand; a number becomes an array of one element."""
        seen = self._seen(expression)
        if seen is None:
            seen = self._new((), self.dtype)
            self._fill(seen, self._number(expression))
        return seen

    def _seen(self, expression: Expression) -> View | None:
        """A value or a view as memory; None for expressions that are computed."""
        if isinstance(expression, Read):
            return self.view[expression.value]
        if isinstance(expression, Index):
            return _indexed(self._of(expression.array), expression.places)
        assert isinstance(expression, Compute)
        op, shape = expression.op, _ints(expression.shape)
        if isinstance(op, ArrayConstant):
            numbers = ", ".join(map(NativeBody(self.real).literal, op.array.ravel().tolist()))
            name = self.constants.setdefault(numbers, f"constant{len(self.constants)}")
            return View(name, 0, shape, contiguous(shape), self.dtype)
        if isinstance(op, Slice):
            return self._of(expression.args[0]).sliced(_ints(op.start), _ints(op.count), op.step)
        if isinstance(op, Broadcast):
            return self._of(expression.args[0]).repeated(shape, op.axes)
        if isinstance(op, Reshape):
            array = self._of(expression.args[0])
            return array.reshaped(shape) or self._copied(array).reshaped(shape)
        if permutes(op):
            return self._of(expression.args[0]).permuted([op.inputs[0].index(label) for label in op.output])
        return None

    # ---- statements ------------------------------------------------------------------------------

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Allocate):
            self.view[statement.value] = self._new(_ints(statement.value.shape), self.dtype)
            if statement.zeros:
                self._fill(self.view[statement.value], "0.0")
            return
        made = assignments(statement)
        first, found = made[0], made[0].expression
        if isinstance(found, Compute) and is_chain(found.op):
            body = found.op.body
            numbers = {each.value: number_of(op_in(each.expression)) for each in made}
            made = tuple(sorted(made, key=lambda each: numbers[each.value]))
            outputs = tuple(body.output_nodes[numbers[each.value]] for each in made)
            self._chain(Graph(body.input_nodes, outputs), found.args, made)
        elif first.over is not None and (self._number(found) or self._seen(found) is not None):
            self._bring(found, self._place(first))
        elif (seen := self._seen(found)) is not None:
            self.view[first.value] = seen
        elif parts := parts_of(found):
            made_here = self._place(first)
            if isinstance(op_in(found), Pad):
                self._fill(made_here, "0.0")
            for part, places in parts:
                self._bring(part, _indexed(made_here, places))
        else:
            assert isinstance(found, Compute)
            self._computed(found, first)

    def _computed(self, found: Compute, made: Assign) -> None:
        """Write what an op computes: a contraction, a linear system, an identity matrix, or a function."""
        if isinstance(found.op, Einsum):
            self._contraction(found.op, found.args, self._place(made))
        elif isinstance(found.op, Solve):
            self._system(found.args, made)
        elif isinstance(found.op, Eye):
            here = self._place(made)
            self._fill(here, "0.0")
            self._fill(replace(here, shape=here.shape[:1], strides=(sum(here.strides),)), "1.0")
        else:
            inputs = [a for a in dict.fromkeys(found.args) if not self._number(a)]
            local = {a: Node.of(Local(k, a.shape)) for k, a in enumerate(inputs)}
            args = [Node.of(a.op, ()) if isinstance(a, Compute) else local[a] for a in found.args]
            self._chain(Graph(tuple(local.values()), (Node.of(found.op, tuple(args)),)), inputs, (made,))

    def _number(self, expression: Expression) -> str:
        """The text of a constant, repeated or not; empty for other expressions."""
        if not isinstance(expression, Compute):
            return ""
        if isinstance(expression.op, Broadcast):
            return self._number(expression.args[0])
        if not isinstance(expression.op, Constant):
            return ""
        return NativeBody(self.real).literal(expression.op.value)

    def _contraction(self, op: Einsum, args: Sequence[Expression], made: View) -> None:
        """Write a matrix product or another sum; arrays that BLAS cannot read or write are copied."""
        views, target = [self._of(a) for a in args], made
        lines = contraction_lines(op.inputs, op.output, views, made)
        if lines is None:
            views, target = [*map(self._copied, views)], self._new(made.shape, self.dtype)
            lines = contraction_lines(op.inputs, op.output, views, target)
        assert lines is not None
        self.uses_products |= any("symad_product" in line for line in lines)
        self.lines += lines
        if target is not made:
            self._copy(target, made)

    def _system(self, sides: Sequence[Expression], made: Assign) -> None:
        """Write an elimination on copies of both sides."""
        a, x = [self._copied(self._of(side)) for side in sides]
        n, k = x.shape
        self.solves = True
        self.lines.append(
            f"if (symad_solve({n}, {k}, {a.pointer}, {x.pointer})) {{ free(scratch); return {SINGULAR}; }}"
        )
        if made.over is None:
            self.view[made.value] = x
        else:
            self._copy(x, self._place(made))

    def _chain(self, body: Graph, args: Sequence[Expression], members: Sequence[Assign]) -> None:
        """Write loops over an elementwise body, one of whose results each member is."""
        kinds = [result_type(o, self.dtype) for o in body.output_nodes]
        made = [self._place(each, kind) for each, kind in zip(members, kinds, strict=True)]
        shape = made[0].shape
        views = [self._of(a) for a in args]
        views = [v if v.shape == shape else v.repeated(shape, ()) for v in views]
        lengths, strides = merged(shape, [*views, *made])
        text = _Elements(body, self.real, [v.type for v in views], kinds, lengths, strides)
        text.write()
        assert isinstance(text.c, NativeBody)
        self.texts.append(text.c)
        depth = max(len(lengths) - 1, 0)
        heads = [f"for (ptrdiff_t i{k} = 0; i{k} < {lengths[k]}; i{k}++) {{" for k in range(depth)]
        self.lines += ["{", *heads]
        for k, (v, s) in enumerate(zip([*views, *made], strides, strict=True)):
            const, name = ("const ", f"p{k}") if k < len(views) else ("", f"q{k - len(views)}")
            steps = [f"i{j} * {s[j]}" for j in range(depth) if s[j]]
            self.lines.append(f"  {const}{C_TYPE[v.type]} *{name} = {' + '.join([v.pointer, *steps])};")
        self.lines += [*text.repeated(), *text.lines, "}" * (depth + 1)]

    # ---- copies ----------------------------------------------------------------------------------

    def _bring(self, given: Expression, target: View) -> None:
        """Write loops that copy a value, or fill an array with a number."""
        number = self._number(given)
        if number:
            self._fill(target, number)
        else:
            self._copy(self._of(given), target)

    def _copied(self, source: View) -> View:
        """A copy of an array whose elements are adjacent."""
        made = self._new(source.shape, source.type)
        self._copy(source, made)
        return made

    def _copy(self, source: View, target: View) -> None:
        """Write loops that copy an array."""
        lengths, strides = merged(target.shape, [source, target])
        value, place = map(_element, (source, target), strides)
        self.lines.append(f"{_loops(lengths)}{place} = {value};")

    def _fill(self, target: View, number: str) -> None:
        """Write loops that fill an array with a number."""
        lengths, (strides,) = merged(target.shape, [target])
        self.lines.append(f"{_loops(lengths)}{_element(target, strides)} = {number};")


class _Elements(NativeNest):
    """The inner loop over an elementwise body; arrays have steps that are known."""

    def __init__(
        self,
        body: Graph,
        real: str,
        types: Sequence[str],
        kinds: Sequence[str],
        lengths: Ints,
        strides: Sequence[Ints],
    ) -> None:
        """``lengths`` and ``strides`` are those of all loops; the last ones belong to this one."""
        super().__init__(Nest(body, 0, (), ()), real, types, kinds)
        self.length = lengths[-1] if lengths else 1
        self.steps = [s[-1] if s else 0 for s in strides]

    def repeated(self) -> list[str]:
        """The statements that read operands which are the same in the whole loop."""
        fixed = [k for k in range(len(self.types)) if not self.steps[k]]
        return [f"  const {self.kind(k)} n{k} = p{k}[0];" for k in fixed]

    def element(self, position: int) -> str:
        """See `NestText`."""
        step = self.steps[position]
        return f"p{position}[{_at(step)}]" if step else f"n{position}"

    def over_row(self, loop: RowLoop) -> list[str]:
        """See `NestText`."""
        steps = self.steps[len(self.types) :]
        return vector_loop(loop, str(self.length), [f"q{k}[{_at(steps[k])}] = {v};" for k, v in loop.stores])


def _loops(lengths: Ints) -> str:
    return "".join(f"for (ptrdiff_t i{k} = 0; i{k} < {n}; i{k}++) " for k, n in enumerate(lengths))


def _element(view: View, strides: Ints) -> str:
    return f"({view.pointer})[{' + '.join(f'i{k} * {a}' for k, a in enumerate(strides) if a) or '0'}]"


def _at(stride: int) -> str:
    return "j" if stride == 1 else f"j * {stride}"


def _ints(values: Sequence[Dim]) -> Ints:
    return tuple([int(v) for v in values])


def _indexed(array: View, places: Sequence[Place]) -> View:
    """The view of some places of an array."""
    sides = [(p.offset, 1, 1) if isinstance(p, Position) else _side(p) for p in places]
    start, count, step = (_ints([side[k] for side in sides]) for k in range(3))
    part = array.sliced(start, count, step)
    kept = [k for k, place in enumerate(places) if isinstance(place, Span)]
    shape, strides = (tuple(side[k] for k in kept) for side in (part.shape, part.strides))
    return replace(part, shape=shape, strides=strides)


def _side(place: Place) -> tuple[Dim, Dim, int]:
    assert isinstance(place, Span), place
    return place.start, place.count, place.step


def loop_source(name: str, loop: Loop, dtype: str) -> tuple[str, LoopText]:
    """The C function of a loop.

    Its arguments are the number of steps, the address of the BLAS product, the number of places for states,
    the place of the first state, and then addresses: for each moving input and each result the first step
    and the distance to the next (in elements), for all other inputs one address.
    """
    text = LoopText(loop, dtype)
    real, at = text.real, 4
    lines = [
        *([filled(ELIMINATION, lambda _: real)] if text.solves else []),
        f"int {name}(const long long *frame) {{",
        "  const long long steps = frame[0];",
        *(["  const symad_gemm_t gemm = (symad_gemm_t)frame[1];"] if text.uses_products else []),
        "  const long long places = frame[2];",
        f"  const {real} *state = (const {real} *)frame[3];",
    ]
    for numbers, constant in text.constants.items():
        lines.append(f"  static const {real} {constant}[] = {{{numbers}}};")
    inner = []
    for k in range(len(text.moving)):
        lines.append(f"  const {real} *const moving{k} = (const {real} *)frame[{at}];")
        inner.append(f"const {real} *x{k} = moving{k} + t * frame[{at + 1}];")
        at += 2
    for k in range(len(text.fixed)):
        lines.append(f"  const {real} *const c{k} = (const {real} *)frame[{at}];")
        at += 1
    for k in range(len(text.results)):
        lines.append(f"  {real} *const result{k} = ({real} *)frame[{at}];")
        place = "t" if k else "t % places"
        inner.append(f"{real} *y{k} = result{k} + {place} * frame[{at + 1}];")
        at += 2
    lines += [
        f"  char *scratch = malloc({text.scratch.size} + 1);",
        "  if (!scratch) return 1;",
        "  for (long long t = 0; t < steps; t++) {",
        *(f"    {line}" for line in inner),
        *(f"    {line}" for line in text.lines),
        "    state = y0;",
        "  }",
        "  free(scratch);",
        "  return 0;",
        "}",
    ]
    return "\n".join(lines) + "\n", text
