"""Keys, files and health of the site."""

from ninja import Router

router = Router()
