"""Tables and JSON of what plans, rounds, recoveries and proofs return."""
