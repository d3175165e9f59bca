"""The repository's files contain no path of a machine on which they were written."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MACHINE_PATH = re.compile(
    r"(?<![\w.*])/(?:home|root|Users|work|tmp|mnt|media|opt|private|scratch)/\w|[A-Z]:\\+Users"
)
SUFFIXES = {
    ".md", ".py", ".toml", ".yml", ".yaml", ".cfg", ".cu", ".h", ".sh", ".txt", ".json", ".svg",
}  # fmt: skip
GENERATED = {"build", "dist", "_build", "__pycache__", "node_modules"}


def public_files():
    """The text files of the checkout; hidden folders (but for .ci and .github) left out."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = any(p.startswith(".") and p not in {".ci", ".github"} for p in parts[:-1])
        text = path.suffix in SUFFIXES or path.name in {"Makefile", "LICENSE"} or ".ci" in parts
        if text and path.is_file() and not hidden and not GENERATED & set(parts):
            yield path


@pytest.mark.thorough
def test_public_files_name_no_machine_path():
    files = list(public_files())
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert {"README.md", "pyproject.toml", "Makefile", "run"} <= {path.name for path in files}
    assert found == []


def test_machine_paths_are_recognised():
    slash = "/"
    assert MACHINE_PATH.search(f"see {slash}home{slash}ann/x.py")
    assert MACHINE_PATH.search(f"open('{slash}tmp{slash}x')")
    assert MACHINE_PATH.search(f"file:{slash * 3}root{slash}x")
    assert MACHINE_PATH.search("C:" + "\\Users\\ann")
    assert not MACHINE_PATH.search("https://example.org/work/paper")
    assert not MACHINE_PATH.search("#!/usr/bin/env bash")


def least_width(cell):
    """About the pixels that a cell of a table needs: its longest word, and padding."""
    widest = 0.0
    for k, part in enumerate(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).split("`")):
        for word in part.split():
            widest = max(widest, len(word) * (7.8 if k % 2 else 7.6) + 5 * (k % 2))
    return widest + 9


def test_tables_of_pages_fit_a_window_of_1200_pixels():
    """A wider table scrolls, and what is out of sight is not read. Tables of measurements may scroll."""
    wide = []
    for page in (ROOT / "docs").rglob("*.md"):
        for table in re.findall(r"(?:^\|.*\n)+", page.read_text("utf-8"), re.MULTILINE):
            rows = [re.split(r"(?<!\\)\|", row)[1:-1] for row in table.splitlines()]
            width = sum(max(map(least_width, column)) for column in zip(*rows, strict=False))
            if width > 640 and page.stem != "performance":
                wide.append((page.name, round(width), rows[0]))
    assert wide == []


def test_files_that_pages_name_exist():
    """A page named five files that had moved."""
    named = re.compile(r"`((?:symad|numeric|gpu|benchmarks|tests|examples)/[\w/]+\.(?:py|cu|md))`")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found = {(page.name, path) for page in pages for path in named.findall(page.read_text("utf-8"))}
    assert len(found) > 50
    assert [pair for pair in sorted(found) if not (ROOT / pair[1]).exists()] == []


def test_every_benchmark_is_in_the_index():
    folder = ROOT / "benchmarks"
    index = (folder / "README.md").read_text("utf-8")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    assert set(re.findall(r"`((?:\w+/)?\w+\.py)`", index)) == files - {"gpu/__init__.py"}


def code(page):
    """The lines of a page's code blocks, without their fences. Admonitions are prose."""
    fence = None
    for line in page.read_text("utf-8").splitlines():
        if fence is None and (opened := re.match(r"\s*(`{3,})(.*)", line)):
            fence, kind = opened.groups()
        elif fence is not None and line.strip() == fence:
            fence = None
        elif fence is not None and not kind.startswith("{admonition}"):
            yield line


def test_code_on_a_page_is_read_without_scrolling():
    """At most 84 columns. docs/listings.md is as printed; README.md, short of lines, has four wider ones."""
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
    pages += [path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "generated"} & {*path.parts}]
    lines = [(page.name, line) for page in pages for line in code(page)]
    assert len(lines) > 1500
    wide = [(name, line) for name, line in lines if len(line) > 84 and name != "listings.md"]
    assert [pair for pair in wide if pair[0] != "README.md"] == []
    assert len(wide) <= 4


BRITISH = re.compile(
    r"(?i:colour|behaviour|neighbour|centred|licence|labell|modell(?:ed|ing)|cancell(?:ed|ing)|favour|\bgrey\b"
    r"|(?:optim|normal|recogn|penal|symmetr|minim|maxim|general|standard|initial|linear|factor|regular"
    r"|vector|discret|special|summar|character|parametr|parameter|synchron)is(?:e|ed|er|ers|ing|ations?)\b)"
)


def british(files):
    """Lines of some files with a British form; names that still work as arguments left out."""
    earlier = re.compile(r"@renamed\(|optimisers|Optimiser|colour")
    for path in files:
        text = path.read_text("utf-8")
        for match in BRITISH.finditer(text):
            line = text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.end())]
            if path.suffix != ".py" or not earlier.search(line):
                yield f"{path.relative_to(ROOT)}: {line.strip()}"


def test_what_users_read_has_one_spelling():
    """The American one, as in the names of NumPy, SciPy and SymPy."""
    assert BRITISH.search("an optimiser") and not BRITISH.search("parallelism, characteristic")
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += [path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "generated"} & {*path.parts}]
    assert list(british([*pages, *(ROOT / "examples").rglob("*.py")])) == []


@pytest.mark.thorough
def test_docstrings_and_messages_have_this_spelling_too():
    assert list(british(p for name in ("symad", "numeric", "gpu") for p in (ROOT / name).rglob("*.py"))) == []
