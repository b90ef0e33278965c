"""What states are called where people read them."""

from safe_stepwise.methods.asking import ANSWERING
from safe_stepwise.methods.hops import END, TITLES
from safe_stepwise.methods.react import ACT, UNFINISHED
from safe_stepwise.methods.sg_fsm_safe import ANSWER, FIND

_TITLES = {
    **TITLES,
    FIND: "Verify find",
    ANSWER: "Verify answer",
    ANSWERING: "Answer",
    ACT: "Act",
    END: "End",
    UNFINISHED: "Out of turns",
}


def title_of(state: str) -> str:
    """What happens in a state; nothing of one that says so by its name, or is unknown.

    >>> title_of("q2"), title_of("act"), title_of("scout")
    ('Search', 'Act', '')
    """
    return _TITLES.get(state, "")


def edge_text(state: str, to: str) -> str:
    """An edge in words.

    >>> edge_text("q2", "q4"), edge_text("act", "end"), edge_text("scout", "")
    ('q2 Search → q4', 'act → end', 'scout')
    """
    title = title_of(state)
    named = state if title.lower() in ("", state) else f"{state} {title}"
    return f"{named} → {to}" if to else named
