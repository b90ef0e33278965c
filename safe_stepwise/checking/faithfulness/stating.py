"""What a step does with a triple of a known relation, by the words that join its two ends."""

import re
from collections.abc import Sequence

from safe_stepwise.checking.faithfulness.joining import LED, STOP, direction, governing, has_own_subject, past_list
from safe_stepwise.checking.faithfulness.said import STOP_WORDS, Said, Stand, pairs, pronouns_for, stand_ins, verbatim
from safe_stepwise.language.reading import Span
from safe_stepwise.language.relations import is_nation
from safe_stepwise.language.senses import Meaning, SenseCue
from safe_stepwise.language.vocabulary import word_list, wording
from safe_stepwise.records import Triple

_BEST: tuple[Stand, ...] = ("states", "reversed", "relation", "near", "no")


def stand_of_known(
    said: Said, triple: Triple, meaning: Meaning, heads: tuple[Span, ...], tails: tuple[Span, ...]
) -> Stand:
    """What a step does with a triple whose relation the vocabulary has, named at these spans."""
    if heads:
        heads += tuple(span for span in pronouns_for(said, meaning) if span[0] > heads[0][1])
    elif triple.head in said.focus:
        heads = stand_ins(said, tails, meaning)
    if not tails and triple.tail in said.focus and heads and meaning.kind != "date":
        tails = said.pronouns
    if not heads or not tails:
        return "no"
    if by_name := verbatim(said, triple.relation, heads, tails):
        return by_name
    found = {_joined(said, meaning, *ends) for ends in pairs(heads, tails)}
    return next(each for each in _BEST if each in found)


def _joined(said: Said, meaning: Meaning, head: Span, tail: Span) -> Stand:
    """What the wording between and around two spans makes of them."""
    first, second = sorted((head, tail))
    if first[1] > second[0]:
        return "no"
    if STOP in said.clean[first[1] : second[0]]:
        return "no"
    joint = (first[0], past_list(said, first, second))
    cues = governing(said, joint, second)
    between = [cue for cue in cues if joint[1] <= cue.start < second[0]]
    if between and has_own_subject(said, joint[1], between[0].start):
        return "near"
    if (
        meaning.kind == "nation"
        and not _is_subject(said, head, tail)
        and _is_adjective(said, joint if head == first else head, joint if tail == first else tail, cues)
    ):
        return "states"
    if meaning.kind == "date":
        cues = [cue for cue in cues if cue.sense in _OF_DATES or _needs(said, cue, head, tail)]
        if not cues and _dates_work(said, meaning, head, tail):
            return "states"
    own = [cue for cue in cues if cue.sense in meaning.says | meaning.turned]
    if own:
        by_words = meaning.kind == "text"  # a cause or genre is nothing that has a head of its own
        turns = {
            1
            if meaning.kind == "date" and cue.end <= head[0] < tail[0]  # "released it in 1950"
            else direction(said, cue, head, tail, text_is_said=by_words) * _sign(cue, meaning)
            for cue in own
        }
        return "reversed" if turns == {-1} else "states"
    if all(cue.sense in _TELLS_NOTHING for cue in cues):
        return "near" if not cues else "no"
    return "relation"


_TELLS_NOTHING = frozenset(("other_kin",))
_OF_DATES = frozenset("birth birth_date death death_date lived burial release inception spouse award".split())
_IN_A_YEAR = wording("stating", "in_a_year")


def _needs(said: Said, cue: SenseCue, head: Span, tail: Span) -> bool:
    """Whether wording that no date goes with takes one all the same: "directed by 1964"."""
    text = said.clean
    if cue.form == "nouns":
        return text[cue.end : head[0]] in LED or direction(said, cue, head, tail) != 0
    if cue.form == "to_head":
        return text[tail[1] : cue.start] in (" ", " who ", " is the one who ")
    return text[cue.start : tail[0]].endswith(" by ")


def _dates_work(said: Said, meaning: Meaning, head: Span, tail: Span) -> bool:
    """Whether a date stands beside a work as its year: "Dune Rain (1950)", "is a 1950 film"."""
    if "release" not in meaning.says or head[0] > tail[0]:
        return False
    between = said.clean[head[1] : tail[0]]
    return "born" not in between and bool(_IN_A_YEAR.match(between))


def _sign(cue: SenseCue, meaning: Meaning) -> int:
    return 1 if cue.sense in meaning.says else -1


_OWNED = (" of ", " of the ", " of the film ", " for ")
_HAS_NATION = re.compile(r".*\b(?:has|had|holds?)\b")
_NATIONALITY = re.compile(r" (?:nationality|citizenship|origin|passport)")
_COPULA = word_list("copula")
_VERB = re.compile(r" (?:is|was|are|were|has|had) ")
_ASIDE = wording("stating", "aside")
_BRACKETS = re.compile(r"\([^()]*+\)")


def _is_copula(words: str) -> bool:
    """Whether words say no more than that something is: years, nations and brackets apart."""
    plain = _ASIDE.sub(" ", _BRACKETS.sub("", words)).split()
    return all(w in _COPULA or w.rstrip("s").isdigit() or is_nation(w) for w in plain)


def _is_subject(said: Said, head: Span, tail: Span) -> bool:
    """Whether a step that does not name a head speaks of its tail: "Oru was founded in 1700"."""
    return not head[1] and bool(_VERB.match(said.clean, tail[1]))


def _is_adjective(said: Said, head: Span, tail: Span, cues: Sequence[SenseCue]) -> bool:
    """Whether a nation is said of a head as what it is: "is an American …", "the American Ana"."""
    if head[1] <= tail[0]:
        led = any(cue.end <= head[0] and said.clean[cue.start : head[0]].endswith(_OWNED) for cue in cues)
        has = _HAS_NATION.match(said.clean[head[1] :][: tail[0] - head[1]])
        if has and not _NATIONALITY.match(said.clean[tail[1] :]):
            return False
        return not led and _is_copula(said.clean[head[1] : tail[0]])
    plain = said.clean[tail[1] : head[0]].split()
    acts = any(tail[1] <= cue.start < head[0] and cue.form != "nouns" for cue in cues)
    few = len(plain) <= 4 and all(w.isalpha() and w not in STOP_WORDS for w in plain)
    return few and not acts
