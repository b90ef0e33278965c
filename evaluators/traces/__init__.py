"""An evaluation as one self-contained page."""
