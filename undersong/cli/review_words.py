"""What ``undersong review`` prints: something to decide on, and the figures over what was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from undersong.core.sanitize import one_line
from undersong.core.text import counted, turn_number
from undersong.models import Finding, Lead, LedgerClaim, Review
from undersong.report.display_names import display_names, renamed
from undersong.report.escape import first_upper, own_name

if TYPE_CHECKING:
    from undersong.report.review_figures import ReviewFigure, ReviewFigures
    from undersong.stores.protocol import Store
    from undersong.stores.reviewing import Reviewable

NAMED = 20  # messages of which the authors are named
QUOTED = 600  # characters of a message
AROUND = 4  # messages before and after each message of a finding
KINDS = {"finding": "findings", "lead": "leads", "claim": "claims"}
TITLES = {"likely": "confidence .5 or more", "unlikely": "other findings", "lead": "leads", "claim": "claims"}


def item_lines(store: Store, item: Reviewable, *, show_score: bool, again: Review | None) -> Iterator[str]:
    """A finding, lead or claim with its messages; ``again``: the review that no longer holds."""
    item = renamed(item, _names_of(store, item))
    if isinstance(item, Finding):
        yield from _finding_lines(store, item)
        if show_score:
            yield ""
            yield "confidence: " + ("not known" if item.confidence is None else f"{item.confidence:.2f}")
    elif isinstance(item, Lead):
        yield from _lead_lines(item)
    else:
        yield from _claim_lines(item)
    if again is not None:
        yield ""
        note = f": {one_line(again.note, QUOTED)}" if again.note else ""
        who = one_line(again.reviewer, 80) or "somebody"
        yield f"reviewed before it changed: {again.verdict} by {who}, {again.at:%Y-%m-%d}{note}"


def _names_of(store: Store, item: Reviewable) -> dict[str, str]:
    """Who wrote its messages, by the names that people have."""
    from undersong.stores.reviewing import evidence_places

    places = evidence_places(item)[:NAMED]
    return display_names(message for home, name in places for message in store.messages(home, [name]))


def sure_lines(item: Reviewable) -> Iterator[str]:
    """How sure the program is of it: confidence, chance, stability; a score or a state of what has none of these."""
    from undersong.report.narrative import certainty_words
    from undersong.report.sureness import sure_words

    if isinstance(item, Finding):
        yield f"{first_upper(sure_words(item))}."
        yield from (f"{first_upper(line)}." for line in certainty_words(item))
    elif isinstance(item, Lead):
        yield f"rank {item.rank} of the leads, score {item.score:.2f}, which is no probability"
    else:
        yield f"{item.state}: {item.reason}"


def around_lines(store: Store, item: Reviewable) -> Iterator[str]:
    """The conversation from a little before its first message to a little after its last, its own marked."""
    from undersong.stores.reviewing import evidence_places

    places = set(evidence_places(item))
    for name in dict.fromkeys(conversation for conversation, _ in evidence_places(item)):
        if store.length(name) is None:
            yield f"conversation {name} is not in this store"
            continue
        messages = store.conversation(name)[0].messages
        own = [at for at, message in enumerate(messages) if (name, message.id) in places]
        near = {at for place in own for at in range(place - AROUND, place + AROUND + 1)}
        yield ""
        yield f"{name}, {counted(len(messages), 'message')}:"
        for at, message in enumerate(messages):
            if at in near:
                mark = ">" if (name, message.id) in places else " "
                speaker = own_name(message.agent or message.author, name)
                text = one_line(message.text, QUOTED)
                yield f"{mark} {turn_number(message.position)} {one_line(speaker, 60)}: {text}"


def _finding_lines(store: Store, finding: Finding) -> Iterator[str]:
    from undersong.patterns.catalog import all_rules
    from undersong.report.finding_view import RuleWords, rule_words
    from undersong.report.opening_phrases import name_of

    rule = rule_words(all_rules()).get(finding.rule_hash, RuleWords())
    home = finding.conversations[0] if finding.conversations else ""
    aim = f" to {name_of(finding.target, home)}" if finding.target else ""
    yield f"{finding.title}: is what {name_of(finding.agent, home)} wrote{aim} consistent with it?"
    if rule.description:
        yield rule.description
    yield from _message_lines(store, finding)
    if finding.gap_ids or finding.unread_ids:
        yield ""
        yield f"passed over: {len(finding.gap_ids)} read, {len(finding.unread_ids)} unread messages"
    if rule.innocent:
        yield ""
        yield "The innocent reading:"
        yield from (f"  {line}" for line in rule.innocent)
    yield from (f"note: {note}" for note in finding.notes)


def _message_lines(store: Store, finding: Finding) -> Iterator[str]:
    """Each message with the stage that it is taken for; its text where the store has it, else the quote."""
    from undersong.stores.reviewing import evidence_places

    stages = dict((message_id, stage) for stage, message_id in finding.stages)
    quotes = {quote.message_id: quote.text for quote in finding.quotes}
    for conversation, name in evidence_places(finding):
        messages = store.messages(conversation, [name])
        text = messages[0].text if messages else quotes.get(name)
        time = f", {messages[0].time:%Y-%m-%d %H:%M}" if messages and messages[0].time else ""
        yield ""
        yield f"[{stages.get(name) or 'message'}] {name} in {conversation}{time}"
        yield f"  “{one_line(text, QUOTED)}”" if text is not None else "  (the store has no text of it)"


def _lead_lines(lead: Lead) -> Iterator[str]:
    yield f"A lead: is {lead.agent} worth looking at? ({lead.id[:16]})"
    yield lead.reason
    yield from (f"  “{one_line(quote.text, QUOTED)}” ({quote.message_id})" for quote in lead.quotes)


def _claim_lines(claim: LedgerClaim) -> Iterator[str]:
    yield f"A claim that is {claim.state}: is that so? ({claim.claim_id[:16]})"
    yield f"  “{one_line(claim.sentence.text, QUOTED)}” – {claim.agent}, {claim.message_id} in {claim.conversation}"
    yield claim.reason
    if claim.check:
        yield f"the check: {one_line(claim.check, QUOTED)}"
    yield from (f"  | {one_line(quote.text, QUOTED)} ({quote.message_id})" for quote in claim.evidence)


def figure_lines(figures: ReviewFigures, store_option: str = "") -> Iterator[str]:
    """The figures as tables; ``store_option`` is for the command that is named where there are none."""
    if not figures.reviewed:
        yield f"no reviews yet: `undersong review next{store_option}` shows the first finding"
        return
    chosen = f", {figures.chosen} of them chosen and not drawn" if figures.chosen else ""
    yield f"{counted(figures.reviewed, 'thing')} reviewed{chosen}"
    if figures.disputed:
        yield f"{counted(figures.disputed, 'thing')} on which reviewers disagree; the latest word counts"
    yield from _table("by kind", figures.kinds, KINDS, _decided_share)
    yield from _table("by rule", figures.patterns, None, _decided_share)
    yield from _table("of all", figures.pools, TITLES)
    yield from _table("by rule, of confidence .5 or more", figures.rules)
    yield from _table("by level, of confidence .5 or more", figures.levels)
    yield from _table("by confidence", figures.reliability)
    yield ""
    yield "right in the first two tables: confirmed of those decided, drawn or picked; [95 % interval by Wilson]"
    yield "right in the others: confirmed of those that count, weighted by how they were drawn; [the same interval]"
    yield "count: confirmed and rejected ones that a draw came upon; stated: the mean confidence of these"


def _table(
    title: str,
    rows: Sequence[ReviewFigure],
    titles: dict[str, str] | None = None,
    share: Callable[[ReviewFigure], str] | None = None,
) -> Iterator[str]:
    if not rows:
        return
    names = [(titles or {}).get(row.group, row.group) or "none" for row in rows]
    width = max(24, *map(len, names))
    yield ""
    yield f"{title:<{width}}{'confirmed':>11}{'rejected':>10}{'unsure':>8}{'count':>7}  right"
    for name, row in zip(names, rows, strict=True):
        counts = f"{row.confirmed:>11}{row.rejected:>10}{row.unsure:>8}{row.counted:>7}"
        stated = f", stated {row.stated:.2f}" if not share and row.stated is not None and row.value is not None else ""
        yield f"{name:<{width}}{counts}  {(share or _share)(row)}{stated}"


def _decided_share(figure: ReviewFigure) -> str:
    if figure.decided is None:
        return "not known (under five)"
    share, low, high = figure.decided
    return f"{share:.2f} [{low:.2f}, {high:.2f}]"


def _share(figure: ReviewFigure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "not known (under ten)"
    if figure.whole:
        return f"{figure.value:.2f}, all are reviewed"
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"
