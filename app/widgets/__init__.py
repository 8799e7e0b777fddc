"""Reusable things to look at and to touch; none of them knows a trace."""
