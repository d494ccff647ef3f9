"""The tables of operators and processes."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

CREATE = [
    migrations.CreateModel(
        name='Act',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('at', models.DateTimeField()),
            ('operator', models.CharField(help_text='The name, not the user: it stays when the user goes.', max_length=150)),
            ('door', models.CharField(help_text='admin or command.', max_length=16)),
            ('verb', models.CharField(max_length=64)),
            ('kind', models.CharField(help_text='The kind of the row: task, delivery, webhook, API key, user.', max_length=32)),
            ('object_id', models.CharField(max_length=64)),
            ('name', models.CharField(help_text='The name of the row.', max_length=255)),
            ('before', models.TextField(db_default='{}', default='{}', help_text='JSON: the changed values before the act.')),
            ('after', models.TextField(db_default='{}', default='{}', help_text='JSON: the changed values after the act.')),
            ('reason', models.CharField(db_default='', default='', help_text="The operator's reason.", max_length=255)),
            ('peer', models.CharField(help_text='The address that the act came from; null: a command.', max_length=45, null=True)),
            ('tenant', models.ForeignKey(db_constraint=False, db_index=False, help_text='The tenant of the row; null: it has none, or the act is from before this column.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='tasks_app.tenant')),
            ('trace', models.CharField(help_text='The trace id of a traceparent header.', max_length=64, null=True)),
        ],
        options={
            'default_permissions': ('view',),
            'indexes': [models.Index(fields=['kind', 'object_id', 'id'], name='act_of_row'), models.Index(fields=['operator', 'id'], name='act_of_operator')],
        },
    ),
    migrations.CreateModel(
        name='OperatorReach',
        fields=[
            ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='reach', serialize=False, to=settings.AUTH_USER_MODEL)),
            ('all_tenants', models.BooleanField(db_default=False, default=False, help_text='Rows of every tenant.')),
            ('agents', models.TextField(blank=True, db_default='', default='', help_text='Only tasks of these agents; empty: of every agent.')),
            ('tenants', models.ManyToManyField(blank=True, help_text='Else rows of these tenants.', related_name='+', to='tasks_app.tenant')),
        ],
    ),
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
    migrations.CreateModel(
        name='OperatorToken',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('name', models.CharField(help_text='The program that uses it.', max_length=64)),
            ('prefix', models.CharField(help_text='The beginning of the token, for people to recognise it.', max_length=16)),
            ('digest', models.CharField(editable=False, max_length=64, unique=True)),
            ('created_at', models.DateTimeField()),
            ('expires_at', models.DateTimeField()),
            ('revoked_at', models.DateTimeField(null=True)),
            ('used_at', models.DateTimeField(help_text='The newest use, as of one minute.', null=True)),
            ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
            ('administers', models.BooleanField(db_default=False, default=False, help_text='Whether it may do what gives rights to others.')),
            ('password_digest', models.CharField(db_default='', default='', editable=False, max_length=64)),
        ],
    ),
    migrations.CreateModel(
        name='WrongLogins',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('kind', models.CharField(choices=[('user', 'user'), ('address', 'address')], max_length=8)),
            ('value', models.CharField(help_text="The user's name, or the address; of IPv6 its network.", max_length=150)),
            ('running', models.PositiveIntegerField(default=0, help_text='Wrong logins since the last right login.')),
            ('total', models.PositiveIntegerField(default=0, help_text='Wrong logins in all.')),
            ('refused', models.PositiveIntegerField(default=0, help_text='Logins during a lock, whose password was not read.')),
            ('locked_until', models.DateTimeField(null=True)),
            ('began_at', models.DateTimeField(help_text='The time of the first wrong login.')),
            ('last_at', models.DateTimeField(help_text='The time of the newest login.')),
            ('last_with', models.CharField(default='', help_text='The address of the newest login, or its user.', max_length=150)),
            ('right_at', models.DateTimeField(help_text='The time of the newest right login after wrong ones.', null=True)),
        ],
        options={
            'verbose_name': 'wrong logins',
            'verbose_name_plural': 'wrong logins',
            'indexes': [models.Index(fields=['last_at'], name='wrong_logins_age')],
            'constraints': [models.UniqueConstraint(fields=('kind', 'value'), name='wrong_logins_of')],
        },
    ),
    migrations.CreateModel(
        name='Process',
        fields=[
            ('name', models.CharField(help_text='Machine, process id, and a random part.', max_length=64, primary_key=True, serialize=False)),
            ('role', models.CharField(help_text='web, worker, child of a worker, or operator.', max_length=16)),
            ('version', models.CharField(max_length=32)),
            ('started_at', models.DateTimeField()),
            ('seen_at', models.DateTimeField(help_text="Its last sweep, by the database's clock.")),
            ('ended_at', models.DateTimeField(help_text='The time when it ended in order.', null=True)),
            ('steady_at', models.DateTimeField(help_text='The last sweep at which it trusted the clock to delete by.', null=True)),
            ('clock_off', models.FloatField(db_default=0, default=0, help_text="Seconds by which its machine's clock is ahead of the database's.")),
            ('troubles', models.TextField(db_default='[]', default='[]', help_text='JSON: the sentences of /readyz.')),
            ('lost', models.PositiveIntegerField(db_default=0, default=0, help_text='Exchanges that could not be recorded.')),
            ('lag', models.FloatField(help_text='Seconds by which deleting is behind, as this process measured it.', null=True)),
            ('counters', models.TextField(help_text='JSON: the counters of a process that has no /metrics.', null=True)),
        ],
        options={
            'verbose_name_plural': 'processes',
        },
    ),
]
