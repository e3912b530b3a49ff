"""Loads table definitions from Python and YAML files, local or in an object store."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path, PurePosixPath
from typing import Any

import cloudpickle
import yaml

from freshet.errors import ConfigError
from freshet.functions import SHIPPED
from freshet.functions.base import FeatureFunction
from freshet.table.checks import Problems, suggestion
from freshet.table.definition import FeatureTable
from freshet.table.parts import (
    BUDGETS,
    Budget,
    Duration,
    OnDemand,
    Points,
    Source,
    WindowExtent,
)

_PREFERRED_NAME = "table"


def load_table(path: str | Path) -> FeatureTable:
    """Loads the table definition in a file.

    A ``.py`` file must make exactly one ``FeatureTable`` at module level, or name one ``table``.
    Its code, and that of modules in its folder that it imports, travels with the job. A ``.yaml``
    file has the fields of ``FeatureTable``; see ``docs/table-definition.md``.

    Args:
        path: a local path, or a URL that smart-open reads, such as ``s3://bucket/table.yaml``.

    Raises:
        ConfigError: with every problem of the definition, or why the file can't be read.
    """
    location = str(path)
    subject = f"table definition {location}"
    suffix = PurePosixPath(location).suffix.lower()
    if suffix not in (".py", ".yaml", ".yml"):
        raise ConfigError([f"{suffix or 'no suffix'} is unknown; use .py or .yaml"], subject)
    text = _read(location, subject)
    folder = None if "://" in location else Path(location).resolve().parent
    try:
        with _importing_from(folder):
            if suffix == ".py":
                return _find_table(_execute(text, location, subject), subject)
            return table_from_mapping(_parse_yaml(text, subject))
    except ConfigError as e:
        raise ConfigError(e.problems, subject) from e


def table_from_mapping(mapping: Mapping[str, Any]) -> FeatureTable:
    """The table of a parsed YAML definition.

    Raises:
        ConfigError: with every problem.
    """
    problems = Problems()
    known = {field.name: field for field in fields(FeatureTable)}
    problems.unknown_fields("", mapping, known)
    for name, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if required and name not in mapping:
            problems.append(f"{name} is missing")
    values: dict[str, Any] = {name: value for name, value in mapping.items() if name in known}
    builders = {
        "function": _function_of,
        "window": _window_of,
        "budget": _budget_of,
        "source": _source_of,
        "on_demand": _on_demand_of,
    }
    broken = set()
    for name, build in builders.items():
        if name in values:
            before = len(problems)
            values[name] = build(values[name], problems)
            if len(problems) > before:
                broken.add(name)
    problems += _problems_of_rest(values, broken, problems)
    if problems:
        raise ConfigError(problems, f"table definition {mapping.get('name')!r}")
    return FeatureTable(**values)


class _AnyFunction(FeatureFunction):
    """Stands in for a function that could not be made, so that all else is checked too."""

    def compute(self, window: object) -> float:
        raise NotImplementedError


def _problems_of_rest(values: dict[str, Any], broken: set[str], problems: Problems) -> list[str]:
    """Problems of the fields that could be read, with good ones in place of the broken."""
    stand_ins: dict[str, Any] = {
        "name": "table",
        "function": _AnyFunction(),
        "window": Points(1 << 20),
    }
    candidate = {name: value for name, value in values.items() if name not in broken}
    for name, stand_in in stand_ins.items():
        candidate.setdefault(name, stand_in)
    try:
        FeatureTable(**candidate)
    except ConfigError as e:
        return [problem for problem in e.problems if problem not in problems]
    return []


def _function_of(value: object, problems: Problems) -> FeatureFunction | None:
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        problems.append(
            "function must be a name, or a mapping with a name and the function's parameters, not "
            f"{value!r}"
        )
        return None
    parameters = {name: v for name, v in value.items() if name != "name"}
    try:
        made = _function_class(value["name"])
    except ConfigError as e:
        problems += e.problems
        return None
    before = len(problems)
    signature = inspect.signature(made)
    accepts_all = any(p.kind == p.VAR_KEYWORD for p in signature.parameters.values())
    if not accepts_all:
        problems.unknown_fields("function: ", parameters, signature.parameters)
    for name, parameter in signature.parameters.items():
        required = parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        if required and name not in parameters:
            problems.append(f"function.{name} is missing")
    if len(problems) > before:
        return None
    try:
        return made(**parameters)
    except Exception as e:
        problems.append(f"function: {made.__name__} refuses its parameters: {e!r}")
        return None


def _function_class(name: str) -> type[FeatureFunction]:
    if name in SHIPPED:
        return SHIPPED[name]
    module_name, colon, class_name = name.partition(":")
    if not colon:
        hint = suggestion(name, list(SHIPPED))
        raise ConfigError([f"function {name!r} is unknown{hint}, or 'module:Class' for your own"])
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except Exception as e:
        raise ConfigError(
            [
                f"function {name!r} can't be imported: {type(e).__name__}: {e}; its module must be "
                "beside the definition or installed"
            ]
        ) from e
    if not (isinstance(found, type) and issubclass(found, FeatureFunction)):
        raise ConfigError([f"function {name!r} is no subclass of freshet.FeatureFunction"])
    return found


def _window_of(value: object, problems: Problems) -> WindowExtent | None:
    if isinstance(value, dict) and len(value) == 1:
        if "points" in value:
            return Points(value["points"])
        if "duration" in value:
            return Duration(value["duration"])
    problems.append(f"window must be {{points: 864}} or {{duration: 3d}}, not {value!r}")
    return None


def _budget_of(value: object, problems: Problems) -> Budget | None:
    if not isinstance(value, dict) or "kind" not in value:
        problems.append(f"budget must be a mapping with a kind, one of {', '.join(BUDGETS)}")
        return None
    before = len(problems)
    problems.one_of("budget.kind", value["kind"], BUDGETS)
    if len(problems) > before:
        return None
    made = BUDGETS[value["kind"]]
    parameters = {name: v for name, v in value.items() if name != "kind"}
    problems.unknown_fields("budget: ", parameters, [field.name for field in fields(made)])
    required = [field.name for field in fields(made) if field.default is MISSING]
    problems.extend(f"budget.{name} is missing" for name in required if name not in parameters)
    return made(**parameters) if len(problems) == before else None


def _on_demand_of(value: object, problems: Problems) -> OnDemand | None:
    if value is None:
        return None
    if not isinstance(value, dict) or "max_staleness" not in value:
        problems.append(
            f"on_demand must be a mapping such as {{max_staleness: 5m, max_wait: 500ms}}, not "
            f"{value!r}"
        )
        return None
    before = len(problems)
    problems.unknown_fields("on_demand: ", value, [field.name for field in fields(OnDemand)])
    return OnDemand(**value) if len(problems) == before else None


def _source_of(value: object, problems: Problems) -> Source | None:
    if not isinstance(value, dict):
        problems.append(f"source must be a mapping, not {value!r}")
        return None
    before = len(problems)
    problems.unknown_fields("source: ", value, [field.name for field in fields(Source)])
    return Source(**value) if len(problems) == before else None


def _read(location: str, subject: str) -> str:
    import smart_open

    try:
        with smart_open.open(location, encoding="utf-8") as file:
            return str(file.read())
    except Exception as e:
        raise ConfigError([f"can't be read: {e}"], subject) from e


def _parse_yaml(text: str, subject: str) -> Mapping[str, Any]:
    try:
        parsed = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise ConfigError([f"is no YAML: {' '.join(str(e).split())}"], subject) from e
    if not isinstance(parsed, dict):
        raise ConfigError(["must be a mapping of the table's fields"], subject)
    return parsed


def _execute(text: str, location: str, subject: str) -> types.ModuleType:
    digest = hashlib.sha256(location.encode()).hexdigest()[:8]
    name = f"freshet_table_{PurePosixPath(location).stem}_{digest}"
    module = types.ModuleType(name)
    module.__file__ = location
    sys.modules[name] = module  # dataclasses and pickling look a class's module up by name
    cloudpickle.register_pickle_by_value(module)
    try:
        exec(compile(text, location, "exec"), module.__dict__)
    except ConfigError:
        raise
    except BaseException as e:
        raise ConfigError([f"{_line_of(e, location)}{type(e).__name__}: {e}"], subject) from e
    return module


def _line_of(error: BaseException, location: str) -> str:
    if isinstance(error, SyntaxError) and error.filename == location:
        return f"line {error.lineno}: "
    line, traceback = None, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == location:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return "" if line is None else f"line {line}: "


def _find_table(module: types.ModuleType, subject: str) -> FeatureTable:
    preferred = getattr(module, _PREFERRED_NAME, None)
    if isinstance(preferred, FeatureTable):
        return preferred
    found: dict[int, tuple[str, FeatureTable]] = {}
    for name, value in vars(module).items():
        if isinstance(value, FeatureTable):
            found.setdefault(id(value), (name, value))
    if len(found) == 1:
        return next(iter(found.values()))[1]
    if not found:
        raise ConfigError(["makes no FeatureTable at module level"], subject)
    names = ", ".join(name for name, _ in found.values())
    raise ConfigError(
        [
            f"makes {len(found)} tables: {names}; keep one in a file, or name one "
            f"{_PREFERRED_NAME!r}"
        ],
        subject,
    )


@contextmanager
def _importing_from(folder: Path | None) -> Iterator[None]:
    """Makes modules of a folder importable, and has those that were imported travel by value."""
    if folder is None:
        yield
        return
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for module in list(sys.modules.values()):
            if _is_of_folder(module, folder):
                cloudpickle.register_pickle_by_value(module)


def _is_of_folder(module: types.ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    if not file or module.__name__.partition(".")[0] in ("freshet", "__main__"):
        return False
    path = Path(file)
    installed = "site-packages" in path.parts or "dist-packages" in path.parts
    return not installed and path.is_relative_to(folder) and module.__name__ in sys.modules
