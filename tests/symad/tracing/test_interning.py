"""Equal nodes are one node, in any thread, and nodes without references are freed."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
import sympy as sp

from symad.core.graph import Node
from symad.core.interning import LOCK, WeakTable
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant, input_node


class Thing:
    """What can be referred to weakly, and holds others."""

    def __init__(self, *held: Any) -> None:
        """``held``: what lives as long as this does."""
        self.held = held


@pytest.mark.thorough
def test_entries_go_with_their_values() -> None:
    table, first, second = WeakTable(), Thing(), Thing()
    table.keep("a", first)
    table.keep("b", second)
    assert table["a"]() is first and table["b"]() is second
    del first
    gc.collect()
    assert list(table) == ["b"]


@pytest.mark.thorough
def test_what_the_key_held_goes_too_however_long_the_chain() -> None:
    """Each key holds the value before it: no recursion, and nothing is left."""
    table, last = WeakTable(), Thing()
    for _ in range(20_000):
        made = Thing()
        table.keep((last,), made)
        last = made
    del made
    assert len(table) == 20_000
    del last
    gc.collect()
    assert not table


def test_a_value_that_dies_while_another_thread_holds_the_lock_is_removed_by_the_next() -> None:
    table, kept = WeakTable(), Thing()
    values = [Thing()]
    table.keep("gone", values[0])
    holds, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with LOCK:
            holds.set()
            may_go.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(10)
    values.clear()  # does not wait
    assert "gone" in table and table["gone"]() is None
    may_go.set()
    thread.join()
    with LOCK:
        table.keep("next", kept)
    assert list(table) == ["next"]


def test_a_key_that_is_entered_again_before_its_old_entry_is_removed_stays() -> None:
    table, values = WeakTable(), [Thing()]
    table.keep("a", values[0])
    table._is_removing = True  # as in the middle of a removal
    values.clear()
    again = Thing()
    table.keep("a", again)
    table._is_removing = False
    table.keep("b", again)
    assert table["a"]() is again and not table._dead


@pytest.mark.thorough
@pytest.mark.parametrize("count", [4])
def test_threads_that_make_and_drop_equal_nodes_get_one(count: int) -> None:
    x = input_node(sp.Symbol("x_interning", real=True))
    barrier, wrong = threading.Barrier(count), []

    def work() -> None:
        barrier.wait()
        for k in range(3000):
            first = mul(add(x, constant(k % 7 + 1000)), x)
            second = mul(add(x, constant(k % 7 + 1000)), x)
            if first is not second:
                wrong.append(k)

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    keep = mul(x, constant(2000))  # the next node removes what was left
    assert not any(x in args and op is not keep.op for op, args in Node._nodes)
