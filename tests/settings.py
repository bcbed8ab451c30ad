"""Settings of the tests: fast hashes, no outside services; nothing else differs."""

import os
import tempfile

os.environ.setdefault("BEEYARD_DATA", tempfile.mkdtemp(prefix="beeyard-tests-"))
os.environ.setdefault("BEEYARD_SECRET_KEY", "only-for-tests-" + "x" * 40)

from web.project.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
LIVE_BACKEND = "memory"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
if os.environ.get("TEST_DATABASE_URL"):
    import dj_database_url

    DATABASES = {"default": dj_database_url.parse(os.environ["TEST_DATABASE_URL"])}
ACCOUNT_RATE_LIMITS = False
RATE_LIMITS_ENABLED = False
