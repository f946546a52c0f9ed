"""Our session JSON, version 1 (also accepted as mpc-es), with an optional file of telemetry beside it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from undersong.errors import InputError, RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import JsonRecord, read_records, records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import OpenInput, TextSource
from undersong.formats.values import EMPTY, SkipLog, inside
from undersong.models import Break, Conversation, InputFile, Message, Problem, SourceRef

SCHEMA = "undersong.session"
VERSION = 1


_KEYS = frozenset(
    ("id", "index", "role", "author", "text", "agent_id", "ts", "time", "reply_to", "target", "model", "latency_ms",
     "tokens", "tool_calls", "tool_results", "code_blocks")
)  # fmt: skip
_SESSION_KEYS = frozenset(("id", "title", "started_at", "ended_at", "tz", "timezone"))
_ABOUT_KEYS = frozenset(("schema", "version", "session", "telemetry", "turns", "context"))


def sniff(sample: FormatSample) -> bool:
    """``turns`` beside ``session``, or the name of the schema."""
    return sample.has("turns", "session") or SCHEMA in sample.values_at("schema")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation per session object; turn times and breaks of a telemetry file fill what the session lacks."""
    beside = NONE
    stem = Path(source.name).name.split(".")[0]
    path = source.sibling(f"{stem}.telemetry.json") or source.sibling("telemetry.json")
    if path:
        for item in read_beside(path, str(Path(source.name).with_name(path.name))):
            if isinstance(item, Overlay):
                beside = item
            else:
                yield item
    yield from read_records(
        source, ("sessions", "data"), lambda record, fallback, notes: _session(record, fallback, beside, notes)
    )


def _session(record: JsonRecord, fallback: str, beside: Overlay, notes: SkipLog) -> Iterator[Item]:
    value, ref = record
    turns = value.get("turns") if isinstance(value, dict) else None
    if not isinstance(turns, list):
        yield Problem(what="a session without a list of 'turns'", where=str(ref), remedy="see docs/formats.md")
        return
    if value.get("version", VERSION) != VERSION:
        notes.add(f"session of a version other than {VERSION}, read as version {VERSION}", ref)
    notes.unread(value, ref, _ABOUT_KEYS)
    about = value["session"] if isinstance(value.get("session"), dict) else {}
    notes.unread(about, ref, _SESSION_KEYS)
    notes.no_object(value, ref, "session", "telemetry")
    listed = value.get("context")
    if listed is not None and not (isinstance(listed, list) and all(isinstance(each, str) for each in listed)):
        notes.unread({"context": listed}, ref, frozenset())
    key = values.name(about.get("id")) or fallback
    own = overlay(value.get("telemetry"))
    clock = (own if not own.empty else NONE).over(beside if beside.session in (None, key) else NONE)
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        place = inside(ref, "turns", index)
        try:
            messages.append(_turn(turn, place, key, index, clock, notes))
        except RecordError as error:
            yield Problem(what=f"turn {index}: {error.what}", where=str(place), remedy=error.remedy)
    if not turns:
        notes.add(EMPTY, ref)
    if messages:
        context = value.get("context")
        yield Conversation(
            id=key,
            source_format="session",
            messages=tuple(messages),
            title=values.string(about.get("title")),
            started_at=values.time_or_none(about.get("started_at")),
            ended_at=values.time_or_none(about.get("ended_at")),
            timezone=values.string(about.get("tz")) or values.string(about.get("timezone")),
            breaks=clock.breaks,
            context=tuple(each for each in context if isinstance(each, str)) if isinstance(context, list) else (),
            source_ref=ref,
        )


def _turn(turn: Any, ref: SourceRef, key: str, index: int, clock: Overlay, notes: SkipLog) -> Message:
    if not isinstance(turn, dict):
        raise RecordError("not an object")
    text = turn.get("text")
    if not isinstance(text, str):
        raise RecordError("no text", remedy="give it 'text' as a string")
    role = values.role(turn.get("role"))
    if role is None:
        raise RecordError("no known role", remedy="'role' is user, assistant, system, tool, participant or agent")
    notes.marks(turn, ref)
    notes.unread(turn, ref, _KEYS)
    place = values.count(turn.get("index"))
    place = index if place is None else place
    message_id = values.name(turn.get("id")) or ""
    turn_time = clock.turn(message_id, place)
    tokens, latency = values.count(turn.get("tokens")), values.seconds(turn.get("latency_ms"), 1e3)
    if turn.get("code_blocks"):
        notes.add("turn with 'code_blocks'; the code in its text is hashed instead", ref)
    return Message(
        id=message_id,
        conversation=key,
        position=place,
        author=values.name(turn.get("author")) or role,
        role=role,
        text=text,
        agent=values.name(turn.get("agent_id")) or "",
        time=notes.time(turn.get("ts", turn.get("time")), ref) or turn_time.time,
        reply_to=values.name(turn.get("reply_to")),
        target=values.name(turn.get("target")),
        model=values.string(turn.get("model")),
        latency=turn_time.latency if latency is None else latency,
        tokens=turn_time.tokens if tokens is None else tokens,
        tool_calls=values.convert_list(turn.get("tool_calls"), values.tool_call),
        tool_results=values.convert_list(turn.get("tool_results"), values.tool_result),
        source_ref=ref,
    )


class TurnTime(NamedTuple):
    """What telemetry says of one turn."""

    time: datetime | None = None
    latency: float | None = None
    tokens: int | None = None


class Overlay(NamedTuple):
    """Turn times by message id or index, and breaks; ``session`` None fits any session."""

    session: str | None = None
    turns: dict[str | int, TurnTime] = {}
    breaks: tuple[Break, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return not self.turns and not self.breaks

    def turn(self, message_id: str, index: int) -> TurnTime:
        """What is known of a turn."""
        return self.turns.get(message_id) or self.turns.get(index) or TurnTime()

    def over(self, other: Overlay) -> Overlay:
        """Both together; this one wins."""
        breaks = sorted({*self.breaks, *other.breaks}, key=lambda interval: (interval.start, interval.end))
        return Overlay(self.session, other.turns | self.turns, tuple(breaks))


NONE = Overlay()


def read_beside(path: Path, name: str) -> Iterator[Overlay | InputFile | Problem]:
    """The overlay in a file, the file itself as an input, and what could not be read of it."""
    try:
        with OpenInput(path, name) as opened:
            yield InputFile(name=opened.name, sha256=opened.sha256, size=opened.size, source_format="telemetry")
            for source in opened.sources(path.stem):
                for record in records(source):
                    if isinstance(record, Problem):
                        yield record
                    else:
                        turn_overlay = overlay(record.value)
                        yield turn_overlay
                        if turn_overlay.empty:
                            yield Problem(
                                what="telemetry without 'turn_times' or 'breaks'",
                                where=str(record.ref),
                                remedy="see docs/formats.md",
                            )
    except InputError as error:
        yield Problem(what=error.what, where=error.where, remedy=error.remedy, kind="file")


def overlay(value: Any) -> Overlay:
    """The overlay that an object gives; parts that cannot be read are left out."""
    if not isinstance(value, dict):
        return NONE
    turns: dict[str | int, TurnTime] = {}
    listed = value.get("turn_times")
    for number, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict):
            index = values.count(entry.get("index"))
            key = values.name(entry.get("id")) or (number if index is None else index)
            time = values.time_or_none(entry.get("ts", entry.get("time")))
            latency = values.seconds(entry.get("latency_ms"), 1e3)
            turns[key] = TurnTime(time, latency, values.count(entry.get("tokens")))
        else:
            turns[number] = TurnTime(values.time_or_none(entry))
    return Overlay(values.name(value.get("session")), turns, values.convert_list(value.get("breaks"), _break))


def _break(value: Any) -> Break | None:
    if not isinstance(value, dict):
        return None
    start, end = values.time_or_none(value.get("start")), values.time_or_none(value.get("end"))
    return Break(start=start, end=end) if start and end and start <= end else None
