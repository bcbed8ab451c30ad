"""Migrations match the models, are linear, and can be undone."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

OURS = ("accounts", "alerts", "contributions", "core", "monitoring", "runs", "workers")


@pytest.mark.django_db
def test_no_model_change_is_without_its_migration() -> None:
    call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())


@pytest.mark.django_db
def test_each_app_has_one_last_migration() -> None:
    loader = MigrationLoader(connection)
    for app in OURS:
        assert len(loader.graph.leaf_nodes(app)) == 1, app


@pytest.mark.django_db
def test_every_operation_can_be_undone() -> None:
    loader = MigrationLoader(connection)
    for (app, name), migration in loader.disk_migrations.items():
        if app in OURS:
            for operation in migration.operations:
                assert operation.reversible, f"{app}.{name}: {operation.describe()}"
