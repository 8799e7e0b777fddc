"""The recipe of the embedded model: from a folder of texts to a model folder that we ship."""
