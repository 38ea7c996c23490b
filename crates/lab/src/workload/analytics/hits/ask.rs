//! A question about the table, in the words of every protocol, and what it has to answer: all three come from one description.
//!
//! `COUNT(DISTINCT x)` is asked for in MongoDB's language as `$group` by the keys and `x`, then `$group` by the keys: sets within a group
//! may outgrow a document. So a question has at most one of these.

use super::data::{Column, Hit, Number, Text};
use crate::workload::analytics::Expected;
use nestor_model::{Document, Regex, Value, doc};
use std::collections::{BTreeMap, BTreeSet};

/// Table and collection.
pub const NAME: &str = "hits";

/// A condition; all of a question's hold.
#[derive(Clone, Debug)]
pub enum Where {
    Is(Number, i64),
    IsNot(Number, i64),
    Between(Number, i64, i64),
    OneOf(Number, [i64; 2]),
    Some(Text),
    Has(Text, &'static str),
    HasNot(Text, &'static str),
}

/// What rows are grouped by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Key {
    Column(Column),
    /// The same for all rows.
    One,
    /// A number less so much.
    Less(Number, i64),
    /// The second at which the minute of a time begins.
    Minute(Number),
    /// The minute of the hour, in seconds.
    MinuteOfHour(Number),
    /// The host of a URL.
    Host(Text),
    /// The text where both numbers are 0, else nothing.
    Where([Number; 2], Text),
}

/// What is computed of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Made {
    Count,
    Sum(Number),
    /// The sum of a number and so much.
    SumPlus(Number, i64),
    Average(Number),
    /// The average length of a text without its trailing dots.
    AverageLength(Text),
    Distinct(Column),
    Min(Column),
    Max(Column),
}

/// How the groups of an answer are ordered; equal ones by their keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// By what is computed at this place, the largest first.
    Largest(usize),
    /// By the keys.
    Keys,
}

/// A question that groups.
#[derive(Clone, Debug)]
pub struct Grouped {
    pub conditions: Vec<Where>,
    pub keys: Vec<Key>,
    pub made: Vec<Made>,
    /// Groups of more rows than this only; what is computed first is the count then.
    pub more_than: Option<i64>,
    pub order: Order,
    pub skip: usize,
    pub limit: usize,
}

/// A question for rows as they are.
#[derive(Clone, Debug)]
pub struct Plain {
    pub conditions: Vec<Where>,
    /// `None` for all columns.
    pub columns: Option<Vec<Column>>,
    pub order: Vec<Column>,
    pub limit: usize,
}

/// SQL for PostgreSQL, SQL for MySQL.
pub type Sql = (String, String);

impl Where {
    fn holds(&self, hit: &Hit) -> bool {
        match self {
            Self::Is(number, value) => hit.number(*number) == *value,
            Self::IsNot(number, value) => hit.number(*number) != *value,
            Self::Between(number, from, to) => (*from..=*to).contains(&hit.number(*number)),
            Self::OneOf(number, values) => values.contains(&hit.number(*number)),
            Self::Some(text) => !hit.text(*text).starts_with('.'),
            Self::Has(text, part) => hit.text(*text).contains(part),
            Self::HasNot(text, part) => !hit.text(*text).contains(part),
        }
    }

    fn sql(&self) -> String {
        let of = |number: &Number| Column::Number(*number).name();
        let text = |text: &Text| Column::Text(*text).name();
        match self {
            Self::Is(number, value) => format!("{} = {value}", of(number)),
            Self::IsNot(number, value) => format!("{} <> {value}", of(number)),
            Self::Between(number, from, to) => format!("{0} >= {from} AND {0} <= {to}", of(number)),
            Self::OneOf(number, [a, b]) => format!("{} IN ({a}, {b})", of(number)),
            Self::Some(of) => format!("{} <> '{}'", text(of), super::data::nothing(*of)),
            Self::Has(of, part) => format!("{} LIKE '%{part}%'", text(of)),
            Self::HasNot(of, part) => format!("{} NOT LIKE '%{part}%'", text(of)),
        }
    }

    fn mongo(&self) -> Document {
        let of = |number: &Number| Column::Number(*number).name();
        let text = |text: &Text| Column::Text(*text).name();
        let pattern = |part: &str| {
            Value::Regex(Box::new(Regex {
                pattern: part.replace('.', "\\.").as_str().into(),
                options: "".into(),
            }))
        };
        let (name, condition): (&str, Value) = match self {
            Self::Is(number, value) => (of(number), (*value).into()),
            Self::IsNot(number, value) => (of(number), doc! { "$ne": *value }.into()),
            Self::Between(number, from, to) => (of(number), doc! { "$gte": *from, "$lte": *to }.into()),
            Self::OneOf(number, values) => {
                let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
                (of(number), doc! { "$in": values }.into())
            }
            Self::Some(of) => (text(of), doc! { "$ne": super::data::nothing(*of).as_str() }.into()),
            Self::Has(of, part) => (text(of), pattern(part)),
            Self::HasNot(of, part) => (text(of), doc! { "$not": pattern(part) }.into()),
        };
        doc! { name: condition }
    }
}

fn value(hit: &Hit, column: Column) -> Expected {
    match column {
        Column::Number(number) => Expected::Int(hit.number(number)),
        Column::Text(text) => Expected::Text(hit.text(text)),
    }
}

fn path(column: Column) -> String {
    format!("${}", column.name())
}

impl Key {
    fn of(self, hit: &Hit) -> Expected {
        match self {
            Self::Column(column) => value(hit, column),
            Self::One => Expected::Int(1),
            Self::Less(number, less) => Expected::Int(hit.number(number) - less),
            Self::Minute(number) => Expected::Int(hit.number(number) / 60 * 60),
            Self::MinuteOfHour(number) => Expected::Int(hit.number(number) / 60 % 60 * 60),
            Self::Host(text) => {
                let url = hit.text(text);
                Expected::Text(url.split('/').nth(2).unwrap_or_default().to_owned())
            }
            Self::Where([a, b], text) => match (hit.number(a), hit.number(b)) {
                (0, 0) => Expected::Text(hit.text(text)),
                _ => Expected::Text(String::new()),
            },
        }
    }

    fn sql(self) -> Sql {
        let same = |sql: String| (sql.clone(), sql);
        let of = |number: Number| Column::Number(number).name();
        match self {
            Self::Column(column) => same(column.name().to_owned()),
            Self::One => same("1".to_owned()),
            Self::Less(number, less) => same(format!("{} - {less}", of(number))),
            Self::Minute(number) => same(format!("{0} - {0} % 60", of(number))),
            Self::MinuteOfHour(number) => same(format!("{0} % 3600 - {0} % 60", of(number))),
            Self::Host(text) => {
                let name = Column::Text(text).name();
                let pattern = "^https?://([^/]+)/.*";
                (
                    format!("regexp_replace({name}, '{pattern}', '\\1')"),
                    format!("regexp_replace({name}, '{pattern}', '\\\\1')"),
                )
            }
            Self::Where([a, b], text) => same(format!(
                "CASE WHEN {} = 0 AND {} = 0 THEN {} ELSE '' END",
                of(a),
                of(b),
                Column::Text(text).name()
            )),
        }
    }

    fn mongo(self) -> Value {
        let of = |number: Number| Value::from(path(Column::Number(number)).as_str());
        let rest = |number: Number, by: i64| Value::from(doc! { "$mod": vec![of(number), Value::from(by)] });
        let less = |a: Value, b: Value| Value::from(doc! { "$subtract": vec![a, b] });
        match self {
            Self::Column(column) => path(column).as_str().into(),
            Self::One => doc! { "$literal": 1i64 }.into(),
            Self::Less(number, by) => less(of(number), by.into()),
            Self::Minute(number) => less(of(number), rest(number, 60)),
            Self::MinuteOfHour(number) => less(rest(number, 3_600), rest(number, 60)),
            Self::Host(text) => {
                let text = Value::from(path(Column::Text(text)).as_str());
                let parts = doc! { "$split": vec![text, Value::from("/")] };
                doc! { "$arrayElemAt": vec![Value::from(parts), Value::from(2)] }.into()
            }
            Self::Where([a, b], text) => {
                let is_zero = |number| Value::from(doc! { "$eq": vec![of(number), Value::from(0)] });
                let both = doc! { "$and": vec![is_zero(a), is_zero(b)] };
                let then = Value::from(path(Column::Text(text)).as_str());
                doc! { "$cond": vec![Value::from(both), then, Value::from("")] }.into()
            }
        }
    }
}

impl Made {
    fn is_average(self) -> bool {
        matches!(self, Self::Average(_) | Self::AverageLength(_))
    }

    fn of(self, hits: &[&Hit]) -> Expected {
        let count = hits.len() as i64;
        let sum = |number: Number| hits.iter().map(|hit| hit.number(number)).sum::<i64>();
        match self {
            Self::Count => Expected::Int(count),
            Self::Sum(number) => Expected::Int(sum(number)),
            Self::SumPlus(number, more) => Expected::Int(sum(number) + more * count),
            Self::Average(number) => Expected::Average(sum(number), count),
            Self::AverageLength(text) => {
                let length = |hit: &&Hit| hit.text(text).trim_end_matches('.').len() as i64;
                Expected::Average(hits.iter().map(length).sum(), count)
            }
            Self::Distinct(Column::Number(number)) => {
                let all: BTreeSet<i64> = hits.iter().map(|hit| hit.number(number)).collect();
                Expected::Int(all.len() as i64)
            }
            Self::Distinct(column) => {
                let all: BTreeSet<Expected> = hits.iter().map(|hit| value(hit, column)).collect();
                Expected::Int(all.len() as i64)
            }
            Self::Min(column) => hits
                .iter()
                .map(|hit| value(hit, column))
                .min()
                .unwrap_or(Expected::Int(0)),
            Self::Max(column) => hits
                .iter()
                .map(|hit| value(hit, column))
                .max()
                .unwrap_or(Expected::Int(0)),
        }
    }

    fn sql(self) -> Sql {
        let same = |sql: String| (sql.clone(), sql);
        let of = |number: Number| Column::Number(number).name();
        match self {
            Self::Count => same("COUNT(*)".into()),
            Self::Sum(number) => same(format!("SUM({})", of(number))),
            Self::SumPlus(number, more) => same(format!("SUM({} + {more})", of(number))),
            Self::Average(number) => same(format!("AVG({})", of(number))),
            Self::AverageLength(text) => {
                let name = Column::Text(text).name();
                (
                    format!("AVG(length(rtrim({name}, '.')))"),
                    format!("AVG(length(trim(TRAILING '.' FROM {name})))"),
                )
            }
            Self::Distinct(column) => same(format!("COUNT(DISTINCT {})", column.name())),
            Self::Min(column) => same(format!("MIN({})", column.name())),
            Self::Max(column) => same(format!("MAX({})", column.name())),
        }
    }

    /// What is computed of rows: `a3` of the third; averages in parts, `s3` and `c3`, if they are to be put together later.
    fn mongo(self, at: usize, is_part: bool, group: &mut Document) {
        let name = format!("a{at}");
        let of = |number: Number| Value::from(path(Column::Number(number)).as_str());
        let average = |group: &mut Document, value: Value| {
            if is_part {
                group.push(format!("s{at}"), doc! { "$sum": value });
                group.push(format!("c{at}"), doc! { "$sum": 1 });
            } else {
                group.push(name.as_str(), doc! { "$avg": value });
            }
        };
        match self {
            Self::Count => group.push(name, doc! { "$sum": 1 }),
            Self::Sum(number) => group.push(name, doc! { "$sum": of(number) }),
            Self::SumPlus(number, more) => {
                let add = doc! { "$add": vec![of(number), Value::from(more)] };
                group.push(name, doc! { "$sum": add });
            }
            Self::Average(number) => average(group, of(number)),
            Self::AverageLength(text) => {
                let text = path(Column::Text(text));
                let trim = doc! { "$rtrim": doc! { "input": text.as_str(), "chars": "." } };
                average(group, doc! { "$strLenBytes": trim }.into());
            }
            // The second stage counts the groups of the first.
            Self::Distinct(_) => {}
            Self::Min(column) => group.push(name, doc! { "$min": path(column).as_str() }),
            Self::Max(column) => group.push(name, doc! { "$max": path(column).as_str() }),
        }
    }

    /// What is computed of parts.
    fn mongo_again(self, at: usize, group: &mut Document) {
        let name = format!("a{at}");
        match self {
            Self::Distinct(_) => group.push(name, doc! { "$sum": 1 }),
            Self::Average(_) | Self::AverageLength(_) => {
                for part in ["s", "c"] {
                    group.push(format!("{part}{at}"), doc! { "$sum": format!("${part}{at}").as_str() });
                }
            }
            Self::Min(_) => group.push(name.as_str(), doc! { "$min": format!("${name}").as_str() }),
            Self::Max(_) => group.push(name.as_str(), doc! { "$max": format!("${name}").as_str() }),
            _ => group.push(name.as_str(), doc! { "$sum": format!("${name}").as_str() }),
        }
    }
}

fn matching(conditions: &[Where]) -> Vec<Document> {
    match conditions {
        [] => Vec::new(),
        [one] => vec![doc! { "$match": one.mongo() }],
        all => {
            let all: Vec<Value> = all.iter().map(|condition| condition.mongo().into()).collect();
            vec![doc! { "$match": doc! { "$and": all } }]
        }
    }
}

fn sql_where(conditions: &[Where]) -> String {
    match conditions {
        [] => String::new(),
        all => format!(
            " WHERE {}",
            all.iter().map(Where::sql).collect::<Vec<_>>().join(" AND ")
        ),
    }
}

impl Grouped {
    /// What it answers.
    pub fn answer(&self, hits: &[Hit]) -> Vec<Vec<Expected>> {
        let mut groups: BTreeMap<Vec<Expected>, Vec<&Hit>> = BTreeMap::new();
        for hit in hits
            .iter()
            .filter(|hit| self.conditions.iter().all(|condition| condition.holds(hit)))
        {
            let key = self.keys.iter().map(|key| key.of(hit)).collect();
            groups.entry(key).or_default().push(hit);
        }
        let of_group = |(key, hits): (Vec<Expected>, Vec<&Hit>)| {
            let is_large = self.more_than.is_none_or(|least| hits.len() as i64 > least);
            is_large.then(|| (key, self.made.iter().map(|made| made.of(&hits)).collect::<Vec<_>>()))
        };
        let mut rows: Vec<(Vec<Expected>, Vec<Expected>)> = groups.into_iter().filter_map(of_group).collect();
        if let Order::Largest(at) = self.order {
            // Stable: equal ones stay in the order of their keys.
            rows.sort_by(|a, b| b.1[at].compare(&a.1[at]));
        }
        let rows = rows.into_iter().skip(self.skip).take(self.limit);
        rows.map(|(key, made)| [key, made].concat()).collect()
    }

    /// In SQL.
    pub fn sql(&self) -> Sql {
        let write = |which: &dyn Fn(Sql) -> String| {
            let keys: Vec<String> = self.keys.iter().map(|key| which(key.sql())).collect();
            let made: Vec<String> = self.made.iter().map(|made| which(made.sql())).collect();
            let list = |name: &str, all: &[String]| -> Vec<String> {
                (0..)
                    .zip(all)
                    .map(|(at, what)| format!("{what} AS {name}{at}"))
                    .collect()
            };
            let mut sql = format!(
                "SELECT {} FROM {NAME}{}",
                [list("k", &keys), list("a", &made)].concat().join(", "),
                sql_where(&self.conditions)
            );
            if keys.is_empty() {
                return sql;
            }
            let places: Vec<String> = (1..=keys.len()).map(|place| place.to_string()).collect();
            sql += &format!(" GROUP BY {}", places.join(", "));
            if let Some(least) = self.more_than {
                sql += &format!(" HAVING COUNT(*) > {least}");
            }
            let by_keys = places.join(", ");
            sql += &match self.order {
                Order::Largest(at) => format!(" ORDER BY {} DESC, {by_keys}", keys.len() + at + 1),
                Order::Keys => format!(" ORDER BY {by_keys}"),
            };
            sql += &format!(" LIMIT {}", self.limit);
            if self.skip > 0 {
                sql += &format!(" OFFSET {}", self.skip);
            }
            sql
        };
        (write(&|sql| sql.0), write(&|sql| sql.1))
    }

    /// As a pipeline.
    pub fn mongo(&self) -> Vec<Document> {
        let distinct = self.made.iter().find_map(|made| match made {
            Made::Distinct(column) => Some(*column),
            _ => None,
        });
        let mut stages = matching(&self.conditions);
        let mut id = Document::default();
        for (at, key) in self.keys.iter().enumerate() {
            id.push(format!("k{at}"), key.mongo());
        }
        let mut again = Document::default();
        for at in 0..self.keys.len() {
            again.push(format!("k{at}"), format!("$_id.k{at}").as_str());
        }
        if let Some(column) = distinct {
            id.push("d", path(column).as_str());
        }
        // One key needs no document around it.
        let id = match (self.keys.as_slice(), distinct) {
            ([], None) => Value::Null,
            ([key], None) => key.mongo(),
            _ => id.into(),
        };
        let mut group = doc! { "_id": id };
        for (at, made) in self.made.iter().enumerate() {
            made.mongo(at, distinct.is_some(), &mut group);
        }
        stages.push(doc! { "$group": group });
        if distinct.is_some() {
            let id = match self.keys.len() {
                0 => Value::Null,
                1 => "$_id.k0".into(),
                _ => again.into(),
            };
            let mut group = doc! { "_id": id };
            for (at, made) in self.made.iter().enumerate() {
                made.mongo_again(at, &mut group);
            }
            stages.push(doc! { "$group": group });
        }
        if let Some(least) = self.more_than {
            stages.push(doc! { "$match": doc! { "a0": doc! { "$gt": least } } });
        }
        let key = |at: usize| match self.keys.len() {
            1 => "_id".to_owned(),
            _ => format!("_id.k{at}"),
        };
        if !self.keys.is_empty() {
            let mut sort = Document::default();
            if let Order::Largest(at) = self.order {
                sort.push(format!("a{at}"), -1);
            }
            (0..self.keys.len()).for_each(|at| sort.push(key(at), 1));
            stages.push(doc! { "$sort": sort });
            if self.skip > 0 {
                stages.push(doc! { "$skip": self.skip as i64 });
            }
            stages.push(doc! { "$limit": self.limit as i64 });
        }
        // Averages that are put together, and several keys, have to be made columns; else the group is the row.
        let has_parts = distinct.is_some() && self.made.iter().any(|made| made.is_average());
        match (self.keys.len(), has_parts) {
            (0, false) => stages.push(doc! { "$project": doc! { "_id": 0 } }),
            (1, false) => {}
            _ => stages.push(doc! { "$project": self.columns(distinct.is_some(), &key) }),
        }
        stages
    }

    /// The columns of the answer, from the groups.
    fn columns(&self, has_parts: bool, key: &dyn Fn(usize) -> String) -> Document {
        let mut project = doc! { "_id": 0 };
        for at in 0..self.keys.len() {
            project.push(format!("k{at}"), format!("${}", key(at)).as_str());
        }
        for (at, made) in self.made.iter().enumerate() {
            let parts = vec![
                Value::from(format!("$s{at}").as_str()),
                Value::from(format!("$c{at}").as_str()),
            ];
            match made.is_average() && has_parts {
                true => project.push(format!("r{at}"), doc! { "$divide": parts }),
                false => project.push(format!("r{at}"), format!("$a{at}").as_str()),
            }
        }
        project
    }
}

impl Plain {
    /// What it answers.
    pub fn answer(&self, hits: &[Hit], all: &dyn Fn(u64, &Hit) -> Vec<Expected>) -> Vec<Vec<Expected>> {
        let holds = |(_, hit): &(u64, &Hit)| self.conditions.iter().all(|condition| condition.holds(hit));
        let mut found: Vec<(u64, &Hit)> = (0..).zip(hits).filter(holds).collect();
        found.sort_by_cached_key(|(_, hit)| self.order.iter().map(|column| value(hit, *column)).collect::<Vec<_>>());
        let row = |(id, hit): (u64, &Hit)| match &self.columns {
            Some(columns) => columns.iter().map(|column| value(hit, *column)).collect(),
            None => all(id, hit),
        };
        found.into_iter().take(self.limit).map(row).collect()
    }

    /// In SQL; rows that are equal in what they are ordered by come in the order of their numbers.
    pub fn sql(&self) -> Sql {
        let list = |columns: &[Column]| {
            columns
                .iter()
                .map(|column| column.name())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let columns = self.columns.as_deref().map_or("*".to_owned(), list);
        let mut order: Vec<&str> = self.order.iter().map(|column| column.name()).collect();
        order.push("id");
        let sql = match self.order.as_slice() {
            [] => format!(
                "SELECT {columns} FROM {NAME}{} LIMIT {}",
                sql_where(&self.conditions),
                self.limit
            ),
            _ => format!(
                "SELECT {columns} FROM {NAME}{} ORDER BY {} LIMIT {}",
                sql_where(&self.conditions),
                order.join(", "),
                self.limit
            ),
        };
        (sql.clone(), sql)
    }

    /// As a pipeline.
    pub fn mongo(&self) -> Vec<Document> {
        let mut stages = matching(&self.conditions);
        if !self.order.is_empty() {
            let mut sort = Document::default();
            self.order.iter().for_each(|column| sort.push(column.name(), 1));
            sort.push("_id", 1);
            stages.push(doc! { "$sort": sort });
        }
        stages.push(doc! { "$limit": self.limit as i64 });
        if let Some(columns) = &self.columns {
            let mut project = doc! { "_id": 0 };
            columns.iter().for_each(|column| project.push(column.name(), 1));
            stages.push(doc! { "$project": project });
        }
        stages
    }
}
