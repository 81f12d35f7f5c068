"""Training: the compiled loop that all value-based learners share."""
