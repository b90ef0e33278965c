"""Verified multi-hop questions as an environment for the library verifiers."""

from safe_multihop.taskset import SafeMultihopTaskset

__all__ = ["SafeMultihopTaskset"]
