"""Django on PostgreSQL's backend: the migrations of its own applications, fixtures whose rows refer to each other, its ORM."""

import json

import harness
import pytest

from pgclient import port_of

APPLICATIONS = ["admin", "auth", "contenttypes", "flatpages", "messages", "redirects", "sessions", "sites"]


@pytest.fixture(scope="module")
def django(tmp_path_factory):
    django = pytest.importorskip("django")
    pytest.importorskip("psycopg")
    from django.conf import settings
    from django.core.management import call_command

    with harness.Server(tmp_path_factory.mktemp("django"), "--sql-port", "0") as server:
        database = {"ENGINE": "django.db.backends.postgresql", "NAME": "site", "USER": "tester", "HOST": "127.0.0.1"}
        settings.configure(
            SECRET_KEY="secret",
            SITE_ID=1,
            USE_TZ=True,
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
            INSTALLED_APPS=[f"django.contrib.{name}" for name in APPLICATIONS],
            DATABASES={"default": database | {"PORT": port_of(server)}},
        )
        django.setup()
        call_command("migrate", verbosity=0)
        yield django
        from django.db import connections

        connections.close_all()


def test_migrations_are_recorded_and_undone(django):
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    call_command("migrate", "flatpages", "zero", verbosity=0)
    assert "django_flatpage" not in connection.introspection.table_names()
    call_command("migrate", verbosity=0)
    assert "django_flatpage" in connection.introspection.table_names()


def test_fixtures_come_in_any_order(django, tmp_path):
    from django.contrib.auth.models import Group, User
    from django.core.management import call_command
    from django.db import IntegrityError

    rows = [
        {"model": "admin.logentry", "pk": 1, "fields": {"user": 77, "action_time": "2024-01-01T00:00:00Z", "object_repr": "x", "action_flag": 1}},
        {"model": "auth.user", "pk": 77, "fields": {"username": "ada", "password": "x", "groups": [9]}},
        {"model": "auth.group", "pk": 9, "fields": {"name": "writers"}},
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    call_command("loaddata", str(path), verbosity=0)
    assert User.objects.get(logentry__object_repr="x").groups.get() == Group.objects.get(name="writers")
    rows[0]["fields"]["user"] = 78
    path.write_text(json.dumps(rows[:1]))
    with pytest.raises(IntegrityError):
        call_command("loaddata", str(path), verbosity=0)


def test_queries(django):
    from django.contrib.auth.models import Group, Permission, User
    from django.db import IntegrityError, transaction
    from django.db.models import Count, F, OuterRef, Subquery, Window
    from django.db.models.functions import RowNumber

    for name in ["eve", "bob", "cy"]:
        user = User.objects.create_user(name, f"{name}@example.com", "secret")
        user.groups.add(*(Group.objects.get_or_create(name=group)[0] for group in name))
    # Grouped by the key alone, with all other columns beside.
    counted = User.objects.filter(username__in=["eve", "bob", "cy"]).annotate(n=Count("groups")).order_by("-n", "username")
    assert [(user.username, user.n, user.email) for user in counted] == [
        ("bob", 2, "bob@example.com"),
        ("cy", 2, "cy@example.com"),
        ("eve", 2, "eve@example.com"),
    ]
    newest = User.objects.filter(groups=OuterRef("pk")).order_by("-pk").values("username")[:1]
    assert Group.objects.annotate(newest=Subquery(newest)).get(name="y").newest == "cy"
    places = User.objects.annotate(place=Window(RowNumber(), order_by=F("username").desc())).filter(place__lte=2)
    assert len(places) == 2
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create(username="eve")
    with transaction.atomic():
        assert User.objects.select_for_update(of=("self",)).get(username="eve").check_password("secret")
    assert Permission.objects.filter(content_type__app_label="auth").count() == 12
    assert User.objects.filter(username="eve").delete()[0] == 3
