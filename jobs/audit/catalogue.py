"""All events of audit logs, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from jobs.audit import console_events, conviction_events, events, service_events, standing_events
from jobs.audit.events import Event

EVENTS: Final[Mapping[str, type[Event]]] = {
    model.event: model
    for module in (events, service_events, standing_events, console_events, conviction_events)
    for model in vars(module).values()
    if isinstance(model, type) and issubclass(model, Event) and "event" in vars(model)
}


def read_event(name: str, fields: Mapping[str, Any]) -> Event:
    """The event of a log line.

    Raises:
        ValueError: There is no such event, or its fields are others; the words say which.
    """
    model = EVENTS.get(name)
    if model is None:
        raise ValueError(f"there is no event '{name[:40]}'")
    try:
        event = model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"its field {where or 'list'} is not as in '{name}': {first['msg']}") from None
    if event.fields() != fields:
        raise ValueError(f"its fields are not in the form of '{name}'")
    return event
