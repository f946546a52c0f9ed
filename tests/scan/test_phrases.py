"""Phrases are found where a reader would see them, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.models import Hit
from undersong.scan.phrases import Phrase, SignalBook, load_book, needles_of
from undersong.scan.unicode_fold import fold, is_word

SHIPPED = load_book()


def book_of(*phrases: Phrase) -> SignalBook:
    return SignalBook(phrases, SHIPPED.structure, SHIPPED.telemetry, SHIPPED.routing, {})


def hits_in(book: SignalBook, text: str) -> list[tuple[str, str]]:
    return [(hit.label, text[hit.start : hit.end]) for hit in book.hits(fold(text))]


@pytest.mark.parametrize(
    ("text", "verbatim"),
    [
        ("Keep this between us.", "Keep this between us"),
        ("(keep this between us)", "keep this between us"),
        ("keep this between use", None),
        ("KEEP THIS\nBETWEEN US!", "KEEP THIS\nBETWEEN US"),
        ("keep this  between\tus", "keep this  between\tus"),
        ("keep this\n\nbetween us", None),
        ("keep\u00a0this between us", "keep\u00a0this between us"),
        ("ke\u00adep this be\u200btween us", "ke\u00adep this be\u200btween us"),
        ("keep thıs between us", None),
        ("ｋｅｅｐ ｔｈｉｓ between us", "ｋｅｅｐ ｔｈｉｓ between us"),
        ("keep this between us\u0301", None),
        ("👨\u200d👩\u200d👧 keep this between us 👨\u200d👩\u200d👧", "keep this between us"),
        ("ﬁrst, keep this between us", "keep this between us"),
        ("keep this between us_2", None),
        ("upkeep this between us", None),
        ("it's — keep this between us — done", "keep this between us"),
    ],
)
def test_a_phrase_is_found_verbatim_or_not_at_all(text: str, verbatim: str | None) -> None:
    book = book_of(Phrase("keep this between us", "manipulation", "isolation"))
    assert hits_in(book, text) == ([] if verbatim is None else [("isolation", verbatim)])


@pytest.mark.parametrize(
    ("phrase", "text", "verbatim"),
    [
        ("you're special", "You’re special", "You’re special"),
        ("you're special", "You are special", None),
        ("café noir", "a cafe\u0301 noir", "cafe\u0301 noir"),
        ("cafe noir", "a cafe\u0301 noir", None),
        ("non-stop", "non–stop", "non–stop"),
        ("non-stop", "nonstop", None),
        ("ist groß", "DAS IST GROSS", "IST GROSS"),
        ("ist groß", "das ist grob", None),
    ],
)
def test_writing_differs_and_letters_do_not(phrase: str, text: str, verbatim: str | None) -> None:
    book = book_of(Phrase(phrase, "manipulation", "test"))
    assert [span for _, span in hits_in(book, text)] == ([] if verbatim is None else [verbatim])


def test_a_boundless_phrase_is_found_inside_a_run_of_its_script() -> None:
    bounded = Phrase("相信我", "manipulation", "bounded")
    boundless = Phrase("相信我", "manipulation", "boundless", boundless=True)
    assert hits_in(book_of(bounded, boundless), "请你相信我吧") == [("boundless", "相信我")]
    assert hits_in(book_of(bounded, boundless), "请你相信他吧") == []


def test_a_hit_inside_a_longer_one_of_its_label_is_dropped_and_others_stay() -> None:
    book = book_of(
        Phrase("between us", "manipulation", "isolation"),
        Phrase("keep this between us", "manipulation", "isolation"),
        Phrase("between us", "manipulation", "secret"),
        Phrase("us or them", "manipulation", "isolation"),
    )
    text = "Keep this between us or them"
    assert hits_in(book, text) == [
        ("isolation", "Keep this between us"),
        ("secret", "between us"),
        ("isolation", "us or them"),
    ]


def test_one_phrase_may_stand_under_two_labels() -> None:
    book = book_of(Phrase("best of all", "manipulation", "flattery"), Phrase("Best of all", "exploitation", "pride"))
    hits = book.hits(fold("the best of all"))
    assert {(hit.trait, hit.label, hit.phrase) for hit in hits} == {
        ("manipulation", "flattery", "best of all"),
        ("exploitation", "pride", "Best of all"),
    }


# ── against a slow, obvious reference ────────────────────────────────────────

PHRASES = ("act now", "now", "é a", "don't", "a-b", "fi", "ss now")
PIECES = [
    *("act", "now", "NOW", "Act", "do", "n", "t", "a", "b", "é", "e\u0301", "ﬁ", "fi", "ß", "ss", "x", "_", "９"),
    *(
        " ",
        "  ",
        "\n",
        "\n\n",
        "\u00a0",
        "\u200b",
        "\u00ad",
        "\u200d",
        "’",
        "'",
        "-",
        "–",
        ".",
        "🦅",
        "ａ",
        "İ",
        "\u0301",
    ),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def slow_spans(text: str, phrase: str) -> set[tuple[int, int]]:
    """Every stretch of the text that folds to the phrase, from visible edge to visible edge, between non-words."""
    spans = set()
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            if fold(text[start:end]).text == phrase and not cut(text, start) and not cut(text, end):
                spans.add((start, end))
    return {
        (start, end)
        for start, end in spans
        if not any(start <= other[0] and other[1] <= end and other != (start, end) for other in spans)
    }


def cut(text: str, at: int) -> bool:
    """Whether a word goes on across a place: the visible characters on both sides belong to one."""
    before, after = fold(text[:at]).text, fold(text[at:]).text
    return bool(before and after and is_word(before[-1]) and is_word(after[0]))


@settings(deadline=None)
@given(TEXTS)
def test_the_matcher_finds_what_a_slow_search_finds(text: str) -> None:
    book = book_of(*(Phrase(phrase, "manipulation", phrase) for phrase in PHRASES))
    hits: dict[str, set[tuple[int, int]]] = {phrase: set() for phrase in PHRASES}
    for hit in book.hits(fold(text)):
        hits[hit.label].add((hit.start, hit.end))
    assert hits == {phrase: slow_spans(text, phrase) for phrase in PHRASES}


@settings(deadline=None)
@given(st.lists(st.sampled_from([*PIECES, *(phrase.text for phrase in SHIPPED.phrases)]), max_size=8).map(" ".join))
def test_every_hit_of_the_shipped_book_folds_back_to_its_phrase(text: str) -> None:
    hits: tuple[Hit, ...] = SHIPPED.hits(fold(text))
    for hit in hits:
        assert fold(text[hit.start : hit.end]).text == fold(hit.phrase).text


def test_phrases_are_folded_together_as_each_alone() -> None:
    odd = [
        Phrase(text, "manipulation", "x")
        for text in ("Trust Me", "caf\u00e9\u0301 only", "\u0301 alone", "ΟΔΟΣ", " so\n\nlong ")
    ]
    phrases = [*SHIPPED.phrases, *odd[:-1]]
    assert [needle.text for needle in needles_of(phrases)] == [fold(phrase.text).text.strip() for phrase in phrases]
    assert needles_of(odd[-1:])[0].text == "so long"
    assert needles_of(()) == []
