import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tasks_app", "0069_large_exchanges")]
    operations = [
        migrations.CreateModel(
            name="DrawnCost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("advance", models.CharField(max_length=36)),
                ("spent", models.BigIntegerField(help_text="Millionths of a dollar.")),
                (
                    "budget",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drawn_costs",
                        to="tasks_app.budget",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["advance"], name="drawn_cost_advance")]},
        ),
    ]
