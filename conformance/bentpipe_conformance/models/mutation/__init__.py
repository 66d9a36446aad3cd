"""Mutation of models: small changes of a specification, and whether its properties notice them."""
