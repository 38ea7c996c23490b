use super::*;
use crate::env::{OpContext, Scope};
use nestor_model::{Document, doc};

fn parse(filter: &Document) -> MatchExpr {
    MatchExpr::parse(filter.as_ref(), &mut Scope::new()).unwrap_or_else(|e| panic!("{filter:?}: {e}"))
}

fn matches(filter: Document, doc: Document) -> bool {
    // Raw and owned documents, parsed and normalized expressions must agree.
    let raw = Document::from(doc.to_raw());
    let op = OpContext::default();
    let expr = parse(&filter);
    let answers = [&doc, &raw].map(|d| expr.matches(d.as_ref(), &op).expect("evaluates"));
    let normalized = expr.normalize();
    let also = [&doc, &raw].map(|d| normalized.matches(d.as_ref(), &op).expect("evaluates"));
    assert!(answers[0] == answers[1] && answers == also, "{filter:?} on {doc:?}");
    answers[0]
}

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::Array(items.into_iter().collect())
}

#[test]
fn comparisons_stay_within_a_type_class() {
    let cases = [
        (doc! { "$gt": 5 }, Value::from(6.5), true),
        (doc! { "$gt": 5 }, "6".into(), false),
        (doc! { "$gte": 0 }, false.into(), false),
        (doc! { "$gte": Value::Null }, Value::Null, true),
        (doc! { "$gt": Value::Null }, Value::Null, false),
        (doc! { "$lte": f64::NAN }, Value::Double(f64::NAN), true),
        (doc! { "$lt": 5 }, Value::Double(f64::NAN), false),
        (doc! { "$gt": Value::MinKey }, "x".into(), true),
        (doc! { "$gt": Value::MaxKey }, 1.into(), false),
        (doc! { "$lt": Value::MaxKey }, 1.into(), true),
        (doc! { "$eq": Value::Null }, Value::Undefined, false),
        (doc! { "$ne": 1 }, 2.into(), true),
        (doc! { "$gt": doc! {} }, doc! { "x": 1 }.into(), true),
    ];
    for (condition, value, expected) in cases {
        assert_eq!(
            matches(doc! { "a": condition.clone() }, doc! { "a": value.clone() }),
            expected,
            "{condition:?} {value:?}"
        );
    }
    assert!(
        matches(doc! { "a": Value::Null }, doc! {}) && matches(doc! { "a": doc! { "$lte": Value::Null } }, doc! {})
    );
    assert!(!matches(doc! { "a": doc! { "$gt": 1 } }, doc! {}));
}

#[test]
fn arrays_match_by_element_and_as_a_whole() {
    let two = || list([1.into(), 2.into()]);
    assert!(matches(doc! { "a": 1 }, doc! { "a": two() }));
    assert!(matches(doc! { "a": two() }, doc! { "a": two() }));
    assert!(matches(doc! { "a": two() }, doc! { "a": list([two()]) }));
    assert!(!matches(doc! { "a": doc! { "$ne": 1 } }, doc! { "a": two() }));
    assert!(matches(doc! { "a": doc! { "$gt": 1, "$lt": 2 } }, doc! { "a": two() }));
    assert!(!matches(
        doc! { "a": doc! { "$elemMatch": doc! { "$gt": 1, "$lt": 2 } } },
        doc! { "a": two() }
    ));
    assert!(!matches(doc! { "a.b": Value::Null }, doc! { "a": list([1.into()]) }));
    assert!(matches(
        doc! { "a.b": doc! { "$exists": false } },
        doc! { "a": list([1.into()]) }
    ));
    assert!(matches(doc! { "a": doc! { "$size": 2 } }, doc! { "a": two() }));
    assert!(!matches(doc! { "a": doc! { "$size": 1 } }, doc! { "a": two() }));
    assert!(matches(
        doc! { "a": doc! { "$all": list([2.into(), 1.into()]) } },
        doc! { "a": two() }
    ));
    assert!(matches(doc! { "a": doc! { "$type": "array" } }, doc! { "a": list([]) }));
    let nested = doc! { "a": list([list([1.into(), 5.into()])]) };
    assert!(matches(
        doc! { "a": doc! { "$elemMatch": doc! { "$elemMatch": doc! { "$gt": 4 } } } },
        nested.clone()
    ));
    assert!(matches(doc! { "a": doc! { "$elemMatch": doc! { "0": 1 } } }, nested));
}

#[test]
fn parse_errors() {
    let cases = [
        (doc! { "$and": 1 }, 2),
        (doc! { "$or": list([]) }, 2),
        (doc! { "$foo": 1 }, 2),
        (doc! { "a": doc! { "$foo": 1 } }, 2),
        (doc! { "a": doc! { "$gt": 1, "b": 2 } }, 2),
        (doc! { "a": doc! { "$in": 1 } }, 2),
        (doc! { "a": doc! { "$in": list([doc! { "$gt": 1 }.into()]) } }, 2),
        (doc! { "a": doc! { "$not": 1 } }, 2),
        (doc! { "a": doc! { "$not": doc! {} } }, 2),
        (doc! { "a": doc! { "$type": true } }, 14),
        (doc! { "a": doc! { "$size": "x" } }, 2),
        (doc! { "a": doc! { "$mod": list([0.into(), 1.into()]) } }, 2),
        (doc! { "a": doc! { "$options": "i" } }, 2),
        (doc! { "a": doc! { "$regex": 1 } }, 2),
        (doc! { "a": doc! { "$elemMatch": 1 } }, 2),
        (doc! { "a": Value::Undefined }, 2),
        (doc! { "$where": 1 }, 2),
        (
            doc! { "a": doc! { "$elemMatch": doc! { "$and": list([doc! { "$where": "1" }.into()]) } } },
            2,
        ),
        (doc! { "a": doc! { "$near": list([]) } }, 2),
    ];
    for (filter, code) in cases {
        let error = MatchExpr::parse(filter.as_ref(), &mut Scope::new()).expect_err("must not parse");
        assert_eq!(error.code().number(), code, "{filter:?}: {error}");
    }
}

#[test]
fn dbrefs_are_values() {
    let dbref = || doc! { "$ref": "c", "$id": 1 };
    assert!(matches(doc! { "a": dbref() }, doc! { "a": dbref() }));
    assert!(matches(doc! { "a.$id": 1 }, doc! { "a": dbref() }));
    assert!(matches(
        doc! { "a": doc! { "$elemMatch": doc! { "$id": 1 } } },
        doc! { "a": list([dbref().into()]) }
    ));
}

#[test]
fn positions_of_matches() {
    let position = |filter: Document, doc: Document| {
        parse(&filter)
            .matches_with_position(doc.as_ref(), &OpContext::default())
            .expect("evaluates")
            .map(|d| d.position)
    };
    let a = || doc! { "a": list([1.into(), 5.into(), 9.into()]), "b": list([7.into()]) };
    assert_eq!(position(doc! { "a": 5 }, a()), Some(Some(1)));
    assert_eq!(
        position(doc! { "a": doc! { "$elemMatch": doc! { "$gt": 5 } } }, a()),
        Some(Some(2))
    );
    assert_eq!(
        position(doc! { "a": 5, "b": 7 }, a()),
        Some(Some(0)),
        "the last condition decides"
    );
    assert_eq!(position(doc! { "a": doc! { "$ne": 3 } }, a()), Some(None));
    assert_eq!(position(doc! { "a": 3 }, a()), None);
    let nested =
        doc! { "a": list([doc! { "b": list([1.into()]) }.into(), doc! { "b": list([0.into(), 2.into()]) }.into()]) };
    assert_eq!(
        position(doc! { "a.b": 2 }, nested),
        Some(Some(1)),
        "the outermost array counts"
    );
}

#[test]
fn printed_forms() {
    let printed = |filter: Document| format!("{:?}", parse(&filter).normalize().serialize());
    assert_eq!(printed(doc! {}), "{}");
    assert_eq!(
        printed(doc! { "b": doc! { "$gte": 1, "$lte": 5 }, "a": 1 }),
        r#"{"$and": [{"a": {"$eq": 1}}, {"b": {"$lte": 5}}, {"b": {"$gte": 1}}]}"#
    );
    assert_eq!(
        printed(doc! { "a": doc! { "$ne": 1 } }),
        r#"{"a": {"$not": {"$eq": 1}}}"#
    );
    assert_eq!(
        printed(doc! { "$or": list([doc! { "a": 2 }.into(), doc! { "a": 1 }.into(), doc! { "a": 2.0 }.into()]) }),
        r#"{"a": {"$in": [1, 2]}}"#
    );
    assert_eq!(
        printed(doc! { "a": doc! { "$in": list([3.into()]) } }),
        r#"{"a": {"$eq": 3}}"#
    );
    assert_eq!(
        printed(doc! { "a": doc! { "$in": list([]) } }),
        r#"{"$alwaysFalse": 1}"#
    );
    assert_eq!(
        printed(
            doc! { "$and": list([doc! { "$and": list([doc! { "a": 1 }.into()]) }.into(), doc! { "b": 1 }.into()]) }
        ),
        r#"{"$and": [{"a": {"$eq": 1}}, {"b": {"$eq": 1}}]}"#
    );
    assert_eq!(
        printed(doc! { "a": doc! { "$elemMatch": doc! { "$gte": 1, "$lt": 2 } } }),
        r#"{"a": {"$elemMatch": {"$lt": 2, "$gte": 1}}}"#
    );
}

#[test]
fn strings_compare_by_the_collator() {
    let matches = |filter: Document, doc: Document| {
        let spec = doc! { "locale": "en", "strength": 2 };
        let collator = Collator::parse(spec.as_ref())
            .expect("is a collation")
            .expect("is not simple");
        let expr = MatchExpr::parse(filter.as_ref(), &mut Scope::new().with_collator(Some(collator))).expect("parses");
        expr.normalize()
            .matches(doc.as_ref(), &OpContext::default())
            .expect("evaluates")
    };
    assert!(matches(doc! { "a": "ABC" }, doc! { "a": "abc" }));
    assert!(matches(doc! { "a": doc! { "$gt": "B" } }, doc! { "a": "c" }));
    assert!(matches(
        doc! { "a": doc! { "$in": list(["X".into(), "ABC".into()]) } },
        doc! { "a": "abc" }
    ));
    assert!(matches(
        doc! { "a": doc! { "x": list(["Y".into()]) } },
        doc! { "a": doc! { "x": list(["y".into()]) } }
    ));
    assert!(matches(
        doc! { "a": doc! { "$elemMatch": doc! { "$eq": "Y" } } },
        doc! { "a": list(["y".into()]) }
    ));
    assert!(
        !matches(doc! { "A": "abc" }, doc! { "a": "abc" }),
        "names are not collated"
    );
    assert!(
        !matches(doc! { "a": doc! { "$regex": "ABC" } }, doc! { "a": "abc" }),
        "patterns are not collated"
    );
}

#[test]
fn contexts_refuse_operators() {
    let code = |filter: Document, context| {
        let parsed = MatchExpr::parse_in(filter.as_ref(), &mut Scope::new(), context);
        parsed.map_err(|e| e.code().number()).err()
    };
    let near = || doc! { "a": doc! { "$near": list([]) } };
    assert_eq!(code(near(), Context::Pipeline), Some(5626500));
    assert_eq!(code(near(), Context::Validator), Some(5626500));
    assert_eq!(
        code(doc! { "$text": doc! { "$search": "x" } }, Context::Validator),
        Some(2)
    );
    assert_eq!(code(doc! { "$expr": true }, Context::Element), Some(2));
    assert_eq!(code(doc! { "$expr": true }, Context::Validator), None);
}

#[test]
fn many_equalities_on_one_path() {
    let numbers = |n: i32| list((0..n).map(Value::from));
    let all = |operands: Value| doc! { "a": doc! { "$all": operands } };
    assert!(matches(all(numbers(20)), doc! { "a": numbers(20) }));
    assert!(!matches(all(numbers(20)), doc! { "a": numbers(19) }));
    let mut with_null: Vec<Value> = (0..20).map(Value::from).collect();
    with_null.extend([
        Value::Null,
        Value::Double(f64::NAN),
        Value::Double(3.0),
        list([numbers(1)]),
    ]);
    let operands = list(with_null.clone());
    assert!(!matches(all(operands.clone()), doc! { "a": numbers(20) }));
    assert!(!matches(
        all(operands.clone()),
        doc! { "a": list(with_null[..21].to_vec()) }
    ));
    assert!(matches(all(operands), doc! { "a": list(with_null) }));
    assert!(matches(all(list(vec![Value::Null; 20])), doc! {}));
    let details =
        parse(&all(numbers(20))).matches_with_position(doc! { "a": numbers(30) }.as_ref(), &OpContext::default());
    assert_eq!(details.expect("evaluates").and_then(|d| d.position), Some(19));
}
