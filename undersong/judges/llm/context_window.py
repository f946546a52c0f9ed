"""Context windows: how each kind of server says its own, and when a question does not fit or was cut."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from undersong.errors import JudgeError
from undersong.judges.llm.presets import Window

LONGEST_TOKEN = 4.5  # bytes: more than tokenizers take on average of prose, so that only what cannot fit is refused
CUT_TOKEN = 6.0  # bytes: no tokenizer takes so many on average of our instructions; fewer tokens: they were cut
REMEDY = {
    "": "start the server with a larger context, or ask a model with one",
    "ollama": "set OLLAMA_CONTEXT_LENGTH={needed} for the server, or num_ctx in the model's file",
    "lmstudio": "load the model with a context length of {needed} at least",
    "llamacpp": "start llama-server with -c {needed} for each of its slots (-np)",
    "vllm": "start the server with --max-model-len {needed}, or ask a model with a larger window",
}
Fetch = Callable[[str, dict[str, Any] | None], Awaitable[Any]]  # address, body or None to get → decoded JSON or None
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


async def ask_window(kind: Window, url: str, model: str, fetch: Fetch) -> int | None:
    """Tokens of context that a server has for one question, as it says itself; None where it does not."""
    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"
    if kind == "llamacpp":
        return _number(await fetch(f"{root}/props", None), "default_generation_settings", "n_ctx")
    if kind == "vllm":
        return _number(_named(await fetch(f"{root}/v1/models", None), "data", "id", model), "max_model_len")
    if kind == "lmstudio":
        loaded = _named(await fetch(f"{root}/api/v0/models", None), "data", "id", model)
        return _number(loaded, "loaded_context_length") or _number(loaded, "max_context_length")
    if kind == "ollama":
        running = _named(await fetch(f"{root}/api/ps", None), "models", "name", model)
        return _number(running, "context_length") or _parameter(await fetch(f"{root}/api/show", {"model": model}))
    return None


def check_fits(size: int, answer: int, window: int, kind: Window, where: str) -> None:
    """Raise JudgeError for a question of ``size`` bytes that cannot fit a window beside an answer of so many tokens."""
    needed = int(size / LONGEST_TOKEN) + answer
    if needed > window:
        what = f"a question takes {needed:,} tokens with its answer at least, and the context window has {window:,}"
        raise JudgeError(what, where=where, remedy=remedy_of(kind, 2 * needed))


def check_whole(system: str, tokens_in: int, kind: Window, where: str) -> None:
    """Raise JudgeError where a server counts fewer tokens than our instructions alone can have."""
    least = int(len(system.encode()) / CUT_TOKEN)
    if tokens_in < least:
        what = (
            f"the server cut the prompt: it counts {tokens_in:,} tokens, and the instructions have {least:,} at least"
        )
        raise JudgeError(what, where=where, remedy=remedy_of(kind, 4 * least))


def remedy_of(kind: Window, needed: int) -> str:
    """What to do about a window that is too small."""
    return REMEDY[kind].format(needed=-(-needed // 1024) * 1024)


def _named(answer: Any, listed: str, key: str, model: str) -> Any:
    """The entry of a model in a list; of a server with one model that one."""
    entries = answer.get(listed) if isinstance(answer, Mapping) else None
    if not isinstance(entries, list):
        return None
    same = [each for each in entries if isinstance(each, Mapping) and each.get(key) in (model, f"{model}:latest")]
    return same[0] if same else entries[0] if len(entries) == 1 else None


def _number(answer: Any, *path: str) -> int | None:
    for name in path:
        answer = answer.get(name) if isinstance(answer, Mapping) else None
    return answer if isinstance(answer, int) and answer > 0 else None


def _parameter(shown: Any) -> int | None:
    """``num_ctx`` of a model's own parameters, one a line."""
    parameters = shown.get("parameters") if isinstance(shown, Mapping) else None
    match = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return int(match[1]) if match else None
