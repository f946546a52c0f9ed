"""What an agent's turns add up to: deference, sentiment, sudden latency, changed code."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from undersong.datafiles.scan_config import LatencyRule, StructureRules, TelemetryRules
from undersong.models import Break, Conversation, Deference, Hit, Message, Scan, Telemetry
from undersong.scan.code import AgentCodeHistory, ExtractedCode

_SENTENCE_END = re.compile(r"[.!?…](?=[\s\"'”’)\]]|$)|[。！？]|\n\s*\n")
_DEFERENCE_LABELS = ("apology", "correction", "agreement", "disagreement")
_NOTHING_SAID = Deference(apologies=0, corrections=0, ratio=0.0, high=False)
NO_DEFERENCE = frozenset({"user", "system", "tool"})  # the ratio is of the agent's turns only


class AgentSoFar:
    """The turns of one agent up to now; fed in order."""

    def __init__(self, rules: StructureRules) -> None:
        self._rules = rules
        self._counts = dict.fromkeys(_DEFERENCE_LABELS, 0)
        self._deference = _NOTHING_SAID
        self._latencies: list[float] = []
        self._lengths: list[int] = []
        self._versions: AgentCodeHistory | None = None  # of the few who write code

    def deference(self, hits: Sequence[Hit]) -> Deference:
        """Apologies and corrections of the turns so far, this one included; the wider counts beside them."""
        if not hits:
            return self._deference
        labels = [hit.label for hit in hits if hit.trait == "structure" and hit.label in _DEFERENCE_LABELS]
        if not labels:
            return self._deference
        for label in labels:
            self._counts[label] += 1
        apologies, corrections, agreements, disagreements = self._counts.values()
        ratio = apologies / max(corrections, 1)
        self._deference = Deference(
            apologies=apologies,
            corrections=corrections,
            ratio=round(ratio, 4),
            high=ratio > self._rules.deference.ratio,
            agreements=agreements,
            disagreements=disagreements,
            wide_ratio=round((apologies + agreements) / max(corrections + disagreements, 1), 4),
        )
        return self._deference

    def latency_drop(self, message: Message) -> bool | None:
        """Whether the answer came suddenly fast for its length; None without a latency or without enough before it."""
        if message.latency is None:
            return None
        drop = _drops(message, self._latencies, self._lengths, self._rules.latency)
        insort(self._latencies, message.latency)
        insort(self._lengths, len(message.text))
        return drop

    def code_change(self, codes: Sequence[ExtractedCode]) -> float | None:
        """How new this message's code is beside the agent's earlier code."""
        if not codes:
            return None
        if self._versions is None:
            self._versions = AgentCodeHistory(self._rules.code)
        return self._versions.change(codes)


def sentiment_score(text: str, hits: Sequence[Hit], label: str) -> float:
    """Empathic phrases per sentence, 0 to 1."""
    empathic = sum(hit.trait == "structure" and hit.label == label for hit in hits)
    if not empathic:
        return 0.0
    sentences = sum(1 for _ in _SENTENCE_END.finditer(text.strip()))
    return round(min(1.0, empathic / max(sentences, 1)), 4)


def _drops(message: Message, latencies: Sequence[float], lengths: Sequence[int], rule: LatencyRule) -> bool | None:
    if message.latency is None or len(latencies) < rule.earlier:
        return None
    fast = message.latency < rule.drop * _median(latencies)
    return fast and len(message.text) >= rule.length * _median(lengths)


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


_OFFSET = re.compile(r"(?:UTC|GMT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?$", re.IGNORECASE)
CONTEXT = ("high_velocity", "marathon", "late_night", "code_heavy")
NOT_SPEAKERS = frozenset({"system", "tool"})
HOUR, MINUTE = 3600.0, 60.0


def telemetry(conversation: Conversation, scans: Sequence[Scan], rules: TelemetryRules) -> Telemetry:
    """Pace, stretch, hour and code share of a session; None where the data cannot say.

    A message without a time counts at its predecessor's. The pace is the user's tokens over the active time: pauses
    that count as breaks are left out of it.
    """
    seen = [message for message in conversation.messages if message.branch is None]
    times = sorted(message.time for message in seen if message.time is not None)
    tokens, estimated = _user_tokens(seen, rules.high_velocity.bytes_per_token)
    stretches = _stretches(times, conversation.breaks, timedelta(minutes=rules.marathon.break_minutes))
    minutes = sum(stretches) / MINUTE
    paced = tokens is not None and minutes >= rules.high_velocity.min_minutes
    return Telemetry(
        tokens_per_minute=round(tokens / minutes, 2) if tokens is not None and paced else None,
        tokens_estimated=estimated,
        hours=round((times[-1] - times[0]).total_seconds() / HOUR, 4) if times else None,
        longest_stretch_hours=round(max(stretches) / HOUR, 4) if stretches else None,
        breaks=len(stretches) - 1 if stretches else None,
        late_night=_late_night(seen, conversation.timezone, rules),
        code_share=_code_share(conversation.messages, scans),
    )


def session_context_vector(session: Telemetry | None, stated: Sequence[str], rules: TelemetryRules) -> tuple[str, ...]:
    """What holds, then ``unknown:<name>`` for what the data cannot say, then what the source itself ``stated``.

    Without a ``session`` nothing was looked at, and all is unknown.
    """
    states = dict.fromkeys(CONTEXT) if session is None else _states(session, rules)
    holds = [name for name, state in states.items() if state]
    unknown = [f"unknown:{name}" for name, state in states.items() if state is None and name not in stated]
    return tuple(dict.fromkeys([*holds, *unknown, *stated]))


def _states(session: Telemetry, rules: TelemetryRules) -> dict[str, bool | None]:
    pace, stretch = session.tokens_per_minute, session.longest_stretch_hours
    return {
        "high_velocity": None if pace is None else pace > rules.high_velocity.tokens_per_minute,
        "marathon": None if stretch is None else stretch > rules.marathon.hours,
        "late_night": session.late_night,
        "code_heavy": session.code_share >= rules.code_heavy.share,
    }


def _user_tokens(messages: Sequence[Message], bytes_per_token: int) -> tuple[int | None, bool]:
    """Tokens of the user's turns, and whether any of them is an estimate; None without a user."""
    users = [message for message in messages if message.role == "user"]
    if not users:
        return None, True
    tokens, estimated = 0, False
    for message in users:
        if message.tokens is None:
            estimated = True
            tokens += len(message.text.encode("utf-8", "surrogatepass")) // bytes_per_token
        else:
            tokens += message.tokens
    return tokens, estimated


def _stretches(times: Sequence[datetime], breaks: Sequence[Break], pause: timedelta) -> list[float]:
    """Seconds of each stretch without a break: a long pause, or one that the telemetry recorded."""
    if not times:
        return []
    middles = sorted(one.start + (one.end - one.start) / 2 for one in breaks)  # in one gap each
    stretches, start = [], times[0]
    for before, after in pairwise(times):
        rested = bisect_left(middles, before) < bisect_left(middles, after)
        if after - before >= pause or rested:
            stretches.append((before - start).total_seconds())
            start = after
    stretches.append((times[-1] - start).total_seconds())
    return stretches


def _late_night(messages: Sequence[Message], zone: str | None, rules: TelemetryRules) -> bool | None:
    """Whether a turn of the user (of anyone, where there is none) falls in the night; None without a local time."""
    local_zone = _zone(zone)
    speakers = [message for message in messages if message.role == "user"] or list(messages)
    hours = [local.hour for message in speakers if (local := _local(message.time, local_zone)) is not None]
    if not hours:
        return None
    return any(rules.late_night.from_hour <= hour < rules.late_night.to_hour for hour in hours)


def _local(time: datetime | None, zone: tzinfo | None) -> datetime | None:
    """Local time: in the session's zone, else at the offset that the time itself carries, unless that is UTC."""
    if time is None:
        return None
    if zone is not None:
        return time.astimezone(zone)
    return time if time.utcoffset() else None


def _zone(name: str | None) -> tzinfo | None:
    """The zone of an IANA name or a UTC offset; None where nobody says, or it is no zone."""
    if not name:
        return None
    offset = _OFFSET.match(name.strip())
    if offset:
        shift = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
        if shift >= timedelta(hours=24):
            return None
        return timezone(-shift if offset["sign"] == "-" else shift)
    try:
        return ZoneInfo(name.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown name; a path or a control character in it
        return None


def _code_share(messages: Sequence[Message], scans: Sequence[Scan]) -> float:
    spoken = [
        bool(scan.code_blocks)
        for message, scan in zip(messages, scans, strict=True)
        if message.role not in NOT_SPEAKERS and message.branch is None
    ]
    return round(sum(spoken) / len(spoken), 4) if spoken else 0.0
