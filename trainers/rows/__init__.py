"""The kinds of row, each registered by its file for the recipe that trains on it (`base.kind_of`)."""

from trainers.rows import encoder as encoder
from trainers.rows import generator as generator
from trainers.rows import paths as paths
from trainers.rows import verifier as verifier
