"""The request for the next step, or for the final answer, in words that extend each other.

A prompt holds what never changes first (instructions, passages, question), then the accepted steps,
then the remarks on the last of them, then the tries at the next one that were rejected: whatever
comes next is added at the end, so that an engine's prefix cache holds what went before.
"""

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
"""Of a rejected reply, which may be endless."""


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
    """The greedy request for the step after ``previous``; ``final``: for the answer, in any case.

    ``advice`` is the verdict on the last accepted step; ``rejected`` are tries at the step that is
    asked for, with what was said of each; ``praise`` is that of `remarks`; ``prompt_set`` says in
    how many words it is asked. Raises StepError for a step that is not valid.

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
    """Return what a verdict tells the generator, as pairs of a name and a text.

    Of a correct step only what is next, unless with ``praise`` also what is right about it.

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
    """SHA-256 (64 hex digits) of both prompts."""
    return prompts.digest(*(prompts.load(name) for name in (prompt_set.generate, prompt_set.final_answer)))
