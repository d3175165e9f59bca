"""A rule that is forgotten weakens certificates: without any one row or rule, no wrong claim is certified.

Facts of functions, rules of the identity test, rules of its basis and tactics are taken away, one at a time.
The claims are wrong on a region, or right twins of such claims (tests/pairs/mechanisms).
"""

from dataclasses import replace
from typing import get_args

import pytest

from symad.core.graph import Node, Op
from symad.facts.functions import FACTS, NOTHING
from symad.verification import tactics
from symad.verification.budget import Unsupported
from symad.verification.random_fields import linear_algebra, residues
from symad.verification.rewriting import rewrite
from tests.pairs.generate import Tally, pairs

FIELDS = ("limits", "above", "size_above", "size_below", "ends", "none_at", "monotone", "pole_at_zero",
          "total", "sign")  # fmt: skip


def _ops(*modules):
    """The ops that have a rule of their own in some modules."""
    said = [f.__annotations__["op"] for m in modules for f in vars(m).values()
            if "op" in getattr(f, "__annotations__", {}) and "y" in f.__annotations__]  # fmt: skip
    found = {op for each in said for op in (get_args(each) or [each]) if isinstance(op, type)}
    return sorted((op for op in found if op is not Op), key=lambda op: op.__name__)


def _without_fact(head, name):
    return lambda patch: patch.setitem(FACTS, head, replace(FACTS[head], **{name: getattr(NOTHING, name)}))


def _without_residue(op):
    value = residues.Run.value

    def refused(self, node, arguments):
        if isinstance(node.op, op):
            raise Unsupported(f"no rule for {op.__name__}")
        return value(self, node, arguments)

    return lambda patch: patch.setattr(residues.Run, "value", refused)


def _without_basis(op):
    known = rewrite.in_basis

    def kept(own, y, args, basis):
        if isinstance(own, op):
            return y if args == y.args else Node.of(own, args)
        return known(own, y, args, basis)

    return lambda patch: patch.setattr(rewrite, "in_basis", kept)


def _without_tactic(tactic):
    rest = tuple(t for t in tactics.TACTICS if t is not tactic)

    return lambda patch: patch.setattr("symad.verification.decide.TACTICS", rest)


DELETIONS = {
    **{f"{name}: {head.__name__}": _without_fact(head, name)
       for head, row in FACTS.items() for name in FIELDS
       if getattr(row, name) != getattr(NOTHING, name)},
    **{f"residues: {op.__name__}": _without_residue(op) for op in _ops(linear_algebra, residues)},
    **{f"basis: {op.__name__}": _without_basis(op) for op in _ops(rewrite)},
    **{f"tactic: {tactic.__name__}": _without_tactic(tactic) for tactic in tactics.TACTICS},
}  # fmt: skip
CLAIMS = 5


def _judged(number, count):
    tally = Tally()
    for k, pair in enumerate(pairs(count, 1000 + number, ("mechanisms",))):
        tally.judge(pair, k)
    return tally


@pytest.mark.thorough
@pytest.mark.parametrize("name", DELETIONS)
def test_without_a_rule_no_wrong_claim_is_certified(name, monkeypatch):
    DELETIONS[name](monkeypatch)
    tally = _judged(list(DELETIONS).index(name), CLAIMS)
    assert not tally.false_certificates
    assert not tally.false_refutations
    assert not tally.crashes


def test_rules_of_all_kinds_are_taken_away():
    kinds = {name.split(":")[0] for name in DELETIONS}
    assert kinds == {*FIELDS, "residues", "basis", "tactic"} and len(DELETIONS) > 100
