"""A Sphinx extension: docstrings are plain text with formulas in Unicode, |x| and W_ among them.

reStructuredText reads |x| as a substitution, W_ as a link and x*y as emphasis. These characters are
escaped here wherever they stand outside of code, and indented formulas keep their alignment, so that
docstrings stay readable in ``help()``.
"""

import re

CODE = re.compile(r"(``.*?``|`[^`]+`)")
SPECIAL = re.compile(r"[|*]|(?<=\w)_(?!\w)")
LETTER = re.compile(r"(?<=: )(\w)\.$")  # "width: d." is no list


def escaped(line):
    """``line`` with the characters that reStructuredText would interpret escaped, code left as it is."""
    if line.lstrip().startswith((">>>", "...", "* ", ":", ".. ")):
        return line
    parts = CODE.split(line)
    text = "".join(part if i % 2 else SPECIAL.sub(r"\\\g<0>", part) for i, part in enumerate(parts))
    return LETTER.sub(r"\1\.", text)


def indented(lines, i):
    """Does an indented block begin at line i: after a blank line, under text that is not indented?"""
    return i > 1 and lines[i][:1] == " " and not lines[i - 1].strip() and lines[i - 2][:1].strip() != ""


def adapt_docstring(app, what, name, obj, options, lines):
    """The handler of autodoc's event: ``lines`` is changed in place."""
    adapted = []
    code = block = False
    for i, line in enumerate(lines):
        if indented(lines, i) and not line.lstrip().startswith((">>>", "- ", "* ")):
            block = True
            adapted += [".. code-block:: text", ""]
        elif line[:1].strip():
            block = False
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        adapted.append(line if code or block else escaped(line))
    lines[:] = adapted


def setup(app):
    """Before napoleon, which runs at priority 500, so that its own markup is not escaped."""
    app.connect("autodoc-process-docstring", adapt_docstring, priority=400)
    return {"parallel_read_safe": True}
