"""Devices of the second factor. Their pages by django-otp are taken away: they would show the keys of the devices."""

from django.contrib import admin
from django_otp.plugins.otp_static.admin import StaticDevice
from django_otp.plugins.otp_totp.admin import TOTPDevice

admin.site.unregister([StaticDevice, TOTPDevice])
