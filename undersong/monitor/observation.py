"""What a live run says of a message when it comes."""

from __future__ import annotations

from undersong.models import Evaluation, Finding, Message, Record, Route


class Observation(Record, frozen=True, kw_only=True):
    """What became of one message.

    ``message`` is as it is kept, with its agent, target and place. ``evaluation`` says in its state whether a judge
    scored it; where the judge failed, its reason says so and the message is asked about again with the next one.
    ``found`` are findings that are new or other than they were, ``retracted`` the ids of those that no longer stand.
    ``late`` are the ids of earlier messages of the conversation that are read otherwise since. ``is_new`` is False for
    a message that was there already, word for word.
    """

    message: Message
    route: Route
    evaluation: Evaluation
    found: tuple[Finding, ...] = ()
    retracted: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    is_new: bool = True
