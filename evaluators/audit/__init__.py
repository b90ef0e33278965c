"""People judge a sample of what was built: a page to judge on, files of judgements, scores."""
