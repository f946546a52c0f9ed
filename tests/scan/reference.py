"""The scanner once more, message by message and as plainly as can be: what the blocks are held against."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from undersong.models import Conversation, Loop
from undersong.scan.ngram_loops import LoopFinder, words_of
from undersong.scan.structure import NOT_SPEAKERS
from undersong.scan.unicode_fold import fold

Gram = tuple[str, ...]


def spoken(text: str) -> list[str]:
    """The words of a message."""
    return words_of(text, fold(text))


def telling(finder: LoopFinder, gram: Gram) -> bool:
    """Whether a gram has enough content words and is no boilerplate."""
    content = sum(word not in finder.function_words for word in gram)
    return content >= finder.rule.content_words and gram not in finder.boilerplate


def loops_within(finder: LoopFinder, words: Sequence[str]) -> tuple[Loop, ...]:
    """The n-grams that stand three times or more in one message."""
    times = Counter(finder.grams(words))
    counts = {
        place: times[gram]
        for place, gram in enumerate(finder.grams(words))
        if times[gram] >= finder.rule.repeats and telling(finder, gram)
    }
    return report(
        finder,
        (Loop(ngram=" ".join(run), count=count, scope="message") for run, count, _ in _runs(finder, words, counts)),
    )


def report(finder: LoopFinder, loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """The loops worth a row."""
    return tuple(finder.foremost((loop.ngram, loop.count, loop) for loop in loops))


def loops_over_turns(finder: LoopFinder, conversation: Conversation) -> dict[int, tuple[Loop, ...]]:
    """The n-grams that stand in three turns of one agent or more, by the place of the turn that makes it so."""
    carriers: dict[tuple[str, Gram], list[str]] = defaultdict(list)
    loops_by_index = {}
    for index, message in enumerate(conversation.messages):
        if message.role in NOT_SPEAKERS or message.branch is not None:
            continue
        words = spoken(message.text)
        for gram in set(finder.grams(words)):
            carriers[message.agent, gram].append(message.id)
        counts = {
            place: len(carriers[message.agent, gram])
            for place, gram in enumerate(finder.grams(words))
            if len(carriers[message.agent, gram]) >= finder.rule.repeats and telling(finder, gram)
        }
        loops = report(
            finder,
            (
                Loop(
                    ngram=" ".join(run),
                    count=count,
                    scope="turns",
                    message_ids=tuple(
                        carriers[message.agent, tuple(words[at : at + finder.rule.n])][-finder.rule.recent :]
                    ),
                )
                for run, count, at in _runs(finder, words, counts)
                if len(run) >= finder.rule.turn_words
            ),
        )
        if loops:
            loops_by_index[index] = loops
    return loops_by_index


def _runs(finder: LoopFinder, words: Sequence[str], counts: dict[int, int]) -> list[tuple[Gram, int, int]]:
    """Neighbouring repeated grams joined: their words, the least count, and the place of the rarest."""
    runs: list[list[int]] = []
    for place in counts:
        gram = words[place : place + finder.rule.n]
        run_grams = runs and [words[at : at + finder.rule.n] for at in runs[-1]]
        if runs and place == runs[-1][-1] + 1 and gram not in run_grams:
            runs[-1].append(place)
        else:
            runs.append([place])
    joined = []
    for run in runs:
        rarest = min(run, key=counts.__getitem__)
        end = min(run[-1] + finder.rule.n, run[0] + finder.rule.longest)
        joined.append((tuple(words[run[0] : end]), counts[rarest], rarest))
    return joined
