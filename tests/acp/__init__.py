"""Tests of ACP in this process. tests/seeds/acp/ has its independent client."""
