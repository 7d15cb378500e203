"""django-import-export in its usual mode: a model's resource, each row validated, all in one transaction."""

import os
import sys
from importlib import import_module, util
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

_MOMENT = "%Y-%m-%dT%H:%M:%S%z"


def main() -> None:
    """Import a file into the users."""
    _set_up(os.environ["ROWCALL_DATABASE_URL"])
    dataset = import_module("tablib").Dataset().load(Path(sys.argv[1]).read_text("utf-8"), format="csv")
    result = _resource().import_data(dataset, dry_run=False, use_transactions=True)
    if result.has_errors() or result.has_validation_errors():
        sys.exit("django-import-export found errors in rows without any.")


def unavailable() -> str:
    """Why it can't take part, or nothing."""
    missing = [name for name in ("django", "import_export", "tablib") if util.find_spec(name) is None]
    return f"{', '.join(missing)} not installed: make bench installs it" if missing else ""


def _set_up(url: str) -> None:
    parts = conninfo_to_dict(url)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    default = {name: str(parts.get(part) or "") for name, part in names.items()}
    import_module("django.conf").settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **default}},
        INSTALLED_APPS=["import_export"],
        USE_TZ=True,
    )
    import_module("django").setup()


def _model() -> Any:
    models: Any = import_module("django.db.models")  # installed for the benchmark only

    class User(models.Model):
        id = models.UUIDField(primary_key=True)
        email = models.EmailField(unique=True)
        name = models.TextField()
        role = models.TextField(choices=[(role, role) for role in ("admin", "author", "editor", "reader")])
        active = models.BooleanField()
        created_at = models.DateTimeField()
        updated_at = models.DateTimeField()

        class Meta:
            app_label = "import_export"  # it looks up the app, and needs one that is installed
            db_table = "users"
            managed = False

    return User


def _resource() -> Any:
    resources: Any = import_module("import_export.resources")
    fields: Any = import_module("import_export.fields")
    widgets: Any = import_module("import_export.widgets")
    user = _model()

    def moment(name: str) -> Any:
        return fields.Field(attribute=name, column_name=name, widget=widgets.DateTimeWidget(_MOMENT))

    class Users(resources.ModelResource):
        created_at = moment("created_at")
        updated_at = moment("updated_at")

        class Meta:
            model = user
            import_id_fields = ("id",)
            clean_model_instances = True

    return Users()
