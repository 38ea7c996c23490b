"""TPC-H's orders as documents that have their lines, and the lines as a view of these."""

import datetime
import decimal
import itertools

import bson

import rows

BATCH = 20_000


def typed(declared, text):
    """A value of `rows.py` as a document has one of the declared type."""
    kind = declared.split()[1]
    if kind == "int":
        return int(text)
    if kind.startswith("numeric"):
        return bson.Decimal128(decimal.Decimal(str(text)))
    if kind == "date":
        return datetime.datetime.fromisoformat(text)
    return text


def declared(table):
    """The declarations of the columns of a table of `rows.py`."""
    parts = rows.TABLES[table].replace("numeric(15,2)", "numeric").split(",")
    return [part.strip() for part in parts if part.strip().startswith(table[0] + "_") and not part.endswith(")")]


def table(connection, documents, name, orders):
    """Makes the table `name` of orders that have their lines, and the view `lineitem`: `connection` speaks SQL, `documents` is the same database by commands."""
    of_order, of_line = declared("orders"), declared("lineitem")
    connection.execute(f"create table {name} ({rows.TABLES['orders']}, o_lines jsonb not null)")
    while batch := list(itertools.islice(orders, BATCH)):
        made = []
        for order, lines in batch:
            fields = {column.split()[0]: typed(column, value) for column, value in zip(of_order, order)}
            # The key of the order is that of the document.
            fields = {"_id": fields.pop("o_orderkey"), **fields}
            fields["o_lines"] = [{column.split()[0]: typed(column, value) for column, value in list(zip(of_line, line))[1:]} for line in lines]
            made.append(fields)
        documents[name].insert_many(made, ordered=False)
    columns = ", ".join(column.replace(" not null", "").replace(" primary key", "") for column in of_line[1:])
    connection.execute(f"create view lineitem as select o.o_orderkey as l_orderkey, l.* from {name} o, jsonb_to_recordset(o.o_lines) as l ({columns})")


def indexes(connection, documents):
    """The indexes of TPC-H's flat orders and lines, on the documents of the table `orders`."""
    for index in rows.INDEXES:
        if index.startswith("orders"):
            connection.execute(f"create index on {index}")
        if index.startswith("lineitem"):
            columns = index[index.index("(") + 1 : -1].split(", ")
            documents["orders"].create_index([(f"o_lines.{column}", 1) for column in columns])
