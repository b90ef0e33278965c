"""Decides whether a name in one passage means another passage's subject, or only a namesake.

Benchmarks that link pages by name confuse the Elder and the Younger, towns of one name in two provinces, a composer
and a footballer. Each check needs positive evidence in the text; without it, two mentions of a name mean one entity.
"""

import re

from safe_stepwise.language.mentions import mentions
from safe_stepwise.language.reading import Text, clean
from safe_stepwise.language.relations import RELATIONS
from safe_stepwise.language.text import dates_in, normal_name, normal_words, qualifier
from safe_stepwise.language.vocabulary import load, word_list, wording

_EPITHET = wording("namesakes", "epithet")
_ORDINAL = {"first": "i", "second": "ii", "third": "iii", "sr": "senior", "jr": "junior"}
_HATNOTE = wording("namesakes", "hatnote")
_NOT_TO_BE_CONFUSED = " is not to be confused with the "
# Filled with a name: "the town Oru is not to be confused with the village of the same name".
_CONFUSION = rf"\bthe ([\w ]{{{{1,40}}}}?) {{}}{_NOT_TO_BE_CONFUSED}([\w ]{{{{1,40}}}}?) of the same name"
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
_MAX_PROFESSION_OFFSET = 300  # characters of a passage in which it names its subject's profession
_MAX_LIFE_OFFSET = 260  # characters in which it gives the years of birth and death
_MAX_DATE_OFFSET = 400  # characters of a first sentence in which a work's date is looked for
_MADE_ALIVE = frozenset(("director", "producer", "cast member", "founded by", "performer"))
"""Relations whose tail is a person who was alive when the head was made."""
_MAX_AGE_GAP = 60  # years between the births of siblings or spouses
_MIN_LIFE = 12  # years
_LATE_RELEASE = 15  # years after a death within which a credited work can still appear


def epithet(name: str) -> str:
    """Return the word that distinguishes namesakes: "elder", "ii", a profession in brackets; "" if there is none.

    >>> epithet("Ors Velt the Elder"), epithet("Ors Velt (painter)"), epithet("Ors Velt")
    ('elder', 'painter', '')
    """
    if described := qualifier(name):
        return described
    match = _EPITHET.search(normal_words(name))
    return _ORDINAL.get(match[1], match[1]) if match else ""


def are_name_alikes(name: str, other_name: str) -> bool:
    """Whether two names differ only in their epithets, and so mean two entities.

    >>> are_name_alikes("Ors Velt the Elder", "Ors Velt the Younger")
    True
    """
    epithets = {epithet(name), epithet(other_name)}
    return len(epithets) == 2 and "" not in epithets and _without_epithet(name) == _without_epithet(other_name)


def _without_epithet(name: str) -> str:
    return _EPITHET.sub("", normal_name(name)).removesuffix(" the").strip()


def explain_difference(name: str, relation: str, source: Text, subject: Text) -> str:
    """Explain in one clause why a name does not mean the subject of a passage; "" if nothing distinguishes them.

    ``name`` is the tail of ``relation`` in the passage ``source``; ``subject`` is the passage whose subject it might
    mean.
    """
    checks = (_explain_by_epithet, _explain_by_profession, _explain_by_region, _explain_by_hatnote, _explain_by_dates)
    return next(filter(None, (check(name, relation, source, subject) for check in checks)), "")


def extend_name(name: str, source: Text) -> str:
    """Return a name with the epithet or initial that a passage adds to it; "" if it adds none."""
    base = clean(name)
    for start, end in mentions(source, name):
        if source.clean[start:end] == base and (match := _EXTENSION.match(source.clean, end)):
            full = f"{base} {match[1]}"
            if full != clean(source.title):
                return full
    return ""


def _explain_by_epithet(name: str, relation: str, source: Text, subject: Text) -> str:
    title = clean(subject.title)
    full = extend_name(name, source)
    for form in (full, clean(name)):
        if form and are_name_alikes(form, title):
            return f"“{form}” is not “{subject.title}”"
    if full and len(full.rpartition(" ")[2]) == 1 and title == clean(name):
        return f"“{full}” is not “{subject.title}”"
    return ""


def _explain_by_profession(name: str, relation: str, source: Text, subject: Text) -> str:
    described = qualifier(subject.title) if relation in _ROLES else ""
    if not _OCCUPATION.search(described):
        return ""
    opening = f"{described} {subject.clean[:_MAX_PROFESSION_OFFSET]}"
    has_role = re.search(rf"\b(?:{_ROLES[relation]})\b", opening)
    return "" if has_role else f"“{subject.title}” has another profession"


def _explain_by_region(name: str, relation: str, source: Text, subject: Text) -> str:
    definition = RELATIONS.get(relation)
    if definition is None or definition.kind != "place":
        return ""
    base, comma, region = clean(subject.title).replace("(", ",").partition(" , ")
    if not comma:
        return ""
    subject_words = {*region.split(), *subject.clean.split()}
    for _, end in mentions(source, base):
        match = _REGION.match(source.clean, end) or _IN_REGION.match(source.clean, end)
        region_words = set(match[0].split()) if match else set()
        words = set(match[1].split()) - _DIVISIONS if match else set()
        # A county is compared only with a county, not with the state that it lies in.
        if bool(_DIVISIONS & region_words) != bool(_DIVISIONS & {*region.split()}):
            continue
        if match and words and not words & _NOT_A_REGION and not words & subject_words:
            return f"“{base}, {match[1].strip()}” is not “{subject.title}”"
    return ""


def _explain_by_hatnote(name: str, relation: str, source: Text, subject: Text) -> str:
    opening = f"{clean(subject.title)} . {subject.clean.split(' . ', 1)[0]}"
    warns = _NOT_TO_BE_CONFUSED in source.clean  # else no pattern is made for the name
    confusion = warns and re.search(_CONFUSION.format(re.escape(clean(name))), source.clean)
    if confusion and confusion[2] in opening and confusion[1] not in opening:
        return f"“{subject.title}” is about the {confusion[2]}, not the {confusion[1]}"
    has_hatnote = any(_HATNOTE.search(text.clean) for text in (source, subject))
    if not has_hatnote or relation not in _ROLES or re.search(rf"\b(?:{_ROLES[relation]})\b", opening):
        return ""
    return f"“{subject.title}” is about a namesake with another profession"


def _explain_by_dates(name: str, relation: str, source: Text, subject: Text) -> str:
    (birth, death), (other_birth, _) = _life(subject), _life(source)
    label = f"the subject of “{subject.title}”"
    if relation in ("father", "mother"):
        if other_birth and birth and birth + 10 > other_birth:
            return f"{label} was born in {birth}, too late for a birth in {other_birth}"
        if other_birth and death and death + 1 < other_birth:
            return f"{label} died in {death}, before {other_birth}"
        return ""
    if relation in ("sibling", "spouse") and other_birth and birth:
        is_far = abs(birth - other_birth) > _MAX_AGE_GAP
        return f"{label} was born in {birth}, generations from {other_birth}" if is_far else ""
    opening = source.clean[: min([_MAX_DATE_OFFSET, *source.stops[:1]])]
    year = next((date.year for date in dates_in(opening) if date.year > 1000), 0)  # of the source's subject
    if relation in _MADE_ALIVE and year and death and death + _LATE_RELEASE < year:
        return f"{label} died in {death}, before {year}"
    if relation in _MADE_ALIVE and year and birth > year:
        return f"{label} was born in {birth}, after {year}"
    return ""


def _life(text: Text) -> tuple[int, int]:
    """Return the years of birth and death in a passage's opening; 0 if not given."""
    opening = text.clean[:_MAX_LIFE_OFFSET]
    birth, death = _BIRTH_YEAR.search(opening), _DEATH_YEAR.search(opening)
    years = (int(birth[1]) if birth else 0), (int(death[1]) if death else 0)
    # So short a span is something else: a reign, a career.
    return years if not all(years) or years[1] - years[0] > _MIN_LIFE else (0, 0)
