"""Decides a step's stance on a triple: it states it, reverses it, uses another relation, or none of these.

Claims are read as everywhere in the package (`language.syntax` and `checking.direction`). A *tie* is a
predication of the step that has both *ends* of the triple, its head and its tail. A relation that the vocabulary lacks
is *free*: it is compared by its words, or it is a question. `step_text.Stance` says what each stance means.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set

from safe_stepwise.checking.direction import IsEnd, Tie, ties
from safe_stepwise.checking.faithfulness import step_text
from safe_stepwise.checking.faithfulness.step_text import Stance, StepText, nearest_pairs, parse_text
from safe_stepwise.checking.statements import is_free, is_noun
from safe_stepwise.checking.step_reading import content_words, coverage
from safe_stepwise.language.reading import clean
from safe_stepwise.language.senses import Meaning, sense_cues
from safe_stepwise.language.syntax import Argument, parse
from safe_stepwise.language.text import Span, dates_in, has_words, overlaps
from safe_stepwise.records import Triple

_STRONGEST_FIRST: tuple[Stance, ...] = ("states", "reversed", "relation", "near", "no")
_NATION_ROLES = frozenset(("nation", "attr"))
"""Roles of a nation that describes somebody: "is French", "is a French poet"."""
_SUBJECT_ROLES = frozenset(("subj", "is", "of"))
"""Roles of somebody whom a nation describes."""
_QUESTION_WORDS = frozenset(("what", "who", "whom", "where", "which"))
_PERSONAL_PRONOUNS = frozenset("he she it they him her them".split())
# Minimum shares (0-1) of content words that a step must repeat: of a phrase (an end that is not a name); of a free
# relation; of a free relation whose head is only in focus.
_MIN_PHRASE_SHARE = 0.65
_MIN_RELATION_SHARE = 0.5
_MIN_FOCUS_SHARE = 1 / 3
_MAX_NAME_WORDS = 4  # a longer end is a phrase, even if it is capitalised


def stance_on_known(step: StepText, triple: Triple, meaning: Meaning) -> Stance:
    """Decide a step's stance on a triple whose relation the vocabulary has."""
    heads, tails = step.spans_of(triple.head), step.spans_of(triple.tail)
    if heads:
        heads += tuple(span for span in _find_head_pronouns(step, meaning) if span[0] > heads[0][1])
    elif triple.head in step.focus:
        heads = _find_head_pronouns(step, meaning)
    if not tails and triple.tail in step.focus and heads and meaning.kind != "date":
        tails = step.pronouns
    if not heads or not tails:
        return "no"
    stances = {_stance_of_tie(tie, meaning) for tie in _find_ties(step, heads, tails)}
    if not stances:
        stops = step.reading.text.stops
        head_sentences, tail_sentences = ({bisect_left(stops, start) for start, _ in ends} for ends in (heads, tails))
        return "near" if head_sentences & tail_sentences else "no"
    return next(stance for stance in _STRONGEST_FIRST if stance in stances)


def _find_head_pronouns(step: StepText, meaning: Meaning) -> tuple[Span, ...]:
    """Return the pronouns that may stand for the head of a relation; "the country" can't be the head of "country"."""
    return tuple(
        span for span in step_text.pronouns_for(step, meaning)
        if not any(cue.sense in meaning.senses for cue in sense_cues(step.clean[slice(*span)]))
    )  # fmt: skip


def _stance_of_tie(tie: Tie, meaning: Meaning) -> Stance:
    predication = tie.predication
    if predication.is_denied or not predication.is_stated:
        return "no"
    if meaning.kind == "nation" and tie.heads & _SUBJECT_ROLES and tie.tails & _NATION_ROLES:
        return "states"
    if meaning.kind == "date" and "release" in meaning.senses and tie.heads & {"is"} and not predication.expressions:
        return "states"
    direction = tie.direction(meaning)
    if direction is None:
        return "relation" if predication.expressions else "near"
    # A cause or genre has no direction of its own.
    return "states" if direction >= 0 or meaning.kind == "text" else "reversed"


def _find_ties(step: StepText, heads: Iterable[Span], tails: Iterable[Span]) -> list[Tie]:
    head_names, tail_names = ({step.clean[slice(*span)].strip() for span in spans} - {""} for spans in (heads, tails))
    is_head, is_tail = _end_matcher(head_names, tail_names), _end_matcher(tail_names, head_names)
    return list(ties(step.syntax, is_head, is_tail))


def _end_matcher(spellings: Set[str], other_end: Set[str]) -> IsEnd:
    """Return a predicate for arguments that have a spelling of this end which is not part of one of the other end."""
    unshared = {s for s in spellings if not any(s != longer and has_words(longer, s) for longer in other_end)}
    spellings = unshared or spellings
    dates = [date for spelling in spellings for date in dates_in(spelling)]
    last_words = {spelling.split()[-1] for spelling in spellings}

    def is_end(argument: Argument, name: str) -> bool:
        words = clean(name or argument.noun)
        if dates:
            return any(date.agrees(day) for date in dates for day in dates_in(words))
        if not name:
            return words in spellings or words in last_words
        return any(has_words(words, spelling) or has_words(spelling, words) for spelling in spellings)

    return is_end


def stance_on_free(step: StepText, triple: Triple) -> Stance:
    """Decide a step's stance on a triple whose relation is free words or a question."""
    question = clean(triple.relation)
    heads = step.spans_of(triple.head)
    tails = tuple(span for span in step.spans_of(triple.tail) if step.clean[slice(*span)] not in question)
    words = content_words(triple.relation) - content_words(triple.head) - content_words(triple.tail)
    share = coverage(words, step.reading.claim)
    if not (tails or _covers(step, triple.tail)):
        # A pronoun may stand for a tail in focus, beside the head and the relation's words.
        is_in_focus = heads and words and triple.tail in step.focus
        by_pronoun = is_in_focus and any(step.clean[a:b] in _PERSONAL_PRONOUNS for a, b in step.pronouns)
        return "states" if by_pronoun and share >= _MIN_RELATION_SHARE else "no"
    if not _refers_to_head(step, triple, heads):
        # Without the head, the relation's words show what the step is about, unless it is about something new.
        min_share = _MIN_FOCUS_SHARE if triple.head in step.focus else _MIN_PHRASE_SHARE
        names_another = _names_something_new(step, question, tails)
        return "states" if words and share >= min_share and not names_another else "no"
    has_relation_words = not words or share >= _MIN_RELATION_SHARE
    return _stance_from_ties(step, triple, heads, tails, has_relation_words=has_relation_words)


def _refers_to_head(step: StepText, triple: Triple, heads: Sequence[Span]) -> bool:
    """Whether a step has a triple's head, by name, words or pronoun, or else a name in the relation's question."""
    if heads or step_text.find_name(step, triple.head) or _covers(step, triple.head):
        return True
    if triple.head in step.focus and step.pronouns:
        return True
    # The question names what it asks about; the triple's head is only the title of the page that answers it.
    subjects = parse_text(triple.relation).reading.values if "…" not in triple.relation else ()
    return any(step.spans_of(name) for name in subjects if clean(name) not in step_text.STOP_WORDS)


def _covers(step: StepText, name: str) -> bool:
    """Whether a step has most of the content words of an end that is a phrase, not a name."""
    words = content_words(name)
    if not words:
        return clean(name) in step.clean
    if len(words) == 1 or (len(name.split()) <= _MAX_NAME_WORDS and name[:1].isupper()):
        return False
    return coverage(words, step.reading.claim) >= _MIN_PHRASE_SHARE


def _names_something_new(step: StepText, question: str, tails: Sequence[Span]) -> bool:
    """Whether a step names something that neither the question nor an earlier step mentions."""
    return any(
        " " in value and step.clean[slice(*span)] not in question
        and value not in step.familiar
        and not dates_in(step.clean[slice(*span)])
        and not any(overlaps(span, tail) for tail in tails)
        for span, value in step.values
    )  # fmt: skip


def _stance_from_ties(
    step: StepText, triple: Triple, heads: Sequence[Span], tails: Sequence[Span], *, has_relation_words: bool
) -> Stance:
    """Decide a step's stance by comparing its ties with those in the words of a free relation."""
    pronouns = tuple(span for span in step.pronouns if heads and span[0] > heads[0][1])
    step_ties = [tie for tie in _find_ties(step, (*heads, *pronouns), tails) if not tie.predication.is_denied]
    expected_signs = {sign for tie in _ties_of_relation(triple) for sign in tie.signs().items()}
    step_signs = {sign for tie in step_ties for sign in tie.signs().items()}
    if any((sense, -sign) in step_signs for sense, sign in expected_signs if sign) and not expected_signs & step_signs:
        return "reversed"
    if _has_relation_between(step, triple, tails, heads) and not _has_relation_between(step, triple, heads, tails):
        return "reversed"
    if has_relation_words:
        return "states"
    senses = {cue.sense for cue in sense_cues(clean(triple.relation)) if cue.form != "nouns"}
    step_senses = {e.sense for tie in step_ties for e in tie.predication.expressions if not tie.predication.is_noun}
    step_senses = step_senses or {cue.sense for cue in step.cues if cue.form != "nouns"}
    if senses and step_senses and not (senses | {"birth"} if "nation" in senses else senses) & step_senses:
        return "relation"
    return "states" if (heads or step.pronouns) and tails else "near"


def _has_relation_between(step: StepText, triple: Triple, starts: Sequence[Span], ends: Sequence[Span]) -> bool:
    """Whether a step has the words of a free relation between two ends."""
    relation = clean(triple.relation)
    if not relation or any(cue.form == "both" for cue in sense_cues(relation)):
        return False
    between = (step.clean[a[1] : b[0]] for a, b in nearest_pairs(starts, ends) if a[1] < b[0])
    return any(words.startswith(f" {relation} ") for words in between)


def _ties_of_relation(triple: Triple) -> Iterator[Tie]:
    """Yield the ties in the words of a free relation; in a question, the question word stands for the tail."""
    words = f"{triple.head} {triple.relation} {triple.tail}."
    tails = {triple.tail}
    if is_free(triple):
        words, tails = triple.relation.replace("…", triple.head), {triple.tail, *_QUESTION_WORDS}
    elif is_noun(triple.relation):
        words = f"The {triple.relation} of {triple.head} is {triple.tail}."
    syntax = parse(words, frozenset((triple.head, triple.tail)))
    return ties(syntax, lambda _, name: name == triple.head, lambda a, name: (name or a.noun) in tails)
