//! Pipelines have the same answers by columns as by documents: `$match`, and `$group`, its relatives or the first of an order over values of all types, while documents are written,
//! deleted and changed, and checkpoints come.

#[allow(dead_code)] // It has a directory.
#[path = "shared/database.rs"]
mod database;
#[path = "shared/mixed.rs"]
mod mixed;

use database::{Database, run_over};
use mixed::{PATHS, UNWOUND, condition, condition_on, document, value};
use nestor_command::Connection;
use nestor_model::{Array, Decimal128, Document, ObjectId, Value, ValueRef, doc};
use nestor_testkit::random::Random;

/// Stages that group the elements of an array, or count them.
fn unwound(random: &mut Random) -> Vec<Value> {
    let path = |random: &mut Random| Value::from(format!("${}", random.pick(&UNWOUND)));
    let array = *random.pick(&["$l", "$l", "$t", "$t", "$a", "$nothing"]);
    let mut out: Vec<Value> = vec![match random.below(5) {
        0 | 1 => doc! { "$unwind": array }.into(),
        _ => {
            let mut unwind = doc! { "path": array };
            if random.one_in(2) {
                unwind.push("preserveNullAndEmptyArrays", random.one_in(2));
            }
            if random.one_in(2) {
                unwind.push("includeArrayIndex", *random.pick(&["at", "at", "at", "b", "l.at", "s"]));
            }
            doc! { "$unwind": unwind }.into()
        }
    }];
    for _ in 0..random.below(3) {
        out.push(doc! { "$match": condition_on(random, 1, &UNWOUND) }.into());
    }
    out.push(match random.below(5) {
        0 => doc! { "$count": "n" }.into(),
        1 => doc! { "$sortByCount": path(random) }.into(),
        _ => doc! { "$group": group(random, &UNWOUND) }.into(),
    });
    out
}

/// Arithmetic of fields that have numbers, or nothing.
fn arithmetic(random: &mut Random, depth: usize) -> Value {
    let part = |random: &mut Random| match random.below(if depth == 0 { 6 } else { 9 }) {
        0..=3 => Value::from(*random.pick(&["$i", "$i", "$g"])),
        4 => Value::Int32(random.below(5) as i32 + 1),
        5 => Value::Double(2.5),
        _ => arithmetic(random, depth - 1),
    };
    let (x, y) = (part(random), part(random));
    let args: Value = vec![x.clone(), y].into();
    match random.below(7) {
        0 => doc! { "$add": args },
        1 => doc! { "$subtract": args },
        2 => doc! { "$multiply": args },
        3 => doc! { "$divide": vec![x, Value::Int32(7)] },
        4 => doc! { "$mod": vec![x, Value::Int64(24)] },
        5 => doc! { "$ceil": x },
        _ => doc! { "$floor": doc! { "$divide": vec![x, Value::Int32(3)] } },
    }
    .into()
}

fn group(random: &mut Random, paths: &[&str]) -> Document {
    let path = |random: &mut Random| Value::from(format!("${}", random.pick(paths)));
    let id = match random.below(11) {
        9 => {
            let path = path(random);
            doc! { "$cond": vec![doc! { "$gt": vec![path.clone(), 0.into()] }.into(), "big".into(), path] }.into()
        }
        10 => doc! { "x": doc! { "$dateTrunc": doc! { "date": "$h", "unit": "hour" } }, "y": path(random) }.into(),
        6 => arithmetic(random, 2),
        7 => doc! { "x": arithmetic(random, 1), "y": path(random) }.into(),
        8 => doc! { "x": doc! { "z": arithmetic(random, 2) }, "y": path(random), "w": arithmetic(random, 0) }.into(),
        0 => Value::Null,
        1 => doc! { "x": path(random), "y": path(random) }.into(),
        2 => doc! { "$ifNull": vec![path(random), "none".into()] }.into(),
        3 => doc! { "$type": path(random) }.into(),
        _ => path(random),
    };
    let mut out = doc! { "_id": id, "n": doc! { "$sum": 1 } };
    for (at, name) in [
        "$sum",
        "$avg",
        "$min",
        "$max",
        "$first",
        "$last",
        "$addToSet",
        "$stdDevPop",
    ]
    .iter()
    .enumerate()
    {
        if random.one_in(2) {
            let input = match random.below(5) {
                0 => doc! { "$cond": vec![doc! { "$gt": vec![path(random), 0.into()] }.into(), path(random), Value::Int32(1)] }.into(),
                _ => path(random),
            };
            let mut field = Document::new();
            field.push(*name, input);
            out.push(format!("f{at}"), field);
        }
    }
    let mut by = Document::new();
    by.push(*random.pick(paths), -1);
    by.push("_id", 1);
    match random.below(6) {
        0 => out.push("t", doc! { "$top": doc! { "sortBy": by, "output": path(random) } }),
        1 => out.push(
            "t",
            doc! { "$bottomN": doc! { "sortBy": by, "output": vec![path(random), path(random)], "n": 3 } },
        ),
        2 => out.push("t", doc! { "$firstN": doc! { "input": path(random), "n": 4 } }),
        3 => out.push("t", doc! { "$push": path(random) }),
        _ => {}
    }
    out
}

/// What a pipeline makes of the documents: groups, or the first of them in an order.
fn made(random: &mut Random) -> Vec<Value> {
    let path = |random: &mut Random| Value::from(format!("${}", random.pick(&PATHS)));
    match random.below(9) {
        0..=3 => vec![doc! { "$group": group(random, &PATHS) }.into()],
        4 => vec![
            doc! { "$sortByCount": path(random) }.into(),
            doc! { "$sort": doc! { "_id": 1 } }.into(),
        ],
        5 => {
            let bounds = vec![Value::Int32(-2), Value::Int32(0), Value::Int32(3), Value::Int32(200)];
            let output = doc! { "n": doc! { "$sum": 1 }, "most": doc! { "$max": path(random) } };
            vec![doc! { "$bucket": doc! { "groupBy": path(random), "boundaries": bounds, "default": "other", "output": output } }.into()]
        }
        6 => vec![doc! { "$count": "n" }.into()],
        _ => {
            let mut by = Document::new();
            for _ in 0..1 + random.below(2) {
                let path = *random.pick(&PATHS);
                by.set(path, if random.one_in(2) { 1 } else { -1 });
            }
            // Then no two have one key.
            if random.one_in(2) {
                by.push("_id", -1);
            }
            let mut stages: Vec<Value> = vec![doc! { "$sort": by }.into()];
            if random.one_in(3) {
                stages.push(doc! { "$skip": random.below(20) as i32 }.into());
            }
            stages.push(doc! { "$limit": *random.pick(&[1, 7, 60, 900]) }.into());
            if random.one_in(3) {
                stages.push(doc! { "$project": doc! { "a": 1, "n.d": 1 } }.into());
            }
            stages
        }
    }
}

/// Stages that make other documents of each, which need few paths.
fn shaped(random: &mut Random) -> Document {
    let path = |random: &mut Random| Value::from(format!("${}", random.pick(&PATHS)));
    let computed = |random: &mut Random| match random.below(4) {
        0 => path(random),
        1 => doc! { "$ifNull": vec![path(random), 7.into()] }.into(),
        2 => doc! { "$type": path(random) }.into(),
        _ => doc! { "$cond": vec![doc! { "$gt": vec![path(random), 0.into()] }.into(), path(random), "no".into()] }
            .into(),
    };
    let mut fields = Document::new();
    match random.below(4) {
        0 => {
            let names = ["x", "a", "s.v.x", "y"];
            for _ in 0..1 + random.below(2) {
                let name: &&str = random.pick(&names);
                fields.set(name, computed(random));
            }
            doc! { "$addFields": fields }
        }
        1 => doc! { "$unset": *random.pick(&["b", "s.u", "s", "n.a"]) },
        _ => {
            for _ in 0..1 + random.below(4) {
                let path = *random.pick(&PATHS);
                let collides = |(own, _): (&str, ValueRef<'_>)| {
                    own == path || own.starts_with(&format!("{path}.")) || path.starts_with(&format!("{own}."))
                };
                if !fields.iter().any(collides) {
                    fields.push(path, 1);
                }
            }
            if random.one_in(3) {
                fields.push("x", computed(random));
            }
            if random.one_in(3) {
                fields.push("_id", 0);
            }
            doc! { "$project": fields }
        }
    }
}

/// A command on the collection.
fn command(random: &mut Random) -> Document {
    let filter = match random.one_in(4) {
        true => Document::new(),
        false => condition(random, 2),
    };
    match random.below(8) {
        0 => doc! { "count": "c", "query": filter },
        1 => {
            doc! { "count": "c", "query": filter, "skip": random.below(900) as i32, "limit": 1 + random.below(2000) as i32 }
        }
        2 => doc! { "distinct": "c", "key": *random.pick(&PATHS), "query": filter },
        3 | 4 => {
            let mut find = doc! { "find": "c", "filter": filter, "batchSize": *random.pick(&[0, 1, 30, 2000]) };
            if !random.one_in(4) {
                find.push(
                    "projection",
                    shaped(random)
                        .get("$project")
                        .map(|spec| spec.to_value())
                        .unwrap_or(doc! { "k": 1 }.into()),
                );
            }
            if random.one_in(4) {
                let mut by = Document::new();
                by.push(*random.pick(&PATHS), 1);
                by.push("_id", -1);
                find.push("sort", by);
            }
            if random.one_in(3) {
                find.push("limit", *random.pick(&[5, 700, 5000]));
            }
            find
        }
        _ => {
            let mut pipeline = Vec::new();
            if !random.one_in(4) {
                pipeline.push(Value::from(doc! { "$match": filter }));
            }
            for _ in 0..random.below(3) {
                pipeline.push(shaped(random).into());
            }
            if random.one_in(4) {
                pipeline.push(doc! { "$unwind": doc! { "path": format!("${}", random.pick(&PATHS)), "preserveNullAndEmptyArrays": random.one_in(2) } }.into());
            }
            match random.below(3) {
                0 => {}
                1 => pipeline.push(
                    doc! { "$bucketAuto": doc! { "groupBy": format!("${}", random.pick(&PATHS)), "buckets": 4 } }
                        .into(),
                ),
                _ => pipeline.extend(made(random)),
            }
            doc! { "aggregate": "c", "pipeline": pipeline, "cursor": doc! { "batchSize": *random.pick(&[0, 10, 5000]) } }
        }
    }
}

/// The groups, in an order of their own; sets have none.
fn answer(database: &mut Database, pipeline: Vec<Value>, hint: Option<Document>) -> Vec<String> {
    let command = doc! {
        "aggregate": "c", "pipeline": pipeline, "cursor": doc! { "batchSize": 1_000_000 },
    };
    answer_of(database, command, hint)
}

/// As [`answer_of`], or the code of what is refused.
fn outcome_of(database: &mut Database, command: &Document, hint: Document) -> Vec<String> {
    let mut hinted = command.clone();
    hinted.push("hint", hint.clone());
    let reply = database.run(hinted);
    match reply.get("code") {
        Some(code) => vec![format!("{code:?}")],
        None => answer_of(database, command.clone(), Some(hint)),
    }
}

/// All that a command answers. Groups are in an order of their own.
fn answer_of(database: &mut Database, mut command: Document, hint: Option<Document>) -> Vec<String> {
    let text = format!("{command:?}");
    let is_ordered = text.contains("$limit") || !text.contains("$group") && !text.contains("$sortByCount");
    if let Some(hint) = hint {
        command.push("hint", hint);
    }
    let reply = database.must(command);
    let Some(cursor) = reply.get("cursor").and_then(|cursor| cursor.as_document()) else {
        let fields = ["n", "values"].iter().filter_map(|name| reply.get(name));
        return fields.map(|field| format!("{field:?}")).collect();
    };
    let batch = cursor
        .get("firstBatch")
        .and_then(|batch| batch.as_array())
        .expect("a batch");
    let mut groups: Vec<String> = batch.iter().map(|group| sorted(group.to_value())).collect();
    let mut id = cursor
        .get("id")
        .and_then(nestor_model::number::safe_i64)
        .expect("an id");
    while id != 0 {
        let more = database.must(doc! { "getMore": id, "collection": "c", "batchSize": 1500 });
        let cursor = more
            .get("cursor")
            .and_then(|cursor| cursor.as_document())
            .expect("a cursor");
        let batch = cursor
            .get("nextBatch")
            .and_then(|batch| batch.as_array())
            .expect("a batch");
        groups.extend(batch.iter().map(|group| sorted(group.to_value())));
        id = cursor
            .get("id")
            .and_then(nestor_model::number::safe_i64)
            .expect("an id");
    }
    if !is_ordered {
        groups.sort();
    }
    groups
}

/// A command as a statement of a transaction.
fn transaction(mut command: Document, number: i64, is_first: bool) -> Document {
    let id = Value::Binary(nestor_model::Binary {
        subtype: 4,
        bytes: vec![7; 16].into(),
    });
    command.push("lsid", doc! { "id": id });
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if is_first {
        command.push("startTransaction", true);
    }
    command
}

/// A group as text, with the elements of sets in order.
fn sorted(group: Value) -> String {
    let Value::Document(group) = group else {
        return String::new();
    };
    let fields = group.iter().map(|(name, value)| match value.as_array() {
        Some(items) if name == "f6" => {
            let mut items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            items.sort();
            format!("{name}: {items:?}")
        }
        _ => format!("{name}: {value:?}"),
    });
    fields.collect::<Vec<_>>().join(", ")
}

#[test]
fn groups_are_the_same_by_columns_as_by_documents() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    let mut random = Random::new(3);
    let mut next = 0;
    let mut insert = |database: &mut Database, random: &mut Random, count: i64| {
        let documents: Vec<Value> = (next..next + count).map(|id| document(random, id).into()).collect();
        next += count;
        database.must(doc! { "insert": "c", "documents": documents });
        next
    };
    for _ in 0..5 {
        insert(&mut database, &mut random, 1000);
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let (mut by_columns, mut first_few, mut of, mut picked, mut commands_by_columns) = (0, 0, 0, 0, 0);
    let mut of_elements = 0;
    let all = vec![Value::from(doc! { "$group": doc! { "_id": Value::Null } })];
    answer(&mut database, all.clone(), None);
    for round in 0..25i32 {
        database.service.columns.settle();
        for _ in 0..4 {
            let mut pipeline = Vec::new();
            if !random.one_in(4) {
                pipeline.push(doc! { "$match": condition(&mut random, 2) }.into());
            }
            pipeline.extend(match random.one_in(3) {
                true => unwound(&mut random),
                false => made(&mut random),
            });
            let plan = database.must(doc! {
                "explain": doc! { "aggregate": "c", "pipeline": pipeline.clone(), "cursor": doc! {} }, "verbosity": "queryPlanner",
            });
            let is_by_columns = format!("{plan:?}").contains("COLUMN_SCAN");
            by_columns += usize::from(is_by_columns);
            of_elements += usize::from(format!("{plan:?}").contains("unwinds"));
            first_few += usize::from(is_by_columns && format!("{pipeline:?}").contains("$limit"));
            of += 1;
            let columns = answer(&mut database, pipeline.clone(), None);
            let documents = answer(&mut database, pipeline.clone(), Some(doc! { "$natural": 1 }));
            picked += usize::from(!documents.is_empty());
            assert!(
                columns == documents,
                "{round}: {pipeline:?}\n{columns:#?}\n{documents:#?}"
            );
        }
        for _ in 0..5 {
            let command = command(&mut random);
            let plan = database.must(doc! { "explain": command.clone(), "verbosity": "queryPlanner" });
            commands_by_columns += usize::from(format!("{plan:?}").contains("COLUMN_SCAN"));
            let as_it_comes = answer_of(&mut database, command.clone(), None);
            let columns = answer_of(&mut database, command.clone(), Some(doc! { "$columns": 1 }));
            let documents = answer_of(&mut database, command.clone(), Some(doc! { "$natural": 1 }));
            assert!(
                columns == documents && as_it_comes == documents,
                "{round}: {command:?}\n{as_it_comes:#?}\n{columns:#?}\n{documents:#?}"
            );
        }
        // Within a transaction its own changes are seen.
        if random.one_in(3) {
            let txn = i64::from(round);
            let within = |command: Document, is_first: bool| transaction(command, txn, is_first);
            let set = doc! { "$set": doc! { "a": 77, "g": Value::Null } };
            let which =
                doc! { "_id": doc! { "$mod": vec![Value::Int32(500), Value::Int32(random.below(500) as i32)] } };
            let updates = vec![Value::from(doc! { "q": which, "u": set, "multi": true })];
            database.must(within(doc! { "update": "c", "updates": updates }, true));
            for _ in 0..3 {
                let stages: Vec<Value> = [doc! { "$match": condition(&mut random, 1) }.into()]
                    .into_iter()
                    .chain(made(&mut random))
                    .collect();
                let command = doc! { "aggregate": "c", "pipeline": stages, "cursor": doc! { "batchSize": 1_000_000 } };
                let columns = answer_of(
                    &mut database,
                    within(command.clone(), false),
                    Some(doc! { "$columns": 1 }),
                );
                let documents = answer_of(
                    &mut database,
                    within(command.clone(), false),
                    Some(doc! { "$natural": 1 }),
                );
                assert!(
                    columns == documents,
                    "{round}: {command:?}\n{columns:#?}\n{documents:#?}"
                );
            }
            let end = if random.one_in(2) {
                "commitTransaction"
            } else {
                "abortTransaction"
            };
            let mut command = Document::new();
            command.push(end, 1);
            command.push("$db", "admin");
            database.must(within(command, false));
        }
        match random.below(3) {
            0 => _ = insert(&mut database, &mut random, 30),
            1 => {
                let deletes = vec![Value::from(
                    doc! { "q": doc! { "_id": doc! { "$mod": vec![Value::Int32(800), Value::Int32(random.below(800) as i32)] } }, "limit": 0 },
                )];
                database.must(doc! { "delete": "c", "deletes": deletes });
            }
            _ => {
                let set = doc! { "$set": doc! { "a": value(&mut random, "a").unwrap_or(Value::Null), "n": doc! { "d": "changed" } } };
                let updates = vec![Value::from(
                    doc! { "q": doc! { "_id": doc! { "$mod": vec![Value::Int32(600), Value::Int32(random.below(600) as i32)] } }, "u": set, "multi": true },
                )];
                database.must(doc! { "update": "c", "updates": updates });
            }
        }
        if random.one_in(3) {
            database.service.engine.checkpoint().expect("a checkpoint");
            // Whoever reads next wants what is stale made anew.
            answer(&mut database, all.clone(), None);
        }
    }
    assert!(
        by_columns * 2 > of && picked * 2 > of,
        "{by_columns} of {of} by columns, {picked} with groups"
    );
    assert!(first_few > 2, "{first_few} of them the first in an order");
    assert!(of_elements > 10, "{of_elements} of them of elements");
    assert!(
        commands_by_columns > 40,
        "{commands_by_columns} of 125 commands by columns"
    );
}

/// Money goes from account to account, each time within a transaction, while columns are made, become stale and are made anew: whoever adds up all of
/// it by columns finds what there was.
#[test]
fn sums_hold_while_columns_are_made() {
    const ACCOUNTS: i64 = 6000;
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    for from in (0..ACCOUNTS).step_by(1000) {
        let documents: Vec<Value> = (from..from + 1000)
            .map(|id| doc! { "_id": id, "balance": 100, "owner": format!("owner {}", id % 50) }.into())
            .collect();
        database.must(doc! { "insert": "c", "documents": documents });
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let service = &database.service;
    let must = |connection: &mut Connection, command: Document| {
        let reply = run_over(service, connection, command.clone());
        let is_ok = reply.get("ok").is_some_and(ValueRef::truthy) && reply.get("writeErrors").is_none();
        assert!(is_ok, "{command:?} gave {reply:?}");
        reply
    };
    let sum = |connection: &mut Connection, hint: Document| {
        let stages = vec![
            Value::from(doc! { "$match": doc! { "balance": doc! { "$gte": -1_000_000 } } }),
            doc! { "$group": doc! { "_id": Value::Null, "n": doc! { "$sum": 1 }, "sum": doc! { "$sum": "$balance" } } }
                .into(),
        ];
        let command = doc! { "aggregate": "c", "pipeline": stages, "cursor": doc! {}, "hint": hint };
        let reply = must(connection, command);
        let cursor = reply
            .get("cursor")
            .and_then(|cursor| cursor.as_document())
            .expect("a cursor");
        format!("{:?}", cursor.get("firstBatch"))
    };
    let mut reader = Connection::new(service, "reader");
    let expected = sum(&mut reader, doc! { "$natural": 1 });
    std::thread::scope(|scope| {
        let transfers = scope.spawn(|| {
            let mut own = Connection::new(service, "transfers");
            let mut random = Random::new(11);
            for number in 0..250i64 {
                let (from, to) = (
                    random.below(ACCOUNTS as usize) as i64,
                    random.below(ACCOUNTS as usize) as i64,
                );
                let change = |id: i64, by: i32| {
                    let updates = vec![Value::from(
                        doc! { "q": doc! { "_id": id }, "u": doc! { "$inc": doc! { "balance": by } } },
                    )];
                    doc! { "update": "c", "updates": updates }
                };
                must(&mut own, transaction(change(from, -7), number, true));
                must(&mut own, transaction(change(to, 7), number, false));
                must(
                    &mut own,
                    transaction(doc! { "commitTransaction": 1, "$db": "admin" }, number, false),
                );
                if number % 25 == 0 {
                    service.engine.checkpoint().expect("a checkpoint");
                }
            }
        });
        let mut readings = 0;
        while !transfers.is_finished() || readings < 20 {
            assert_eq!(sum(&mut reader, doc! { "$columns": 1 }), expected);
            readings += 1;
            if readings % 7 == 0 {
                service.columns.settle();
            }
        }
        transfers.join().expect("all transfers were made");
    });
    assert_eq!(sum(&mut reader, doc! { "$natural": 1 }), expected);
    let figures = database.service.columns.figures();
    assert!(figures.built + figures.merged > 1, "{figures:?}");
}

/// A helper looks which rows match while others are counted or grouped, and nothing is counted twice or left out.
#[test]
fn rows_that_a_helper_picks_are_those_that_match() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    let mut random = Random::new(23);
    for from in (0..12_000).step_by(1000) {
        let documents: Vec<Value> = (from..from + 1000).map(|id| document(&mut random, id).into()).collect();
        database.must(doc! { "insert": "c", "documents": documents });
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let (columns, documents) = (doc! { "$columns": 1 }, doc! { "$natural": 1 });
    answer(
        &mut database,
        vec![doc! { "$count": "n" }.into()],
        Some(columns.clone()),
    );
    database.service.columns.settle();
    database.must(doc! { "delete": "c", "deletes": vec![Value::from(doc! { "q": doc! { "_id": 777 }, "limit": 1 })] });
    let mut helped = false;
    for round in 0..200 {
        let filter = condition(&mut random, 2);
        let rare = doc! { "g": random.below(700) as i32 - 300, "$or": vec![Value::from(filter.clone()), doc! { "f": true }.into()] };
        let count = doc! { "count": "c", "query": filter };
        let group = vec![
            Value::from(doc! { "$match": rare }),
            doc! { "$group": doc! { "_id": "$a", "n": doc! { "$sum": 1 }, "k": doc! { "$max": "$i" } } }.into(),
        ];
        let group = doc! { "aggregate": "c", "pipeline": group, "cursor": doc! {} };
        for command in [count, group] {
            let by_columns = answer_of(&mut database, command.clone(), Some(columns.clone()));
            let by_documents = answer_of(&mut database, command.clone(), Some(documents.clone()));
            assert_eq!(by_columns, by_documents, "{round}: {command:?}");
            let mut command = command;
            command.push("hint", columns.clone());
            let explained = database.must(doc! { "explain": command, "verbosity": "executionStats" });
            helped |= format!("{explained:?}").contains("\"helpers\": 1");
        }
    }
    // Another test may have the helper now and then.
    let has_idle = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    assert_eq!(helped, has_idle);
}

/// A path with ten types, arrays within arrays, ten thousand paths in a document, and documents of nearly the largest size: what is asked of them by columns is what
/// their documents have.
#[test]
fn odd_documents_are_the_same_by_columns() {
    const DOCUMENTS: i64 = 5000;
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    let of_ten = |id: i64| -> Option<Value> {
        Some(match id % 11 {
            0 => Value::Int32((id % 5) as i32),
            1 => Value::Int64(id % 5),
            2 => Value::Double(id as f64 / 4.0),
            3 => format!("{}", id % 9).into(),
            4 => Value::Bool(id % 2 == 0),
            5 => Value::Null,
            6 => Value::DateTime(id),
            7 => ObjectId([(id % 3) as u8; 12]).into(),
            8 => doc! { "x": id % 3 }.into(),
            9 => vec![
                Value::Int64(id % 4),
                vec![Value::Int64(id % 2), Value::Array(Array::default())].into(),
            ]
            .into(),
            _ => return None,
        })
    };
    let document = |id: i64| {
        let mut out = doc! { "_id": id, "k": id % 7, "i": id };
        if let Some(value) = of_ten(id) {
            out.push("t", value);
        }
        if id % 700 == 3 {
            (0..10_000).for_each(|at| out.push(format!("p{at}"), id + at));
        }
        if id % 2400 == 5 {
            out.push("long", "é".repeat(7 << 20));
        }
        out
    };
    for from in (0..DOCUMENTS).step_by(500) {
        let mut documents: Vec<Value> = Vec::new();
        for id in from..from + 500 {
            match id % 2400 == 5 {
                true => drop(database.must(doc! { "insert": "c", "documents": vec![Value::from(document(id))] })),
                false => documents.push(document(id).into()),
            }
        }
        database.must(doc! { "insert": "c", "documents": documents });
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let group = |id: Value| {
        let group = doc! { "_id": id, "n": doc! { "$sum": 1 }, "k": doc! { "$sum": "$k" }, "t": doc! { "$max": "$t" } };
        vec![Value::from(doc! { "$group": group })]
    };
    let matched = |filter: Document| {
        let mut stages = group(Value::Null);
        stages.insert(0, doc! { "$match": filter }.into());
        stages
    };
    let pipelines = [
        group("$t".into()),
        group("$t.x".into()),
        group("$t.0".into()),
        group(doc! { "$type": "$t" }.into()),
        group("$p9999".into()),
        group(doc! { "$strLenBytes": doc! { "$ifNull": vec![Value::from("$long"), "".into()] } }.into()),
        group(doc! { "a": "$k", "b": doc! { "$mod": vec![Value::from("$i"), Value::Int32(3)] } }.into()),
        matched(doc! { "t": doc! { "$gte": 2 } }),
        matched(doc! { "t": vec![Value::Int64(1), vec![Value::Int64(1), Value::Array(Array::default())].into()] }),
        matched(doc! { "t": 1 }),
        matched(doc! { "p17": doc! { "$exists": true }, "k": doc! { "$lt": 6 } }),
        matched(doc! { "long": doc! { "$gt": "a" } }),
    ];
    for _ in 0..2 {
        for pipeline in &pipelines {
            let wanted = answer(&mut database, pipeline.clone(), Some(doc! { "$natural": 1 }));
            let found = answer(&mut database, pipeline.clone(), Some(doc! { "$columns": 1 }));
            assert_eq!(found, wanted, "{pipeline:?}");
        }
        database.service.columns.settle();
    }
    let figures = database.service.columns.figures();
    assert!(figures.built > 0, "{figures:?}");
}

#[test]
fn keys_that_are_arithmetic_are_the_same_by_columns() {
    const DOCUMENTS: i64 = 6000;
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    for from in (0..DOCUMENTS).step_by(1000) {
        let documents = (from..from + 1000).map(|id| {
            let i = if id % 1900 == 7 { Value::Null } else { Value::Int64(id * 7919 - 9_000_000) };
            doc! { "_id": id, "a": id as i32 % 100 - 50, "b": id * 7919 - 9_000_000, "c": id as f64 / 8.0 - 90.0, "i": i, "k": format!("k{}", id % 3) }.into()
        });
        let documents: Vec<Value> = documents.collect();
        database.must(doc! { "insert": "c", "documents": documents });
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let two = |name: &str, a: &str, b: Value| -> Value {
        let mut out = Document::new();
        out.push(name, vec![Value::from(a), b]);
        out.into()
    };
    let one = |name: &str, a: Value| -> Value {
        let mut out = Document::new();
        out.push(name, a);
        out.into()
    };
    let keys: Vec<Value> = vec![
        two("$mod", "$b", Value::Int32(24)),
        two("$mod", "$b", Value::Int64(-7)),
        two("$mod", "$a", Value::Int32(7)),
        two("$mod", "$c", Value::Int32(3)),
        two("$mod", "$i", Value::Int32(5)),
        one("$floor", two("$divide", "$b", Value::Int32(1_000_000))),
        one("$ceil", two("$divide", "$a", Value::Int32(7))),
        one("$floor", "$b".into()),
        two("$add", "$a", Value::Int32(i32::MAX)),
        two("$subtract", "$a", "$a".into()),
        two("$multiply", "$a", Value::Double(-0.0)),
        two("$multiply", "$a", Value::Int32(i32::MAX)),
        two("$add", "$a", one("$abs", "$a".into())),
        doc! { "x": two("$mod", "$b", Value::Int32(3)), "y": "$k", "z": doc! { "w": one("$floor", "$c".into()), "v": 1 } }.into(),
    ];
    for pass in 0..2 {
        for key in &keys {
            let group = doc! { "_id": key.clone(), "n": doc! { "$sum": 1 }, "b": doc! { "$max": "$b" } };
            let pipeline = vec![Value::from(doc! { "$group": group })];
            let wanted = answer(&mut database, pipeline.clone(), Some(doc! { "$natural": 1 }));
            let found = answer(&mut database, pipeline.clone(), Some(doc! { "$columns": 1 }));
            assert_eq!(found, wanted, "{key:?}");
        }
        if pass == 0 {
            database.service.columns.settle();
        }
    }
    assert!(database.service.columns.figures().built > 0);
}

/// A pipeline that gives the first few of groups by some key with some fields.
fn first_of(group: &Value, key: &Value, fields: &Document, which: usize) -> Vec<Value> {
    fn leaves(key: &Value, path: &str, out: &mut Vec<String>) {
        match key {
            Value::Document(key) if key.iter().all(|(name, _)| !name.starts_with('$')) => {
                for (name, below) in key.iter() {
                    leaves(&below.to_value(), &format!("{path}.{name}"), out);
                }
            }
            Value::Document(key) if key.get("$literal").is_some() => {}
            _ => out.push(path.to_owned()),
        }
    }
    let operators = ["$subtract", "$add", "$multiply", "$divide"];
    let names: Vec<&str> = fields.iter().map(|(name, _)| name).collect();
    let (first, last) = (names[0], names[names.len() - 1]);
    let mut computed = Document::new();
    computed.push(
        operators[which % 4],
        vec![
            format!("${first}").into(),
            if which.is_multiple_of(3) {
                Value::Int32(2)
            } else {
                format!("${last}").into()
            },
        ],
    );
    let mut stages = vec![group.clone()];
    let mut by = first;
    let at_least = |path: &str| {
        let mut condition = Document::new();
        condition.push(path, doc! { "$gte": 2 });
        Value::from(doc! { "$match": condition })
    };
    let mut project = doc! { "x": computed };
    match which % 5 {
        0 => {}
        1 => {
            stages.push(doc! { "$project": project }.into());
            by = "x";
        }
        2 => {
            stages.push(doc! { "$addFields": project }.into());
            stages.push(at_least(first));
            by = "x";
        }
        3 => {
            project.push(first, 1);
            stages.push(at_least(last));
            stages.push(doc! { "$project": project }.into());
        }
        _ => {
            stages.push(doc! { "$project": doc! { "x": format!("${last}"), "y": "$_id" } }.into());
            by = "x";
        }
    }
    let mut order = Document::new();
    order.push(by, if which.is_multiple_of(2) { -1 } else { 1 });
    let mut parts = Vec::new();
    leaves(key, "_id", &mut parts);
    parts.into_iter().for_each(|path| order.push(path, 1));
    stages.push(doc! { "$sort": order }.into());
    stages.push(doc! { "$limit": [3, 40, 10_000][which % 3] }.into());
    stages
}

/// Groups whose keys are words: by columns of one type and of several, with gaps, with rows beside them that are read as documents, with equal numbers of
/// different types, under a collation, and with so many groups that they leave memory.
#[test]
fn groups_that_are_numbered_are_the_same_by_columns() {
    const DOCUMENTS: i64 = 9_000;
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    for from in (0..DOCUMENTS).step_by(1000) {
        let documents = (from..from + 1000).map(|id| {
            let mut out = doc! {
                "_id": id, "few": id as i32 % 7, "user": format!("{}ser {}", if id % 2 == 0 { 'u' } else { 'U' }, id * 31 % 2000),
                "at": Value::DateTime(1_700_000_000_000 + id * 977), "day": Value::DateTime(1_700_000_000_000 + id % 300 * 86_400_000),
                "big": id * id, "flag": id % 3 == 0, "price": Value::Decimal128(Decimal128::parse(&format!("{}.25", id % 90)).expect("a number").0),
            };
            // Of another type from one segment to the next.
            let part = id / 3000;
            out.push("mixed", match part { 0 => Value::Int32(id as i32 % 400), 1 => Value::Int64(id % 400), _ => Value::Double((id % 400) as f64) });
            if id % 11 != 3 {
                out.push("gap", if id % 11 == 4 { Value::Null } else { Value::Int64(id % 900) });
            }
            out.into()
        });
        let documents: Vec<Value> = documents.collect();
        database.must(doc! { "insert": "c", "documents": documents });
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let of = |name: &str, path: &str| -> Value {
        let mut out = Document::new();
        out.push(name, path);
        out.into()
    };
    let two = |name: &str, a: &str, b: Value| -> Document {
        let mut out = Document::new();
        out.push(name, vec![Value::from(a), b]);
        out
    };
    let keys: Vec<Value> = vec![
        "$user".into(),
        "$few".into(),
        "$day".into(),
        "$price".into(),
        "$gap".into(),
        "$mixed".into(),
        "$nothing".into(),
        doc! { "u": "$user", "f": "$few" }.into(),
        doc! { "u": "$user", "g": "$gap" }.into(),
        doc! { "x": doc! { "d": "$day", "b": "$flag" }, "one": doc! { "$literal": 1 }, "again": "$day" }.into(),
        doc! { "f": "$few" }.into(),
        "$gap".into(),
        // Computed, of one type and of several, equal ones of different types and signs, missing ones, of several paths.
        doc! { "$hour": "$at" }.into(),
        doc! { "u": "$user", "h": doc! { "$mod": vec![doc! { "$floor": two("$divide", "$big", 1000.into()) }.into(), Value::Int32(24)] } }.into(),
        doc! { "d": doc! { "$dateTrunc": doc! { "date": "$at", "unit": "minute" } }, "u": "$user" }.into(),
        two("$add", "$mixed", 0.into()).into(),
        doc! { "m": two("$add", "$mixed", 0.into()), "u": "$user" }.into(),
        doc! { "z": two("$multiply", "$few", Value::Double(-0.0)), "u": "$user" }.into(),
        two("$multiply", "$few", Value::Int32(i32::MAX / 3)).into(),
        doc! { "$ifNull": vec!["$gap".into(), Value::Null] }.into(),
        doc! { "g": doc! { "$ifNull": vec![Value::from("$gap"), "$$REMOVE".into()] }, "f": "$few" }.into(),
        doc! { "$cond": vec![Value::from("$flag"), "$few".into(), "$mixed".into()] }.into(),
        doc! { "$concat": vec![Value::from("$user"), "-".into(), doc! { "$toString": "$few" }.into()] }.into(),
        doc! { "l": vec![Value::from("$few"), "$flag".into()], "b": two("$mod", "$big", Value::Int64(700)) }.into(),
        two("$mod", "$big", Value::Int64(5)).into(),
    ];
    let fields: Vec<Document> = vec![
        doc! { "n": doc! { "$sum": 1 } },
        doc! { "n": doc! { "$count": doc! {} }, "two": doc! { "$sum": Value::Int64(2) } },
        doc! { "a": of("$min", "$at"), "b": of("$max", "$at"), "c": of("$min", "$big"), "d": of("$max", "$few") },
        doc! { "a": of("$sum", "$big"), "b": of("$avg", "$big"), "c": of("$sum", "$few"), "d": of("$avg", "$gap") },
        doc! { "a": of("$min", "$mixed"), "b": of("$max", "$mixed"), "c": of("$sum", "$mixed"), "d": of("$avg", "$mixed") },
        doc! { "a": of("$min", "$gap"), "b": of("$sum", "$gap"), "c": of("$max", "$nothing") },
        doc! { "a": of("$min", "$user"), "b": of("$sum", "$price"), "c": of("$sum", "$user") },
    ];
    let mut helpers = 0;
    for pass in 0..4 {
        match pass {
            0 => drop(answer(
                &mut database,
                vec![doc! { "$group": doc! { "_id": "$few" } }.into()],
                None,
            )),
            // Some are read as documents from now on, between others and with numbers of other types.
            2 => {
                let set = |value: Value| -> Document {
                    doc! { "$set": doc! { "mixed": value.clone(), "few": value } }
                };
                let which = |divisor: i32, rest: i32| doc! { "_id": doc! { "$mod": vec![Value::Int32(divisor), Value::Int32(rest)] } };
                let updates: Vec<Value> = vec![
                    doc! { "q": which(2000, 3), "u": set(Value::Double(3.0)), "multi": true }.into(),
                    doc! { "q": which(3000, 8), "u": set(Value::Int64(3)), "multi": true }.into(),
                    // As little as a long that comes before, and equal to the key of a group.
                    doc! { "q": doc! { "_id": 8903 }, "u": doc! { "$set": doc! { "few": 3, "gap": 0.0 } } }.into(),
                    doc! { "q": doc! { "_id": 8906 }, "u": doc! { "$set": doc! { "gap": 500.0 } } }.into(),
                ];
                database.must(doc! { "update": "c", "updates": updates });
            }
            // Groups leave memory.
            3 => drop(database.must(
                doc! { "setParameter": 1, "internalQueryMaxBlockingSortMemoryUsageBytes": 60_000, "$db": "admin" },
            )),
            _ => {}
        }
        database.service.columns.settle();
        for (at, key) in keys.iter().enumerate() {
            for fields in fields
                .iter()
                .skip((at + 2 * pass) % 3)
                .step_by(if at < 12 { 3 } else { 9 })
            {
                let mut group = doc! { "_id": key.clone() };
                fields
                    .iter()
                    .for_each(|(name, value)| group.push(name, value.to_value()));
                let pipeline = vec![Value::from(doc! { "$group": group })];
                // Groups of groups, of those that are columns and of others.
                if (at + pass).is_multiple_of(3) {
                    let id = match key {
                        Value::Document(key) => match key.iter().next() {
                            Some((name, _)) if !name.starts_with('$') => format!("$_id.{name}"),
                            _ => "$_id".to_owned(),
                        },
                        _ => "$_id".to_owned(),
                    };
                    let mut above = doc! { "_id": id, "groups": doc! { "$sum": 1 } };
                    let names = ["n", "two", "a", "b", "c", "d"]
                        .iter()
                        .filter(|name| fields.get(name).is_some());
                    for (name, by) in names.zip(["$sum", "$max", "$min"]) {
                        above.push(format!("{name}s"), of(by, &format!("${name}")));
                    }
                    let pipeline = vec![pipeline[0].clone(), doc! { "$group": above }.into()];
                    let wanted = answer(&mut database, pipeline.clone(), Some(doc! { "$natural": 1 }));
                    let found = answer(&mut database, pipeline.clone(), Some(doc! { "$columns": 1 }));
                    assert!(
                        found == wanted,
                        "{pass}: {pipeline:?}: {} and {} groups",
                        found.len(),
                        wanted.len()
                    );
                }
                // The first of an order of groups, of what is computed of them and of those that match.
                if (at + pass).is_multiple_of(2) {
                    let pipeline = first_of(&pipeline[0], key, fields, (at + pass) / 2);
                    let command =
                        doc! { "aggregate": "c", "pipeline": pipeline, "cursor": doc! { "batchSize": 1_000_000 } };
                    let wanted = outcome_of(&mut database, &command, doc! { "$natural": 1 });
                    let found = outcome_of(&mut database, &command, doc! { "$columns": 1 });
                    assert_eq!(found, wanted, "{pass}: {command:?}");
                }
                let collated = (at == 0).then(|| doc! { "locale": "en", "strength": 2 });
                for collation in [None].into_iter().chain(collated.map(Some)) {
                    let mut command = doc! { "aggregate": "c", "pipeline": pipeline.clone(), "cursor": doc! { "batchSize": 1_000_000 } };
                    collation
                        .into_iter()
                        .for_each(|collation| command.push("collation", collation));
                    let wanted = answer_of(&mut database, command.clone(), Some(doc! { "$natural": 1 }));
                    let found = answer_of(&mut database, command, Some(doc! { "$columns": 1 }));
                    let differs = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
                    assert!(
                        found == wanted,
                        "{pass}: {key:?} {fields:?}: {} and {} groups, {differs:?}",
                        found.len(),
                        wanted.len()
                    );
                }
                if pass == 1 {
                    let command = doc! { "aggregate": "c", "pipeline": pipeline, "cursor": doc! {}, "hint": doc! { "$columns": 1 } };
                    let plan = database.must(doc! { "explain": command, "verbosity": "executionStats" });
                    helpers += usize::from(format!("{plan:?}").contains("helpers"));
                }
            }
        }
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(processors == 1 || helpers > 5, "{helpers} groups with a helper");
}
