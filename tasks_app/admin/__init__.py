"""The operator's door: shows what is stored, and acts through operations only."""

from django.conf import settings
from django.contrib import admin

from tasks_app.admin import acts, deliveries, exchanges, keys, logins, processes, tasks, users, webhooks
from tasks_app.admin.text import NONE

__all__ = ["acts", "deliveries", "exchanges", "keys", "logins", "processes", "tasks", "users", "webhooks"]

admin.site.site_header = admin.site.site_title = "Taskdesk"
admin.site.index_title = "What happened, and to whom"
# What there is to see for people who are no operators.
admin.site.site_url = "/" if settings.A2A_FRONT_PAGE else "/agents/"
admin.site.empty_value_display = NONE
admin.site.final_catch_all_view = False  # nothing_here.py answers, in the frame of the admin
