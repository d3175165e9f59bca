"""`Function` statements as nested functions, and the calls of `Remat` and of checkpointed chains."""

from __future__ import annotations

from symad.core.dims import Dim, plus, size
from symad.core.graph import Node
from symad.higher_order.checkpointed_chain import Chain, ChainOp, Kept, arguments, length_of
from symad.higher_order.checkpointed_chain_pullback import ChainPullback
from symad.higher_order.remat import Remat
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Printing, Text, Texts, emit
from symad.numeric.program.functions import Function
from symad.numeric.targets.pasting import pasted
from symad.transforms import revolve


def function_lines(statement: Function, printer: Printing) -> list[str]:
    """The lines of a function."""
    given = (*statement.parameters, *(fixed.value for fixed in statement.fixed))
    plan = printer.steps[given[0] if given else statement.value]
    stem, nodes = statement.value.stem, plan.block.nodes
    name = printer.functions[statement.value] = printer.value_name(stem)
    printer.function_results[name] = plan.outputs
    parameters = [printer.value_name(value.stem) for value in statement.parameters]
    outer = [fixed.expression for fixed in statement.fixed]
    nodes_outside = [node for node in map(printer.node_of, outer) if node is not None]
    known = printer.numbers_typed(nodes_outside, [*map(printer.text_of, outer)])
    texts = dict(zip(given, (*parameters, *known), strict=True))
    around, first = dict(printer.symbols), []
    if statement.steps is not None:
        pairs = zip(statement.parameters, parameters, strict=True)
        moving = next(text for value, text in pairs if value.shape[:1] == (statement.steps,))
        printer.symbols[statement.steps] = printer.value_name("steps")
        first = [f"{printer.symbols[statement.steps]} = {moving}.shape[0]"]
    with printer.inside({nodes[v]: text for v, text in texts.items() if v in nodes}, statement.repeated):
        body = [*first, *printer.lines_of(plan, {})]
        made = [
            f"{printer.text[node]}.copy()" if copied else printer.text[node]
            for node, copied in zip(plan.outputs, statement.copied, strict=True)
        ]
        result = ", ".join(printer.numbers_typed(plan.outputs, made))
    printer.symbols = around
    comma = "," if len(made) == 1 and stem == "pull" else ""
    lines = [f"    {line}" for line in [*body, f"return {result}{comma}"]]
    return [f"def {name}({', '.join(parameters)}):", *lines]


@emit.dispatch
def remat_emit(op: Remat, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    (name,) = printer.called_names
    return f"{name}({', '.join(printer.numbers_typed(node.args, args))})"


def revolving(printer: Printing, *names: str) -> None:
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


@emit.dispatch
def kept_emit(op: Kept, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    revolving(printer, "keep_states")
    length = printer.dim(length_of(node.args))
    distance, slots = ("1", "0") if op.history else policy_text(op, length)
    (step,) = printer.called_names
    state, *others = printer.numbers_typed(node.args, args)
    xs = "".join(f"{x}, " for x in others[: op.slices])
    return f"_keep_states({step}, {state}, ({xs}), _places({length}, {distance}, {slots}))"


@emit.dispatch
def chain_emit(op: Chain, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    return f"{args[-1]}[:{printer.dim(length_of(node.args))}]" if op.history else f"{args[-1]}[-1]"


@emit.dispatch
def chain_pullback_emit(
    op: ChainPullback, library: ArrayLibrary, node: Node, args: Texts, printer: Printing
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
    step, pulled = printer.called_names
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
            f"{flat} = {np_}.zeros({printer.dim(offset)}, dtype={printer.type_text})",
            f"{stops} = _places({length}, {distance}, {slots})",
            f"{carry} = _reverse_chain({step}, {pulled}, ({xs}), [{texts[0]}, *{states}], {stops}, {slots}, "
            f"{bar}, {op.history}, [{outs}])",
            *first,
        ]
    )
    return flat
