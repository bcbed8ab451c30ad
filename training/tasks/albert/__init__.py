"""ALBERT pre-training: masked words and sentence order."""
