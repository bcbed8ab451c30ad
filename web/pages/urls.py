"""Addresses of pages."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
