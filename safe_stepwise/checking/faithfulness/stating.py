"""Decides how a step's wording relates to a triple: states it, reverses it, uses another relation, or none of these.

A *cue* is wording in the cleaned text that expresses a *sense*, a kind of relation ("directed by": director). Its
*form* tells which end follows it: the tail (``to_tail``), the head (``to_head``), the tail as a noun (``nouns``: "the
director"), or either (``both``: "married"). *Head* and *tail* are the triple's two ends; here, spans that mention
them. A relation that the vocabulary lacks is *free*: it is compared by its words, or it is a question."""

import re
from collections.abc import Sequence

from safe_stepwise.checking.faithfulness import step_text
from safe_stepwise.checking.faithfulness.step_text import IMPLIED_HEAD, Stance, StepText, overlaps, pairs, parse_text
from safe_stepwise.checking.statements import is_free
from safe_stepwise.checking.step_reading import content_words, coverage
from safe_stepwise.language.reading import Span, clean
from safe_stepwise.language.relations import is_nation
from safe_stepwise.language.senses import Form, Meaning, SenseCue, sense_cues
from safe_stepwise.language.text import dates_in
from safe_stepwise.language.vocabulary import word_list, wording
from safe_stepwise.records import Triple

_COORDINATING = frozenset(", and also then co or & as well".split())
_LISTING = word_list("listing")
STOP = " . "
_NEAR = 25  # maximum characters between a cue and a name that belongs to it


_AND = re.compile(r" (?:, )?(?:and|as well as|&|,|along with|together with)(?: the)? $")
_INTRODUCES_NAME = wording("stating", "introducing")


def past_list(step: StepText, first: Span, end_span: Span) -> int:
    """Return the end of the list of names that a span opens ("Ana Vorr and Ors Velt are …"), before another span."""
    end = first[1]
    for (a, b), _ in step.values:
        if end < a and b <= end_span[0] and _AND.match(step.clean[end:a]):
            end = b
    return end


def has_own_subject(step: StepText, low: int, high: int) -> bool:
    """Whether a name between two offsets is a subject: no preposition or cue introduces it."""
    for (a, b), _ in step.values:
        if not (low <= a and b <= high) or dates_in(step.clean[a:b]):
            continue
        if is_nation(step.clean[a:b]):
            continue
        before = step.clean[low:a]
        if _INTRODUCES_NAME.search(before) or before.count("(") > before.count(")"):
            continue
        if not any(low <= cue.start and cue.end < a and a - cue.end <= 2 for cue in step.cues):
            return True
    return False


def governing(step: StepText, first: Span, last: Span) -> list[SenseCue]:
    """Return the cues that join two spans: those between them, else before both, else after both."""
    text = step.clean
    low = text.rfind(STOP, 0, first[0]) + 1
    high = text.find(STOP, last[1])
    high = len(text) if high < 0 else high
    cues = [
        cue for cue in step.cues
        if low <= cue.start and cue.end <= high
        and all(cue.end <= a or b <= cue.start for a, b in (first, last))
    ]  # fmt: skip
    return (
        _between(step, cues, first, last)
        or _before(step, cues, first, last, low)
        or _after(step, cues, first, last, high)
    )


def _between(step: StepText, cues: Sequence[SenseCue], first: Span, last: Span) -> list[SenseCue]:
    """Return the last cue between two spans that is not about another value, and the cues coordinated with it."""
    text = step.clean
    candidates = [cue for cue in cues if first[1] <= cue.start and cue.end <= last[0]]
    if all(_WEAK.match(text[cue.start : cue.end]) for cue in candidates):
        candidates = [] if any(text[cue.end : first[0]] in OF_LINKS for cue in cues) else candidates
    if len({cue.end for cue in candidates}) > 1:  # "his wife was the screenwriter Ana Vorr"
        plain = [c for c in candidates if c.form != "nouns" or not describes(text, c.start - 1, last)]
        candidates = plain or candidates
    while candidates:
        end = candidates[-1].end
        if not _is_about_another(step, candidates[-1], last):
            nearest = [cue for cue in candidates if cue.end == end]
            return nearest + [c for c in candidates if c.end < end and _is_coordinated(text, c, nearest[0])]
        candidates = [cue for cue in candidates if cue.end < end]
    return []


def _before(step: StepText, cues: Sequence[SenseCue], first: Span, last: Span, low: int) -> list[SenseCue]:
    """Return the cues that introduce two spans: "the director of Dune Rain is Ana Vorr"."""
    before = [cue for cue in cues if cue.end <= first[0]]
    near = [
        cue for cue in before
        if not _is_interrupted(step, cue.end, first[0])
        and (cue.form == "nouns" or not has_own_subject(step, low, cue.start))
    ]  # fmt: skip
    if near:
        end = max(cue.end for cue in near)
        return [cue for cue in near if cue.end == end or _is_coordinated(step.clean, cue, near[-1])]
    if before and _ELLIPSIS.fullmatch(step.clean[first[1] : last[0]]):
        end = before[-1].end  # "… was founded in 1870, and the other in 1911"
        return [cue for cue in before if cue.end == end and cue.form != "nouns"]
    return []


def _after(step: StepText, cues: Sequence[SenseCue], first: Span, last: Span, high: int) -> list[SenseCue]:
    """Return the cues that follow two spans: "Oru is where Ana Vorr was born"."""
    relative = _last_word(step.clean[first[1] : last[0]].strip(" ,")) in _RELATIVES
    near = [
        cue for cue in cues
        if cue.start >= last[1] and not _is_interrupted(step, last[1], cue.start)
        and (relative or not _is_about_another(step, cue, (high, high)))
    ]  # fmt: skip
    return [
        cue for cue in near
        if cue.start == near[0].start or _is_coordinated(step.clean, near[0], cue)
    ]  # fmt: skip


_RELATIVES = frozenset(("which", "that", "whom", "where", "when"))
_ELLIPSIS = re.compile(r" (?:(?:was|is) )?(?:by|in|on|from|at) (?:the )?")
_WEAK = re.compile(r"(?:is|was|are|were|be|both) (?:both )?(?:in|from)$")
OF_LINKS = frozenset((" of ", " of the ", " of the film ", " for "))


def _is_coordinated(text: str, cue: SenseCue, last: SenseCue) -> bool:
    """Whether two cues are joined by "and" or a comma: "wrote and directed"."""
    return cue.end <= last.start and _COORDINATING.issuperset(text[cue.end : last.start].split())


def _is_about_another(step: StepText, cue: SenseCue, last: Span) -> bool:
    """Whether a cue is about another value, not the second span: "born in Vel, died in …"."""
    rivals = [
        (a, b) for (a, b), _ in step.values
        if cue.end <= a and b <= last[0] and a - cue.end <= _NEAR
        and not overlaps((a, b), last)
        and not (is_nation(step.clean[a:b]) and not is_nation(step.clean[slice(*last)]))
        and not describes(step.clean, b, last)
    ]  # fmt: skip
    if not rivals or cue.form == "nouns":
        return False
    a, b = min(rivals)
    if any(c.start >= cue.end and c.end <= a for c in step.cues):
        return False
    kinds = {bool(dates_in(step.clean[x:y])) for x, y in (rivals[0], last)}
    if len(kinds) > 1:  # one cue may have a date and a place
        return False
    between = step.clean[b : last[0]]
    if between == " in " or (_last_word(step.clean[:a]) == "by" and _last_word(between) in ("in", "at", "on")):
        return False  # "at Vel in Oru", "killed by Ors in Oru"
    for x, y in sorted(rivals[1:], reverse=True):
        between = between[: x - b] + between[y - b :] if x >= b else between
    return not all(len(w) == 1 or w in _LISTING for w in between.split())


def _last_word(text: str) -> str:
    return text.split()[-1] if text.split() else ""


def describes(text: str, end: int, last: Span) -> bool:
    """Whether the words before the second span say what it is: "the American actor Edward Dillon"."""
    return bool(re.fullmatch(rf" (?:(?:film )?(?:{step_text.SORTS}) ){{0,3}}", text[end : last[0]]))


def _is_interrupted(step: StepText, low: int, high: int) -> bool:
    """Whether a name, or a long text, lies between two offsets."""
    return any(low <= a and b <= high for (a, b), _ in step.values) or high - low > 3 * _NEAR


def direction(step: StepText, cue: SenseCue, head: Span, tail: Span, *, allows_both: bool = False) -> int:
    """Return 1 if the cue runs from head to tail, -1 if from tail to head, 0 if unclear or ``allows_both``."""
    if cue.form == "both" or allows_both:
        return 0
    if cue.form == "nouns" or step.clean.startswith(" of ", cue.end):
        return _noun_direction(step, cue, head, tail)
    sign = _FOLLOWS[cue.form]
    after = [span for span in (head, tail) if span[0] >= cue.end]
    if len(after) == 1:
        return sign if after[0] == tail else -sign
    if not after:  # "Oru is where Ana was born": the cue's head is the last name before it
        return sign if max(head, tail) == head else -sign
    if _is_interrupted(step, cue.end, min(after)[0]):
        return 0
    # "directed by Ana, Dune Rain …", "born in Oru, Ana …": the first name after the cue is its object
    return sign if min(after) == tail else -sign


_FOLLOWS: dict[Form, int] = {"to_tail": 1, "to_head": -1}
_HAD = re.compile(r" ha[sd] .* as (?:an? |the |its |his |her )?$")
_OF = wording("stating", "of")


def _noun_direction(step: StepText, cue: SenseCue, head: Span, tail: Span) -> int:
    """Return the `direction` of a noun by its possessor, 1 for the head: "the director of Dune Rain"."""
    text = step.clean
    for span, sign in ((head, 1), (tail, -1)):
        if cue.end <= span[0] and _OF.match(text[cue.end : span[0]]):
            return sign
        if span[1] <= cue.start and re.match(r"^ ?'s (?:[\w-]+ ){0,3}$", text[span[1] : cue.start]):
            return sign
        if text[span[0] : span[1]] in ("his", "her", "its", "their", "whose"):
            return sign
    if max(head, tail)[1] <= cue.start and _HAD.search(text[: cue.start]):
        return 1 if head < tail else -1
    return 0


# Shares (0-1) of content words that a step must repeat: of a phrase (an end that is no name), and of a free
# relation, generally and if its head is only in focus.
_MIN_PHRASE_SHARE = 0.65
_MIN_RELATION_SHARE = 0.5
_MIN_FOCUS_SHARE = 1 / 3
_MAX_NAME_WORDS = 4  # words; a longer end is a phrase, even if it is capitalised
_NON_POSSESSIVE = frozenset("he she it they him her them".split())


def stance_on_free(step: StepText, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stance:
    """Decide a step's stance on a triple whose relation is free words or a question."""
    question = clean(triple.relation)
    tails = tuple(span for span in tails if step.clean[slice(*span)] not in question)
    words = content_words(triple.relation) - content_words(triple.head)
    words -= content_words(triple.tail)
    has_head = bool(heads or step_text.find_name(step, triple.head)) or _covers(step, triple.head)
    if not has_head and triple.head in step.focus:
        has_head = bool(step_text.find_pronouns(step, tails))
    if not has_head and "…" not in triple.relation:
        # The question names what it asks about; the triple's head is only the page that answers it.
        asked_about = parse_text(triple.relation).reading.values
        has_head = any(step.spans_of(name) for name in asked_about if clean(name) not in step_text.STOP_WORDS)
    has_tail = bool(tails) or _covers(step, triple.tail)
    share = coverage(words, step.reading.claim)
    if not has_tail:
        in_focus = heads and words and triple.tail in step.focus
        by_pronoun = in_focus and any(step.clean[a:b] in _NON_POSSESSIVE for a, b in step.pronouns)
        return "states" if by_pronoun and share >= _MIN_RELATION_SHARE else "no"
    if not has_head:
        enough = _MIN_FOCUS_SHARE if triple.head in step.focus else _MIN_PHRASE_SHARE
        about_another = _names_something_new(step, question, tails)
        return "states" if words and share >= enough and not about_another else "no"
    if stance := step_text.stance_by_name(step, triple.relation, heads, tails):
        return stance
    if not words or share >= _MIN_RELATION_SHARE:
        is_reversed = _reverses_words(step, triple, heads, tails) or _reverses_question(step, triple, heads, tails)
        return "reversed" if is_reversed else "states"
    return _by_sense(step, triple, heads, tails)


def _names_something_new(step: StepText, question: str, tails: Sequence[Span]) -> bool:
    """Whether a step names something that neither the question nor an earlier step mentions."""
    return any(
        " " in value and step.clean[slice(*span)] not in question
        and value not in step.familiar
        and not dates_in(step.clean[slice(*span)])
        and not any(overlaps(span, tail) for tail in tails)
        for span, value in step.values
    )  # fmt: skip


def _by_sense(step: StepText, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stance:
    """Compare the senses of a step's words with those of a free relation, whose words differ.

    If the words have no known sense, they don't count as a different relation.
    """
    relation_cues = sense_cues(clean(triple.relation))
    cues = [
        cue
        for head, tail in pairs(heads, tails)
        if head[1] <= tail[0] or tail[1] <= head[0]
        for cue in governing(step, min(head, tail), max(head, tail))
    ]  # fmt: skip
    senses = {cue.sense for cue in relation_cues}
    if "nation" in senses:
        senses.add("birth")  # where somebody is from
    if shared := senses & {cue.sense for cue in cues or step.cues}:
        return "reversed" if _reverses_senses(step, triple, heads, tails, shared) else "states"
    names_head = bool(heads or step.pronouns)
    relation_verbs, step_verbs = ([c for c in cues_ if c.form != "nouns"] for cues_ in (relation_cues, cues))
    if relation_verbs and step_verbs and heads and tails:
        return "relation"
    return "states" if names_head and tails else "near"


def _reverses_senses(
    step: StepText, triple: Triple, heads: Sequence[Span], tails: Sequence[Span], senses: set[str]
) -> bool:
    """Whether a step uses a sense of a free relation with head and tail swapped."""
    if is_free(triple):
        return _reverses_question(step, triple, heads, tails)
    gold = parse_text(f"{triple.head} {triple.relation} {triple.tail}.")
    gold_turns, step_turns = (
        {
            direction(text, cue, head, tail)
            for cue in text.cues if cue.sense in senses
            for head, tail in pairs(starts, ends)
        }
        for text, starts, ends in (
            (gold, gold.spans_of(triple.head), gold.spans_of(triple.tail)), (step, heads, tails)
        )
    )  # fmt: skip
    return len(gold_turns) == len(step_turns) == 1 and next(iter(gold_turns)) * next(iter(step_turns)) == -1


def _reverses_question(step: StepText, triple: Triple, heads: Sequence[Span], tails: Sequence[Span]) -> bool:
    """Whether a step uses the verb of a question about one fact with the question's ends swapped.

    The question's first word stands for its tail: "What does Oru flow into?".
    """
    question = parse_text(triple.relation.replace("…", triple.head))
    opening = re.match(r" ?(?:what|wh[oi]\w*|where)\b", question.clean)
    if not opening or not heads or not tails:
        return False
    heads = [*heads, *(span for span in step.pronouns if span[0] > heads[0][1])]

    def directions(text: StepText, starts: Sequence[Span], ends: Sequence[Span]) -> set[tuple[str, int]]:
        return {
            (cue.sense, direction(text, cue, start, end))
            for cue in text.cues if cue.form in ("to_tail", "to_head")
            for start, end in pairs(starts, ends) if not overlaps(start, end)
        }  # fmt: skip

    question_directions = directions(question, question.spans_of(triple.head), [opening.span()])
    step_directions = directions(step, heads, tails)
    return (
        any((sense, -sign) in step_directions for sense, sign in question_directions if sign)
        and not question_directions & step_directions
    )


def _covers(step: StepText, name: str) -> bool:
    """Whether a step has most of the content words of an end that is a phrase, not a name."""
    words = content_words(name)
    if not words:
        return clean(name) in step.clean
    if len(words) == 1 or (len(name.split()) <= _MAX_NAME_WORDS and name[:1].isupper()):
        return False
    return coverage(words, step.reading.claim) >= _MIN_PHRASE_SHARE


def _reverses_words(step: StepText, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> bool:
    """Whether a step has the exact words of a free relation, with head and tail swapped."""
    relation = f" {clean(triple.relation)} "
    cues = sense_cues(relation)
    if not relation.strip() or any(cue.form == "both" for cue in cues):
        return False

    def between(starts: Sequence[Span], ends: Sequence[Span]) -> bool:
        return any(
            step.clean[a[1] : b[0]].startswith(relation) or step.clean[a[1] : b[0]] == relation
            for a, b in pairs(starts, ends) if a[1] < b[0]
        )  # fmt: skip

    return between(tails, heads) and not between(heads, tails)


_STRONGEST_FIRST: tuple[Stance, ...] = ("states", "reversed", "relation", "near", "no")


def stance_on_known(
    step: StepText, triple: Triple, meaning: Meaning, heads: tuple[Span, ...], tails: tuple[Span, ...]
) -> Stance:
    """Decide a step's stance on a triple whose relation the vocabulary has, from the spans of its ends."""
    if heads:
        heads += tuple(span for span in step_text.pronouns_for(step, meaning) if span[0] > heads[0][1])
    elif triple.head in step.focus:
        heads = step_text.find_pronouns(step, tails, meaning)
    if not tails and triple.tail in step.focus and heads and meaning.kind != "date":
        tails = step.pronouns
    if not heads or not tails:
        return "no"
    if stance := step_text.stance_by_name(step, triple.relation, heads, tails):
        return stance
    stances = {_stance_of_pair(step, meaning, *ends) for ends in pairs(heads, tails)}
    return next(stance for stance in _STRONGEST_FIRST if stance in stances)


def _stance_of_pair(step: StepText, meaning: Meaning, head: Span, tail: Span) -> Stance:
    """Decide a step's stance by the cues between and around one mention of each end."""
    first, last = sorted((head, tail))
    if first[1] > last[0] or STOP in step.clean[first[1] : last[0]]:
        return "no"
    joint = (first[0], past_list(step, first, last))
    cues = governing(step, joint, last)
    between = [cue for cue in cues if joint[1] <= cue.start < last[0]]
    if between and has_own_subject(step, joint[1], between[0].start):
        return "near"
    if (
        meaning.kind == "nation"
        and (head != IMPLIED_HEAD or not _VERB.match(step.clean, tail[1]))  # "Oru was founded in 1700"
        and _is_adjective(step, joint if head == first else head, joint if tail == first else tail, cues)
    ):
        return "states"
    if meaning.kind == "date":
        cues = [cue for cue in cues if cue.sense in _OF_DATES or _takes_date(step, cue, head, tail)]
        if not cues and _dates_work(step, meaning, head, tail):
            return "states"
    relation_cues = [cue for cue in cues if cue.sense in meaning.senses | meaning.turned]
    if relation_cues:
        is_text = meaning.kind == "text"  # a cause or genre has no direction of its own
        turns = {
            1
            if meaning.kind == "date" and cue.end <= head[0] < tail[0]  # "released it in 1950"
            else direction(step, cue, head, tail, allows_both=is_text) * (1 if cue.sense in meaning.senses else -1)
            for cue in relation_cues
        }
        return "reversed" if turns == {-1} else "states"
    if all(cue.sense in _SENSES_WITHOUT_CLAIM for cue in cues):
        return "near" if not cues else "no"
    return "relation"


_SENSES_WITHOUT_CLAIM = frozenset(("other_kin",))
_OF_DATES = frozenset("birth birth_date death death_date lived burial release inception spouse award".split())
_IN_A_YEAR = wording("stating", "in_a_year")


def _takes_date(step: StepText, cue: SenseCue, head: Span, tail: Span) -> bool:
    """Whether a cue that can't have a date as its value has one here: "directed by 1964"."""
    text = step.clean
    if cue.form == "nouns":
        return text[cue.end : head[0]] in OF_LINKS or direction(step, cue, head, tail) != 0
    if cue.form == "to_head":
        return text[tail[1] : cue.start] in (" ", " who ", " is the one who ")
    return text[cue.start : tail[0]].endswith(" by ")


def _dates_work(step: StepText, meaning: Meaning, head: Span, tail: Span) -> bool:
    """Whether a date is given as the year of a work: "Dune Rain (1950)", "is a 1950 film"."""
    if "release" not in meaning.senses or head[0] > tail[0]:
        return False
    between = step.clean[head[1] : tail[0]]
    return "born" not in between and bool(_IN_A_YEAR.match(between))


_HAS_NATION = re.compile(r".*\b(?:has|had|holds?)\b")
_NATIONALITY = re.compile(r" (?:nationality|citizenship|origin|passport)")
_COPULA = word_list("copula")
_VERB = re.compile(r" (?:is|was|are|were|has|had) ")
_ASIDE = wording("stating", "aside")
_BRACKETS = re.compile(r"\([^()]*+\)")


def _is_adjective(step: StepText, head: Span, tail: Span, cues: Sequence[SenseCue]) -> bool:
    """Whether a nation describes a head as an adjective: "is an American …", "the American Ana"."""
    if head[1] <= tail[0]:
        is_object = any(
            cue.end <= head[0] and step.clean[cue.start : head[0]].endswith(tuple(OF_LINKS)) for cue in cues
        )
        has = _HAS_NATION.match(step.clean[head[1] :][: tail[0] - head[1]])
        if has and not _NATIONALITY.match(step.clean[tail[1] :]):
            return False
        between = _ASIDE.sub(" ", _BRACKETS.sub("", step.clean[head[1] : tail[0]])).split()
        return not is_object and all(w in _COPULA or w.rstrip("s").isdigit() or is_nation(w) for w in between)
    plain = step.clean[tail[1] : head[0]].split()
    has_verb = any(tail[1] <= cue.start < head[0] and cue.form != "nouns" for cue in cues)
    is_short = len(plain) <= 4 and all(w.isalpha() and w not in step_text.STOP_WORDS for w in plain)
    return is_short and not has_verb
