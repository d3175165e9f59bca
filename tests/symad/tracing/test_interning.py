"""Equal nodes are one node, in any thread, and nodes without references are freed."""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType
from typing import Any

import pytest
import sympy as sp

from symad.core.graph import Node
from symad.core.interning import LOCK, WeakMemo, WeakTable
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant, input_node


class Thing:
    """What can be referred to weakly, and holds others."""

    def __init__(self, *held: Any) -> None:
        """``held``: what lives as long as this does."""
        self.held = held


@pytest.mark.thorough
def test_entries_go_after_their_values() -> None:
    table, first, second = WeakTable(), Thing(), Thing()
    table.keep("a", first)
    table.keep("b", second)
    assert table["a"]() is first and table["b"]() is second
    del first
    gc.collect()
    assert table["a"]() is None
    table.keep("c", second)
    assert list(table) == ["b", "c"]


@pytest.mark.thorough
def test_what_the_key_held_goes_too_however_long_the_chain() -> None:
    """Each key holds the value before it: no recursion, and nothing is left."""
    table, last = WeakTable(), Thing()
    for _ in range(20_000):
        made = Thing()
        table.keep((last,), made)
        last = made
    assert len(table) == 20_000
    del made, last
    gc.collect()
    kept = Thing()
    table.keep("kept", kept)
    assert list(table) == ["kept"]


def test_a_death_runs_no_python_code_and_takes_no_lock() -> None:
    """An exception in a callback is lost, so that Ctrl-C would be; another thread may hold the lock."""
    table, memo, values = WeakTable(), WeakMemo[Thing, int](), [Thing()]
    table.keep("gone", values[0])
    memo[values[0]] = 1
    seen: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    holds, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with LOCK:
            holds.set()
            may_go.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(10)
    before = sys.getprofile()
    sys.setprofile(note)
    values.clear()
    sys.setprofile(before)
    may_go.set()
    thread.join()
    assert not seen and table["gone"]() is None and len(memo) == 1


def test_a_key_that_is_entered_again_before_its_old_entry_is_removed_stays() -> None:
    table, values = WeakTable(), [Thing()]
    table.keep("a", values[0])
    values.clear()
    again = Thing()
    table.keep("a", again)
    assert table["a"]() is again and not table._dead


def test_facts_go_after_their_objects_and_no_other_object_gets_them() -> None:
    """CPython gives a new object the address of a dead one at once."""
    memo, kept = WeakMemo[Thing, int](), Thing()
    memo[kept] = -1
    for k in range(100):
        thing = Thing()
        assert thing not in memo and memo.get(thing) is None
        memo[thing] = k
        assert memo[thing] == memo.get(thing) == k and memo[kept] == -1
        del thing
    memo[kept] = -2
    assert len(memo) == 1 and memo[kept] == -2


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
