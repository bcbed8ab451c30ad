"""What can be trained: a registry of tasks, each with model, data and loss."""
