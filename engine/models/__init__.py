"""The models we know by name, read from resources/models.toml."""
