"""The checker's address for users: a step checked by a question's plan, without a model."""

from safe_stepwise.checking.checker import Checker as Checker
