"""Proofs node by node: forged plans are refused, and what is proved is true at numbers."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived, Proof
from symad.core.graph import Graph, Node
from symad.ops.arrays.softmax import softmax
from symad.ops.basic.arithmetic import Add, Mul, add, mul
from symad.ops.basic.contraction import diagonal_matrix, einsum, inner, sum_axes
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import Dimension, constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import POW
from symad.ops.elementwise.selection import Select, compare, select
from symad.verification.checker.defined import sure
from symad.verification.checker.proofs import ForAllSizes, replay
from symad.verification.checker.terms import Refused, Terms
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.node_sweeps import numbered
from tests.verification.checker.random_claims import (
    any_opened,
    dishonest_sweeps,
    forged,
    gaps,
    n,
    sample,
    variable,
    wrong_claim,
)

x, y, dx, dy = (input_node(sp.Symbol(name, real=True)) for name in ("x", "y", "dx", "dy"))
u, v, w, du, dw = (variable(name, (n,)) for name in ("u", "v", "w", "du", "dw"))
A = variable("A", (n, n))
ZERO, ONE, TWO = map(constant, range(3))


def times(*nodes):
    """A product as it is written."""
    return Node.of(Mul((1,) * len(nodes)), nodes)


def minus(a, b):
    """A difference as it is written."""
    return Node.of(Add((1, -1)), (a, b))


def gradient(f, by, *outputs):
    return Derived(Derivative("gradient", (f,), (by,)), outputs)


def pushed(f, by, along, *outputs):
    return Derived(Derivative("pushforward", (f,), (by,), (along,)), outputs)


# ---- nodes of pairs that have no value -----------------------------------------------------------------
#
# b = r (p q) with p = y − y and q = 1/p has a value nowhere. It is r if q is replaced by what it computes and
# p is not, and 0 if p is and q is not. A proof that may do both calls every derivative 0.

p = minus(y, y)
q = Node.of(Mul((-1,)), (p,))
root = apply(sp.sin, x)
square = times(root, root)
nowhere = times(TWO, root, p, q)  # claimed to be the cotangent 2 sin x of sin x
never = compare("<", ONE, ZERO)
bump = apply(sp.exp, x)
cosine = mul(apply(sp.cos, x), dx)
slope_of_bump = mul(bump, dx)
either = Node.of(Add((1, 1)), (slope_of_bump, times(minus(cosine, slope_of_bump), p, q)))
above = select(compare("<", ZERO, y), ONE, ZERO)  # 1 for y > 0; its inverse has no value for y < 0
inverse = Node.of(Mul((-1,)), (above,))
half_there = times(above, inverse, cosine)
once_more = times(above, half_there)
vector_p = minus(v, v)
vector_q = Node.of(Mul((-1,)), (vector_p,))
roots = apply(sp.sin, u)
vector_nowhere = times(TWO, roots, vector_p, vector_q)
hidden = Node.of(Select(), (never, nowhere, square))

# A softmax over one score is 1, and has no value where the score is −∞, which is no number to go on with.
score = select(compare("<", ZERO, y), y, constant(-float("inf")))
alone = reshape(softmax(reshape(score, (1,)), (0,)), ())
weighted = times(TWO, root, alone)

WITHOUT_VALUE = {  # a claim, its sweeps, and the nodes opened for each identity
    "in another output": (
        gradient(square, x, ZERO, nowhere),
        [("X", {root: nowhere}), ("", {p: q})], [[nowhere, q], [nowhere, p]],
    ),
    "of a jacobian": (
        Derived(Derivative("jacobian", (square,), (x,)), (ZERO, nowhere)),
        [("X", {root: nowhere}), ("", {p: q})], [[nowhere, q], [nowhere, p]],
    ),
    "in a branch of the function that is never taken": (
        gradient(hidden, x, ZERO), [("X", {root: nowhere}), ("", {p: q})], [[nowhere, q], [nowhere, p]],
    ),
    "in a branch of the output that is never taken": (
        gradient(square, x, Node.of(Select(), (never, nowhere, ZERO))),
        [("X", {root: nowhere}), ("", {p: q})], [[nowhere, q], [nowhere, p]],
    ),
    "forwards, one for two tangents": (
        pushed(minus(root, bump), x, dx, ZERO, either),
        [("v", {root: either, bump: either}), ("", {p: q})], [[either, q], [either, p, bump], []],
    ),
    "in another function": (
        Derived(Derivative("pushforward", (minus(root, bump), either), (x,), (dx,)), (ZERO, ZERO)),
        [("v", {root: either, bump: either}), ("", {p: q})], [[either, q], [either, p, bump], []],
    ),
    "on one side of a condition": (  # y > 0 has both values, y < 0 one only: sin x − [y > 0] sin x
        pushed(minus(root, mul(above, root)), x, dx, ZERO, once_more),
        [("v", {root: half_there, mul(above, root): once_more}), ("", {above: inverse})],
        [[half_there, inverse], [once_more], [half_there, once_more, above]],
    ),
    "for all sizes": (
        gradient(sum_axes(times(roots, roots), (0,)), u, minus(u, u), vector_nowhere),
        [("X", {roots: vector_nowhere}), ("", {vector_p: vector_q})],
        [[vector_nowhere, vector_q], [vector_nowhere, vector_p]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_VALUE)
def test_a_node_that_has_no_value_shows_nothing(name):
    claim, sweeps, opened = WITHOUT_VALUE[name]
    proof, _ = forged(claim, 0, sweeps, lambda k, _: [opened[k]])
    with pytest.raises(Refused):
        replay([claim], proof)


def test_a_score_that_may_be_minus_infinity_is_no_number_of_a_pair():
    """With the score as any number, the softmax is 1 and 2 sin x times it the cotangent of sin x."""
    claim = gradient(square, x, mul(weighted, apply(sp.cos, x)))
    with pytest.raises(Refused, match="a node of a pair may"):
        ForAllSizes(Terms()).lemmas(claim, [0], [("X", {root: weighted}), ("", {score: score})])


HALF = constant(Fraction(1, 2))
MATRIX = variable("M", (n, n))


def power(base, exponent):
    return Node.of(POW, (base, exponent))


def shown(node, shape=()):
    """Whether a root of a node is known to have a value wherever a claim that does not use it holds."""
    root = power(node, broadcast_to(HALF, shape) if shape else HALF)
    return root in sure(gradient(square, x, ZERO, root), [0])[0]


def test_what_has_a_value_for_all_arguments():
    """Integer powers do, roots do not, however their exponents are written; what is divided by is not 0."""
    odd_way = times(HALF, ONE)  # no small integer, though it is computed of positive numbers
    cube, root_of_y = power(y, constant(3)), power(y, odd_way)
    inverse = Node.of(Mul((-1,)), (Node.of(Dimension(n)),))
    maybe_empty = Node.of(Mul((-1,)), (Node.of(Dimension(n - 1)),))
    found = sure(gradient(square, x, ZERO, cube, root_of_y, inverse, maybe_empty), [0])[0]
    assert {cube, inverse} <= found
    assert found.isdisjoint({root_of_y, maybe_empty})


def test_roots_of_what_is_not_negative_have_values():
    squares, other = inner(w, w), inner(w, v)
    for node in (squares, times(y, y), add(squares, ONE), times(squares, HALF), Node.of(Dimension(n)),
                 Node.of(Mul((1, -1)), (squares, add(squares, ONE)))):  # fmt: skip
        assert shown(node)
    for node in (other, y, add(y, y), Node.of(Add((1, 1)), (y, y)), Node.of(Add((1, -1)), (squares, ONE)),
                 add(other, ONE), times(squares, y), times(constant(-2), squares), power(y, y),
                 einsum("ij,ji->", MATRIX, MATRIX), Node.of(Dimension(n - 2)),
                 Node.of(Mul((2, 1)), (y, y)), Node.of(Add((1, -2)), (squares, ONE))):  # fmt: skip
        assert not shown(node)


def test_what_is_divided_by_is_not_0():
    """1/Σ u² has no value where all u are 0, or where there are none; 1/(1 + Σ u²) has."""
    ones = sum_axes(broadcast_to(ONE, (n,)), (0,))
    for node, whole in ((add(inner(w, w), ONE), True), (inner(w, w), False), (ones, False)):
        made = Node.of(Mul((-1,)), (node,))
        assert (made in sure(gradient(square, x, ZERO, made), [0])[0]) is whole


def test_the_steps_of_such_a_proof_are_refused():
    """The same as data, which does not change with the checker: d (sin x)²/dx = 0."""
    steps = (
        [["X", [[1, 8]]], ["", [[6, 7]]]],
        [[8, 7], [[1, [[1, 0, []]]], [2, [[0, []]]]]],
        [[8, 6], [[1, [[1, 0, []]]], [3, []]]],
    )
    claim = gradient(square, x, ZERO, nowhere)
    assert [claim.nodes[k] for k in (1, 8, 6, 7)] == [root, nowhere, p, q]
    with pytest.raises(Refused):
        replay([claim], Proof((0,), ((0, 0, 0),), steps, 0, "networks"))


# ---- arrays that may be empty ---------------------------------------------------------------------------
#
# Σ 1/m over m = n − 1 positions is 1 for n > 1, and 0 for n = 1: there, nothing uses 1/m, which has no value.

length = Node.of(Dimension(n - 1))
each = broadcast_to(Node.of(Mul((-1,)), (length,)), (n - 1,))
almost_one = sum_axes(each, (0,))


def test_a_sum_of_quotients_over_nothing_is_0():
    undeclared = sp.Symbol("m", integer=True)
    for count, whole in ((n, True), (2 * n - 1, True), (n - 1, False), (undeclared, False)):
        size = Node.of(Dimension(count))
        parts = sum_axes(broadcast_to(Node.of(Mul((-1,)), (size,)), (count,)), (0,))
        claim = Derived(Derivative("value", (parts,)), (ONE,))
        proof, left = forged(claim, 0, [], lambda *_: [[]])
        assert bool(left) is not whole
        assert bool(find_for_all_sizes([claim], [(0, 0, 0)]).proofs) is whole
        if not whole:
            with pytest.raises(Refused):
                replay([claim], proof)
        sized = (variable("sized", (count,)),)
        status = symad.equal(Graph(sized, (parts,)), Graph(sized, (ONE,))).status
        assert status == ("proved" if whole else "refuted")  # at the size 0, where it is 0


def test_what_an_empty_sum_does_not_use_may_have_no_value():
    """The function and the output have values for n = 1 as well, where 1/m has none."""
    of_one = times(Node.of(Mul((-1,)), (length,)), length)
    wrong = times(TWO, root, of_one)
    f = add(square, mul(almost_one, y))
    claim = gradient(f, x, mul(times(TWO, root, almost_one), apply(sp.cos, x)), wrong)
    pairs, inverse = {root: wrong}, Node.of(Mul((-1,)), (length,))
    for opened in ([wrong], [wrong, inverse], [wrong, almost_one], [wrong, inverse, almost_one]):
        for plan in ([("X", pairs)], [("X", pairs), ("", {inverse: almost_one})]):
            proof, _ = forged(claim, 0, plan, lambda *_, opened=opened: [opened, []])
            with pytest.raises(Refused):
                replay([claim], proof)


# ---- pairs of nodes that are not derivatives -----------------------------------------------------------

a, b = apply(sp.sin, u), apply(sp.exp, u)
product = mul(a, b)
total = sum_axes(product, (0,))
wide = einsum("ij,j->i", A, a)
norm = inner(wide, wide)
bar = mul(TWO, wide)
turned = einsum("ij,j->i", A, bar)
right = einsum("ij,i->j", A, bar)
cos = apply(sp.cos, u)
dots = {a: mul(cos, du), b: mul(b, du)}
flat = broadcast_to(ONE, (n,))
both = add(mul(a, a), a)
weighted = add(*[mul(constant(k), sum_axes(c, (0,))) for k, c in ((2, a), (3, b))])

DISHONEST = {  # wrong claims; sweeps that may only be refused
    "the cotangent of another node": (gradient(total, u, add(mul(a, cos), mul(b, b))), [("X", {a: a, b: b})]),
    "twice the cotangent": (
        gradient(total, u, add(mul(mul(TWO, b), cos), mul(a, b))), [("X", {a: mul(TWO, b), b: a})],
    ),
    "one path only": (gradient(sum_axes(both, (0,)), u, mul(mul(TWO, a), cos)), [("X", {a: mul(TWO, a)})]),
    "a node is its own cotangent": (gradient(total, u, mul(product, cos)), [("X", {product: product, a: a})]),
    "a matrix that is not turned": (gradient(norm, u, mul(turned, cos)), [("X", {wide: bar, a: turned})]),
    "a sum for its elements": (
        gradient(norm, u, mul(broadcast_to(sum_axes(right, (0,)), (n,)), cos)),
        [("X", {wide: bar, a: broadcast_to(sum_axes(right, (0,)), (n,))})],
    ),
    "an input": (gradient(total, u, product), [("X", {u: product})]),
    "an output for a node": (gradient(total, u, b), [("X", {a: b})]),
    "the function": (gradient(total, u, mul(TWO, dots[b])), [("X", {total: TWO})]),
    "one for all": (gradient(total, u, mul(flat, cos)), [("X", {product: flat, a: flat, b: flat})]),
    "one of two weights": (
        gradient(weighted, u, mul(constant(5), b)),
        [("X", {a: mul(TWO, flat), b: mul(constant(5), flat)})],
    ),
    "without the product rule": (
        pushed(product, u, du, mul(dots[a], dots[b])), [("v", {**dots, product: mul(dots[a], dots[b])})],
    ),
    "a tangent for a cotangent": (
        Derived(Derivative("slope", (total,), (u,), (du,), ()), (inner(dots[a], du),)), [("V", {a: dots[a]})],
    ),
    "another direction": (
        pushed(product, u, du, mul(add(mul(a, b), mul(cos, b)), dw)),
        [("v", {a: mul(cos, dw), b: mul(b, dw)})],
    ),
    "the same derivative in both sweeps": (
        Derived(Derivative("curvature", (sum_axes(mul(a, a), (0,)),), (u,), (du,), (dw,)),
              (inner(mul(TWO, mul(a, cos), du), dw),)),
        [("v", {a: dots[a]}), ("w", {a: dots[a]})],
    ),
    "the index of an element of the function for that of a node": (
        Derived(Derivative("jacobian", (mul(a, a),), (u,)),
                (einsum("i,j->ij", flat, mul(TWO, mul(a, cos))),)),
        [("X", {a: mul(TWO, a)})],
    ),
    "a row for a column": (
        Derived(Derivative("jacobian", (mul(u, inner(u, v)),), (u,)),
              (add(einsum("i,j->ij", v, u), mul(diagonal_matrix(flat), inner(u, v))),)),
        [("X", {inner(u, v): inner(u, v)})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DISHONEST)
def test_pairs_that_are_no_derivatives_have_no_proof(name):
    """Whatever is opened: all sets of up to three nodes of the pairs, and opaque nodes besides."""
    claim, sweeps = DISHONEST[name]
    assert min(gaps(claim, size, 1)[0] for size in (2, 3)) > 1e-3
    cut = list(dict.fromkeys(c for _, pairs in sweeps for pair in pairs.items() for c in pair))
    claim = Derived(claim.derivative, (*claim.outputs, *cut))
    sets = [list(some) for k in range(4) for some in combinations(cut, k)]
    for extra in ({}, {c: c for c in claim.nodes if c.args}):
        plan = [*sweeps, ("", extra)]
        proof, left = forged(claim, 0, plan, lambda *_, extra=extra: [*sets, list(extra)])
        assert left
        with pytest.raises(Refused):
            replay([claim], proof)


def test_a_right_plan_with_one_lie_is_refused():
    """Each number of an honest proof changed: refused, or a proof of the same true claim."""
    outputs = (add(mul(mul(b, flat), cos), mul(mul(a, flat), b)),)
    claim, wrong = gradient(total, u, *outputs), gradient(total, u, mul(TWO, outputs[0]))
    (proof,) = find_for_all_sizes([claim], [(0, 0, 0)]).proofs
    assert replay([claim], proof)
    with pytest.raises(Refused):
        replay([wrong], proof)


def test_outputs_that_share_lemmas_are_shown_one_by_one():
    """A gradient by two inputs with one proof; a wrong part of it has none, alone or with the other."""
    f = sum_axes(mul(apply(sp.sin, u), apply(sp.exp, v)), (0,))
    by_u, by_v = mul(apply(sp.cos, u), apply(sp.exp, v)), mul(apply(sp.sin, u), apply(sp.exp, v))
    claim = Derived(Derivative("gradient", (f,), (u, v)), (by_u, by_v))
    goals = [(0, 0, 0), (0, 1, 0)]
    (proof,) = find_for_all_sizes([claim], goals).proofs
    assert proof.goals == tuple(goals) and any(pairs for _, pairs in proof.steps[0])
    for outputs in ((by_u, by_u), (mul(TWO, by_u), by_v), (by_v, by_u)):
        wrong = Derived(claim.derivative, outputs)
        with pytest.raises(Refused):
            replay([wrong], proof)
        right = [k for k in (0, 1) if outputs[k] is (by_u, by_v)[k]]
        assert [o for p in find_for_all_sizes([wrong], goals).proofs for _, o, _ in p.goals] == right
    for goals in (((0, 0, 0),), ((0, 1, 0),), ((0, 0, 0), (0, 2, 0)), ((0, 0, 0), (0, -1, 0))):
        with pytest.raises(Refused):
            replay([claim], replace(proof, goals=goals))


# ---- malformed plans -----------------------------------------------------------------------------------

HONEST = gradient(total, u, add(mul(b, cos), mul(a, b)))
MALFORMED = [
    None, 5, "X", [None], [[]], [["X"]], [["X", None]], [["X", [1]]], [["X", [[1]]]],
    [["X", [[1, 2, 3]]]], [["X", [[0, 10**9]]]], [["X", [[0.5, 1]]]], [["X", [["0", "1"]]]],
    [["X", [[None, None]]]], [["X", {"1": 2}]],
    [["x", []]], [["V", []]], [["W", []]], [["Vv", []]], [["vw", []]], [["XX", []]], [["X", []], ["X", []]],
    [["X", []], ["v", []]], [[5, []]], [[["X"], []]], [[{}, []], ["X", []], ["X", []]], [["X", []], 3],
    [["Ⅹ", []]], [["ß", []]], [["X", [[1, 1]] * 3]], [["X", [[-1, -2]]]], [["X", [[True, False]]]],
]  # fmt: skip


@pytest.mark.parametrize("plan", MALFORMED, ids=repr)
def test_a_malformed_plan_is_refused(plan):
    empty = [[], []]
    for parts in ([], [empty], [empty] * 2, [[[0], [[1, None]]]], [[[-99], []]], [[[], [[[], 1]]]], [5]):
        with pytest.raises(Refused):
            replay([HONEST], Proof((0,), ((0, 0, 0),), (plan, *parts), 0, "networks"))


def test_a_sweep_must_be_there():
    bend = Derived(Derivative("curvature", (total,), (u,), (du,), (dw,)), (inner(du, dw),))
    for letters in ("v", "V", "w", "W", "vv", "VV", "vV", "vwV", "X", "vX", "vwX"):
        with pytest.raises(Refused):
            replay([bend], Proof((0,), ((0, 0, 0),), ([[s, []] for s in letters], [[], []]), 0, "networks"))


@pytest.mark.thorough
def test_long_plans_are_refused_in_time():
    chain = [x, apply(sp.sin, x)]
    for _ in range(22):  # written out, as many products as Fibonacci numbers
        chain.append(times(chain[-1], apply(sp.sin, chain[-2])))
    claim = pushed(chain[-1], x, dx, mul(chain[-1], dx))
    opaque = [("", {c: c for c in chain[1:]}), ("v", {})]
    started = time.perf_counter()
    for plan in (numbered(claim, opaque), [["", [[0, 0]] * 200_000], ["v", []]], [["", []]] * 200_000):
        with pytest.raises(Refused):
            replay([claim], Proof((0,), ((0, 0, 0),), (plan, [[], []]), 0, "networks"))
    assert time.perf_counter() - started < 30


# ---- random functions ----------------------------------------------------------------------------------


def proved(claim):
    """The outputs of a claim that are proved, and how many of them node by node."""
    goals = [(0, o, 0) for o in range(len(claim.outputs))]
    proofs = find_for_all_sizes([claim], goals).proofs
    nodes = sum(any(pairs for _, pairs in proof.steps[0]) for proof in proofs)
    return sorted({o for proof in proofs for _, o, _ in proof.goals}), nodes


def search(seeds):
    """Right claims and dishonest proofs of wrong ones: how many are proved, node by node, and accepted."""
    true = nodes = wrong = accepted = 0
    for seed in seeds:
        rng, claim = sample(seed)
        if claim is None:
            continue
        outputs, some = proved(claim)
        true, nodes = true + len(outputs), nodes + some
        for o in outputs:
            assert gaps(claim, 2, seed)[o] < 1e-4, f"a proof of what is not so: {seed}"
        for _ in range(3):
            if (changed := wrong_claim(rng, claim)) is None:
                continue
            sweeps = dishonest_sweeps(rng, claim, *changed)
            all_outputs = list(range(len(claim.outputs)))
            for some in [*([o] for o in all_outputs), all_outputs]:  # and all with the same lemmas
                proof, left = forged(changed[0], some, sweeps, any_opened(rng, sweeps))
                wrong += 1
                try:
                    replay([changed[0]], proof)
                except Refused:
                    continue
                accepted += 1
                assert not left
                worst = [max(gaps(changed[0], size, seed)[o] for o in some) for size in (2, 3)]
                assert max(worst) < 1e-4, seed
    return true, nodes, wrong, accepted


@pytest.mark.thorough
def test_random_functions():
    """What is accepted is true: a changed node may be in another output, or of no consequence."""
    true, nodes, wrong, accepted = search(range(60))
    assert true > 40 and nodes > 10 and wrong > 100 and accepted < wrong / 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3500, 500))  # some two minutes each
def test_many_random_functions(first):
    true, nodes, wrong, _ = search(range(first, first + 500))
    assert true > 400 and nodes > 100 and wrong > 1000
