"""The Python blocks of README.md, CONTRIBUTING.md and docs/ run, and the names in them exist.

The blocks of one file share one namespace and run in order, in a process of their own (they may
register ops). A block that begins with ``>>>`` is a doctest: its output is compared.
"""

import ast
import doctest
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from tests.forked import run_script

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(line number, source) of every Python block of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m[1]) for m in FENCE.finditer(text)]


def imports(page, library):
    """Whether a block of a page imports a library."""
    return any(re.search(rf"^import {library}\b", source, re.MULTILINE) for _, source in blocks(page))


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


QUICK = {"c", "performance", "numpy", "lowering", "lecture", "models", "install", "listings"}
"""Pages that `make test` runs. Of the others it runs the imports; the second tier runs them whole."""


def marked(page):
    marks = [] if page.stem in QUICK else [pytest.mark.thorough]
    return pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if blocks(page)])
def test_page_runs(page, tmp_path):
    used = {library for library in ("torch", "jax") if imports(page, library)}
    for library in used:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    status, output = run_script(__file__, [str(page)], folder=tmp_path, forks="jax" not in used)
    assert status == 0, f"\n{output}"


@pytest.mark.thorough
def test_the_readme_shows_the_certificate_that_is_printed():
    pytest.importorskip("statsmodels")
    page, space = ROOT / "README.md", {}
    exec(blocks(page)[0][1], space)
    (shown,) = re.findall(r"^```text\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert shown in str(space["certificate"])


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_what_a_page_imports_is_there(page):
    trees = [ast.parse(source) for _, source in blocks(page) if ">>>" not in source]
    statements = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    for statement in statements:
        if statement.module.split(".")[0] == "symad" and statement.module not in ("symad.torch", "symad.jax"):
            module = importlib.import_module(statement.module)
            for alias in statement.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{statement.module}.{alias.name}")


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
    status, _ = run_script(__file__, [str(page)], folder=tmp_path)
    assert (status != 0) == fails


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
