"""Scans as NumPy loops that write every value where it stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from symad.core.dims import Shape, plus
from symad.core.graph import Node
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.ops.loop_rows import (
    beside_lines,
    besides,
    is_result,
    read_otherwise,
)
from symad.numeric.numpy_arrays.ops.recurrence import row_stem, state_stem
from symad.numeric.numpy_arrays.texts import Name, Turned, is_name
from symad.numeric.passes.loops.loop import Loop, loop_of, pieces, values
from symad.ops.arrays.shaping import Slice, reshape
from symad.ops.arrays.stacking import Concatenate
from symad.ops.elementwise.apply import Apply
from symad.ops.loops.scan import backwards

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter
    from symad.numeric.numpy_arrays.printer import ArrayPrinter


def loop_lines(node: Node, printer: Any) -> list[str]:
    """The statements that fill the arrays of all states and of what else is kept of the steps.

    The loop runs over the inputs and the places of the new values together; steps write there. Matrices
    that every step needs transposed are laid out so before the loop.
    """
    op = loop_of(node)
    initial, xs, constants = pieces(op, node.args)
    local, results = op.body.input_nodes, op.body.output_nodes
    made = values(node)
    stems = value_stems(node, made, printer)
    names = {value: printer.called(stem) for value, stem in zip(made, stems, strict=True)}
    first = names[made[0]]
    state = "next" if any(x.args and backwards(x) is x.args[0] for x in xs) else "previous"
    states = [printer.called(f"{stem}_{state}") for stem, _ in zip(stems, initial, strict=False)]
    places = [printer.called(f"{stem}_t") for stem in stems]
    outer = dict(printer.text)
    fixed = [outer[c] for c in constants]
    turned = {text: Turned(text) for text in fixed if is_name(text) and text not in printer.fixed}
    printer.fixed |= turned
    moving = [printer.called(row_stem(x, printer)) for x in xs]
    inputs = dict(zip(local, [*states, *moving, *fixed], strict=True))
    beside = {one.value: one for one in besides(node, printer)}
    beside |= {one.states: one for one in beside.values()}
    inputs |= {one.rows: printer.value_name() for one in beside.values()}
    ready = {one.rows for one in beside.values()}
    into = [p if r.shape and r not in ready else None for p, r in zip(places, results, strict=True)]
    floats = {given for given, arg in zip(local, node.args, strict=True) if printer.holds_floats(arg)}
    around, printer.floats = printer.floats, floats
    printer.whole |= {*places}
    with printer.inside(inputs):
        inner = printer.statements(results, into)
        texts = [printer.text[result] for result in results]
        kept = [*states, *printer.names_inside(first.number), *printer.views]
    printer.floats = around
    printer.text |= names
    passing = {  # only the next step needs these states
        value
        for value in made[: len(states)]
        if value.shape[1:] and not printer.users.get(value) and value not in beside
    }
    step, counted = printer.called("t"), any(not r.shape for r in results)
    read = read_otherwise(node, [*beside.values()])
    columns = [outer[x] for x, given in zip(xs, local[len(states) :], strict=False) if given in read]
    targets = [inputs[given] for given in local[len(states) : len(states) + len(xs)] if given in read]
    endless = not columns
    for value, place, result, text in zip(made, places, results, texts, strict=True):
        if not result.shape:  # a number has no place of its own: it is put into the array
            inner.append(f"{names[value]}[{step}] = {text}")
            continue
        if value in passing:
            columns.append(f"itertools.cycle({names[value]})")
        else:
            endless = False
            name = names[value]
            columns.append(name if value in beside else in_order_of_time(value, name, printer))
        if value in beside and result is beside[value].rows:
            targets.append(text)
            continue
        targets.append(place)
    if counted or endless:
        columns.append(f"range({printer.bare(node.shape[0])})")
        targets.append(step)
    if not printer.nesting:  # they keep whole arrays alive
        printer.rows += [*targets, *kept]
    before = [
        f"{printer.fixed[text]} = {printer.np}.ascontiguousarray({turned[text]})"
        for text in turned
        if isinstance(printer.fixed[text], Name)
    ]
    for text in turned:
        del printer.fixed[text]
    rooms = []
    for value in made:
        if value in passing:
            printer.imports.add("import itertools")
            rooms.append(_empty(names[value], (2, *value.shape[1:]), printer))
        elif value in beside:
            if value is beside[value].states:
                rooms += beside_lines(beside[value], names, previous(value, node, printer), printer)
        else:
            rooms += _room(value, names[value], node, printer)
    new = [place if r.shape else t for place, r, t in zip(places, results, texts, strict=True)]
    return [
        *recurrence_comment(node, [names[value] for value in made], printer),
        *rooms,
        *before,
        *(f"{state} = {outer[first]}" for state, first in zip(states, initial, strict=True)),
        f"for {', '.join(targets)}{',' * (len(targets) == 1)} in zip({', '.join(columns)}):",
        *(f"    {line}" for line in inner),
        f"    {', '.join(states)} = {', '.join(new[: len(states)])}",
    ]


def arrays_of_states(node: Node, printer: ArrayPrinter) -> list[list[Node]]:
    """What a loop lays out in one array: the values of all steps, those before them, rows beside states."""
    beside = besides(node, printer)
    groups = [[b.value, b.states, *previous(b.states, node, printer)] for b in beside]
    apart = {n for b in beside for n in (b.value, b.states)}
    others = ([value, *previous(value, node, printer)] for value in values(node) if value not in apart)
    return [*groups, *(group for group in others if len(group) > 1)]


def value_stems(node: Node, made: Sequence[Node], printer: ArrayPrinter) -> list[str]:
    """What the values of a loop are called: states h, or h_bar backwards; others after their function."""
    op = loop_of(node)
    state = state_stem(node, printer)
    states = len(pieces(op, node.args)[0])
    kept = "a_bar" if any(x.args and backwards(x) is x.args[0] for x in pieces(op, node.args)[1]) else "a"
    stems = []
    for k, (value, result) in enumerate(zip(made, op.body.output_nodes, strict=True)):
        function = result.op.head.__name__ if isinstance(result.op, Apply) else kept
        stems.append(printer.labels.get(value) or (state if k < states else function))
    return stems


def recurrence_comment(node: Node, names: Sequence[Name], printer: Any) -> list[str]:
    """What a step makes of the states before it and of its rows, as mathematics."""
    if printer.nesting:
        return []
    initial, xs, _ = pieces(node.op, node.args)  # type: ignore[arg-type]  # a loop's
    turned = any(x.args and backwards(x) is x.args[0] for x in xs)
    last = printer.bare(plus(node.shape[0], -1))
    steps = f"{last} … 0" if turned else f"0 … {last}"
    states = names[: len(initial)]
    rows = [row_stem(x, printer) for x in xs]
    read = [*(f"{s}_{{t{'+' if turned else '-'}1}}" for s in states), *(r for r in rows if r)]
    more = ["…"] if not all(rows) else []
    return ["", f"# {', '.join(f'{s}_t' for s in states)} = f({', '.join([*read, *more])}),   t = {steps}"]


def names_stem(name: Name) -> str:
    """What is put before the endings of names of the same values."""
    return name.stem or str(name)


def _room(value: Node, name: Name, node: Node, printer: ArrayPrinter) -> list[str]:
    """The array for a value at all steps; if the states are also used one step later, with the first."""
    shape = value.shape
    before = previous(value, node, printer)
    if not before:
        return [_empty(name, shape, printer)]
    longer = printer.own_name(f"{names_stem(name)}_all")
    made = _empty(longer, (plus(shape[0], 1), *shape[1:]), printer)
    return [made, *with_first(value, before, longer, name, node, printer)]


def with_first(
    value: Node, before: list[Node], longer: Name, name: Name, node: Node, printer: ArrayPrinter
) -> list[str]:
    """The statements that put the first state before all others, and name the two parts."""
    shifted = printer.called(f"{names_stem(name)}_before")
    for user in before:
        printer.text |= {user: shifted, user.args[1]: shifted}
    return [
        f"{longer}[0] = {printer.text[_initial(value, node)]}",
        f"{name} = {longer}[1:]",
        f"{shifted} = {longer}[:{printer.bare(value.shape[0])}]",
    ]


def _empty(name: str, shape: Shape, printer: ArrayPrinter) -> str:
    return f"{name} = {new_text(shape, printer)}"


def _initial(value: Node, node: Node) -> Node:
    """What a state of a loop begins with."""
    return node.args[value.op.k if isinstance(value.op, Loop) else 0]


def previous(value: Node, node: Node, printer: Any) -> list[Node]:
    """The arrays of the states before all steps: the first state, and all but the last."""
    if isinstance(value.op, Loop) and value.op.k >= value.op.states:
        return []
    initial = _initial(value, node)
    start = reshape(initial, (1, *initial.shape))
    found = []
    for user in printer.users.get(value, []):
        op = user.op
        if not isinstance(op, Slice) or len(printer.users.get(user, [])) != 1:
            continue
        (joined,) = printer.users[user]
        all_but_one = (plus(value.shape[0], -1), *value.shape[1:])
        first = isinstance(joined.op, Concatenate) and joined.op.axis == 0 and len(joined.args) == 2
        first = first and not is_result(joined, printer)  # results have memory of their own
        first = first and joined.args == (start, user)
        if first and op.count == all_but_one and not any(op.start) and set(op.step) == {1}:
            found.append(joined)
    return found


def in_order_of_time(value: Node, name: str, printer: InPlacePrinter) -> str:
    """The column of an array: of one that is only used from its end, the places from the end."""
    users = printer.users.get(value, [])
    if not users or not all(u.shape and u is not value and backwards(u) is value for u in users):
        return name
    printer.text.update(dict.fromkeys(users, name))
    return f"{name}[::-1]"
