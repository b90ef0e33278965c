"""Relation paths of questions, valid and corrupted: ``safe-path-probe``."""
