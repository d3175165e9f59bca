"""The Python blocks of README.md, CONTRIBUTING.md and docs/ run, and the names in them exist.

The blocks of one file share one namespace and run in order, in a process of their own (they may
register ops). A block that begins with ``>>>`` is a doctest: its output is compared.
"""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(line number, source) of every Python block of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m[1]) for m in FENCE.finditer(text)]


def run_page(page):
    """Run the blocks of a page; tracebacks show the page's own lines. Returns doctest failures."""
    space = {"__name__": "__main__"}
    failures = 0
    for line, source in blocks(page):
        if source.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(source, space, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            failures += runner.run(test, clear_globs=False).failed
            space = test.globs
        else:
            exec(compile("\n" * line + source, str(page), "exec"), space)
    return failures


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p)], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_page_runs(page, tmp_path):
    for library in ("torch", "jax"):
        if any(re.search(rf"^import {library}\b", source, re.MULTILINE) for _, source in blocks(page)):
            pytest.importorskip(library)
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, __file__, str(page)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    ("source", "fails"),
    [
        ("```python\nx = 1\n```\n```python\nassert x == 2\n```\n", True),
        ("```python\nx = 1\n```\n```python\n>>> x + 1\n2\n```\n", False),
        ("```python\n>>> 1 + 1\n3\n```\n", True),
        ("```text\nnot python\n```\n", False),
    ],
)
def test_a_wrong_block_is_noticed(source, fails, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(source, encoding="utf-8")
    done = subprocess.run([sys.executable, __file__, str(page)], capture_output=True)
    assert (done.returncode != 0) == fails


def test_make_targets_that_the_pages_name_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        code = "\n".join(SHELL.findall(text) + re.findall(r"`([^`\n]+)`", text))
        unknown = set(re.findall(r"^make ([a-z][\w-]*)", code, re.MULTILINE)) - targets
        assert not unknown, f"{page.name} names {sorted(unknown)}"


def test_links_between_the_pages_lead_somewhere():
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


if __name__ == "__main__":
    sys.exit(1 if run_page(Path(sys.argv[1])) else 0)
