"""The trainer: computes gradients of a run's model and averages them with its peers."""
