"""An input format: a line ``diary of CONVERSATION``, then lines ``AUTHOR > TEXT``."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.formats import Item
from undersong.formats.json_stream import lines
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.models import Conversation, Message, Problem, SourceRef


def sniff(sample: FormatSample) -> bool:
    return sample.text.startswith("diary of ")


def read(source: TextSource) -> Iterator[Item]:
    conversation, messages = source.stem, list[Message]()
    for number, line in lines(source):
        text = (line or b"").decode("utf-8", "replace")
        author, arrow, said = text.partition(" > ")
        if text.startswith("diary of "):
            conversation = text.removeprefix("diary of ")
        elif arrow:
            ref = SourceRef(file=source.name, line=number)
            messages.append(
                Message(
                    id="",
                    conversation=conversation,
                    position=-1,
                    author=author,
                    role="agent",
                    text=said,
                    source_ref=ref,
                )
            )
        elif text.strip():
            yield Problem(what="a line without ' > '", where=f"{source.name}:{number}")
    yield Conversation(id=conversation, source_format="diary", messages=tuple(messages))
