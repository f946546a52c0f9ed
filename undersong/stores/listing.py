"""Lists of what a store holds, filtered, sorted and by the page."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

import msgspec

from undersong.errors import UsageError
from undersong.models import (
    LEVELS,
    Conversation,
    Finding,
    Lead,
    LedgerClaim,
    Level,
    Message,
    Record,
    ReviewKind,
    ReviewVerdict,
    in_force,
    lead_order,
)
from undersong.models.finding import FindingStatus
from undersong.models.verdict import DECISIVE, ClaimState, LedgerKind
from undersong.stores.reviewing import Reviewable, evidence_places, kind_and_id, ordered_leads

if TYPE_CHECKING:
    from undersong.stores.protocol import Store

T = TypeVar("T")
PAGE = 50  # entries of a page
LONGEST = 1_000  # entries of a page, at most
EXCERPT = 160  # characters of a message that a search shows
Reviewed = Literal["confirmed", "rejected", "unsure", "none"]  # by the latest review of an id that is in force


class Page(NamedTuple, Generic[T]):
    """Some entries of a list. ``next`` is what ``after`` is given for the following ones, None at the end.

    ``total`` counts all entries that the filters let through.
    """

    items: tuple[T, ...]
    next: str | None
    total: int


class ConversationQuery(Record, frozen=True, kw_only=True):
    """Which conversations: in which ``agent`` speaks or is spoken to, with these words in its id or title.

    ``recent``: the one with the latest message first, those without times last; ``id``: by id.
    """

    agent: str | None = None
    title: str | None = None
    sort: Literal["recent", "id"] = "recent"


class ConversationEntry(Record, frozen=True, kw_only=True):
    """A conversation in a list; ``first`` and ``last`` are the times of its messages, ``agents`` who wrote them."""

    id: str
    title: str | None
    source_format: str
    messages: int
    first: datetime | None
    last: datetime | None
    agents: tuple[str, ...]
    findings: int
    claims: int


class AgentQuery(Record, frozen=True, kw_only=True):
    """Which agents: with these words in the name. ``findings``: those with the most likely findings first."""

    name: str | None = None
    sort: Literal["findings", "name"] = "findings"


class AgentOverview(Record, frozen=True, kw_only=True):
    """An agent in a list; ``likely`` are the findings with a confidence of .5 or more."""

    agent: str
    messages: int
    conversations: int
    findings: int
    likely: int


class FindingQuery(Record, frozen=True, kw_only=True):
    """Which findings; an empty tuple or None lets all through.

    ``confidence`` = (from, up to and without) in 0-1; one that is not known is in no such range. ``likely``: those
    with a confidence of .5 or more, or the others. ``text``: words of its messages (``Store.search``). Sorted by
    ``confidence`` (the highest first, not known last), ``recent`` (by the last message), ``level`` (then confidence) or
    ``id``; what is equal there comes by id.
    """

    agent: str | None = None
    target: str | None = None
    conversation: str | None = None
    patterns: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    confidence: tuple[float, float] | None = None
    likely: bool | None = None
    status: FindingStatus | None = None
    reviewed: tuple[Reviewed, ...] = ()
    text: str | None = None
    sort: Literal["confidence", "recent", "level", "id"] = "confidence"


class LeadQuery(Record, frozen=True, kw_only=True):
    """Which leads; those that nobody decided on come first, of each the highest score (``lead_order``)."""

    agent: str | None = None
    conversation: str | None = None
    kinds: tuple[Literal["agent", "conversation", "message"], ...] = ()
    reviewed: tuple[Reviewed, ...] = ()


class ClaimQuery(Record, frozen=True, kw_only=True):
    """Which claims; what is contradicted comes first, in the order of ``DECISIVE``, then by conversation and place."""

    conversation: str | None = None
    agent: str | None = None
    kinds: tuple[LedgerKind, ...] = ()
    states: tuple[ClaimState, ...] = ()
    reviewed: tuple[Reviewed, ...] = ()


class SearchQuery(Record, frozen=True, kw_only=True):
    """Messages with all of these ``words`` (case and accents do not matter; “in quotes” one after the other)."""

    words: str
    conversation: str | None = None
    agent: str | None = None


class SearchHit(Record, frozen=True, kw_only=True):
    """A message that a search came upon; ``excerpt`` is a part of its text around the first word."""

    conversation: str
    message_id: str
    position: int
    agent: str
    time: datetime | None
    excerpt: str


class ListingStore(Protocol):
    """Lists by the page: (query, ``after`` of the page before, entries of a page, at most 1,000).

    The defaults read the whole store for each page; SQLite and PostgreSQL answer from indexes. Raises UsageError for an
    ``after`` that no such page gave.
    """

    def finding(self, finding_id: str) -> Finding | None:
        """The finding of this id, None where there is none."""
        return next((each for each in _store(self).findings() if each.finding_id == finding_id), None)

    def list_conversations(
        self, query: ConversationQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[ConversationEntry]:
        """Conversations with messages."""
        return _conversations(_store(self), query or ConversationQuery(), after, limit)

    def list_agents(
        self, query: AgentQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[AgentOverview]:
        """Everybody who wrote a message, or has rows of a judge."""
        return _agents(_store(self), query or AgentQuery(), after, limit)

    def list_findings(
        self, query: FindingQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[Finding]:
        """Findings, whatever their confidence."""
        return _findings(_store(self), query or FindingQuery(), after, limit)

    def list_leads(self, query: LeadQuery | None = None, after: str | None = None, limit: int = PAGE) -> Page[Lead]:
        """Leads."""
        return _leads(_store(self), query or LeadQuery(), after, limit)

    def list_claims(
        self, query: ClaimQuery | None = None, after: str | None = None, limit: int = PAGE
    ) -> Page[LedgerClaim]:
        """Claims of agents about their work."""
        return _claims(_store(self), query or ClaimQuery(), after, limit)

    def search(self, query: SearchQuery, after: str | None = None, limit: int = PAGE) -> Page[SearchHit]:
        """Messages by their words, those first that were stored first; no word finds nothing."""
        return _search(_store(self), query, after, limit)


def _store(store: object) -> Store:
    return cast("Store", store)


def encode_place(place: Sequence[object]) -> str:
    """The key of an entry in its list, as ``after`` has it."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def decode_place(after: str | None, length: int) -> list[Any] | None:
    """The key of the last entry of the page before; raises UsageError where no page gave it."""
    if after is None:
        return None
    try:
        place = msgspec.json.decode(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)), type=list[Any])
    except (ValueError, UnicodeDecodeError, msgspec.DecodeError):
        place = []
    if len(place) != length or not all(isinstance(part, str | int | float) for part in place):
        raise UsageError(f"'{after}' is no place in this list", where="after", remedy="begin again with the first page")
    return place


def checked_limit(limit: int) -> int:
    """How many entries a page has; raises UsageError outside 1 to 1,000."""
    if not 1 <= limit <= LONGEST:
        raise UsageError(f"{limit} entries", where="limit", remedy=f"ask for 1 to {LONGEST:,}")
    return limit


def page_of(entries: Iterable[T], key: Callable[[T], tuple[Any, ...]], after: str | None, limit: int) -> Page[T]:
    """The page of a list that is all there: sorted by ``key``, which no two entries share."""
    ordered = sorted(entries, key=key)
    limit = checked_limit(limit)
    place = decode_place(after, len(key(ordered[0]))) if ordered else None
    try:
        rest = ordered if place is None else [each for each in ordered if key(each) > tuple(place)]
    except TypeError:
        raise UsageError(f"'{after}' is no place in this list", where="after", remedy="begin again") from None
    items = tuple(rest[:limit])
    return Page(items, encode_place(key(items[-1])) if len(rest) > limit else None, len(ordered))


def finding_key(finding: Finding, sort: str) -> tuple[Any, ...]:
    """The place of a finding in a list: lower comes first."""
    confidence = 1.0 if finding.confidence is None else -finding.confidence
    if sort == "confidence":
        return confidence, finding.finding_id
    if sort == "level":
        return -LEVELS.index(finding.level), confidence, finding.finding_id
    return (_latest(finding.end), finding.finding_id) if sort == "recent" else (finding.finding_id,)


def _latest(time: datetime | None) -> int:
    """Later ones are lower, none is highest."""
    return 1 if time is None else -round(time.timestamp() * 1_000_000)


def claim_key(claim: LedgerClaim) -> tuple[Any, ...]:
    """The place of a claim in a list."""
    return DECISIVE.index(claim.state), claim.conversation, claim.position, claim.claim_id


def words_of(text: str) -> list[list[str]]:
    """The words of a search, those in quotes together; as SQLite's ``unicode61`` cuts them."""
    parts = text.replace("“", '"').replace("”", '"').split('"')
    phrases = [_tokens(part) for part in parts[1::2]]
    singles = [[token] for part in parts[0::2] for token in _tokens(part)]
    return [each for each in (*singles, *phrases) if each]


def _tokens(text: str) -> list[str]:
    import unicodedata

    bare = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c)).lower()
    return "".join(c if unicodedata.category(c)[0] in "LN" or c == "\ue000" else " " for c in bare).split()


def holds_words(text: str, phrases: Iterable[list[str]]) -> bool:
    """Whether a text has all of these words."""
    joined = f" {' '.join(_tokens(text))} "
    return all(f" {' '.join(phrase)} " in joined for phrase in phrases)


def excerpt_of(text: str, phrases: Sequence[list[str]]) -> str:
    """The part of a text around the first of these words, whole words where it is cut."""
    lowered = text.lower()
    places = [lowered.find(phrase[0]) for phrase in phrases]
    start = max(0, min((place for place in places if place >= 0), default=0) - EXCERPT // 4)
    start = 0 if start == 0 else text.find(" ", start) + 1 or start
    part = " ".join(text[start : start + EXCERPT].split())
    return f"{'…' if start else ''}{part}{'…' if start + EXCERPT < len(text) else ''}"


def _reviewed(store: Store, kind: ReviewKind, wanted: tuple[Reviewed, ...]) -> Callable[[Reviewable], bool]:
    decided = in_force(store.reviews(kind)) if wanted else ()
    latest: dict[str, ReviewVerdict] = {review.id: review.verdict for review in decided}
    return lambda item: not wanted or latest.get(kind_and_id(item)[1], "none") in wanted


def _findings(store: Store, query: FindingQuery, after: str | None, limit: int) -> Page[Finding]:
    reviewed = _reviewed(store, "finding", query.reviewed)
    words = words_of(query.text or "")
    low, high = query.confidence or (0.0, 2.0)
    chosen = [
        each for each in store.findings(query.agent)
        if query.target in (None, each.target)
        and (query.conversation is None or query.conversation in each.conversations)
        and (not query.patterns or each.pattern in query.patterns)
        and (not query.levels or each.level in query.levels)
        and (query.confidence is None or (each.confidence is not None and low <= each.confidence < high))
        and query.likely in (None, not each.is_lead)
        and query.status in (None, each.status)
        and reviewed(each)
        and (query.text is None or _cites(store, each, words))
    ]  # fmt: skip
    return page_of(chosen, lambda finding: finding_key(finding, query.sort), after, limit)


def _cites(store: Store, finding: Finding, words: list[list[str]]) -> bool:
    """Whether one of its messages has the words."""
    places = evidence_places(finding)
    messages = (m for name, id_ in places if store.length(name) is not None for m in store.messages(name, [id_]))
    return bool(words) and any(holds_words(message.text, words) for message in messages)


def _leads(store: Store, query: LeadQuery, after: str | None, limit: int) -> Page[Lead]:
    reviewed = _reviewed(store, "lead", query.reviewed)
    chosen = [
        each for each in ordered_leads(store, query.agent)
        if (query.conversation is None or query.conversation in (each.conversation, *each.message_conversations))
        and (not query.kinds or each.kind in query.kinds)
        and reviewed(each)
    ]  # fmt: skip
    return page_of(chosen, lead_order, after, limit)


def _claims(store: Store, query: ClaimQuery, after: str | None, limit: int) -> Page[LedgerClaim]:
    reviewed = _reviewed(store, "claim", query.reviewed)
    chosen = [
        each for each in store.claims(query.conversation)
        if query.agent in (None, each.agent)
        and (not query.kinds or each.kind in query.kinds)
        and (not query.states or each.state in query.states)
        and reviewed(each)
    ]  # fmt: skip
    return page_of(chosen, claim_key, after, limit)


def _every(store: Store) -> Iterator[Conversation]:
    return (store.conversation(name)[0] for name in store.conversations())


def _conversations(store: Store, query: ConversationQuery, after: str | None, limit: int) -> Page[ConversationEntry]:
    findings = Counter(name for finding in store.findings() for name in finding.conversations)
    wanted = (query.title or "").casefold()
    chosen = [
        _entry(each, findings[each.id], sum(1 for _ in store.claims(each.id)) if store.keeps_reviews else 0)
        for each in _every(store)
        if (query.agent is None or any(query.agent in (m.agent, m.target) for m in each.messages))
        and (wanted in each.id.casefold() or wanted in (each.title or "").casefold())
    ]
    return page_of(chosen, lambda entry: _conversation_key(entry, query.sort), after, limit)


def _conversation_key(entry: ConversationEntry, sort: str) -> tuple[Any, ...]:
    return (entry.id,) if sort == "id" else (_latest(entry.last), entry.id)


def _entry(conversation: Conversation, findings: int, claims: int) -> ConversationEntry:
    times = [message.time for message in conversation.messages if message.time]
    return ConversationEntry(
        id=conversation.id,
        title=conversation.title,
        source_format=conversation.source_format,
        messages=len(conversation.messages),
        first=min(times, default=None),
        last=max(times, default=None),
        agents=tuple(sorted({message.agent for message in conversation.messages})),
        findings=findings,
        claims=claims,
    )


def _agents(store: Store, query: AgentQuery, after: str | None, limit: int) -> Page[AgentOverview]:
    messages, places = Counter[str](), dict[str, set[str]]()
    for conversation in _every(store):
        messages.update(message.agent for message in conversation.messages)
        for name in {message.agent for message in conversation.messages}:
            places.setdefault(name, set()).add(conversation.id)
    rows = (entry for judge in store.judges() for entry in store.agents(judge.judge_hash))
    names = {*messages, *(entry.agent for entry in rows)}
    findings = Counter(finding.agent for finding in store.findings())
    likely = Counter(finding.agent for finding in store.findings() if not finding.is_lead)
    wanted = (query.name or "").casefold()
    chosen = [
        AgentOverview(agent=name, messages=messages[name], conversations=len(places.get(name, ())),
                      findings=findings[name], likely=likely[name])
        for name in names if wanted in name.casefold()
    ]  # fmt: skip
    return page_of(chosen, lambda entry: agent_key(entry, query.sort), after, limit)


def agent_key(entry: AgentOverview, sort: str) -> tuple[Any, ...]:
    """The place of an agent in a list."""
    return (entry.agent,) if sort == "name" else (-entry.likely, -entry.findings, entry.agent)


def _search(store: Store, query: SearchQuery, after: str | None, limit: int) -> Page[SearchHit]:
    words = words_of(query.words)
    names = store.conversations() if query.conversation is None else iter([query.conversation])
    hits = [
        hit_of(message, words)
        for name in names if words and store.length(name) is not None
        for message in store.conversation(name)[0].messages
        if query.agent in (None, message.agent) and holds_words(message.text, words)
    ]  # fmt: skip
    return page_of(hits, lambda hit: (hit.conversation, hit.position, hit.message_id), after, limit)


def hit_of(message: Message, words: Sequence[list[str]]) -> SearchHit:
    """A message as a search shows it."""
    return SearchHit(
        conversation=message.conversation,
        message_id=message.id,
        position=message.position,
        agent=message.agent,
        time=message.time,
        excerpt=excerpt_of(message.text, words),
    )
