"""Ledger entries: no update and no delete from here on, whoever asks the database."""

from django.db import migrations

from web.contributions.append_only import triggers_drop, triggers_install


class Migration(migrations.Migration):
    dependencies = [("contributions", "0002_evidence")]

    operations = [
        migrations.RunPython(
            lambda apps, editor: triggers_install(editor.connection.alias),
            lambda apps, editor: triggers_drop(editor.connection.alias),
        )
    ]
