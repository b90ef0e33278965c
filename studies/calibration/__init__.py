"""How well the rules tell true statements from false ones, and judges from people."""
