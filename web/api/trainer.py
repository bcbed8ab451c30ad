"""Calls of trainers."""

from ninja import Router

router = Router()
