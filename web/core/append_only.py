"""The database itself refuses to change or delete audit entries, and to turn their chain back.

``post_migrate`` puts the triggers in place again: SQLite drops them with the table that a later
migration remakes.
"""

from typing import Any, Final

from django.db import connections

TABLE: Final = "core_auditentry"
HEAD_TABLE: Final = "core_audithead"
MESSAGE: Final = "audit entries are never changed or deleted"
HEAD_MESSAGE: Final = "the end of the audit chain only moves forward"

_SQLITE = (
    *(
        f"CREATE TRIGGER IF NOT EXISTS audit_refuses_{verb.lower()} BEFORE {verb} ON {TABLE} "
        f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
        for verb in ("UPDATE", "DELETE")
    ),
    f"CREATE TRIGGER IF NOT EXISTS audit_head_forward BEFORE UPDATE ON {HEAD_TABLE} "
    "WHEN NEW.seq <> OLD.seq + 1 OR NEW.id <> OLD.id "
    f"BEGIN SELECT RAISE(ABORT, '{HEAD_MESSAGE}'); END",
    f"CREATE TRIGGER IF NOT EXISTS audit_head_stays BEFORE DELETE ON {HEAD_TABLE} "
    f"BEGIN SELECT RAISE(ABORT, '{HEAD_MESSAGE}'); END",
)
_FUNCTION = (
    "CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
    # Empty tables may be emptied: that is how tests and "manage.py flush" begin.
    "$$ BEGIN IF TG_OP = 'TRUNCATE' AND NOT EXISTS (TABLE {table}) THEN RETURN NULL; END IF; "
    "{more}RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; END $$"
)
_FORWARD = (
    "IF TG_OP = 'UPDATE' AND NEW.seq = OLD.seq + 1 AND NEW.id = OLD.id THEN RETURN NEW; END IF; "
)
_POSTGRES = (
    _FUNCTION.format(name="audit_refuses", table=TABLE, more="", message=MESSAGE),
    _FUNCTION.format(name="audit_head_refuses", table=TABLE, more=_FORWARD, message=HEAD_MESSAGE),
    *(
        f"CREATE OR REPLACE TRIGGER {function}_{when} BEFORE {verbs} ON {table} "
        f"FOR EACH {each} EXECUTE FUNCTION {function}()"
        for function, table in (("audit_refuses", TABLE), ("audit_head_refuses", HEAD_TABLE))
        for when, verbs, each in (
            ("change", "UPDATE OR DELETE", "ROW"),
            ("truncate", "TRUNCATE", "STATEMENT"),
        )
    ),
)
_DROP = {
    "sqlite": ("audit_refuses_update", "audit_refuses_delete", "audit_head_forward",
               "audit_head_stays"),
    "postgresql": ("audit_refuses_change", "audit_refuses_truncate", "audit_head_refuses_change",
                   "audit_head_refuses_truncate"),
}  # fmt: skip


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
    is_postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        for name in _DROP[connection.vendor]:
            table = HEAD_TABLE if "head" in name else TABLE
            suffix = f" ON {table}" if is_postgres else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{suffix}")


def triggers_install_again(using: str = "default", **signal: Any) -> None:
    """Receiver of ``post_migrate``."""
    if HEAD_TABLE in connections[using].introspection.table_names():
        triggers_install(using)
