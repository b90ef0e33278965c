"""Judges a chain by our own rule (*house*): what each step states, and in which direction, is compared with the facts.

A chain is faithful if its steps state every fact of one gold path, each step builds on the question or an earlier
step, and no step says anything that the question's passages contradict. A true but unneeded statement is not a fault.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from rapidfuzz.fuzz import ratio

from safe_stepwise.checking.faithfulness import grounds as nouns
from safe_stepwise.checking.faithfulness import misstating
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Fault, Grounds, Path, StepVerdict
from safe_stepwise.checking.faithfulness.misstating import SupportFinder
from safe_stepwise.checking.faithfulness.stances import stance_on_free, stance_on_known
from safe_stepwise.checking.faithfulness.step_text import Stance, StepText, as_read, find_name, parse_text
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import nation_pattern
from safe_stepwise.language.senses import meaning_of
from safe_stepwise.language.text import has_words, normal_name, normal_words
from safe_stepwise.records import Passage, Triple
from safe_stepwise.scoring import normalize_answer

_MIN_QUOTED_WORDS = 3  # a shorter sentence is not recognised as quoted


class _Sentence(NamedTuple):
    title: str
    text: str
    words: str


class Quotations:
    """Recognises sentences of passages that steps repeat word for word."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        pairs = ((page.title, sentence) for page in passages for sentence in page.sentences)
        sentences = (_Sentence(title, sentence, normal_words(as_read(sentence))) for title, sentence in pairs)
        self._sentences = [s for s in sentences if len(s.words.split()) >= _MIN_QUOTED_WORDS]
        self._repeated = cache(self._find_repeated)

    def _find_repeated(self, claim: str) -> list[_Sentence]:
        words = normal_words(claim)
        return [sentence for sentence in self._sentences if has_words(words, sentence.words)]

    def cover_names(self, step: StepText) -> bool:
        """Whether each name of a step is in a sentence that it repeats, or is the title of that sentence's passage."""
        repeated = self._repeated(step.reading.claim)
        return bool(repeated) and all(
            any(has_words(s.words, normal_words(value)) or nouns.is_same(value, s.title) for s in repeated)
            for value in step.reading.values
            if value.lower() not in misstating.OPENERS
        )

    def state_triple(self, step: StepText, triple: Triple) -> bool:
        """Whether a sentence that a step repeats has both ends of a triple; one end may be its passage's title.

        >>> quotations = Quotations([Passage("Dune Rain", ("The film was shot by Ana Vorr.",))])
        >>> fact = Triple("Dune Rain", "cinematographer", "Ana Vorr")
        >>> quotations.state_triple(parse_text("Passage 1 reads: “The film was shot by Ana Vorr.”"), fact)
        True
        """
        meaning = meaning_of(triple.relation)
        expects_nation = "country" in triple.relation or (meaning is not None and meaning.kind == "nation")

        def names(sentence: _Sentence, end: str) -> bool:
            text = parse_text(sentence.text)
            names_nation = expects_nation and nation_pattern(clean(end)).search(text.clean)
            return bool(find_name(text, end) or nouns.is_same(sentence.title, end) or names_nation)

        repeated = self._repeated(step.reading.claim)
        return any(names(sentence, triple.head) and names(sentence, triple.tail) for sentence in repeated)


_MIN_LIKENESS = 80  # of two names of one entity, by rapidfuzz's ratio (0-100)
_DEFINITE: frozenset[Fault] = frozenset(("factual", "relation", "reversed", "order"))
"""Faults that make a chain unfaithful; "unread" makes it unjudgeable."""


@dataclass
class _Comparison:
    """A chain compared with one path: each step's triples and fault, and the facts that are unstated or unreadable."""

    path: Path
    statements: list[list[Triple]]
    faults: list[Fault]
    missing: list[Triple] = field(default_factory=list)
    unread: list[Triple] = field(default_factory=list)

    @property
    def cost(self) -> tuple[int, int, int]:
        """The chain's faults and gaps on this path, to be minimised: it follows the path with the smallest cost."""
        definite_faults = sum(fault in _DEFINITE for fault in self.faults)
        return len(self.missing) + definite_faults, len(self.unread), -sum(map(len, self.statements))


def judge(grounds: Grounds, chain: Chain) -> ChainVerdict:
    """Judge a chain by the house rule (see the module).

    The verdict is ``unjudgeable`` if the question has no gold path. It is also if the chain has no definite fault and
    the rule could not read a step: the step names both ends of a needed fact, but not in known words for its relation,
    or has a name from nowhere. Only the first 4,000 characters of a step count.

    >>> path = (Triple("Dune Rain", "director", "Ana Vorr"),
    ...         Triple("Ana Vorr", "place of birth", "Oru"))
    >>> grounds = Grounds("Where was the director of Dune Rain born?", ("Oru",), (path,), path)
    >>> judge(grounds, Chain(("Ana Vorr directed Dune Rain.", "She was born in Oru."), "Oru")).path
    'faithful'
    """
    answer_is_right = is_right(chain.answer, grounds.answers)
    paths = [path for path in grounds.paths if path]
    if not paths:
        steps = tuple(StepVerdict(fault="unread") for _ in chain.steps)
        return ChainVerdict("house", "unjudgeable", answer_is_right, steps, "unread")
    support = SupportFinder(grounds, stance_on)
    steps_read = _parse_steps(chain, support)
    concluding = frozenset(chain.concluding)
    quotations = Quotations(grounds.passages)
    judgements = (_judge_path(path, steps_read, concluding, support, quotations) for path in paths)
    return _make_verdict(min(judgements, key=lambda j: j.cost), answer_is_right)


def _parse_steps(chain: Chain, support: SupportFinder) -> list[StepText]:
    grounds, question = support.grounds, support.question
    ends = nouns.ends_of(triple for path in grounds.paths for triple in path)
    familiar = [name for name in ends if name in grounds.starts or question.spans_of(name)]
    aliases = aliases_of(grounds, [name for name in ends if question.spans_of(name)])
    steps: list[StepText] = []
    for text in chain.steps:
        step = parse_text(text, familiar, familiar, support.names, aliases)
        steps.append(step)
        familiar = [name for name in ends if name in familiar or step.spans_of(name)]
    return steps


def aliases_of(grounds: Grounds, in_question: Sequence[str]) -> dict[str, str]:
    """Map names that a path uses for one entity to each other, as "H. S. Rawail" and "Harnam Singh Rawail".

    A head that neither the question nor an earlier fact has means the most similar earlier tail that is not a head.
    """
    aliases: dict[str, str] = {}
    for path in grounds.paths:
        heads = {triple.head for triple in path}
        for n, triple in enumerate(path):
            earlier_ends = nouns.ends_of(path[:n])
            if triple.head in in_question or triple.head in earlier_ends or triple.tail in earlier_ends:
                continue
            free_tails = [t.tail for t in path[:n] if t.tail not in heads and t.tail not in aliases]
            nearest = max(free_tails, key=lambda tail: _likeness(tail, triple.head), default="")
            if nearest and _likeness(nearest, triple.head) >= _MIN_LIKENESS:
                aliases[nearest], aliases[triple.head] = triple.head, nearest
    return aliases


def _likeness(name: str, other_name: str) -> float:
    """Return the likeness of two names (0-100); it is 100 if they share a word of over three letters."""
    shared = set(normal_name(name).split()) & set(normal_name(other_name).split())
    return 100 if any(len(word) > 3 for word in shared) else ratio(name, other_name)


def _judge_path(
    path: Path, steps: Sequence[StepText], concluding: frozenset[int], support: SupportFinder, quotations: Quotations
) -> _Comparison:
    stances = [[_supported_stance(step, triple, support, quotations) for triple in path] for step in steps]
    for place in concluding:
        stances[place - 1] = _concluding_stances(steps[place - 1], path, stances, place - 1, concluding)
    stated_places = {n for n in range(len(path)) if any(row[n] == "states" for row in stances)}
    stated_triples = [[path[n] for n, s in enumerate(row) if s == "states"] for row in stances]
    joined = [[path[n] for n, s in enumerate(row) if s in ("states", "near")] for row in stances]
    faults: list[Fault] = _order_faults(path, joined, support)
    judged = _Comparison(path, stated_triples, faults)
    for place, (step, row) in enumerate(zip(steps, stances, strict=True)):
        if not (faults[place] or quotations.cover_names(step) or step.reading.denies):
            unstated = ((n, triple) for n, triple in enumerate(path) if row[n] != "states")
            mistakes = (misstating.find_fault(step, t, row[n], path, n in stated_places, support) for n, t in unstated)
            faults[place] = next(filter(None, mistakes), "")
            if any(misstating.adds_unknown_value(step, t, support) for t in stated_triples[place]):
                faults[place] = "factual"
    for n, triple in enumerate(path):
        if n not in stated_places:
            nearest = any(row[n] == "near" for row in stances)
            nearest = nearest or any(misstating.is_contradicted_by_text(step, triple, support) for step in steps)
            (judged.unread if nearest else judged.missing).append(triple)
    for place, step in enumerate(steps):
        if not (stated_triples[place] or faults[place]) and misstating.find_novelties(step, support.grounds, support):
            faults[place] = "factual" if judged.missing else "unread"
    return judged


def stance_on(step: StepText, triple: Triple) -> Stance:
    """Decide a step's stance on a triple: whether it states it, reverses it, or uses another relation.

    A name counts in full, or in a short form after an earlier mention. A pronoun stands for a name in the step's
    focus (`step_text`).

    >>> fact = Triple("Dune Rain", "director", "Ana Vorr")
    >>> [stance_on(parse_text(text), fact) for text in (
    ...     "Ana Vorr directed Dune Rain.", "Ana Vorr was directed by Dune Rain.",
    ...     "Ana Vorr produced Dune Rain.", "Dune Rain is a film.")]
    ['states', 'reversed', 'relation', 'no']
    """
    if step.reading.denies:
        return "no"
    if clean(f"{triple.head} {triple.relation} {triple.tail}".replace("_", " ")) in step.clean:
        return "states"  # in the triple's exact words
    meaning = meaning_of(triple.relation)
    return stance_on_known(step, triple, meaning) if meaning else stance_on_free(step, triple)


def _concluding_stances(
    step: StepText, path: Path, stances: Sequence[Sequence[Stance]], place: int, concluding: frozenset[int]
) -> list[Stance]:
    """Return a concluding step's stances: it states facts that other steps state, or whose ends it names."""

    def is_stated(n: int) -> bool:
        if any(row[n] == "states" for number, row in enumerate(stances, 1) if number not in concluding):
            return True
        has_meaning = meaning_of(path[n].relation) is not None
        return has_meaning and bool(step.spans_of(path[n].head) and step.spans_of(path[n].tail))

    return ["states" if s == "states" and is_stated(n) else "no" for n, s in enumerate(stances[place])]


def _supported_stance(step: StepText, triple: Triple, support: SupportFinder, quotations: Quotations) -> Stance:
    """Decide a step's stance on a triple; a quotation or paraphrase of a passage also states it."""
    stance = support.stance_on(step, triple)
    if stance != "states" and not step.reading.denies and quotations.state_triple(step, triple):
        return "states"
    return "states" if stance == "near" and misstating.is_paraphrased(step, triple) else stance


def _order_faults(path: Path, joined: Sequence[Sequence[Triple]], support: SupportFinder) -> list[Fault]:
    """Return "order" for each step that builds on an entity that is not reached yet, and "" for the others."""
    starts, question = support.grounds.starts, support.question
    reached = {name for name in nouns.ends_of(path) if name in starts or question.spans_of(name)}
    reached |= _branch_starts(path, reached)
    earlier_triples: set[Triple] = set()
    faults: list[Fault] = []
    for triples in joined:
        unreached = [triple for triple in triples if triple not in earlier_triples]
        earlier_triples |= set(unreached)
        while ready := [t for t in unreached if t.head in reached or t.tail in reached]:
            reached |= {name for t in ready for name in (t.head, t.tail)}
            unreached = [t for t in unreached if t not in ready]
        reached |= {name for t in unreached for name in (t.head, t.tail)}
        faults.append("order" if unreached else "")
    return faults


def _branch_starts(path: Path, reached: set[str]) -> set[str]:
    """Return the heads at which a path or one of its branches starts, even if the question words them otherwise."""
    ends: set[str] = set(reached)
    branch_starts: set[str] = set()
    for triple in path:
        if triple.head not in ends and triple.tail not in ends:
            branch_starts.add(triple.head)
        ends |= {triple.head, triple.tail}
    return branch_starts


def _make_verdict(judged: _Comparison, answer_is_right: bool) -> ChainVerdict:
    steps = tuple(map(StepVerdict, map(tuple, judged.statements), judged.faults))
    first = next((n for n, f in enumerate(judged.faults, 1) if f in _DEFINITE), None)
    missing = tuple(judged.missing)
    if first is not None or missing:
        fault = judged.faults[first - 1] if first else "missing"
        return ChainVerdict("house", "unfaithful", answer_is_right, steps, fault, first, missing=missing)
    if judged.unread or "unread" in judged.faults:
        return ChainVerdict("house", "unjudgeable", answer_is_right, steps, "unread")
    return ChainVerdict("house", "faithful", answer_is_right, steps)


def is_right(answer: str, answers: Sequence[str]) -> bool:
    """Whether an answer is one of the accepted answers; dates and nations are compared by their meaning.

    >>> is_right("the Oru.", ["Oru"]), is_right("May 3, 1901", ["3 May 1901"]), is_right("", ["a"])
    (True, True, False)
    """
    words = normalize_answer(answer)
    return bool(words) and any(words == normalize_answer(a) or misstating.is_same_value(answer, a) for a in answers)
