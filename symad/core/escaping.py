"""Users' names in documents that do not accept every character: controls, surrogates, markup."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""Text in which control characters and lone surrogates are written out, such as ``\x1b``.

    Line ends and tabulators stay. The result controls no terminal, and every encoding and XML accept it.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t " else _written(c) for c in text)


def _written(character: str) -> str:
    spaces_and_joiners = character.isspace() or character in "\u200c\u200d"
    if spaces_and_joiners and character > "\x9f":
        return character
    return character.encode("unicode_escape").decode("ascii")


def without_tags(text: str) -> str:
    """`visible` text for Markdown that begins no HTML: ``<b`` becomes ``< b``, which reads the same."""
    parts = visible(text).split("<")
    rest = [f" {p}" if p[:1].isalpha() or p[:1] in ("/", "!", "?") else p for p in parts[1:]]
    return "<".join([parts[0], *rest])


def without_surrogates(text: str) -> str:
    """JSON text in which lone surrogates, which UTF-8 cannot encode, are written as JSON's escapes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in text)
    return text
