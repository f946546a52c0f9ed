"""GitHub Copilot Chat as VS Code exports it (``Chat: Export Chat...``), and its stored ``chatSessions/*.json``.

Shape: ``IExportableChatData`` and ``ISerializableChatRequestData`` of microsoft/vscode (workbench/contrib/chat/common,
chatModel.ts): ``requests`` with ``message``, ``response`` parts and ``result``; ``result.metadata.toolCallRounds`` and
``toolCallResults``, which the Copilot extension writes, hold the calls with their arguments and answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.agent_log import AgentLog, as_object
from undersong.formats.json_stream import JsonRecord, elements, problems_of, read_records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog
from undersong.models import Problem, SourceRef, ToolCall, ToolResult

_KEYS = frozenset(
    ("message", "response", "requestId", "responseId", "result", "timestamp", "modelId", "variableData", "agent",
     "responseMarkdownInfo", "contentReferences", "isCanceled")
)  # fmt: skip
_ABOUT_KEYS = frozenset(
    ("requests", "responderUsername", "requesterUsername", "sessionId", "customTitle", "version", "initialLocation")
)
_PART_KEYS = frozenset(
    ("kind", "value", "content", "uris", "supportThemeIcons", "supportHtml", "baseUri", "vulnerabilities")
)
_RESULT_KEYS = frozenset(("metadata", "errorDetails", "details", "usage", "nextQuestion"))
_METADATA_KEYS = frozenset(("toolCallRounds", "toolCallResults", "codeBlocks", "cacheKey"))
_ROUND_KEYS = frozenset(("id", "response", "thinking", "toolCalls", "toolInputRetry", "statefulMarker", "timestamp"))
UNTOLD = "result of a call that is not told, not read"
_TEXT = (None, "markdownContent", "markdownVuln")  # a tuple: a kind may be anything


def sniff(sample: FormatSample) -> bool:
    """Requests beside the name of who answers them."""
    return sample.under((), ("requests", "responderUsername")) or sample.under(
        (), ("requests.message", "requests.response", "requests.requestId")
    )


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per export."""
    return read_records(source, (), _conversation)


def _conversation(record: JsonRecord, fallback: str, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    requests = value.get("requests") if isinstance(value, dict) else None
    if not isinstance(requests, list):
        yield Problem(what="a record without a list of 'requests'", where=str(ref))
        return
    notes.unread(value, ref, _ABOUT_KEYS)
    log = AgentLog(values.name(value.get("sessionId")) or fallback.removesuffix("-0"))
    yield from problems_of(elements(requests, ref, "requests"), lambda one, where: _request(log, one, where, notes))
    conversation = log.conversation("copilot", values.string(value.get("customTitle")))
    if conversation is not None:
        yield conversation
    else:
        notes.add(values.EMPTY, ref)


def _request(log: AgentLog, request: Any, ref: SourceRef, notes: SkipLog) -> None:
    if not isinstance(request, dict):
        raise RecordError("a request that is not an object")
    message, time = request.get("message"), notes.time(request.get("timestamp"), ref)
    notes.marks(request, ref)
    notes.unread(request, ref, _KEYS)
    if as_object(as_object(request.get("result")).get("errorDetails")):
        notes.add("error of a request, not read", ref)
    asked = message.get("text") if isinstance(message, dict) else message
    if not isinstance(asked, str) and isinstance(message, dict):
        asked = values.text(message.get("parts"))
    if not isinstance(asked, str):
        raise RecordError("a request without a message")
    log.say("user", asked, ref, time=time, message_id=values.name(request.get("requestId")))
    model = values.string(request.get("modelId"))
    result = as_object(request.get("result"))
    notes.unread(result, ref, _RESULT_KEYS)
    notes.no_object(request, ref, "result")
    metadata = as_object(result.get("metadata"))
    notes.unread(metadata, ref, _METADATA_KEYS)
    notes.no_object(result, ref, "metadata")
    notes.no_object(metadata, ref, "toolCallResults")
    listed = metadata.get("toolCallRounds")
    rounds = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    if missing := (len(listed) if isinstance(listed, list) else int(bool(listed))) - len(rounds):
        notes.add("round of an agent that is not an object, not read", ref, missing)
    results = as_object(metadata.get("toolCallResults"))
    if any(each.get("toolCalls") for each in rounds):
        _rounds(log, rounds, results, ref, model, notes)
        is_answered = values.string(rounds[-1].get("response")) or rounds[-1].get("toolCalls")
        shown = _text(request.get("response")) if not is_answered else ""
        if shown:
            log.say("assistant", shown, ref, model=model)
        else:
            _note_shown(request.get("response"), rounds, ref, notes)
        return
    if results:
        notes.add(UNTOLD, ref)
    _parts(log, request.get("response"), ref, model, notes)


def _note_shown(parts: Any, rounds: list[dict[str, Any]], ref: SourceRef, notes: SkipLog) -> None:
    """Note each text of a response that stands in none of the rounds, which are read in its place."""
    words = " ".join(" ".join((values.string(each.get("response")) or "").split()) for each in rounds)
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and part.get("kind") in _TEXT and " ".join(_text([part]).split()) not in words:
            notes.add("text that was shown and stands in no round, not read", ref)


def _rounds(
    log: AgentLog,
    rounds: list[dict[str, Any]],
    results: Mapping[str, Any],
    ref: SourceRef,
    model: str | None,
    notes: SkipLog,
) -> None:
    """Each round of an agent: what it said, what it called, what came back."""
    unclaimed = set(results)
    for step in rounds:
        notes.unread(step, ref, _ROUND_KEYS)
        notes.no_object(step, ref, "thinking")
        log.think(values.text(as_object(step.get("thinking")).get("text")))
        calls = notes.calls(step.get("toolCalls"), values.tool_call, ref)
        text = values.string(step.get("response")) or ""
        if text or calls:
            log.say("assistant", text, ref, calls=calls, model=model)
        for call in calls:
            if call.id is not None and call.id in results:
                unclaimed.discard(call.id)
                text = _answer(as_object(results[call.id]), ref, notes)
                log.answer(ToolResult(text=text, call_id=call.id), ref)
    if unclaimed:
        notes.add(UNTOLD, ref)


def _answer(result: Mapping[str, Any], ref: SourceRef, notes: SkipLog) -> str:
    """What a call printed; a note for each part that has no value."""
    content = result.get("content")
    parts = [as_object(part) for part in content] if isinstance(content, list) else []
    if missing := int(not isinstance(content, list)) + sum("value" not in part for part in parts):
        notes.add("part of a result without a value, not read", ref, missing)
    return "\n".join(values.printed(part.get("value")) for part in parts)


def _parts(log: AgentLog, parts: Any, ref: SourceRef, model: str | None, notes: SkipLog) -> None:
    """The parts of a response in order, where the calls are told as what was shown of them."""
    words: list[str] = []
    if parts is not None and not isinstance(parts, list):
        notes.add("response that is not a list of parts, not read", ref)
    for part in parts if isinstance(parts, list) else ():
        notes.misplaced(part, ref)
        kind = part.get("kind") if isinstance(part, dict) else "unknown"
        if kind in _TEXT:
            words.append(_text([part]))
            notes.unread(part, ref, _PART_KEYS)
            value = part.get("value")
            notes.unread(value if isinstance(value, dict) else {}, ref, _PART_KEYS - {"content"})
        elif kind == "thinking":
            log.think(values.printed(part.get("value")))
        elif kind == "toolInvocationSerialized":
            call, result = _invocation(part)
            log.say("assistant", "".join(words), ref, calls=(call,), model=model)
            words = []
            if result is not None:
                log.answer(result, ref)
        elif kind == "inlineReference":
            words.append(f"`{values.string(part.get('name')) or _path(part.get('inlineReference'))}`")
        elif kind == "textEditGroup":
            log.say("assistant", "".join(words), ref, calls=(_edit(part),), model=model)
            words = []
        else:
            notes.add(f"part of kind {str(kind)[:40]!r}, read as no message", ref)
    text = "".join(words)
    if text.strip():
        log.say("assistant", text, ref, model=model)


def _invocation(part: Mapping[str, Any]) -> tuple[ToolCall, ToolResult | None]:
    """A call that was shown, and what a terminal printed for it, where that is kept."""
    data = as_object(part.get("toolSpecificData"))
    line = data.get("commandLine")
    written = (as_object(line).get("original"), line, data.get("command"))
    command = next((each for each in written if isinstance(each, str) and each), None)
    name = "run_in_terminal" if command else values.name(part.get("toolId")) or "tool"
    call_id = values.name(part.get("toolCallId"))
    call = ToolCall(name=name, id=call_id, input={"command": command} if command else {"shown": _shown(part)})
    output = values.string(as_object(data.get("terminalCommandOutput")).get("text"))
    code = as_object(data.get("terminalCommandState")).get("exitCode")
    if output is None and not isinstance(code, int):
        return call, None
    failed = code != 0 if isinstance(code, int) and not isinstance(code, bool) else None
    return call, ToolResult(text=output or "", call_id=call_id, is_error=failed)


def _edit(part: Mapping[str, Any]) -> ToolCall:
    edits = part.get("edits")
    groups = [each for each in edits if isinstance(each, list)] if isinstance(edits, list) else []
    texts = [as_object(edit).get("text") for group in groups for edit in group]
    new = "\n".join(text for text in texts if isinstance(text, str))
    return ToolCall(name="insert_edit_into_file", input={"path": _path(part.get("uri")), "code": new})


def _shown(part: Mapping[str, Any]) -> str:
    message = part.get("pastTenseMessage") or part.get("invocationMessage")
    return values.string(message) or values.string(as_object(message).get("value")) or ""


def _text(parts: Any) -> str:
    """The words of the parts that are text."""
    if isinstance(parts, str):
        return parts
    texts = []
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and part.get("kind") in _TEXT:
            value = part.get("value", as_object(part.get("content")).get("value"))
            texts.append(value if isinstance(value, str) else as_object(value).get("value") or "")
    return "".join(text for text in texts if isinstance(text, str))


def _path(uri: Any) -> str:
    target = as_object(uri)
    paths = (target.get("fsPath"), target.get("path"), as_object(target.get("uri")).get("path"))
    return next((path for path in paths if isinstance(path, str) and path), "")
