"""What set-up does only once, or not at all: passes that cannot act, code of helpers, garbage."""

from __future__ import annotations

import gc
import traceback
import weakref

import numpy as np
import pytest

import symad
from symad.core.graph import Graph
from symad.higher_order.scan import Scan
from symad.numeric import lower
from symad.numeric.kernel import compile_source
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.pipelines import ProgramPass, in_place, run_program_passes
from symad.numeric.program.program import Program
from symad.numeric.scheduling.plans import block_of
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.shaping import Broadcast


def program_of(graph: Graph) -> Program:
    return block_of(graph.nodes, graph.output_nodes, graph.input_nodes).program


def test_a_pass_is_skipped_where_no_value_is_of_its_ops() -> None:
    seen: list[str] = []

    def noted(name: str, *ops: type) -> ProgramPass:
        def run(program: Program) -> Program:
            seen.append(name)
            return program

        return ProgramPass(name, run, "", "", ops)

    graph = symad.trace(lambda x, y: x + y, [(3,), (3,)])
    passes = [noted("sums", Add), noted("loops", Scan), noted("all"), noted("either", Scan, Add)]
    run_program_passes(program_of(graph), passes)
    assert seen == ["sums", "all", "either"]


@pytest.mark.parametrize("made", in_place("float64"), ids=lambda made: made.name)
def test_a_pass_changes_nothing_where_it_is_skipped(made: ProgramPass) -> None:
    """The pass itself leaves a program without its ops as it is."""
    graph = symad.trace(lambda x, y: (x @ y, x - y), [(3, 3), (3, 3)])
    program = program_of(graph)
    if made.acts_on and not program.assigns(made.acts_on):
        assert made.run(program) == program
    assert not program.assigns((Broadcast,))


def test_an_unchanged_program_is_the_same_object() -> None:
    program = program_of(symad.trace(lambda x: np.sin(x), [(3,)]))
    assert program.with_statements(tuple(program.statements)) is program
    assert program.with_statements(()).assigned == ()


HEAD = '"""A module."""\n\nimport math\n\n\n'
HELPER = "def _root(x):\n    return math.sqrt(x)\n\n\n"


def test_helpers_are_compiled_once_and_tracebacks_show_their_lines() -> None:
    one = compile_source("f", (HEAD, HELPER, "def f(x):\n    return _root(x)\n"))
    other = compile_source("g", (HEAD, HELPER, "def g(x):\n    y = _root(x)\n    return y\n"))
    assert one.source == HEAD + HELPER + "def f(x):\n    return _root(x)\n"
    assert one.namespace["_root"].__code__ is other.namespace["_root"].__code__
    assert one.namespace["_root"] is not other.namespace["_root"]  # each reads the names of its own module
    with pytest.raises(ValueError) as caught:
        other.function(-1)
    lines = [(frame.line, frame.lineno) for frame in traceback.extract_tb(caught.value.__traceback__)[-2:]]
    assert lines[0] == ("y = _root(x)", other.source.splitlines().index("    y = _root(x)") + 1)
    assert lines[1][0] == "return math.sqrt(x)"


def test_a_writer_is_freed_without_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    printers: list[weakref.ref[ArrayWriter]] = []
    begin = ArrayWriter.__init__

    def noted(self: ArrayWriter, *args: object) -> None:
        begin(self, *args)  # type: ignore[arg-type]  # whatever the printer takes
        printers.append(weakref.ref(self))

    monkeypatch.setattr(ArrayWriter, "__init__", noted)
    gc.disable()
    try:
        lower(symad.trace(lambda x: np.sum(np.tanh(x) ** 2), [(5,)]))
        assert [made() for made in printers] == [None]
    finally:
        gc.enable()
