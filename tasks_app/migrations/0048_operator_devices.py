import secrets
from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from tasks_app.sealing import seal, unseal


def seal_keys(apps: Any, schema_editor: Any) -> None:
    """Seal the keys of all devices. Only their rows are locked, and a process of the version before finds every code of
    such a device wrong, until it is restarted. A device that it enrols meanwhile is sealed at its next code."""
    devices, sealed = apps.get_model("otp_totp", "TOTPDevice"), apps.get_model("tasks_app", "OperatorDevice")
    columns = [field.attname for field in devices._meta.concrete_fields]
    for device in devices.objects.select_for_update().order_by("pk"):
        row = sealed(totpdevice_ptr_id=device.pk, sealed_key=seal(device.key))
        for name in columns:
            setattr(row, name, getattr(device, name))
        row.key = secrets.token_hex(20)
        row.save()


def unseal_keys(apps: Any, schema_editor: Any) -> None:
    """Write the keys where the version before reads them. Raises Unreadable if SECRET_KEY was changed since."""
    for row in apps.get_model("tasks_app", "OperatorDevice").objects.order_by("pk"):
        row.key = unseal(row.sealed_key)
        row.save(update_fields=["key"])


class Migration(migrations.Migration):

    dependencies = [
        ('otp_totp', '0003_add_timestamps'),
        ('tasks_app', '0047_webhook_filter'),
    ]

    operations = [
        migrations.CreateModel(
            name='OperatorDevice',
            fields=[
                ('totpdevice_ptr', models.OneToOneField(auto_created=True, on_delete=django.db.models.deletion.CASCADE, parent_link=True, primary_key=True, serialize=False, to='otp_totp.totpdevice')),
                ('sealed_key', models.TextField(editable=False, help_text='Sealed: the key in hexadecimal digits.')),
            ],
            options={
                'default_permissions': (),
            },
            bases=('otp_totp.totpdevice',),
        ),
        migrations.RunPython(seal_keys, unseal_keys),
    ]
