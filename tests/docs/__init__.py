"""Tests of the pages, and of the extension that builds them."""
