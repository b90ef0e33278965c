"""What pages that need nothing else share: frame, look, and how texts of others get in."""
