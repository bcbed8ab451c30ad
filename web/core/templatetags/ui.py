"""Template tags and filters of the site (built in everywhere)."""

from django import template

register = template.Library()
