"""The documentation of a configuration's fields, out of their definition.

``python -m freshet.config_reference docs/configuration.md`` brings the tables of that page up to
date.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freshet.config import Config
from freshet.regions import Region

SUBJECTS: dict[str, type[Any]] = {"fields": Config, "fields of a region": Region}
"""What a page may have a table of, by the name in its mark."""

_FORMS = {
    "str": "text",
    "bool": "true or false",
    "int": "whole number",
    "float": "number",
    "Mapping[str, str]": "mapping of names to text",
    "Mapping[str, Region]": "mapping of regions to their fields",
}
_DURATIONS = ("_ms",)
_MARKED = re.compile(r"(<!-- table: ([a-z ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


@dataclass(frozen=True)
class FieldReference:
    """What there is to know of one field."""

    name: str
    form: str
    """What its value is, for people."""

    default: str
    """As in YAML; empty for none."""

    is_required: bool
    meaning: str


def field_references(subject: type[Any]) -> list[FieldReference]:
    """The fields of a dataclass, in their order.

    Args:
        subject: one of ``SUBJECTS``.
    """
    meanings = _meanings(subject)
    return [
        FieldReference(
            definition.name,
            _form(definition),
            _default(definition),
            _is_required(definition),
            meanings[definition.name],
        )
        for definition in dataclasses.fields(subject)
    ]


def markdown_table(subject: type[Any]) -> str:
    """The fields as a table for a page."""
    rows = ["| field | value | default | meaning |", "|---|---|---|---|"]
    for each in field_references(subject):
        default = "required" if each.is_required else f"`{each.default}`" if each.default else ""
        meaning = each.meaning.replace("``", "`").replace("|", "\\|")
        rows.append(f"| `{each.name}` | {each.form} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def updated(page: str) -> str:
    """The page with each of its marked tables as the definitions have it."""
    return _MARKED.sub(
        lambda match: f"{match[1]}{markdown_table(SUBJECTS[match[2]])}{match[3]}", page
    )


def _meanings(subject: type[Any]) -> dict[str, str]:
    """The text below each field in the source."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(subject))).body
    assert isinstance(definition, ast.ClassDef), "a class's source is one class"
    meanings = {}
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            meanings[field.target.id] = " ".join(str(after.value.value).split())
    return meanings


def _form(definition: dataclasses.Field[Any]) -> str:
    annotation = str(definition.type).removesuffix(" | None")
    if annotation == "int" and definition.name.endswith(_DURATIONS):
        return "milliseconds, or a duration such as `1d`"
    return _FORMS[annotation]


def _default(definition: dataclasses.Field[Any]) -> str:
    value = definition.default
    if definition.default_factory is not dataclasses.MISSING:
        value = definition.default_factory()
    if value is dataclasses.MISSING or value in (None, "", {}):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_required(definition: dataclasses.Field[Any]) -> bool:
    return (
        definition.default is dataclasses.MISSING
        and definition.default_factory is dataclasses.MISSING
    )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        file = Path(argument)
        file.write_text(updated(file.read_text(encoding="utf-8")), encoding="utf-8")
