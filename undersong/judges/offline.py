"""The judge that needs no key, no server and no download: traits, signals, and whether they mean anything here.

Traits come from n-gram heads. On posts of agent networks they estimate what an LLM judge would have said on Moltbook,
where those labels come from; on any other text they order messages as readers of twenty kinds of talk did. Signals come
from prototype phrases, which need no labels and carry over; in talks of the kind that a head was trained on, both count
half. It reads one message at a time. It declines what no wording shows:
lies, factual accuracy, whether a conversation as a whole was safe.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from undersong.core.text import text_hash
from undersong.datafiles.yaml_loader import MODELS
from undersong.judges.protocol import Judge, Question
from undersong.ml import model_file, ngrams, static_vectors
from undersong.ml import ood_check as domains
from undersong.ml import trait_heads as trait_heads
from undersong.ml.ood_check import DomainCheck
from undersong.ml.prototypes import SHIPPED as SHIPPED_PHRASES
from undersong.ml.prototypes import PhraseBook, Prototypes, Signals, load_phrases
from undersong.ml.static_vectors import FILE as VECTORS
from undersong.ml.static_vectors import Embedded, StaticVectors, Whitening, load_vectors
from undersong.ml.trait_heads import Heads, Scorer
from undersong.ml.triage import FILE as TRIAGE
from undersong.ml.triage import SHIPPED as SHIPPED_TRIAGE
from undersong.ml.triage import Triage, load_triage
from undersong.models import TRAITS, Evaluation

SHIPPED = MODELS / "judge"
CODE_VERSION = 4  # raise it when the same artefacts would give other scores: stored answers are then not reused
TURN_HEADS = "turn_heads.model"
# Traits that do not apply to most messages of talk, so that the heads for talk saw few marks of them: there the score
# is the mean of both sets of heads.
SELDOM = (TRAITS.index("compassion"),)
TALK_HEADS = "talk_heads.model"  # traits of text that is not of the kind of the trait heads' labels
TURN_SIGNALS = (
    "sycophantic_praise", "delusion_reinforcement", "escalation", "consciousness_claim",
    "pushback", "de_escalation", "points_to_help",
)  # fmt: skip
TURNS = "companion_chat"  # the kind of text that the turn heads were measured on
SPEAKER_HEAD = "speaker_head.model"  # learnt from chats of which it is known who does harm in them
SPEAKER_NAMES = ("harm",)
WORDING = "manipulative_wording"  # a level, which ranks hide: manipulation by the heads for talk and the speaker head
SHARE = 1.0  # of the speaker head in it, beside 1 of manipulation, which says little of long talk (AUC .6 over months)
MANIPULATION = TRAITS.index("manipulation")
SHOWN = 0.5  # a signal from here on has its strongest sentence in the row
TEXT_ENGINES = {"traits": "heads", "signals": "prototypes"}
TURN_ENGINES = {"traits": "heads", "signals": "prototypes", **dict.fromkeys(TURN_SIGNALS, "prototypes and turn heads")}

Array = npt.NDArray[np.float64]


class Artefacts(msgspec.Struct, frozen=True, eq=False):
    """All that the judge is made of."""

    heads: Heads
    talk: Heads
    domain: DomainCheck
    turns: Heads
    speaker: Heads
    triage: Triage
    phrases: PhraseBook
    whitening: Whitening
    vectors: StaticVectors
    hashes: dict[str, str]
    folder: Path


class OfflineJudge(Judge):
    """Twelve trait scores and the signals of every message that has text, all in [0, 1], to 3 decimals."""

    name = "offline"
    reads_everything = True
    calibrated = False  # its levels hold on text like that of its labels alone; each evaluation's domain says so

    def __init__(self, artefacts: Artefacts) -> None:
        self.artefacts, self.heads = artefacts, artefacts.heads
        self.own_folder = "" if artefacts.folder == SHIPPED else artefacts.folder.resolve().name
        self._traits = artefacts.heads.scorer()
        self._seldom = artefacts.heads.only(SELDOM).scorer()
        self._talk = artefacts.talk.scorer()
        self._turns = artefacts.turns.scorer()
        self._speaker = artefacts.speaker.scorer()
        self.prototypes = Prototypes(artefacts.phrases, artefacts.vectors, artefacts.whitening)
        self.gives = frozenset({"traits", *self.prototypes.ids})
        self.hashes = artefacts.hashes
        self.hash = model_hash(self.hashes)

    @property
    def learnt_from(self) -> frozenset[str] | None:
        """See Judge; None where its folder does not say."""
        return model_file.load(self.artefacts.folder)

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """One Evaluation per question, in order: scored, or unread where there is nothing to read."""
        texts = [question.message.text for question in questions]
        embedded = self.artefacts.vectors.embed(texts)
        kinds = self.artefacts.domain.kinds(domains.features(texts, embedded.texts, self.artefacts.whitening))
        measured = kinds[self.artefacts.domain.meta.kinds[0].name]
        turn_rows = kinds.get(TURNS, np.zeros(len(texts), dtype=bool))
        turn_rows &= np.array([question.message.role == "assistant" for question in questions], dtype=bool)
        scores, wording = self._scores(texts, measured)
        signals, traits = self._signals(texts, embedded, turn_rows), scores.tolist()
        recognised = ~np.isnan(scores[:, 0])
        return [
            self._scored(question, place, traits[place], signals, embedded, wording.get(place), bool(turn_rows[place]))
            if recognised[place]
            else self._unread(question)
            for place, question in enumerate(questions)
        ]

    def _scores(self, texts: Sequence[str], measured: npt.NDArray[np.bool_]) -> tuple[Array, dict[int, float]]:
        """Traits (n, 12) by the heads for each kind of text, nan where nothing in a text is known to them; and place →
        level of manipulative wording of those that are not of the measured kind."""
        grams = [ngrams.grams(text) if text.strip() else None for text in texts]
        triage = self.artefacts.triage.raw(texts)[:, None]
        own, others = np.flatnonzero(measured), np.flatnonzero(~measured)
        scores = np.empty((len(texts), len(TRAITS)))
        scores[own] = _calibrated(self._traits, [grams[place] for place in own.tolist()], triage[own])
        rest = [grams[place] for place in others.tolist()]
        talk = _calibrated(self._talk, rest, triage[others])
        seldom = _calibrated(self._seldom, rest, triage[others])
        harm = self._speaker.calibrate(np.nan_to_num(_raw(self._speaker, rest)))[:, 0]
        wording = np.round((talk[:, MANIPULATION] + SHARE * harm) / (1 + SHARE), 3)
        for number, column in enumerate(SELDOM):
            both = np.round((talk[:, column] + seldom[:, number]) / 2, 3)
            talk[:, column] = np.where(np.isnan(both), talk[:, column], both)
        scores[others] = talk
        return scores, dict(zip(others.tolist(), wording.tolist(), strict=True))

    def heads_for(self, domain: str | None) -> Heads:
        """The heads that scored a message of this domain."""
        return self.artefacts.heads if domain == "measured" else self.artefacts.talk

    def _signals(self, texts: Sequence[str], embedded: Embedded, turn_rows: npt.NDArray[np.bool_]) -> Signals:
        """By prototypes; in talks, the mean of these and of the turn heads for what the turn heads know."""
        signals = self.prototypes.score(embedded)
        rows = np.flatnonzero(turn_rows).tolist()
        if not rows:
            return signals
        raw = _raw(self._turns, [ngrams.grams(texts[row]) if texts[row].strip() else None for row in rows])
        heads = self._turns.calibrate(np.nan_to_num(raw))
        scores = signals.scores.copy()
        for column, name in enumerate(TURN_SIGNALS):
            if name in self.prototypes.ids:
                own = self.prototypes.ids.index(name)
                scores[rows, own] = np.round((scores[rows, own] + heads[:, column]) / 2, 3)
        return Signals(scores, signals.strongest)

    def _scored(
        self, question: Question, place: int, traits: list[float], signals: Signals, embedded: Embedded,
        level: float | None, is_turn: bool,
    ) -> Evaluation:  # fmt: skip
        scores = signals.scores[place].tolist()
        wording = {} if level is None else {WORDING: level}
        spans, strongest = embedded.spans[place], signals.strongest[place].tolist()
        return Evaluation(
            message_id=question.message.id,
            state="scored",
            judge=self.name,
            judge_hash=self.hash,
            message_hash=text_hash(question.message.text),
            traits=dict(zip(TRAITS, traits, strict=True)),
            signals=dict(zip(self.prototypes.ids, scores, strict=True)) | wording,
            domain="measured" if level is None else "unmeasured",
            engines=(TURN_ENGINES if is_turn else TEXT_ENGINES) | dict.fromkeys(wording, "heads"),
            spans={
                name: (spans[strongest[i]].start, spans[strongest[i]].end)
                for i, name in enumerate(self.prototypes.ids)
                if scores[i] >= SHOWN
            },
            width="message",  # it reads nothing around a message, whatever the route allows
        )

    def _unread(self, question: Question) -> Evaluation:
        text = question.message.text
        return Evaluation(
            message_id=question.message.id,
            state="unread",
            judge=self.name,
            judge_hash=self.hash,
            message_hash=text_hash(text),
            width="none",
            reason="nothing in its text is known to the model" if text.strip() else "no text to read",
        )


def model_hash(hashes: Mapping[str, str]) -> str:
    """The judge's hash from those of its artefacts."""
    return hashlib.sha256(msgspec.json.encode([sorted(hashes.items()), CODE_VERSION])).hexdigest()


def _raw(scorer: Scorer, grams: Sequence[ngrams.Grams | None]) -> Array:
    """Raw scores (n, heads); nan where nothing in a text is known."""
    nothing = np.full(scorer.size, np.nan)
    scores = [None if each is None else scorer.raw_of(each) for each in grams]
    return np.stack([nothing if each is None else each for each in scores]) if scores else nothing[None, :][:0]


def _calibrated(scorer: Scorer, grams: Sequence[ngrams.Grams | None], triage: Array) -> Array:
    """Scores (n, heads) with the part of triage (n, 1) in them; nan where nothing in a text is known."""
    raw = _raw(scorer, grams) + triage * scorer.triage
    return np.where(np.isnan(raw), np.nan, scorer.calibrate(np.nan_to_num(raw)))


def load_artefacts(folder: Path) -> Artefacts:
    """The artefacts in a directory, each that is not there from the package.

    Trait heads and their domain check belong together: both or neither come from the directory. Raises JudgeError
    where a file cannot be used, RuleError for a wrong phrase file.
    """
    heads, heads_hash = trait_heads.load(folder)
    domain, domain_hash = domains.load(folder)
    talk, talk_hash = heads, heads_hash  # a model of one's own scores every kind of text, unless it has these heads too
    if (folder / TALK_HEADS).exists():
        talk, talk_hash = trait_heads.load(folder, TALK_HEADS)
    elif (folder / trait_heads.FILE).read_bytes() == (SHIPPED / trait_heads.FILE).read_bytes():
        talk, talk_hash = trait_heads.load(SHIPPED, TALK_HEADS)
    own_speaker = (folder / SPEAKER_HEAD).exists()
    speaker, speaker_hash = trait_heads.load(folder if own_speaker else SHIPPED, SPEAKER_HEAD, SPEAKER_NAMES)
    own_turns = (folder / TURN_HEADS).exists()
    turns, turns_hash = trait_heads.load(folder if own_turns else SHIPPED, TURN_HEADS, TURN_SIGNALS)
    whitening, whitening_hash = static_vectors.load_whitening(
        folder if (folder / static_vectors.WHITENING_FILE).exists() else SHIPPED
    )
    triage, triage_hash = load_triage(folder if (folder / TRIAGE).exists() else SHIPPED_TRIAGE)
    phrases = load_phrases(folder / "prototypes" if (folder / "prototypes").is_dir() else SHIPPED_PHRASES)
    vectors = load_vectors()
    hashes = {
        trait_heads.FILE: heads_hash,
        TALK_HEADS: talk_hash,
        domains.FILE: domain_hash,
        TURN_HEADS: turns_hash,
        SPEAKER_HEAD: speaker_hash,
        static_vectors.WHITENING_FILE: whitening_hash,
        VECTORS: vectors.sha256,
        TRIAGE: triage_hash,
        "prototypes": phrases.sha256,
    }
    return Artefacts(heads, talk, domain, turns, speaker, triage, phrases, whitening, vectors, hashes, folder)


def open_judge(argument: str) -> OfflineJudge:
    """The shipped model, or the one in the directory ``argument``; raises JudgeError where it cannot be used."""
    return OfflineJudge(load_artefacts(Path(argument))) if argument else _shipped()


@cache  # it cannot be changed, and to read its files takes as long as an audit of a short talk
def _shipped() -> OfflineJudge:
    return OfflineJudge(load_artefacts(SHIPPED))
