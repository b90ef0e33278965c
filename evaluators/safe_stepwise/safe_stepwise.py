"""The metric ``safe_stepwise`` for `evaluate.load`: it passes columns to the package of that name, which computes.

The package has to be installed in this module's version; the Space has it beside this file. (PyPI may have another
package of that name.)
"""

import sys
from pathlib import Path
from typing import Any

if __name__ == "safe_stepwise":
    # From within this folder Python imports this file as the package: replace it by the package.
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
        "installed (by its bare name: safe-stepwise register)"
    )


class SafeStepwise(evaluate.Metric):  # type: ignore[misc]
    """The metric: config ``default`` scores answers, ``loop`` also writes them, ``faithfulness`` judges steps."""

    def _info(self) -> evaluate.MetricInfo:
        from importlib.resources import files

        from safe_stepwise.metric.compute import checked_options
        from safe_stepwise.store.packaged import read_yaml

        checked_options(self.config_name, ())
        texts = read_yaml(files("safe_stepwise").joinpath("metric", "space.yaml"))
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
        return evaluate.MetricInfo(
            description=texts["description"],
            citation=texts["citation"],
            inputs_description=f"\n{texts[self.config_name]}",
            features=datasets.Features(columns[self.config_name]),
            homepage="https://arxiv.org/abs/2604.01993",
            license="Apache-2.0",
            reference_urls=["https://arxiv.org/abs/2604.01993", "https://arxiv.org/abs/2402.11199"],
        )

    def compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> dict[str, Any] | None:
        """Compute the metric."""
        from safe_stepwise.errors import UserError
        from safe_stepwise.metric.compute import checked_options
        from safe_stepwise.metric.input import read_column

        columns = {"predictions": predictions, "references": references}
        for name in set(options).intersection(self._feature_names()):
            columns[name] = options.pop(name)
        checked_options(self.config_name, options)
        if options.get("passages") is not None:
            options["passages"] = read_column(options["passages"], "passages")
        if any(column is not None for column in columns.values()):
            self.add_batch(**columns)
        elif self.writer is None:
            raise UserError(f"there is nothing to score: give {', '.join(self._feature_names())}")
        result: dict[str, Any] | UserError | None = super().compute(**options)
        if isinstance(result, UserError):
            raise result
        return result

    def add_batch(self, *, predictions: Any = None, references: Any = None, **columns_: Any) -> None:
        """Add rows."""
        from safe_stepwise.metric.input import checked_columns

        columns = {"predictions": predictions, "references": references, **columns_}
        super().add_batch(**checked_columns(columns, self._feature_names()))

    def add(self, *, prediction: Any = None, reference: Any = None, **columns_: Any) -> None:
        """Add one row."""
        columns = {"predictions": prediction, "references": reference, **columns_}
        names = {name for name, value in columns.items() if value is not None}
        self.add_batch(**{name: [columns[name]] for name in names.union(self._feature_names())})

    def _compute(self, **inputs: Any) -> Any:
        from safe_stepwise.checking.faithfulness.judging import judge_columns
        from safe_stepwise.errors import UserError
        from safe_stepwise.metric.compute import answers_by_loop, answers_given

        computes: dict[str, Any] = {"default": answers_given, "loop": answers_by_loop, "faithfulness": judge_columns}
        try:
            return computes[self.config_name](**inputs)
        except UserError as error:
            return error  # `evaluate` frees its files only after a return
