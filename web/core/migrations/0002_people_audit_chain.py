"""Audit entries are chained from here on, old ones too, and the database refuses to change them."""

from django.db import migrations, models

from web.core.audit import run_of
from web.core.chain import START, content_of, link_hash


def entries_chain(apps, editor):
    entries = apps.get_model("core", "AuditEntry").objects.using(editor.connection.alias)
    seq, previous = 0, START
    for entry in entries.order_by("id").iterator(chunk_size=1000):
        seq += 1
        fields = {name: getattr(entry, name) for name in
                  ("at", "actor_id", "actor_name", "code", "target", "data")}
        fields |= {"seq": seq, "run": run_of(entry.code, entry.target)}
        digest = link_hash(previous, content_of(**fields))
        entries.filter(pk=entry.pk).update(
            seq=seq, run=fields["run"], previous=previous, hash=digest
        )
        previous = digest
    head = apps.get_model("core", "AuditHead").objects.using(editor.connection.alias)
    head.create(pk=1, seq=seq, hash=previous if seq else "")


class Migration(migrations.Migration):
    dependencies = [("core", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="AuditHead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveBigIntegerField(default=0)),
                ("hash", models.CharField(blank=True, default="", max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="AuditCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("num_entries", models.PositiveBigIntegerField()),
                ("head", models.CharField(blank=True, default="", max_length=64)),
                ("broken_seq", models.PositiveBigIntegerField(null=True)),
                ("text", models.CharField(blank=True, default="", max_length=300)),
            ],
            options={"ordering": ("-id",)},
        ),
        migrations.AddField("auditentry", "seq", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("auditentry", "previous", models.CharField(max_length=64, null=True)),
        migrations.AddField("auditentry", "hash", models.CharField(max_length=64, null=True)),
        migrations.AddField("auditentry", "run", models.CharField(blank=True, default="", max_length=60)),
        migrations.AlterField("auditentry", "at", models.DateTimeField()),
        migrations.RunPython(entries_chain, migrations.RunPython.noop),
        migrations.AlterField("auditentry", "seq", models.PositiveBigIntegerField(unique=True)),
        migrations.AlterField("auditentry", "previous", models.CharField(max_length=64, unique=True)),
        migrations.AlterField("auditentry", "hash", models.CharField(max_length=64)),
        migrations.AddIndex("auditentry", models.Index(fields=["run", "-id"], name="audit_by_run")),
        migrations.AddIndex("auditentry", models.Index(fields=["actor_name", "-id"], name="audit_by_actor")),
        migrations.AddIndex("auditentry", models.Index(fields=["at"], name="audit_by_time")),
    ]
