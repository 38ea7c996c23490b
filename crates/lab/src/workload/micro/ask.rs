//! What the microbenchmarks ask, in the words of every protocol.

use super::model::{C_BYTES, PAD_BYTES};
use crate::statement::{Kind, Role, Statement, aggregate, find, mark, marks, placeholders, text_mark};
use nestor_model::{Document, Value, doc};

/// By which index rows are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// `id`.
    Primary,
    /// `k`.
    Secondary,
}

/// Which columns are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Columns {
    /// Only that of the index.
    Covered,
    /// `id` and `c`.
    NotCovered,
    /// All four.
    All,
}

/// What is made of the `c` (or `k`) of a range of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Summary {
    /// The texts as they come.
    Simple,
    /// In order.
    Order,
    /// Each once, in order.
    Distinct,
    /// How many there are.
    Count,
    /// The sum of `k`.
    Sum,
}

/// One statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// So many rows by a list of keys.
    Points(By, Columns, usize),
    /// Rows whose key lies in a range of so many.
    Range(By, Columns, u64),
    /// A summary of a range of so many ids.
    Summarize(Summary, u64),
    /// All rows are looked at and none returned.
    Scan,
    /// `k = k + 1` of one row.
    UpdateK,
    /// `k = k + 1` of so many rows by a list of ids.
    UpdateKs(usize),
    /// A new `c` for one row.
    UpdateC,
    /// One row is deleted.
    Delete,
    /// So many rows are inserted.
    Insert(usize),
}

impl Ask {
    /// True for what changes rows.
    pub fn writes(self) -> bool {
        !matches!(
            self,
            Self::Points(..) | Self::Range(..) | Self::Summarize(..) | Self::Scan
        )
    }

    /// The statement on `table`.
    pub fn statement(self, table: &str) -> Statement {
        match self {
            Self::Points(by, columns, count) => points(table, by, columns, count),
            Self::Range(by, columns, _) => {
                let field = by.field();
                let filter = doc! { field: between() };
                let sql = format!(
                    "SELECT {} FROM {table} WHERE {} BETWEEN $1 AND $2",
                    columns.sql(by),
                    by.column()
                );
                let kinds = vec![Kind::Int, Kind::Int];
                Statement::new(
                    "a range",
                    Role::Reads,
                    kinds,
                    find(table, filter, columns.projection(by)),
                    sql,
                )
            }
            Self::Summarize(summary, _) => summarize(table, summary),
            Self::Scan => {
                let length = doc! { "$lt": vec![Value::from(doc! { "$strLenBytes": "$c" }), Value::from(0)] };
                let filter = doc! { "$expr": length };
                let sql = format!("SELECT id FROM {table} WHERE LENGTH(c) < 0");
                Statement::new(
                    "a scan",
                    Role::Reads,
                    vec![],
                    find(table, filter, doc! { "_id": 1 }),
                    sql,
                )
            }
            Self::UpdateK => {
                let sql = format!("UPDATE {table} SET k = k + 1 WHERE id = $1");
                let mongo = update(table, doc! { "_id": mark(0) }, add_one(), false);
                Statement::new("an update of k", Role::Writes, vec![Kind::Int], mongo, sql)
            }
            Self::UpdateKs(count) => {
                let list = placeholders(0, count);
                let sql = format!("UPDATE {table} SET k = k + 1 WHERE id IN ({list})");
                let filter = doc! { "_id": doc! { "$in": marks(0, count) } };
                let mongo = update(table, filter, add_one(), true);
                Statement::new("an update of a list", Role::Writes, vec![Kind::Int; count], mongo, sql)
            }
            Self::UpdateC => {
                let sql = format!("UPDATE {table} SET c = $1 WHERE id = $2");
                let set = doc! { "$set": doc! { "c": text_mark(0, C_BYTES) } };
                let mongo = update(table, doc! { "_id": mark(1) }, set, false);
                Statement::new(
                    "an update of c",
                    Role::Writes,
                    vec![Kind::Text(C_BYTES), Kind::Int],
                    mongo,
                    sql,
                )
            }
            Self::Delete => {
                let delete = doc! { "q": doc! { "_id": mark(0) }, "limit": 1 };
                let mongo = doc! { "delete": table, "deletes": vec![Value::from(delete)] };
                let sql = format!("DELETE FROM {table} WHERE id = $1");
                Statement::new("a delete", Role::Writes, vec![Kind::Int], mongo, sql)
            }
            Self::Insert(count) => insert(table, count),
        }
    }
}

impl By {
    fn column(self) -> &'static str {
        match self {
            Self::Primary => "id",
            Self::Secondary => "k",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Primary => "_id",
            Self::Secondary => "k",
        }
    }
}

impl Columns {
    fn sql(self, by: By) -> &'static str {
        match self {
            Self::Covered => by.column(),
            Self::NotCovered => "id, c",
            Self::All => "id, k, c, pad",
        }
    }

    fn projection(self, by: By) -> Document {
        match (self, by) {
            (Self::Covered, By::Primary) => doc! { "_id": 1 },
            (Self::Covered, By::Secondary) => doc! { "_id": 0, "k": 1 },
            (Self::NotCovered, _) => doc! { "_id": 1, "c": 1 },
            (Self::All, _) => doc! {},
        }
    }
}

fn between() -> Document {
    doc! { "$gte": mark(0), "$lte": mark(1) }
}

fn points(table: &str, by: By, columns: Columns, count: usize) -> Statement {
    let (column, field) = (by.column(), by.field());
    let (condition, filter) = match count {
        1 => (format!("{column} = $1"), doc! { field: mark(0) }),
        _ => {
            let list = placeholders(0, count);
            (
                format!("{column} IN ({list})"),
                doc! { field: doc! { "$in": marks(0, count) } },
            )
        }
    };
    let sql = format!("SELECT {} FROM {table} WHERE {condition}", columns.sql(by));
    let mongo = find(table, filter, columns.projection(by));
    Statement::new("points", Role::Reads, vec![Kind::Int; count], mongo, sql)
}

fn summarize(table: &str, summary: Summary) -> Statement {
    let filter = doc! { "_id": between() };
    let only_c = doc! { "_id": 0, "c": 1 };
    let matching = doc! { "$match": filter.clone() };
    let group = |key: Value, rest: Document| {
        let mut group = doc! { "_id": key };
        for (name, value) in rest.iter() {
            group.push(name, value.to_value());
        }
        doc! { "$group": group }
    };
    let (columns, end, mongo) = match summary {
        Summary::Simple => ("c", "", find(table, filter, only_c)),
        Summary::Order => {
            let mut command = find(table, filter, only_c);
            command.push("sort", doc! { "c": 1 });
            ("c", " ORDER BY c", command)
        }
        Summary::Distinct => {
            let stages = vec![
                matching,
                group("$c".into(), doc! {}),
                doc! { "$sort": doc! { "_id": 1 } },
            ];
            ("DISTINCT c", " ORDER BY c", aggregate(table, stages))
        }
        Summary::Count => {
            let group = group(Value::Null, doc! { "n": doc! { "$sum": 1 } });
            let stages = vec![matching, group, doc! { "$project": doc! { "_id": 0, "n": 1 } }];
            ("COUNT(c)", "", aggregate(table, stages))
        }
        Summary::Sum => {
            let group = group(Value::Null, doc! { "n": doc! { "$sum": "$k" } });
            let stages = vec![matching, group, doc! { "$project": doc! { "_id": 0, "n": 1 } }];
            ("SUM(k)", "", aggregate(table, stages))
        }
    };
    let sql = format!("SELECT {columns} FROM {table} WHERE id BETWEEN $1 AND $2{end}");
    Statement::new(
        "a summary of a range",
        Role::Reads,
        vec![Kind::Int, Kind::Int],
        mongo,
        sql,
    )
}

fn add_one() -> Document {
    doc! { "$inc": doc! { "k": 1 } }
}

fn update(table: &str, filter: Document, change: Document, is_multi: bool) -> Document {
    let mut update = doc! { "q": filter, "u": change };
    if is_multi {
        update.push("multi", true);
    }
    doc! { "update": table, "updates": vec![Value::from(update)] }
}

fn insert(table: &str, count: usize) -> Statement {
    let kinds = [Kind::Int, Kind::Int, Kind::Text(C_BYTES), Kind::Text(PAD_BYTES)];
    let rows = (0..count).map(|row| format!("({})", placeholders(row * kinds.len(), kinds.len())));
    let rows: Vec<String> = rows.collect();
    let documents = (0..count).map(|row| {
        let first = row * kinds.len();
        Value::from(doc! {
            "_id": mark(first),
            "k": mark(first + 1),
            "c": text_mark(first + 2, C_BYTES),
            "pad": text_mark(first + 3, PAD_BYTES),
        })
    });
    let mongo = doc! { "insert": table, "documents": documents.collect::<Vec<_>>() };
    let sql = format!("INSERT INTO {table} (id, k, c, pad) VALUES {}", rows.join(", "));
    Statement::new("an insert", Role::Writes, kinds.repeat(count), mongo, sql)
}
