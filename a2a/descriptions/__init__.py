"""Descriptions of what can be asked, for programs, made from the tables of languages: OpenRPC and OpenAPI."""
