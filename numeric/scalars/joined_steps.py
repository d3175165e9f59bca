"""Pairs of operations as one, if nothing else reads the result of the first: such as a product and a sum.

The interpreter for many points then passes over three rows instead of four. The intermediate result is
rounded as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from symad.numeric.numpy_arrays.scalars.level_runs import NumberedSteps

JOINED = {
    "product_plus": "{a}*{b} + {c}",
    "product_minus": "{a}*{b} - {c}",
    "minus_product": "{c} - {a}*{b}",
    "product_of_three": "{a}*{b}*{c}",
    "sum_times": "({a} + {b})*{c}",
    "difference_times": "({a} - {b})*{c}",
}
"""The combined operations on a, b, c in C; a and b are the operands of the first operation."""

PAIRS = {
    ("multiply", "add", 0): "product_plus",
    ("multiply", "add", 1): "product_plus",
    ("multiply", "subtract", 0): "product_minus",
    ("multiply", "subtract", 1): "minus_product",
    ("multiply", "multiply", 0): "product_of_three",
    ("multiply", "multiply", 1): "product_of_three",
    ("add", "multiply", 0): "sum_times",
    ("add", "multiply", 1): "sum_times",
    ("subtract", "multiply", 0): "difference_times",
    ("subtract", "multiply", 1): "difference_times",
}
"""The first operation, the second, and the position of the first one's value among the second's operands."""


def joined(steps: NumberedSteps, wanted: Sequence[int]) -> tuple[NumberedSteps, list[int]]:
    """The operations with pairs combined, and the new numbers of the wanted operations."""
    operations = steps.operations
    uses = Counter(o for _, operands in operations for o in operands)
    uses.update(wanted)
    pairs: dict[int, tuple[str, tuple[int, ...]]] = {}
    gone: set[int] = set()
    for k, (second, operands) in enumerate(operations):
        for place, o in enumerate(operands):
            name = PAIRS.get((operations[o][0], second, place))
            if name is not None and uses[o] == 1 and o not in pairs:
                pairs[k] = name, (*operations[o][1], operands[1 - place])
                gone.add(o)
                break
    made, number = NumberedSteps(), dict[int, int]()
    for k, operation in enumerate(operations):
        if k not in gone:
            function, operands = pairs.get(k, operation)
            number[k] = made.value(function, *(number[o] for o in operands))
    return made, [number[k] for k in wanted]
