"""Every setting: those of the environment, a module of config/sections for each group, and Django's own.

Only the sections read the environment, with the typed readers of config/environment.py. The text below a setting is its
row in docs/reference/settings.md: `manage.py a2a reference --write` after a change.
"""

from urllib.parse import urlsplit

from config.environment import find_misspellings
from config.logs import logging_options
from config.project import PROJECT as PROJECT
from config.project import ROOT
from config.sections import SECTIONS as SECTIONS
from config.sections.addresses import *
from config.sections.agents import *
from config.sections.batches import *
from config.sections.calls import *
from config.sections.cards import *
from config.sections.database import *
from config.sections.files import *
from config.sections.identity import *
from config.sections.logins import *
from config.sections.memory import *
from config.sections.oauth import *
from config.sections.process import *
from config.sections.rates import *
from config.sections.retention import *
from config.sections.shared_streams import *
from config.sections.shares import *
from config.sections.slack import *
from config.sections.webhooks import *
from config.sections.workflows import *
from config.sections.zones import *

INSTALLED_APPS = [
    "tasks_app",  # before django.contrib.staticfiles, for its runserver
    "config.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_otp",
    "django_otp.plugins.otp_static",
    "django_otp.plugins.otp_totp",
    "channels",
    *(["oauth2_provider"] if A2A_OAUTH else []),
]
MIDDLEWARE = [
    "tasks_app.transports.headers.pages",
    "tasks_app.asgi.forwarded.Forwarded",
    "django.middleware.security.SecurityMiddleware",
    "tasks_app.asgi.static.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "tasks_app.operators.visits.Visits",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
LEAN_MIDDLEWARE: list[str] = []
"""Middleware of the protocol's paths. All of it must be async."""
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
CELERY_APPLICATION = "config.celery.app"
"""The Celery application. Only processes that run agents or wake workers import it, so that commands start fast."""
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = ["tasks_app.operators.logins.Throttle", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "tasks_app.operators.logins.VariedPassword"},
]
OTP_TOTP_ISSUER = "Taskdesk"
"""The name under which apps for one-time codes list this server."""
SESSION_ENGINE = "tasks_app.operators.session_store"
SESSION_COOKIE_AGE = int(A2A_SESSION_HOURS * 3600)
STATIC_URL = "static/"
STATICFILES_DIRS = [ROOT / "templates" / "static"]
WHITENOISE_USE_FINDERS = True
"""Static files are served from the installed packages, so collectstatic is not needed."""
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
DATETIME_FORMAT, DATE_FORMAT, TIME_FORMAT = "Y-m-d H:i:s", "Y-m-d", "H:i:s"
"""The form of all times in the admin, in UTC."""
DATA_UPLOAD_MAX_MEMORY_SIZE = A2A_BODY_BYTES
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEVELOPMENT
CSRF_TRUSTED_ORIGINS = ["://".join(urlsplit(A2A_PUBLIC_URL)[:2])] if A2A_PUBLIC_URL else []
"""Origins of forms. Behind a proxy with TLS a form comes from https, although the request arrives over http."""
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = 31_536_000 if A2A_PUBLIC_URL.startswith("https:") else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if A2A_TRUST_FORWARDED == "x-forwarded" else None
SECURE_SSL_REDIRECT = bool(SECURE_HSTS_SECONDS and SECURE_PROXY_SSL_HEADER)
SILENCED_SYSTEM_CHECKS = [
    # A program on its user's machine is redirected to a loopback address, which has no https (RFC 8252, 8.3).
    "oauth2_provider.W008",
    # No includeSubDomains and no preload: other names of the domain may belong to other servers.
    "security.W005",
    "security.W021",
    # Only with a trusted X-Forwarded-Proto do we know about TLS. Any other proxy has to redirect by itself.
    *([] if SECURE_SSL_REDIRECT or not SECURE_HSTS_SECONDS else ["security.W008"]),
]
LOGGING = logging_options(LOG_LEVEL, LOG_FORMAT)
MISSPELLINGS = find_misspellings()
"""Variables of the environment that look like settings and are none, each with the setting that it resembles."""
