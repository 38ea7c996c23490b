"""What SQLAlchemy, pandas and Alembic read of the catalog, over their drivers."""

import harness
import pytest

from pgclient import Sql, port_of

SCHEMA = [
    """CREATE TABLE customers (_id int PRIMARY KEY, name varchar(50) NOT NULL, email text UNIQUE, age int CHECK (age > 0),
       balance numeric(10,2) DEFAULT 0, tags text[], extra jsonb)""",
    """CREATE TABLE orders (_id bigserial PRIMARY KEY, customer int NOT NULL REFERENCES customers(_id) ON DELETE CASCADE,
       placed timestamp)""",
    """CREATE TABLE lines (order_id bigint REFERENCES orders(_id), no int, sku text, PRIMARY KEY (order_id, no),
       UNIQUE (sku, no))""",
    "CREATE TABLE counted (_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)",
    "CREATE INDEX orders_placed ON orders (placed DESC, customer)",
    "CREATE VIEW rich AS SELECT _id, name FROM customers WHERE balance > 1000",
]


@pytest.fixture(scope="module", params=["psycopg", "psycopg2"])
def engine(request, server):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip(request.param)
    engine = sqlalchemy.create_engine(f"postgresql+{request.param}://tester@127.0.0.1:{server}/{request.param}")
    with engine.begin() as connection:
        for statement in SCHEMA:
            connection.execute(sqlalchemy.text(statement))
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with harness.Server(tmp_path_factory.mktemp("reflection"), "--sql-port", "0") as server:
        yield port_of(server)


def test_inspector(engine):
    import sqlalchemy

    inspector = sqlalchemy.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["counted", "customers", "lines", "orders"]
    assert inspector.get_view_names() == ["rich"]
    assert "SELECT" in inspector.get_view_definition("rich")
    assert inspector.has_table("orders") and not inspector.has_table("nothing")
    assert inspector.has_index("orders", "orders_placed")
    assert "counted__id_seq" in inspector.get_sequence_names()

    columns = {column["name"]: column for column in inspector.get_columns("customers")}
    shown = {name: str(column["type"]) for name, column in columns.items()}
    assert shown["name"] == "VARCHAR(50)"
    assert shown["balance"] == "NUMERIC(10, 2)"
    assert shown["extra"] == "JSONB"
    assert columns["name"]["nullable"] is False and columns["age"]["nullable"] is True
    assert columns["balance"]["default"] == "0"
    [own] = inspector.get_columns("counted")
    assert (own["identity"]["always"], own["identity"]["start"]) == (True, 1)
    assert inspector.get_columns("orders")[0]["default"] == "nextval('orders__id_seq'::regclass)"

    assert inspector.get_pk_constraint("lines")["constrained_columns"] == ["order_id", "no"]
    [unique] = inspector.get_unique_constraints("lines")
    assert unique["column_names"] == ["sku", "no"]
    [key] = inspector.get_foreign_keys("orders")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["customer"], "customers", ["_id"])
    assert key["options"] == {"ondelete": "CASCADE"}
    [index] = inspector.get_indexes("orders")
    assert (index["column_names"], index["column_sorting"]) == (["placed", "customer"], {"placed": ("desc",)})
    [check] = inspector.get_check_constraints("customers")
    assert check["sqltext"] == "age > 0"
    assert inspector.get_table_comment("orders") == {"text": None}

    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine, views=True)
    assert set(metadata.tables) == {"counted", "customers", "lines", "orders", "rich"}


def test_alembic_finds_no_difference_between_what_is_and_what_was_made(engine):
    pytest.importorskip("alembic")
    import sqlalchemy
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    metadata = sqlalchemy.MetaData()
    parent = sqlalchemy.Table(
        "made",
        metadata,
        sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
        sqlalchemy.Column("name", sqlalchemy.String(30), nullable=False, index=True),
        sqlalchemy.Column("day", sqlalchemy.DateTime(timezone=True), server_default=sqlalchemy.text("now()")),
    )
    sqlalchemy.Table(
        "made_of",
        metadata,
        sqlalchemy.Column("id", sqlalchemy.BigInteger, primary_key=True),
        sqlalchemy.Column("made", sqlalchemy.Integer, sqlalchemy.ForeignKey("made.id")),
        sqlalchemy.Column("weight", sqlalchemy.Float),
        sqlalchemy.UniqueConstraint("made", "weight", name="made_weight"),
        sqlalchemy.CheckConstraint("weight > 0", name="made_heavy"),
    )
    metadata.create_all(engine)

    def differences(wanted):
        def ours(_object, name, kind, _reflected, _other):
            return kind != "table" or name.startswith("made")

        with engine.connect() as connection:
            options = {"compare_type": True, "compare_server_default": True, "include_object": ours}
            return compare_metadata(MigrationContext.configure(connection, opts=options), wanted)

    assert differences(metadata) == []
    parent.append_column(sqlalchemy.Column("extra", sqlalchemy.Integer))
    [(kind, _, table, column)] = differences(metadata)
    assert (kind, table, column.name) == ("add_column", "made", "extra")


def test_pandas(engine):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "a": [1, 2],
            "b": ["x", None],
            "c": [1.5, 2.5],
            "d": pandas.to_datetime(["2020-01-01", "2021-01-01"]),
            "e": [True, False],
        }
    )
    frame.to_sql("frames", engine, index=False)
    frame.to_sql("frames", engine, if_exists="append", index=False, method="multi")
    read = pandas.read_sql_table("frames", engine)
    assert list(read["a"]) == [1, 2, 1, 2]
    assert list(read["c"]) == [1.5, 2.5] * 2
    assert str(read["d"].dtype).startswith("datetime64")
    assert [len(chunk) for chunk in pandas.read_sql("SELECT * FROM frames", engine, chunksize=3)] == [3, 1]


def test_types_of_columns_without_sqlalchemy(server):
    """The numbers and texts that drivers get where these clients are not installed."""
    sql = Sql(server, database="plain")
    for statement in SCHEMA:
        sql.query(statement)
    indexes = "SELECT indkey, indoption, indclass FROM pg_index WHERE indrelid = 'orders'::regclass ORDER BY 1"
    assert sql.query(indexes) == [[b"1", b"0", b"3124"], [b"3 2", b"3 0", b"3128 1978"]]
    [[vector]] = sql.prepared("SELECT indkey FROM pg_index WHERE indexrelid = 'orders_placed'::regclass", [], binary=1)
    assert vector == bytes.fromhex("00000001 00000000 00000015 00000002 00000000 00000002 0003 00000002 0002")
    [[number]] = sql.prepared("SELECT 'pg_class'::regclass", [], binary=1)
    assert int.from_bytes(number, "big") == 1259
