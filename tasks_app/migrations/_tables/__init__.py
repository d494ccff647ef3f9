"""The tables that 0001_squashed_0065 makes, as `makemigrations` writes them."""
