"""The folder of compiled code is private and repaired when damaged; no state of it makes a call fail."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.errors import LoweringError
from symad.numeric import lower
from symad.numeric.compiler import c_compiler, private_folder
from symad.numeric.compiler.c_compiler import compiler
from symad.numeric.compiler.private_folder import Unusable, cache_folder, is_sound, make_private

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="no C compiler"),
    pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners of files are POSIX's"),
]

SOURCE = "int number(void) { return %d; }\n"

USE = """
import sys, warnings
import numpy as np, sympy as sp
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import symad
    from symad.numeric import lower
    x, y = sp.symbols("x y")
    scalar = lower(sp.sin(x)*y + 7, backend="c")
    assert abs(scalar(0.5, 2.0) - (2*np.sin(0.5) + 7)) < 1e-15
    points = np.linspace(0, 1, 50)
    assert np.allclose(scalar(points, 2.0), 2*np.sin(points) + 7, rtol=1e-14)
    for k in range(2):
        arrays = lower(symad.trace(lambda a: np.exp(a)*a + np.sin(a) + k, [(40,)]), backend="c")
        assert np.allclose(arrays(points[:40]), np.exp(points[:40])*points[:40] + np.sin(points[:40]) + k)
for w in said:
    print(w.message)
"""


def run(tmp_path: Path, code: str = USE, limit: int | None = None, **variables: str | None) -> list[str]:
    """The warnings of a new process with these variables of the environment."""
    env = {k: v for k, v in os.environ.items() if k not in ("SYMAD_CACHE", "XDG_CACHE_HOME", "HOME", "CC")}
    env |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TMPDIR": str(tmp_path / "temporary")}
    if not (tmp_path / "temporary").exists():
        (tmp_path / "temporary").mkdir()
    env |= {k: v for k, v in variables.items() if v is not None}

    def small_files() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        preexec_fn=small_files,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def left(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for the folder, and no warnings said so far."""
    monkeypatch.setenv("SYMAD_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(c_compiler, "_loaded", {})
    monkeypatch.setattr(c_compiler, "_said", set())
    return tmp_path / "kept"


def made(cache: Path, source: str) -> Path:
    """A library as another process leaves it: this one has not loaded it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_compiler, "_load", lambda *made: None)
        c_compiler.compile_c(source)
    c_compiler._loaded.clear()
    (library,) = cache.glob("*.so")
    assert is_sound(library)
    return library


# ---- where it is ------------------------------------------------------------------------------


def test_only_absolute_paths_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SYMAD_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative", "./relative", "~/x"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache_folder() == tmp_path / ".cache" / "symad"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "symad"
    monkeypatch.setenv("SYMAD_CACHE", "here")
    with pytest.raises(Unusable, match="SYMAD_CACHE='here' is not an absolute path"):
        cache_folder()
    monkeypatch.setenv("SYMAD_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "")
    with pytest.raises(Unusable, match="no home folder"):
        cache_folder()


@pytest.mark.thorough
def test_nothing_is_written_to_the_working_directory(tmp_path: Path) -> None:
    said = run(tmp_path, XDG_CACHE_HOME="", HOME=str(tmp_path / "home"))
    assert said == []
    assert sorted(p.name for p in left(tmp_path)) == ["home", "temporary"]
    assert left(tmp_path / "temporary") == []
    kept = tmp_path / "home" / ".cache" / "symad"
    assert {p.suffix for p in left(kept)} == {".so", ".sha256"}


@pytest.mark.thorough
def test_without_a_home_folder_kernels_compile_but_are_not_kept(tmp_path: Path) -> None:
    unknown = "import os; os.environ.pop('HOME', None); os.getuid = lambda: 54321\n" + USE
    (said,) = run(tmp_path, unknown)
    assert "not kept" in said and "no home folder" in said
    assert left(tmp_path / "temporary") == []
    assert run(tmp_path, unknown, XDG_CACHE_HOME=str(tmp_path / "xdg")) == []


# ---- private ----------------------------------------------------------------------------------


def test_the_folder_is_private_whatever_the_umask(cache: Path) -> None:
    for umask in (0o000, 0o777):
        before = os.umask(umask)
        try:
            deep = cache / f"{umask}" / "deeper"
            make_private(deep)
        finally:
            os.umask(before)
        assert stat.S_IMODE(deep.stat().st_mode) == 0o700
        assert stat.S_IMODE(deep.parent.stat().st_mode) == 0o700


def test_libraries_compiled_under_umask_0_are_private(cache: Path) -> None:
    before = os.umask(0)
    try:
        c_compiler.compile_c(SOURCE % 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert all(not stat.S_IMODE(p.stat().st_mode) & 0o022 for p in left(cache))
    (library,) = cache.glob("*.so")
    assert is_sound(library)


def test_an_open_folder_of_the_user_is_closed_again(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    make_private(cache)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_folder_of_another_user_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    with pytest.raises(Unusable, match="belongs to another user"):
        make_private(cache)


def test_symbolic_links_of_others_are_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache.parent / "target").mkdir()
    cache.symlink_to(cache.parent / "target")
    make_private(cache)  # one's own link is fine
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    real = Path.lstat

    def of_another(path: Path) -> os.stat_result:
        values = list(real(path))
        values[4] = 12345 if path == cache else 0
        return os.stat_result(values)

    monkeypatch.setattr(Path, "lstat", of_another)
    with pytest.raises(Unusable, match="symbolic link of another user"):
        make_private(cache)
    with pytest.raises(Unusable, match="symbolic link of another user"):
        make_private(cache / "below")


def test_a_place_that_everybody_can_change_is_refused(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(Unusable, match="can be written by everybody"):
        make_private(cache / "symad")
    cache.chmod(0o1777)  # like /tmp
    make_private(cache / "symad")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_a_library_of_another_user_is_not_loaded(cache: Path) -> None:
    library = made(cache, SOURCE % 2)
    os.chown(library, 12345, -1)
    assert not is_sound(library)
    again = c_compiler.compile_c(SOURCE % 2)
    assert again is not None and again.number() == 2
    assert library.stat().st_uid == os.geteuid()


def test_a_library_under_another_name_is_not_loaded(cache: Path) -> None:
    """Another user may link files into a folder that was open; the digest holds the name."""
    library = made(cache, SOURCE % 3)
    other = library.with_name("other.so")
    other.write_bytes(library.read_bytes())
    other.with_suffix(".sha256").write_bytes(library.with_suffix(".sha256").read_bytes())
    assert is_sound(library) and not is_sound(other)
    hard = library.with_name("hard.so")
    os.link(library, hard)
    assert not is_sound(library)
    link = library.with_name("link.so")
    link.symlink_to(library)
    assert not is_sound(link)


@pytest.mark.parametrize("kind", ["file", "pipe", "below a file", "link to a file"])
def test_what_is_no_folder_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    """A folder's rights are changed, so what is none, such as /dev/null, must not be taken for one."""
    there = tmp_path / "there"
    if kind == "pipe":
        os.mkfifo(there)
    else:
        there.write_text("a user's")
    there.chmod(0o666)
    chosen = there
    if kind == "below a file":
        chosen = there / "kept"
    elif kind == "link to a file":
        chosen = tmp_path / "link"
        chosen.symlink_to(there)
    with pytest.raises(Unusable, match=r"ot a (folder|directory)"):
        make_private(chosen)
    assert stat.S_IMODE(there.stat().st_mode) == 0o666


@pytest.mark.thorough
def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    (said,) = run(tmp_path, SYMAD_CACHE=str(circle))
    assert "not kept" in said and str(circle) in said


def test_a_file_of_any_size_is_not_read(cache: Path) -> None:
    library = made(cache, SOURCE % 6)
    with library.with_suffix(".sha256").open("ab") as note:
        note.truncate(2**40)  # without any blocks on the disk
    assert not is_sound(library)


# ---- repaired ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["truncated", "empty", "changed", "no digest", "digest damaged", "folder"])
def test_a_damaged_library_is_made_again(cache: Path, damage: str) -> None:
    library = made(cache, SOURCE % 4)
    note, data = library.with_suffix(".sha256"), library.read_bytes()
    if damage == "truncated":
        library.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        library.write_bytes(b"")
    elif damage == "changed":
        library.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "no digest":
        note.unlink()
    elif damage == "digest damaged":
        note.write_bytes(b"\xff\xfe")
    else:
        note.unlink()
        note.mkdir()
    if damage == "folder":  # which no file can replace
        with pytest.warns(UserWarning, match="not kept"):
            again = c_compiler.compile_c(SOURCE % 4)
        assert again is not None and again.number() == 4
        return
    again = c_compiler.compile_c(SOURCE % 4)
    assert again is not None and again.number() == 4
    assert is_sound(library)


def test_a_library_that_does_not_load_is_made_again(cache: Path) -> None:
    """One with the right digest, of a machine with another system that shares the folder."""
    library = made(cache, SOURCE % 5)
    foreign = library.with_name("foreign")
    foreign.write_bytes(b"\x7fELF of another machine")
    private_folder.keep(foreign, library)
    assert is_sound(library)
    again = c_compiler.compile_c(SOURCE % 5)
    assert again is not None and again.number() == 5


def test_a_library_that_calls_what_nothing_defines_is_the_sources_fault(cache: Path) -> None:
    """Others can be compiled here, so that it is no reason for kernels to run in NumPy."""
    with warnings.catch_warnings(), pytest.raises(LoweringError, match="symad_nowhere"):
        warnings.simplefilter("error")
        c_compiler.compile_c(
            "int symad_nowhere(int);\nint number(void) { return symad_nowhere(1); }\n", ["-Wl,-z,now"]
        )
    loaded = c_compiler.compile_c(SOURCE % 7)
    assert loaded is not None and loaded.number() == 7


@pytest.mark.thorough
def test_a_process_killed_in_the_middle_leaves_nothing_half(tmp_path: Path) -> None:
    """The compiler sleeps when it is done; the process is killed there."""
    slow = tmp_path / "slow-cc"
    slow.write_text('#!/bin/sh\ngcc "$@" && touch "$STARTED" && sleep 60\n')
    slow.chmod(0o700)
    started, kept = tmp_path / "started", tmp_path / "kept"
    code = f"from symad.numeric.compiler.c_compiler import compile_c; compile_c({SOURCE % 6!r})"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "STARTED": str(started)}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**env, "CC": str(slow), "SYMAD_CACHE": str(kept)},
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert started.exists()
    assert [p.name.startswith("work-") for p in left(kept)] == [True]  # no library under its name
    (work,) = left(kept)
    with private_folder.working_folder(kept):
        assert work.exists()  # perhaps still in use
    os.utime(work, (0, 0))
    with private_folder.working_folder(kept):
        assert not work.exists()


@pytest.mark.thorough
def test_two_processes_compile_at_once(tmp_path: Path) -> None:
    code = "from symad.numeric.compiler.c_compiler import compile_c\n"
    code += "".join(f"assert compile_c({SOURCE % k!r}).number() == {k}\n" for k in range(8))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    env["SYMAD_CACHE"] = str(tmp_path / "kept")
    both = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(2)]
    assert [p.wait() for p in both] == [0, 0]
    libraries = list((tmp_path / "kept").glob("*.so"))
    assert len(libraries) == 8 and all(map(is_sound, libraries))


# ---- where nothing can be written ----------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("limit", [0, 3000, 12_000])
def test_on_a_full_disk_numpy_runs_and_one_warning_says_so(tmp_path: Path, limit: int) -> None:
    """Files may not grow above the limit: sources, objects, or libraries cannot be written."""
    (said,) = run(tmp_path, limit=limit, SYMAD_CACHE=str(tmp_path / "kept"))
    assert "run in NumPy instead" in said
    assert "File too large" in said or "file size limit exceeded" in said.lower() or "signal" in said
    assert left(tmp_path / "temporary") == []
    assert not [p for p in left(tmp_path / "kept") if p.suffix not in (".so", ".sha256")]


def test_a_full_cache_falls_back_to_temporary_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(made: Path, kept: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(c_compiler, "keep", full)
    with pytest.warns(UserWarning, match="No space left on device") as said:
        for k in (7, 8):
            library = c_compiler.compile_c(SOURCE % k)
            assert library is not None and library.number() == k
    assert len(said) == 1
    assert left(cache) == []


@pytest.mark.thorough
def test_a_cache_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    (said,) = run(tmp_path, SYMAD_CACHE=str(tmp_path / "file" / "kept"))
    assert "not kept" in said and "file" in said
    assert left(tmp_path / "temporary") == []
    (tmp_path / "temporary").rmdir()
    (tmp_path / "temporary").write_text("")
    code = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'gone')!r}\n" + USE
    (said,) = run(tmp_path, code, SYMAD_CACHE=str(tmp_path / "file" / "kept"))
    assert "run in NumPy instead" in said


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["true", "echo", "cat", "/"])
def test_a_compiler_that_makes_nothing(tmp_path: Path, command: str) -> None:
    (said,) = run(tmp_path, CC=command, SYMAD_CACHE=str(tmp_path / "kept"))
    if command == "/":
        assert "CC='/' is not found; cc compiles instead" in said
    else:
        assert "run in NumPy instead" in said and command in said
    assert left(tmp_path / "temporary") == []


@pytest.mark.thorough
def test_cc_that_is_no_command_is_named(tmp_path: Path) -> None:
    (said,) = run(tmp_path, CC="'", SYMAD_CACHE=str(tmp_path / "kept"))
    assert """CC="'" is not a command""" in said and "compiles instead" in said
    assert list((tmp_path / "kept").glob("*.so"))


def test_a_source_that_is_refused_is_an_error(cache: Path) -> None:
    with pytest.raises(LoweringError, match=r"refused the generated code[\s\S]*nonsense"):
        c_compiler.compile_c("nonsense {\n")
    assert left(cache) == []


# ---- how it is told, and how quickly it is made -------------------------------------------------


def test_a_compiler_that_takes_long_is_told(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One line with the size of the source and a quicker way, and at its end the time; else nothing."""
    c_compiler.compile_c(SOURCE % 8)
    assert capsys.readouterr() == ("", "")
    slow = tmp_path / "slow-cc"
    slow.write_text('#!/bin/sh\nsleep 0.2\ngcc "$@"\n')
    slow.chmod(0o700)
    monkeypatch.setattr(c_compiler, "compiler", lambda: [str(slow)])
    monkeypatch.setattr(c_compiler, "QUIET_SECONDS", 0.05)
    assert c_compiler.compile_c("\n\n" + SOURCE % 9) is not None
    out, told = capsys.readouterr()
    assert out == "" and "slow-cc compiles 3 lines of C; lower(..., optimize=1) is quicker" in told
    assert told.count("\n") == 1 and told.endswith(" s\n")
    with c_compiler.optimized(1):
        c_compiler.compile_c(SOURCE % 10)
    assert "compiles 1 lines of C ..." in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    assert c_compiler.compile_c(SOURCE % 11) is not None


def test_levels_of_optimization_are_libraries_of_their_own(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[list[str]] = []
    compile_once = c_compiler._compile

    def noted(command: list[str], flags: list[str], *rest: Any) -> Any:
        used.append(flags)
        return compile_once(command, flags, *rest)

    monkeypatch.setattr(c_compiler, "_compile", noted)
    for level, last in ((2, "-O3"), (1, "-O1"), (0, "-O0"), (2, "-O3")):
        with c_compiler.optimized(level):
            loaded = c_compiler.compile_c(SOURCE % 12, ["-O3"])
        assert loaded is not None and loaded.number() == 12
        assert [flag for flag in used[-1] if flag.startswith("-O")][-1] == last or level == 2
    assert len(used) == 3 and len(list(cache.glob("*.so"))) == 3
    c_compiler.compile_c("\n" * 5001 + SOURCE % 13, ["-O3"])  # long texts would take minutes
    assert [flag for flag in used[-1] if flag.startswith("-O")][-1] == "-O1"


@pytest.mark.parametrize("backend", ["numpy", "c", "runs"])
def test_kernels_keep_their_level_when_they_are_sent(backend: str) -> None:
    def swing(u: Any) -> Any:
        return functions.fold(lambda s, t: s + np.sin(s) * t, u, np.arange(9.0))

    graph = symad.gradient(symad.trace(lambda u: np.sum(swing(u)), [(3,)]))
    graph = symad.gradient(sp.sin(sp.Symbol("x")) ** 2) if backend == "runs" else graph
    point = 0.5 if backend == "runs" else np.array([0.1, 0.2, 0.3])
    quick, full = lower(graph, backend, optimize=1), lower(graph, backend)
    assert ("optimize=1" in repr(quick), "optimize" in repr(full)) == (True, False)
    for kernel in (quick, pickle.loads(pickle.dumps(quick))):
        np.testing.assert_allclose(kernel(point), full(point), rtol=1e-13)
    assert "optimize=1" in repr(pickle.loads(pickle.dumps(quick)))
    with pytest.raises(LoweringError, match="optimize=3 is not one of 0, 1, 2"):
        lower(graph, backend, optimize=3)
