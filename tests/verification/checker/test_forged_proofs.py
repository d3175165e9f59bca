"""Proofs forged with knowledge of the checker: each is refused, in a short time."""

from __future__ import annotations

import pytest
import sympy as sp

from symad.core.claims import Derivative, Derived, Proof
from symad.core.graph import Graph, Node
from symad.errors import ShapeError
from symad.ops.basic.arithmetic import Add, Mul, add, mul, sub
from symad.ops.basic.contraction import sum_axes
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Logic, Select, compare, select
from symad.tracing import as_graph
from symad.verification.certificate.certificate import Comparison
from symad.verification.checker.proofs import ForAllSizes, replay, written
from symad.verification.checker.quotients import Generator, Quotients
from symad.verification.checker.terms import Refused, Terms
from symad.verification.proof.find_isomorphism import IsomorphismFinder
from symad.verification.proof.find_proof import Limits
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.whole_proofs import find
from symad.verification.recheck import _own_derivative
from symad.verification.users import with_inputs_of

x, y = sp.symbols("x y", real=True)
p, q = sp.symbols("p q", positive=True)
n = sp.Symbol("n", integer=True, positive=True)
LIMITS = Limits(100_000, 2000)
GOAL = (0, 0, 0)


def claim_of(left, right):
    """That two SymPy expressions are equal."""
    a = as_graph(left)
    b = with_inputs_of(a, as_graph(right))
    return Derived(Derivative("value", a.output_nodes), b.output_nodes)


def equal_nodes(left, right):
    return Derived(Derivative("value", (left,)), (right,))


def number_of(claim, kind, data=None):
    """The number of the first term of this kind."""
    writing, _ = written([claim], (0,))
    return next(t.index for t in writing.terms.known.values() if t.kind == kind and data in (None, t.data))


def refused(claim, *steps, way="elements"):
    steps = ((), ((), steps)) if way == "networks" else steps
    with pytest.raises(Refused) as why:
        replay([claim], Proof((0,), (GOAL,), steps, 0, way))
    return str(why.value)


def generator(k, times=1, scale=1):
    """A power of a generator, divided by a number, as proofs write it."""
    return [[[1, [k] * times]], scale, []]


FORGED_PARTS = {
    "√(x² p) = x √p": (
        sp.Pow(x**2 * p, sp.Rational(1, 2), evaluate=False), x * sp.sqrt(p), "power", "factors",
        [[2, generator(0)]],
    ),
    "√(xy) = √x √y": (
        sp.sqrt(x * y), sp.sqrt(x) * sp.sqrt(y), "power", "factors", [[1, generator(0)], [1, generator(1)]],
    ),
    "log(x²) = 2 log x": (sp.log(x**2), 2 * sp.log(x), "call", "factors", [[2, generator(0)]]),
    "log(xy) = log x + log y": (
        sp.log(x * y), sp.log(x) + sp.log(y), "call", "factors", [[1, generator(0)], [1, generator(1)]],
    ),
    "another argument": (sp.exp(x), sp.exp(2 * x), "call", "sum", [[1, generator(0, scale=2)]]),
    "half a multiple": (sp.exp(x), sp.exp(x / 2), "call", "sum", [[0.5, generator(0)]]),
    "a generator that is not there": (sp.exp(x), x, "call", "sum", [[1, generator(7)], [0, generator(0)]]),
    "divided by 0": (sp.exp(x), x, "call", "sum", [[1, [[[1, [0]]], 1, [[[], 1]]]]]),
    "divided by what may be 0": (sp.exp(x), x, "call", "sum", [[1, [[[1, [0, 0]]], 1, [[[[1, [0]]], 1]]]]]),
    "a negative scale": (sp.exp(x), sp.exp(-x), "call", "sum", [[1, generator(0, scale=-1)]]),
    "a scale of 0": (sp.exp(x), x, "call", "sum", [[1, generator(0, scale=0)]]),
    "a coefficient of 0": (sp.exp(x), x, "call", "sum", [[1, [[[0, [0]]], 1, []]]]),
    "not a number": (sp.exp(x), x, "call", "sum", [[1, [[[float("nan"), [0]]], 1, []]]]),
    "infinite": (sp.exp(x), x, "call", "sum", [[float("inf"), generator(0)]]),
    "a huge multiple": (sp.sin(x), x, "call", "sum", [[10**18, generator(0, scale=10**18)]]),
    "a huge exponent": (sp.log(p), x, "call", "factors", [[10**18, generator(0)]]),
    "a long number": (sp.exp(x), x, "call", "sum", [[1, [[[1 << 10**6, [0]]], 1 << 10**6, []]]]),
    "a product for a sum": (sp.exp(x * y), x, "call", "sum", [[1, generator(0)], [1, generator(1)]]),
    "a rule for something else": (sp.atan(x), x, "call", "sum", [[1, generator(0)]]),
    "no rule": (sp.exp(x), x, "call", "refine", [[1, generator(0)]]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED_PARTS)
def test_a_step_that_lies_is_refused(name):
    left, right, kind, rule, data = FORGED_PARTS[name]
    claim = claim_of(left, right)
    refused(claim, [number_of(claim, kind), rule, data])


def test_parts_have_values_where_the_argument_has() -> None:
    """r² = x for r = √x does not make |x| = x for x < 0, where a branch or another element has √x."""
    root = sp.Piecewise((sp.sqrt(x), x > 0), (0, True))
    branch = claim_of(root + sp.Abs(x), root + x)
    step = [number_of(branch, "call", "abs"), "factors", [[2, generator(2)]]]
    assert "may have no value" in refused(branch, step)
    r = sp.sqrt(x)
    beside = claim_of(sp.Matrix([r * (x + 1), sp.Abs(x)]), sp.Matrix([r * x + r, x]))
    step = [number_of(beside, "call", "abs"), "factors", [[2, generator(1)]]]
    with pytest.raises(Refused, match="may have no value"):
        replay([beside], Proof((0,), ((0, 0, 0), (0, 0, 1)), (step,), 0))


def test_exp_of_a_logarithm_keeps_its_number():
    """exp(2 log(x/2)) is x²/4, and not x²."""
    claim = claim_of(sp.exp(2 * sp.log(x / 2, evaluate=False), evaluate=False), x**2)
    log = number_of(claim, "call", "log")
    exp = number_of(claim, "call", "exp")
    half = [log, "factors", [[1, generator(0, scale=2)]]]
    for k in (1, 2):  # the logarithm is the second generator
        refused(claim, half, [exp, "sum", [[2, generator(k)]]])
    assert not find([claim], [GOAL], LIMITS).proofs


def test_a_definition_is_refused_where_it_does_not_hold():
    k = sp.Symbol("k", integer=True)
    for left, right, name in [
        (sp.sign(sp.Max(x, 0)) ** 2, sp.Integer(1) + 0 * x, "sign"),
        (sp.sign(k) ** 2, sp.Integer(1) + 0 * k, "sign"),
        (sp.Piecewise((1 / x, x > 0), (5, True)), sp.Piecewise((1 / x, x > 0), (7, True)), "select"),
        (sp.Pow(x, y), sp.exp(y * sp.log(x)), "pow"),
    ]:
        claim = claim_of(left, right)
        refused(claim, [number_of(claim, "call", name), "define", None])


def test_a_condition_that_is_a_number_is_not_taken_for_a_truth_value():
    a, b, c = (input_node(s) for s in sp.symbols("a b c", real=True))
    chosen = Node.of(Select(), (c, a, b))  # a wherever c is not 0
    claim = equal_nodes(chosen, add(b, mul(c, sub(a, b))))
    assert "not 0 or 1" in refused(claim, [number_of(claim, "call", "select"), "define", None])
    assert not find([claim], [GOAL], LIMITS).proofs
    for kind in ("not", "or", "and"):
        node = Node.of(Logic(kind), (a,) if kind == "not" else (a, b))
        assert "is of comparisons" in refused(equal_nodes(node, sub(constant(1), a)))


def test_infinity_is_no_number():
    a, hidden = input_node(x), constant(float("-inf"))
    for left, right in [
        (Node.of(Add((1, -1)), (hidden, hidden)), constant(0)),
        (Node.of(Mul((1, 1)), (constant(0), hidden)), constant(0)),
        (Node.of(Pow(), (hidden, constant(2))), hidden),
        (select(compare("<", a, constant(0)), hidden, a), a),
        (compare("==", apply(sp.exp, select(compare("<", a, constant(0)), hidden, a)), constant(0)), a),
    ]:  # fmt: skip
        assert not find([equal_nodes(left, right)], [GOAL], LIMITS).proofs
    for value in (float("nan"), float("inf"), sp.zoo, sp.nan, sp.oo):
        made = constant(value) if isinstance(value, float) else None
        if made is not None:
            assert not find([equal_nodes(mul(a, made), mul(constant(2), a, made))], [GOAL], LIMITS).proofs


def test_other_shapes_are_other_claims():
    a = input_node(sp.MatrixSymbol("A", 2, 3), (2, 3))
    assert "shapes" in refused(equal_nodes(a, reshape(a, (3, 2))))
    assert "shapes" in refused(equal_nodes(a, reshape(a, (6,))))
    u = input_node(sp.MatrixSymbol("u", n, 1), (n,))
    whole = sum_axes(u, (0,))
    one_each = apply(sp.exp, sub(u, u))
    for claim in (
        Derived(Derivative("value", (constant(1),)), (one_each,)),
        Derived(Derivative("gradient", (mul(u, whole),), (u,)), (u,)),  # of a vector
        Derived(Derivative("gradient", (whole,), (u,)), (constant(1),)),  # of another shape
    ):
        refused(claim, way="networks")
        assert not find_for_all_sizes([claim], [GOAL]).proofs


def test_directions_belong_to_their_kinds():
    a = input_node(x)
    for kind, extra in [
        ("gradient", {"v": (a,)}),
        ("value", {"w": (a,)}),
        ("pushforward", {}),
        ("curvature", {"v": (a,)}),
    ]:
        refused(Derived(Derivative(kind, (mul(a, a),), (a,), **extra), (a,)))
    refused(Derived(Derivative("integral", (a,), (a,)), (a,)))


def test_directions_do_not_depend_on_what_the_derivative_is_by():
    """Differentiated with the function, v = x makes 2 x² w of x² where x w v is 2 w v for all v."""
    a, b, c = (input_node(sp.Symbol(name, real=True)) for name in "abc")
    square, twice = mul(a, a), mul(constant(2), a)
    for kind, v, w, wrong in [
        ("curvature", (a,), (b,), mul(constant(2), b, twice)),  # right for v = a is 2 a b
        ("curvature", (b,), (a,), mul(constant(2), b, a)),
        ("slope", (b,), (a,), mul(b, add(square, mul(twice, a)))),  # w = a, and is differentiated as well
        ("pullback", (), (a,), add(square, mul(twice, a))),
        ("curvature", (mul(a, c),), (b,), mul(b, add(mul(twice, c), mul(constant(2), a, c)))),
    ]:
        claim = Derived(Derivative(kind, (square,), (a,), v, w), (wrong,))
        assert "depend on its inputs" in refused(claim)
        comparison = Comparison("forged", Graph((), (wrong,)), ("f",), (), claim.derivative,
                                right=Graph((a, b, c), (wrong,)))  # fmt: skip
        with pytest.raises(ShapeError, match="depend on what it is by"):
            _own_derivative(comparison)
    honest = Derived(Derivative("curvature", (square,), (a,), (b,), (c,)), (mul(constant(2), b, c),))
    assert replay([honest], Proof((0,), (GOAL,), (), 0, "elements")) is not None


def test_goals_must_be_there():
    claim = claim_of(x, x)
    for goal in [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, 1), (5, 0, 0), (0.5, 0, 0), ("a", 0, 0)]:
        for way in ("elements", "networks"):
            if goal == (0, 0, 1) and way == "networks":
                continue  # one goal stands for all elements
            if goal == (0, 0, -1) and way == "networks":
                continue
            with pytest.raises(Refused):
                replay([claim], Proof((0,), (goal,), ((), ((), ())) if way == "networks" else (), 0, way))


# ---- for all sizes ------------------------------------------------------------------------------------


def vectors():
    return [input_node(sp.MatrixSymbol(name, n, 1), (n,)) for name in "uvw"]


def questions(claim):
    """What the machine for all sizes asks about a claim, and what an honest finder answers."""
    finder = IsomorphismFinder()
    ((left, right),) = ForAllSizes(Terms()).lemmas(claim, [0], ()).values()
    finder.equal(left, right)
    return finder.count, [list(step) for step in finder.found]


def test_a_network_is_not_merged_with_itself():
    u, v, _ = vectors()
    one, other = sum_axes(mul(u, u), (0,)), sum_axes(v, (0,))
    claim = equal_nodes(add(one, other), add(mul(constant(2), one), other))
    count, honest = questions(claim)
    assert honest == [] or not find_for_all_sizes([claim], [GOAL]).proofs
    for i, j in [(-2, 0), (0, -2), (0, 0), (-1, 1), (1, 1), (1, 0)]:
        for names in ([], [[40_000, 40_000]], [[40_001, 40_001]], [[40_000, 40_001]], [[40_001, 40_000]]):
            for number in range(1, count + 1):
                step = [number, [[i, j, names]]]
                with pytest.raises(Refused):
                    replay([claim], Proof((0,), (GOAL,), ((), ((), (step, *honest))), 0, "networks"))


def test_two_functions_are_not_made_one():
    u, v, _ = vectors()
    claim = equal_nodes(
        add(sum_axes(apply(sp.sin, u), (0,)), sum_axes(apply(sp.sin, v), (0,))),
        mul(constant(2), sum_axes(apply(sp.sin, u), (0,))),
    )
    count, honest = questions(claim)
    for atom in (-1, 0, 1, 2, True, 0.0):
        for number in range(1, count + 1):
            step = [number, [atom, [0], [[[0, []]]]]]
            with pytest.raises(Refused):
                replay([claim], Proof((0,), (GOAL,), ((), ((), (step, *honest))), 0, "networks"))


def test_indices_are_not_captured():
    """Σ_i a_i Σ_j b_j is not Σ_i a_i b_i, and Σ (x² + 1)^(3/2) keeps its index under the root."""
    u, v, _ = vectors()
    product = mul(sum_axes(u, (0,)), sum_axes(v, (0,)))
    assert not find_for_all_sizes([equal_nodes(product, sum_axes(mul(u, v), (0,)))], [GOAL]).proofs
    root = power(add(mul(u, u), constant(1)), constant(sp.Rational(1, 2)))
    whole = power(add(mul(u, u), constant(1)), constant(sp.Rational(3, 2)))
    square = add(mul(u, u), constant(1))
    claim = equal_nodes(sum_axes(whole, (0,)), sum_axes(mul(square, root), (0,)))
    assert find_for_all_sizes([claim], [GOAL]).proofs
    false = equal_nodes(sum_axes(whole, (0,)), mul(sum_axes(square, (0,)), sum_axes(root, (0,))))
    assert not find_for_all_sizes([false], [GOAL]).proofs


def test_an_integer_may_be_zero():
    """[k² = 0] is 1 for the integer k = 0, which no open set of reals holds."""
    k = input_node(sp.Symbol("k", integer=True))
    u, *_ = vectors()
    is_zero = select(compare("==", mul(k, k), constant(0)), constant(1), constant(0))
    claim = equal_nodes(mul(is_zero, sum_axes(u, (0,))), mul(constant(0), sum_axes(u, (0,))))
    assert not find_for_all_sizes([claim], [GOAL]).proofs


# ---- bounded time and memory --------------------------------------------------------------------------


@pytest.mark.thorough
def test_huge_numbers_and_powers_are_refused_before_they_are_computed():
    a = input_node(x)
    tower = add(a, constant(3))
    number = constant(3)
    for _ in range(60):
        tower, number = mul(tower, tower), Node.of(mul(a, a).op, (number, number))
    for node in (
        tower,
        number,
        Node.of(Pow(), (constant(3), constant(10**12))),
        Node.of(Pow(), (a, constant(10**9))),
    ):
        assert not find([equal_nodes(node, constant(0))], [GOAL], LIMITS).proofs
        u, *_ = vectors()
        general = mul(node, sum_axes(u, (0,)))
        assert not find_for_all_sizes([equal_nodes(general, constant(0))], [GOAL]).proofs


def test_sizes_that_overflow_are_refused():
    a = input_node(sp.MatrixSymbol("A", 2**32, 2**32), (2**32, 2**32))
    assert "4096 elements" in refused(equal_nodes(a, a))


@pytest.mark.thorough
def test_deep_graphs_are_refused_or_decided():
    u, *_ = vectors()
    deep = u
    for _ in range(3000):
        deep = apply(sp.sin, deep)
    refused(equal_nodes(sum_axes(deep, (0,)), constant(0)), way="networks")
    a = input_node(x)
    for _ in range(3000):
        a = add(apply(sp.sin, a), a)
    refused(equal_nodes(a, constant(0)))


def test_damaged_steps_are_refused():
    claim = claim_of(sp.exp(x), x)
    nested: list = []
    for _ in range(5000):
        nested = [nested]
    for step in (
        [],
        [1],
        [1, "sum"],
        [1, "sum", nested],
        [None, "sum", []],
        [{}, "sum", []],
        ["1", "sum", []],
        7,
        None,
    ):
        refused(claim, step)
        refused(claim, step, way="networks")
    refused(claim, [number_of(claim, "call"), "name", None])
    assert "used nowhere" in refused(claim_of(x, x), [77, "define", None])


def test_true_claims_pass_by_the_same_way():
    """The forgeries fail for what is wrong with them, not for their form."""
    a = input_node(x)
    half = apply(sp.exp, mul(constant(sp.Rational(1, 2)), a))
    claim = equal_nodes(apply(sp.exp, a), mul(half, half))
    writing, _ = written([claim], (0,))
    whole = next(
        t.index for t in writing.terms.known.values() if t.data == "exp" and t.args[0].kind == "variable"
    )
    good = [whole, "sum", [[2, generator(0, scale=2)]]]
    assert replay([claim], Proof((0,), (GOAL,), (good,))) > 0
    refused(claim, [whole, "sum", [[2, generator(0, scale=3)]]])
    refused(claim)


def test_a_relation_that_comes_later_reduces_what_was_irreducible() -> None:
    field = Quotients()
    generators = [field.generator(Generator(1, "", False, {})) for _ in range(2)]
    (cosine,), (sine,) = (next(iter(g.over)) for g in generators)
    square = {(sine, sine): 1}
    assert field.reduced(square) == square
    field.relations[sine] = (2, {(): 1, (cosine, cosine): -1})
    assert field.reduced(square) == {(): 1, (cosine, cosine): -1}
