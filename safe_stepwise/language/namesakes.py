"""Decides whether a name in one passage means another passage's subject, or only a namesake.

Benchmarks that link pages by name confuse the Elder and the Younger, towns of one name in two provinces, a composer
and a footballer. Each check needs positive evidence in the text; without it, two mentions of a name mean one entity.
"""

import re

from safe_stepwise.language.mentions import mentions
from safe_stepwise.language.reading import Text, clean
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.text import dates_in, normal_name, qualifier, words_of
from safe_stepwise.language.vocabulary import load, word_list, wording

_EPITHET = wording("namesakes", "epithet")
_ORDINAL = {"first": "i", "second": "ii", "third": "iii", "sr": "senior", "jr": "junior"}
_HATNOTE = wording("namesakes", "hatnote")
_NOT_TO_BE_CONFUSED = " is not to be confused with the "
_NOT_THE_OTHER = rf"\bthe ([\w ]{{{{1,40}}}}?) {{}}{_NOT_TO_BE_CONFUSED}([\w ]{{{{1,40}}}}?) of the same name"
# A single letter is an initial, unless it is a word ("a", "i") or a Romance conjunction.
_EXTENSION = wording("namesakes", "extension")
_DIVISIONS = word_list("divisions")
_REGION = re.compile(rf" [,(] ((?:(?!\d)\w+ ){{1,3}}?)(?:[,.();]|{'|'.join(_DIVISIONS)}|$)")
_IN_REGION = re.compile(rf" in ((?:(?!\d)\w+ ){{1,3}}?)(?:{'|'.join(_DIVISIONS)})\b")
_NOT_A_REGION = word_list("not_a_region")
_BIRTH_YEAR = re.compile(r"\bborn (?:(?!died\b|--)[^()]){0,60}?(\d{4})\b")
_DEATH_YEAR = re.compile(r"\bdied [^()]{0,60}?(\d{4})\b")
_ROLES: dict[str, str] = load("words")["roles"]
_OCCUPATION = re.compile(r"(?:er|or|ist|ian|ess|man|bishop|priest|judge|clergy)$")
_OPENING = 300
_ALIVE = frozenset(("director", "producer", "cast member", "founded by", "performer"))
_LEAD = 400
_MAX_AGE_GAP = 60  # years between the births of siblings or spouses
_MIN_LIFE = 12  # years; a shorter span with a work is not a life
_LATE_RELEASE = 15  # years after a death within which a credited work can still appear


def epithet(name: str) -> str:
    """Return the word that distinguishes namesakes: "elder", "ii", a profession in brackets; "" if there is none.

    >>> epithet("Ors Velt the Elder"), epithet("Ors Velt (painter)"), epithet("Ors Velt")
    ('elder', 'painter', '')
    """
    if described := qualifier(name):
        return described
    match = _EPITHET.search(words_of(name))
    return _ORDINAL.get(match[1], match[1]) if match else ""


def are_name_alikes(name: str, other_name: str) -> bool:
    """Whether two names differ only in their epithets, and so mean two entities.

    >>> are_name_alikes("Ors Velt the Elder", "Ors Velt the Younger")
    True
    >>> are_name_alikes("Ors Velt", "Ors Velt the Younger")
    False
    """
    a, b = epithet(name), epithet(other_name)
    if not a or not b or a == b:
        return False
    return _without_epithet(name) == _without_epithet(other_name)


def _without_epithet(name: str) -> str:
    return _EPITHET.sub("", normal_name(name)).removesuffix(" the").strip()


def explain_difference(name: str, relation: str, source: Text, subject: Text) -> str:
    """Explain in one clause why a name does not mean the subject of a passage; "" if nothing distinguishes them.

    ``name`` is the tail of ``relation`` in the passage ``source``; ``subject`` is the passage it might mean.
    """
    clues = (_by_epithet, _by_qualifier, _by_region, _by_hatnote, _by_dates)
    return next(filter(None, (clue(name, relation, source, subject) for clue in clues)), "")


def extended(name: str, source: Text) -> str:
    """Return a name with the epithet or initial that a passage adds to it; "" if it adds none."""
    base = clean(name)
    for start, end in mentions(source, name):
        if source.clean[start:end] == base and (match := _EXTENSION.match(source.clean, end)):
            full = f"{base} {match[1]}"
            if full != clean(source.title):
                return full
    return ""


def _by_epithet(name: str, relation: str, source: Text, subject: Text) -> str:
    title = clean(subject.title)
    full = extended(name, source)
    for form in (full, clean(name)):
        if form and are_name_alikes(form, title):
            return f"“{form}” is not “{subject.title}”"
    if full and len(full.rpartition(" ")[2]) == 1 and title == clean(name):
        return f"“{full}” is not “{subject.title}”"
    return ""


def _by_qualifier(name: str, relation: str, source: Text, subject: Text) -> str:
    if relation not in _ROLES or "(" not in subject.title:
        return ""
    described = qualifier(subject.title)
    if not _OCCUPATION.search(described):
        return ""
    opening = f"{described} {subject.clean[:_OPENING]}"
    if re.search(rf"\b(?:{_ROLES[relation]})\b", opening):
        return ""
    return f"“{subject.title}” has another profession"


def _by_region(name: str, relation: str, source: Text, subject: Text) -> str:
    definition = RELATIONS.get(relation)
    if definition is None or definition.kind != "place":
        return ""
    base, parted, region = clean(subject.title).replace("(", ",").partition(" , ")
    if not parted:
        return ""
    subject_words = {*region.split(), *subject.clean.split()}
    for _, end in mentions(source, base):
        match = _REGION.match(source.clean, end) or _IN_REGION.match(source.clean, end)
        region_words = set(match[0].split()) if match else set()
        words = set(match[1].split()) - _DIVISIONS if match else set()
        # A county is compared with a county, not with the state that it lies in.
        if bool(_DIVISIONS & region_words) != bool(_DIVISIONS & {*region.split()}):
            continue
        if match and words and not words & _NOT_A_REGION and not words & subject_words:
            return f"“{base}, {match[1].strip()}” is not “{subject.title}”"
    return ""


def _by_hatnote(name: str, relation: str, source: Text, subject: Text) -> str:
    opening = f"{clean(subject.title)} . {subject.clean.split(' . ', 1)[0]}"
    warns = _NOT_TO_BE_CONFUSED in source.clean  # else no pattern is made for the name
    pair = warns and re.search(_NOT_THE_OTHER.format(re.escape(clean(name))), source.clean)
    if pair and pair[2] in opening and pair[1] not in opening:
        return f"“{subject.title}” is about the {pair[2]}, not the {pair[1]}"
    warned = any(_HATNOTE.search(text.clean) for text in (source, subject))
    if not warned or relation not in _ROLES or re.search(rf"\b(?:{_ROLES[relation]})\b", opening):
        return ""
    return f"“{subject.title}” is about a namesake with another profession"


def _by_dates(name: str, relation: str, source: Text, subject: Text) -> str:
    (birth, death), other_birth = _life(subject), _life(source)[0]
    label = f"the subject of “{subject.title}”"
    if relation in ("father", "mother"):
        if other_birth and birth and birth + 10 > other_birth:
            return f"{label} was born in {birth}, too late for a birth in {other_birth}"
        if other_birth and death and death + 1 < other_birth:
            return f"{label} died in {death}, before {other_birth}"
        return ""
    if relation in ("sibling", "spouse") and other_birth and birth:
        if abs(birth - other_birth) > _MAX_AGE_GAP:
            return f"{label} was born in {birth}, generations from {other_birth}"
        return ""
    opening = source.clean[: min([_LEAD, *source.stops[:1]])]
    start = next((date.year for date in dates_in(opening) if date.year > 1000), 0)  # of the source's subject
    if relation in _ALIVE and start and death and death + _LATE_RELEASE < start:
        return f"{label} died in {death}, before {start}"
    if relation in _ALIVE and start and birth > start:
        return f"{label} was born in {birth}, after {start}"
    return ""


def _life(text: Text) -> tuple[int, int]:
    """Return the years of birth and death in a passage's opening; 0 if not given."""
    opening = text.clean[:260]
    birth, death = _BIRTH_YEAR.search(opening), _DEATH_YEAR.search(opening)
    years = (int(birth[1]) if birth else 0), (int(death[1]) if death else 0)
    # A short span is not the life of a person with a work.
    return years if not all(years) or years[1] - years[0] > _MIN_LIFE else (0, 0)
