"""The window: it shows what the engine recorded and never meets its tensors."""
