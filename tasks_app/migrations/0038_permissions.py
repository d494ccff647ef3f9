"""Permissions: rows for operators, and their rules beside principals and tenants for callers. Null is no rule."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0037_budgets'),
    ]

    operations = [
        migrations.AddField(
            model_name='principal',
            name='rules',
            field=models.TextField(editable=False, help_text='JSON: the rows of Permission; null without any.', null=True),
        ),
        migrations.AddField(
            model_name='tenant',
            name='rules',
            field=models.TextField(editable=False, help_text='JSON: the rows of Permission; null without any.', null=True),
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
    ]
