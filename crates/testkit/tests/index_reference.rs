//! Every query finds the same by every index: random documents with arrays in odd places and random filters, each
//! run as a scan of the collection, as the planner likes, and with a hint on each index that holds all documents.
//! Some indexes are there before the documents, some are built over them; documents are replaced and deleted in
//! between. The same under collations, for indexes that have that of the query, another one or none.

#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_exec::{Batch, Interrupt, Step, find};
use nestor_model::{Array, Decimal128, DocRef, Document, Timestamp, Value, ValueRef, doc};
use nestor_planner::FindQuery;
use nestor_planner::find::Wanted;
use nestor_planner::shape::Written;
use nestor_query::matcher::MatchExpr;
use nestor_query::sort::SortSpec;
use nestor_query::{OpContext, Scope};
use nestor_storage::View;
use nestor_testkit::random::Random;
use std::sync::Arc;

impl Database {
    /// `_id` and `s` of what a find gives, in its order, or the reply that refuses it.
    fn find(
        &mut self,
        filter: &Document,
        sort: &Document,
        hint: Option<Value>,
        collation: &Option<Document>,
    ) -> Result<Vec<String>, String> {
        let mut command = doc! { "find": "c", "filter": filter.clone(), "sort": sort.clone(), "batchSize": 10_000 };
        command.push("projection", doc! { "s": 1 });
        if let Some(hint) = hint {
            command.push("hint", hint);
        }
        command.push("collation", collation.clone());
        let reply = self.run(command);
        let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
            return Err(format!("{reply:?}"));
        };
        // A covered plan gives the fields in the order of the index.
        let shown = |item: ValueRef<'_>| match item.as_document() {
            Some(doc) => format!("{:?} {:?}", doc.get("_id"), doc.get("s")),
            None => format!("{item:?}"),
        };
        match cursor.get("firstBatch") {
            Some(ValueRef::Array(batch)) => Ok(batch.iter().map(shown).collect()),
            other => panic!("{other:?} is no batch"),
        }
    }

    /// The `_id`s that a cursor gives in batches of `size`; `between` them something happens to the database.
    fn pages(&mut self, mut command: Document, size: i32, between: &mut dyn FnMut(&mut Self)) -> Vec<i32> {
        command.push("batchSize", size);
        let mut reply = self.must(command);
        let mut name = "firstBatch";
        let mut out = Vec::new();
        loop {
            let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
                panic!("no cursor in {reply:?}");
            };
            out.extend(batch(cursor, name));
            let Some(ValueRef::Int64(id @ 1..)) = cursor.get("id") else {
                return out;
            };
            between(self);
            name = "nextBatch";
            reply = self.must(doc! { "getMore": id, "collection": "c", "batchSize": size });
        }
    }

    /// What `count` and `distinct` of `a` say: how many documents match, and how many values they have. Which of the
    /// values that a collation finds equal is shown depends on the plan.
    fn counts(&mut self, filter: &Document, hint: Option<Value>, collation: &Option<Document>) -> (usize, usize) {
        let mut reply = |mut command: Document| {
            command.push("query", filter.clone());
            if let Some(hint) = hint.clone() {
                command.push("hint", hint);
            }
            command.push("collation", collation.clone());
            self.must(command)
        };
        let count = reply(doc! { "count": "c" });
        let distinct = reply(doc! { "distinct": "c", "key": "a" });
        match (count.get("n"), distinct.get("values")) {
            (Some(ValueRef::Int32(n)), Some(ValueRef::Array(values))) => (n as usize, values.len()),
            other => panic!("{other:?}"),
        }
    }
}

/// The `_id`s of a batch.
fn batch(cursor: DocRef<'_>, name: &str) -> Vec<i32> {
    let Some(ValueRef::Array(batch)) = cursor.get(name) else {
        panic!("no {name} in {cursor:?}");
    };
    let id = |item: ValueRef<'_>| match item.as_document().and_then(|doc| doc.get("_id")) {
        Some(ValueRef::Int32(id)) => id,
        other => panic!("_id is {other:?}"),
    };
    batch.iter().map(id).collect()
}

fn collation(strength: i32) -> Document {
    doc! { "locale": "en", "strength": strength }
}

/// A value with strings in place of half of its scalars: they differ in case and accents.
fn vary(value: Value, random: &mut Random) -> Value {
    match value {
        Value::Document(doc) => vary_document(&doc, random).into(),
        Value::Array(items) => items
            .iter()
            .map(|item| vary(item.to_value(), random))
            .collect::<Array>()
            .into(),
        other if random.one_in(2) => other,
        _ => {
            let texts = [
                "", "a", "A", "\u{e1}", "\u{c1}", "a\u{301}", "b", "B", "ab", "aB", "ss", "\u{df}", "a-b",
            ];
            (*random.pick(&texts)).into()
        }
    }
}

fn vary_document(doc: &Document, random: &mut Random) -> Document {
    doc.iter()
        .map(|(name, value)| match name {
            "_id" | "$type" | "$mod" | "$size" | "$exists" => (name.into(), value.to_value()),
            _ => (name.into(), vary(value.to_value(), random)),
        })
        .collect()
}

fn path(random: &mut Random) -> String {
    let mut path = (*random.pick(&["a", "a", "b", "c", "d"])).to_owned();
    for _ in 0..random.below(3) {
        path.push('.');
        path.push_str(random.pick::<&str>(&["a", "b", "b", "0", "1"]));
    }
    path
}

fn operand(random: &mut Random, depth: usize) -> Value {
    loop {
        let value = random.value(depth);
        if !matches!(value, Value::Undefined) {
            return value;
        }
    }
}

fn operators(random: &mut Random, depth: usize) -> Document {
    let mut out = Document::new();
    for _ in 0..1 + random.below(2) {
        let operator = *random.pick(&[
            "$eq",
            "$eq",
            "$ne",
            "$lt",
            "$lte",
            "$gt",
            "$gte",
            "$in",
            "$nin",
            "$exists",
            "$type",
            "$size",
            "$all",
            "$not",
            "$elemMatch",
            "$mod",
        ]);
        let list = |random: &mut Random| -> Value {
            let length = random.below(4);
            (0..length).map(|_| operand(random, 1)).collect::<Array>().into()
        };
        let value: Value = match operator {
            "$in" | "$nin" | "$all" => list(random),
            "$exists" => random.one_in(2).into(),
            "$type" => (*random.pick(&["int", "number", "array", "object", "null", "string", "double"])).into(),
            "$size" => Value::Int32(random.below(4) as i32),
            "$mod" => vec![Value::Int32(2), Value::Int32(random.below(2) as i32)].into(),
            "$not" | "$elemMatch" if depth == 0 => continue,
            "$elemMatch" if random.one_in(2) => filter(random, depth - 1).into(),
            "$not" | "$elemMatch" => operators(random, depth - 1).into(),
            _ => operand(random, 1),
        };
        out.set(operator, value);
    }
    if out.is_empty() {
        out.push("$eq", operand(random, 1));
    }
    out
}

fn filter(random: &mut Random, depth: usize) -> Document {
    let mut out = Document::new();
    for _ in 0..1 + random.below(3) {
        if depth > 0 && random.one_in(5) {
            let name = *random.pick(&["$and", "$or", "$or", "$nor"]);
            let count = 1 + random.below(3);
            let all: Array = (0..count).map(|_| Value::from(filter(random, depth - 1))).collect();
            out.set(name, Value::Array(all));
        } else if random.one_in(3) {
            out.set(path(random).as_str(), operand(random, 1));
        } else {
            out.set(path(random).as_str(), operators(random, depth));
        }
    }
    out
}

/// One condition on a field that indexes have.
fn condition(random: &mut Random) -> Document {
    let path = *random.pick(&["a", "a", "a.b", "a.a", "b", "c", "d", "s", "s", "s.x"]);
    let operator = *random.pick(&["$eq", "$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$in", "$nin"]);
    let operand = match operator {
        "$in" | "$nin" => (0..1 + random.below(3))
            .map(|_| operand(random, 0))
            .collect::<Array>()
            .into(),
        _ => operand(random, 1),
    };
    let mut out = Document::new();
    let mut test = Document::new();
    test.push(operator, operand);
    out.push(path, test);
    out
}

/// Indexes: key, name, other options, and whether every document has an entry.
type Kinds = Vec<(Document, &'static str, Document, bool)>;

fn indexes() -> Kinds {
    vec![
        (doc! { "a": 1 }, "single", doc! {}, true),
        (doc! { "a": -1 }, "descending", doc! {}, true),
        (doc! { "a.b": 1 }, "dotted", doc! {}, true),
        (doc! { "a": 1, "b": -1 }, "compound", doc! {}, true),
        (doc! { "c": -1, "a.b": 1, "a.a": 1 }, "three", doc! {}, true),
        (doc! { "a.0": 1 }, "position", doc! {}, true),
        (doc! { "d": "hashed" }, "hashed", doc! {}, true),
        (doc! { "d": "hashed", "c": 1 }, "hashed_first", doc! {}, true),
        (doc! { "c": -1, "d": "hashed" }, "hashed_second", doc! {}, true),
        (doc! { "d": "hashed" }, "hashed_sparse", doc! { "sparse": true }, false),
        (
            doc! { "b": Decimal128::parse("-0.5").expect("a decimal").0, "d": 0.5 },
            "fractions",
            doc! {},
            true,
        ),
        (doc! { "$**": 1 }, "wild", doc! {}, true),
        (doc! { "a.$**": -1 }, "wild_below", doc! {}, true),
        (
            doc! { "c": 1, "$**": 1 },
            "wild_after",
            doc! { "wildcardProjection": doc! { "c": 0, "d": 0 } },
            true,
        ),
        (
            doc! { "$**": 1, "c": -1 },
            "wild_before",
            doc! { "wildcardProjection": doc! { "a": 1, "b.a": 1 } },
            true,
        ),
        (doc! { "c": 1 }, "sparse", doc! { "sparse": true }, false),
        (doc! { "b": 1, "c": 1 }, "sparse_two", doc! { "sparse": true }, false),
        (
            doc! { "b": 1 },
            "partial",
            doc! { "partialFilterExpression": doc! { "b": doc! { "$gte": 1 } } },
            false,
        ),
        (
            doc! { "a": 1, "d": 1 },
            "partial_exists",
            doc! { "partialFilterExpression": doc! { "d": doc! { "$exists": true } } },
            false,
        ),
    ]
}

fn document(random: &mut Random, id: i32) -> Document {
    let mut out = doc! { "_id": id };
    for (name, value) in random.document(2).iter() {
        out.push(name, value);
    }
    out
}

/// Indexes of several collations.
fn collated_indexes() -> Kinds {
    let under = |strength| doc! { "collation": collation(strength) };
    let partial = |strength: i32, filter: Document| {
        let mut options = under(strength);
        options.push("partialFilterExpression", filter);
        options
    };
    vec![
        (
            doc! { "a": 1 },
            "simple",
            doc! { "collation": doc! { "locale": "simple" } },
            true,
        ),
        (doc! { "a": 1 }, "letters", under(1), true),
        (doc! { "a": -1 }, "accents", under(2), true),
        (doc! { "s": 1, "_id": 1 }, "s_letters", under(1), true),
        (doc! { "s": -1, "_id": -1 }, "s_accents", under(2), true),
        (doc! { "s": 1, "c": 1 }, "s_compound", under(1), true),
        (doc! { "a.b": 1 }, "dotted", under(1), true),
        (doc! { "a": 1, "b": -1 }, "compound", under(1), true),
        (doc! { "c": -1, "a.b": 1, "a.a": 1 }, "three", under(3), true),
        (doc! { "d": "hashed" }, "hashed", under(1), true),
        (doc! { "$**": 1 }, "wild", under(1), true),
        (
            doc! { "c": 1, "$**": 1 },
            "wild_after",
            doc! { "wildcardProjection": doc! { "c": 0, "d": 0 }, "collation": collation(2) },
            true,
        ),
        (
            doc! { "c": 1 },
            "sparse",
            doc! { "sparse": true, "collation": collation(1) },
            false,
        ),
        (
            doc! { "b": 1 },
            "partial",
            partial(1, doc! { "b": doc! { "$gte": "a" } }),
            false,
        ),
        (
            doc! { "b": 1 },
            "partial_number",
            partial(3, doc! { "b": doc! { "$gte": 1 } }),
            false,
        ),
        (
            doc! { "a": 1, "d": 1 },
            "partial_exists",
            partial(1, doc! { "d": doc! { "$exists": true } }),
            false,
        ),
    ]
}

/// A database with documents and those of the indexes that could be made; returns the hints of complete ones.
fn prepare(random: &mut Random, kinds: &Kinds, options: &Document) -> (Database, Vec<Value>) {
    let collated = kinds
        .iter()
        .any(|(_, _, options, _)| options.get("collation").is_some());
    let document = |random: &mut Random, id: i32| {
        let mut plain = document(random, id);
        if !collated {
            return plain;
        }
        // A field without arrays, so that indexes on it have an order.
        let scalar = random.scalar();
        plain.push(
            "s",
            if random.one_in(5) {
                doc! { "x": scalar }.into()
            } else {
                scalar
            },
        );
        vary_document(&plain, random)
    };
    let mut db = Database::new();
    let mut create = doc! { "create": "c" };
    options.iter().for_each(|(name, value)| create.push(name, value));
    db.must(create);
    let mut hints = vec![Value::from("_id_")];
    let mut make = |db: &mut Database, late: bool, random: &mut Random, chosen: &mut Vec<bool>| {
        for (at, (key, name, options, whole)) in kinds.iter().cloned().enumerate() {
            if !late {
                chosen.push(random.one_in(2));
            }
            if chosen[at] == late {
                continue;
            }
            let mut spec = doc! { "key": key, "name": name };
            for (option, value) in options.iter() {
                spec.push(option, value);
            }
            let made = db.run(doc! { "createIndexes": "c", "indexes": vec![Value::from(spec)] });
            // Documents with parallel arrays and the like keep an index from being built.
            if made.get("ok").is_some_and(ValueRef::truthy) && whole {
                hints.push(name.into());
            }
        }
    };
    let mut early = Vec::new();
    make(&mut db, false, random, &mut early);
    for id in 0..60 {
        // Refused where an index cannot have it.
        db.run(doc! { "insert": "c", "documents": vec![Value::from(document(random, id))] });
    }
    for _ in 0..20 {
        let id = random.below(60) as i32;
        if random.one_in(4) {
            let delete = doc! { "q": doc! { "_id": id }, "limit": 1 };
            db.must(doc! { "delete": "c", "deletes": vec![Value::from(delete)] });
        } else {
            let mut replacement = document(random, id);
            replacement.remove("_id");
            let update = doc! { "q": doc! { "_id": id }, "u": replacement };
            db.run(doc! { "update": "c", "updates": vec![Value::from(update)] });
        }
    }
    make(&mut db, true, random, &mut early);
    (db, hints)
}

#[test]
fn queries_find_the_same_by_every_index() {
    // Seeds from 15 on have found faults.
    find_the_same(&[0, 1, 2, 3, 4, 5, 15, 42, 44, 76], &indexes(), false);
}

#[test]
fn queries_find_the_same_under_every_collation() {
    find_the_same(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 249], &collated_indexes(), true);
}

fn find_the_same(seeds: &[u64], kinds: &Kinds, collated: bool) {
    let (mut compared, mut found, mut refused) = (0, 0, 0);
    for &seed in seeds {
        let mut random = Random::new(seed);
        let options = match collated && random.one_in(2) {
            true => doc! { "collation": collation(2) },
            false => doc! {},
        };
        let (mut db, hints) = prepare(&mut random, kinds, &options);
        let report = db.must(doc! { "validate": "c", "full": true });
        assert!(
            report.get("valid").is_some_and(ValueRef::truthy),
            "seed {seed}: {report:?}"
        );
        for _ in 0..120 {
            let mut filter = filter(&mut random, 2);
            let mut under = None;
            if collated {
                if !random.one_in(3) {
                    filter = condition(&mut random);
                }
                filter = vary_document(&filter, &mut random);
                under = match random.below(4) {
                    0 => None,
                    1 => Some(doc! { "locale": "simple" }),
                    _ => Some(collation(1 + random.below(3) as i32)),
                };
            }
            let sort = random
                .pick(&[
                    doc! { "_id": 1 },
                    doc! { "a": 1, "_id": 1 },
                    doc! { "a": -1, "b": 1, "_id": 1 },
                    doc! { "a.b": 1, "_id": 1 },
                    doc! { "c": -1, "_id": -1 },
                    doc! { "s": 1, "_id": 1 },
                    doc! { "s": -1, "_id": -1 },
                ])
                .clone();
            let natural = Value::from(doc! { "$natural": 1 });
            // Some filters are refused, and some sorts of parallel arrays.
            let Ok(expected) = db.find(&filter, &sort, Some(natural), &under) else {
                continue;
            };
            found += expected.len();
            let counted = db.counts(&filter, Some(doc! { "$natural": 1 }.into()), &under);
            assert_eq!(
                counted.0,
                expected.len(),
                "seed {seed}, collation {under:?}: {filter:?}"
            );
            assert_eq!(
                db.counts(&filter, None, &under),
                counted,
                "seed {seed}, collation {under:?}: {filter:?}"
            );
            for hint in std::iter::once(None).chain(hints.iter().cloned().map(Some)) {
                let answered = db.find(&filter, &sort, hint.clone(), &under);
                compared += 1;
                // A wildcard index is of no use to some.
                if answered
                    .as_ref()
                    .is_err_and(|reply| reply.contains("NoQueryExecutionPlans"))
                {
                    refused += 1;
                    continue;
                }
                if answered != Ok(expected.clone()) {
                    let all = db.must(doc! { "find": "c", "batchSize": 100 });
                    panic!(
                        "seed {seed}, hint {hint:?}, sort {sort:?}, collation {under:?}: {filter:?}\n  expected {expected:?}\n  answered {answered:?}\n  {all:?}"
                    );
                }
            }
        }
    }
    assert!(
        compared > 3_000 && found > 2_000 && refused < compared / 3,
        "{compared} runs, {found} documents, {refused} without a plan"
    );
}

#[test]
fn min_and_max_are_a_range_of_keys() {
    let mut db = Database::new();
    let spec = doc! { "key": doc! { "a": 1, "b": -1 }, "name": "i" };
    db.must(doc! { "createIndexes": "c", "indexes": vec![Value::from(spec)] });
    let documents: Vec<Value> = (0..36)
        .map(|id| doc! { "_id": id, "a": id / 6, "b": id % 6 }.into())
        .collect();
    db.must(doc! { "insert": "c", "documents": documents });
    let mut random = Random::new(1);
    // Where a key stands in the order of the index.
    let rank = |(a, b): (i32, i32)| a * 10 - b;
    let key = |(a, b): (i32, i32)| Value::from(doc! { "a": a, "b": b });
    for _ in 0..300 {
        let mut end = || (random.below(7) as i32 - 1, random.below(8) as i32 - 1);
        let (min, max) = (end(), end());
        let ends = random.below(3);
        let mut command = doc! { "find": "c", "hint": "i", "batchSize": 100, "projection": doc! { "_id": 1 } };
        if ends != 1 {
            command.push("min", key(min));
        }
        if ends != 0 {
            command.push("max", key(max));
        }
        let reply = db.run(command.clone());
        if ends == 2 && rank(min) >= rank(max) {
            assert!(matches!(reply.get("code"), Some(ValueRef::Int32(51175))), "{command:?}");
            continue;
        }
        let mut expected: Vec<i32> = (0..36)
            .filter(|id| {
                let at = rank((id / 6, id % 6));
                (ends == 1 || at >= rank(min)) && (ends == 0 || at < rank(max))
            })
            .collect();
        expected.sort_by_key(|id| rank((id / 6, id % 6)));
        let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
            panic!("{command:?} gave {reply:?}");
        };
        let Some(ValueRef::Array(batch)) = cursor.get("firstBatch") else {
            panic!("no batch in {reply:?}");
        };
        let found: Vec<i32> = batch
            .iter()
            .filter_map(|item| match item.as_document()?.get("_id") {
                Some(ValueRef::Int32(id)) => Some(id),
                _ => None,
            })
            .collect();
        assert_eq!(found, expected, "{command:?}");
    }
}

/// A document whose fields tell little or much: `a` has few values, of which one is frequent, `b` many, `c` is an array
/// now and then.
fn skewed(random: &mut Random, id: i32) -> Document {
    let a = if random.one_in(3) { random.below(8) as i32 } else { 0 };
    let b = random.below(60) as i32;
    let c: Value = match random.below(4) {
        0 => Value::Array((0..3).map(|_| Value::Int32(random.below(5) as i32)).collect()),
        _ => Value::Int32(random.below(5) as i32),
    };
    doc! { "_id": id, "a": a, "b": b, "c": c, "x": 0 }
}

/// A query of one of a few shapes: its filter, sort and limit.
fn shaped(random: &mut Random) -> (Document, Document, i32) {
    let (a, b, c) = (random.below(8) as i32, random.below(60) as i32, random.below(5) as i32);
    let a = if random.one_in(2) { 0 } else { a };
    let wide = doc! { "$gte": b / 2, "$lt": b };
    let filter = match random.below(6) {
        0 => doc! { "a": a, "b": b },
        1 => doc! { "a": a, "b": wide },
        2 => doc! { "a": a, "c": c },
        3 => doc! { "a": doc! { "$in": vec![Value::Int32(a), Value::Int32(7)] }, "b": doc! { "$gt": b }, "c": c },
        4 => doc! { "$or": vec![Value::from(doc! { "a": a, "b": wide }), Value::from(doc! { "c": c, "b": b })] },
        _ => doc! { "c": c, "b": doc! { "$ne": b }, "a": doc! { "$lte": a } },
    };
    let sort = random
        .pick(&[doc! { "b": 1, "_id": 1 }, doc! { "b": -1, "_id": 1 }, doc! { "_id": 1 }])
        .clone();
    let limit = if random.one_in(4) {
        1 + random.below(120) as i32
    } else {
        0
    };
    (filter, sort, limit)
}

/// A collection of skewed documents with indexes for every field.
fn skewed_collection(random: &mut Random, count: i32) -> Database {
    let mut db = Database::new();
    for (name, key) in [
        ("a", doc! { "a": 1 }),
        ("b", doc! { "b": 1 }),
        ("c", doc! { "c": 1 }),
        ("ac", doc! { "a": 1, "c": -1 }),
        ("b_id", doc! { "b": -1, "_id": 1 }),
    ] {
        let spec = doc! { "key": key, "name": name };
        db.must(doc! { "createIndexes": "c", "indexes": vec![Value::from(spec)] });
    }
    let documents: Vec<Value> = (0..count).map(|id| skewed(random, id).into()).collect();
    db.must(doc! { "insert": "c", "documents": documents });
    db
}

#[test]
fn whichever_plan_is_chosen_each_row_comes_once() {
    let mut random = Random::new(11);
    let mut db = skewed_collection(&mut random, 900);
    let mut next_id = 900;
    for _ in 0..200 {
        let (filter, sort, limit) = shaped(&mut random);
        let mut command =
            doc! { "find": "c", "filter": filter.clone(), "sort": sort.clone(), "projection": doc! { "_id": 1 } };
        if limit > 0 {
            command.push("limit", limit);
        }
        let mut scan = command.clone();
        scan.push("hint", doc! { "$natural": 1 });
        let expected = db.pages(scan, 10_000, &mut |_| {});
        let size = *random.pick(&[3, 20, 101, 1_000]);
        assert_eq!(db.pages(command.clone(), size, &mut |_| {}), expected, "{command:?}");
        if limit > 0 {
            continue;
        }
        // The same while others write: what they leave alone comes once, nothing comes twice.
        command.remove("sort");
        let mut touched: Vec<i32> = Vec::new();
        let found = db.pages(command.clone(), size.max(40), &mut |db| {
            let gone = random.below(900) as i32;
            touched.push(gone);
            db.must(
                doc! { "delete": "c", "deletes": vec![Value::from(doc! { "q": doc! { "_id": gone }, "limit": 1 })] },
            );
            let moved = doc! { "q": doc! { "_id": random.below(900) as i32 }, "u": doc! { "$inc": doc! { "x": 1 } } };
            db.must(doc! { "update": "c", "updates": vec![Value::from(moved)] });
            touched.push(next_id);
            db.must(doc! { "insert": "c", "documents": vec![Value::from(skewed(&mut random, next_id))] });
            next_id += 1;
        });
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]), "twice: {command:?}");
        let untouched = |ids: &[i32]| -> Vec<i32> { ids.iter().filter(|id| !touched.contains(id)).copied().collect() };
        let mut wanted = untouched(&expected);
        wanted.sort_unstable();
        assert_eq!(untouched(&sorted), wanted, "{command:?}");
        for id in touched.iter().filter(|id| **id < 900) {
            db.must(doc! { "update": "c", "updates": vec![Value::from(doc! {
                "q": doc! { "_id": *id }, "u": skewed(&mut random, *id), "upsert": true,
            })] });
        }
    }
    let totals = db.service.plan_cache.totals();
    assert!(
        totals.hits > 100 && totals.replans > 10 && totals.trials > 100,
        "not every way was gone: {totals:?}"
    );
}

/// The `_id`s of a query, run with `budget` units of work at a time and its position saved in between.
fn in_small_steps(db: &Database, query: &FindQuery, budget: u64) -> Vec<i32> {
    let snapshot = db.service.engine.snapshot();
    let collection = snapshot.catalog().collection("test", "c").expect("the collection");
    let cache = Some(&*db.service.plan_cache);
    let mut root = find(query, Wanted::Documents, Written::default(), collection, cache, None).expect("a plan");
    let (op, interrupt) = (OpContext::new(0, Timestamp::default(), 0), Interrupt::default());
    let mut out = Vec::new();
    loop {
        let mut batch = Batch::new(&snapshot, &op, &interrupt)
            .with_plan_cache(Some(&db.service.plan_cache))
            .with_budget(budget);
        loop {
            match root.next(&mut batch).expect("a step") {
                Step::Row(row) => match row.as_doc().get("_id") {
                    Some(ValueRef::Int32(id)) => out.push(id),
                    other => panic!("_id is {other:?}"),
                },
                Step::Pause => break,
                Step::Eof => return out,
            }
        }
        root.save();
    }
}

#[test]
fn a_trial_can_be_interrupted_anywhere() {
    let mut random = Random::new(3);
    let db = skewed_collection(&mut random, 300);
    for _ in 0..30 {
        let (filter, sort, _) = shaped(&mut random);
        let parsed = MatchExpr::parse(filter.as_ref(), &mut Scope::new()).expect("a filter");
        let mut query = FindQuery::all(Arc::new(parsed.normalize()));
        query.sort = Some(Arc::new(SortSpec::parse(sort.as_ref()).expect("a sort")));
        query.natural = Some(true);
        let expected = in_small_steps(&db, &query, u64::MAX);
        query.natural = None;
        for budget in [1, 3, 64] {
            let found = in_small_steps(&db, &query, budget);
            assert_eq!(found, expected, "{budget} units at a time: {filter:?} by {sort:?}");
        }
    }
    let totals = db.service.plan_cache.totals();
    assert!(
        totals.hits > 20 && totals.trials > 10,
        "not every way was gone: {totals:?}"
    );
}

/// A shape of queries: conditions on fields, an order, what is shown. The literals of each query are its own.
struct QueryShape {
    conditions: Vec<(&'static str, usize)>,
    in_or: bool,
    sort: Document,
    projection: Document,
    limited: bool,
    skipping: bool,
    collated: bool,
}

impl QueryShape {
    fn random(random: &mut Random) -> Self {
        let fields = ["a", "b", "c", "s", "w.x", "w.y"];
        let count = 1 + random.below(3);
        let sorts = [
            doc! { "b": 1, "_id": 1 },
            doc! { "a": 1, "b": -1, "_id": 1 },
            doc! { "_id": -1 },
            doc! { "s": 1, "_id": 1 },
        ];
        let shown = [
            doc! {},
            doc! { "_id": 1 },
            doc! { "_id": 1, "a": 1, "b": 1 },
            doc! { "w": 0 },
        ];
        Self {
            conditions: (0..count).map(|_| (*random.pick(&fields), random.below(8))).collect(),
            in_or: random.one_in(4),
            sort: random.pick(&sorts).clone(),
            projection: random.pick(&shown).clone(),
            limited: random.one_in(3),
            skipping: random.one_in(5),
            collated: random.one_in(4),
        }
    }

    /// A query of this shape.
    fn query(&self, random: &mut Random) -> Document {
        let condition = |random: &mut Random, (field, op): (&str, usize)| -> Document {
            let mut value = || -> Value {
                match (field, random.below(12)) {
                    (_, 0) => Value::Null,
                    ("s", n) => ["a", "A", "b", "B", "c"][n % 5].into(),
                    (_, 1) => "a".into(),
                    ("b", _) => Value::Int32(random.below(60) as i32),
                    _ => Value::Int32(random.below(8) as i32),
                }
            };
            let test = match op {
                0..=2 => doc! { "$eq": value() },
                3 => doc! { "$gte": value() },
                4 => doc! { "$lt": value() },
                5 => doc! { "$in": vec![value(), value(), value()] },
                6 => doc! { "$ne": value() },
                _ => doc! { "$exists": true },
            };
            let mut out = Document::new();
            out.push(field, test);
            out
        };
        let clauses: Vec<Value> = self.conditions.iter().map(|c| condition(random, *c).into()).collect();
        let filter = match self.in_or {
            true => doc! { "$or": clauses, "x": 0 },
            false => doc! { "$and": clauses },
        };
        let mut command =
            doc! { "find": "c", "filter": filter, "sort": self.sort.clone(), "projection": self.projection.clone() };
        if self.limited {
            command.push("limit", 1 + random.below(40) as i32);
        }
        if self.skipping {
            command.push("skip", 1 + random.below(5) as i32);
        }
        if self.collated {
            command.push("collation", doc! { "locale": "en", "strength": 2 });
        }
        command.push("batchSize", 10_000);
        command
    }
}

/// The documents of a find, their fields in one order: a covered plan gives them in that of the index.
fn found(db: &mut Database, command: Document) -> Vec<String> {
    let reply = db.must(command);
    let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
        panic!("no cursor in {reply:?}");
    };
    let Some(ValueRef::Array(batch)) = cursor.get("firstBatch") else {
        panic!("no batch in {reply:?}");
    };
    let shown = |item: ValueRef<'_>| {
        let mut fields: Vec<String> = item
            .as_document()
            .into_iter()
            .flatten()
            .map(|(name, value)| format!("{name}: {value:?}"))
            .collect();
        fields.sort();
        fields.join(", ")
    };
    batch.iter().map(shown).collect()
}

/// Whether a plan is chosen anew, was kept from queries with other literals, or is a scan of the collection: what is found is
/// the same. Counts and pipelines share the plans that finds keep.
#[test]
fn cached_plans_find_what_others_find() {
    let mut random = Random::new(29);
    let mut db = skewed_collection(&mut random, 120);
    for (name, key, option, value) in [
        ("s_sparse", doc! { "s": 1, "b": 1 }, "sparse", Value::Bool(true)),
        (
            "s_ci",
            doc! { "s": 1 },
            "collation",
            doc! { "locale": "en", "strength": 2 }.into(),
        ),
        (
            "b_partial",
            doc! { "b": 1, "a": 1 },
            "partialFilterExpression",
            doc! { "a": doc! { "$gt": 2 } }.into(),
        ),
        ("a_hashed", doc! { "a": "hashed" }, "hidden", Value::Bool(false)),
        ("w", doc! { "w.$**": 1 }, "hidden", Value::Bool(false)),
    ] {
        let mut spec = doc! { "key": key, "name": name };
        spec.push(option, value);
        db.must(doc! { "createIndexes": "c", "indexes": vec![Value::from(spec)] });
    }
    let documents: Vec<Value> = (1_000..1_080)
        .map(|id| {
            let mut doc = skewed(&mut random, id);
            if let Some(Value::Array(_)) = doc.get("c").map(ValueRef::to_value) {
                doc.set("c", Value::Int32(1));
            }
            if !random.one_in(4) {
                doc.push("s", *random.pick(&["a", "A", "b", "B", "c"]));
            }
            let x = random.below(8) as i32;
            doc.push("w", doc! { "x": x, "y": random.below(8) as i32 });
            doc.into()
        })
        .collect();
    db.must(doc! { "insert": "c", "documents": documents });
    for _ in 0..40 {
        let shape = QueryShape::random(&mut random);
        for round in 0..5 {
            let command = shape.query(&mut random);
            let mut scan = command.clone();
            scan.push("hint", doc! { "$natural": 1 });
            let expected = found(&mut db, scan);
            // The second round makes the choice of the first active, unless it took more.
            let hot = found(&mut db, command.clone());
            assert_eq!(hot, expected, "round {round}: {command:?}");
            let filter = command.get("filter").map(ValueRef::to_value);
            let collation = command.get("collation").map(ValueRef::to_value);
            if !shape.limited && !shape.skipping {
                let mut count = doc! { "count": "c" };
                count.push("query", filter.clone());
                count.push("collation", collation.clone());
                let reply = db.must(count);
                assert!(
                    matches!(reply.get("n"), Some(ValueRef::Int32(n)) if n as usize == expected.len()),
                    "{command:?}"
                );
                let mut pipeline = vec![Value::from(doc! { "$match": filter.clone() })];
                pipeline.push(doc! { "$count": "n" }.into());
                let mut aggregate = doc! { "aggregate": "c", "pipeline": pipeline, "cursor": doc! {} };
                aggregate.push("collation", collation);
                let counted = found_counts(&mut db, aggregate);
                assert_eq!(counted, expected.len() as i32, "{command:?}");
            }
            if round == 4 {
                db.must(doc! { "planCacheClear": "c" });
                assert_eq!(found(&mut db, command.clone()), expected, "cold: {command:?}");
            }
        }
    }
    let totals = db.service.plan_cache.totals();
    assert!(
        totals.hits > 50 && totals.misses > 50 && totals.skipped > 50 && totals.replans > 0,
        "not every way was gone: {totals:?}"
    );
}

/// The one `n` that a pipeline gives; 0 when it gives nothing.
fn found_counts(db: &mut Database, command: Document) -> i32 {
    let reply = db.must(command);
    let Some(ValueRef::Document(cursor)) = reply.get("cursor") else {
        panic!("no cursor in {reply:?}");
    };
    let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).expect("a batch");
    let first = batch.iter().next().and_then(ValueRef::as_document);
    match first.and_then(|doc| doc.get("n")) {
        Some(ValueRef::Int32(n)) => n,
        None => 0,
        other => panic!("{other:?} is no count"),
    }
}
