"""Prompt to tokens to prefill to decode to events to trace; no window anywhere."""
