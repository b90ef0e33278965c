"""The metric ``safe_stepwise`` for `evaluate.load`: a thin face of the package of that name.

The installed package does the work, and has to be of this module's version. The Space has it beside
this file; nobody vouches for what PyPI may have under that name.
"""

import sys
from pathlib import Path
from typing import Any

if __name__ == "safe_stepwise":
    # Within its folder Python takes this file for the package: put the package in its place.
    HERE = Path(__file__).resolve().parent
    PATH = sys.path[:]
    del sys.modules[__name__]
    sys.path[:] = [entry for entry in PATH if Path(entry or ".").resolve() != HERE]
    try:
        __import__(__name__)
    finally:
        sys.path[:] = PATH

import datasets
import evaluate

VERSION = "0.1.0"

try:
    # `evaluate` has people install from PyPI what it finds imported at the beginning of a line.
    import safe_stepwise
except ImportError:
    INSTALLED = "nothing"
else:
    INSTALLED = getattr(safe_stepwise, "__version__", "nothing but a folder of that name")

if INSTALLED != VERSION:
    # From the Hub, `evaluate` calls this evaluate_modules.metrics.NAMESPACE--safe_stepwise.(...)
    OWNER, _, REPO = __name__.removeprefix("evaluate_modules.metrics.").partition("--")
    OWNER = OWNER if REPO and OWNER != "evaluate-metric" else "NAMESPACE"
    raise ImportError(
        f"this metric is of safe-stepwise {VERSION}, installed is {INSTALLED}: pip install "
        f"git+https://huggingface.co/spaces/{OWNER}/safe_stepwise (with @ and the revision, if you "
        "loaded one), or pip install -e . in a checkout, or load the metric of the version "
        "installed (by its bare name: python -m safe_stepwise.register)"
    )

DESCRIPTION = """\
Answers to multi-hop questions, scored: exact match and F1 as the benchmark's official scorer
computes them, and accuracy as a judge model sees it. With the config "loop" the answers are made
here, by the loop of generator and verifier (stepwise atomic feedback), and what it took is told.
With the config "faithfulness" it is told whether right answers were earned: whether the steps of
the reasoning behind them follow the question's path in a knowledge graph.
"""

CITATION = """\
@misc{kwon2026safe,
  title = {SAFE: Stepwise Atomic Feedback for Error correction in Multi-hop Reasoning},
  author = {Kwon, Daeyong and Yoon, Soyoung and Hwang, Seung-won},
  year = {2026},
  eprint = {2604.01993},
  archivePrefix = {arXiv},
}
@misc{kwon-safe-verifier,
  title = {SAFE: An LLM-as-Verifier Framework for Evidence-Grounded Multi-Hop Reasoning},
  author = {Kwon, Daeyong and Yoon, Soyoung and Hwang, Seung-won},
  howpublished = {\\url{https://github.com/DaeyongKwon98/SAFE}},
}
@misc{nguyen2024direct,
  title = {Direct Evaluation of Chain-of-Thought in Multi-hop Reasoning with Knowledge Graphs},
  author = {Nguyen, Minh-Vuong and Luo, Linhao and Shiri, Fatemeh and Phung, Dinh and Li, Yuan-Fang
    and Vu, Thuy-Trang and Haffari, Gholamreza},
  year = {2024},
  eprint = {2402.11199},
  archivePrefix = {arXiv},
}
"""

GIVEN = """
Args:
    predictions (list of str): the answers; None where none was given.
    references (list of list of str): the accepted answers of each, aliases included.
    benchmark (str): whose official scorer counts: hotpotqa, 2wikimultihopqa, musique or synthetic.
    judge (str, optional): the engine that judges, as in "openai:MODEL@http://HOST:8000/v1".
    questions (list of str, optional): shown to the judge.
    judge_repeats (int): judge each answer so often, and report the judge's agreement with itself.
    examples (bool): show the judge worked examples.
    skip_exact (bool): do not ask the judge about exact matches.
    cache (str, optional): the file of replies, instead of the user's own.
    timeout (float, optional): seconds for one call to a server.

Returns:
    exact_match, f1 (0 to 1), accuracy (0 to 1; None without a judge), unscored (answers on which
    the judge gave no readable verdict: neither right nor wrong). With a judge also judge_failed (of
    those, how many got no reply), judge_agreement if judge_repeats is above 1, and simulated if the
    judge is no model.

Examples:

    >>> import evaluate
    >>> metric = evaluate.load("safe_stepwise")
    >>> metric.compute(
    ...     predictions=["the Vel", "Oru town"],
    ...     references=[["Vel", "River Vel"], ["Oru"]],
    ...     benchmark="musique",
    ... )
    {'exact_match': 0.5, 'f1': 0.8333333333333333, 'accuracy': None, 'unscored': 0}

    With a judge; "symbolic" is none but exact match, which the result says:

    >>> metric.add_batch(predictions=["the Vel"], references=[["Vel"]])
    >>> metric.add(prediction="no", reference=["yes"])
    >>> found = metric.compute(benchmark="hotpotqa", judge="symbolic")
    >>> found["accuracy"], found["unscored"], found["simulated"]
    (0.5, 0, True)
"""

LOOP = """
Args:
    questions (list of str): what is asked.
    passages (list of list): those of each question; a passage is a string, or a dict with title
        and text (or sentences).
    references (list of list of str): the accepted answers of each, aliases included.
    generator (str): the engine that answers, as in "openai:MODEL@http://HOST:8000/v1".
    verifier (str): the engine that verifies; asked with the method safe alone.
    judge (str, optional): the engine that judges the answers.
    method (str): safe, self_verification or no_verification.
    max_steps, max_retries (int): K and N; 10 and 3 if not said.
    benchmark (str): whose official scorer counts; hotpotqa if not said.
    on_exhausted (str): what becomes of a step when its retries are used up, accept or drop.
    feedback (str): what the generator is told of a verdict: full, diagnosis or guidance.
    options (dict): others of the method, as the papers' choices: tries_total, accepted_diagnosis,
        last_rejected, answer_when_told (bool, False if not said).
    judge_without_question (bool): let the judge go by the answers alone.
    examples (bool): show verifier and judge worked examples.
    judge_repeats, skip_exact, cache, timeout: as in the default config.

Returns:
    What the default config returns, and calls_per_question (without the judge's),
    steps_per_question, error_types and error_positions (tries that the verifier found fault with,
    by label and by number of the step), prompt_tokens and cached_tokens by role, failed (questions
    that a failed request ended).

Examples:

    Scripted replies in the place of models, which the result says:

    >>> import json
    >>> import evaluate
    >>> from pathlib import Path
    >>> step = "Step 1: ####ANSWER: the Vel (Final Answer)"
    >>> fine = {"error_type": "Correct", "diagnosis": "Passage 1 says so.", "guidance": ""}
    >>> rules = [{"role": "generate", "reply": step}, {"role": "verify", "reply": json.dumps(fine)}]
    >>> _ = Path("replies.json").write_text(json.dumps({"replies": rules}))
    >>> metric = evaluate.load("safe_stepwise", "loop")
    >>> found = metric.compute(
    ...     questions=["On what river does Oru lie?"],
    ...     passages=[["Oru lies on the Vel.", {"title": "Marn", "text": "Marn lies by the sea."}]],
    ...     references=[["Vel"]],
    ...     generator="mock:replies.json",
    ...     verifier="mock:replies.json",
    ... )
    >>> found["exact_match"], found["calls_per_question"], found["error_types"], found["simulated"]
    (1.0, 2.0, {}, True)
"""

FAITHFULNESS = """
Args:
    questions (list of str): what was asked.
    steps (list of list of str): the steps of each chain of reasoning, with or without "Step K:" and
        kind; none where an answer was given without.
    answers (list of str): the answer that each came to.
    evidence (list of list of triples): each question's path, as (head, relation, tail).
    references (list of list of str): the accepted answers of each, aliases included.
    passages (list of list, optional): those of each question, as in the config loop.
    rule (str): house (what each step states, directed), paper (arXiv 2402.11199) or both.
    retrieval (str): how the paper's rule finds a step's triple: words, trigrams or embeddings.
    sigma (float, optional): the least score of such a triple, 0.7 if not said.

Returns:
    exact_match and, by rule, the shares (0 to 1) of chains that are faithful, unfaithful,
    unjudgeable and unstructured (without steps); spurious_share, that of unfaithful chains among
    the right answers whose chain was decided (None where none was), with spurious_bounds as if all
    unjudgeable ones were faithful, or unfaithful; reasoning, the share answered rightly by a
    faithful chain; gap, exact_match less reasoning; verdicts: of each chain its path, fault, first
    bad step, edits to the path, and what each step was taken to state (None without steps).

Examples:

    >>> import evaluate
    >>> metric = evaluate.load("safe_stepwise", "faithfulness")
    >>> path = [("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "place of birth", "Oru")]
    >>> found = metric.compute(
    ...     questions=["Where was the director of Dune Rain born?"] * 2,
    ...     steps=[
    ...         ["Dune Rain was directed by Ors Velt.", "Ors Velt was born in Oru."],
    ...         ["Dune Rain was directed by Kem Dall.", "Kem Dall was born in Oru."],
    ...     ],
    ...     answers=["Oru", "Oru"],
    ...     evidence=[path, path],
    ...     references=[["Oru"], ["Oru"]],
    ... )
    >>> found["exact_match"], found["house"]["faithful"], found["house"]["spurious_share"]
    (1.0, 0.5, 0.5)
    >>> found["house"]["verdicts"][1]["fault"], found["house"]["verdicts"][1]["first"]
    ('factual', 1)
"""


class SafeStepwise(evaluate.Metric):  # type: ignore[misc]
    """``default`` scores answers given, ``loop`` makes them, ``faithfulness`` judges steps."""

    def _info(self) -> evaluate.MetricInfo:
        from safe_stepwise.metric.compute import checked_options

        checked_options(self.config_name, ())
        answers = datasets.List(datasets.Value("string"))
        page = {"title": datasets.Value("string"), "sentences": answers}
        columns = {
            "default": {"predictions": datasets.Value("string"), "references": answers},
            "loop": {"questions": datasets.Value("string"), "passages": datasets.List(page), "references": answers},
            "faithfulness": {
                "questions": datasets.Value("string"),
                "steps": answers,
                "answers": datasets.Value("string"),
                "evidence": datasets.List(answers),
                "references": answers,
            },
        }
        told = {"default": GIVEN, "loop": LOOP, "faithfulness": FAITHFULNESS}
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=told[self.config_name],
            features=datasets.Features(columns[self.config_name]),
            homepage="https://arxiv.org/abs/2604.01993",
            license="Apache-2.0",
            reference_urls=["https://arxiv.org/abs/2604.01993", "https://arxiv.org/abs/2402.11199"],
        )

    def compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> dict[str, Any] | None:
        """Compute the metric."""
        from safe_stepwise.errors import UserError
        from safe_stepwise.metric.compute import checked_options
        from safe_stepwise.metric.input import plain_passages

        columns = {"predictions": predictions, "references": references}
        for name in set(options).intersection(self._feature_names()):
            columns[name] = options.pop(name)
        checked_options(self.config_name, options)
        if options.get("passages") is not None:
            options["passages"] = plain_passages(options["passages"])
        if any(column is not None for column in columns.values()):
            self.add_batch(**columns)
        elif self.writer is None:
            raise UserError(f"there is nothing to score: give {', '.join(self._feature_names())}")
        found: dict[str, Any] | UserError | None = super().compute(**options)
        if isinstance(found, UserError):
            raise found
        return found

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add rows."""
        from safe_stepwise.metric.input import checked_columns

        columns = {"predictions": predictions, "references": references, **others}
        super().add_batch(**checked_columns(columns, self._feature_names()))

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add one row."""
        columns = {"predictions": prediction, "references": reference, **others}
        names = {name for name, value in columns.items() if value is not None}
        self.add_batch(**{name: [columns[name]] for name in names.union(self._feature_names())})

    def _compute(self, **inputs: Any) -> Any:
        from safe_stepwise.checking.faithfulness.given import chains_given
        from safe_stepwise.errors import UserError
        from safe_stepwise.metric.compute import answers_by_loop, answers_given

        computes: dict[str, Any] = {"default": answers_given, "loop": answers_by_loop, "faithfulness": chains_given}
        try:
            return computes[self.config_name](**inputs)
        except UserError as error:
            return error  # `evaluate` frees its files only after a return
