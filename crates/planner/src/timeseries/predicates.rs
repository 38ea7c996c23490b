//! Conditions on measurements as conditions on buckets.
//!
//! Laws: a condition on the metaField alone holds for all measurements of a bucket or for none. Of a comparison with a value, a bucket whose
//! smallest and largest value exclude it has no measurement that satisfies it. What is not known to be so excludes no bucket.
//!
//! ```text
//! {m: "a", t: {$gte: T}, v: {$lt: 5}}    {meta: "a"}, {control.max.t: {$gte: T}}, {control.min.t: {$gte: T - span}}, {_id: {$gte: ..}},
//!                                        and {control.min.v: {$lt: 5}}, or control.v tells of other types than numbers
//! ```

use nestor_model::{BsonType, ObjectId, Path, TimeSeries, Value};
use nestor_query::matcher::{CompareOp, Leaf, MatchExpr, Predicate};
use nestor_query::timeseries::bucket_id;
use nestor_query::types::TypeSet;

/// A condition on measurements, divided.
#[derive(Debug)]
pub struct Divided {
    /// What buckets have to satisfy to be looked into; [`MatchExpr::AlwaysTrue`] for all.
    pub buckets: MatchExpr,
    /// What their measurements have to satisfy then; `None` for nothing more.
    pub measurements: Option<MatchExpr>,
}

/// Divides a condition on measurements.
pub fn divide(condition: &MatchExpr, series: &TimeSeries) -> Divided {
    let conditions = match condition {
        MatchExpr::And(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut buckets, mut rest) = (Vec::new(), Vec::new());
    for condition in conditions {
        match renamed_meta(condition, series) {
            Some(renamed) => buckets.push(renamed),
            None => {
                buckets.push(bucket_filter(condition, series));
                rest.push(condition.clone());
            }
        }
    }
    Divided {
        buckets: MatchExpr::And(buckets).normalize(),
        measurements: match rest.len() {
            0 => None,
            1 => rest.pop(),
            _ => Some(MatchExpr::And(rest)),
        },
    }
}

/// The condition of all buckets that may have a measurement which satisfies `condition`.
pub fn bucket_filter(condition: &MatchExpr, series: &TimeSeries) -> MatchExpr {
    if let Some(renamed) = renamed_meta(condition, series) {
        return renamed;
    }
    let each = |children: &[MatchExpr]| -> Vec<MatchExpr> {
        children.iter().map(|child| bucket_filter(child, series)).collect()
    };
    match condition {
        MatchExpr::AlwaysFalse => MatchExpr::AlwaysFalse,
        MatchExpr::And(children) => MatchExpr::And(each(children)).normalize(),
        MatchExpr::Or(children) => {
            let children = each(children);
            match children.iter().any(|child| matches!(child, MatchExpr::AlwaysTrue)) {
                true => MatchExpr::AlwaysTrue,
                false => MatchExpr::Or(children).normalize(),
            }
        }
        MatchExpr::Leaf(leaf) => of_leaf(leaf, series),
        _ => MatchExpr::AlwaysTrue,
    }
}

fn of_leaf(leaf: &Leaf, series: &TimeSeries) -> MatchExpr {
    let field = leaf.path.as_str();
    let Predicate::Compare { op, value, collator } = &leaf.predicate else {
        return MatchExpr::AlwaysTrue;
    };
    if field.contains('.') || (collator.is_some() && matches!(value, Value::String(_) | Value::Symbol(_))) {
        return MatchExpr::AlwaysTrue;
    }
    if field == series.time_field {
        return match value {
            Value::DateTime(ms) => of_time(*op, *ms, series),
            _ => MatchExpr::AlwaysTrue,
        };
    }
    of_value(field, *op, value)
}

fn compare(path: String, op: CompareOp, value: impl Into<Value>) -> MatchExpr {
    MatchExpr::compare(Path::new(&path), op, value)
}

/// Buckets that may have measurements of these times. Their ids tell the times of their beginnings.
fn of_time(op: CompareOp, ms: i64, series: &TimeSeries) -> MatchExpr {
    let (min, max) = (
        format!("control.min.{}", series.time_field),
        format!("control.max.{}", series.time_field),
    );
    let span_ms = series.span_secs * 1000;
    let from = |op: CompareOp| {
        let begins_ms = ms.saturating_sub(span_ms);
        vec![
            compare(max.clone(), op, Value::DateTime(ms)),
            compare(min.clone(), op, Value::DateTime(begins_ms)),
            compare("_id".into(), CompareOp::Gte, bucket_id(begins_ms, 0)),
        ]
    };
    let until = |op: CompareOp| {
        let last: ObjectId = bucket_id(ms, u64::MAX);
        vec![
            compare(min.clone(), op, Value::DateTime(ms)),
            compare(max.clone(), op, Value::DateTime(ms.saturating_add(span_ms))),
            compare("_id".into(), CompareOp::Lte, last),
        ]
    };
    MatchExpr::And(match op {
        CompareOp::Gt | CompareOp::Gte => from(op),
        CompareOp::Lt | CompareOp::Lte => until(op),
        CompareOp::Eq => from(CompareOp::Gte).into_iter().chain(until(CompareOp::Lte)).collect(),
    })
}

/// Types in the order of their values, by class; arrays match by their elements, and no condition on null tells missing fields.
const CLASSES: [&[BsonType]; 9] = [
    &[BsonType::MinKey],
    &[BsonType::Undefined, BsonType::Null],
    &[BsonType::Int, BsonType::Long, BsonType::Double, BsonType::Decimal],
    &[BsonType::String, BsonType::Symbol],
    &[BsonType::Object],
    &[BsonType::Array],
    &[BsonType::BinData],
    &[BsonType::ObjectId],
    &[BsonType::Bool],
];

/// Buckets that may have values of these in a field. Where smallest and largest are of one type, the comparison decides; buckets of several
/// types or of arrays are all looked into.
fn of_value(field: &str, op: CompareOp, value: &Value) -> MatchExpr {
    let kind = value.bson_type();
    let Some(class) = CLASSES.iter().position(|class| class.contains(&kind)) else {
        return MatchExpr::AlwaysTrue;
    };
    let is_told = class == 2 || matches!(kind, BsonType::String | BsonType::ObjectId | BsonType::Bool);
    if !is_told
        || matches!(value, Value::Double(v) if v.is_nan())
        || matches!(value, Value::Decimal128(v) if v.is_nan())
    {
        return MatchExpr::AlwaysTrue;
    }
    let (min, max) = (format!("control.min.{field}"), format!("control.max.{field}"));
    let below: Vec<BsonType> = CLASSES[..class].concat();
    // All that sorts behind, arrays among them: one of several types, so that any value may be in between.
    let above: Vec<BsonType> = CLASSES[class + 1..]
        .concat()
        .into_iter()
        .chain([BsonType::Date, BsonType::Timestamp, BsonType::Regex, BsonType::MaxKey])
        .chain([BsonType::DbPointer, BsonType::Javascript, BsonType::JavascriptWithScope])
        .collect();
    let of_types =
        |path: &str, types: &[BsonType]| MatchExpr::leaf(Path::new(path), Predicate::Type(TypeSet::of(types)));
    // Arrays sort behind numbers and strings and before others; whichever it is, the smallest or the largest tells that there may be some.
    let arrays = match class > 5 {
        true => of_types(&min, &below),
        false => of_types(&max, &above),
    };
    let side = |path: &str, op: CompareOp, other: &[BsonType]| {
        MatchExpr::Or(vec![
            compare(path.to_owned(), op, value.clone()),
            of_types(path, other),
            arrays.clone(),
        ])
    };
    let at_least = |op| side(&max, op, &above);
    // No number is more than NaN, which sorts before all of them: where it is the smallest, others may be anything.
    let at_most = |op| {
        let nan = compare(min.clone(), CompareOp::Eq, Value::Double(f64::NAN));
        MatchExpr::Or(vec![side(&min, op, &below), nan])
    };
    match op {
        CompareOp::Gt | CompareOp::Gte => at_least(op),
        CompareOp::Lt | CompareOp::Lte => at_most(op),
        CompareOp::Eq => MatchExpr::And(vec![at_least(CompareOp::Gte), at_most(CompareOp::Lte)]),
    }
    .normalize()
}

/// A condition on the metaField alone as one on `meta` of buckets; `None` when it is on something else, too.
pub fn renamed_meta(condition: &MatchExpr, series: &TimeSeries) -> Option<MatchExpr> {
    let meta = series.source_field()?;
    renamed(condition, meta)
}

fn renamed(condition: &MatchExpr, meta: &str) -> Option<MatchExpr> {
    let each = |children: &[MatchExpr]| -> Option<Vec<MatchExpr>> {
        children.iter().map(|child| renamed(child, meta)).collect()
    };
    Some(match condition {
        MatchExpr::AlwaysTrue | MatchExpr::AlwaysFalse => condition.clone(),
        MatchExpr::And(children) => MatchExpr::And(each(children)?),
        MatchExpr::Or(children) => MatchExpr::Or(each(children)?),
        MatchExpr::Nor(children) => MatchExpr::Nor(each(children)?),
        MatchExpr::Not(child) => MatchExpr::Not(Box::new(renamed(child, meta)?)),
        MatchExpr::Leaf(leaf) if leaf.path.head() != meta => return None,
        MatchExpr::Leaf(leaf) => MatchExpr::Leaf(Leaf {
            path: Path::new(&format!("meta{}", &leaf.path.as_str()[meta.len()..])),
            predicate: leaf.predicate.clone(),
        }),
        MatchExpr::Expr(_) | MatchExpr::JsonSchema(_) | MatchExpr::SampleRate(_) | MatchExpr::Text(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::timeseries::Bucketing;
    use nestor_model::{DocRef, Timestamp, doc};
    use nestor_query::Scope;
    use nestor_query::env::OpContext;
    use nestor_query::timeseries::Rows;

    fn parse(filter: nestor_model::Document) -> MatchExpr {
        MatchExpr::parse(filter.as_ref(), &mut Scope::new())
            .expect("a filter")
            .normalize()
    }

    /// Whatever the values of a bucket are, a condition that one of them satisfies does not exclude the bucket.
    #[test]
    fn no_bucket_is_excluded_that_has_a_match() {
        let series = TimeSeries::new("t", Some("m"), Bucketing::default()).expect("valid options");
        let values = [
            Value::from(1),
            Value::from(2.5),
            Value::Double(f64::NAN),
            Value::from("a"),
            Value::from("z"),
            Value::Null,
            Value::from(true),
            Value::from(vec![Value::from(0), Value::from(9)]),
            doc! { "a": 1 }.into(),
            Value::DateTime(5),
            Value::ObjectId(bucket_id(0, 3)),
            Value::MinKey,
            Value::Missing,
        ];
        let op = OpContext::new(0, Timestamp::default(), 0);
        let mut excluded = 0;
        for first in &values {
            for second in &values {
                let documents: Vec<_> = [first, second]
                    .into_iter()
                    .enumerate()
                    .map(|(at, value)| {
                        let mut document = doc! { "t": Value::DateTime(at as i64), "m": 1 };
                        document.set("v", value.clone());
                        document.to_raw()
                    })
                    .collect();
                let mut rows = Rows::default();
                documents
                    .iter()
                    .for_each(|document| rows.push(document.as_raw(), &series));
                let bucket = rows.into_bucket(&series, bucket_id(0, 0), Some(Value::from(1).as_ref()), 0);
                for name in ["$eq", "$lt", "$lte", "$gt", "$gte"] {
                    for value in values.iter().filter(|value| !value.is_missing()) {
                        let mut test = nestor_model::Document::new();
                        test.push(name, value.clone());
                        let filter = parse(doc! { "v": test });
                        let matches = |document: DocRef<'_>| filter.matches(document, &op).expect("a result");
                        let any = documents.iter().any(|document| matches(document.as_raw().as_doc()));
                        let kept = bucket_filter(&filter, &series)
                            .matches(bucket.as_raw().as_doc(), &op)
                            .expect("a result");
                        assert!(kept || !any, "{filter:?} excludes {documents:?}");
                        excluded += usize::from(!kept);
                    }
                }
            }
        }
        assert!(excluded > 200, "some buckets are excluded: {excluded}");
    }

    #[test]
    fn conditions_on_the_source_are_asked_of_the_bucket_alone() {
        let series = TimeSeries::new("t", Some("m"), Bucketing::default()).expect("valid options");
        let divided = divide(&parse(doc! { "m.a": 1, "v": doc! { "$exists": true } }), &series);
        assert_eq!(
            format!("{:?}", divided.buckets.serialize()),
            r#"{"meta.a": {"$eq": 1}}"#
        );
        assert!(divided.measurements.is_some());
        let divided = divide(
            &parse(doc! { "$or": vec![Value::from(doc! { "m": 1 }), doc! { "v": 1 }.into()] }),
            &series,
        );
        assert!(divided.measurements.is_some() && !matches!(divided.buckets, MatchExpr::AlwaysTrue));
    }

    #[test]
    fn times_tell_of_ids() {
        let series = TimeSeries::new("t", None, Bucketing::default()).expect("valid options");
        let divided = divide(
            &parse(doc! { "t": doc! { "$gte": Value::DateTime(7_200_000) } }),
            &series,
        );
        let shown = format!("{:?}", divided.buckets.serialize());
        assert!(
            shown.contains(r#"{"_id": {"$gte": ObjectId("00000e100000000000000000")}}"#),
            "{shown}"
        );
    }
}
