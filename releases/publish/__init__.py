"""Put a release folder on the Hub: check, push, load back, tag."""
