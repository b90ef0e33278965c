"""What a small encoder reads of a step, and the labels that it chooses from.

Of the passages it reads excerpts: the sentences that BM25 finds nearest to the step. A passage that the step cites
gives up to `CITED_SENTENCES`, its rival (`passage_choice`) up to `RIVAL_SENTENCES`. They keep their order, and stand
after the passage's number and title.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from safe_stepwise.engines.chat import escape_control
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.methods import ranking
from safe_stepwise.methods.passage_choice import called_for, cited_in, without_citations
from safe_stepwise.methods.prompt_sets import CITED
from safe_stepwise.records import Passage
from safe_stepwise.taxonomy import labels

LABELS = labels()
"""The labels, in the order of an encoder's outputs."""
CITED_SENTENCES, RIVAL_SENTENCES = 3, 1
EXCERPT_WORDS = 60
"""The most words of an excerpt; its first sentence is whole even if it has more."""
MAX_CHARS, MAX_QUESTION_WORDS = 2_000, 150
"""The most characters of a sentence, and the most words of a question: more than an encoder's input holds."""
VERSION, VERSION_KEY = 1, "safe_stepwise_encoding"
"""The version of what an encoder reads, raised with every change, and the key under which a model's config has it."""


def render_pair(question: str, passages: Sequence[Passage], previous: Sequence[str], step: str) -> tuple[str, str]:
    """Return the two texts that an encoder reads of a step: what is asked and claimed, and what that rests on.

    ``previous`` and ``step`` are steps as `format_step` writes them, ``passages`` all those of the question.

    >>> oru = Passage("Oru", ("Oru lies on the Vel.",))
    >>> render_pair("Where is Oru?", [oru], [], "Step 1: Oru is on the Vel, by Passage 1. (Attribution)")
    ('Where is Oru? Step 1: Oru is on the Vel, by Passage 1. (Attribution)', 'Passage 1. Oru: Oru lies on the Vel.')
    """
    shortened = " ".join(question.split()[:MAX_QUESTION_WORDS])  # else a long question would push the step out
    return f"{shortened} {step}", "\n".join((*excerpt_passages(passages, step, not previous), *reversed(previous)))


def excerpt_passages(passages: Sequence[Passage], step: str, is_first: bool) -> list[str]:
    """Return an excerpt of each passage that a step calls for; ``is_first``: no step stands before it.

    >>> pages = [Passage("Oru", ("Oru is a town on the Vel.", "It has a mill.")), Passage("Vel", ("A river.",))]
    >>> excerpt_passages(pages, "Step 1: According to Passage 1, Oru lies on the Vel. (Attribution)", True)
    ['Passage 1. Oru: Oru is a town on the Vel.', 'Passage 2. Vel: A river.']
    """
    pages = tuple(passages)
    sentences, index = _index(pages)
    cited, texts = cited_in(step, len(pages)), [text for _, text in sentences]
    ranked = ranking.rank_by_bm25(index, without_citations(step), len(sentences))
    excerpts = []
    for number in called_for(pages, step, CITED, is_first):
        nearest = [place for place in ranked if sentences[place][0] == number]
        nearest = nearest or [place for place, (page, _) in enumerate(sentences) if page == number]
        most = CITED_SENTENCES if number in cited or not cited else RIVAL_SENTENCES
        text = " ".join(texts[place] for place in sorted(_fit_words(nearest[:most], texts)))
        excerpts.append(f"Passage {number}. {pages[number - 1].title}: {text}")
    return excerpts


def split_text_of(page: Passage) -> list[str]:
    """Return the sentences of a passage by its text alone, as rows of a dataset have no others."""
    return [text.strip()[:MAX_CHARS] for line in page.text.splitlines() for text in split_sentences(line)]


def _fit_words(places: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Return the first place, and those of the others that fit into `EXCERPT_WORDS`."""
    chosen, words = list[int](), 0
    for place in places:
        words += len(texts[place].split())
        if chosen and words > EXCERPT_WORDS:
            break
        chosen.append(place)
    return chosen


@lru_cache(maxsize=512)
def _index(passages: tuple[Passage, ...]) -> tuple[list[tuple[int, str]], Any]:
    """Return the sentences of passages, each with its passage's number, and their index."""
    sentences = [(number, text) for number, page in enumerate(passages, 1) for text in split_text_of(page)]
    return sentences, ranking.index_passages([Passage("", (text,)) for _, text in sentences])


def encode_pair(tokenizer: Any, pair: Sequence[str], limit: int | None = None) -> dict[str, list[int]]:
    """Return a pair's model inputs; what is more than ``limit`` tokens is cut off the end of the longer text.

    The token types say what an encoder can hardly learn from few rows: 1 marks a token that the other text lacks.
    """
    first, second = (escape_control(text, tokenizer.all_special_tokens) for text in pair)
    cut = {} if limit is None else {"truncation": "longest_first", "max_length": limit}
    encoded = tokenizer(first, second, **cut)
    ids, sides = encoded["input_ids"], encoded.sequence_ids()
    tokens = {side: {id_ for id_, token_side in zip(ids, sides, strict=True) if token_side == side} for side in (0, 1)}
    types = [0 if side is None else int(id_ not in tokens[1 - side]) for id_, side in zip(ids, sides, strict=True)]
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": [1] * len(ids)}
