"""Choose one of three planners for a question: the instructions by which a model makes its plan.

SAFE v1 (appendix A.9, Figures 15-17) has a planner for each benchmark, which names the kinds of plan in it. Ours has a
planner for each structure, whatever the benchmark: a chain of facts, a comparison of two values, or sets that are
compared or intersect. The structure is that of the verified path's plan, so the checker and the model agree on it.
"""

from itertools import combinations
from typing import Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.checking.plans import Plan
from safe_stepwise.graphs.comparisons import is_comparison
from safe_stepwise.language.text import normal_name
from safe_stepwise.records import Question

Planner = Literal["chain", "comparison", "set"]
PLANNERS = {name: prompts.load(f"steps/plan_{name}") for name in get_args(Planner)}


def planner_of(question: Question, plan: Plan | None) -> Planner:
    """Choose the planner of a question; without a plan the row alone decides.

    >>> planner_of(Question("q", "b", "train", "Who is the mother of Ana?", "Ila Dell"), None)
    'chain'
    >>> planner_of(Question("q", "b", "train", "Are Ana and Ors both from Oru?", "no"), None)
    'comparison'
    """
    if plan is None:
        return "comparison" if is_comparison(question) else "chain"
    if plan.kind == "set comparison" or _meets(plan, question):
        return "set"
    return "chain" if plan.kind == "sequential" else "comparison"


def _meets(plan: Plan, question: Question) -> bool:
    """Whether several facts join the answer to entities of their own; questions that refer to "#1" are chains."""
    facts = [set(map(normal_name, plan.items[index].ends)) for index in plan.facts]
    answers = set(map(normal_name, question.accepted))
    if plan.kind != "sequential" or any("#" in hop.question for hop in question.decomposition) or len(facts) < 2:
        return False
    distinct_ends = [ends - answers for ends in facts]
    is_disjoint = all(not a & b for a, b in combinations(distinct_ends, 2))
    return is_disjoint and all(distinct_ends) and all(ends & answers for ends in facts)
