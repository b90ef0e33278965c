"""The rows of a run, as tokens: those of its dataset, and of sets that join for an ablation.

The ablation is SAFE v2's, Table 5.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PromptSet
from safe_stepwise.store.names import TEST, TRAIN
from trainers.config import GeneratorRecipe, PathRecipe, Recipe, VerifierRecipe
from trainers.models import context_of
from trainers.rows.base import Kind, Row, Source, fingerprint, refuse
from trainers.rows.generator import GeneratorRows
from trainers.rows.paths import PathRows
from trainers.rows.tokens import Example, tokenize, too_long
from trainers.rows.verifier import VerifierRows, prompts_of


@dataclass(frozen=True, slots=True)
class Joined:
    """A set that joined: the ids of its rows that the filters leave, and their SHA-256."""

    source: Source
    ids: frozenset[str]
    sha256: str


@dataclass(frozen=True, slots=True)
class Data:
    """The rows of a run, checked. ``longest`` is in tokens; ``dropped`` are ids of long rows."""

    source: Source
    joined: Sequence[Joined]
    sha256: str
    train: Sequence[Example]
    held_out: Sequence[Example]
    longest: int
    limit: int
    dropped: Sequence[str]

    @property
    def completion_tokens(self) -> int:
        """Tokens that are learnt in one epoch."""
        return sum(len(one.tokens) - one.prompt for one in self.train)


def kind_of(recipe: Recipe) -> Kind:
    """The kind of row that a recipe trains on."""
    if isinstance(recipe, PathRecipe):
        return PathRows(recipe.method, recipe.splits)
    if isinstance(recipe, VerifierRecipe):
        said = (recipe.prompts, recipe.verdict_order)
        wanted = PromptSet.of(*said) if any(said) else None
        own = prompts_of(recipe.dataset, wanted)
        return VerifierRows(recipe.incomplete_evidence, recipe.filters.unasked, own)
    if isinstance(recipe, GeneratorRecipe):
        own = prompts_of(recipe.dataset)
        name, order = recipe.prompts or own.name, recipe.verdict_order or own.verdict_order
        return GeneratorRows(PromptSet(name, order))
    raise TypeError(f"{type(recipe).__name__}: say what kind its rows are of")


def read_data(recipe: Recipe, weights: Weights, kind: Kind | None = None) -> Data:
    """The rows as tokens; their ``kind`` is the recipe's, if not said.

    Raises ``UserError`` with the ids of rows that are empty, cut short or too long.
    """
    chat, kind = Chat.load(weights), kind or kind_of(recipe)
    source, rows, joined = train_rows(recipe, kind)
    train, bad = tokenize(rows, chat, kind.check)
    held_out: list[Example] = []
    if recipe.held_out:
        _, tests = kind.open(recipe.dataset, TEST, recipe.filters)
        held_out, bad_tests = tokenize(tests[: recipe.held_out], chat, kind.check)
        bad |= bad_tests
    refuse(bad, recipe.dataset, "mend or leave out these rows")
    longest = max(len(one.tokens) for one in (*train, *held_out))
    context = context_of(weights)
    limit = min(recipe.max_length or context, context)
    long = too_long((*train, *held_out), limit)
    if not recipe.drop_long:
        refuse(long, recipe.dataset, f"set max_length up to {context}, or drop_long: true")
    train = [one for one in train if one.id not in long]
    held_out = [one for one in held_out if one.id not in long]
    if not train:
        raise UserError(f"{recipe.dataset}: every row has more than {limit} tokens")
    sha256 = fingerprint(rows)
    return Data(source, joined, sha256, train, held_out, longest, limit, sorted(long))


def train_rows(recipe: Recipe, kind: Kind | None = None) -> tuple[Source, list[Row], list[Joined]]:
    """The rows of ``dataset`` that a recipe trains on, followed by those of ``plus``.

    Raises ``UserError`` for what ``kind.open`` does, for a row that comes twice, and for rows of a
    question that ``dataset`` keeps for its test split.
    """
    kind = kind or kind_of(recipe)
    source, rows = kind.open(recipe.dataset, TRAIN, recipe.filters)
    tested = set(kind.questions(recipe.dataset, TEST).values()) if recipe.plus else set()
    joined = []
    for name in recipe.plus:
        other, more = kind.open(name, TRAIN, recipe.filters)
        asked = kind.questions(name, TRAIN)
        leaked = {str(r["id"]): "is of a test question" for r in more if asked[r["id"]] in tested}
        refuse(leaked, name, f"leave out the questions that {recipe.dataset} tests")
        ids = frozenset(str(row["id"]) for row in more)
        joined.append(Joined(other, ids, fingerprint(more)))
        rows += more
    counts = Counter(str(row["id"]) for row in rows)
    twice = {id_: f"comes {number} times" for id_, number in counts.items() if number > 1}
    refuse(twice, ", ".join((recipe.dataset, *recipe.plus)), "name each set once")
    return source, rows, joined
