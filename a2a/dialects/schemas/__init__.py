"""The types of what dialects answer, from which descriptions make JSON Schemas. Encoders do not use them."""
