//! A collation is the order by bytes of sort keys: whatever compares values under a collation answers as it
//! does without one where every string, in documents and operands, is replaced by its sort key.

use nestor_model::{Array, Document, Str, Value, ValueRef, doc};
use nestor_query::collation::{Collator, Key, stored};
use nestor_query::expr::Expr;
use nestor_query::sort::SortSpec;
use nestor_query::update::{Applied, Update, UpdateOptions};
use nestor_query::{Env, MatchExpr, OpContext, Scope};
use nestor_testkit::random::Random;
use std::collections::{BTreeSet, HashSet};

fn collators() -> Vec<Collator> {
    [
        doc! { "locale": "en", "strength": 1 },
        doc! { "locale": "en", "strength": 2 },
        doc! { "locale": "sv" },
        doc! { "locale": "fr_CA" },
        doc! { "locale": "en", "strength": 1, "caseLevel": true, "numericOrdering": true },
        doc! { "locale": "en", "alternate": "shifted", "strength": 2 },
    ]
    .iter()
    .map(|spec| {
        Collator::parse(spec.as_ref())
            .expect("is a collation")
            .expect("is not simple")
    })
    .collect()
}

fn scalar(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Int32(random.below(3) as i32),
        1 => random
            .pick(&[Value::Null, Value::Bool(true), Value::Double(1.5)])
            .clone(),
        _ => Value::String(Str::from(*random.pick(&[
            "", "a", "A", "á", "ab", "Ab", "a b", "b", "B", "10", "9", "z", "å", "cote", "côte", "coté",
        ]))),
    }
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(5) {
        0 if depth > 0 => document(random, depth - 1).into(),
        1 if depth > 0 => array(random, depth - 1).into(),
        _ => scalar(random),
    }
}

fn array(random: &mut Random, depth: usize) -> Array {
    (0..random.below(4)).map(|_| value(random, depth)).collect()
}

fn document(random: &mut Random, depth: usize) -> Document {
    let mut doc = Document::new();
    for name in ["a", "b", "B", "c"] {
        if !random.one_in(4) {
            doc.push(name, value(random, depth));
        }
    }
    doc
}

/// With sort keys for strings. Names of fields and operators stay.
fn folded(doc: &Document, collator: &Collator) -> Document {
    match stored(ValueRef::Document(doc.as_ref()), collator) {
        Some(Value::Document(folded)) => folded,
        _ => doc.clone(),
    }
}

fn filter(random: &mut Random, depth: usize) -> Document {
    let path = *random.pick(&["a", "b", "a.b", "c.a", "c"]);
    let operator = *random.pick(&[
        "$eq",
        "$ne",
        "$gt",
        "$gte",
        "$lt",
        "$lte",
        "$in",
        "$nin",
        "$all",
        "$elemMatch",
        "$or",
    ]);
    let mut out = Document::new();
    match operator {
        "$or" if depth > 0 => {
            let children: Array = (0..2).map(|_| Value::Document(filter(random, depth - 1))).collect();
            out.push("$or", children);
        }
        "$elemMatch" | "$or" => out.push(
            path,
            doc! { "$elemMatch": doc! { "$gte": scalar(random), "$lt": scalar(random) } },
        ),
        "$in" | "$nin" | "$all" => {
            let mut condition = Document::new();
            condition.push(operator, array(random, 1));
            out.push(path, condition);
        }
        _ => {
            let mut condition = Document::new();
            condition.push(operator, value(random, 1));
            out.push(path, condition);
        }
    }
    out
}

#[test]
fn filters() {
    let mut random = Random::new(1);
    let op = OpContext::default();
    let mut hits = 0;
    for collator in collators() {
        for _ in 0..400 {
            let (filter, doc) = (filter(&mut random, 2), document(&mut random, 2));
            let parse = |filter: &Document, collator: Option<Collator>| {
                MatchExpr::parse(filter.as_ref(), &mut Scope::new().with_collator(collator)).expect("a filter")
            };
            let under = parse(&filter, Some(collator.clone()));
            let plain = parse(&folded(&filter, &collator), None);
            let wanted = plain.matches(folded(&doc, &collator).as_ref(), &op).expect("evaluates");
            hits += usize::from(wanted);
            for under in [under.clone(), under.normalize()] {
                let matched = under.matches(doc.as_ref(), &op).expect("evaluates");
                assert_eq!(matched, wanted, "{filter:?} on {doc:?} under {collator:?}");
            }
        }
    }
    assert!(hits > 200, "few filters matched: {hits}");
}

#[test]
fn sorts_and_keys() {
    let mut random = Random::new(2);
    for collator in collators() {
        for _ in 0..40 {
            let docs: Vec<Document> = (0..12).map(|_| document(&mut random, 1)).collect();
            let order = |docs: &[Document], collator: Option<&Collator>| -> Vec<usize> {
                let spec = SortSpec::parse(doc! { "a": 1, "c": -1 }.as_ref())
                    .expect("a sort")
                    .under(collator);
                let mut keyed: Vec<(Vec<Value>, usize)> = Vec::new();
                for (at, doc) in docs.iter().enumerate() {
                    let mut key = Vec::new();
                    // Two arrays at once have no key, in either form.
                    if spec.key(doc.as_ref(), None, &mut key).is_ok() {
                        keyed.push((key.into_iter().map(ValueRef::to_value).collect(), at));
                    }
                }
                keyed.sort_by(|x, y| spec.compare_owned(&x.0, &y.0));
                keyed.into_iter().map(|(_, at)| at).collect()
            };
            let plain: Vec<Document> = docs.iter().map(|doc| folded(doc, &collator)).collect();
            assert_eq!(
                order(&docs, Some(&collator)),
                order(&plain, None),
                "{docs:?} under {collator:?}"
            );
            let keys = |docs: &[Document], collator: Option<&Collator>| -> Vec<Key> {
                docs.iter()
                    .map(|doc| Key::new(doc.get("a").map_or(Value::Null, ValueRef::to_value), collator))
                    .collect()
            };
            let (under, plain) = (keys(&docs, Some(&collator)), keys(&plain, None));
            let distinct = plain.iter().collect::<BTreeSet<_>>().len();
            assert_eq!(
                under.iter().collect::<HashSet<_>>().len(),
                distinct,
                "{docs:?} under {collator:?}"
            );
            assert_eq!(
                under.iter().collect::<BTreeSet<_>>().len(),
                distinct,
                "{docs:?} under {collator:?}"
            );
        }
    }
}

#[test]
fn expressions() {
    let mut random = Random::new(3);
    for collator in collators() {
        for _ in 0..200 {
            let doc = doc! {
                "x": value(&mut random, 1), "y": value(&mut random, 1),
                "s": array(&mut random, 0), "t": array(&mut random, 0),
            };
            let constant = doc! { "$literal": scalar(&mut random) };
            let list = |items: Vec<Value>| Value::from(items);
            for expression in [
                doc! { "$cmp": list(vec!["$x".into(), "$y".into()]) },
                doc! { "$eq": list(vec!["$x".into(), constant.clone().into()]) },
                doc! { "$in": list(vec![constant.clone().into(), "$s".into()]) },
                doc! { "$indexOfArray": list(vec!["$s".into(), constant.clone().into()]) },
                doc! { "$setEquals": list(vec!["$s".into(), "$t".into()]) },
                doc! { "$setIsSubset": list(vec!["$s".into(), "$t".into()]) },
                doc! { "$setUnion": list(vec!["$s".into(), "$t".into()]) },
                doc! { "$setIntersection": list(vec!["$s".into(), "$t".into()]) },
                doc! { "$setDifference": list(vec!["$s".into(), "$t".into()]) },
                doc! { "$max": "$s" },
                doc! { "$min": list(vec!["$x".into(), "$y".into()]) },
                doc! { "$maxN": doc! { "n": 2, "input": "$s" } },
                doc! { "$sortArray": doc! { "input": "$t", "sortBy": 1 } },
            ] {
                let result = |doc: &Document, of: &Document, collator: Option<Collator>| -> Value {
                    let op = OpContext::default().with_collator(collator.clone());
                    let mut scope = Scope::new().with_collator(collator);
                    Expr::parse(ValueRef::Document(of.as_ref()), &mut scope)
                        .expect("an expression")
                        .eval(&mut Env::new(doc.as_ref(), &op))
                        .expect("evaluates")
                };
                let under = result(&doc, &expression, Some(collator.clone()));
                let under = stored(under.as_ref(), &collator).unwrap_or(under);
                // Only the literal is a string to fold; paths are not.
                let mut plain_expression = expression.clone();
                let literal = folded(&constant, &collator);
                for (_, argument) in plain_expression.fields_mut() {
                    if let Value::Array(items) = argument {
                        let swap = |item: ValueRef<'_>| match item {
                            ValueRef::Document(_) => literal.clone().into(),
                            other => other.to_value(),
                        };
                        *argument = items.iter().map(swap).collect::<Vec<Value>>().into();
                    }
                }
                let plain = result(&folded(&doc, &collator), &plain_expression, None);
                assert!(
                    nestor_model::values_equal(&under, &plain),
                    "{expression:?} of {doc:?} is {under:?}, not {plain:?}, under {collator:?}"
                );
            }
        }
    }
}

#[test]
fn updates() {
    let mut random = Random::new(4);
    let mut changes = 0;
    for collator in collators() {
        for _ in 0..200 {
            let doc = doc! { "_id": 1, "a": array(&mut random, 1), "b": scalar(&mut random) };
            let each = doc! { "$each": array(&mut random, 1) };
            let update = match random.below(7) {
                0 => doc! { "$addToSet": doc! { "a": each } },
                1 => doc! { "$pull": doc! { "a": scalar(&mut random) } },
                2 => doc! { "$pull": doc! { "a": doc! { "$gte": scalar(&mut random) } } },
                3 => doc! { "$pullAll": doc! { "a": array(&mut random, 1) } },
                4 => doc! { "$min": doc! { "b": scalar(&mut random) } },
                5 => doc! { "$max": doc! { "b": scalar(&mut random) } },
                _ => {
                    let mut sorted = each;
                    sorted.push("$sort", -1);
                    doc! { "$push": doc! { "a": sorted } }
                }
            };
            let apply = |doc: &Document, update: &Document, collator: Option<Collator>| -> Document {
                let op = OpContext::default().with_collator(collator.clone());
                let mut scope = Scope::new().with_collator(collator);
                let update = Value::Document(update.clone());
                let update = Update::parse(update.as_ref(), UpdateOptions::default(), &mut scope).expect("an update");
                let raw = doc.to_raw();
                match update.apply(raw.as_raw(), None, &op).expect("applies") {
                    Applied::NoChange => doc.clone(),
                    Applied::Changed(changed) => changed.doc.into(),
                }
            };
            let under = folded(&apply(&doc, &update, Some(collator.clone())), &collator);
            let plain = apply(&folded(&doc, &collator), &folded(&update, &collator), None);
            let equal = |a: &Document, b: &Document| {
                nestor_model::values_equal(ValueRef::Document(a.as_ref()), ValueRef::Document(b.as_ref()))
            };
            changes += usize::from(!equal(&plain, &folded(&doc, &collator)));
            assert!(
                equal(&under, &plain),
                "{update:?} of {doc:?} gave {under:?}, not {plain:?}, under {collator:?}"
            );
        }
    }
    assert!(changes > 300, "few updates changed anything: {changes}");
}
