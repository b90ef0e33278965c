"""Whether the right answers of an evaluation were earned (arXiv 2402.11199), from what it kept.

Two files say so, in the folder of the evaluation. ``faithfulness.json``, shares 0-1::

    {"version": "0.1.0", "simulated": true,
     "settings": {"rules": ["house", "paper"], "retrieval": "words", "sigma": null,
                  "kb": null or {"name": ..., "sha256": ..., "triples": 12},
                  "evidence": "kept" or {"source": ..., "source_sha256": ...},
                  "questions": 100, "without_evidence": 3, "code_sha256": ...},
     "systems": [SYSTEM, ...], "paired": [PAIR, ...]}

A SYSTEM is one of the comparison, in its order, a vote of several samples twice, as its
``majority`` and as the ``best_of_n`` (arXiv 2402.11199 reports the latter)::

    {"name": "SAFE (simulated)", "method": "safe", "players": {...}, "options": {...},
     "conditions": {...}, "simulated": true, "taken": "only" | "majority" | "best_of_n",
     "benchmarks": {"musique": PART, ...}, "all": PART}
    PART = {"questions": 100, "chains": 95, "abstained": 2, "unstructured": 2, "failed": 1,
            "rules": {"house": RULED, "paper": RULED}}
    RULED = {"answers": {"exact_match": TABLE, "judge": TABLE, "rule": TABLE},
             "edits": {"chains": 90, "count": 1.2, "normalised": 31.0},
             "breaks": [{"position": 2, "fault": "factual", "chains": 9, "right": 3}, ...]}

``answers`` says by what an answer is right: the benchmark's exact match, the judge (only where
there is one), the rule's own comparison. ``edits`` are means over the chains that have any, or
None; ``normalised`` is out of 100. ``breaks`` count unfaithful chains by their first bad step (from
1; None: the chain as a whole) and its fault, ``right`` those whose answer is an exact match::

    TABLE = {"right": COUNTS, "wrong": COUNTS, "unscored": 0,
             "spurious": {"of": 60, "value": .1, "low": .05, "high": .2, "least": .09, "most": .15},
             "gap": {"answer": .7, "reasoning": .6, "low": .06, "high": .1}}
    COUNTS = {"faithful": 54, "unfaithful": 6, "unjudgeable": 4,
              "abstained": 0, "unstructured": 2, "failed": 0}

- ``spurious`` is P(unfaithful | right answer) over the right answers whose chain was decided
  (``of``; no value where there is none), with Wilson's 95% interval; ``least`` and ``most`` take
  all unjudgeable ones for faithful, or for unfaithful.
- ``gap`` is over all questions: ``answer`` those answered rightly, ``reasoning`` those by a
  faithful chain, ``high`` what lies between (the paper's gap), ``low`` those shown unfaithful.

A PAIR compares two systems on the questions that both have, by McNemar's exact test, in all
benchmarks (None) and, where there are several, in each; Holm's p counts the pairs of one rule,
measure, answer and benchmark::

    {"first": 2, "second": 0, "rule": "house", "benchmark": null,
     "what": "spurious" | "unearned" | "unfaithful", "answer": "exact_match" | "judge" | null,
     "pairs": 90, "left_out": 5, "first_only": 1, "second_only": 12, "difference": -0.12,
     "p": .003, "p_holm": .006}

``first`` and ``second`` are places in ``systems``; ``first_only`` are the questions on which the
first alone is *spurious* (right and unfaithful), or *unfaithful*; *unearned* are unfaithful chains
where both answered rightly. Left out are those undecided in either.

``faithfulness.jsonl`` has a line a question and system, ordered by system, benchmark and id::

    {"system": 2, "benchmark": "musique", "question_id": "q1", "answer": "Oru",
     "exact_match": true, "judge": "correct" | "incorrect" | "unscored" | null,
     "response": "chain" | "abstained" | "unstructured" | "failed",
     "steps": [{"number": 1, "text": "..."}], "rules": {"house": JUDGED, "paper": JUDGED}}
    JUDGED = {"path": "faithful" | "unfaithful" | "unjudgeable", "is_right": true, "fault": "",
              "first": null or 1, "edits": 0, "distance": 0.0, "missing": [[h, r, t], ...],
              "steps": [{"triples": [[h, r, t], ...], "fault": "", "score": null}, ...]}

``system`` is a place in ``systems``; ``first`` a place in ``steps`` (from 1), whose ``number`` is
that of the trajectory; ``rules`` is empty where there is no chain, or no evidence to judge it by
(then it is unjudgeable). Of a vote JUDGED has ``sample``, too, the attempt (from 1) whose chain it
is: the best of n may be another one for each rule, so that its lines have no ``steps`` of their
own. Under the paper's rule a step that only concludes (kind Logical) is not judged.

``accepted_unfaithful.jsonl`` lists the bad steps that a verifier accepted (`accepted`).
"""
