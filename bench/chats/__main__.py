"""What is said without a key of chats that a person may bring: python -m bench.chats.

Language models wrote the chats for this project from a list of topics, without knowledge of rules or of each other:
``truth.jsonl`` says who does harm. Each chat is audited by itself, as a person would. ``seen``: the rules for requests
were changed after these were read, by which the others are the test of those rules. ``long`` and ``threads`` were
written by two others after those rules were finished: half of each holds somebody who does harm, faintly, plainly or
blatantly, and six of the ten innocent ones resemble harm. ``months``: by two more writers, 80 to 110 messages over
months, in which at most a quarter of what the harmful side writes carries harm. ``companions``: one person and one
chatbot, by two more writers; in 14 of 32 the chatbot does harm by what grows over the chat. No head learnt from any of
them; the weights of leads were chosen with a look at all but these last, the cut with them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import undersong
from bench.talks.score import Share, auc, read_lines
from undersong.models import Case
from undersong.models.verdict import REQUEST
from undersong.patterns.leads import shown_leads

HERE = Path(__file__).parent
LEADS = {  # name of a set → its parts
    "short chats of two": ("seen", "unseen"),
    "long chats of two, 53 to 64 messages": ("long",),
    "threads, support, work and assistants, 43 to 64 messages": ("threads",),
    "chats of two over months, 82 to 108 messages": ("months",),
    "chats with a chatbot over weeks and months, 42 to 80 messages": ("companions",),
}
HEIGHTS = (8.5, 10.0, 12.0, 14.0)  # scores for which leads.yaml says how many chats are as high


def audited() -> list[tuple[dict[str, Any], Case]]:
    """Each chat's truth with its case."""
    chats: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for message in read_lines(HERE / "messages.jsonl"):
        chats[message.pop("conversation")].append(message)
    options = undersong.Options(effort=None)
    pairs = []
    for truth in read_lines(HERE / "truth.jsonl"):
        name = truth["conversation"]
        case, _ = undersong.audit([{"id": name, "messages": chats[name]}], options=options)
        pairs.append((truth, case))
    return pairs


def share(flags: list[bool]) -> Share:
    """How many of them hold."""
    return Share(sum(flags), len(flags))


def name_of(agent: str) -> str:
    """The name of a speaker without the conversation before it."""
    return agent.split("/", 1)[-1]


def main() -> None:
    """Print the table."""
    pairs = audited()
    for part in ("seen", "unseen"):
        named = [(truth, requested(case)) for truth, case in pairs if truth["part"] == part]
        print(f"requests, {part}:")
        print(f"  who does harm is named     {share([t['who'] in who for t, who in named if t['kind'] == 'harm'])}")
        print(f"  an innocent is named       {share([bool(who) for t, who in named if t['kind'] == 'innocent'])}")
    print("leads, each chat by itself:")
    for name, parts in LEADS.items():
        some = [(truth, case) for truth, case in pairs if truth["part"] in parts]
        harm = [(truth, case) for truth, case in some if truth["kind"] == "harm"]
        innocent = [bool(shown_leads(case.leads)) for truth, case in some if truth["kind"] == "innocent"]
        print(f"{name}:")
        print(f"  harm is named as a lead    {share([bool(shown_leads(case.leads)) for _, case in harm])}")
        print(f"  who does it is named       {share([truth['who'] in shown_names(case) for truth, case in harm])}")
        print(f"  an innocent chat is        {share(innocent)}")
        print(f"  the first side is the one  {share([first_name(case) == truth['who'] for truth, case in harm])}")
        print(f"  scores: {as_high(some)}")
    print(f"all: {as_high(pairs)}")


def as_high(pairs: list[tuple[dict[str, Any], Case]]) -> str:
    """By score, of the chats with harm and of the innocent ones how many have a speaker with such a score or more by
    what is counted; as ``pairs`` in ``leads.yaml`` has it."""
    highest = [
        (truth["kind"] == "harm", max(lead.score for lead in case.leads if lead.kind != "message"))
        for truth, case in pairs
    ]
    table = {
        height: [sum(score >= height and is_harm is kind for is_harm, score in highest) for kind in (True, False)]
        for height in HEIGHTS
    }
    harm = sum(is_harm for is_harm, _ in highest)
    scores = [[score for is_harm, score in highest if is_harm is kind] for kind in (True, False)]
    return f"harm: {harm}, innocent: {len(highest) - harm}, as_high: {table}, AUC {auc(*scores):.3f}"


def shown_names(case: Case) -> set[str]:
    """The speakers that people are shown as leads."""
    return {name_of(lead.agent) for lead in shown_leads(case.leads)}


def first_name(case: Case) -> str | None:
    """The speaker whom the leads, shown or not, put first."""
    return name_of(case.leads[0].agent) if case.leads else None


def requested(case: Case) -> set[str]:
    """The speakers whose requests are noted."""
    return {name_of(item.agent) for session in case.sessions for item in session.moments if item.code == REQUEST}


if __name__ == "__main__":
    main()
