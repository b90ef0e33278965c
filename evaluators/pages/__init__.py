"""What all pages share that need nothing else: frame, look, and how texts of others get into them."""
