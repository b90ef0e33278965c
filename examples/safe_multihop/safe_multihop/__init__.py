"""Verified multi-hop questions as an environment of verifiers."""

from safe_multihop.taskset import SafeMultihopTaskset

__all__ = ["SafeMultihopTaskset"]
