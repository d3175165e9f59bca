"""The parts of the benchmarks that need no GPU run on the CPU, so that the benchmarks work on a GPU later."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu import device_tests, models, report, session
from symad.models.layers.parameters import trace_model
from symad.numeric import lower

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_rehearsal(tmp_path):
    out = tmp_path / "attention.json"
    command = [sys.executable, "benchmarks/gpu/attention.py", "--rehearse", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(out.read_text())
    ours = [r for r in report["records"] if r["name"] == "symad"]
    assert {r["direction"] for r in ours} == {"forward", "backward", "second"}
    twice = [r for r in report["records"] if "apart_from_symad" in r]
    assert twice
    assert all(r["apart_from_symad"] < 1e-5 for r in twice)
    assert {r.get("score") for r in ours} >= {None, "plain", "ALiBi", "soft cap", "window of 1024"}
    assert not [r for r in ours if "failed" in r]
    assert all(r["error"] < 1e-6 for r in ours if "error" in r)
    assert not [r for r in report["records"] if "ms" in r]  # a rehearsal reports no times


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("name", ["feedforward", "rnn", "lstm"])
def test_peers_compute_the_same_loss(name, library):
    """In float32, jax's default."""
    module = pytest.importorskip(library)
    model, data, loss = models.cases(quick=True)[name]
    data = [d[:3] if name == "feedforward" else d[:4, :2] for d in data]
    rng = np.random.default_rng(0)
    parameters = {k: 0.05 * rng.standard_normal(s) for k, s in model.shapes.items()}
    expected = lower(trace_model(model.loss, model.shapes, *data))(*parameters.values(), *data)
    peer = getattr(models, f"{library}_peer")()
    convert = module.tensor if library == "torch" else module.numpy.asarray
    found = loss(
        peer,
        {k: convert(np.float32(v)) for k, v in parameters.items()},
        *[convert(np.float32(d)) for d in data],
    )
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.thorough
def test_a_report_says_where_it_comes_from():
    head = report.surroundings(timed=False)
    assert head["device"].startswith("rehearsal")
    assert "numpy" in head["versions"]
    report.release()


def test_outcomes_of_a_test_report(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="a" name="x"/><testcase classname="a" name="y">'
        '<skipped message="no tool"/></testcase><testcase classname="b" name="z"><failure message="1 != 2"/>'
        "</testcase></testsuite></testsuites>"
    )
    found = device_tests.outcomes(report)
    assert found["counts"] == {"passed": 1, "skipped": 1, "failed": 1}
    assert found["failed"] == ["b::z: 1 != 2"]
    assert found["skipped"] == ["a::y: no tool"]


@pytest.mark.thorough
@pytest.mark.parametrize("script", ["probe", "pairwise", "models", "attention", "device_tests"])
def test_without_a_device_a_benchmark_says_so(script, tmp_path):
    """One clear error, and no report."""
    try:
        import cupy
    except Exception:
        cupy = None
    if cupy is not None and cupy.is_available():
        pytest.skip("there is a device")
    out = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, f"benchmarks/gpu/{script}.py", "--out", str(out)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("no device: CuPy ")
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()


def test_the_session_lists_commands_that_exist():
    shown = subprocess.run(
        [sys.executable, "benchmarks/gpu/session.py", "--list"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout  # fmt: skip
    assert shown.count("   python benchmarks/") == len(session.STEPS)
    for step in session.STEPS:
        assert (ROOT / step.command[0]).is_file()


SLEEPS = """
import pathlib, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background ignores
sys.path.insert(0, {root!r})
from benchmarks.gpu.device_tests import ended
from benchmarks.gpu.report import save
out = pathlib.Path({out!r})
save(out, {{"part": 1}}, complete=False)
inner = "import signal, sys, time; {ignore}print(flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", inner], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
status, whole = ended(child)
save(out, {{"part": 2}}, complete=whole)
"""


@pytest.mark.parametrize("deaf", [False, True])
def test_a_step_that_takes_too_long_ends_with_what_it_started(deaf, tmp_path):
    """It is interrupted and leaves its report; what does not hear that is killed."""
    out = tmp_path / "report.json"
    heard = "signal.SIG_IGN" if deaf else "signal.default_int_handler"
    ignore = f"signal.signal(signal.SIGINT, {heard}); "
    script = SLEEPS.format(root=str(ROOT), out=str(out), ignore=ignore)
    step = subprocess.Popen([sys.executable, "-c", script], start_new_session=True, stdout=subprocess.PIPE)
    child = int(step.stdout.readline())
    status = session.ended(step, 0.1, 0.5 if deaf else 60.0)
    assert (status == 0) is not deaf
    assert json.loads(out.read_text()) == {"part": 1 if deaf else 2, "complete": False}
    last = time.monotonic() + 60  # on a busy machine what is killed still waits for its turn to end
    while _runs(child) and time.monotonic() < last:
        time.sleep(0.01)
    assert not _runs(child)


def _runs(child):
    """Whether a process has not ended; it may not be reaped yet."""
    try:
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "XZ"


@pytest.mark.slow
def test_the_session_runs_every_test_that_needs_a_device():
    tests = [s for s in session.STEPS if s.command[0].endswith("device_tests.py")]
    collected = [_collected(s.command[s.command.index("-k") + 1]) for s in tests]
    assert all(collected)
    assert set().union(*collected) == _collected("")


def _collected(selection):
    """The tests for a device that pytest's -k selects."""
    command = [sys.executable, "-m", "pytest", "tests/gpu", "-m", "gpu", "-q", "--collect-only"]
    command += ["-k", selection]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return {line for line in done.stdout.splitlines() if "::" in line}
