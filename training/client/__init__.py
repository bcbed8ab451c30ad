"""Talking to the site and keeping what a device owns. Needs neither torch nor hivemind."""
