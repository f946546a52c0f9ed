"""``undersong review``: what a person decides of findings, leads and claims, and what that says of all of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from undersong.cli.help import examples
from undersong.cli.options import DEFAULT_STORE, check_targets, echo, existing_store, output, store_option
from undersong.cli.review_words import figure_lines, item_lines
from undersong.core.text import counted
from undersong.errors import UsageError
from undersong.models import REASONS, REVIEW_VERDICTS, ReviewKind, ReviewVerdict, encode

if TYPE_CHECKING:
    from undersong.stores.protocol import Store
    from undersong.stores.review_queue import Order, Pool, QueuePlace
    from undersong.stores.reviewing import Reviewable

INNOCENT = ("innocent reading", "joke or fiction", "wrong person")  # reasons that speak against a finding
POOLS = ("likely", "unlikely", "lead", "claim")
NO_LABELS = (
    "labels come of decided findings of rules, for messages that a judge scored one by one; leads, claims and readings "
    "of whole sequences (--read sequences) say nothing of a single message"
)
STORE = click.option(
    "--store", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help="The store of the audit."
)
SEED = click.option(
    "--seed", default=0, show_default=True, help="Seed of the draw: the same for all who share a store."
)
ORDER = click.option(
    "--order",
    type=click.Choice(["random", "least_certain", "conversation"]),
    default="random",
    show_default=True,
    help="Draw all alike, those more often of which the confidence is least certain, or whole conversations.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    "review",
    invoke_without_command=True,
    epilog=examples(
        ("undersong review", "on a terminal: one finding after the other, decided by a key"),
        ("undersong review --from lead", "leads instead"),
    )["epilog"],
)
@click.option(
    "--from", "pool", type=click.Choice(POOLS), help="Only these; default: likely findings, then those less sure."
)
@click.option(
    "--reviewer", default="", envvar="UNDERSONG_REVIEWER", metavar="NAME", help="Who decides (or UNDERSONG_REVIEWER)."
)
@SEED
@ORDER
@STORE
@click.pass_context
def command(context: click.Context, pool: Pool | None, reviewer: str, seed: int, order: Order, store: str) -> None:
    """Decide on findings, leads and claims, one after the other; the decisions say how many of all are right.

    On a terminal it asks for each with one key. In programs, `next` shows one with the commands that answer it, `set`
    stores what you decide, `stats` says what follows from it. A review is never changed: a later one takes its place.
    """
    if context.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        own = store_option(store)
        answers = f"`undersong review set ID confirmed|rejected|unsure{own}` answers it"
        remedy = f"`undersong review next{own}` shows one, {answers}"
        raise UsageError("it asks for a key each time, and this is no terminal", remedy=remedy)
    from undersong.cli.review_session import ReviewSession

    with existing_store(store, read_only=False) as opened_store:
        pools: tuple[Pool, ...] = (pool,) if pool else ("likely", "unlikely")
        ReviewSession(opened_store, pools, seed, order, reviewer, store_option(store)).run()


@command.command(
    "next",
    **examples(
        ("undersong review next", "the next finding, with the commands that answer it"),
        ("undersong review next --from unlikely", "one of those with a confidence below .5"),
        ("undersong review next --order least_certain", "rather one that could be either"),
    ),
)
@click.option(
    "--from",
    "pool",
    type=click.Choice(POOLS),
    default="likely",
    show_default=True,
    help="Findings with a confidence of .5 or more, other findings, leads, or claims that something speaks against.",
)
@click.option("--count", default=1, show_default=True, type=click.IntRange(1, 100), help="So many.")
@click.option("--show-score", is_flag=True, help="Show the confidence; without it you decide by the words alone.")
@click.option("--reviewer", default="", metavar="NAME", help="Who will decide, for the commands that are shown.")
@SEED
@ORDER
@STORE
@JSON
def next_(
    pool: Pool, count: int, show_score: bool, reviewer: str, seed: int, order: Order, store: str, as_json: bool
) -> None:
    """Show what to review next: its messages stage by stage, the innocent reading, and how to answer.

    What comes next is drawn by chance, and with which probability is stored with the review, so that the figures of
    `undersong review stats` hold for all findings and not only for those that somebody liked to look at.
    """
    from undersong.stores.review_queue import candidates, next_places

    with existing_store(store) as opened_store:
        places = next_places(opened_store, pool, seed, order, count)
        every = candidates(opened_store, pool) if not places else ()
        for place in places:
            if as_json:
                click.echo(msgspec.json.encode(_facts(place)).decode())
            else:
                again = place.candidate.standing.review if place.candidate.standing else None
                echo(item_lines(opened_store, place.candidate.item, show_score=show_score, again=again))
                echo(_answers(place, seed, order, store, reviewer, show_score=show_score))
    if not places and not as_json:
        number = counted(len(every), {"lead": "lead", "claim": "claim"}.get(pool, "finding"))
        click.echo(f"nothing left to review: {number} in “{pool}”, all decided" if every else f"nothing in “{pool}”")


@command.command(
    "set",
    **examples(
        ("undersong review set f6a0287b confirmed", "the beginning of an id is enough"),
        ("undersong review set f6a0287b rejected --reason 'joke or fiction' --note 'they write a play'", "why"),
    ),
)
@click.argument("name", metavar="ID")
@click.argument("verdict", metavar="VERDICT", type=click.Choice(REVIEW_VERDICTS))
@click.option(
    "--reason", "reasons", multiple=True, metavar="WORDS", help=f"Repeatable; usual ones: {', '.join(REASONS)}."
)
@click.option("--note", default="", metavar="TEXT", help="Anything else; it is stored in the store and in its exports.")
@click.option(
    "--reviewer", default="", envvar="UNDERSONG_REVIEWER", metavar="NAME", help="Who decides (or UNDERSONG_REVIEWER)."
)
@click.option("--saw-score", is_flag=True, help="The confidence was seen before the decision.")
@SEED
@ORDER
@STORE
@JSON
def set_(
    name: str,
    verdict: ReviewVerdict,
    reasons: tuple[str, ...],
    note: str,
    reviewer: str,
    saw_score: bool,
    seed: int,
    order: Order,
    store: str,
    as_json: bool,
) -> None:
    """Store what you decide of the finding, lead or claim ID: confirmed, rejected or unsure."""
    from undersong.stores.review_queue import decide, pool_of

    if verdict == "confirmed" and (against := [each for each in reasons if each in INNOCENT]):
        remedy = f"reject it, or leave the reason away; --note takes any words. Such reasons: {', '.join(INNOCENT)}"
        raise UsageError(
            f"'{against[0]}' is a reason against it, and it is to be confirmed", where="--reason", remedy=remedy
        )
    with existing_store(store, read_only=False) as opened_store:
        item = _item(opened_store, name, store)
        review = decide(
            opened_store, item, verdict, datetime.now(UTC), seed=seed, order=order, reasons=reasons, note=note,
            reviewer=reviewer, shown_score=saw_score,
        )  # fmt: skip
    if as_json:
        click.echo(encode(review))
        return
    drawn = "it was next in the draw" if review.drawn != "chosen" else "chosen by you: figures leave it out"
    if pool_of(item) == "lead":
        drawn = "leads are not drawn: their share is said once all that are shown are decided"
    click.echo(f"{review.kind} {review.id[:16]} {verdict} ({drawn})")


@command.command(
    "withdraw",
    **examples(("undersong review withdraw f6a0287b --reviewer ann", "as if ann had not decided; the figures follow")),
)
@click.argument("name", metavar="ID")
@click.option("--note", default="", metavar="TEXT", help="Why; it is stored with the withdrawal.")
@click.option(
    "--reviewer",
    default="",
    envvar="UNDERSONG_REVIEWER",
    metavar="NAME",
    help="Whose decision (or UNDERSONG_REVIEWER).",
)
@STORE
@JSON
def withdraw(name: str, note: str, reviewer: str, store: str, as_json: bool) -> None:
    """Take back what was decided of the finding, lead or claim ID: nobody has to decide the opposite.

    What was decided stays in the store and its exports, with the withdrawal after it; it is asked again.
    """
    from undersong.stores.reviewing import withdraw as take_back

    with existing_store(store, read_only=False) as opened_store:
        review = take_back(opened_store, _item(opened_store, name, store), reviewer, datetime.now(UTC), note)
    click.echo(encode(review) if as_json else f"{review.kind} {review.id[:16]} withdrawn")


@command.command("stats", **examples(("undersong review stats", "how many of all findings are right, as far as known")))
@STORE
@JSON
def stats(store: str, as_json: bool) -> None:
    """Say how many are right, by rule, level and confidence, with 95 % intervals; not known under ten decisions.

    Reviews count by how they were drawn: one that came more often than others counts for less. What a person chose to
    review counts where all of its group is reviewed.
    """
    from undersong.pipeline.review_standing import figures_of

    with existing_store(store) as opened_store:
        made = figures_of(opened_store)
    click.echo(encode(made)) if as_json else echo(figure_lines(made, store_option(store)))


@command.command(
    "export",
    **examples(
        ("undersong review export reviews.jsonl", "all reviews, one a line"),
        ("undersong review export labels.jsonl --labels", "for `undersong judge validate labels.jsonl`"),
    ),
)
@click.argument("target", metavar="FILE|-", default="-")
@click.option(
    "--labels", is_flag=True, help="Labels of messages for `judge validate`: harmful traits of decided findings."
)
@STORE
def export(target: str, labels: bool, store: str) -> None:
    """Write the reviews as JSON Lines, or what they say of single messages as labels for `undersong judge validate`."""
    from undersong.pipeline.review_labels import labels_of

    check_targets([store], target)
    with existing_store(store) as opened_store:
        reviews = list(opened_store.reviews())
        lines = [*labels_of(opened_store, reviews)] if labels else [encode(review) for review in reviews]
        with output(target) as written:
            for line in lines:
                written.write(line + b"\n")
    why = f": {NO_LABELS}" if labels and not lines else ""
    click.echo(f"{counted(len(lines), 'label' if labels else 'review')}{why}", err=True)


def _item(store: Store, name: str, where: str) -> Reviewable:
    """What an id, or its beginning, names; raises UsageError where it is none or several."""
    from undersong.stores.reviewing import reviewable

    ids: list[tuple[ReviewKind, str]] = [("finding", each) for each in store.finding_ids()]
    if store.keeps_reviews:
        ids += [("lead", lead.id) for lead in store.leads()] + [("claim", claim.claim_id) for claim in store.claims()]
    matching = [each for each in ids if each[1] == name] or [each for each in ids if each[1].startswith(name)]
    item = reviewable(store, *matching[0]) if len(matching) == 1 and name else None
    if item is None:
        what = f"{len(matching)} ids begin with '{name}'" if matching else f"no finding, lead or claim '{name}'"
        raise UsageError(
            what, where=where, remedy=f"`undersong review next{store_option(where)}` and findings.jsonl have the ids"
        )
    return item


def _facts(place: QueuePlace) -> dict[str, object]:
    from undersong.stores.reviewing import kind_and_id

    kind, name = kind_and_id(place.candidate.item)
    stale = place.candidate.standing.review if place.candidate.standing else None
    item = msgspec.to_builtins(place.candidate.item)
    return {
        "kind": kind,
        "id": name,
        **msgspec.structs.asdict(place.draw),
        "stale": msgspec.to_builtins(stale),
        kind: item,
    }


def _answers(place: QueuePlace, seed: int, order: str, store: str, reviewer: str, *, show_score: bool) -> Iterator[str]:
    """The commands that answer, with the options that are not as usual."""
    from undersong.stores.reviewing import kind_and_id

    _, name = kind_and_id(place.candidate.item)
    options = "".join((
        f" --seed {seed}" if seed else "",
        f" --order {order}" if order != "random" else "",
        store_option(store),
        f" --reviewer {shlex.quote(reviewer)}" if reviewer else "",
        " --saw-score" if show_score else "",
    ))  # fmt: skip
    yield ""
    yield from (f"undersong review set {name[:16]} {verdict}{options}" for verdict in REVIEW_VERDICTS)
    yield ""
