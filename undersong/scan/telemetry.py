"""The session context vector: pace, length, hour and code of a session (second seed, phase 1)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from undersong.models import Break, Conversation, Message, Scan, Telemetry
from undersong.scan.rules import TelemetryRules

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
