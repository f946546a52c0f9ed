"""Labels only where they mean something: for roles, lengths and kinds of talk where their false rate was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from undersong.datafiles.verdict_config import label_rates, labels_config
from undersong.models import Message, Moment, Row
from undersong.models.verdict import Profile

AGENTS = ("agent", "assistant")  # roles that labels about assistants, and distress codes, may speak of
TOOLS = ("tool", "system")


def measured_labels(moments: Iterable[Moment], messages: Mapping[str, Message], profile: Profile) -> Iterator[Moment]:
    """The moments that mean something, given the messages by id; what a judge read itself is left to it."""
    for label in moments:
        message = messages[label.message_id]
        if may_stand(label, message) and (label.basis == "judge" or is_measured(label, message, profile)):
            yield label


def may_stand(label: Moment, message: Message) -> bool:
    """Whether a label can mean something by what it is and who speaks, whatever was measured."""
    if message.role in TOOLS:
        return False
    if (label.kind == "distress" or label.code in labels_config().of_agents) and message.role not in AGENTS:
        return False
    return label.basis != "signal" or words_in(message) >= labels_config().least_words


def is_measured(label: Moment, message: Message, profile: Profile) -> bool:
    """Whether it was falsely set on few enough of enough messages like this one."""
    if label.basis == "judge":
        return True
    config, cells = labels_config(), label_rates().rates[label.basis].get(label.code, {})
    false, messages = cells.get(cell_of(message, profile), (0, 0))
    return messages >= config.fewest and false <= config.most * messages


def cell_of(message: Message, profile: Profile) -> str:
    """What a false rate is measured by: role, kind of talk and number of words, such as ``assistant coding 25+``."""
    words, first = words_in(message), 1
    for limit in labels_config().lengths:
        if words < limit:
            return f"{message.role} {profile} {first}-{limit - 1}"
        first = limit
    return f"{message.role} {profile} {first}+"


def words_in(message: Message) -> int:
    """The number of words, as they stand between white space."""
    return len(message.text.split())


def measured_signals(rows: Iterable[Row]) -> dict[str, Mapping[str, float]]:
    """The signals by row id, without those of engines whose signals alone were never measured to mean a label."""
    return {row.id: _measured(row) for row in rows if row.signals}


def _measured(row: Row) -> Mapping[str, float]:
    engines, unmeasured = row.engines, labels_config().unmeasured_engines
    usual = engines.get("signals", "")
    return {name: score for name, score in row.signals.items() if engines.get(name, usual) not in unmeasured}
