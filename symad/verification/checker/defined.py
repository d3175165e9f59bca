"""Which nodes have values wherever the sides of a claim have: the lemmas about pairs speak of these alone.

A lemma is about a node and its cotangent. Where one of them has no value, the lemma says nothing, and the
chain of lemmas would be broken there: at such points the claim would hold for no reason. So a pair is
admitted only if its nodes have values at every point at which the function and the output have.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from symad.core.claims import Derived
from symad.core.graph import Node, Op
from symad.ops.basic import arithmetic, contraction, shaping
from symad.ops.basic.sources import Constant, Dimension
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.verification.checker import terms as table
from symad.verification.checker.writing_out import STRICT, WHOLE

Sign: TypeAlias = int
POSITIVE, NONNEGATIVE, UNKNOWN = 1, 0, -1  # of all elements at all points, as far as it is seen


def sure(claim: Derived, outputs: Sequence[int]) -> dict[int, set[Node]]:
    """For each output the nodes with values wherever the function and this output have them.

    Where all nodes have values where the function alone has, they have so for each output.
    """
    nodes, signs, made = claim.nodes, dict[Node, Sign](), dict[int, set[Node]]()
    alone = dict[tuple[Node, ...], set[Node]]()
    for n in nodes:
        signs[n] = sign(n, [signs[a] for a in n.args])
    for k in outputs:
        ends = claim.derivative.about(k)
        if ends not in alone:
            alone[ends] = with_values(signs, ends)
        whole = len(alone[ends]) == len(nodes)
        made[k] = alone[ends] if whole else with_values(signs, {*ends, claim.outputs[k]})
    return made


def with_values(signs: Mapping[Node, Sign], ends: Collection[Node]) -> set[Node]:
    """Of nodes, arguments first, those with values wherever the ends have: used ones, and what follows."""
    found = used([*signs], ends)
    by = [a for n in found if type(n.op) in STRICT for a in divisors(n)]  # n has a value, so a is not 0
    nonzero = {n for n in signs if signs[n] == POSITIVE}.union(by)
    for n in signs:
        if found.issuperset(n.args) and follows(n, signs[n], nonzero):
            found.add(n)
    return found


def used(nodes: Sequence[Node], ends: Collection[Node]) -> set[Node]:
    """The ends, and what they use: functions and ops of `STRICT` have no value where an argument has none."""
    found = set(ends)
    for n in reversed(nodes):
        if n in found and (type(n.op) in STRICT or isinstance(n.op, (Apply, Pow))):
            found.update(n.args)
    return found


def divisors(n: Node) -> list[Node]:
    """What a node divides by: if it has a value, these are not 0."""
    return [a for a, p in zip(n.args, getattr(n.op, "powers", ()), strict=False) if p < 0]


def follows(n: Node, seen: Sign, nonzero: Collection[Node]) -> bool:
    """Whether a node has a value where its arguments have: nothing it does is undefined for some numbers.

    Functions of `TOTAL` are real for all reals, and so are u^2 to u^8; u^c is for u ≥ 0 and a number c > 0,
    and u^v for u > 0 and v > 0. Quotients need divisors that are not 0.
    """
    if isinstance(n.op, Apply):
        return table.HEADS.get(n.op.head) in table.TOTAL
    if isinstance(n.op, Pow):
        exponent = n.args[1].op
        fixed = exponent.value if isinstance(exponent, Constant) else None
        return fixed in range(2, 9) or seen >= (POSITIVE if fixed is None else NONNEGATIVE)
    return type(n.op) in WHOLE and all(a in nonzero for a in divisors(n))


def sign(n: Node, parts: Sequence[Sign]) -> Sign:
    """The sign of a node that is seen from those of its arguments."""
    if isinstance(n.op, Constant) or type(n.op) is Dimension:
        number = n.op.value if isinstance(n.op, Constant) else n.op.expression
        return POSITIVE if (number > 0) in (True,) else UNKNOWN
    rule = SIGNS.get(type(n.op))
    return UNKNOWN if rule is None else rule(n, parts)


def of_sum(n: Any, parts: Sequence[Sign]) -> Sign:
    """Numbers that are not negative add up to one, which is positive if one of them is."""
    if {*n.op.signs} != {1} or UNKNOWN in parts:
        return UNKNOWN
    return max(parts)


def of_product(n: Any, parts: Sequence[Sign]) -> Sign:
    """Products and quotients of positive numbers are positive; u u and u/u are not negative."""
    square = n.args[1:] == n.args[:1] and {*n.op.powers} <= {1, -1}
    return max(min(parts), NONNEGATIVE if square else UNKNOWN)


def of_contraction(n: Any, parts: Sequence[Sign]) -> Sign:
    """A sum of such products, but never seen to be positive: it may be a sum over nothing."""
    square = n.args[1:] == n.args[:1] and len({*n.op.inputs}) == 1
    return min(NONNEGATIVE, max(min(parts), NONNEGATIVE if square else UNKNOWN))


def of_parts(n: Node, parts: Sequence[Sign]) -> Sign:
    """Moved elements, and u^v: as all arguments are, since 0^v is 0 for v > 0 and u^0 is 1."""
    return min(parts)


SIGNS: dict[type[Op], Callable[[Any, Sequence[Sign]], Sign]] = {
    arithmetic.Add: of_sum, arithmetic.Mul: of_product, contraction.Einsum: of_contraction,
    shaping.Broadcast: of_parts, shaping.Reshape: of_parts, Pow: of_parts,
}  # fmt: skip
