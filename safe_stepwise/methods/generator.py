"""Renders the request for the next step or for the final answer, alike for training rows and in the loop.

The constant part comes first (instructions, passages, question), then the accepted steps, the remarks on the last of
them, and the rejected attempts at the next one. New text is always added at the end, so that an engine's prefix cache
keeps the earlier text."""

from collections.abc import Sequence

from safe_stepwise import prompts
from safe_stepwise.engines.base import Request
from safe_stepwise.methods.limits import FeedbackForm
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.records import Feedback, Passage, Step
from safe_stepwise.steps import format_step
from safe_stepwise.taxonomy import CORRECT

ROLE, FINAL_ROLE = "generate", "final_answer"
SHOWN_CHARACTERS = 600
"""Maximum characters of a rejected reply that are shown again."""


def generator_request(
    question: str,
    passages: Sequence[Passage],
    previous: Sequence[Step],
    advice: Feedback | None = None,
    rejected: Sequence[tuple[str, Feedback]] = (),
    *,
    form: FeedbackForm = "full",
    praise: bool = False,
    final: bool = False,
    prompt_set: PromptSet = PAPER,
) -> Request:
    """Render the greedy request for the step after ``previous``, or with ``final`` for the answer.

    ``advice`` is the verdict on the last accepted step; ``rejected`` are attempts at the requested step, each with its
    verdict; ``form`` and ``praise`` are those of `remarks`; ``prompt_set`` chooses the prompts. Raises ``StepError``
    for an invalid step.

    >>> oru = Passage("Oru", ("Oru lies on the Vel.",))
    >>> step = Step(1, "According to Passage 1, Oru lies on the Vel.", "Attribution")
    >>> said = Feedback("Correct", "It is so.", "Name the river.")
    >>> asked = generator_request("On what does Oru lie?", [oru], [step], said)
    >>> print(asked.messages[1].content)
    Passages:
    Passage 1 ("Oru"): "Oru lies on the Vel."
    <BLANKLINE>
    Question: "On what does Oru lie?"
    <BLANKLINE>
    Accepted steps:
    "Step 1: According to Passage 1, Oru lies on the Vel. (Attribution)"
    <BLANKLINE>
    On the last accepted step:
    Now: "Name the river."
    <BLANKLINE>
    Write Step 2.
    """
    prompt, number = prompts.load(prompt_set.generate), len(previous) + 1
    asking = prompts.load(prompt_set.final_answer) if final else prompt
    messages = prompt.messages(
        question=question,
        passages=passages,
        previous=[format_step(step) for step in previous],
        remarks=remarks(advice, form, praise) if advice else (),
        rejected=[(text[:SHOWN_CHARACTERS], remarks(verdict, form)) for text, verdict in rejected],
        task=asking.render_user(number=number) if final else "",
        number=number,
    )
    return Request(messages, asking.sampling, role=asking.role)


def remarks(feedback: Feedback, form: FeedbackForm = "full", praise: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the parts of a verdict that the generator is shown, as pairs of a name and a text.

    For a correct step they are the guidance, and with ``praise`` also the diagnosis.

    >>> remarks(Feedback("Contradictory", "Passage 2 says Oru.", "Read it again."), "diagnosis")
    (('Fault', 'Contradictory'), ('Why', 'Passage 2 says Oru.'))
    """
    faulty = feedback.error_type != CORRECT
    tells_why = form == "diagnosis" or (form == "full" and (faulty or praise))
    entries = [
        ("Fault", feedback.error_type if faulty and form != "guidance" else ""),
        ("Why", feedback.diagnosis if tells_why else ""),
        ("Now", feedback.guidance if form != "diagnosis" else ""),
    ]
    return tuple((name, text) for name, text in entries if text.strip())


def prompt_digest(prompt_set: PromptSet = PAPER) -> str:
    """Return the SHA-256 (64 hex digits) of both prompts."""
    return prompts.digest(*(prompts.load(name) for name in (prompt_set.generate, prompt_set.final_answer)))
