"""``freshet config``: the configuration in force, and what its fields mean."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from freshet.cli.configuring import ConfigOption, SetOption
from freshet.cli.output import JsonOption, emit
from freshet.config import Config


def command(
    describe: Annotated[
        bool, typer.Option("--describe", help="Tell what each field means; needs no configuration.")
    ] = False,
    config_file: ConfigOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the configuration and show it, with the source of each field and no secret."""
    if describe:
        _describe(as_json=as_json)
        return
    sources = Config.sources(config_file, overrides=overrides or ())
    values = Config.from_sources(sources).masked()
    fields = {
        name: {"value": value, "source": sources.origins.get(name, "default")}
        for name, value in values.items()
    }
    table = Table("field", Column("value", overflow="fold"), Column("source", overflow="fold"))
    for name, field in fields.items():
        table.add_row(name, escape(_shown(field["value"])), escape(field["source"]))
    file = None if sources.file is None else str(sources.file)
    emit({"file": file, "fields": fields}, table, as_json=as_json)


def _shown(value: Any) -> str:
    if value is None or value == "" or value == {}:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _describe(*, as_json: bool) -> None:
    from freshet.config_reference import SUBJECTS, field_references

    known = {name: field_references(subject) for name, subject in SUBJECTS.items()}
    lines = []
    for name, fields in known.items():
        lines.append(f"[bold]{name}[/bold]")
        for each in fields:
            default = "required" if each.is_required else f"default: {each.default or 'none'}"
            lines += [
                f"{each.name}: {escape(each.form)}; {escape(default)}".replace("`", ""),
                *(f"    {escape(line)}" for line in textwrap.wrap(each.meaning.replace("`", ""))),
            ]
    values = {name: [dataclasses.asdict(each) for each in fields] for name, fields in known.items()}
    emit(values, *lines, as_json=as_json)
