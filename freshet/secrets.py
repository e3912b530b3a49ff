"""Secrets by reference, and what is shown in place of those that are written out.

``${file:/run/secrets/kafka}`` stands for what is in a file, ``${env:KAFKA_PASSWORD}`` for a
variable of the environment, as in the configuration of Kafka's own clients. The reference is what
travels: into files, into a job's graph, to the TaskManagers. A client resolves it where it
connects, so a secret that has changed is read anew, and nothing on the way can show it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

MASK = "***"

MAX_BYTES = 1 << 16
"""Of one secret; keys and certificates are smaller, and what is larger is the wrong file."""

_REFERENCE = re.compile(r"\$\{(file|env):([^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(
    r"(password|passphrase|secret|token|jaas\.config|oauthbearer\.config|private\.key|key\.pem"
    r"|keystore\.key)$",
    re.IGNORECASE,
)
_SEEDS = re.compile(r",(?=[A-Za-z]+://)")
# With all that follows: an '&' of the secret's that should have been percent-encoded.
_QUERY_SECRET = re.compile(
    r"([?&][^=&]*(?:password|passphrase|secret|token)=)(.*)", re.IGNORECASE | re.DOTALL
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class SecretError(ValueError):
    """A reference leads to no secret; tells what is missing, never what is there."""


def resolve(text: str, encode: Callable[[str], str] = str) -> str:
    """The text with every reference replaced by its secret.

    Args:
        text: may have none.
        encode: applied to each secret, for a place where some characters mean something.

    Raises:
        SecretError: a reference leads to no secret.
    """
    return _REFERENCE.sub(lambda match: encode(_secret(match[1], match[2])), text)


def resolve_url(url: str) -> str:
    """The URL with its references replaced by their secrets, percent-encoded.

    Raises:
        SecretError: a reference leads to no secret.
    """
    return resolve(url, lambda secret: quote(secret, safe=""))


def rewrite(text: str, reference: Callable[[str, str], str], literal: Callable[[str], str]) -> str:
    """The text in another notation.

    Args:
        text: may have no references.
        reference: from a reference's kind (``file`` or ``env``) and what it names.
        literal: from what stands before, between and after references.
    """
    return "".join(
        literal(part) if match is None else reference(match[1], match[2])
        for part, match in _parts(text)
    )


def is_secret_property(name: str) -> bool:
    """Whether a Kafka property of this name has a secret as its value."""
    return _SECRET_NAME.search(name) is not None


def has_literal(text: str) -> bool:
    """Whether something other than references is written out in a secret."""
    return any(match is None for _, match in _parts(text))


def has_literal_password(url: str) -> bool:
    """Whether a password is written out in a URL, or in one of several with commas between."""
    return mask_url(url) != url


def reference_problems(where: str, text: str) -> list[str]:
    """What keeps the references of a text from being resolved here.

    Args:
        where: the text's place in the configuration.
        text: not repeated, since it may hold a secret.
    """
    problems = []
    for part, match in _parts(text):
        if match is None:
            if "${" in part:
                problems.append(
                    f"{where}: has a '${{' that begins neither ${{file:/absolute/path}} nor"
                    " ${env:NAME}"
                )
            continue
        try:
            _secret(match[1], match[2])
        except SecretError as error:
            problems.append(f"{where}: {error}")
    return problems


def mask(text: str) -> str:
    """A secret as it may be shown: its references, and the mask for all else."""
    return rewrite(text, _as_written, lambda _: MASK)


def mask_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Kafka properties as they may be shown."""
    return {n: mask(v) if is_secret_property(n) else v for n, v in properties.items()}


def mask_url(url: str) -> str:
    """A URL, or several with commas between, as it may be shown: no password but by reference.

    What is no URL but looks as if it held a password is masked, too.
    """
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    bare = _REFERENCE.sub(hold, url.replace("\0", ""))
    masked = ",".join(_mask_one(part) for part in _SEEDS.split(bare))
    return re.sub("\0(\\d+)\0", lambda match: held[int(match[1])], masked)


def shown(value: object) -> str:
    """A value as an error may quote it, from a place that should have no secret but might."""
    if isinstance(value, str):
        return repr(mask_url(value))
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple | set) else repr(value)


def url_parts(url: str) -> tuple[str, bool]:
    """Scheme of a URL whose secrets may be references, and whether it names a server or a socket.

    Raises:
        ValueError: it is no URL; without a word of it.
    """
    try:
        parts = urlsplit(_REFERENCE.sub("x", url))
        _ = parts.port
    except ValueError:
        raise ValueError("is no URL; a password in it must be percent-encoded") from None
    return parts.scheme, bool(parts.hostname or parts.path)


def _mask_one(url: str) -> str:
    # Up to the last '@': a password that should have been percent-encoded is hidden as a whole.
    head, at, rest = url.rpartition("@")
    if at:
        match = _SCHEME.match(head)
        scheme = "" if match is None else match[0]
        user, colon, password = head[len(scheme) :].partition(":")
        hidden = f"{user}:{_mask_held(password)}" if colon else _mask_held(user)
        url = f"{scheme}{hidden}@{rest}"
    return _QUERY_SECRET.sub(lambda match: match[1] + _mask_held(match[2]), url)


def _mask_held(text: str) -> str:
    """References, which are held back as numbers between zeros, and the mask for all else."""
    parts = re.split("(\0\\d+\0)", text)
    return "".join(part if part.startswith("\0") else MASK for part in parts if part)


def _as_written(kind: str, name: str) -> str:
    return f"${{{kind}:{name}}}"


def _parts(text: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    """The text's references, and what stands before, between and after them."""
    at = 0
    for match in _REFERENCE.finditer(text):
        if match.start() > at:
            yield text[at : match.start()], None
        yield match[0], match
        at = match.end()
    if at < len(text):
        yield text[at:], None


def _secret(kind: str, name: str) -> str:
    return _from_file(name) if kind == "file" else _from_environment(name)


def _from_environment(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise SecretError("${env:} needs the name of a variable, such as ${env:KAFKA_PASSWORD}")
    value = os.environ.get(name)
    if not value:
        state = "is empty" if value == "" else "is not set"
        raise SecretError(f"the environment variable {name} {state}; set it to the secret")
    return value


def _from_file(name: str) -> str:
    path = Path(name)
    if not path.is_absolute():
        raise SecretError(f"the file {name!r} is no absolute path; jobs run in other folders")
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
            raise SecretError(f"{name} is no file of at most {MAX_BYTES} bytes; name the secret's")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise SecretError(
            f"the file {name} cannot be read ({error.strerror}); mount the secret there, readable"
            " by this user"
        ) from None
    except UnicodeDecodeError:
        raise SecretError(f"the file {name} is not UTF-8 text; store the secret as text") from None
    # An editor's or echo's line break is not the secret's.
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise SecretError(f"the file {name} is empty; write the secret into it")
    return text
