//! The language as a whole: an update, a document, what becomes of it, and that the diff agrees.

use super::*;
use nestor_model::{Document, Value, doc};

/// Applies; checks that the diff leads to the same document.
fn apply(update: Document, before: Document, position: Option<usize>) -> Result<Option<Document>> {
    apply_filtered(update, before, position, Vec::new())
}

fn apply_filtered(
    update: Document,
    before: Document,
    position: Option<usize>,
    filters: Vec<Document>,
) -> Result<Option<Document>> {
    let filters: Value = filters.into_iter().map(Value::from).collect::<Vec<_>>().into();
    let options = UpdateOptions {
        array_filters: filters.as_array().map(nestor_model::Array::as_ref),
        ..UpdateOptions::default()
    };
    let update = Update::parse((&update).into(), options, &mut Scope::new())?;
    let before = before.to_raw();
    match update.apply(before.as_raw(), position, &OpContext::default())? {
        Applied::NoChange => Ok(None),
        Applied::Changed(changed) => {
            assert!(RawDoc::validate(changed.doc.as_bytes()).is_ok());
            if let Some(diff) = &changed.diff {
                let replayed = diff::apply(before.as_raw(), diff.as_raw())?;
                assert_eq!(replayed, changed.doc, "diff {diff:?}");
            }
            Ok(Some(changed.doc.into()))
        }
    }
}

fn text(result: Result<Option<Document>>) -> String {
    match result {
        Ok(Some(doc)) => format!("{doc:?}"),
        Ok(None) => "no change".to_owned(),
        Err(e) => e.code().number().to_string(),
    }
}

fn ints(values: &[i32]) -> Value {
    values.iter().map(|v| Value::from(*v)).collect::<Vec<_>>().into()
}

macro_rules! table {
    ($($update:expr, $before:expr => $after:literal;)*) => {$(
        assert_eq!(text(apply($update, $before, None)), $after, "{:?} on {:?}", $update, $before);
    )*};
}

#[test]
fn fields_appear_in_order_and_untouched_ones_stay() {
    table! {
        doc! {"$set": doc! {"z": 1, "a": 2, "10": 3, "9": 4}}, doc! {"_id": 1, "m": 0}
            => r#"{"_id": 1, "m": 0, "9": 4, "10": 3, "a": 2, "z": 1}"#;
        doc! {"$set": doc! {"a.b.c": 1, "a.b.d": 2, "a.e": 3}}, doc! {"_id": 1}
            => r#"{"_id": 1, "a": {"b": {"c": 1, "d": 2}, "e": 3}}"#;
        doc! {"$set": doc! {"a.x": "longer"}, "$inc": doc! {"a.n": 1, "k": 1}},
            doc! {"k": 1, "a": doc! {"n": 1, "x": "s", "y": ints(&[1])}, "z": 1}
            => r#"{"k": 2, "a": {"n": 2, "x": "longer", "y": [1]}, "z": 1}"#;
        doc! {"$unset": doc! {"a.b": "", "c": "", "d.0": "", "x.y": ""}},
            doc! {"a": doc! {"b": 1}, "c": 1, "d": ints(&[1, 2]), "x": 1}
            => r#"{"a": {}, "d": [null, 2], "x": 1}"#;
        doc! {"$set": doc! {"a": 1}}, doc! {"a": 1} => "no change";
        doc! {"$set": doc! {"a": 1i64}}, doc! {"a": 1} => r#"{"a": Long(1)}"#;
        doc! {"$set": doc! {"a.3": 9}}, doc! {"a": ints(&[1])} => r#"{"a": [1, null, null, 9]}"#;
        doc! {"$set": doc! {"a.0.b": 9, "a.2.c": 1}}, doc! {"a": vec![Value::from(doc!{})]}
            => r#"{"a": [{"b": 9}, null, {"c": 1}]}"#;
    }
}

#[test]
fn errors() {
    table! {
        doc! {"$set": doc! {"a.b": 1}}, doc! {"a": 5} => "28";
        doc! {"$set": doc! {"a.b": 1}}, doc! {"a": ints(&[])} => "28";
        doc! {"$set": doc! {"a": 1, "a.b": 1}}, doc! {} => "40";
        doc! {"$set": doc! {"a.b": 1}, "$inc": doc! {"a": 1}}, doc! {} => "40";
        doc! {"$set": doc! {"a.0": 1, "a.$[]": 1}}, doc! {} => "40";
        doc! {"$set": doc! {"_id": 2}}, doc! {"_id": 1} => "66";
        doc! {"$unset": doc! {"_id": 2}}, doc! {"_id": 1} => "66";
        doc! {"$set": doc! {"$x": 2}}, doc! {"_id": 1} => "52";
        doc! {"$set": doc! {"a.$": 2}}, doc! {"a": ints(&[1])} => "2";
        doc! {"$set": doc! {"a.$[]": 2}}, doc! {"a": 1} => "2";
        doc! {"$set": doc! {"a.$[]": 2}}, doc! {} => "2";
        doc! {"$set": doc! {"a.$[x]": 2}}, doc! {"a": ints(&[1])} => "2";
        doc! {"$set": 1}, doc! {} => "9";
        doc! {"$foo": doc! {}}, doc! {} => "9";
        doc! {"$set": doc! {}, "a": 1}, doc! {} => "9";
        doc! {"$inc": doc! {"a": "x"}}, doc! {} => "14";
        doc! {"$inc": doc! {"a": 1}}, doc! {"a": "x"} => "14";
        doc! {"$inc": doc! {"a": 1i64}}, doc! {"a": i64::MAX} => "2";
        doc! {"$set": doc! {"a.1500002": 1}}, doc! {"a": ints(&[])} => "34";
        doc! {"$rename": doc! {"a": "a.b"}}, doc! {} => "2";
        doc! {"$rename": doc! {"a.0": "b"}}, doc! {"a": ints(&[1])} => "2";
    }
}

#[test]
fn arrays() {
    table! {
        doc! {"$push": doc! {"a": 3}}, doc! {"a": ints(&[1, 2]), "b": 1} => r#"{"a": [1, 2, 3], "b": 1}"#;
        doc! {"$push": doc! {"a": doc! {"$each": ints(&[9, 5]), "$sort": -1, "$slice": 2}}}, doc! {"a": ints(&[7])}
            => r#"{"a": [9, 7]}"#;
        doc! {"$push": doc! {"a": doc! {"$each": ints(&[9]), "$position": -1}}}, doc! {"a": ints(&[1, 2])}
            => r#"{"a": [1, 9, 2]}"#;
        doc! {"$addToSet": doc! {"a": doc! {"$each": vec![Value::from(1.0), 2i64.into(), 2.into()]}}}, doc! {"a": ints(&[1])}
            => r#"{"a": [1, Long(2)]}"#;
        doc! {"$pop": doc! {"a": -1}}, doc! {"a": ints(&[1, 2])} => r#"{"a": [2]}"#;
        doc! {"$pop": doc! {"a": 1}}, doc! {"a": ints(&[])} => "no change";
        doc! {"$pull": doc! {"a": doc! {"$gte": 2}}}, doc! {"a": ints(&[1, 2, 3])} => r#"{"a": [1]}"#;
        doc! {"$pull": doc! {"a": doc! {"b": 1}}}, doc! {"a": vec![Value::from(doc! {"b": 1, "c": 1}), 1.into()]}
            => r#"{"a": [1]}"#;
        doc! {"$pullAll": doc! {"a": ints(&[1, 3])}}, doc! {"a": ints(&[1, 2, 3, 1])} => r#"{"a": [2]}"#;
        doc! {"$inc": doc! {"a.$[].n": 1}}, doc! {"a": vec![Value::from(doc! {"n": 1}), doc! {}.into()]}
            => r#"{"a": [{"n": 2}, {"n": 1}]}"#;
    }
}

#[test]
fn moves() {
    table! {
        doc! {"$rename": doc! {"a": "b.c", "gone": "x"}}, doc! {"_id": 1, "a": ints(&[1]), "z": 1}
            => r#"{"_id": 1, "z": 1, "b": {"c": [1]}}"#;
        doc! {"$rename": doc! {"a": "b"}}, doc! {"b": 1, "a": 2} => r#"{"b": 2}"#;
        doc! {"$rename": doc! {"a": "_id"}}, doc! {"_id": 1, "a": 1} => "66";
        doc! {"$rename": doc! {"gone": "x.y"}}, doc! {"x": 1} => "no change";
    }
}

#[test]
fn positions_meet() {
    let two = || doc! {"a": vec![Value::from(doc! {"x": 1}), doc! {"x": 2}.into()]};
    let set = |update: Document| apply(update, two(), Some(1));
    assert_eq!(
        text(set(doc! {"$set": doc! {"a.$.x": 9, "a.1.y": 8}})),
        r#"{"a": [{"x": 1}, {"x": 9, "y": 8}]}"#
    );
    assert_eq!(text(set(doc! {"$set": doc! {"a.$.x": 9, "a.1.x": 8}})), "40");
    let filtered = apply_filtered(
        doc! {"$set": doc! {"a.$[e].x": 9, "a.$[].y": 1}},
        two(),
        None,
        vec![doc! {"e.x": doc! {"$gt": 1}}],
    );
    assert_eq!(text(filtered), r#"{"a": [{"x": 1, "y": 1}, {"x": 9, "y": 1}]}"#);
}

/// The oplog entry, in the forms that change streams expect.
#[test]
fn diffs() {
    let diff = |update: Document, before: Document| {
        let update = Update::parse((&update).into(), UpdateOptions::default(), &mut Scope::new()).expect("valid");
        match update.apply(before.to_raw().as_raw(), None, &OpContext::default()) {
            Ok(Applied::Changed(changed)) => format!("{:?}", changed.diff.expect("operators make diffs")),
            other => panic!("{other:?}"),
        }
    };
    let cases = [
        (
            doc! {"$set": doc! {"n": 2, "x.y": 1}, "$unset": doc! {"gone": ""}, "$inc": doc! {"new": 1}},
            doc! {"n": 1, "gone": 1, "x": doc! {}},
            r#"{"$v": 2, "diff": {"d": {"gone": false}, "u": {"n": 2}, "i": {"new": 1}, "sx": {"i": {"y": 1}}}}"#,
        ),
        (
            doc! {"$push": doc! {"a": 3}},
            doc! {"a": ints(&[1])},
            r#"{"$v": 2, "diff": {"sa": {"a": true, "u1": 3}}}"#,
        ),
        (
            doc! {"$addToSet": doc! {"a": 3}},
            doc! {"a": ints(&[1])},
            r#"{"$v": 2, "diff": {"u": {"a": [1, 3]}}}"#,
        ),
        (
            doc! {"$inc": doc! {"a.$[].n": 1}},
            doc! {"a": vec![Value::from(doc! {"n": 1})]},
            r#"{"$v": 2, "diff": {"sa": {"a": true, "s0": {"u": {"n": 2}}}}}"#,
        ),
        (
            doc! {"$inc": doc! {"a.$[].n": 1}},
            doc! {"a": vec![Value::from(doc! {"n": 1}), doc! {}.into()]},
            r#"{"$v": 2, "diff": {"u": {"a": [{"n": 2}, {"n": 1}]}}}"#,
        ),
    ];
    for (update, before, expected) in cases {
        assert_eq!(diff(update.clone(), before), expected, "{update:?}");
    }
}

#[test]
fn replacements_keep_the_id() {
    table! {
        doc! {"a": 1}, doc! {"b": 1, "_id": 7} => r#"{"_id": 7, "a": 1}"#;
        doc! {"a": 1, "_id": 8}, doc! {"_id": 7} => "66";
        doc! {"a": 1, "$b": 1}, doc! {"_id": 7} => "52";
        doc! {}, doc! {"_id": 7, "a": 1} => r#"{"_id": 7}"#;
    }
}

#[test]
fn pipelines() {
    let run = |stages: Vec<Document>, before: Document, constants: Option<Document>| {
        let stages: Value = stages.into_iter().map(Value::from).collect::<Vec<_>>().into();
        let options = UpdateOptions {
            constants: constants.as_ref().map(Document::as_ref),
            ..UpdateOptions::default()
        };
        let before = before.to_raw();
        let applied = Update::parse(stages.as_ref(), options, &mut Scope::new())
            .and_then(|u| u.apply(before.as_raw(), None, &OpContext::default()));
        text(applied.map(|applied| match applied {
            Applied::NoChange => None,
            Applied::Changed(changed) => Some(changed.doc.into()),
        }))
    };
    let before = || doc! {"_id": 1, "a": 2, "b": doc! {"c": 3}};
    let cases = [
        (
            vec![doc! {"$set": doc! {"d": "$a", "b.e": 1}}],
            r#"{"_id": 1, "a": 2, "b": {"c": 3, "e": 1}, "d": 2}"#,
        ),
        (
            vec![doc! {"$unset": "b.c"}, doc! {"$project": doc! {"b": 1}}],
            r#"{"_id": 1, "b": {}}"#,
        ),
        (vec![doc! {"$replaceWith": "$b"}], r#"{"_id": 1, "c": 3}"#),
        (
            vec![doc! {"$replaceRoot": doc! {"newRoot": doc! {"x": "$$k"}}}],
            r#"{"_id": 1, "x": 7}"#,
        ),
        (vec![doc! {"$set": doc! {"a": 2}}], "no change"),
        (vec![], "no change"),
        (vec![doc! {"$set": doc! {"_id": 2}}], "66"),
        (vec![doc! {"$replaceWith": "$a"}], "40228"),
        (vec![doc! {"$match": doc! {}}], "72"),
        (vec![doc! {"$nosuch": doc! {}}], "40324"),
        (vec![doc! {"$set": doc! {}, "$unset": "a"}], "40323"),
    ];
    for (stages, expected) in cases {
        assert_eq!(
            run(stages.clone(), before(), Some(doc! {"k": 7})),
            expected,
            "{stages:?}"
        );
    }
}

#[test]
fn upserts_start_from_the_filter() {
    let upsert = |filter: Document, update: Document| {
        Update::parse((&update).into(), UpdateOptions::default(), &mut Scope::new())
            .and_then(|u| u.upsert_document(filter.as_ref(), &OpContext::default()))
            .map(|doc| Some(doc.into()))
    };
    let cases = [
        (
            doc! {"_id": 1, "z.y": 2, "a": doc! {"$gt": 1, "$eq": 5}, "r": doc! {"$in": ints(&[4])}},
            doc! {"$inc": doc! {"n": 1}},
            r#"{"_id": 1, "a": 5, "r": 4, "z": {"y": 2}, "n": 1}"#,
        ),
        (
            doc! {"$and": vec![Value::from(doc! {"_id": 1}), doc! {"$or": vec![Value::from(doc! {"b": 2})]}.into()]},
            doc! {"$setOnInsert": doc! {"n": 1}},
            r#"{"_id": 1, "b": 2, "n": 1}"#,
        ),
        (doc! {"_id": 1, "a": 2}, doc! {"b": 3}, r#"{"_id": 1, "b": 3}"#),
        (doc! {"_id": 1}, doc! {"$set": doc! {"_id": 2}}, "66"),
        (doc! {"a": 1, "a.b": 2}, doc! {"$set": doc! {}}, "54"),
        (doc! {"_id.a": 1}, doc! {"$set": doc! {"_id.b": 2}}, "66"),
        (
            doc! {"_id": 1},
            doc! {"$setOnInsert": doc! {"$x": 2}},
            r#"{"_id": 1, "$x": 2}"#,
        ),
    ];
    for (filter, update, expected) in cases {
        assert_eq!(
            text(upsert(filter.clone(), update.clone())),
            expected,
            "{filter:?} {update:?}"
        );
    }
}
