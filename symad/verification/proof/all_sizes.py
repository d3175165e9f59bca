"""Proofs that hold for all values of dimension symbols."""

from __future__ import annotations

from fractions import Fraction

import symad.verification.proof.index_functions
import symad.verification.proof.index_linalg
import symad.verification.proof.index_selections  # noqa: F401  (all register rules)
from symad.core.graph import Node, topological
from symad.verification.budget import NODE, Meter, OutOfBudget
from symad.verification.proof.index_networks import Form, Networks
from symad.verification.proof.index_notation import index_form
from symad.verification.proof.joined_axes import Groups, joined_alike, ungrouped
from symad.verification.rewriting.rewrite import expand_definitions


def prove_for_all_sizes(left: Node, right: Node, meter: Meter) -> tuple[bool, str]:
    """Whether two nodes are equal for all dimensions, and if it was not shown, why."""
    (a, first), (b, second) = map(ungrouped, expand_definitions([left, right]))
    networks = Networks(meter)
    try:
        forms: dict[Node, Form] = {}
        for node in topological([a, b]):
            meter.spend(NODE)
            forms[node] = index_form(node.op, node, tuple([forms[x] for x in node.args]), networks)
        if not joined_alike((a, first), (b, second)) and (networks.axes(forms[a]) or networks.axes(forms[b])):
            return False, "index notation: axes are joined in different ways"
        sides = [_in_order(forms[n], n, groups, networks) for n, groups in ((a, first), (b, second))]
        equal = networks.is_zero(networks.add([(Fraction(1), sides[0]), (Fraction(-1), sides[1])]))
    except OutOfBudget as problem:
        return False, f"index notation: {problem}"
    return equal, "" if equal else "the normal forms in index notation differ"


def _in_order(form: Form, node: Node, groups: Groups, networks: Networks) -> Form:
    """A form with its axes numbered as they were joined; those of length 1 have no index."""
    order = [k for group in groups for k in group]
    place = {k: position for position, k in enumerate(order)}
    return networks.permuted(form, [place.get(k, -1) for k in range(len(node.shape))])
