//! Rows of the Insert Benchmark, which are all functions of their key, and its statements.

use crate::random::mix;
use crate::rows::Arguments;
use crate::statement::{Kind, Role, Statement, find, mark, placeholders, text_mark};
use nestor_model::{Value, doc};

/// The table of a user, from 0.
pub fn name(user: usize) -> String {
    format!("pi{}", user + 1)
}

/// Bytes of `data`.
pub const DATA_BYTES: usize = 100;
/// Cash registers.
const REGISTERS: u64 = 1_000;
/// Customers.
const CUSTOMERS: u64 = 100_000;
/// Products.
const PRODUCTS: u64 = 10_000;
/// Prices are below this.
const PRICES: u64 = 500;

/// A secondary index, whose ranges cover the queries that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// `price, customerid`
    MarketSegment,
    /// `cashregisterid, price, customerid`
    RegisterSegment,
    /// `price, dateandtime, customerid`
    Pdc,
}

impl Index {
    /// All three.
    pub const ALL: [Self; 3] = [Self::MarketSegment, Self::RegisterSegment, Self::Pdc];

    /// Its columns, in order.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::MarketSegment => &["price", "customerid"],
            Self::RegisterSegment => &["cashregisterid", "price", "customerid"],
            Self::Pdc => &["price", "dateandtime", "customerid"],
        }
    }

    /// The statement that makes it.
    pub fn create(self, table: &str) -> Statement {
        let name = self.columns().join("_");
        let mut key = nestor_model::Document::default();
        for column in self.columns() {
            key.push(*column, 1);
        }
        let index = doc! { "key": key, "name": name.as_str() };
        let mongo = doc! { "createIndexes": table, "indexes": vec![Value::from(index)] };
        let sql = format!("CREATE INDEX {table}_{name} ON {table} ({})", self.columns().join(", "));
        Statement::new("an index", Role::Writes, vec![], mongo, sql)
    }

    /// The ten entries from a place on: `$1` is the first column, or the register, and `$2` the price there.
    pub fn query(self, table: &str) -> Statement {
        let columns = self.columns();
        let mut projection = doc! { "_id": 0 };
        let mut sort = nestor_model::Document::default();
        for column in columns {
            projection.push(*column, 1);
            sort.push(*column, 1);
        }
        let (filter, condition, kinds) = match self {
            Self::RegisterSegment => (
                doc! { "cashregisterid": mark(0), "price": doc! { "$gte": mark(1) } },
                "cashregisterid = $1 AND price >= $2",
                vec![Kind::Int, Kind::Int],
            ),
            _ => (
                doc! { "price": doc! { "$gte": mark(0) } },
                "price >= $1",
                vec![Kind::Int],
            ),
        };
        let mut mongo = find(table, filter, projection);
        mongo.push("sort", sort);
        mongo.push("limit", QUERY_ROWS as i64);
        let list = columns.join(", ");
        let sql = format!("SELECT {list} FROM {table} WHERE {condition} ORDER BY {list} LIMIT {QUERY_ROWS}");
        Statement::new("a query by an index", Role::Reads, kinds, mongo, sql)
    }
}

/// Rows of a query.
pub const QUERY_ROWS: u64 = 10;

/// A row without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When.
    pub dateandtime: i64,
    /// Where.
    pub cashregisterid: i64,
    /// Who.
    pub customerid: i64,
    /// What.
    pub productid: i64,
    /// For how much.
    pub price: i64,
}

impl Row {
    /// That of key `id`.
    pub fn of(seed: u64, id: u64) -> Self {
        let random = mix(seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let more = mix(random);
        Self {
            // About ten rows a second.
            dateandtime: 1_000_000_000 + (id / 10) as i64,
            cashregisterid: (random % REGISTERS) as i64,
            customerid: (random >> 20) as i64 % CUSTOMERS as i64,
            productid: (more % PRODUCTS) as i64,
            price: (more >> 32) as i64 % PRICES as i64,
        }
    }

    /// The value of a column.
    pub fn column(&self, name: &str) -> i64 {
        match name {
            "dateandtime" => self.dateandtime,
            "cashregisterid" => self.cashregisterid,
            "customerid" => self.customerid,
            "productid" => self.productid,
            _ => self.price,
        }
    }
}

/// Appends the `data` of row `id`.
pub fn data(seed: u64, id: u64, out: &mut Vec<u8>) {
    let mut state = mix(!seed ^ id);
    let end = out.len() + DATA_BYTES;
    while out.len() < end {
        state = mix(state);
        let word = ((state & 0x0F0F_0F0F_0F0F_0F0F) + 0x6161_6161_6161_6161).to_le_bytes();
        out.extend_from_slice(&word[..8.min(end - out.len())]);
    }
}

/// Pushes the parameters of row `id`.
pub fn push(seed: u64, id: u64, arguments: &mut Arguments) {
    let row = Row::of(seed, id);
    arguments.int(id as i64).int(row.dateandtime).int(row.cashregisterid);
    arguments.int(row.customerid).int(row.productid).int(row.price);
    arguments.text(|out| data(seed, id, out));
}

/// SQL's table.
pub fn create(table: &str) -> String {
    format!(
        "CREATE TABLE {table} (transactionid BIGINT NOT NULL PRIMARY KEY, dateandtime INTEGER NOT NULL, cashregisterid INTEGER NOT NULL, \
         customerid INTEGER NOT NULL, productid INTEGER NOT NULL, price INTEGER NOT NULL, data VARCHAR(4000) NOT NULL)"
    )
}

/// Inserts `count` rows.
pub fn insert(table: &str, count: usize) -> Statement {
    let kinds = [
        Kind::Long,
        Kind::Int,
        Kind::Int,
        Kind::Int,
        Kind::Int,
        Kind::Int,
        Kind::Text(DATA_BYTES),
    ];
    let width = kinds.len();
    let rows: Vec<String> = (0..count)
        .map(|row| format!("({})", placeholders(row * width, width)))
        .collect();
    let document = |row: usize| {
        let at = row * width;
        Value::from(doc! {
            "_id": mark(at),
            "dateandtime": mark(at + 1),
            "cashregisterid": mark(at + 2),
            "customerid": mark(at + 3),
            "productid": mark(at + 4),
            "price": mark(at + 5),
            "data": text_mark(at + 6, DATA_BYTES),
        })
    };
    let mongo = doc! { "insert": table, "documents": (0..count).map(document).collect::<Vec<_>>() };
    let columns = "transactionid, dateandtime, cashregisterid, customerid, productid, price, data";
    let sql = format!("INSERT INTO {table} ({columns}) VALUES {}", rows.join(", "));
    Statement::new("inserts", Role::Writes, kinds.repeat(count), mongo, sql)
}

/// Deletes the rows of a range of keys, both ends included: the oldest.
pub fn delete(table: &str) -> Statement {
    let q = doc! { "_id": doc! { "$gte": mark(0), "$lte": mark(1) } };
    let mongo = doc! { "delete": table, "deletes": vec![Value::from(doc! { "q": q, "limit": 0 })] };
    let sql = format!("DELETE FROM {table} WHERE transactionid >= $1 AND transactionid <= $2");
    Statement::new("deletes", Role::Writes, vec![Kind::Long, Kind::Long], mongo, sql)
}

/// One row by its key.
pub fn point(table: &str) -> Statement {
    let mongo = find(table, doc! { "_id": mark(0) }, doc! {});
    let columns = "transactionid, dateandtime, cashregisterid, customerid, productid, price, data";
    let sql = format!("SELECT {columns} FROM {table} WHERE transactionid = $1");
    Statement::new("a query by key", Role::Reads, vec![Kind::Long], mongo, sql)
}
