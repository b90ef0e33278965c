"""What states are called where people read them."""

from safe_stepwise.methods import METHODS
from safe_stepwise.methods.machine import Machine


def machine_of(method: str) -> Machine[object] | None:
    """A method's machine; None of one without, or that is unknown here."""
    machine = getattr(METHODS.get(method), "machine", None)
    return machine if isinstance(machine, Machine) else None


def title_of(method: str, state: str) -> str:
    """What happens in a state; nothing where its name says so, or that is unknown.

    >>> title_of("sg_fsm1", "q2"), title_of("react", "act"), title_of("scouting", "q2")
    ('Search', '', '')
    """
    machine = machine_of(method)
    return machine.titles.get(state, "") if machine else ""


def edge_text(method: str, state: str, to: str) -> str:
    """An edge in words.

    >>> edge_text("sg_fsm1", "q2", "q4"), edge_text("react", "act", "end"), edge_text("", "q2", "")
    ('q2 Search → q4', 'act → end', 'q2')
    """
    named = f"{state} {title_of(method, state)}".strip()
    return f"{named} → {to}" if to else named
