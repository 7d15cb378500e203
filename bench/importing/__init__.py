"""The engine's benchmark: from a file to a constrained table and back."""
