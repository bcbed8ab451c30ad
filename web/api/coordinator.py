"""Calls of coordinators."""

from ninja import Router

router = Router()
