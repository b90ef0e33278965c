"""The public address of the checker, which checks a step by a question's plan, without a model."""

from safe_stepwise.checking.checker import Checker as Checker
