"""A migration of its own: PostgreSQL makes no trigger on a table that it has just changed."""

from django.db import migrations

from web.core.append_only import triggers_drop, triggers_install


class Migration(migrations.Migration):
    dependencies = [("core", "0002_people_audit_chain")]

    operations = [
        migrations.RunPython(
            lambda apps, editor: triggers_install(editor.connection.alias),
            lambda apps, editor: triggers_drop(editor.connection.alias),
        )
    ]
