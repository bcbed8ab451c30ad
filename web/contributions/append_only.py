"""The database itself refuses to change or delete ledger entries.

``post_migrate`` puts the triggers in place again: SQLite drops them with the table that a later
migration remakes.
"""

from typing import Any, Final

from django.db import connections

TABLE: Final = "contributions_ledgerentry"
MESSAGE: Final = "ledger entries are never changed or deleted; add a correction instead"

_SQLITE = tuple(
    f"CREATE TRIGGER IF NOT EXISTS ledger_refuses_{verb.lower()} BEFORE {verb} ON {TABLE} "
    f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
    for verb in ("UPDATE", "DELETE")
)
_POSTGRES = (
    "CREATE OR REPLACE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS "
    # An empty table may be emptied: that is how tests and "manage.py flush" begin.
    f"$$ BEGIN IF TG_OP = 'TRUNCATE' AND NOT EXISTS (TABLE {TABLE}) THEN RETURN NULL; "
    f"END IF; RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; "
    "END $$",
    f"CREATE OR REPLACE TRIGGER ledger_refuses_change BEFORE UPDATE OR DELETE ON {TABLE} "
    "FOR EACH ROW EXECUTE FUNCTION ledger_refuses()",
    f"CREATE OR REPLACE TRIGGER ledger_refuses_truncate BEFORE TRUNCATE ON {TABLE} "
    "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuses()",
)
_DROP = {
    "sqlite": ("ledger_refuses_update", "ledger_refuses_delete"),
    "postgresql": ("ledger_refuses_change", "ledger_refuses_truncate"),
}


def triggers_install(using: str = "default") -> None:
    """Put the triggers in place; doing it again changes nothing."""
    connection = connections[using]
    statements = _POSTGRES if connection.vendor == "postgresql" else _SQLITE
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def triggers_drop(using: str = "default") -> None:
    """Take them away: for a migration backwards, and for tests that empty the database."""
    connection = connections[using]
    suffix = f" ON {TABLE}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        for name in _DROP[connection.vendor]:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{suffix}")


def triggers_install_again(using: str = "default", **signal: Any) -> None:
    """Receiver of ``post_migrate``."""
    if TABLE in connections[using].introspection.table_names():
        triggers_install(using)
