"""Hostile names of inputs in pictures, tables, certificates and files are shown and never interpreted."""

from __future__ import annotations

import xml.dom.minidom
from pathlib import Path

import pytest
import sympy as sp

import symad
from symad.core.identifiers import visible, without_tags

NAMES = ["a\0b", "a\x1b[31mb", "a\ud800b", "a\x9bb", "<script>alert(1)</script>", "a\x7fb"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_no_document_obeys_a_name(name: str, tmp_path: Path) -> None:
    v = sp.Symbol(name, real=True)
    graph = symad.gradient(v**2 + 3 * v)
    graph.draw(tmp_path / "g.svg")
    xml.dom.minidom.parse(str(tmp_path / "g.svg"))
    graph.draw(tmp_path / "g.dot")
    tables, certificate = graph.explain(**{name: 1.0}), symad.check(v**2 + 3 * v)
    texts = [str(tables), tables.to_latex(), str(certificate), repr(graph)]
    texts.append((tmp_path / "g.dot").read_text(encoding="utf-8"))
    marked = [tables.to_markdown(), certificate._repr_markdown_(), certificate._repr_html_()]
    for text in (*texts, *marked):
        assert all(c.isprintable() or c in "\n\t\u2009\u00a0" for c in text)
        text.encode("utf-8")
    assert not any("<script" in text for text in marked)
    assert symad.load(symad.save(graph, tmp_path / "g.json")) is graph


def test_ordinary_text_stays() -> None:
    for text in ("∂f/∂x = π², a < b <= c <3\n\tx", "名前 é 😀", ""):
        assert visible(text) == text and without_tags(text) == text
    assert visible("a\x1b[0m") == r"a\x1b[0m"
    assert without_tags("a<b <img> </p> <!-- x<2") == "a< b < img> < /p> < !-- x<2"
