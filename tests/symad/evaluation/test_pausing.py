"""The garbage collector is paused during whole calls, over all threads, and restored afterwards."""

import gc
import os
import threading

import pytest

from symad.core.dims import Shape
from symad.core.graph import SHAPE, Op, shape
from symad.core.process import _PAUSES, without_collecting
from symad.ops.basic.arithmetic import Add


@pytest.fixture(autouse=True)
def as_it_was():
    before = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if before else gc.disable)()


def test_calls_inside_calls_and_errors():
    @without_collecting
    def inner():
        assert not gc.isenabled()
        raise KeyError

    @without_collecting
    def outer():
        with pytest.raises(KeyError):
            inner()
        assert not gc.isenabled()

    outer()
    assert gc.isenabled() and _PAUSES.count == 0


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    without_collecting(lambda: None)()
    assert not gc.isenabled()


def test_threads_that_overlap():
    """One that began while another had paused the collector must not leave it off, nor turn it on early."""
    started, go = threading.Event(), threading.Event()
    seen = []

    @without_collecting
    def first():
        started.set()
        go.wait(10)

    @without_collecting
    def second():
        go.set()
        thread.join(10)
        seen.append(gc.isenabled())

    thread = threading.Thread(target=first)
    thread.start()
    started.wait(10)
    second()
    assert seen == [False]
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_in_a_pause_has_the_pause():
    @without_collecting
    def forks():
        child = os.fork()
        if child == 0:
            os._exit(0 if not gc.isenabled() and _PAUSES.count == 1 else 1)
        return os.waitpid(child, 0)[1]

    assert forks() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_has_no_pause_of_threads_that_are_gone():
    started, go = threading.Event(), threading.Event()

    @without_collecting
    def pauses():
        started.set()
        go.wait(10)

    thread = threading.Thread(target=pauses)
    thread.start()
    started.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() and _PAUSES.count == 0 else 1)
    go.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_shape_is_registered_once():
    def rule(op: Op, args: object) -> Shape:
        return ()

    before = SHAPE[Add]
    with pytest.raises(TypeError, match="Add has a shape already"):
        shape(Add)(rule)
    assert SHAPE[Add] is before
