"""What prompting methods come to beside an answer: form, finds, facts, kinds of failure."""
