"""What symad writes as LaTeX is compiled by LaTeX: listings, formulas, derivations, tables, hostile names."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import symad
from symad.display.latex import escaped, latex_name
from symad.numeric import lower
from tests.symad.display.published_graphs import GRAPHS, PUBLISHED

sys.path.append(str(Path(__file__).resolve().parents[3] / "docs"))
from make_listings import LISTINGS

pytestmark = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")

x, y = sp.symbols("x y", real=True)

DOCUMENT = r"""\documentclass{article}
\usepackage{amsmath,tikz}
\pagestyle{empty}
\begin{document}
%s
\end{document}
"""
"""A plain document: amsmath is all that is promised to be enough, and tikz for pictures."""


def compiled(parts, folder):
    """The log of a document whose parts stand one below the other; an error of LaTeX fails the test."""
    (folder / "page.tex").write_text(DOCUMENT % "\n\n\\clearpage\n\n".join(parts), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = done.stdout.decode("utf-8", "replace")
    errors = log[log.find("\n!") :][:800]
    assert done.returncode == 0, errors
    assert (folder / "page.pdf").stat().st_size > 1000
    assert "Missing character" not in log, log[log.find("Missing character") :][:200]
    return log


def test_listings_of_kernels(tmp_path):
    graphs = [make() for make in (*GRAPHS.values(), *LISTINGS.values())]
    log = compiled([lower(graph).to_latex() for graph in graphs], tmp_path)
    assert f"({len(graphs)} pages" in log


def test_formulas_of_graphs(tmp_path):
    graphs = [*PUBLISHED.values(), *(make() for make in (*GRAPHS.values(), *LISTINGS.values()))]
    shown = [graph._repr_latex_() for graph in graphs]
    compiled([text for text in shown if text] + [rf"\[ {graph.to_latex()} \]" for graph in graphs], tmp_path)


def test_derivations_and_tables(tmp_path):
    f = symad.trace(sp.sin(x * y) ** 2 / x + sp.Max(x, y) + 3 * x)
    derivation = f.explain(as_latex=True)
    compiled([str(derivation._repr_latex_()), f.explain(x=2.0, y=0.5).to_latex()], tmp_path)


NAMES = [
    "a_b", "a_", "_a", "50%", "a&b", "#1", "a$b", "~", "a\\b", "{", "}{", "x^y", "a b", "a-b", "θ", "Δ_1",
    "é", r"\input{page}", r"\dot{\theta}_{1}", r"\mathbf{x}", r"x_{1}_{2}", r"\alpha", r"\write18{x}",
    "a\n\nb", "^^5c",
]  # fmt: skip
"""Names that are markup, names that are LaTeX, and names that LaTeX reads."""


def test_names_are_no_commands(tmp_path):
    parts = []
    for name in NAMES:
        symbol = sp.Symbol(name, real=True)
        f = symad.trace(symbol**2 * sp.exp(symbol + y), inputs=[symbol, y])
        formulas = [f.to_latex(), symad.gradient(f, y).to_latex(), f.explain(as_latex=True)]
        parts += [rf"\[ {formula} \]" for formula in formulas]
        parts += [lower(f).to_latex(), f.explain(**{name: 1.0, "y": 2.0}).to_latex()]
    log = compiled(parts, tmp_path)
    assert "page.tex" not in log[log.index("page.tex") + 8 :].replace("./page.tex", "", 1)


def test_names_are_shown(tmp_path):
    assert [latex_name(n) for n in ("theta_1", "θ", "a&b", r"\dot{q}", r"\input{q}", "x^y", "ΔT")] == [
        r"\theta_{1}", r"\theta", r"\text{a\&b}", r"\dot{q}", r"\text{\textbackslash{}input\{q\}}", "x^{y}",
        r"\Delta T",
    ]  # fmt: skip


def test_an_error_of_latex_is_seen(tmp_path):
    with pytest.raises(AssertionError, match="Undefined control sequence"):
        compiled([r"$\nosuchcommand$"], tmp_path)


def attention(Q, K, V):
    return np.sum((symad.functions.softmax(Q @ K.T) @ V) ** 2)


def rnn(W, U, h0, X):
    return np.sum(symad.functions.scan(lambda h, x: np.tanh(W @ h + U @ x), h0, X) ** 2)


@pytest.mark.thorough
def test_every_frame_of_every_mode(tmp_path):
    """Pictures and formulas of primed and dotted names, of transposes and entries of them."""
    rng = np.random.default_rng(0)
    shapes = {"Q": (3, 2), "K": (3, 2), "V": (3, 2)}, {"W": (3, 3), "U": (3, 2), "h0": (3,), "X": (5, 2)}
    explained = [
        symad.trace(program, inputs=list(named.values())).explain(
            **{k: rng.normal(size=s) for k, s in named.items()}
        )
        for program, named in zip((attention, rnn), shapes, strict=True)
    ]
    explained.append(symad.trace(sp.sin(x * y) + x**2).explain(x=2.0, y=0.5))
    frames = [path.read_text() for k, e in enumerate(explained) for path in e.play(tmp_path / f"{k}.tex")]
    assert len(frames) > 150
    compiled([r"\noindent " + frame for frame in frames[2::3]], tmp_path)


def test_marks_above_letters_are_commands():
    assert escaped("ṙ, P\u0304 and θ\u0307") == (r"$\dot{\mathrm{r}}$, $\bar{\mathrm{P}}$ and $\dot{\theta}$")
    assert [escaped(c) for c in ("é", "ö", "&\u0304")] == ["é", "ö", "\\&\u0304"]
