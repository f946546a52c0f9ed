"""Providers as data, ``rules/providers.yaml``: interface, address, key variable, and how a run asks them by default."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec

from undersong.datafiles.yaml_loader import RULES, read
from undersong.errors import JudgeError, UsageError

OWN_KEY = "UNDERSONG_JUDGE_KEY"  # for a server by address: the provider's key is never sent to another host
SECRET_NAMES = ("key", "token", "secret", "password", "signature", "sig", "auth", "code")  # of queries that hold one

Window = Literal["", "ollama", "lmstudio", "llamacpp", "vllm"]


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One provider: see the file for each field; ``concurrency`` and ``timeout`` None: those of every run."""

    name: str
    speaks: Literal["anthropic", "openai", "bedrock", "command", "file"]
    source: str
    url: str = ""
    url_from: str = ""
    path: str = ""
    key: str = ""
    header: str = ""
    hosted: bool = False
    batch: bool = False
    cache_key: bool = False
    concurrency: int | None = None
    timeout: float | None = None
    window: Window = ""


class _ProvidersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    providers: tuple[Preset, ...]


class Endpoint(NamedTuple):
    """Where requests go: ``url`` None is the SDK's own address; ``source`` is the variable that named it, or "".

    ``query`` goes with every request. ``key`` names the variable that ``secret`` was read from; "" where the secret is
    missing and no server was named that might do without.
    """

    url: str | None
    query: dict[str, str]
    headers: dict[str, str]
    secret: str
    source: str = ""


@cache
def load_presets() -> dict[str, Preset]:
    """Name → preset, read once; raises RuleError with file and line."""
    return {preset.name: preset for preset in read(RULES / "providers.yaml", _ProvidersFile).providers}


def endpoint_of(provider: str, url: str | None, environment: Mapping[str, str]) -> Endpoint:
    """Where a provider's requests go and with which key; raises JudgeError where an address or a key is missing.

    A provider's key goes to its own address, and to one that its variable names; a server by ``url`` gets ``OWN_KEY``
    alone, but for a provider that has no address of its own.
    """
    preset = load_presets()[provider]
    from_variable = environment.get(preset.url_from, "") if preset.url_from and url is None else ""
    address = url or _with_path(from_variable, preset.path) or preset.url or None
    if address is None and preset.path:
        raise JudgeError(
            "no address", where=provider, remedy=f"set {preset.url_from} in the environment, or write @URL"
        )
    own = url is None or (not preset.url and preset.path != "")
    variable = preset.key if own and preset.key else OWN_KEY
    secret = environment.get(variable, "")
    if not secret and own and preset.key and preset.speaks != "bedrock":  # which may sign with the keys of AWS instead
        raise JudgeError("no key", where=provider, remedy=f"set {preset.key} in the environment")
    if address is None:
        return Endpoint(None, {}, {}, secret)
    base, query = split_query(address)
    headers = {preset.header: secret} if preset.header else {}
    return Endpoint(base, query, headers, secret, preset.url_from if from_variable else "")


def split_query(url: str) -> tuple[str, dict[str, str]]:
    """An address without its query, and the query: an SDK would put a path behind it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="", fragment="")), dict(parse_qsl(parts.query, keep_blank_values=True))


def refuse_secrets(url: str, where: str) -> None:
    """Raise UsageError for an address that holds a password or a key: addresses are written into stores and reports."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"is no address: {error}", where=where, remedy="write http://HOST:PORT/v1") from error
    secret = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if _is_secret(name)]
    if parts.username is not None or parts.password is not None or secret:
        what = "the address holds a user name, a password or a key, and addresses are written into reports"
        remedy = f"leave it out of the address and set {OWN_KEY} in the environment; 'Basic …' there is sent as it is"
        raise UsageError(what, where=where, remedy=remedy)


def without_secrets(url: str) -> str:
    """An address to be shown: without user name, password and query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _is_secret(name: str) -> bool:
    words = name.lower().replace("_", "-").split("-")
    return any(word in SECRET_NAMES or word.endswith(("key", "token")) for word in words)


def _with_path(address: str, path: str) -> str:
    """The address of a resource with the path of its interface, where it does not name one already."""
    if not address or not path or urlsplit(address).path.strip("/"):
        return address
    return address.rstrip("/") + path
