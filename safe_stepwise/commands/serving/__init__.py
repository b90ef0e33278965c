"""Servers of the OpenAI protocol: one that stands in for a model, one that answers by the loop."""
