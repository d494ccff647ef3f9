"""Plain words in the texts of the admin. There is nothing to do in the database."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tasks_app', '0028_texts_last'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterModelOptions(
                    name='deliverytry',
                    options={'verbose_name': 'delivery attempt', 'verbose_name_plural': 'delivery attempts'},
                ),
                migrations.AlterField(
                    model_name='act',
                    name='after',
                    field=models.TextField(db_default='{}', default='{}', help_text='JSON: the changed values after the act.'),
                ),
                migrations.AlterField(
                    model_name='act',
                    name='before',
                    field=models.TextField(db_default='{}', default='{}', help_text='JSON: the changed values before the act.'),
                ),
                migrations.AlterField(
                    model_name='act',
                    name='kind',
                    field=models.CharField(help_text='The kind of the row: task, delivery, webhook, API key, user.', max_length=32),
                ),
                migrations.AlterField(
                    model_name='act',
                    name='name',
                    field=models.CharField(help_text='The name of the row.', max_length=255),
                ),
                migrations.AlterField(
                    model_name='act',
                    name='reason',
                    field=models.CharField(db_default='', default='', help_text="The operator's reason.", max_length=255),
                ),
                migrations.AlterField(
                    model_name='delivery',
                    name='body',
                    field=models.TextField(help_text='The body of a row from before bodies were made from the log; else null.', null=True),
                ),
                migrations.AlterField(
                    model_name='delivery',
                    name='error',
                    field=models.CharField(default='', help_text='The error of the last attempt.', max_length=255),
                ),
                migrations.AlterField(
                    model_name='delivery',
                    name='id',
                    field=models.CharField(help_text='Every attempt sends it as webhook-id.', max_length=36, primary_key=True, serialize=False),
                ),
                migrations.AlterField(
                    model_name='delivery',
                    name='seq',
                    field=models.PositiveIntegerField(help_text='The sequence number of the event.'),
                ),
                migrations.AlterField(
                    model_name='event',
                    name='actor',
                    field=models.CharField(help_text='The actor: caller, agent, sweeper, runner, or operator:NAME.', max_length=64),
                ),
                migrations.AlterField(
                    model_name='event',
                    name='exchange_id',
                    field=models.CharField(help_text='The exchange of the call that caused it, if a call did.', max_length=36, null=True),
                ),
                migrations.AlterField(
                    model_name='event',
                    name='size',
                    field=models.PositiveIntegerField(default=0, help_text='Characters of the payload, so that it need not be read.'),
                ),
                migrations.AlterField(
                    model_name='exchange',
                    name='envelope',
                    field=models.CharField(help_text='The envelope of the call and its answer; null: it follows from the door.', max_length=16, null=True),
                ),
                migrations.AlterField(
                    model_name='exchange',
                    name='last_seq',
                    field=models.PositiveIntegerField(help_text="The task's sequence number the answer ended with.", null=True),
                ),
                migrations.AlterField(
                    model_name='exchange',
                    name='request_id',
                    field=models.CharField(default='', help_text="The id of the HTTP call, which the members of a batch share; empty if it is the exchange's own id.", max_length=128),
                ),
                migrations.AlterField(
                    model_name='exchange',
                    name='version',
                    field=models.CharField(default='', help_text='The value of A2A-Version in the call.', max_length=32),
                ),
                migrations.AlterField(
                    model_name='process',
                    name='ended_at',
                    field=models.DateTimeField(help_text='The time when it ended in order.', null=True),
                ),
                migrations.AlterField(
                    model_name='process',
                    name='troubles',
                    field=models.TextField(db_default='[]', default='[]', help_text='JSON: the sentences of /readyz.'),
                ),
                migrations.AlterField(
                    model_name='pushconfig',
                    name='config_id',
                    field=models.CharField(help_text='The id that its owner uses; unique in the task.', max_length=255),
                ),
                migrations.AlterField(
                    model_name='pushconfig',
                    name='host',
                    field=models.CharField(help_text='The host of the address, for the limit of attempts at a host.', max_length=255),
                ),
                migrations.AlterField(
                    model_name='pushconfig',
                    name='key',
                    field=models.ForeignKey(db_constraint=False, db_index=False, help_text='The key that registered it. Without this key no delivery is sent.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='webhooks', to='tasks_app.apikey'),
                ),
                migrations.AlterField(
                    model_name='pushconfig',
                    name='lease_owner',
                    field=models.CharField(help_text='The delivery attempt under way.', max_length=64, null=True),
                ),
                migrations.AlterField(
                    model_name='pushconfig',
                    name='sent_bytes',
                    field=models.BigIntegerField(db_default=0, default=0, help_text='The size of all bodies that were sent to it.'),
                ),
                migrations.AlterField(
                    model_name='run',
                    name='reference',
                    field=models.CharField(default='', help_text='The reference that the caller got in place of the cause.', max_length=32),
                ),
                migrations.AlterField(
                    model_name='task',
                    name='wants',
                    field=models.TextField(db_default='', default='', help_text='JSON: the caller and the preferences of the newest message.'),
                ),
                migrations.AlterField(
                    model_name='wronglogins',
                    name='began_at',
                    field=models.DateTimeField(help_text='The time of the first wrong login.'),
                ),
                migrations.AlterField(
                    model_name='wronglogins',
                    name='last_at',
                    field=models.DateTimeField(help_text='The time of the newest login.'),
                ),
                migrations.AlterField(
                    model_name='wronglogins',
                    name='last_with',
                    field=models.CharField(default='', help_text='The address of the newest login, or its user.', max_length=150),
                ),
                migrations.AlterField(
                    model_name='wronglogins',
                    name='refused',
                    field=models.PositiveIntegerField(default=0, help_text='Logins during a lock, whose password was not read.'),
                ),
                migrations.AlterField(
                    model_name='wronglogins',
                    name='right_at',
                    field=models.DateTimeField(help_text='The time of the newest right login after wrong ones.', null=True),
                ),
                migrations.AlterField(
                    model_name='wronglogins',
                    name='running',
                    field=models.PositiveIntegerField(default=0, help_text='Wrong logins since the last right login.'),
                ),
                migrations.AlterField(
                    model_name='wronglogins',
                    name='total',
                    field=models.PositiveIntegerField(default=0, help_text='Wrong logins in all.'),
                ),
            ],
        ),
    ]
