"""Attention in CuPy modules: the tiled kernels as text, and the calls that launch them.

The head dims must be numbers when the code is written, since tiles are compiled for them. Otherwise, and if
no tile fits, attention is replaced by its definition (`symad.gpu.lower` decides).
Scalar parameters become arrays of one element, so that no number has to be copied back to the host.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import sympy as sp

from symad.core.graph import Graph, Node, topological
from symad.errors import ShapeError
from symad.fused.attention_definition import definition_of
from symad.fused.attention_ops import (
    Attention,
    AttentionCotangent,
    AttentionOp,
    AttentionSecond,
    AttentionTangent,
)
from symad.fused.score_functions import Parameter, parameter_symbol
from symad.gpu import module_text as texts
from symad.gpu.attention_kernels.compiled_score import CompiledScore, compile_score
from symad.gpu.attention_kernels.plan import (
    ELEMENTS,
    PLAIN_FLOAT32,
    Element,
    KernelPlan,
    pieces,
    plans,
)
from symad.gpu.attention_kernels.score_layout import Holds, ScoreField, extreme_key, tiled_axis
from symad.gpu.attention_kernels.tile_shapes import (
    BACKWARD_KV,
    BACKWARD_Q,
    DIAGONALS,
    FORWARD,
    HALF,
    SECOND_KV,
    SECOND_Q,
    TANGENT,
)
from symad.gpu.module_text import IMPORTS, fastest_text
from symad.gpu.printers.indices import add_laid_out, segment_sum
from symad.gpu.printers.printing import CuPyWriter
from symad.gpu.settings import current
from symad.numeric.numpy_arrays.expressions import defined
from symad.numeric.numpy_arrays.pairs.attention_printer import after_parameters, numbers_of, tuple_text
from symad.numeric.numpy_arrays.pairs.formulas import FormulaText
from symad.numeric.numpy_arrays.statements import (
    KernelLines,
    Made,
    computed,
    kernel_lines,
    results_by_number,
)
from symad.numeric.pairs.scores import LOOPS, score_of
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import constant_value

PASSES = {
    Attention: (FORWARD,),
    AttentionTangent: (TANGENT,),
    AttentionCotangent: (BACKWARD_Q, BACKWARD_KV),
    AttentionSecond: (SECOND_Q, SECOND_KV),
}
"""The kernels an op needs; BACKWARD also needs DIAGONALS for tables of relative positions."""

HELPER: dict[type[AttentionOp], tuple[str, str]] = {
    Attention: ("_attention", texts.FORWARD),
    AttentionTangent: ("_attention_tangent", texts.TANGENT),
    AttentionSecond: ("_attention_second", texts.SECOND),
}
"""The name and the source of the function that launches the kernels of an op."""

ABOUT_SUMS: dict[type[AttentionOp], tuple[int, ...]] = {
    Attention: (),
    AttentionTangent: (1,),
    AttentionCotangent: (1, 3),
    AttentionSecond: (1, 3, 8, 10),
}
"""The positions of L and its derivatives after the parameters."""

ROOMS = (227 << 10, 163 << 10, 99 << 10, 64 << 10)
"""Shared memory per block for compute capability 9.0 and 10.0, 8.0, 8.6 to 12.0, and 7.5."""


def has_kernels(op: AttentionOp, node: Node, dtype: str) -> bool:
    """Whether kernels exist for the head dims; in a tangent pass, parameters must have zero tangents."""
    d, d_v = node.args[0].shape[3], node.args[2].shape[3]
    if not (isinstance(d, int) and isinstance(d_v, int) and d and d_v):
        return False
    moving = node.args[op.inner + 5 :] if isinstance(op, AttentionTangent) else ()
    if not all(_is_zero(a) for a in moving):
        return False
    try:
        for kind in PASSES[type(op)]:
            plans(kind, ELEMENTS[dtype], *padded(node, dtype), ROOMS[0], plain=False)
    except ShapeError:
        return False
    return True


def wide_arguments(op: AttentionOp) -> list[int]:
    """The arguments that kernels read in the type of sums: real parameters, L, and L's derivatives."""
    return [*op.real[3:], *(op.inner + k for k in ABOUT_SUMS[type(op)])]


def inputs_as_given(graph: Graph) -> set[Node]:
    """The inputs that attention alone reads in the type of sums, which a half precision would round."""
    reads = [
        (a, isinstance(n.op, AttentionOp) and k in wide_arguments(n.op))
        for n in topological(graph.output_nodes)
        for k, a in enumerate(n.args)
    ]
    others = {a for a, wide in reads if not wide} | {*graph.output_nodes}
    return {a for a, wide in reads if wide and a not in others} & {*graph.input_nodes}


def _is_zero(node: Node) -> bool:
    if isinstance(node.op, Broadcast):
        node = node.args[0]
    return bool(constant_value(node) == 0)


def padded(node: Node, dtype: str) -> tuple[int, int]:
    """Head dims, padded to multiples of 16 bytes."""
    per = 16 // ELEMENTS[dtype].bytes
    d, d_v = (int(node.args[k].shape[3]) for k in (0, 2))
    return -(-d // per) * per, -(-d_v // per) * per


@kernel_lines.dispatch
def attention_lines(op: AttentionOp, writer: CuPyWriter, made: Made) -> KernelLines:
    """The statements that compute all results of an attention op."""
    node = writer.plans.nodes[made[0].value]
    if has_kernels(op, node, writer.dtype):
        return _AttentionWriter(op, node, writer, made).lines()
    if len(made) > 1:
        return None
    stands_for = definition_of(node)  # bodies of scans are not entered by the pass that writes definitions
    writer.named[made[0].value] = defined(stands_for, node, writer)
    lines, writer.before = writer.before, []
    return lines


class _AttentionWriter:
    """Writes one attention op into a module."""

    def __init__(self, op: AttentionOp, node: Node, printer: CuPyWriter, made: Made) -> None:
        self.op, self.node, self.printer, self.results = op, node, printer, results_by_number(made)
        self.real = "double" if printer.dtype == "float64" else "float"
        self.np_real = f"cp.{printer.accumulator}"
        self.args = [printer.array_text(a) for a in computed(made).args]
        self.params = self.args[3 : op.inner]
        self.parameters = tuple(Parameter(p.name, max(p.ndim, 1), p.integer) for p in op.given)
        key = (op.score, op.mask, op.parameters, self.positive)
        self.number = printer.scores.setdefault(key, len(printer.scores) + 1)
        self.compiled = self._compile()
        printer.helper("_module", texts.MODULE)
        printer.helper("_device", texts.DEVICE)
        run = fastest_text() if current().autotune else texts.FIRST
        printer.imports |= IMPORTS if current().autotune else set()
        for name, source in (("_launch", texts.LAUNCH), ("_run", run), ("_statistics", texts.STATISTICS)):
            if name != "_statistics" or isinstance(op, AttentionSecond):
                printer.helper(name, source)
        printer.imports.add("from functools import lru_cache")

    def _compile(self) -> CompiledScore:
        """The compiled score, with every scalar parameter read from an array of one element."""
        arrays = {}
        for p, q in zip(self.op.given, self.parameters, strict=True):
            if p.ndim == 0:
                arrays[parameter_symbol(p)] = parameter_symbol(q)[0]
        value, mask = (f.expression.subs(arrays) for f in (self.op.score, self.op.mask))
        return compile_score(score_of(value, mask, self.parameters), self.real, current().fast)

    def lines(self) -> list[str]:
        """The statements; the results' names are stored in the printer."""
        op, printer, results = self.op, self.printer, self.results
        numbers = numbers_of(op)
        common = ", ".join([*self._point(), self.plans_name(), self.arguments(), self.scale()])
        common += f", {printer.type_text}, {self.np_real}, {self.widths()}"
        names = ", ".join(printer.result_names(numbers, results)[:3])
        if isinstance(op, (Attention, AttentionTangent)) and 1 in results:
            printer.kinds[results[1]] = printer.accumulator
        if not isinstance(op, AttentionCotangent):
            return [f"{names} = {printer.helper(*HELPER[type(op)])}({common})"]
        counts = tuple_text([str(len(symbols)) for symbols in self.compiled.groups.values()])
        printer.helper("_delta", texts.DELTA)
        kind = ("_atomic_bars", texts.ATOMIC) if self.atomic else ("_owned_bars", texts.OWNED)
        bars = printer.helper(*kind)
        helper = printer.helper("_attention_cotangents", texts.COTANGENTS)
        parameters = [r for r in op.real[3:] if r in results]
        sums = printer.fresh() if parameters else "_"
        lines = [f"{names}, {sums} = {helper}({common}, {counts}, {bars})"]
        for r in parameters:
            as_given = self.node.args[r] in printer.as_given
            if as_given:
                printer.kinds[results[r]] = printer.accumulator
            dtype = self.np_real if as_given else printer.type_text
            lines.append(f"{printer.named[results[r]]} = {self.parameter_bar(r - 3, sums, dtype)}")
        return lines

    def _point(self) -> list[str]:
        """The texts of q, k, v and of the helper's further arguments."""
        op, args = self.op, [*self.args]
        if isinstance(op, AttentionTangent):
            del args[op.inner + 5 :]  # the tangents of the parameters are zero
        elif not isinstance(op, Attention) and _is_zero(self.node.args[op.inner + 3]):
            args[op.inner + 3] = "None"
        return [*args[:3], *after_parameters(op, args)]

    def scale(self) -> str:
        """The factor of the scores."""
        d = int(self.node.args[0].shape[3])
        return repr(d**-0.5 if self.op.scale is None else float(self.op.scale))

    def widths(self) -> str:
        """The columns of q, k and v in memory."""
        d, d_v = padded(self.node, self.printer.dtype)
        return f"({d}, {d}, {d_v})"

    # ---- kernels

    def plans_name(self) -> str:
        """The plans of one pass, or of several by name."""
        kinds = list(PASSES[type(self.op)])
        if isinstance(self.op, AttentionCotangent) and self.compiled.groups["diagonal"]:
            kinds.append(DIAGONALS)
        if len(kinds) == 1:
            return self.plan_constant(kinds[0])
        return "{" + ", ".join(f'"{kind}": {self.plan_constant(kind)}' for kind in kinds) + "}"

    def plan_constant(self, kind: str) -> str:
        """The name of the module's constant with the plans of one pass."""
        d, d_v = padded(self.node, self.printer.dtype)
        name = f"_plans_{kind}_{self.number}_{d}_{d_v}"
        if name not in self.printer.helpers:
            self.printer.helper(name, self.plan_text(name, kind, d, d_v))
        return name

    def plan_text(self, name: str, kind: str, d: int, d_v: int) -> str:
        """The text of the constant with the plans of one pass."""
        plain = self.compiled.plain and self.positive
        entries = []
        for element, least in self.elements():
            for choice in _choices(kind, element, d, d_v, plain, self.atomic):
                needed = max(p.shared_bytes * p.shape.min_blocks for p in choice)
                launches = ", ".join(map(self.launch_text, choice))
                entries.append(f"    ({least}, {needed}, [{launches}]),")
        return "\n".join([f"{name} = [", *entries, "]", ""])

    @property
    def positive(self) -> bool:
        """Whether the scale is positive; the kernels fold only a positive scale into the scores."""
        return float(self.scale()) > 0

    @property
    def atomic(self) -> bool:
        """Whether the pass over keys sums q̄ by atomic additions: the option is on, and a kernel exists."""
        d, d_v = padded(self.node, self.printer.dtype)
        halves = ELEMENTS[self.printer.dtype].family == HALF and max(d, d_v) <= 128
        groups = self.compiled.groups
        known = isinstance(self.op, AttentionCotangent) and not (groups["row"] or groups["pair"])
        return current().atomics and halves and known

    def elements(self) -> Sequence[tuple[Element, int]]:
        """The element types, with the compute capability that each needs."""
        chosen = [(ELEMENTS[self.printer.dtype], 80)]
        if self.printer.dtype != "float32":
            return chosen
        return [*chosen * current().tensor_cores, (PLAIN_FLOAT32, 70)]

    def launch_text(self, plan: KernelPlan) -> str:
        """One launch: threads, rows, slices, shared memory, and the source as a sum of its parts."""
        parts = [
            self.text_of(name, text) if name else repr(text)
            for name, text in pieces(plan, self.compiled, self.positive)
        ]
        own = plan.band if plan.kind == DIAGONALS else plan.own
        return f"({plan.threads}, {own}, {plan.slices}, {plan.shared_bytes}, {' + '.join(parts)})"

    def text_of(self, name: str, text: str) -> str:
        """The constant that holds a kernel file, or the C text of the score."""
        if name == "score":
            return self.printer.text_constant(f"_SCORE_{self.number}", text)
        return self.printer.kernel_file(name)

    # ---- parameters

    def arguments(self) -> str:
        """The text of the kernels' arguments for the parameters."""
        if not self.parameters:
            return "(cp.int32(0),)"
        name = f"_arguments_{self.number}"
        if name not in self.printer.helpers:
            self.printer.imports.add("import numpy as np")
            self.printer.helpers[name] = self.arguments_text(name)
        return f"{name}({', '.join(self.params)})"

    def arguments_text(self, name: str) -> str:
        """The function that makes ScoreArgs; it also returns the arrays, which must be kept alive."""
        score = self.compiled.score
        names = [p.name for p in self.parameters]
        lines = []
        for p in self.parameters:
            kind = "cp.int32" if p.integer else self.np_real
            given = f"cp.atleast_1d({p.name}).astype({kind}, copy=False)"
            lines.append(f"{p.name} = cp.ascontiguousarray({given})")
        kept = list(names)
        for load in score.reads(score.mask):
            key = extreme_key(load)
            if key is not None and f"lo_{key}" not in kept:
                helper = self.printer.helper("_extremes", texts.EXTREMES)
                lines.append(f"lo_{key}, hi_{key} = {helper}({load.name}, {tiled_axis(load)})")
                kept += [f"lo_{key}", f"hi_{key}"]
        values = [_field_value(field) for field in self.compiled.fields]
        fields = [(field.name, field.dtype(self.real)) for field in self.compiled.fields]
        return "\n".join(
            [
                f"def {name}({', '.join(names)}):",
                *(f"    {line}" for line in lines),
                f"    layout = np.dtype({fields}, align=True)",
                f"    return np.array([{tuple_text(values)}], dtype=layout), {tuple_text(kept)}",
                "",
            ]
        )

    def parameter_bar(self, position: int, sums: str, dtype: str) -> str:
        """The call that gathers the cotangent of one parameter."""
        parameter, terms = self.parameters[position], []
        for group, (kind, symbols) in enumerate(self.compiled.groups.items()):
            for k, symbol in enumerate(symbols):
                load = next(r for r in self.compiled.score.loads if r.symbol is symbol)
                if load.name == parameter.name:
                    places = self.compiled.places(load)
                    place = "None"
                    if places is None:
                        place = self.place_function(symbol, f"_place_{self.number}_{group}_{k}")
                        segment_sum(self.printer)
                    terms.append(f'("{kind}", {sums}[{group}][{k}], {places}, {place})')
        self.printer.helper("add_laid_out", inspect.getsource(add_laid_out))
        self.printer.imports |= {"from collections.abc import Sequence", "from typing import Any"}
        helper = self.printer.helper("_parameter_bar", texts.PARAMETER_BAR)
        shape = f"{self.params[position]}.shape"
        keys = f"{self.args[1]}.shape[2]"
        made = (
            f"{helper}({'(1,)' if self.op.given[position].ndim == 0 else shape}, [{', '.join(terms)}], "
            f"{tuple_text(self.params)}, {keys}, {self.np_real}, {dtype})"
        )
        return f"{made}.reshape({shape})"

    def place_function(self, symbol: sp.Symbol, name: str) -> str:
        """A function of the module that returns the place where a parameter is read."""
        if name not in self.printer.helpers:
            score = self.compiled.score
            arguments = [*map(str, LOOPS), *(p.name for p in self.parameters)]
            text = FormulaText(score, self.printer, set(arguments))
            _, index = text.place(symbol)
            body = [*text.lines[:-1], f"return {tuple_text(index)}"]  # the last line reads the value
            self.printer.helpers[name] = "\n".join(
                [f"def {name}({', '.join(arguments)}):", *(f"    {line}" for line in body), ""]
            )
        return name


def _field_value(field: ScoreField) -> str:
    """The value of a field of ScoreArgs, as an expression of the arrays."""
    if field.holds is Holds.SIZE:
        return f"{field.parameter}.shape[{field.axis}]"
    if field.is_pointer:
        return f"{field.parameter if field.holds is Holds.ARRAY else field.name}.data.ptr"
    return "0"


def _choices(
    kind: str, element: Element, d: int, d_v: int, plain: bool, atomic: bool
) -> list[tuple[KernelPlan, ...]]:
    """The plans of one pass, for decreasing sizes of shared memory."""
    found: list[tuple[KernelPlan, ...]] = []
    for room in ROOMS:
        try:
            made = plans(kind, element, d, d_v, room, plain, atomic and kind == BACKWARD_KV)
        except ShapeError:
            break
        if made not in found:
            found.append(made)
    return found
