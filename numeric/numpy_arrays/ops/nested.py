"""Parts of a program as nested functions, so that their values are freed when the call returns.

`Remat` is printed in this way, and so are checkpointed chains: their backward sweep computes values again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import count

import sympy

from symad.core.dims import Dim, plus, size
from symad.core.graph import Graph, Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import ArrayPrinter, Text, Texts, emit
from symad.numeric.numpy_arrays.owners import owner
from symad.numeric.targets.pasting import pasted
from symad.ops.loops.checkpointed_chain import Chain, ChainOp, Kept, arguments, length_of
from symad.ops.loops.checkpointed_chain_pullback import ChainPullback, stretch_pullback
from symad.ops.loops.remat import Remat
from symad.transforms import revolve


@cache
def steps_of(depth: int) -> sympy.Dummy:
    """The number of steps of the stretch that is pulled back, inside of ``depth`` other stretches."""
    return sympy.Dummy("steps", integer=True, positive=True)


def nested(
    printer: ArrayPrinter,
    stem: str,
    inputs: Sequence[Node],
    graph: Graph,
    known: Sequence[str] = (),
    steps: sympy.Dummy | None = None,
) -> tuple[str, list[str]]:
    """The name and the lines of a function of some inputs of a graph.

    Args:
        printer: the printer of the module.
        stem: the name stem of the function.
        inputs: the inputs that are parameters.
        graph: the graph.
        known: the texts of the other inputs, variables of the enclosing function.
        steps: a dimension that the function takes from the first axis of a parameter.
    """
    name = printer.value_name(stem)
    others = [node for node in graph.input_nodes if node not in set(inputs)]
    parameters = [printer.value_name("a") for _ in inputs]
    texts = dict(zip((*others, *inputs), (*known, *parameters), strict=True))
    first: list[str] = []
    if steps is not None:
        moving = (p for n, p in zip(inputs, parameters, strict=True) if n.shape[:1] == (steps,))
        printer.symbols[steps] = printer.value_name("steps")
        first = [f"{printer.symbols[steps]} = {next(moving)}.shape[0]"]
    outputs = printer.prepared(graph).output_nodes
    with printer.inside(texts, repeated=stem != "part"):
        body = [*first, *printer.statements(outputs)]
        owned = [_own(o, inputs, printer) for o in outputs]
        result = ", ".join(printer.numbers_typed(outputs, owned))
    if steps is not None:
        del printer.symbols[steps]
    comma = "," if len(outputs) == 1 and stem == "pull" else ""
    lines = [f"    {line}" for line in [*body, f"return {result}{comma}"]]
    return name, [f"def {name}({', '.join(parameters)}):", *lines]


def _own(output: Node, inputs: Sequence[Node], printer: ArrayPrinter) -> str:
    """The text of a result, a copy if it is an argument: the caller may overwrite that after its last use."""
    text: str = printer.text[output]
    return f"{text}.copy()" if output.shape and owner(output) in inputs else text


@emit.dispatch
def remat_emit(op: Remat, library: ArrayLibrary, node: Node, args: Texts, printer: ArrayPrinter) -> Text:
    name, lines = nested(printer, "part", op.body.input_nodes, op.body)
    printer.before.extend(lines)
    return f"{name}({', '.join(printer.numbers_typed(node.args, args))})"


def revolving(printer: ArrayPrinter, *names: str) -> None:
    """Add functions of `symad.transforms.revolve` to the module, with the functions that they call."""
    for name in ("places", *names):
        found = pasted(getattr(revolve, name), "_", printer.np)
        printer.imports.update(found.imports)
        for helper, source in found.functions:
            printer.helper(helper, source)


def policy_text(op: ChainOp, length: str) -> tuple[str, str]:
    """The texts of the distance of kept states and of the number of slots, from that of the length."""
    if op.policy == "binomial":
        return "0", str(op.number) if op.number else f"2*({length}).bit_length()"
    return {"recompute": "1", "every": str(op.number), "sqrt": f"max(1, int({length}**0.5))"}[op.policy], "0"


def stepping(
    op: ChainOp, nodes: Sequence[Node], texts: Sequence[str], printer: ArrayPrinter
) -> tuple[str, list[str]]:
    """The function of one step, from a state and one element of each input."""
    moving, args = op.body.input_nodes[: 1 + op.slices], printer.numbers_typed(nodes, texts)
    return nested(printer, "step", moving, op.body, args[1 + op.slices : len(op.body.input_nodes)])


@emit.dispatch
def kept_emit(op: Kept, library: ArrayLibrary, node: Node, args: Texts, printer: ArrayPrinter) -> Text:
    revolving(printer, "keep_states")
    length = printer.dim(length_of(node.args))
    distance, slots = ("1", "0") if op.history else policy_text(op, length)
    step, lines = stepping(op, node.args, args, printer)
    printer.before.extend(lines)
    state, *others = printer.numbers_typed(node.args, args)
    xs = "".join(f"{x}, " for x in others[: op.slices])
    return f"_keep_states({step}, {state}, ({xs}), _places({length}, {distance}, {slots}))"


@emit.dispatch
def chain_emit(op: Chain, library: ArrayLibrary, node: Node, args: Texts, printer: ArrayPrinter) -> Text:
    return f"{args[-1]}[:{printer.dim(length_of(node.args))}]" if op.history else f"{args[-1]}[-1]"


@emit.dispatch
def chain_pullback_emit(
    op: ChainPullback, library: ArrayLibrary, node: Node, args: Texts, printer: ArrayPrinter
) -> Text:
    """One flat array of all cotangents, filled stretch by stretch."""
    revolving(printer, "reverse_chain")
    values, _, _ = arguments(op, node.args)
    texts, kept = printer.numbers_typed(values, args[: len(values)]), args[len(values)]
    (bar,) = printer.numbers_typed(node.args[-1:], args[-1:])
    length = printer.dim(length_of(values))
    distance, slots = policy_text(op, length)
    if op.history:
        distance, slots = ("1" if distance == "0" else distance), "0"
    step, step_lines = stepping(op, values, args[: len(values)], printer)
    steps = next(s for s in map(steps_of, count()) if s not in printer.symbols)
    stretch = stretch_pullback(op, steps, tuple(v.shape for v in values[1 + op.slices :]))
    moving = (*stretch.input_nodes[: 1 + op.slices], stretch.input_nodes[-1])
    pulled, lines = nested(printer, "pull", moving, stretch, texts[1 + op.slices :], steps)
    flat, stops, carry = (printer.value_name(stem) for stem in ("flat", "stops", "carry"))
    np_, outs, first = printer.np, "", []
    offset: Dim = 0
    for k, (value, flag) in enumerate(zip(values, op.active, strict=True)):
        if not flag:
            continue
        end = plus(offset, size(value.shape))
        part = f"{flat}[{printer.dim(offset)}:{printer.dim(end)}]"
        if k:
            outs += f"({part}.reshape({printer.dims(value.shape)}), {k <= op.slices}), "
        else:
            first = [f"{part} = 0.0 if {carry} is None else {np_}.ravel({carry})"]
        offset = end
    states = f"({kept}[{'k - 1' if op.history else 'j'}] for j, k in enumerate({stops}))"
    xs = "".join(f"{x}, " for x in texts[1 : 1 + op.slices])
    printer.before.extend(
        [
            *step_lines,
            *lines,
            f"{flat} = {np_}.zeros({printer.dim(offset)}, dtype={printer.type_text})",
            f"{stops} = _places({length}, {distance}, {slots})",
            f"{carry} = _reverse_chain({step}, {pulled}, ({xs}), [{texts[0]}, *{states}], {stops}, {slots}, "
            f"{bar}, {op.history}, [{outs}])",
            *first,
        ]
    )
    return flat
