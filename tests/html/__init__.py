"""Tests of HTML for notebooks."""
