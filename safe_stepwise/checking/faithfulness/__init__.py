"""Whether a chain of reasoning follows a question's graph (Direct evaluation of CoT, 2402.11199)."""
