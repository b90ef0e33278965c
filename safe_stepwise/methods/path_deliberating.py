"""Build the three requests of Deliberation on Priors (`methods.deliberation`) and read their replies.

The requests ask for a question's constraints, for the path to follow, and for a verdict: which ends of the path (the
entities that it leads to) are answers, and whether they suffice. An answer counts only if it is an end of the path and
the graph shows no constraint that it fails. Section 3.3 and appendices B.2.2 to B.2.4 of arXiv 2505.15210.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import Message, Request
from safe_stepwise.methods import ranking
from safe_stepwise.methods import reading as reads
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.records import COMPARISONS, Candidate, Constraint, InducedKinds, KGQuestion, Passage, kind_names


@dataclass(frozen=True, slots=True)
class Instantiated:
    """A path that the graph followed: its first chains of entities, whether there are more, and its ends, ranked.

    The model sees ``max_shown`` of the ends at most. ``verdicts`` has a mapping for each constraint: from the ends
    that the graph could decide to whether they meet it.
    """

    candidate: Candidate
    chains: tuple[tuple[str, ...], ...]
    more_chains: bool
    ends: tuple[str, ...]
    max_shown: int
    verdicts: tuple[Mapping[str, bool], ...] = ()

    def constraint_numbers(self, name: str, is_met: bool) -> list[int]:
        """List the numbers (from 1) of the constraints that an entity meets, or fails if ``is_met`` is False."""
        return [number for number, verdict in enumerate(self.verdicts, 1) if verdict.get(name) is is_met]

    def fails_constraint(self, name: str) -> bool:
        """Return whether the graph shows that an entity fails a constraint."""
        return any(verdict.get(name) is False for verdict in self.verdicts)

    @property
    def all_fail(self) -> bool:
        """Whether the graph shows that every end of the path fails a constraint."""
        return all(map(self.fails_constraint, self.ends))

    @property
    def shown_ends(self) -> tuple[str, ...]:
        """The ends that the model sees; those that fail a constraint come last."""
        return tuple(sorted(self.ends, key=self.fails_constraint)[: self.max_shown])

    @property
    def entities(self) -> list[dict[str, Any]]:
        """The ends that the model sees, each with the numbers of the constraints that it meets and fails."""
        numbers = self.constraint_numbers
        return [{"name": n, "meets": numbers(n, True), "fails": numbers(n, False)} for n in self.shown_ends]

    @property
    def plain(self) -> dict[str, Any]:
        """The path as a JSON value; ``cut`` is the number of ends that the model does not see."""
        return {
            **plain_path(self.candidate),
            "instances": [list(chain) for chain in self.chains],
            "more_instances": self.more_chains,
            "reached": len(self.ends),
            "cut": max(0, len(self.ends) - self.max_shown),
            "entities": self.entities,
        }


def plain_path(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as a JSON value."""
    return {"topic": candidate.topic, "path": list(candidate.path)}


def check_answers(names: Sequence[str], followed: Instantiated) -> dict[str, Any]:
    """Sort the names that a reply gives as answers by the ends of the path and the graph's verdicts, as a JSON value.

    ``answers`` count. ``respelled`` maps a name to the entity that it means except for upper and lower case.
    ``unreached`` are not ends of the path; ``failing`` fail a constraint. Of these three, empty ones are left out.

    A name in other upper or lower case counts if it can mean only one end. If all ends fail a constraint, the path is
    at fault, and no answer is ruled out.

    >>> path = Instantiated(Candidate("It", ("by",)), (), False, ("Ana", "Edo"), 2)
    >>> check_answers(["ana", "Pell"], path)
    {'answers': ['Ana'], 'respelled': {'ana': 'Ana'}, 'unreached': ['Pell']}
    """
    folded: dict[str, list[str]] = {}
    for end in followed.ends:
        folded.setdefault(end.casefold(), []).append(end)
    ends, all_fail = set(followed.ends), followed.all_fail
    answers, unreached, failing = dict[str, None](), list[str](), list[str]()
    respelled: dict[str, str] = {}
    for name in names:
        matches = [name] if name in ends else folded.get(name.casefold(), [])
        if len(matches) != 1:
            unreached.append(name)
            continue
        if matches[0] != name:
            respelled[name] = matches[0]
        if followed.fails_constraint(matches[0]) and not all_fail:
            failing.append(matches[0])
        else:
            answers[matches[0]] = None
    remarks = {"respelled": respelled, "unreached": unreached, "failing": failing}
    return {"answers": list(answers), **{key: value for key, value in remarks.items() if value}}


CONSTRAINTS, SELECT, VERIFY = "constraints", "select", "verify"
"""The states with a call; each has the prompt file of its name."""
PROMPTS = tuple(f"deliberation/{name}" for name in (CONSTRAINTS, SELECT, VERIFY))
INDUCED = "deliberation/constraints_induced"
"""The prompt of the text that describes induced kinds in a request for constraints."""
MAX_CONSTRAINTS = 20
MAX_RELATIONS = 100
"""The maximum number of relations near a question's paths that the request for constraints lists."""
MAX_ANSWERS = 5_000
_WORD = re.compile(r"[^\W_]+")
_NONE = {"", "none", "no path", "null"}


def ask_constraints(
    question: KGQuestion, relations: Sequence[str], scene: PoolScene, kinds: InducedKinds = (), refused: str = ""
) -> Request:
    """Build the request for a question's constraints; ``refused`` is an unreadable reply to show again."""
    listed = choose_relations(relations, question.question)
    prompt, left_out = prompts.load(f"deliberation/{CONSTRAINTS}"), len(relations) - len(listed)
    system, user = prompt.messages(
        topics=question.topics, relations=listed, left_out=left_out, question=question.question, refused=refused
    )
    if not kinds:
        return prompt.request((system, user), scene)
    text = f"{prompts.load(INDUCED).render_user(kinds=kinds)}\n\n{user.content}"
    constraints = json.loads(prompt.schema.text)["properties"]["constraints"]
    constraints["items"]["properties"]["kind"]["enum"] = kind_names(kinds)
    schema = prompt.schema.with_properties(constraints=constraints)
    return prompt.request((system, Message("user", text)), scene, schema)


def choose_relations(relations: Sequence[str], question: str, limit: int = MAX_RELATIONS) -> Sequence[str]:
    """Return all relations, or of too many those that BM25 ranks first for the question, then the first ones.

    Words count by their first five letters, as a relation's form differs from the question's.

    >>> choose_relations(["film.genre", "film.directed_by", "film.year"], "who is the director of Oru", 2)
    ['film.directed_by', 'film.genre']
    """
    if len(relations) <= limit:
        return relations
    texts = [" ".join(word[:5] for word in _WORD.findall(text.lower())) for text in (question, *relations)]
    ranked = ranking.rank_by_bm25(
        ranking.index_passages([Passage("", (text,)) for text in texts[1:]]), texts[0], limit
    )
    return [relations[place] for place in dict.fromkeys([*ranked, *range(len(relations))])][:limit]


def ask_choice(
    question: KGQuestion,
    pool: Sequence[Candidate],
    tried: Sequence[tuple[Candidate, str]],
    scene: PoolScene,
    refused: str = "",
) -> Request:
    """Build the request for the number of the path to follow, 0 for none; ``tried`` are paths with their flaws."""
    prompt = prompts.load(f"deliberation/{SELECT}")
    messages = prompt.messages(
        question=question.question,
        tried=[{**plain_path(path), "reason": reason} for path, reason in tried],
        pool=[plain_path(path) for path in pool],
        refused=refused,
    )
    return prompt.request(messages, scene, prompt.schema.with_properties(path={"enum": [*range(len(pool) + 1)]}))


def ask_verdict(
    question: KGQuestion,
    followed: Instantiated,
    constraints: Sequence[Constraint],
    scene: PoolScene,
    refused: str = "",
    *,
    induced: bool = False,
) -> Request:
    """Build the request for answers and whether they suffice; ``induced``: the model finds the conditions itself."""
    prompt, pairs = prompts.load(f"deliberation/{VERIFY}"), zip(constraints, followed.verdicts, strict=True)
    messages = prompt.messages(
        question=question.question,
        **plain_path(followed.candidate),
        chains=followed.chains,
        more_chains=followed.more_chains,
        constraints=[{"text": c.text, "is_decided": bool(decided)} for c, decided in pairs],
        induced=induced,
        reached=len(followed.ends),
        ends=followed.entities,
        refused=refused,
    )
    answers = {"type": "array", "items": {"enum": list(followed.shown_ends)}}
    return prompt.request(messages, scene, prompt.schema.with_properties(answer=answers))


def read_constraints(text: str, question: KGQuestion, kinds: InducedKinds = ()) -> reads.Reading:
    """Read the list of constraints in a reply; in a salvaged reply, malformed items are left out.

    >>> asked = KGQuestion("q", "metaqa", "test", "who wrote [It]", ("It",), frozenset(("Ana",)))
    >>> said = '{"constraints": [{"kind": "type", "text": "It is a person."}, {"kind": "mood"}]}'
    >>> [one.text for one in constraints_in(read_constraints(said, asked).value)]
    ['It is a person.']
    """
    read_item = partial(_read_constraint, kinds=kind_names(kinds))
    quoted = [question.question, *(text for kind in kinds for text in (kind.description, kind.example))]
    return reads.read(text, {"constraints": reads.list_reader(read_item, MAX_CONSTRAINTS)}, quoted)


def constraints_in(value: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Return the constraints in the value of a reading (`read_constraints`)."""
    return tuple([Constraint(**fields) for fields in value.get("constraints", ())])


def _read_constraint(value: Any, salvaging: bool, kinds: Sequence[str]) -> dict[str, Any]:
    """Read one constraint; when salvaging, an unknown comparison is left out."""
    if not isinstance(value, dict) or value.get("kind") not in kinds:
        raise ValueError("it is of none of the kinds")
    condition = reads.maybe_words(value.get("text"), salvaging)
    if not condition:
        raise ValueError("it says no condition")
    compared = value.get("comparison") or ""
    if compared not in ("", *COMPARISONS) and not salvaging:
        raise ValueError("there is no such comparison")
    names = {key: _read_name(value.get(key) or "", salvaging) for key in ("relation", "entity", "time")}
    names["comparison"] = compared if compared in COMPARISONS else ""
    return {"kind": value["kind"], "text": condition, **names}


def read_choice(text: str, pool: Sequence[Candidate], quoted: Sequence[str]) -> reads.Reading:
    """Read the number of the path that a reply chooses, from 1; 0 for none."""

    read_number = reads.number_in(0, len(pool), "path")

    def number(value: Any, salvaging: bool) -> int:
        is_none = salvaging and (value is None or str(value).strip().lower() in _NONE)
        return 0 if is_none else int(read_number(value, salvaging))

    return reads.read(text, {"path": number, "reason": reads.reason}, quoted)


def read_verdict(text: str, quoted: Sequence[str]) -> reads.Reading:
    """Read a verdict: the names in ``answer``, whether they are ``sufficient``, and the ``reason``."""
    reading = reads.read(text, {"answer": read_names, "sufficient": reads.flag, "reason": reads.reason}, quoted)
    if reading.value and "sufficient" not in reading.value:
        return reads.Reading("unreadable", {}, "it does not say whether the answer is sufficient", text)
    return reading


def read_names(value: Any, salvaging: bool) -> list[str]:
    """Read a list of entity names without repeated ones; when salvaging, also a single name."""
    if salvaging and isinstance(value, str | int):
        value = [value]
    return [name for name in reads.list_reader(_read_name, MAX_ANSWERS)(value, salvaging) if name]


def _read_name(value: Any, salvaging: bool) -> str:
    """Return a name unchanged, since the graph's names may have any blanks and any case."""
    if salvaging and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or len(value) > reads.MAX_CHARACTERS:
        raise ValueError("it is no name")
    value.encode("utf-8")  # half of a surrogate pair is a ValueError
    return value
