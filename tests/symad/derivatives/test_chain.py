"""Memory policies of scans: the derivatives of a scan that keeps everything, in the stated memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.derivatives.hessian import MODES
from symad.derivatives.memory_plans import memory_plan, memory_plans
from symad.errors import DerivativeError, ShapeError
from symad.higher_order import checkpointed_chain, checkpointed_chain_pullback
from symad.numeric import lower
from symad.transforms.revolve import places
from tests.counting import calls

T = sp.Symbol("T", integer=True, positive=True)
POLICIES = ["recompute", 1, 3, 100, "sqrt", "binomial", ("binomial", 1), ("binomial", 3)]
RNG = np.random.default_rng(0)


def values(length):
    return [RNG.normal(size=s) for s in ((4, 4), (4, 3), (length, 3), (4,))]


def cell(W, U):
    return lambda h, x: np.tanh(W @ h + U @ x)


def last(memory, length=T):
    def f(W, U, xs, h0):
        return np.sum(functions.fold(cell(W, U), h0, xs, memory) ** 2)

    return symad.trace(f, inputs=[(4, 4), (4, 3), (length, 3), (4,)])


def every(memory, length=T):
    def f(W, U, xs, h0):
        return np.sum(functions.scan(cell(W, U), h0, xs, memory) ** 3)

    return symad.trace(f, inputs=[(4, 4), (4, 3), (length, 3), (4,)])


def close(found, expected, rtol=1e-11):
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=rtol, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [last, every])
@pytest.mark.parametrize("length", [1, 2, 7, 16])
def test_all_policies_have_the_gradient_of_the_whole(make, length):
    point = values(length)
    expected = symad.value_and_gradient(make("all"))(*point)
    for memory in POLICIES:
        graph = symad.value_and_gradient(make(memory))
        close(graph(*point), expected)
        close(lower(graph)(*point), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [last, every])
def test_hessians(mode, make):
    point = values(3)
    expected = symad.hessian(make("all", 3), wrt=["W", "h0"])(*point)
    for memory in ("sqrt", ("binomial", 2), "recompute"):
        found = symad.hessian(make(memory, 3), wrt=["W", "h0"], mode=mode)(*point)
        for row, other in zip(found, expected, strict=True):
            close(row, other, 1e-9)


@pytest.mark.parametrize("make", [last, every])
def test_forward_mode_and_batches(make):
    point, dots = values(6), values(6)
    expected = symad.pushforward(make("all"))(*point, *dots)
    close(symad.pushforward(make("sqrt"))(*point, *dots), expected)
    close(lower(symad.pushforward(make("sqrt")))(*point, *dots), expected)
    rows = np.stack([point[2], 2 * point[2]])
    batched = symad.vmap(symad.gradient(make("sqrt", 6), wrt="W"), (None, None, 0, None))
    expected = [symad.gradient(make("all", 6), wrt="W")(point[0], point[1], x, point[3]) for x in rows]
    np.testing.assert_allclose(batched(point[0], point[1], rows, point[3]), expected, rtol=1e-11)


def test_several_states_and_a_loss_in_the_state():
    def f(a, xs, ys, memory):
        def step(state, now):
            h, total = state
            h = np.sin(a * h + now[0])
            return h, total + (h - now[1]) ** 2

        return functions.fold(step, (0.1, 0.0), (xs, ys), memory)[1]

    xs, ys = RNG.normal(size=(2, 20))
    graphs = [
        symad.value_and_gradient(symad.trace(lambda a, x, y, m=m: f(a, x, y, m), inputs=[(), (T,), (T,)]))
        for m in ("all", "sqrt", "binomial")
    ]
    h, total = 0.1, 0.0
    for x, y in zip(xs, ys, strict=True):
        h = np.sin(0.7 * h + x)
        total += (h - y) ** 2
    for graph in graphs:
        assert graph(0.7, xs, ys)[0] == pytest.approx(total, rel=1e-13)
        close(lower(graph)(0.7, xs, ys), graphs[0](0.7, xs, ys))
    assert f(0.7, xs, ys, "sqrt") == pytest.approx(total, rel=1e-13)  # on arrays: a plain loop


def test_a_chain_without_steps_is_its_first_state():
    point = values(0)
    for memory in ("sqrt", "binomial", "recompute"):
        value, *bars = symad.value_and_gradient(last(memory))(*point)
        assert value == pytest.approx(np.sum(point[3] ** 2))
        np.testing.assert_allclose(bars[3], 2 * point[3])
        assert not any(np.any(b) for b in bars[:2])
        close(lower(symad.value_and_gradient(last(memory)))(*point), [value, *bars])


@pytest.mark.parametrize("memory", [3, "sqrt", "binomial", ("binomial", 4)])
def test_the_run_keeps_and_repeats_what_the_plan_says(memory, monkeypatch):
    """Steps run forwards and states kept, counted in the run."""
    length, counted = 40, {"steps": 0}
    original = checkpointed_chain.stepper

    def stepper(op, constants):
        step = original(op, constants)

        def counting(*values):
            counted["steps"] += 1
            return step(*values)

        return counting

    for module in (checkpointed_chain, checkpointed_chain_pullback):
        monkeypatch.setattr(module, "stepper", stepper)
    graph = symad.gradient(last(memory, length))
    graph(*values(length))
    plan = memory_plan(length, memory)
    again = counted["steps"] - length  # the forward sweep runs to the end
    if memory in (3, "sqrt"):
        assert again == 0  # stretches are run again inside of their pullback
        assert plan.recomputations == length - len(places(length, 3 if memory == 3 else 6, 0))
        assert plan.evaluations == length + plan.recomputations
    else:
        assert again == plan.recomputations
    assert memory_plans(graph) == [plan]


def test_places_are_those_of_the_plans():
    for length in (1, 2, 5, 17, 100):
        for memory in ("binomial", ("binomial", 3), 4, "sqrt"):
            plan = memory_plan(length, memory)
            slots = 2 * length.bit_length() if memory == "binomial" else 3 if memory != 4 else 0
            distance = {4: 4, "sqrt": int(length**0.5)}.get(memory, 0) if not isinstance(memory, tuple) else 0
            found = places(length, distance, 0 if distance else slots)
            first_sweep = []
            for action in plan.actions:
                name = type(action).__name__
                if name == "Reverse" or (name == "Keep" and first_sweep and action.at < first_sweep[-1]):
                    break
                if name == "Keep":
                    first_sweep.append(action.at)
            assert found[:-1] == first_sweep[: len(found) - 1]
            assert found[-1] == length


def peak(memory, length, n, kernel_of):
    point = [RNG.normal(size=n), RNG.normal(size=length)]
    kernel = kernel_of(memory)
    if memory != "all":  # whose memory is kept from call to call: the first one shows it
        kernel(*point)
    tracemalloc.start()
    kernel(*point)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found / (8 * n)


@pytest.mark.thorough
def test_measured_memory_follows_the_policy():
    """In states of n numbers: about 2 T for "all", √T and log T for the others."""
    length, n = 400, 20_000

    def kernel(memory):
        def f(h0, xs):
            return np.sum(functions.fold(lambda h, x: np.sin(h * x), h0, xs, memory))

        return lower(symad.gradient(symad.trace(f, inputs=[(n,), (T,)]), wrt="h0"))

    policies = ("all", "sqrt", "binomial", ("binomial", 5))
    everything, root, few, five = (peak(memory, length, n, kernel) for memory in policies)
    assert 2 * length < everything < 2.1 * length  # what all steps read of their states, and cotangents
    assert root < 10 * 20  # 20 kept, and the values of one stretch of 20 steps
    assert few < 2 * 18 + 12  # at most 18 kept at first and 17 later, and the values of one step
    assert five < 2 * 5 + 12
    assert five < few < root < everything


def test_ten_thousand_steps_cost_no_more_to_differentiate_and_compile():
    def kernel(length):
        return lower(symad.gradient(last("binomial", length)))

    lines = [len(kernel(length).source.splitlines()) for length in (10, 10_000)]
    assert abs(lines[0] - lines[1]) < 10  # large views are deleted when they have been read
    few, many = (calls(lambda length=length: kernel(length)) for length in (11, 10_001))
    assert many < 1.5 * few


def test_mistakes_are_told():
    for memory in ("some", 0, -1, True, ("binomial", -1), ("sqrt", 2), ("every", 2), None, 2.5):
        with pytest.raises(DerivativeError, match=r"is not 'all', 'recompute', a positive number"):
            last(memory)
    with pytest.raises(ShapeError, match=r"state has shapes \(4,\), but the step gives \(3,\)"):
        symad.trace(
            lambda h, xs: functions.fold(lambda c, x: c[:3], h, xs, "sqrt"), inputs=[(4,), (T,)]
        )
    with pytest.raises(DerivativeError, match="give a number for T"):
        memory_plans(symad.gradient(last("sqrt")))
    assert memory_plans(symad.gradient(last("sqrt")), T=9)[0].length == 9


@pytest.mark.parametrize("memory", ["all", "sqrt"])
def test_traced_values_may_come_from_around_the_step_alone(memory):
    """The first state and the inputs are arrays; the step multiplies by a traced number."""
    inputs = np.linspace(0.1, 1, 6)
    graph = symad.trace(lambda a: functions.fold(lambda h, x: a * h + x, 1.0, inputs, memory), inputs=[()])
    a = sp.Symbol("a")
    exact = sp.Integer(1)
    for x in inputs.tolist():
        exact = a * exact + sp.Float(x, 30)
    assert graph(0.7) == pytest.approx(float(exact.subs(a, 0.7)), rel=1e-14)
    assert symad.gradient(graph)(0.7) == pytest.approx(float(exact.diff(a).subs(a, 0.7)), rel=1e-13)


@pytest.mark.parametrize("memory", ["sqrt", ("binomial", 3), "binomial", 2])
def test_saved_graphs_keep_their_policy(memory, tmp_path):
    graph = symad.gradient(last(memory))
    symad.save(graph, tmp_path / "graph.json")
    loaded = symad.load(tmp_path / "graph.json")
    point = values(5)
    assert all(np.array_equal(a, b) for a, b in zip(graph(*point), loaded(*point), strict=True))
    assert memory_plans(loaded, T=20) == memory_plans(graph, T=20)
