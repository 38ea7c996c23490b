//! The update language against the reference evaluator: random documents with arrays in odd places,
//! random updates. Same document or same error; and the oplog's diff leads to the same document.

use nestor_model::{Document, Value, ValueRef, doc};
use nestor_query::update::{Applied, Update, UpdateOptions, diff};
use nestor_query::{OpContext, Scope};
use nestor_testkit::random::Random;
use nestor_testkit::reference;

const STEPS: [&str; 14] = [
    "a", "b", "c", "d", "0", "1", "2", "a", "b", "c", "5", "$", "$[]", "$[e]",
];

fn path(random: &mut Random) -> String {
    if random.one_in(2) {
        return plain_path(random);
    }
    let mut path = (*random.pick(&["a", "b", "c", "d", "0", "1", "_id"])).to_owned();
    let mut positional = false;
    for _ in 0..random.below(3) {
        let step = *random.pick(&STEPS);
        if step == "$" && positional {
            continue;
        }
        positional |= step == "$";
        path.push('.');
        path.push_str(step);
    }
    path
}

fn plain_path(random: &mut Random) -> String {
    let mut path = (*random.pick(&["a", "b", "c", "d"])).to_owned();
    for _ in 0..random.below(3) {
        path.push('.');
        path.push_str(random.pick::<&str>(&["a", "b", "c", "0"]));
    }
    path
}

fn operand(random: &mut Random, operator: &str) -> Value {
    match operator {
        "$inc" | "$mul" => loop {
            let value = random.scalar();
            if value.as_ref().is_number() {
                return value;
            }
        },
        "$pop" => Value::Int32(if random.one_in(2) { 1 } else { -1 }),
        "$pullAll" => Value::Array((0..3).map(|_| random.value(1)).collect()),
        // Conditions are match expressions, which have tests of their own.
        "$pull" => random.scalar(),
        "$addToSet" | "$push" => random.value(1),
        "$unset" => Value::from(""),
        _ => random.value(2),
    }
}

fn update(random: &mut Random) -> Document {
    let mut update = Document::new();
    for _ in 0..1 + random.below(2) {
        let operator = *random.pick(&[
            "$set",
            "$set",
            "$set",
            "$unset",
            "$inc",
            "$mul",
            "$min",
            "$max",
            "$push",
            "$addToSet",
            "$pop",
            "$pull",
            "$pullAll",
            "$rename",
            "$setOnInsert",
        ]);
        if update.get(operator).is_some() {
            continue;
        }
        let mut fields = Document::new();
        for _ in 0..1 + random.below(2) {
            if operator == "$rename" {
                let (from, to) = (plain_path(random), plain_path(random));
                let (a, b): (Vec<_>, Vec<_>) = (from.split('.').collect(), to.split('.').collect());
                if a.starts_with(&b) || b.starts_with(&a) {
                    continue;
                }
                fields.set(&from, Value::from(to));
            } else {
                let field = path(random);
                let operand = operand(random, operator);
                fields.set(&field, operand);
            }
        }
        update.push(operator, fields);
    }
    update
}

fn uses_filter(update: &Document) -> bool {
    update.iter().any(|(_, fields)| {
        fields
            .as_document()
            .is_some_and(|fields| fields.iter().any(|(path, _)| path.split('.').any(|s| s == "$[e]")))
    })
}

/// True when the update changed the document.
fn check(seed: u64) -> bool {
    let mut random = Random::new(seed);
    let mut before = random.document(3);
    if random.one_in(2) {
        let id = random.scalar();
        before.fields_mut().insert(0, ("_id".into(), id));
    }
    let update = update(&mut random);
    let position = if random.one_in(3) { None } else { Some(random.below(3)) };
    let filters: Value = if uses_filter(&update) {
        vec![Value::from(doc! {"e": doc! {"$gte": 1}})].into()
    } else {
        Vec::new().into()
    };
    let expected = reference::update::apply(&before, &update, position, &[("e", 1)]);
    let raw = before.to_raw();
    let parsed = Update::parse(
        ValueRef::from(&update),
        UpdateOptions {
            array_filters: filters.as_array().map(|f| f.as_ref()),
            ..UpdateOptions::default()
        },
        &mut Scope::new(),
    );
    let got = parsed.and_then(|u| u.apply(raw.as_raw(), position, &OpContext::default()));
    let case = || format!("seed {seed}\n{before:?}\n{update:?}\nposition {position:?}");
    match (got, expected) {
        (Ok(Applied::NoChange), Ok(expected)) => {
            assert_eq!(raw, expected.to_raw(), "{}", case());
            false
        }
        (Ok(Applied::Changed(changed)), Ok(expected)) => {
            assert_eq!(changed.doc, expected.to_raw(), "{}", case());
            let entry = changed.diff.expect("operators always make a diff");
            let replayed = diff::apply(raw.as_raw(), entry.as_raw()).expect("own diff");
            assert_eq!(replayed, changed.doc, "diff {entry:?}\n{}", case());
            true
        }
        (Err(error), Err(code)) => {
            assert_eq!(error.code().number(), code, "{error}\n{}", case());
            false
        }
        (got, expected) => panic!("got {got:?}\nexpected {expected:?}\n{}", case()),
    }
}

#[test]
fn same_document_same_error() {
    const CASES: u64 = 60_000;
    let changed = (0..CASES).filter(|seed| check(*seed)).count() as u64;
    assert!(
        changed > CASES / 4,
        "the generator makes updates that do something: {changed}"
    );
}

/// A computed diff leads from any document to any other.
#[test]
fn computed_diffs_lead_there() {
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let (a, b) = (random.document(3).to_raw(), random.document(3).to_raw());
        match diff::compute(a.as_raw(), b.as_raw()) {
            None => assert_eq!(a, b, "seed {seed}"),
            Some(entry) => {
                let replayed = diff::apply(a.as_raw(), entry.as_raw()).expect("own diff");
                assert_eq!(replayed, b, "seed {seed}: {a:?} to {b:?} by {entry:?}");
            }
        }
    }
}

const WILD_STEPS: [&str; 22] = [
    "a",
    "b",
    "0",
    "1",
    "01",
    "-1",
    "4294967296",
    "99999999999999999999",
    "$",
    "$[]",
    "$[e]",
    "$[",
    "$[a.b]",
    "$x",
    "_id",
    "",
    "é",
    "$each",
    "$ref",
    "2",
    "a b",
    "00",
];

fn wild_path(random: &mut Random) -> String {
    let steps: Vec<&str> = (0..1 + random.below(3)).map(|_| *random.pick(&WILD_STEPS)).collect();
    steps.join(".")
}

/// Any value, often one that an operator may take for its own.
fn wild_value(random: &mut Random) -> Value {
    let names = [
        "$each",
        "$sort",
        "$slice",
        "$position",
        "$type",
        "and",
        "or",
        "xor",
        "$gt",
        "$in",
        "$elemMatch",
        "$not",
        "$eq",
        "$regex",
        "$size",
    ];
    match random.below(4) {
        0 => {
            let mut doc = Document::new();
            for _ in 0..random.below(4) {
                let value = random.value(2);
                doc.set(random.pick::<&str>(&names), value);
            }
            doc.into()
        }
        1 => Value::from(wild_path(random)),
        _ => random.value(2),
    }
}

/// Whatever comes: a document, an error, never a panic; and what comes out is BSON that the diff leads to.
#[test]
fn wild_updates_do_no_harm() {
    for seed in 0..40_000 {
        let mut random = Random::new(seed);
        let before = random.document(3).to_raw();
        let update: Value = if random.one_in(6) {
            let stages = ["$set", "$unset", "$project", "$replaceWith", "$replaceRoot", "$match"];
            let stages: Vec<Value> = (0..random.below(3))
                .map(|_| {
                    let mut stage = Document::new();
                    let value = if random.one_in(2) {
                        let mut spec = Document::new();
                        spec.set(&wild_path(&mut random), random.value(1));
                        spec.into()
                    } else {
                        wild_value(&mut random)
                    };
                    stage.push(*random.pick(&stages), value);
                    stage.into()
                })
                .collect();
            stages.into()
        } else {
            let operators = [
                "$set",
                "$unset",
                "$inc",
                "$mul",
                "$min",
                "$max",
                "$push",
                "$addToSet",
                "$pop",
                "$pull",
                "$pullAll",
                "$rename",
                "$setOnInsert",
                "$bit",
                "$currentDate",
                "a",
            ];
            let mut update = Document::new();
            for _ in 0..1 + random.below(2) {
                let mut fields = Document::new();
                for _ in 0..random.below(3) {
                    let path = wild_path(&mut random);
                    let value = wild_value(&mut random);
                    fields.set(&path, value);
                }
                update.set(random.pick::<&str>(&operators), fields);
            }
            update.into()
        };
        let filters: Value = (0..random.below(3))
            .map(|_| {
                let mut filter = Document::new();
                let name = *random.pick(&["e", "e.a", "x", "$or", ""]);
                filter.push(name, wild_value(&mut random));
                Value::from(filter)
            })
            .collect::<Vec<_>>()
            .into();
        let options = UpdateOptions {
            array_filters: filters.as_array().filter(|f| !f.is_empty()).map(|f| f.as_ref()),
            ..UpdateOptions::default()
        };
        let Ok(parsed) = Update::parse(update.as_ref(), options, &mut Scope::new()) else {
            continue;
        };
        let op = OpContext::default();
        let position = if random.one_in(2) { None } else { Some(random.below(3)) };
        if let Ok(Applied::Changed(changed)) = parsed.apply(before.as_raw(), position, &op) {
            let case = || format!("seed {seed}: {before:?} {update:?}");
            assert!(
                nestor_model::RawDoc::validate(changed.doc.as_bytes()).is_ok(),
                "{}",
                case()
            );
            if let Some(entry) = changed.diff {
                let replayed = diff::apply(before.as_raw(), entry.as_raw()).expect("own diff");
                assert_eq!(replayed, changed.doc, "diff {entry:?} {}", case());
            }
        }
        let mut filter = Document::new();
        for _ in 0..random.below(3) {
            let path = wild_path(&mut random);
            let value = wild_value(&mut random);
            filter.set(&path, value);
        }
        if let Ok(made) = parsed.upsert_document(filter.as_ref(), &op) {
            assert!(
                nestor_model::RawDoc::validate(made.as_bytes()).is_ok(),
                "seed {seed}: {filter:?}"
            );
            assert_eq!(
                made.as_raw().iter().next().map(|(name, _)| name),
                Some("_id"),
                "seed {seed}"
            );
        }
    }
}
