"""The tables of callers, with their rights and their limits."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

CREATE = [
    migrations.CreateModel(
        name='Tenant',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('name', models.CharField(max_length=64, unique=True)),
            ('created_at', models.DateTimeField(auto_now_add=True)),
            ('rules', models.TextField(editable=False, help_text='JSON: the rows of Permission; null without any.', null=True)),
        ],
    ),
    migrations.CreateModel(
        name='Principal',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('name', models.CharField(max_length=64)),
            ('created_at', models.DateTimeField(auto_now_add=True)),
            ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='principals', to='tasks_app.tenant')),
            ('rules', models.TextField(editable=False, help_text='JSON: the rows of Permission; null without any.', null=True)),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='principal_name')],
        },
    ),
    migrations.CreateModel(
        name='ApiKey',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('name', models.CharField(max_length=64)),
            ('prefix', models.CharField(help_text='The beginning of the key, for people to recognise it.', max_length=16)),
            ('digest', models.CharField(editable=False, max_length=64, unique=True)),
            ('scopes', models.CharField(default='*', help_text='Separated by spaces; * is all.', max_length=255)),
            ('created_at', models.DateTimeField(auto_now_add=True)),
            ('expires_at', models.DateTimeField(blank=True, null=True)),
            ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ('principal', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='keys', to='tasks_app.principal')),
            ('language', models.CharField(blank=True, help_text='The language of calls that name no version, if it has their method; null: the method decides.', max_length=32, null=True)),
            ('last_used_at', models.DateTimeField(help_text='The last use, to the minute.', null=True)),
            ('networks', models.TextField(db_default='', default='', help_text='The networks that calls may come from, separated by spaces; empty: any.')),
        ],
        options={
            'verbose_name': 'API key',
        },
    ),
    migrations.CreateModel(
        name='OAuthClient',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('client_id', models.CharField(editable=False, max_length=64, unique=True)),
            ('name', models.CharField(max_length=64)),
            ('scopes', models.CharField(help_text='The most scopes of its tokens, separated by spaces.', max_length=255)),
            ('authorization_grant_type', models.CharField(choices=[('client-credentials', 'client-credentials'), ('authorization-code', 'authorization-code')], max_length=32, verbose_name='grant')),
            ('client_type', models.CharField(choices=[('confidential', 'confidential'), ('public', 'public')], max_length=16, verbose_name='type')),
            ('redirect_uris', models.TextField(blank=True, help_text='Separated by spaces.')),
            ('digest', models.CharField(editable=False, help_text='The digest of its secret; null for a public client.', max_length=64, null=True)),
            ('former_digest', models.CharField(editable=False, help_text='The digest of the secret before the last rotation.', max_length=64, null=True)),
            ('former_until', models.DateTimeField(editable=False, help_text='The time until which the former secret is valid.', null=True)),
            ('created_at', models.DateTimeField(auto_now_add=True)),
            ('disabled_at', models.DateTimeField(blank=True, null=True)),
            ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ('principal', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='clients', to='tasks_app.principal')),
        ],
        options={
            'verbose_name': 'OAuth client',
        },
    ),
    migrations.CreateModel(
        name='Permission',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('allows', models.BooleanField(help_text='Whether the rule allows the names or denies them.')),
            ('kind', models.CharField(help_text='agent, skill, phase or operation.', max_length=16)),
            ('pattern', models.CharField(help_text='A name, or the beginning of names and an asterisk.', max_length=128)),
            ('created_at', models.DateTimeField(auto_now_add=True)),
            ('principal', models.ForeignKey(blank=True, help_text='The principal of the tenant; null for all of them.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='permissions', to='tasks_app.principal')),
            ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='permissions', to='tasks_app.tenant')),
        ],
        options={
            'constraints': [models.UniqueConstraint(condition=models.Q(('principal__isnull', False)), fields=('principal', 'kind', 'pattern'), name='permission_of_principal', violation_error_message='There is a permission for this pattern already: remove it first.'), models.UniqueConstraint(condition=models.Q(('principal', None)), fields=('tenant', 'kind', 'pattern'), name='permission_of_tenant', violation_error_message='There is a permission for this pattern already: remove it first.')],
        },
    ),
    migrations.CreateModel(
        name='RateLimit',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('per_minute', models.PositiveIntegerField(help_text='Units of cost in a minute; 0: no limit.')),
            ('burst', models.PositiveIntegerField(help_text='Units at once; null: those of a minute.', null=True)),
            ('changed_at', models.DateTimeField()),
            ('principal', models.ForeignKey(help_text='Null: the tenant as a whole.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rate_limits', to='tasks_app.principal')),
            ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rate_limits', to='tasks_app.tenant')),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('principal',), name='rate_limit_of_principal'), models.UniqueConstraint(condition=models.Q(('principal', None)), fields=('tenant',), name='rate_limit_of_tenant')],
        },
    ),
    migrations.CreateModel(
        name='ServiceAccount',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('issuer', models.CharField(help_text='The issuer of its tokens; `certificate` for a certificate.', max_length=255)),
            ('subject', models.CharField(help_text='Its name at the issuer, or in the certificate.', max_length=255)),
            ('scopes', models.CharField(default='*', help_text='The most scopes that it may have, separated by spaces; * is all.', max_length=255)),
            ('language', models.CharField(blank=True, help_text='The language, as of an API key.', max_length=32, null=True)),
            ('not_before', models.DateTimeField(blank=True, help_text='Tokens issued before are refused.', null=True)),
            ('created_at', models.DateTimeField(auto_now_add=True)),
            ('disabled_at', models.DateTimeField(blank=True, null=True)),
            ('principal', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='accounts', to='tasks_app.principal')),
        ],
        options={
            'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='account_subject')],
        },
    ),
    migrations.CreateModel(
        name='SocketTicket',
        fields=[
            ('digest', models.CharField(editable=False, max_length=64, primary_key=True, serialize=False)),
            ('key_digests', models.TextField(help_text='The digests under which the key may be stored, separated by spaces.')),
            ('expires_at', models.DateTimeField(db_index=True)),
            ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tasks_app.principal')),
        ],
    ),
    migrations.CreateModel(
        name='UserLink',
        fields=[
            ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to=settings.AUTH_USER_MODEL)),
            ('scopes', models.CharField(help_text='Separated by spaces; * is all.', max_length=255)),
            ('created_at', models.DateTimeField()),
            ('principal', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tasks_app.principal')),
        ],
        options={
            'verbose_name': 'user link',
        },
    ),
    migrations.CreateModel(
        name='Budget',
        fields=[
            ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ('amount', models.BigIntegerField(help_text='Millionths of a dollar.')),
            ('period', models.CharField(choices=[('total', 'in total'), ('day', 'a day'), ('month', 'a month')], default='total', max_length=8)),
            ('reserved', models.BigIntegerField(db_default=0, default=0, help_text='What unfinished tasks may still cost.')),
            ('spent', models.BigIntegerField(db_default=0, default=0, help_text='What tasks that ended in this period have cost.')),
            ('resets_at', models.DateTimeField(help_text='The end of the period; null for a total.', null=True)),
            ('principal', models.OneToOneField(help_text='A principal of the tenant; null: the budget of all its principals together.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budget', to='tasks_app.principal')),
            ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to='tasks_app.tenant')),
        ],
        options={
            'constraints': [models.UniqueConstraint(condition=models.Q(('principal', None)), fields=('tenant',), name='budget_of_tenant')],
        },
    ),
]
