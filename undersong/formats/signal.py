"""Signal's export of chats as JSON: ``main.jsonl`` with a frame a line: account, recipients, chats, and their items.

The frames are those of Signal's backup format (``Backup.proto`` of signalapp/Signal-Desktop) in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from undersong.errors import RecordError
from undersong.formats import Item, values
from undersong.formats.json_stream import records
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.formats.values import SkipLog, inside
from undersong.models import Conversation, Message, Problem, SourceRef

PART = 1000  # messages of a chat that are handed on together
_KEYS = frozenset(
    ("chatId", "authorId", "dateSent", "incoming", "outgoing", "directionless", "standardMessage", "revisions",
     "directStoryReplyMessage", "viewOnceMessage", "expireStartDate", "expiresInMs", "sms")
)  # fmt: skip
_SAID_KEYS = frozenset(("text", "quote", "attachments", "reactions", "linkPreview", "longText"))
_TEXT_KEYS, _REPLY_KEYS = frozenset(("body", "bodyRanges")), frozenset(("textReply", "reactions", "emoji"))
_ACCOUNT_KEYS = frozenset(("givenName", "familyName", "username", "bioText", "avatarUrlPath"))
_CHAT_KEYS = frozenset(("id", "recipientId"))
_PERSON_KEYS = frozenset(("id", "self", "contact", "group", "distributionList", "releaseNotes", "callLink"))
_OTHERS = {
    "stickerMessage": "sticker, not read",
    "contactMessage": "contact that was shared, not read",
    "remoteDeletedMessage": "deleted message, of which nothing is left",
    "updateMessage": "notice of Signal (joined, called, changed), not read",
    "paymentNotification": "notice of a payment, not read",
    "giftBadge": "badge, not read",
    "viewOnceMessage": "picture or recording to be seen once, not read",
}


def sniff(sample: FormatSample) -> bool:
    """Frames with an item of a chat, or with its recipients."""
    if sample.has("chatItem.chatId") or sample.has("chat.recipientId"):
        return True
    return sample.has("recipient.id") and sample.any_of("recipient.contact", "recipient.group", "recipient.self")


def read(source: TextSource) -> Iterator[Item]:
    """One conversation for each chat; parts of it follow as they come."""
    chats = _SignalChats(SkipLog(source.net))
    for record in records(source):
        if isinstance(record, Problem):
            yield record
            continue
        try:
            yield from chats.frame(record.value, record.ref)
        except RecordError as error:
            yield Problem(what=error.what, where=str(record.ref), remedy=error.remedy)
    yield from chats.rest()
    yield from chats.notes.problems()


class _SignalChats:
    """Who takes part and which chats there are, so far; and the messages of the chat that was read last."""

    def __init__(self, notes: SkipLog) -> None:
        self.notes = notes
        self._names: dict[str, str] = {}
        self._titles: dict[str, str] = {}
        self._own_name = "you"
        self._messages: list[Message] = []

    def frame(self, value: Any, ref: SourceRef) -> Iterator[Item]:
        """One line: what it says of people and chats is remembered, its message comes with others of its chat."""
        if not isinstance(value, dict):
            raise RecordError("a frame that is not an object")
        if isinstance(value.get("account"), dict):
            account = value["account"]
            self.notes.unread(account, inside(ref, "account"), _ACCOUNT_KEYS)
            self._own_name = _joined(account.get("givenName"), account.get("familyName")) or self._own_name
        elif isinstance(value.get("recipient"), dict):
            recipient = value["recipient"]
            self.notes.unread(recipient, inside(ref, "recipient"), _PERSON_KEYS)
            self._names[values.name(recipient.get("id")) or ""] = self._name(recipient)
        elif isinstance(value.get("chat"), dict):
            chat = value["chat"]
            self.notes.unread(chat, inside(ref, "chat"), _CHAT_KEYS)
            name = self._names.get(values.name(chat.get("recipientId")) or "")
            self._titles[values.name(chat.get("id")) or ""] = name or ""
        elif isinstance(value.get("chatItem"), dict):
            for message in self._item(value["chatItem"], inside(ref, "chatItem")):
                if self._messages and (
                    message.conversation != self._messages[0].conversation or len(self._messages) >= PART
                ):
                    yield from self.rest()
                self._messages.append(message)
        else:
            kind = next(iter(value), "?")
            self.notes.add(f"frame {str(kind)[:40]!r}, read as no message", ref)

    def rest(self) -> Iterator[Conversation]:
        """The messages that have not been handed on."""
        if self._messages:
            first = self._messages[0]
            title = self._titles.get(first.conversation) or None
            yield Conversation(
                id=first.conversation,
                source_format="signal",
                messages=tuple(self._messages),
                title=title,
                source_ref=first.source_ref,
            )
        self._messages = []

    def _name(self, recipient: dict[str, Any]) -> str:
        contact = recipient["contact"] if isinstance(recipient.get("contact"), dict) else {}
        nickname = contact["nickname"] if isinstance(contact.get("nickname"), dict) else {}
        pairs = (
            (nickname.get("given"), nickname.get("family")),
            (contact.get("systemGivenName"), contact.get("systemFamilyName")),
            (contact.get("profileGivenName"), contact.get("profileFamilyName")),
        )
        names = (_joined(*pair) for pair in pairs)
        group = recipient["group"] if isinstance(recipient.get("group"), dict) else {}
        snapshot = group["snapshot"] if isinstance(group.get("snapshot"), dict) else {}
        title = snapshot["title"] if isinstance(snapshot.get("title"), dict) else {}
        own = self._own_name if "self" in recipient else None
        number = values.name(contact.get("e164"))
        person = f"+{number}" if number else f"person {values.name(recipient.get('id'))}" if contact else None
        return own or next((name for name in names if name), None) or values.string(title.get("title")) or person or ""

    def _item(self, item: dict[str, Any], ref: SourceRef) -> Iterator[Message]:
        """The message of an item with words; nothing for one without, which is noted."""
        self.notes.unread(item, ref, _KEYS | _OTHERS.keys())
        chat = values.name(item.get("chatId"))
        if chat is None:
            raise RecordError("an item without a chat")
        content = item.get("standardMessage")
        if isinstance(item.get("directStoryReplyMessage"), dict):
            self.notes.add("answer to a story, which itself is not in the export", ref)
            content = item["directStoryReplyMessage"].get("textReply")
            self.notes.unread(item["directStoryReplyMessage"], ref, _REPLY_KEYS)
        if not isinstance(content, dict):
            kind = next((kind for kind in _OTHERS if kind in item), None)
            self.notes.add(_OTHERS[kind] if kind else "item of an unknown kind, not read", ref)
            return
        self.notes.unread(content, ref, _SAID_KEYS)
        if isinstance(item.get("revisions"), list) and item["revisions"]:
            self.notes.add("edited message, read in its last wording", ref)
        for key, what in (("attachments", values.BLOCK), ("linkPreview", "preview of a link, not read"),
                          ("longText", "text that continues in a file beside, not read")):  # fmt: skip
            if content.get(key):
                self.notes.add(what, ref)
        text = content.get("text")
        if isinstance(text, dict):
            self.notes.unread(text, ref, _TEXT_KEYS)
            text = text.get("body")
        if text is not None and not isinstance(text, str):
            self.notes.add(values.ODD, ref)
        quote = content["quote"] if isinstance(content.get("quote"), dict) else {}
        sent = item.get("dateSent")
        author = values.name(item.get("authorId")) or ""
        yield Message(
            id=values.name(sent) or "",
            conversation=chat,
            position=-1,
            author=self._names.get(author) or (self._own_name if "outgoing" in item else f"person {author}".strip()),
            role="participant",
            text=text if isinstance(text, str) else "",
            time=self.notes.time(sent, ref),
            reply_to=values.name(quote.get("targetSentTimestamp")),
            source_ref=ref,
        )


def _joined(*names: Any) -> str:
    return " ".join(name for name in names if isinstance(name, str) and name.strip())
