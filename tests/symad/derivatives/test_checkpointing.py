"""Checkpointing: plans against a search over all plans, gradients against the whole chain."""

from functools import cache

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symad
from symad import functions
from symad.derivatives.memory_plans import chain_gradient, draw_plans, memory_plan
from symad.errors import DerivativeError, EvaluationError
from symad.numeric import lower
from symad.transforms.chain_plans import (
    POLICIES,
    Advance,
    Drop,
    Keep,
    Reverse,
    make_plan,
)

h, x, a, b = sympy.symbols("h x a b", real=True)


@cache
def fewest(length, free):
    """By trying every place of the next kept state: slow and literal."""
    if length <= 1:
        return 0
    if not free:
        return length * (length - 1) // 2
    return min(m + fewest(length - m, free - 1) + fewest(m, free) for m in range(1, length))


@pytest.mark.parametrize("free", range(6))
def test_binomial_plans_run_the_fewest_steps(free):
    for length in range(1, 50):
        plan = make_plan(length, "binomial", free + 1)
        assert plan.evaluations == fewest(length, free)


plans = st.builds(
    make_plan, st.integers(0, 60), st.sampled_from(POLICIES), st.one_of(st.none(), st.integers(1, 9))
)


@pytest.mark.thorough
@given(plans)
def test_plans_reverse_every_step_once_from_states_that_are_there(plan):
    kept, latest, reversed_ = {0}, 0, []
    for action in plan.actions:
        if isinstance(action, Advance):
            assert action.start in kept or action.start == latest
            assert action.start < action.stop
            latest = action.stop
        elif isinstance(action, Keep):
            assert action.at == latest
            kept.add(action.at)
        elif isinstance(action, Drop):
            kept.remove(action.at)
        else:
            assert isinstance(action, Reverse)
            assert action.at in kept or action.at == latest
            reversed_.append(action.at)
    assert reversed_ == list(reversed(range(plan.length)))
    assert kept == {0}


@pytest.mark.thorough
def test_what_policies_cost():
    every, all_, none = (make_plan(10_000, p) for p in ("every", "all", "none"))
    assert (all_.peak, all_.recomputations) == (10_000, 0)
    assert (none.peak, none.evaluations) == (1, 10_000 * 9_999 // 2)
    assert every.peak == 2 * 100 - 1
    assert every.recomputations <= 10_000
    binomial = make_plan(10_000)
    assert binomial.peak <= 2 * 14
    assert binomial.evaluations < 4 * 10_000
    assert make_plan(10_000, keep=5).peak == 5


def test_the_memory_curve_rises_and_falls():
    curve = make_plan(50, "all").live
    assert curve[0] == 1 and max(curve) == 50 and curve[-1] == 1
    assert "at most 50 states kept, 0 steps run again" in str(make_plan(50, "all"))


def loop(length):
    """The recurrence of the tests, unrolled: h ← sin(a h + x_k) + b."""
    inputs = sympy.symbols(f"x0:{length}", real=True)
    state = h
    for moving in inputs:
        state = sympy.sin(a * state + moving) + b
    return symad.value_and_gradient(symad.trace(state**2 / 2, inputs=[h, *inputs, a, b]))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("compiled", [None, lower])
def test_every_policy_gives_the_gradient_of_the_whole_chain(policy, compiled):
    length = 17
    step = symad.trace(sympy.sin(a * h + x) + b, inputs=[h, x, a, b])
    run = chain_gradient(step, h**2 / 2, length, policy, sequences=1, compiled=compiled)
    xs = np.random.default_rng(0).normal(size=length)
    value, h_bar, x_bars, a_bar, b_bar = run(0.3, xs, 1.1, -0.2)
    expected = loop(length)(0.3, *xs, 1.1, -0.2)
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose([h_bar, *x_bars, a_bar, b_bar], expected[1:], rtol=1e-11, atol=1e-16)


def test_states_and_parameters_may_be_arrays():
    n = 3
    state, weights = sympy.MatrixSymbol("s", n, 1), sympy.MatrixSymbol("W", n, n)
    step = symad.trace((weights * state).applyfunc(sympy.tanh), inputs=[state, weights])
    loss = symad.trace(sympy.Trace(state.T * state), inputs=[state])
    rng = np.random.default_rng(1)
    start, w = rng.normal(size=(n, 1)), rng.normal(size=(n, n))
    whole = state
    for _ in range(5):
        whole = (weights * whole).applyfunc(sympy.tanh)
    expected = symad.value_and_gradient(symad.trace(sympy.Trace(whole.T * whole), inputs=[state, weights]))(
        start, w
    )
    for part, other in zip(chain_gradient(step, loss, 5)(start, w), expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("policy", "keep"), [("binomial", 4), ("every", 5), ("none", None)])
def test_the_run_keeps_and_repeats_what_the_plan_says(policy, keep):
    calls = []

    def counted(graph):
        def function(*values):
            calls.append(graph.name)
            return graph(*values)

        return function

    run = chain_gradient(symad.trace(sympy.sin(h)), h, 30, policy, keep, compiled=counted)
    run(0.5)
    assert calls.count("f") == run.plan.evaluations + 1  # and once for the loss
    assert calls.count("f_pullback") == 30


def test_a_chain_without_steps_is_its_loss():
    assert chain_gradient(sympy.sin(h), h**2, 0)(3.0) == (9, 6)


def test_mistakes_are_told():
    with pytest.raises(DerivativeError, match="policy='some' is not one of 'all'"):
        make_plan(3, "some")
    with pytest.raises(DerivativeError, match="keep ≥ 1, not 3 and 0"):
        make_plan(3, "binomial", 0)
    with pytest.raises(DerivativeError, match="a step maps the state h"):
        chain_gradient(sympy.Matrix([h, h]), h, 3)
    with pytest.raises(EvaluationError, match="2 entries, but the chain has 3 steps"):
        chain_gradient(symad.trace(h + x, inputs=[h, x]), h, 3, sequences=1)(0.0, [1.0, 2.0])


def test_plans_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    plans = [memory_plan(50, memory) for memory in ("recompute", 5, "sqrt", "binomial")]
    draw_plans(plans, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("length", [-1, "10", 2.5, None])
def test_a_memory_plan_needs_a_number_of_steps(length: object) -> None:
    with pytest.raises(DerivativeError, match="number of steps, not"):
        symad.memory_plan(length, "sqrt")  # type: ignore[arg-type]


STEPS = {
    "of both": lambda c, v, y: np.tanh(np.sin(c) * y * np.sin(c) + v),
    "of the state": lambda c, v, y: np.sin(c * y),
    "of no state": lambda c, v, y: np.tanh(v) * y,
    "of nothing": lambda c, v, y: 1 + 0 * c,
    "linear": lambda c, v, y: c * y + v,
}


@pytest.mark.parametrize("memory", ["recompute", "sqrt", 2, "binomial", ("binomial", 1)])
@pytest.mark.parametrize("name", STEPS)
def test_states_that_are_numbers_in_generated_code(name, memory):
    """The cotangent of the last state is 1, and that of others may be 0: numbers that are no integers."""
    step, points, h = STEPS[name], np.array([0.3, -0.5, 0.8, 0.1, 0.2]), 1e-100j

    def last(x, y):
        return functions.fold(lambda c, v: step(c, v, y), x, points, memory=memory)

    def by_hand(x, y):
        for v in points:
            x = step(x, v, y)
        return x

    graph = symad.value_and_gradient(symad.trace(last, [(), ()]))
    moved = by_hand(0.7 + h, 0.4), by_hand(0.7, 0.4 + h)
    right = [by_hand(0.7, 0.4), *(np.imag(w) / 1e-100 for w in moved)]
    for dtype, close in (("float64", 1e-13), ("float32", 1e-5)):
        np.testing.assert_allclose(lower(graph, dtype=dtype)(0.7, 0.4), right, rtol=close, atol=1e-3 * close)


NESTED = [("recompute", 2), (2, "recompute"), (2, "sqrt"), ("sqrt", "binomial")]


@pytest.mark.parametrize("kind", ["fold", "scan"])
@pytest.mark.parametrize(("outer", "inner"), NESTED)
def test_stretches_inside_of_stretches_in_generated_code(kind, outer, inner):
    """Stretches of a loop in a loop: each has a length of its own."""
    points, others, h = np.linspace(-0.5, 0.8, 4), np.linspace(0.3, -0.7, 3), 1e-100j

    def last(x, y):
        def step(c, v):
            states = getattr(functions, kind)(
                lambda g, w: np.tanh(g * (y + w) + c), c + v, others, memory=inner
            )
            return np.sin(c + np.sum(states))

        return functions.fold(step, x, points, memory=outer)

    def by_hand(x, y):
        for v in points:
            g, states = x + v, []
            for w in others:
                g = np.tanh(g * (y + w) + x)
                states.append(g)
            x = np.sin(x + (sum(states) if kind == "scan" else g))
        return x

    graph = symad.value_and_gradient(symad.trace(last, [(), ()]))
    moved = by_hand(0.7 + h, 0.4), by_hand(0.7, 0.4 + h)
    right = [by_hand(0.7, 0.4), *(np.imag(w) / 1e-100 for w in moved)]
    np.testing.assert_allclose(lower(graph)(0.7, 0.4), right, rtol=1e-10)
