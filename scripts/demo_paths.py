"""Train a tiny model to propose relation paths, and compare it with baselines that need no training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from builders.paths.kg_build import build, summary
from builders.paths.kg_collect import PathsBuild
from builders.synthetic.films import Films, write_films
from cards.datasets import paths as card
from evaluators.deliberation import options as deliberation
from evaluators.deliberation.options import BASELINES
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import paths_set
from scripts.cli import command, cores, run
from scripts.evaluate_deliberation import evaluate
from scripts.training import RECIPES, train_or_reuse
from trainers.config import PathRecipe

ROOT = Path(__file__).parents[1]
BENCHMARK = "metaqa"


@dataclass(frozen=True, kw_only=True)
class Options:
    kb: Path | None = None
    questions: Path | None = None
    rows: Count | None = None
    kto: bool = False
    per_hop: Count = 40
    output: Path = ROOT / "build" / "demo-paths"


@command
def main(options: Options) -> None:
    """Make questions, find paths, train and evaluate; skip what an earlier run completed."""
    kb, questions = options.kb, options.questions
    if (kb is None) != (questions is None):
        raise UserError("--kb and --questions go together: name both, or neither")
    if kb is None or questions is None:
        kb, questions = write_films(Films(), options.output / "films")
        print("Films, people and questions are made up (builders/synthetic/films.py).\n")
    dataset = build_paths_set(kb, questions, options.output)
    recipes = {"SFT": train_adapter("sft", dataset, options.output, options.rows)}
    if options.kto:
        recipes["KTO"] = train_adapter("kto", dataset, options.output, options.rows, recipes["SFT"].output)
    adapters = [f"{name}=transformers:{recipe.base_model}+{recipe.output}" for name, recipe in recipes.items()]
    print(evaluate_paths(kb, questions, dataset, (*BASELINES, *adapters), options.per_hop, options.output / "quality"))
    if options.kb is None:
        print("\nOf made-up questions: a demonstration, and no result.")


def build_paths_set(kb: Path, questions: Path, output: Path) -> Path:
    """Build the set of weakly labelled paths; return its folder."""
    plan = PathsBuild(BENCHMARK, (str(questions),), "train", output=output, kb=kb, workers=cores())
    print(summary(plan, build(plan, card)), flush=True)
    return output / paths_set(BENCHMARK)


def evaluate_paths(kb: Path, questions: Path, dataset: Path, paths: Sequence[str], per_hop: int, output: Path) -> str:
    """Answer held-out questions by each source of paths; return the table of scores."""
    options = deliberation.Options(
        questions=(str(questions),),
        paths=tuple(paths),
        output=output,
        kb=kb,
        benchmark=BENCHMARK,
        split="train",
        per_hop=per_hop,
        train=dataset,
        splits="template",
        held_out=True,
        candidates=1,
        cache=output.parent / "replies.sqlite",
    )
    return evaluate(options)


def train_adapter(method: str, dataset: Path, output: Path, rows: int | None, start: Path | None = None) -> PathRecipe:
    """Train by a method on the templates of the train split; return the recipe."""
    values = {"dataset": str(dataset), "output": str(output / method), "splits": "template"}
    values |= {} if rows is None else {"filters.rows": str(rows)}
    values |= {} if start is None else {"start": str(start)}
    recipe, text = train_or_reuse(RECIPES / f"dp-{method}-smollm2-cpu.yaml", values, PathRecipe)
    print(f"\n{method.upper()}:", text, "\n")
    return recipe


if __name__ == "__main__":
    run(main)
