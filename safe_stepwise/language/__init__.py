"""What a passage states."""
