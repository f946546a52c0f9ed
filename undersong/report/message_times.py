"""When a message was written, as its export says it: a time without a zone is shown without one."""

from __future__ import annotations

from collections.abc import Container

from undersong.models import Case, Message
from undersong.report.escape import moment

LOCAL = "text"  # transcripts and exports of phone messengers have the clock of the phone and no zone


class MessageTimes:
    """The words for the times of a case's messages."""

    def __init__(self, case: Case) -> None:
        self._names = {each.name for each in case.inputs}
        self._local = {each.name for each in case.inputs if each.source_format == LOCAL}

    def of(self, message: Message) -> str:
        """``2025-04-03 22:14``, with the zone where the source has one; "" where nothing is known of it."""
        if message.time is None:
            return ""
        file = input_of(message.source_ref.file, self._names) if message.source_ref else ""
        return moment(message.time, zone=file not in self._local)

    @property
    def have_zones(self) -> bool:
        """Whether every input has a zone; a page with times of both kinds shows none."""
        return not self._local


def input_of(file: str, names: Container[str]) -> str:
    """The input that a file is, or lies in as a member of an archive (``chat.zip/_chat.txt``)."""
    place = file
    while place and place not in names:
        place = place.rpartition("/")[0]
    return place or file
