"""MongoDB's connector for Spark against the server: every partitioner, each way of writing, and Parquet that is read in place.

`make spark` installs what this needs. NESTOR_BIN is the server, SPARK_JAR the connector with its dependencies.
"""

import datetime
import decimal
import os
import time

import harness
import psycopg
import pymongo
import pytest
from pgclient import port_of
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

READ = "com.mongodb.spark.sql.connector.read.partitioner."
ROWS = 20_000
#: Some 10 MB, so that partitions of 1 MB are several.
PAD = "x" * 500
SCHEMA = "_id int, name string, x double, at timestamp, price decimal(10,2), l array<int>, s struct<city:string,zip:int>, pad string"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server's URI, its port for SQL, and the directory of its files."""
    files = tmp_path_factory.mktemp("files")
    with harness.Server(None, "--sql-port", 0, "--sql-files", files) as server:
        yield server.uri, port_of(server), files
        server.stop()


@pytest.fixture(scope="module")
def spark(server):
    uri, _, _ = server
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", os.environ["SPARK_JAR"])
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.mongodb.read.connection.uri", uri)
        .config("spark.mongodb.write.connection.uri", uri)
        .config("spark.mongodb.read.database", "shop")
        .config("spark.mongodb.write.database", "shop")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def row(n):
    when = datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=n)
    return (n, f"name {n}", n / 2.0, when, decimal.Decimal(n) / 4, [n, n + 1], {"city": "Köln", "zip": n}, PAD)


@pytest.fixture(scope="module")
def written(spark):
    spark.createDataFrame([row(n) for n in range(ROWS)], SCHEMA).write.format("mongodb").mode("overwrite").option("collection", "c").save()
    return spark


def read(spark, collection="c", **options):
    reader = spark.read.format("mongodb").option("collection", collection)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), value)
    return reader.load()


@pytest.mark.parametrize(
    ("partitioner", "options", "several"),
    [
        ("SamplePartitioner", {"partition.size": "1"}, True),
        ("AutoBucketPartitioner", {"chunkSize": "1"}, True),
        ("PaginateBySizePartitioner", {"partition.size": "1"}, True),
        ("PaginateIntoPartitionsPartitioner", {"max.number.of.partitions": "4"}, True),
        ("SinglePartitionPartitioner", {}, False),
        # Of a collection that is not sharded it makes one.
        ("ShardedPartitioner", {}, False),
    ],
)
def test_partitioners(written, partitioner, options, several):
    given = {f"partitioner__options__{name}": value for name, value in options.items()}
    found = read(written, partitioner=READ + partitioner, **given)
    partitions = found.rdd.getNumPartitions()
    assert (partitions > 1) == several, partitions
    # Every document is in one partition.
    assert found.count() == ROWS and found.select("_id").distinct().count() == ROWS
    assert found.agg(F.sum("s.zip"), F.max("x")).first() == Row(ROWS * (ROWS - 1) // 2, (ROWS - 1) / 2)
    assert found.filter("x > 9000 AND name LIKE 'name 19%'").count() == 1000


def test_types(written):
    found = read(written)
    kinds = {field.name: field.dataType.simpleString() for field in found.schema}
    assert kinds["at"] == "timestamp" and kinds["l"] == "array<int>" and kinds["s"] == "struct<city:string,zip:int>"
    one = found.filter("_id = 7").first()
    assert (one.x, one.price, one.l, one.s.zip) == (3.5, decimal.Decimal("1.75"), [7, 8], 7)
    assert one["at"] == datetime.datetime(2024, 1, 1, 0, 0, 7)


def test_ways_of_writing(server, written):
    uri, _, _ = server
    few = [(1, "one"), (2, "two"), (3, "three")]
    frame = lambda rows: written.createDataFrame(rows, "_id int, name string")
    save = lambda rows, mode, **options: frame(rows).write.format("mongodb").mode(mode).options(collection="w", **options).save()
    save(few, "overwrite")
    with pymongo.MongoClient(uri) as client:
        collection = client.shop.w
        collection.update_many({}, {"$set": {"kept": True}})
        save([(1, "uno")], "append", operationType="update")
        assert collection.find_one({"_id": 1}) == {"_id": 1, "name": "uno", "kept": True}
        save([(2, "dos")], "append", operationType="replace")
        assert collection.find_one({"_id": 2}) == {"_id": 2, "name": "dos"}
        save([(4, "four")], "append", operationType="insert")
        named = written.createDataFrame([("three", 33), ("nobody", 0)], "name string, n int").write.format("mongodb").mode("append")
        named.options(collection="w", operationType="update", idFieldList="name", upsertDocument="false").save()
        assert collection.count_documents({}) == 4 and collection.find_one({"name": "three"})["n"] == 33
        save([(5, "five")], "overwrite")
        assert list(collection.find()) == [{"_id": 5, "name": "five"}]


def test_pipelines_run_on_the_server(written):
    pipeline = "[{'$match': {'x': {'$gte': 5}}}, {'$group': {'_id': {'$mod': ['$_id', 3]}, 'n': {'$sum': 1}}}]"
    found = read(written, **{"aggregation__pipeline": pipeline, "aggregation__allowDiskUse": "true"})
    assert sum(row.n for row in found.collect()) == ROWS - 10


def test_changes_are_streamed(server, written, tmp_path):
    uri, _, _ = server
    schema = "_id int, name string"
    stream = (
        written.readStream.format("mongodb").option("collection", "s").option("change.stream.publish.full.document.only", "true").schema(schema).load()
    )
    query = stream.writeStream.format("memory").queryName("seen").outputMode("append").option("checkpointLocation", str(tmp_path)).start()
    try:
        with pymongo.MongoClient(uri) as client:
            deadline = time.monotonic() + 120
            names, number = [], 0
            # When the stream has begun is not told: what is written before is not its matter.
            while not names and time.monotonic() < deadline:
                number += 1
                client.shop.s.insert_one({"_id": number, "name": f"n{number}"})
                time.sleep(0.5)
                names = [row.name for row in written.sql("SELECT name FROM seen ORDER BY _id").collect()]
            assert names and set(names) <= {f"n{n}" for n in range(1, number + 1)}
    finally:
        query.stop()


def test_parquet_is_read_in_place(server, written):
    _, sql, files = server
    with psycopg.connect(f"host=127.0.0.1 port={sql} user=tester dbname=shop", autocommit=True) as connection:
        assert connection.execute("COPY c TO 'c.parquet'").rowcount == ROWS
        found = written.read.parquet(str(files / "c.parquet"))
        assert found.count() == ROWS
        assert found.agg(F.sum("s.zip"), F.max("price")).first() == Row(ROWS * (ROWS - 1) // 2, decimal.Decimal(ROWS - 1) / 4)
        one = found.filter("_id = 7").first()
        assert (one.l, one.s.city, one["at"]) == ([7, 8], "Köln", datetime.datetime(2024, 1, 1, 0, 0, 7))
        # And the other way: several files of Spark's are one table here.
        found.filter("_id < 100").repartition(3).write.mode("overwrite").parquet(str(files / "spark"))
        read = "SELECT count(*), sum(_id), max(at) FROM 'spark/*.parquet'"
        # Spark writes moments as Impala did, without saying that they are UTC.
        last = datetime.datetime(2024, 1, 1, 0, 1, 39)
        assert connection.execute(read).fetchone() == (100, 4950, last)
