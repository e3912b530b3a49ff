"""The users and rights of docs/security.md, as servers take them: what is told is what is tried."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from freshet.stack.layout import CHECKOUT

_CODE = re.compile("`([^`]*)`")
_RESOURCES = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP}
_OPERATIONS = {
    "READ": AclOperation.READ,
    "WRITE": AclOperation.WRITE,
    "CREATE": AclOperation.CREATE,
    "DESCRIBE": AclOperation.DESCRIBE,
}


def kafka_acls(principals: Mapping[str, str], prefix: str, region: str) -> list[AclBinding]:
    """ACLs of the page's users.

    Args:
        principals: of each user on the page, such as ``User:me``.
        prefix: ``topic_prefix``.
        region: that is sent to, ``provider:region``.
    """
    acls, users = [], set()
    for user, resource, name, operations in _rows("kafka"):
        (user,), (name,) = _CODE.findall(user), _CODE.findall(name)
        users.add(user)
        name = name.replace("<prefix>", prefix).replace("<region>", region.replace(":", "."))
        kind = ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL
        acls += [
            AclBinding(
                _RESOURCES[resource],
                name.removesuffix("*"),
                kind,
                principals[user],
                "*",
                _OPERATIONS[operation],
                AclPermissionType.ALLOW,
            )
            for operation in operations.split(", ")
        ]
    assert users == set(principals), users
    return acls


def redis_users(passwords: Mapping[str, str], prefix: str, table: str) -> str:
    """Redis's file of users: the page's, and one without a name or a right, who may only ping.

    Args:
        passwords: of each user on the page; another name is an administrator's.
        prefix: ``store_prefix``.
        table: name of the only table.
    """
    rights = {}
    for user, keys, commands in _rows("redis"):
        (name,) = _CODE.findall(user)
        rights[name] = " ".join(_CODE.findall(keys) + _CODE.findall(commands))
    assert set(rights) <= set(passwords), rights
    lines = ["user default on nopass -@all +ping"]
    for name, password in passwords.items():
        given = rights.get(name, "~* &* +@all").replace("<prefix>", prefix)
        hashed = hashlib.sha256(password.encode()).hexdigest()
        lines.append(f"user {name} on #{hashed} {given.replace('<table>', table)}")
    return "".join(f"{line}\n" for line in lines)


def _rows(which: str) -> Iterator[list[str]]:
    """Cells of a table on the page, without its head."""
    page = (CHECKOUT / "docs/security.md").read_text(encoding="utf-8")
    _, begin, rest = page.partition(f"<!-- rights: {which} -->\n")
    table, end, _ = rest.partition("<!-- end of rights -->")
    assert begin and end, which
    for line in table.splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]
