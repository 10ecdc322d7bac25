"""The paper's tables and figures, one question a file: each makes an `Outcome` of an experiment's results."""
