"""The contract between site, coordinator and trainers. Needs pydantic and joserfc only."""
