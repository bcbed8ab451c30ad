"""One's own account and machines."""

from ninja import Router

router = Router()
