"""Only `accept` makes a status: no other code names an entry proved or tested, whatever it has found."""

import ast
import re
from pathlib import Path

import symad

ROOT = Path(symad.__file__).parent
MADE = ("proved", "tested")
ASKS = {"entries_of", "isin", "get", "count", "index"}
"""Calls that ask for a status that there is."""


def makers(text):
    """The lines of a module on which a status is a value that is passed, stored or returned."""
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    return [n.lineno for n in ast.walk(tree)
            if isinstance(n, ast.Constant) and n.value in MADE and _is_made(n, parents)]  # fmt: skip


def _is_made(node, parents):
    above = parents[node]
    while isinstance(above, (ast.IfExp, ast.BoolOp, ast.keyword)):
        if isinstance(above, ast.keyword) and above.arg == "level":
            return False
        if isinstance(above, ast.IfExp) and node is above.test:
            return False
        node, above = above, parents[above]
    if isinstance(above, ast.Call):
        name = above.func.attr if isinstance(above.func, ast.Attribute) else getattr(above.func, "id", "")
        return name not in ASKS and node is not above.func
    return isinstance(above, (ast.Assign, ast.AnnAssign, ast.Return, ast.NamedExpr, ast.Yield))


def test_what_makes_a_status_is_seen():
    for text in ('Entry("f", "proved", "")', 'replace(entry, status="tested")', 's[k] = "proved"',
                 'status = "proved" if good else "tested"', 'np.full(shape, "tested", dtype=object)',
                 "def f():\n    return 'proved'"):  # fmt: skip
        assert makers(text), text
    for text in ('e.status == "proved"', 'c.entries_of("proved")', 'e.status in ("proved", "tested")'):
        assert not makers(text), text


def test_no_code_makes_a_status():
    """The names of statuses are paired with grounds once, in `accept`, and given out there alone."""
    texts = {f: f.read_text(encoding="utf-8") for f in ROOT.rglob("*.py")}
    named = {f: text for f, text in texts.items() if any(f'"{status}"' in text for status in MADE)}
    assert len(texts) > 500 and len(named) > 5
    assert not [f"{f.relative_to(ROOT)}:{line}" for f, text in named.items() for line in makers(text)]
    used = [f.name for f, text in texts.items() if re.search(r"\bSTATUS\b[^E]", text)]
    assert set(used) <= {"accept.py", "check_command.py"}  # which has colors of its own
