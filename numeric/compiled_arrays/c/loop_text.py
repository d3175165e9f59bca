"""Loops over the steps of a recurrence as C: matrix products by BLAS, the rest as loops over arrays.

All sizes except the number of steps are numbers, so that views cost nothing and inner loops become vector
code. Results are computed in their final place, and the state is read from where the previous step wrote it.
A loop with an op that cannot be written here (`Unsupported`) stays in Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from symad.core.graph import Graph, Node, topological
from symad.numeric.compiled_arrays.c.blas_calls import Unsupported, contraction_lines
from symad.numeric.compiled_arrays.c.c_body import C_TYPE, NativeBody
from symad.numeric.compiled_arrays.c.chain_text import result_type
from symad.numeric.compiled_arrays.strided_arrays import Ints, View, contiguous, merged
from symad.numeric.fusion.c_expressions import has_c_form, statements
from symad.numeric.fusion.chains import Fused
from symad.numeric.passes.loops.loop import Loop
from symad.numeric.passes.memory_layout.box_sums import boxes, fills
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.arrays.sources import Constant
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.elementwise.arithmetic import ElementwiseOp
from symad.ops.loops.scan import Local, Scan


class LoopText:
    """The C text of one loop."""

    def __init__(self, op: Scan | Loop, dtype: str, strides: Mapping[int, Ints]) -> None:
        """Write the step; ``strides`` are those of results whose elements are not contiguous."""
        self.strides = strides
        self.body: Graph = op.body
        self.slices = op.slices
        self.dtype = dtype
        self.real = C_TYPE[dtype]
        self.view: dict[Node, View] = {}
        self.place: dict[Node, View] = {}
        self.texts: list[NativeBody] = []
        self.lines: list[str] = []
        self.scratch = 0
        self.uses_products = False
        self._inputs()
        self._places()
        self._statements()

    # ---- the memory of arrays --------------------------------------------------------------------

    def _inputs(self) -> None:
        for k, local in enumerate(self.body.input_nodes):
            name = "state" if k == 0 else f"x{k - 1}" if k <= self.slices else f"c{k - 1 - self.slices}"
            shape = _sizes(local)
            strides = self.strides.get(0, contiguous(shape)) if k == 0 else contiguous(shape)
            self.view[local] = View(name, 0, shape, strides, self.dtype)

    def _places(self) -> None:
        """Choose the places of results and of their parts: they are computed in their final memory."""
        for k, node in enumerate(self.body.output_nodes):
            self._put(node, self._result(k, node))

    def _result(self, k: int, node: Node) -> View:
        shape = _sizes(node)
        return View(f"y{k}", 0, shape, self.strides.get(k, contiguous(shape)), self.dtype)

    def _put(self, node: Node, place: View) -> None:
        if node in self.place or isinstance(node.op, (Local, Constant)) or _is_view(node):
            return
        self.place[node] = place
        if not isinstance(node.op, Pad):
            for part, spot in self._parts(node, place):
                self._put(part, spot)

    def _parts(self, node: Node, place: View) -> list[tuple[Node, View]]:
        """The arrays that a node is assembled from, with the place of each."""
        op = node.op
        whole = tuple(range(len(place.shape)))
        if isinstance(op, Stack):
            others = tuple(k for k in whole if k != op.axis)
            found = []
            for k, arg in enumerate(node.args):
                start = tuple(k if a == op.axis else 0 for a in whole)
                count = tuple(1 if a == op.axis else place.shape[a] for a in whole)
                cut = place.sliced(start, count, (1,) * len(whole)).permuted([*others, op.axis])
                spot = View(cut.base, cut.offset, cut.shape[:-1], cut.strides[:-1], cut.type)
                found.append((arg, spot))
            return found
        if isinstance(op, Concatenate):
            found, at = [], 0
            for arg in node.args:
                shape = _sizes(arg)
                start = tuple(at if a == op.axis else 0 for a in whole)
                found.append((arg, place.sliced(start, shape, (1,) * len(whole))))
                at += shape[op.axis]
            return found
        if isinstance(op, Pad):
            (arg,) = node.args
            return [(arg, place.sliced(_ints(op.start), _sizes(arg), op.step))]
        found_boxes = boxes(node)
        if found_boxes is not None and fills(list(found_boxes.values()), place.shape):
            return [part for pad in node.args for part in self._parts(pad, place)]
        if isinstance(op, Reshape):
            flat = place.reshaped(_sizes(node.args[0]))
            return [(node.args[0], flat)] if flat is not None else []
        return []

    def _made(self, node: Node, kind: str | None = None) -> View:
        """The place where a node is computed."""
        if node in self.place:
            return self.place[node]
        shape = _sizes(node)
        kind = kind or self.dtype
        made = View(f"({C_TYPE[kind]} *)(scratch + {self.scratch})", 0, shape, contiguous(shape), kind)
        self.scratch += -(-prod(shape) * 8 // 64) * 64
        return made

    # ---- statements ------------------------------------------------------------------------------

    def _statements(self) -> None:
        outputs = self.body.output_nodes
        order = topological(outputs)
        users: dict[Node, list[Node]] = {}
        for node in order:
            for arg in node.args:
                users.setdefault(arg, []).append(node)
        for node in order:
            in_boxes = isinstance(node.op, Pad) and node not in outputs
            if in_boxes and all(boxes(u) is not None for u in users[node]):
                continue  # the argument has been computed in its place already
            if node not in self.view and not isinstance(node.op, Constant):
                self._statement(node)
        for k, node in enumerate(outputs):
            target = self.place.get(node)
            own = self._result(k, node)
            if target != own or self._of(node) != own:
                self._copy(self._of(node), own)

    def _of(self, node: Node) -> View:
        """The view of a node; a number becomes an array of one element."""
        if node not in self.view:
            if not isinstance(node.op, Constant):
                raise Unsupported(type(node.op).__name__)
            made = self._made(node)
            self.lines.append(f"({made.pointer})[0] = {NativeBody(self.real).literal(node.op.value)};")
            self.view[node] = made
        return self.view[node]

    def _statement(self, node: Node) -> None:
        op = node.op
        seen = self._seen(node)
        if seen is not None:
            self.view[node] = seen
        elif isinstance(op, Fused):
            values = [Node.of(Fused(op.body, k), node.args) for k in range(len(op.body.output_nodes))]
            self._chain(op.body, node.args, values)
        elif boxes(node) is not None:
            self._assembled(node)
        elif isinstance(op, (Stack, Concatenate, Pad)):
            self._joined(node)
        elif isinstance(op, Reshape):
            made = self._made(node)
            flat = made.reshaped(_sizes(node.args[0]))
            if flat is None:
                raise Unsupported(type(node.op).__name__)
            if self._of(node.args[0]) != flat:
                self._copy(self._of(node.args[0]), flat)
            self.view[node] = made
        elif isinstance(op, ElementwiseOp) and has_c_form(node):
            self._single(node)
        elif isinstance(op, Einsum):
            made = self._made(node)
            views = [self._of(a) for a in node.args]
            lines = contraction_lines(op.inputs, op.output, views, made)
            self.uses_products |= any("symad_product" in line for line in lines)
            self.lines += lines
            self.view[node] = made
        else:
            raise Unsupported(type(node.op).__name__)

    def _seen(self, node: Node) -> View | None:
        """The node as a view of its argument; None if it is not one."""
        op = node.op
        if isinstance(op, Slice):
            return self._of(node.args[0]).sliced(_ints(op.start), _ints(op.count), op.step)
        if isinstance(op, Broadcast):
            return self._of(node.args[0]).repeated(_sizes(node), op.axes)
        if isinstance(op, Reshape) and node not in self.place:
            return self._of(node.args[0]).reshaped(_sizes(node))
        if isinstance(op, Einsum) and _permutes(node) and node not in self.place:
            return self._of(node.args[0]).permuted([op.inputs[0].index(label) for label in op.output])
        return None

    def _joined(self, node: Node) -> None:
        made = self._made(node)
        if isinstance(node.op, Pad):
            self._fill(made)
        for arg, spot in self._parts(node, made):
            if self._of(arg) != spot:
                self._copy(self._of(arg), spot)
        self.view[node] = made

    def _assembled(self, node: Node) -> None:
        """A sum of disjoint boxes. Each box is copied to its place, unless it was computed there."""
        made = self._made(node)
        if not fills(list((boxes(node) or {}).values()), made.shape):
            self._fill(made)
        for pad in node.args:
            ((arg, spot),) = self._parts(pad, made)
            if self._of(arg) != spot:
                self._copy(self._of(arg), spot)
        self.view[node] = made

    def _single(self, node: Node) -> None:
        inputs = [a for a in dict.fromkeys(node.args) if not isinstance(a.op, Constant)]
        locals_ = {a: Node.of(Local(k, a.shape)) for k, a in enumerate(inputs)}
        inner = Node.of(node.op, tuple(locals_.get(a, a) for a in node.args))
        self._chain(Graph(tuple(locals_.values()), (inner,)), inputs, [node])

    def _chain(self, body: Graph, args: Sequence[Node], values: Sequence[Node]) -> None:
        """Write loops over an elementwise body."""
        text = NativeBody(self.real)
        kinds = [result_type(o, self.dtype) for o in body.output_nodes]
        made = [self._made(v, kind) for v, kind in zip(values, kinds, strict=True)]
        shape = made[0].shape
        views = [self._of(a) for a in args]
        views = [v if v.shape == shape else _scalar(v, shape) for v in views]
        lengths, strides = merged(shape, [*views, *made])
        names = {local: f"a{k}" for k, local in enumerate(body.input_nodes)}
        results = statements(body.output_nodes, names, text)
        self.texts.append(text)
        depth = max(len(lengths) - 1, 0)
        indent = "  "
        self.lines.append("{")
        for k in range(depth):
            self.lines.append(f"{indent}for (ptrdiff_t i{k} = 0; i{k} < {lengths[k]}; i{k}++) {{")
            indent += "  "
        for k, (v, s) in enumerate(zip([*views, *made], strides, strict=True)):
            const, name = ("const ", f"p{k}") if k < len(views) else ("", f"q{k - len(views)}")
            steps = [f"i{j} * {s[j]}" for j in range(depth) if s[j]]
            self.lines.append(
                f"{indent}{const}{C_TYPE[v.type]} *{name} = {' + '.join([v.pointer, *steps])};"
            )
        last = [s[-1] if s else 0 for s in strides]
        for k, v in enumerate(views):
            if last[k] == 0:
                self.lines.append(f"{indent}const {self._inside(v)} a{k} = p{k}[0];")
        self.lines.append(f"{indent}#pragma omp simd")
        self.lines.append(f"{indent}for (ptrdiff_t j = 0; j < {lengths[-1] if lengths else 1}; j++) {{")
        for k, v in enumerate(views):
            if last[k]:
                self.lines.append(f"{indent}  const {self._inside(v)} a{k} = p{k}[{_at(last[k])}];")
        self.lines += [f"{indent}  {line}" for line in text.lines]
        for k, result in enumerate(results):
            self.lines.append(f"{indent}  q{k}[{_at(last[len(views) + k])}] = {result};")
        self.lines += ["  " * n + "}" for n in range(depth + 1, -1, -1)]
        self.view |= dict(zip(values, made, strict=True))

    def _inside(self, view: View) -> str:
        return "bool" if view.type == "bool" else self.real

    def _copy(self, source: View, target: View) -> None:
        local = Node.of(Local(0, target.shape))
        self._loose(Graph((local,), (local,)), [source], target)

    def _fill(self, target: View) -> None:
        self._loose(Graph((), ()), [], target, "0")

    def _loose(self, body: Graph, views: Sequence[View], target: View, value: str = "p0") -> None:
        """Write a loop that copies a view, or fills an array with a number."""
        lengths, strides = merged(target.shape, [*views, target])
        text = "".join(f"for (ptrdiff_t i{k} = 0; i{k} < {n}; i{k}++) " for k, n in enumerate(lengths))
        sides = [
            f"({v.pointer})[{' + '.join(f'i{k} * {a}' for k, a in enumerate(s) if a) or '0'}]"
            for v, s in zip([*views, target], strides, strict=True)
        ]
        self.lines.append(f"{text}{sides[-1]} = {sides[0] if views else value};")


def _at(stride: int) -> str:
    return "j" if stride == 1 else f"j * {stride}"


def _scalar(view: View, shape: tuple[int, ...]) -> View:
    if view.shape:
        raise Unsupported("an operand of another shape")
    return view.repeated(shape, ())


def _sizes(node: Node) -> tuple[int, ...]:
    return _ints(node.shape)


def _ints(values: Sequence[int]) -> tuple[int, ...]:
    if not all(isinstance(v, int) for v in values):
        raise Unsupported("a size that is no number")
    return tuple(values)


def _is_view(node: Node) -> bool:
    return isinstance(node.op, (Slice, Broadcast)) or _permutes(node)


def _permutes(node: Node) -> bool:
    """Whether a contraction only permutes axes."""
    op = node.op
    if not isinstance(op, Einsum) or len(op.inputs) != 1 or len(set(op.output)) < len(op.output):
        return False
    return sorted(op.inputs[0]) == sorted(op.output)


def loop_source(
    name: str, op: Scan | Loop, dtype: str, strides: Mapping[int, Ints]
) -> tuple[str, LoopText] | None:
    """The C function of a loop; None if its body cannot be written in C.

    Its arguments are the number of steps, the address of the BLAS product, the number of places for states,
    the place of the first state, and then addresses: for each moving input and each result the first step
    and the distance to the next (in elements), for all other inputs one address.
    """
    try:
        text = LoopText(op, dtype, strides)
    except Unsupported:
        return None
    real, count = text.real, len(text.body.input_nodes)
    outputs = len(text.body.output_nodes)
    fixed = count - 1 - text.slices
    at = 4
    lines = [
        f"int {name}(const long long *frame) {{",
        "  const long long steps = frame[0];",
        *(["  const symad_gemm_t gemm = (symad_gemm_t)frame[1];"] if text.uses_products else []),
        "  const long long places = frame[2];",
        f"  const {real} *state = (const {real} *)frame[3];",
    ]
    inner = []
    for k in range(text.slices):
        lines.append(f"  const {real} *const moving{k} = (const {real} *)frame[{at}];")
        inner.append(f"const {real} *x{k} = moving{k} + t * frame[{at + 1}];")
        at += 2
    for k in range(fixed):
        lines.append(f"  const {real} *const c{k} = (const {real} *)frame[{at}];")
        at += 1
    for k in range(outputs):
        lines.append(f"  {real} *const result{k} = ({real} *)frame[{at}];")
        place = "t" if k else "t % places"
        inner.append(f"{real} *y{k} = result{k} + {place} * frame[{at + 1}];")
        at += 2
    lines += [
        f"  char *scratch = malloc({text.scratch} + 1);",
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
