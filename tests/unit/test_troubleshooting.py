"""Goal: the page's entries are errors that the code can print, word for word.

Method: an entry's heading quotes a message, with … for what is put in. Its fixed parts must stand
in one text of the source, in this order. Python's texts are its string literals, Java's are
literals that are joined by +.

Fails when: a message was changed or is gone, or the page quotes one that never was.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from freshet.stack.layout import CHECKOUT

PAGE = CHECKOUT / "docs" / "troubleshooting.md"
_MADE_UP = "…"
_PYTHON = ("freshet", "jobs", "docker")
_JAVA = ("connectors/src/main", "operators/src/main")

# A literal, and what may stand between it and the next one of the same text.
_LITERAL = r'"((?:[^"\\]|\\.)*)"'
_OPERAND = re.compile(rf"{_LITERAL}|[;{{}}]|,(?=\s*\")")


def python_texts(source: str) -> Iterator[str]:
    """String literals; what is put into one is …."""
    inside: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else _MADE_UP
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.value


def java_texts(source: str) -> Iterator[str]:
    """Literals of a statement or argument, with … between those that are not next to each other."""
    parts: list[str] = []
    end = 0
    for match in _OPERAND.finditer(source):
        if match[1] is None:
            if parts:
                yield "".join(parts)
            parts = []
        else:
            if parts and source[end : match.start()].strip() != "+":
                parts.append(_MADE_UP)
            # Loggers put what differs in place of braces.
            parts.append(match[1].replace("{}", _MADE_UP).replace('\\"', '"'))
        end = match.end()
    if parts:
        yield "".join(parts)


@cache
def texts() -> list[str]:
    """All of the source."""
    found: list[str] = []
    for folders, suffix, read in ((_PYTHON, ".py", python_texts), (_JAVA, ".java", java_texts)):
        for folder in folders:
            for file in sorted((CHECKOUT / folder).rglob(f"*{suffix}")):
                found += read(file.read_text(encoding="utf-8"))
    return found


def entries(page: Path = PAGE) -> list[str]:
    """The messages that headings quote."""
    return re.findall(r"^### `(.+)`$", page.read_text(encoding="utf-8"), re.MULTILINE)


def is_printed(message: str) -> bool:
    """Whether some text of the source has all fixed parts of a message, in this order."""
    parts = [part.strip() for part in message.split(_MADE_UP) if part.strip()]
    pattern = re.compile(".*?".join(map(re.escape, parts)), re.IGNORECASE | re.DOTALL)
    return any(pattern.search(text) for text in texts())


@pytest.mark.parametrize("message", entries())
def test_every_message_of_the_page_is_one_of_the_source(message: str) -> None:
    fixed = message.replace(_MADE_UP, "")
    assert len(fixed) >= 15, "too little of it is fixed to know it by"
    assert is_printed(message), "no text of the source is this message; correct the page"


def test_every_entry_quotes_a_message() -> None:
    headings = re.findall(r"^### .+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) == len(entries()) > 20
    assert len(set(entries())) == len(entries())


def test_messages_of_both_languages_are_found_and_others_are_not() -> None:
    assert is_printed("key record has format …, this build reads up to …")
    assert is_printed("no schema has the fingerprint …")
    assert not is_printed("key record has shape …, this build reads up to …")
    # Parts of two texts are no message.
    assert not is_printed("no schema has the fingerprint … this build reads up to …")
