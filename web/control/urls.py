"""Addresses of control."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
