"""The fields' documentation is their definition's."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshet.cli.main import app
from freshet.config_reference import SUBJECTS, field_references, updated

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in SUBJECTS)
    fix = "run: python -m freshet.config_reference docs/configuration.md"
    assert updated(text) == text, fix


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_field_has_a_meaning(name: str) -> None:
    references = field_references(SUBJECTS[name])
    assert [each.name for each in references] == [
        f.name for f in dataclasses.fields(SUBJECTS[name])
    ]
    assert all(each.meaning.endswith(".") and each.form for each in references)


def test_the_command_describes_without_a_configuration(tmp_path: Path) -> None:
    environment = {"FRESHET_HOME": str(tmp_path), "FRESHET_CONFIG": ""}
    result = CliRunner().invoke(app, ["config", "--describe"], env=environment)
    assert result.exit_code == 0
    assert "kafka_bootstrap: text; required" in result.output
    described = json.loads(
        CliRunner().invoke(app, ["config", "--describe", "--json"], env=environment).output
    )
    assert [each["name"] for each in described["fields"]][:2] == ["kafka_bootstrap", "redis"]


def test_the_command_shows_sources_and_ends_with_all_problems(tmp_path: Path) -> None:
    file = tmp_path / "freshet.yaml"
    file.write_text("{kafka_bootstrap: 'a:1', redis: {'a:b': 'redis://c:1'}, home_region: 'a:b'}")
    arguments = ["config", "--config", str(file)]
    environment = {"FRESHET_STORE_PREFIX": "s:"}

    right = CliRunner().invoke(
        app, [*arguments, "--set", "topic_prefix=t.", "--json"], env=environment
    )
    fields = json.loads(right.output)["fields"]
    assert fields["kafka_bootstrap"] == {"value": "a:1", "source": f"file {file}"}
    assert fields["store_prefix"]["source"] == "environment FRESHET_STORE_PREFIX"
    assert fields["topic_prefix"] == {"value": "t.", "source": "command line"}
    assert fields["redis_cluster"] == {"value": False, "source": "default"}

    wrong = CliRunner().invoke(
        app, [*arguments, "--set", "priority_share=2", "--set", "start_offsets=never"]
    )
    assert wrong.exit_code == 1
    assert "priority_share" in wrong.output and "start_offsets" in wrong.output
