"""Measure what prompting methods give beside an answer: form of replies, findings, supporting facts, failures."""
