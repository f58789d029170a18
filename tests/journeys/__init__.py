"""Journeys of users, from nothing to their aim (``python -m tests.journeys``). A module has a journey: its packages and its commands."""
