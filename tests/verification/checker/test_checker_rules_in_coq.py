"""Every scalar rule of the checker names its lemma in Coq and the side condition, or why it has no lemma."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from symad.verification.checker import terms as functions
from symad.verification.coq.terms import WITHOUT_LEMMA
from tests.verification.checker.rules_in_coq import DEFINITIONS, DERIVATIVES, NOT_IN_COQ, RELATIONS


def statements(name):
    """What the lemmas of a file state, by name."""
    text = files("symad.verification.coq").joinpath(name).read_text("utf-8")
    binders = r"(?:\s+(?:\w+|\([^)]*\)))*"
    found = re.findall(rf"^Lemma (\w+){binders}\s*:\s(.*?)\.\nProof", text, re.MULTILINE | re.DOTALL)
    return {lemma: " ".join(claim.split()) for lemma, claim in found}


FUNCTIONS, RULES = statements("SymadFunctions.v"), statements("SymadRelations.v")


def test_the_tables_are_those_of_the_checker():
    slopes = set(functions.DERIVATIVES)
    assert set(DERIVATIVES) <= slopes
    assert slopes - set(DERIVATIVES) <= set(NOT_IN_COQ)
    defined = set(functions.ALWAYS) | set(functions.DEFINITIONS)
    assert set(DEFINITIONS) <= defined
    assert defined - set(DEFINITIONS) <= set(NOT_IN_COQ)
    assert set(NOT_IN_COQ) <= (slopes - set(DERIVATIVES)) | (defined - set(DEFINITIONS))
    assert {"gamma", "loggamma", "polygamma", "digamma"} <= set(WITHOUT_LEMMA)


@pytest.mark.parametrize(
    ("table", "file"), [(DERIVATIVES, FUNCTIONS), (DEFINITIONS, RULES), (RELATIONS, RULES)]
)
def test_each_rule_names_a_lemma_with_its_side_condition(table, file):
    for rule, (lemma, condition) in table.items():
        assert lemma in file, f"{rule}: there is no lemma {lemma}"
        claim = file[lemma]
        assert claim.startswith(f"{condition} ->") if condition else "->" not in claim, (rule, claim)


def test_definitions_have_the_side_conditions_that_the_checker_asks_for():
    """At 0 a sign is something else; a power needs a positive base; a condition is 0 or 1."""
    for name in ("sign", "less", "equal"):
        assert DEFINITIONS[name][1].endswith("<> 0")
    assert DEFINITIONS["pow"][1] == "0 < a" and DEFINITIONS["select"][1] == "c * c = c"
    signed = {rule: condition for rule, (_, condition) in RELATIONS.items() if rule.startswith("factors")}
    assert all("0 <" in signed[rule] for rule in signed if "log(" in rule or "v) = √" in rule)
