"""``undersong agent``: one agent's history, findings, balance and targets, beside the others of the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from undersong.cli.explain import beside_report
from undersong.cli.help import examples
from undersong.cli.options import DEFAULT_STORE, echo, existing_store
from undersong.core.sanitize import one_line
from undersong.core.text import counted

if TYPE_CHECKING:
    from undersong.models import Finding, Lead
    from undersong.pipeline.agent_profile import Profile
    from undersong.stores.protocol import PackedHistory, Store

_SHOWN = 8  # targets and findings on the screen
_LOOKED_AT = ("manipulation", "deception", "exploitation", "compassion", "accuracy")


@click.command(
    "agent",
    **examples(
        ("undersong agent Oolong --store agents.db", "one agent beside the others"),
    ),
)
@click.argument("name", metavar="NAME")
@click.option(
    "--store",
    default=DEFAULT_STORE,
    show_default=True,
    metavar="FILE|URL|DIR",
    help="Where its history is: a store, or a report with REPORT.db beside it.",
)
@click.option("--judge", metavar="NAME|HASH", help="Whose scores; needed where the store holds those of several.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(name: str, store: str, judge: str | None, as_json: bool) -> None:
    """Show what the store knows of an agent, and where it stands among all agents with scores."""
    import msgspec

    from undersong.datafiles.yaml_loader import did_you_mean
    from undersong.errors import UsageError
    from undersong.pipeline.agent_profile import profile
    from undersong.pipeline.history_sweep import chosen_judge

    with existing_store(beside_report(store)) as opened_store:
        judged = chosen_judge(opened_store, judge).judge_hash
        name = _whole_name(name, [entry.agent for entry in opened_store.agents(judged)])
        rows = opened_store.history(name, judged)
        if not rows:
            remedy = did_you_mean(name, [each.agent for each in opened_store.agents(judged)])
            raise UsageError(f"no agent '{name}' in the store", remedy=remedy)
        findings = tuple(opened_store.findings(name))
        leads = tuple(opened_store.leads(name)) if opened_store.keeps_reviews else ()
        population = {
            each.agent: _means(opened_store, judged, each) for each in opened_store.packed(judged) if each.rows
        }
    agent_profile = profile(rows, findings)
    ranks = _ranks(agent_profile, [traits for agent, traits in population.items() if agent != name and traits])
    if as_json:
        facts = msgspec.to_builtins(agent_profile) | {"ranks": ranks, "findings": msgspec.to_builtins(findings)}
        facts["leads"] = msgspec.to_builtins(leads)
        click.echo(msgspec.json.encode(facts).decode())
        return
    echo(_lines(agent_profile, ranks, findings, len(population)))
    echo(_leads(leads))


def _leads(leads: Iterable[Lead]) -> Iterator[str]:
    """Why a person is sent to the agent, as far as it is above the cut: no accusation."""
    above = [lead for lead in leads if lead.above_cut]
    yield f"leads       {len(above)}{'' if above else ' above the cut'}"
    for lead in above[:_SHOWN]:
        decided = f" (decided: {lead.decided})" if lead.decided else ""
        yield f"  {one_line(lead.reason, 1000)}{decided}"
        yield from (f"  “{one_line(quote.text, 200)}” ({quote.message_id})" for quote in lead.quotes[:1])


def _whole_name(name: str, agents: Sequence[str]) -> str:
    """The agent of a name as a report shows it, without the conversation; raises UsageError where several have it."""
    from undersong.errors import UsageError

    called = [agent for agent in agents if agent.rpartition("/")[2].casefold() == name.casefold()]
    if name in agents or not called:
        return name
    if len(called) > 1:
        listed = ", ".join(f"'{one_line(agent, 80)}'" for agent in called[:_SHOWN])
        raise UsageError(f"{len(called)} agents are called '{name}'", remedy=f"name one of them: {listed}")
    return called[0]


def _means(store: Store, judge_hash: str, history: PackedHistory) -> dict[str, float] | None:
    """An agent's mean per trait, from its rows only where they do not fit into cells."""
    from undersong.pipeline.agent_profile import means, profile

    if history.cells is None:
        return profile(store.history(history.agent, judge_hash)).verdict.traits
    return means(history.cells)


def _ranks(agent_profile: Profile, others: list[dict[str, float]]) -> dict[str, float]:
    """Trait → the share of the other agents whose mean is below this agent's."""
    from undersong.pipeline.agent_profile import percentile_rank

    ranks = {}
    for trait, value in (agent_profile.verdict.traits or {}).items():
        share = percentile_rank(value, (traits[trait] for traits in others if trait in traits))
        if share is not None:
            ranks[trait] = share
    return ranks


def _lines(agent_profile: Profile, ranks: dict[str, float], findings: Iterable[Finding], agents: int) -> Iterator[str]:
    verdict = agent_profile.verdict
    read = f"{counted(verdict.messages, 'message')}, {verdict.read:,} with scores that are levels"
    yield f"{verdict.agent}: {read}, alignment {verdict.alignment}"
    if verdict.dimensions:
        means = ", ".join(f"{name} {value:.2f}" for name, value in verdict.dimensions.items())
        yield f"dimensions  {means} ({verdict.balance})"
    yield from _months(agent_profile.months)
    for trait in _LOOKED_AT:
        missing = verdict.not_applicable.get(trait, 0)
        if verdict.traits and trait in verdict.traits:
            place = f", above {ranks[trait]:.0%} of {counted(agents - 1, 'other agent')}" if trait in ranks else ""
            trend = agent_profile.trends.get(trait, "too few for a trend")
            lacks = f", does not apply to {missing:,} of {verdict.read:,}" if missing else ""
            yield f"{trait:<13}{verdict.traits[trait]:.2f} {trend}{place}{lacks}"
        elif missing:
            yield f"{trait:<13}–    does not apply to any message with a score"
    yield from _aims(agent_profile)
    yield from _findings(list(findings))


def _months(months: dict[str, dict[str, float]]) -> Iterator[str]:
    from undersong.models import DIMENSIONS
    from undersong.report.escape import sparkline

    if not months:
        return
    first, last = min(months), max(months)
    yield f"by month    {first} to {last}" if first != last else f"by month    {first}"
    for name in DIMENSIONS:
        values = [round(100 * means[name]) for means in months.values() if name in means]
        yield f"  {name:<10}{sparkline(values)}"


def _aims(agent_profile: Profile) -> Iterator[str]:
    def mean(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.2f}"

    yield f"aims at     {counted(len(agent_profile.aims), 'agent')}"
    for aim in agent_profile.aims[:_SHOWN]:
        scores = f"compassion {mean(aim.compassion)}, manipulation {mean(aim.manipulation)}"
        yield f"  {aim.target}: {counted(aim.messages, 'message')}, {scores}"


def _findings(findings: list[Any]) -> Iterator[str]:
    yield f"findings    {len(findings)}"
    for finding in findings[:_SHOWN]:
        aim = f" towards {finding.target}" if finding.target else ""
        yield f"  {finding.finding_id[:12]} {finding.pattern}{aim}, strength {finding.strength:.2f}"
