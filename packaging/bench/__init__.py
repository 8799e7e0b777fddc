"""Benches: what the engine and the window cost, measured."""
