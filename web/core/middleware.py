"""Request ids, security headers, and the door for banned accounts."""

import logging
import secrets
from collections.abc import Callable

from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

GetResponse = Callable[[HttpRequest], HttpResponse]
logger = logging.getLogger(__name__)
