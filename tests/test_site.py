"""The site: every page is linked, every link within it has a target, and no network is needed to build it."""

import ast
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and "generated" not in p.parts)
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def prose(page):
    """A page without its code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """The names of headings, as GitHub and MyST make them."""
    made = set()
    for title in HEADING.findall(prose(page)):
        words = re.sub(r"[^\w\- ]", "", title.strip().lower())
        made.add(words.replace(" ", "-"))
    return made


ALL = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]


@pytest.mark.parametrize("page", ALL, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_within_the_repository_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if page.parent == DOCS and path == "CHANGELOG.md":
            continue
        assert target.exists(), f"{link}: there is no {target}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: {target.name} has no such heading"


def test_every_page_is_in_a_table_of_contents():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
    entries = [line for block in blocks for line in block.splitlines() if line and not line.startswith(":")]
    listed = {re.sub(r".*<(.*)>", r"\1", entry).strip() for entry in entries}
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in PAGES} - {"index"}
    pages |= {p.relative_to(DOCS).with_suffix("").as_posix() for p in (DOCS / "notebooks").glob("*.ipynb")}
    assert pages == listed


def test_every_public_name_has_a_page_of_the_reference():
    listed, module = set(), ""
    for line in (DOCS / "reference" / "index.md").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.rpartition(" ")[2]
        elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
            listed.add(f"{module}.{line.strip()}")
    again = {f"symad.functions.{name}" for name in ("register_function", "remat", "stop_gradient")}
    for name in ("color", "jacobian_sparsity", "hessian_sparsity", "ORDERS"):
        again.add(f"symad.sparsity.{name}")
    for part in ("", ".functions", ".numeric", ".numeric.scale", ".gpu", ".sparsity"):
        names = {f"symad{part}.{name}" for name in importlib.import_module(f"symad{part}").__all__}
        assert names - listed - again <= {"symad.functions", "symad.numeric"}  # modules
    for module in ("torch", "jax"):
        source = (ROOT / "symad" / module / "__init__.py").read_text(encoding="utf-8")
        names = ast.literal_eval(re.search(r"__all__ = (\[.*?\])", source, re.DOTALL)[1])
        assert {f"symad.{module}.{name}" for name in names} <= listed


def configuration(monkeypatch, **environment):
    """The site's configuration, as Sphinx reads it."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("site_configuration", DOCS / "conf.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])  # it puts stand-ins for absent libraries there
    spec.loader.exec_module(module)
    return module


def test_no_other_site_is_asked_unless_it_is_wanted(monkeypatch):
    monkeypatch.delenv("SYMAD_INTERSPHINX", raising=False)
    offline = configuration(monkeypatch)
    assert all(os.path.exists(path) for _, path in offline.intersphinx_mapping.values())
    online = configuration(monkeypatch, SYMAD_INTERSPHINX="1")
    assert set(online.intersphinx_mapping) == set(online.LIBRARIES)


def test_stand_ins_for_absent_libraries_are_of_the_site_alone(monkeypatch):
    with monkeypatch.context() as of_the_site:
        configuration(of_the_site)
    assert not any(type(finder).__module__ == "absent_libraries" for finder in sys.meta_path)


def test_a_picture_of_the_gallery_keeps_the_colors_of_a_few_points(monkeypatch):
    image_of = pytest.importorskip("PIL.Image").fromarray
    monkeypatch.syspath_prepend(str(DOCS))
    import make_gallery
    import numpy as np

    drawn = np.full((300, 300, 3), 255)
    slopes = np.broadcast_arrays(np.arange(250)[:, None] // 2, np.arange(300) // 2, 90)
    drawn[:250] = np.stack(slopes, axis=-1)
    classes = [(255, 127, 14), (188, 189, 34), (44, 160, 44), (140, 86, 75)]  # of Matplotlib's tab10
    drawn[280, 10:50] = np.repeat(classes, 10, axis=0)
    kept = np.asarray(make_gallery.few_colors(image_of(drawn.astype(np.uint8))).convert("RGB"), dtype=int)
    assert np.abs(kept - drawn)[280].max() <= 20


@pytest.mark.thorough
def test_the_cheat_sheet_is_one_page_to_print(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(DOCS))
    import make_cheatsheet

    text = (DOCS / "cheatsheet.md").read_text(encoding="utf-8")
    rows = make_cheatsheet.rows_of(text)
    assert len(rows) == sum(line.startswith("|") and "---" not in line for line in text.splitlines())
    assert sum(len(column) for column in make_cheatsheet.columns_of(rows)) == len(rows)
    make_cheatsheet.write(tmp_path / "sheet.pdf")
    made = (tmp_path / "sheet.pdf").read_bytes()
    assert made.startswith(b"%PDF") and made.count(b"/Type /Page ") == 1
    with pytest.raises(ValueError, match="columns"):
        make_cheatsheet.columns_of(rows * 5)


def test_the_workflow_on_the_page_is_the_file():
    page = (DOCS / "audits.md").read_text(encoding="utf-8")
    file = (DOCS / "derivatives.yml").read_text(encoding="utf-8")
    assert f"```yaml\n{file}```" in page
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load(file)["jobs"]["certificates"]["steps"]
    assert steps[-1]["run"].startswith("pytest ")


@pytest.fixture
def gallery(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("make_gallery")


def test_every_picture_of_an_example_has_a_thumbnail_with_three_words(gallery):
    examples = gallery.drawing_examples()
    assert {e.stem[:2] for e in examples} == set(gallery.TITLES)
    assert all(2 <= len(title.split()) <= 4 for title in gallery.TITLES.values())
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for number, title in gallery.TITLES.items():
        assert f"{{grid-item-card}} {title}\n" in page and f"(gallery-{number})=" in page


def test_what_the_lecture_shows_is_made_of_its_example(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS))
    import make_lecture

    page = (DOCS / "start" / "lecture.md").read_text("utf-8")
    assert "sp.sin(x*y) + x**2" in page and "explain(x=2.0, y=0.5)" in page
    assert '<a href="../_static/steps.html">' in page
    make_lecture.example().draw(tmp_path / "lecture.svg")
    assert (tmp_path / "lecture.svg").read_text("utf-8") == make_lecture.PICTURE.read_text("utf-8")
    make_lecture.write_steps(tmp_path / "_static" / "steps.html")
    assert "reverse over reverse" in (tmp_path / "_static" / "steps.html").read_text("utf-8")
