"""Checking a step by a question's plan, without a model."""
