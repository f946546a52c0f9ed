"""Conversations in other languages than English are said, and English ones are not taken for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.scan.dialogue import talk
from undersong.verdict.language import language_note, languages_config, other_language

TEXTS = {
    "German": "Ich habe dir das schon gesagt, aber du willst es nicht hören. Wenn wir das Geld nicht haben, ist die "
    "Sache für mich vorbei, und ich weiß nicht, was ich noch machen soll.",
    "French": "Je ne sais pas pourquoi tu dis que ce n'est pas pour moi, mais je suis là avec toi et nous avons plus "
    "de temps que les autres dans la maison, sur la route ou au travail.",
    "Spanish": "No sé por qué lo dices, pero esto es para ti y también para tu madre, que ya está muy cansada de todo "
    "lo que se habla en la casa como si no pasara más nada con los niños.",
    "Polish": "Nie wiem, czy to jest dobry pomysł, ale już mi się nie chce czekać, bo jak tylko przyjdzie zima, to za "
    "drzwiami będzie zimno i nic na to nie mam.",
    "Turkish": "Ben bunu sana söyledim ama sen bir şey demedin, çok geç oldu ve bu iş için daha ne kadar bekleyeceğim, "
    "o da değil bu da değil gibi duruyorsun, yarın var mı yok mu belli değil.",
    "another script": "Я не знаю, почему ты так говоришь, но деньги нужны сегодня, иначе всё кончено, и никто больше "
    "тебе не поможет, потому что они все против нас.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_language_is_known_by_its_small_words(language: str) -> None:
    assert other_language(talk(f"ana: {TEXTS[language]}", "bo: ok")) == language


@pytest.mark.parametrize(
    "text",
    [
        "I told you that already, but you do not want to hear it, and if we have no money then this is over for me.",
        "der die das",  # too few to tell
        "def run(self, value):\n    return [each.name for each in self.items if each.value in value] " * 4,
        "C'est la vie, as they say, but I have to be at the office at nine and the boss is not in a good mood today.",
    ],
)
def test_english_code_and_scraps_are_no_other_language(text: str) -> None:
    assert other_language(talk(f"ana: {text}", f"tool: {TEXTS['German']}")) is None


def test_no_small_word_of_another_language_is_one_of_english() -> None:
    config = languages_config()
    english = set(config.english.split())
    assert all(not english & set(words.split()) for words in config.languages.values())


def test_one_line_says_it(undersong: Undersong) -> None:
    lines = [{"conversation": str(n), "author": "ana", "text": text} for n, text in enumerate(TEXTS.values())]
    lines.append({"conversation": "en", "author": "bo", "text": "We will have that for you when you are back. " * 6})
    Path("talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = undersong("audit", "talk.jsonl", "--no-chance")
    assert ran.code == 0
    assert "6 of 7 conversations are mostly not in English" in ran.err
    assert "1 in German" in ran.err
    assert language_note([], 7) is None
