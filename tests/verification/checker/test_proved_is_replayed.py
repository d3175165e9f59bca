"""`proved` is said by the checker alone: whatever else calls sides equal makes them tested at most."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived, Proof
from symad.verification.budget import Budget
from symad.verification.checker.proofs import replay
from symad.verification.checker.terms import Refused
from symad.verification.proof import node_proofs, with_proofs

n = sp.symbols("n", integer=True, positive=True)
x, y = sp.symbols("x y", real=True)
A = sp.MatrixSymbol("A", n, n)


def without_proofs(monkeypatch):
    """A checker that accepts nothing."""

    def refuse(*_):
        raise Refused("nothing is accepted")

    for module in ("whole_proofs", "node_proofs", "with_proofs"):
        monkeypatch.setattr(f"symad.verification.proof.{module}.replay", refuse)
    node_proofs.proofs_of.cache_clear()  # what the checker has accepted before


CLAIMS = {
    "an expression": lambda: symad.equal(sp.sin(x) ** 2 + sp.cos(x) ** 2, 1),
    "a gradient": lambda: symad.verify(x**2 * y, x, gradient=2 * x * y),
    "all sizes": lambda: symad.verify(sp.Trace(A**3), A, gradient=3 * (A**2).T),
    "all derivatives": lambda: symad.check(sp.exp(x * y)),
    "one graph": lambda: symad.equal(sp.exp(x), sp.exp(x)),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_without_the_checker_nothing_is_proved(name, monkeypatch):
    assert CLAIMS[name]().checked
    without_proofs(monkeypatch)
    certificate = CLAIMS[name]()
    expected = "measured" if name == "all sizes" else "tested"
    assert certificate.status == expected and not certificate.entries_of("proved")
    assert not certificate.proofs


def test_one_node_is_itself_whatever_it_computes():
    factor = symad.trace(np.linalg.eigvalsh, [(3, 3)])
    certificate = symad.equal(factor, factor)
    assert certificate.status == "proved" and certificate.checked
    assert symad.Certificate.from_json(certificate.to_json()).recheck().checked


def test_two_nodes_are_not_one():
    """One node is itself, though the checker has no rule for what it computes; its derivative is not."""
    graphs = [symad.trace(f, [(3, 3)]) for f in (np.linalg.eigvalsh, lambda a: np.linalg.eigvalsh(a.T))]
    (u, v) = (graph.output_nodes for graph in graphs)
    whole = Derived(Derivative("value", u), u)
    node = whole.nodes.index(u[0])
    lemma = [[], [[1, [[0, []]]]]]
    same = Proof((0,), ((0, 0, 0),), ([["", [[node, node]]]], lemma), 0, "networks")
    assert replay([whole], same) > 0
    gradient = Derivative("gradient", u, graphs[0].input_nodes)
    for claim, proof in (
        (Derived(Derivative("value", u), v), same),
        (Derived(gradient, u), same),
        (whole, replace(same, steps=([["", [[0, 0]]]], lemma))),
        (whole, replace(same, steps=([], lemma))),
        (Derived(gradient, u), replace(same, steps=([["", [[node, node]]], ["X", []]], lemma))),
        (Derived(Derivative("value", u), u), replace(same, goals=((0, 1, 0),))),
    ):
        with pytest.raises(Refused):
            replay([claim], proof)


def test_an_entry_that_others_call_proved_is_undecided():
    certificate = symad.equal(sp.exp(x) * y, y * sp.exp(x))
    entry = replace(certificate.entries[0], checked=False, reason="")
    nothing = with_proofs.Replayed(certificate.comparisons, Budget())
    made = with_proofs.with_proofs(certificate, [[entry]], nothing)
    assert entry.status == "proved" and made.status == "undecided" and "replays" in made.entries[0].reason


@pytest.mark.thorough
def test_what_networks_do_not_state_has_a_reason_to_read():
    f = symad.trace(lambda A: np.log(np.diagonal(np.linalg.cholesky(A + A.T))).sum(), [(n, n)])
    right = symad.trace(lambda A: np.linalg.inv(A + A.T), [(n, n)])
    certificate = symad.verify(f, gradient=right, seed=1)
    assert certificate.status == "measured"
    assert any("no rule for all sizes" in reason for reason in certificate.unchecked)
    assert all(len(reason.split()) > 2 for reason in certificate.unchecked)
