"""All settings of the site, flat. docs/reference/settings.md has a row for each variable."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url

from web.project.env import env_bool, env_file_read, env_int, env_list, env_secret, env_text

BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = Path(os.environ.get("BEEYARD_DATA", BASE_DIR / "var")).expanduser().resolve()
for _name, _value in env_file_read(DATA_DIR / ".env").items():
    os.environ.setdefault(_name, _value)

# --- address -------------------------------------------------------------------------------
BIND = env_text("BEEYARD_BIND", "127.0.0.1")
PORT = env_int("BEEYARD_PORT", 8000)
_local_name = "127.0.0.1" if BIND in ("", "0.0.0.0", "::") else BIND  # noqa: S104
_local_name = f"[{_local_name}]" if ":" in _local_name else _local_name
PUBLIC_URL = env_text("BEEYARD_PUBLIC_URL", f"http://{_local_name}:{PORT}").rstrip("/")
SITE_LOCAL_URL = f"http://{_local_name}:{PORT}"
"""How processes on this machine reach the site, whatever proxy the public address names."""
_public = urlsplit(PUBLIC_URL)
IS_HTTPS = _public.scheme == "https"
DEMO = env_bool("BEEYARD_DEMO", default=True)
DEBUG = env_bool("BEEYARD_DEBUG", default=False)
ALLOWED_HOSTS = [
    *env_list("BEEYARD_ALLOWED_HOSTS"),
    *{_public.hostname or "localhost", "localhost", "127.0.0.1", "[::1]"},
]
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "web.core.failures.csrf_failed"
BEHIND_PROXY = env_bool("BEEYARD_BEHIND_PROXY", default=False)
if BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- secrets and folders -------------------------------------------------------------------
SECRET_KEY = env_secret("BEEYARD_SECRET_KEY", DATA_DIR / "keys" / "secret_key")
OIDC_KEY_FILE = DATA_DIR / "keys" / "oidc.pem"
KEYS_DIR = DATA_DIR / "keys"
ARTIFACTS_DIR = DATA_DIR / "artifacts"
CHECKPOINTS_DIR = DATA_DIR / "checkpoints"
WORKERS_DIR = DATA_DIR / "workers"
LOGS_DIR = DATA_DIR / "logs"

# --- applications --------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "ninja",
    "allauth",
    "allauth.account",
    "allauth.idp.oidc",
    "web.core",
    "web.accounts",
    "web.runs",
    "web.contributions",
    "web.monitoring",
    "web.workers",
    "web.alerts",
    "web.api",
    "web.live",
    "web.pages",
    "web.control",
    "web.project",
]
MIDDLEWARE = [
    "web.core.middleware.request_id_middleware",
    "web.core.figures.request_seconds_middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "web.core.middleware.security_headers_middleware",
    "web.api.errors.problem_middleware",
    "web.core.plaintext.plain_text_middleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "web.core.middleware.banned_middleware",
]
ROOT_URLCONF = "web.project.urls"
ASGI_APPLICATION = "web.project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "web.core.context_processors.site",
                "web.control.context.desk",
            ],
            "builtins": ["web.core.templatetags.ui"],
        },
    },
]

# --- database ------------------------------------------------------------------------------
DATABASE_URL = env_text("DATABASE_URL", f"sqlite:///{DATA_DIR / 'db.sqlite3'}")
DATABASES = {"default": dj_database_url.parse(DATABASE_URL, conn_max_age=60)}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"]["OPTIONS"] = {
        # Several processes write: wait for each other, and never upgrade a read lock (which
        # SQLite refuses at once instead of waiting).
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

SLOW_QUERY_MS = env_int("BEEYARD_SLOW_QUERY_MS", 200)
"""Slower statements are shown on the health page, without their values."""

# --- Redis, Celery, cache ------------------------------------------------------------------
REDIS_URL = env_text("REDIS_URL", "redis://127.0.0.1:6379/0")
LIVE_BACKEND = "redis"
LIVE_SOCKETS_PER_CLIENT = env_int("BEEYARD_LIVE_SOCKETS_PER_CLIENT", 200)
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        # A Redis that hangs must not hold requests up.
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 2},
    }
}
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 120
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}]},
    }
}

# --- accounts ------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGIN_METHODS = {"email", "username"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = env_text("BEEYARD_EMAIL_VERIFICATION", "optional")
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_FORMS = {"login": "web.accounts.forms.LoginForm"}
ACCOUNT_ADAPTER = "web.accounts.adapter.AccountAdapter"
ACCOUNT_USERNAME_MIN_LENGTH = 2
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Beeyard: "
IDP_OIDC_ADAPTER = "web.accounts.adapter.OidcAdapter"
IDP_OIDC_PRIVATE_KEY = ""  # made once and read by web.accounts.apps, see OIDC_KEY_FILE
IDP_OIDC_ACCESS_TOKEN_EXPIRES_IN = 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
PASS_LIFETIME_SECONDS = env_int("BEEYARD_PASS_LIFETIME", 1800)
CONFIG_LIFETIME_DAYS = env_int("BEEYARD_CONFIG_LIFETIME_DAYS", 90)

# --- mail ----------------------------------------------------------------------------------
EMAIL_URL = env_text("EMAIL_URL")
_mail = urlsplit(EMAIL_URL)
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if _mail.scheme else 'console'}.EmailBackend"
EMAIL_HOST = _mail.hostname or "localhost"
EMAIL_PORT = _mail.port or 25
EMAIL_HOST_USER = _mail.username or ""
EMAIL_HOST_PASSWORD = _mail.password or ""
EMAIL_TIMEOUT = 20
EMAIL_USE_SSL = _mail.scheme == "smtps"
EMAIL_USE_TLS = _mail.scheme == "smtp+tls"
DEFAULT_FROM_EMAIL = env_text("BEEYARD_MAIL_FROM", f"beeyard@{_public.hostname or 'localhost'}")

# --- alerts --------------------------------------------------------------------------------
WEBHOOK_PRIVATE = env_bool("BEEYARD_WEBHOOK_PRIVATE", default=False)
"""Whether webhooks may call addresses of private networks and of this machine."""

# --- workers that the platform launches ----------------------------------------------------
TRAINING_PYTHON = env_text("BEEYARD_TRAINING_PYTHON", "")
"""Interpreter with the [train] extra; empty: the one that runs the site."""
NODE = env_text("BEEYARD_NODE", "site")
"""Name of this installation among those that run managed workers."""
SITE_URL = env_text("BEEYARD_SITE_URL").rstrip("/")
"""How managed workers of this node reach the site; empty: told by the site's own node."""
SWARM_BIND = env_text("BEEYARD_SWARM_BIND", BIND if NODE == "site" else "")
SWARM_PORT = env_int("BEEYARD_SWARM_PORT", 0)
"""First port for coordinators; 0: chosen once and kept."""

# --- static files, time, logs --------------------------------------------------------------
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False
DATA_UPLOAD_MAX_MEMORY_SIZE = 10_000_000
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request": {"()": "web.core.requestid.RequestIdFilter"},
        "refusal": {"()": "web.core.requestid.RefusalFilter"},
    },
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"}
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["request", "refusal"],
        }
    },
    # It would write down each address that is called; those of webhooks may hold secrets.
    "loggers": {"httpx": {"level": "WARNING"}},
    "root": {"handlers": ["stderr"], "level": env_text("BEEYARD_LOG_LEVEL", "INFO")},
}
