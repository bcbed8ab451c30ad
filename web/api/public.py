"""What everybody may read."""

from ninja import Router

router = Router()
