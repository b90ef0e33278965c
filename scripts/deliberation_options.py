"""Options of the evaluation over a knowledge graph; no command itself."""

import argparse
from collections.abc import Sequence
from typing import Any

from builders.paths.relation_readers import READERS
from evaluators.deliberation.options import BASELINES, CANDIDATES, IN_FLIGHT, Options
from evaluators.deliberation.questions import CONFIGS
from safe_stepwise.graphs.relation_paths import CONVENTIONS, HOPS, NO_TOPIC
from safe_stepwise.methods.deliberation import MOST_ENDS, Deliberating
from safe_stepwise.methods.path_deliberating import PROMPTS
from safe_stepwise.methods.running import AT_ONCE
from scripts.cli import COUNT, FILE, FOLDER, SEED, add_model_options
from scripts.role_options import add_role_options, roles_of

ROLES = roles_of(("deliberation/propose", *PROMPTS))
_PARTS = {
    "introspection": "the path that is chosen first answers, unverified",
    "predefined-constraints": "the model finds conditions of its own",
    "feedback": "the next choice isn't told what was wrong",
}


def options_of(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Options:
    """What a command line comes to; raises ``UserError`` for what the user can mend."""
    add_options(parser)
    given = vars(parser.parse_args(arguments))
    introspection, predefined, feedback = (given.pop(name.replace("-", "_")) for name in _PARTS)
    given |= {name: tuple(given[name]) for name in ("questions", "paths")}
    loop = Deliberating(introspection, predefined, feedback, most_ends=given.pop("most_ends"))
    return Options(loop=loop, **given)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them all."""
    add = parser.add_argument
    source = "a file or hub-id@revision; may be repeated (MetaQA has a file a hop)"
    add("--questions", action="append", required=True, metavar="SOURCE", help=source)
    graph = "the graph: head|relation|tail a line (.gz too); not for rows that bring their own"
    add("--kb", **FILE, help=graph)
    named = ", ".join(BASELINES)
    proposes = f"who proposes paths: {named}, or an engine with an adapter; may be repeated"
    add("--paths", action="append", required=True, metavar="[NAME=]SPEC", help=proposes)
    verifies = "chooses paths and verifies answers (default: the first path that leads somewhere)"
    add("--generator", metavar="SPEC", help=verifies)
    add("--output", **FOLDER, required=True, help="the results go there")
    add = parser.add_argument_group("which questions").add_argument
    names = ", ".join(READERS)
    add("--benchmark", default="metaqa", metavar="NAME", help=f"{names} (default metaqa)")
    add("--split", default="test", help="of the questions, for the record (default test)")
    add("--limit", **COUNT, help="the first N questions (default: all)")
    few = "the first N of each number of hops (the paper: 200, drawn); see below on gold paths"
    add("--per-hop", **COUNT, help=few)
    learn = parser.add_argument_group("what baselines learn from, and what is held out")
    add = learn.add_argument
    add("--train", **FOLDER, help="a set of build_paths (default: each question of all others)")
    add("--splits", choices=[*CONFIGS], default="question", help="of the set (default question)")
    add("--held-out", action="store_true", help="put only questions of the set's test split")
    add("--labels", choices=["gold", "weak"], default="gold", help="of the set (default gold)")
    add = parser.add_argument_group("paths").add_argument
    many = f"a topic entity (default {CANDIDATES} with a generator, else 1): greedy, then drawn"
    add("--candidates", **COUNT, help=many)
    held = "hold replies, majority and nearest to the paths that the graph has (default)"
    free: dict[str, Any] = {"dest": "free", "default": False}
    add("--constrained", action="store_false", help=held, **free)
    add("--free", action="store_true", help="let them name any path", **free)
    add("--max-hops", **COUNT, default=HOPS, help=f"relations of a path, at most (default {HOPS})")
    again = (
        "what a path may come back to: no_topic (the default: not the topic entity, as MetaQA's "
        "answers are made), no_revisit (no entity that it went by), walk (anything, as a plain "
        "join); see below"
    )
    add("--convention", choices=CONVENTIONS, default=NO_TOPIC, help=again)
    loop = parser.add_argument_group("the loop, less a part of it (the paper's Table 3)")
    for name, what in _PARTS.items():
        dest = name.replace("-", "_")
        loop.add_argument(f"--no-{name}", dest=dest, action="store_false", help=what)
    ends = f"entities of a path that are shown, and can be answers (default {MOST_ENDS})"
    loop.add_argument("--most-ends", **COUNT, default=MOST_ENDS, help=ends)
    how = parser.add_argument_group("how")
    add_model_options(how, IN_FLIGHT)
    add_role_options(how, ROLES, roles_of(PROMPTS))
    how.add_argument("--at-once", **COUNT, default=AT_ONCE, help=f"questions (default {AT_ONCE})")
    how.add_argument("--seed", **SEED, help="of drawn paths and of the bootstrap (default 0)")
