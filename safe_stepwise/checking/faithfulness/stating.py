"""What a step does with a triple, by the words between and around its two names: how they join them, which way."""

import re
from collections.abc import Sequence

from safe_stepwise.checking.faithfulness import said as reads
from safe_stepwise.checking.faithfulness.said import SORTS, STOP_WORDS, Said, Stand, named, overlaps, pairs, said_by
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
_NEAR = 25  # characters between a wording and a name beside it, where no name stands between them


_AND = re.compile(r" (?:, )?(?:and|as well as|&|,|along with|together with)(?: the)? $")
_LED_TO = wording("stating", "led_to")


def past_list(said: Said, first: Span, second: Span) -> int:
    """Where a list of names that the first one opens ends: "Ana Vorr and Ors Velt are …"."""
    end = first[1]
    for (a, b), _ in said.values:
        if end < a and b <= second[0] and _AND.match(said.clean[end:a]):
            end = b
    return end


def has_own_subject(said: Said, low: int, high: int) -> bool:
    """Whether a name between two offsets is what the words behind it speak of.

    A name that a preposition, or wording of some sense, leads up to is spoken of already.
    """
    for (a, b), _ in said.values:
        if not (low <= a and b <= high) or dates_in(said.clean[a:b]):
            continue
        if is_nation(said.clean[a:b]):
            continue
        before = said.clean[low:a]
        if _LED_TO.search(before) or before.count("(") > before.count(")"):
            continue
        led = [cue for cue in said.cues if low <= cue.start and cue.end < a and a - cue.end <= 2]
        if not led:
            return True
    return False


def governing(said: Said, first: Span, second: Span) -> list[SenseCue]:
    """The cues that join two spans: between them, else before both, else behind both."""
    text = said.clean
    low = text.rfind(STOP, 0, first[0]) + 1
    high = text.find(STOP, second[1])
    high = len(text) if high < 0 else high
    cues = [
        cue for cue in said.cues
        if low <= cue.start and cue.end <= high
        and all(cue.end <= a or b <= cue.start for a, b in (first, second))
    ]  # fmt: skip
    return (
        _between(said, cues, first, second)
        or _before(said, cues, first, second, low)
        or _behind(said, cues, first, second, high)
    )


def _between(said: Said, cues: Sequence[SenseCue], first: Span, second: Span) -> list[SenseCue]:
    """The last cue between two spans that says nothing of another value, and those one with it."""
    text = said.clean
    left = [cue for cue in cues if first[1] <= cue.start and cue.end <= second[0]]
    if all(_WEAK.match(text[cue.start : cue.end]) for cue in left):
        left = [] if any(text[cue.end : first[0]] in LED for cue in cues) else left
    if len({cue.end for cue in left}) > 1:  # "his wife was the screenwriter Ana Vorr"
        plain = [c for c in left if c.form != "nouns" or not leads_on(text, c.start - 1, second)]
        left = plain or left
    while left:
        end = left[-1].end
        if not _is_taken(said, left[-1], second):
            last = [cue for cue in left if cue.end == end]
            return last + [c for c in left if c.end < end and _together(text, c, last[0])]
        left = [cue for cue in left if cue.end < end]
    return []


def _before(said: Said, cues: Sequence[SenseCue], first: Span, second: Span, low: int) -> list[SenseCue]:
    """The cue that leads up to two spans: "the director of Dune Rain is Ana Vorr"."""
    before = [cue for cue in cues if cue.end <= first[0]]
    near = [
        cue for cue in before
        if not _names_between(said, cue.end, first[0])
        and (cue.form == "nouns" or not has_own_subject(said, low, cue.start))
    ]  # fmt: skip
    if near:
        end = max(cue.end for cue in near)
        return [cue for cue in near if cue.end == end or _together(said.clean, cue, near[-1])]
    if before and _ELLIPSIS.fullmatch(said.clean[first[1] : second[0]]):
        end = before[-1].end  # "… was founded in 1870, and the other in 1911"
        return [cue for cue in before if cue.end == end and cue.form != "nouns"]
    return []


def _behind(said: Said, cues: Sequence[SenseCue], first: Span, second: Span, high: int) -> list[SenseCue]:
    """The cue that follows on two spans: "Oru is where Ana Vorr was born"."""
    relative = _ends(said.clean[first[1] : second[0]].strip(" ,")) in _RELATIVES
    near = [
        cue for cue in cues
        if cue.start >= second[1] and not _names_between(said, second[1], cue.start)
        and (relative or not _is_taken(said, cue, (high, high)))
    ]  # fmt: skip
    return [
        cue for cue in near
        if cue.start == near[0].start or _together(said.clean, near[0], cue)
    ]  # fmt: skip


_RELATIVES = frozenset(("which", "that", "whom", "where", "when"))
_ELLIPSIS = re.compile(r" (?:(?:was|is) )?(?:by|in|on|from|at) (?:the )?")
_WEAK = re.compile(r"(?:is|was|are|were|be|both) (?:both )?(?:in|from)$")
LED = frozenset((" of ", " of the ", " of the film ", " for "))


def _together(text: str, cue: SenseCue, last: SenseCue) -> bool:
    """Whether two cues are one: "wrote and directed"."""
    return cue.end <= last.start and _COORDINATING.issuperset(text[cue.end : last.start].split())


def _is_taken(said: Said, cue: SenseCue, second: Span) -> bool:
    """Whether another value than the second span is what a cue says: "born in Vel, died in …"."""
    taken = [
        (a, b) for (a, b), _ in said.values
        if cue.end <= a and b <= second[0] and a - cue.end <= _NEAR
        and not overlaps((a, b), second)
        and not (is_nation(said.clean[a:b]) and not is_nation(said.clean[slice(*second)]))
        and not leads_on(said.clean, b, second)
    ]  # fmt: skip
    if not taken or cue.form == "nouns":
        return False
    a, b = min(taken)
    if any(c.start >= cue.end and c.end <= a for c in said.cues):
        return False
    kinds = {bool(dates_in(said.clean[x:y])) for x, y in (taken[0], second)}
    if len(kinds) > 1:  # a date beside a place is what the same cue says
        return False
    rest = said.clean[b : second[0]]
    if rest == " in " or (_ends(said.clean[:a]) == "by" and _ends(rest) in ("in", "at", "on")):
        return False  # "at Vel in Oru", "killed by Ors in Oru"
    for x, y in sorted(taken[1:], reverse=True):
        rest = rest[: x - b] + rest[y - b :] if x >= b else rest
    return not all(len(w) == 1 or w in _LISTING for w in rest.split())


def _ends(text: str) -> str:
    return text.split()[-1] if text.split() else ""


def leads_on(text: str, end: int, second: Span) -> bool:
    """Whether words say what the second span is: "the American actor Edward Dillon"."""
    return bool(re.fullmatch(rf" (?:(?:film )?(?:{SORTS}) ){{0,3}}", text[end : second[0]]))


def _names_between(said: Said, low: int, high: int) -> bool:
    return any(low <= a and b <= high for (a, b), _ in said.values) or high - low > 3 * _NEAR


def direction(said: Said, cue: SenseCue, head: Span, tail: Span, *, text_is_said: bool = False) -> int:
    """1 where a cue makes the head its head, -1 where its tail, 0 where it does not tell."""
    if cue.form == "both" or text_is_said:
        return 0
    if cue.form == "nouns" or said.clean.startswith(" of ", cue.end):
        return _owner(said, cue, head, tail)
    sign = _FOLLOWS[cue.form]
    after = [span for span in (head, tail) if span[0] >= cue.end]
    if len(after) == 1:
        return sign if after[0] == tail else -sign
    if not after:  # "Oru is where Ana was born": what stands last before it is what it is said of
        return sign if max(head, tail) == head else -sign
    if _names_between(said, cue.end, min(after)[0]):
        return 0
    # "directed by Ana, Dune Rain …", "born in Oru, Ana …": what comes first is what it leads to
    return sign if min(after) == tail else -sign


_FOLLOWS: dict[Form, int] = {"to_tail": 1, "to_head": -1}
_HAD = re.compile(r" ha[sd] .* as (?:an? |the |its |his |her )?$")
_OF = wording("stating", "of")


def _owner(said: Said, cue: SenseCue, head: Span, tail: Span) -> int:
    """Whose tail a noun names: "the director of Dune Rain", "Dune Rain's director"."""
    text = said.clean
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


_LONG = 5
_MOST = 0.65  # share of a long tail's content words that a step has to have
_LEAST = 1 / 3  # share of a free relation's content words that say it of what was told before
_NO_OWNERS = frozenset("he she it they him her them".split())
_HALF = 0.5  # share of a free relation's content words that say it


def stand_of_free(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stand:
    """The same for a relation in words of its own, or a question."""
    asks = clean(triple.relation)
    tails = tuple(span for span in tails if said.clean[slice(*span)] not in asks)
    words = content_words(triple.relation) - content_words(triple.head)
    words -= content_words(triple.tail)
    has_head = bool(heads or named(said, triple.head)) or _covers(said, triple.head)
    if not has_head and triple.head in said.focus:
        has_head = bool(reads.stand_ins(said, tails))
    if not has_head and "…" not in triple.relation:
        # What a question asks about stands in it; its head is but the page that answers it.
        asked_about = said_by(triple.relation).reading.values
        has_head = any(said.named(name) for name in asked_about if clean(name) not in STOP_WORDS)
    has_tail = bool(tails) or _covers(said, triple.tail)
    share = coverage(words, said.reading.claim)
    if not has_tail:
        told_before = heads and words and triple.tail in said.focus
        by_pronoun = told_before and any(said.clean[a:b] in _NO_OWNERS for a, b in said.pronouns)
        return "states" if by_pronoun and share >= _HALF else "no"
    if not has_head:
        enough = _LEAST if triple.head in said.focus else _MOST
        about_another = _names_strangers(said, asks, tails)
        return "states" if words and share >= enough and not about_another else "no"
    if by_name := reads.verbatim(said, triple.relation, heads, tails):
        return by_name
    if not words or share >= _HALF:
        turned = _turned(said, triple, heads, tails) or _asked_turned(said, triple, heads, tails)
        return "reversed" if turned else "states"
    return _by_sense(said, triple, heads, tails)


def _names_strangers(said: Said, asks: str, tails: Sequence[Span]) -> bool:
    """Whether a step names somebody of whom neither the question nor an earlier step speaks."""
    return any(
        " " in value and said.clean[slice(*span)] not in asks
        and value not in said.familiar
        and not dates_in(said.clean[slice(*span)])
        and not any(overlaps(span, tail) for tail in tails)
        for span, value in said.values
    )  # fmt: skip


def _by_sense(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stand:
    """The same where a step has other words than a free relation: by what both mean.

    Words of which no sense is known are no other relation: such a step states the triple.
    """
    asked = sense_cues(clean(triple.relation))
    cues = [
        cue
        for head, tail in pairs(heads, tails)
        if head[1] <= tail[0] or tail[1] <= head[0]
        for cue in governing(said, min(head, tail), max(head, tail))
    ]  # fmt: skip
    senses = {cue.sense for cue in asked}
    if "nation" in senses:
        senses.add("birth")  # where somebody is from
    if shared := senses & {cue.sense for cue in cues or said.cues}:
        return "reversed" if _turns(said, triple, heads, tails, shared) else "states"
    by_name = bool(heads or said.pronouns)
    known, told = ([c for c in those if c.form != "nouns"] for those in (asked, cues))
    if known and told and heads and tails:
        return "relation"
    return "states" if by_name and tails else "near"


def _turns(said: Said, triple: Triple, heads: Sequence[Span], tails: Sequence[Span], senses: set[str]) -> bool:
    """Whether a step joins the ends by a sense of a free relation the other way round."""
    if is_free(triple):
        return _asked_turned(said, triple, heads, tails)
    gold = said_by(f"{triple.head} {triple.relation} {triple.tail}.")
    ours, theirs = (
        {
            direction(of, cue, head, tail)
            for cue in of.cues if cue.sense in senses
            for head, tail in pairs(ones, others)
        }
        for of, ones, others in (
            (gold, gold.named(triple.head), gold.named(triple.tail)), (said, heads, tails)
        )
    )  # fmt: skip
    return len(ours) == len(theirs) == 1 and next(iter(ours)) * next(iter(theirs)) == -1


def _asked_turned(said: Said, triple: Triple, heads: Sequence[Span], tails: Sequence[Span]) -> bool:
    """Whether a step joins the ends of a question of one fact by its verb the other way round.

    What is asked for stands in the question as its first word: "What does Oru flow into?".
    """
    asked = said_by(triple.relation.replace("…", triple.head))
    opening = re.match(r" ?(?:what|wh[oi]\w*|where)\b", asked.clean)
    if not opening or not heads or not tails:
        return False
    heads = [*heads, *(span for span in said.pronouns if span[0] > heads[0][1])]

    def ways(of: Said, ones: Sequence[Span], others: Sequence[Span]) -> set[tuple[str, int]]:
        return {
            (cue.sense, direction(of, cue, one, other))
            for cue in of.cues if cue.form in ("to_tail", "to_head")
            for one, other in pairs(ones, others) if not overlaps(one, other)
        }  # fmt: skip

    ours = ways(asked, asked.named(triple.head), [opening.span()])
    theirs = ways(said, heads, tails)
    return any((sense, -way) in theirs for sense, way in ours if way) and not ours & theirs


def _covers(said: Said, name: str) -> bool:
    """Whether a step has most of the words of a phrase, which is no name."""
    words = content_words(name)
    if not words:
        return clean(name) in said.clean
    if len(words) == 1 or (len(name.split()) < _LONG and name[:1].isupper()):
        return False
    return coverage(words, said.reading.claim) >= _MOST


def _turned(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> bool:
    """Whether a step has a free relation's very words between its ends, exchanged."""
    relation = f" {clean(triple.relation)} "
    cues = sense_cues(relation)
    if not relation.strip() or any(cue.form == "both" for cue in cues):
        return False

    def between(ones: Sequence[Span], others: Sequence[Span]) -> bool:
        return any(
            said.clean[a[1] : b[0]].startswith(relation) or said.clean[a[1] : b[0]] == relation
            for a, b in pairs(ones, others) if a[1] < b[0]
        )  # fmt: skip

    return between(tails, heads) and not between(heads, tails)


_BEST: tuple[Stand, ...] = ("states", "reversed", "relation", "near", "no")


def stand_of_known(
    said: Said, triple: Triple, meaning: Meaning, heads: tuple[Span, ...], tails: tuple[Span, ...]
) -> Stand:
    """What a step does with a triple whose relation the vocabulary has, named at these spans."""
    if heads:
        heads += tuple(span for span in reads.pronouns_for(said, meaning) if span[0] > heads[0][1])
    elif triple.head in said.focus:
        heads = reads.stand_ins(said, tails, meaning)
    if not tails and triple.tail in said.focus and heads and meaning.kind != "date":
        tails = said.pronouns
    if not heads or not tails:
        return "no"
    if by_name := reads.verbatim(said, triple.relation, heads, tails):
        return by_name
    found = {_joined(said, meaning, *ends) for ends in pairs(heads, tails)}
    return next(each for each in _BEST if each in found)


def _joined(said: Said, meaning: Meaning, head: Span, tail: Span) -> Stand:
    """What the wording between and around two spans makes of them."""
    first, second = sorted((head, tail))
    if first[1] > second[0] or STOP in said.clean[first[1] : second[0]]:
        return "no"
    joint = (first[0], past_list(said, first, second))
    cues = governing(said, joint, second)
    between = [cue for cue in cues if joint[1] <= cue.start < second[0]]
    if between and has_own_subject(said, joint[1], between[0].start):
        return "near"
    if (
        meaning.kind == "nation"
        and (head[1] or not _VERB.match(said.clean, tail[1]))  # "Oru was founded in 1700"
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
            else direction(said, cue, head, tail, text_is_said=by_words) * (1 if cue.sense in meaning.says else -1)
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


_OWNED = (" of ", " of the ", " of the film ", " for ")
_HAS_NATION = re.compile(r".*\b(?:has|had|holds?)\b")
_NATIONALITY = re.compile(r" (?:nationality|citizenship|origin|passport)")
_COPULA = word_list("copula")
_VERB = re.compile(r" (?:is|was|are|were|has|had) ")
_ASIDE = wording("stating", "aside")
_BRACKETS = re.compile(r"\([^()]*+\)")


def _is_adjective(said: Said, head: Span, tail: Span, cues: Sequence[SenseCue]) -> bool:
    """Whether a nation is said of a head as what it is: "is an American …", "the American Ana"."""
    if head[1] <= tail[0]:
        led = any(cue.end <= head[0] and said.clean[cue.start : head[0]].endswith(_OWNED) for cue in cues)
        has = _HAS_NATION.match(said.clean[head[1] :][: tail[0] - head[1]])
        if has and not _NATIONALITY.match(said.clean[tail[1] :]):
            return False
        between = _ASIDE.sub(" ", _BRACKETS.sub("", said.clean[head[1] : tail[0]])).split()
        return not led and all(w in _COPULA or w.rstrip("s").isdigit() or is_nation(w) for w in between)
    plain = said.clean[tail[1] : head[0]].split()
    acts = any(tail[1] <= cue.start < head[0] and cue.form != "nouns" for cue in cues)
    few = len(plain) <= 4 and all(w.isalpha() and w not in STOP_WORDS for w in plain)
    return few and not acts
