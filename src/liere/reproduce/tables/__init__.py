"""The paper's tables and figures, one question per file: each builds an `Outcome` from the results of an experiment."""
