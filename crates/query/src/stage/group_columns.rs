//! Groups of measurements that can be made of columns, without making the measurements.
//!
//! ```text
//! {_id: {s: "$m.id", d: {$dateTrunc: {date: "$t", unit: "day"}}}, v: {$avg: "$v"}, n: {$sum: 1}}
//!     the key never falls as `t` rises, for one `m`; `v` is a column, 1 is the same for all measurements of a bucket
//! ```
//!
//! Law: of two measurements of a bucket whose keys are equal, all whose times lie between theirs have that key, too.

use super::Group;
use crate::Expr;
use nestor_model::{Str, TimeSeries};

/// What an accumulator takes of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnInput {
    /// The same for all measurements of a bucket: a constant, or something of the metaField.
    Shared,
    /// A field other than the metaField.
    Column(Str),
}

/// What the accumulators of `group` take of the measurements of `series`: one for each output field; `None` when the group cannot be made of
/// columns.
pub fn inputs_of_columns(group: &Group, series: &TimeSeries) -> Option<Vec<ColumnInput>> {
    if !rises_with_time(&group.id, series) {
        return None;
    }
    let input = |expr: &Expr| {
        if is_shared(expr, series) {
            return Some(ColumnInput::Shared);
        }
        let path = expr.field_path()?.as_str();
        (!path.contains('.')).then(|| ColumnInput::Column(path.into()))
    };
    let inputs = group.fields.iter().map(|field| input(field.accumulator.only_input()?));
    inputs.collect()
}

/// Whether the measurements of a bucket all have the same value.
fn is_shared(expr: &Expr, series: &TimeSeries) -> bool {
    let of_meta = |path: &str| {
        let first = path.split('.').next();
        first.is_some() && first == series.source_field()
    };
    expr.constant().is_some() || expr.field_path().is_some_and(|path| of_meta(path.as_str()))
}

/// Whether the law holds.
fn rises_with_time(expr: &Expr, series: &TimeSeries) -> bool {
    if is_shared(expr, series) || is_time(expr, series) {
        return true;
    }
    if let Some(fields) = expr.object_fields() {
        return fields.iter().all(|(_, field)| rises_with_time(field, series));
    }
    match expr.call() {
        // In a time zone the clock is put back: the minutes of the hour that comes twice rise, fall and rise again.
        Some(("$dateTrunc", [date, unit, size, zone, start_of_week])) => {
            let is_fixed = |arg: &Expr| arg.is_absent() || arg.constant().is_some();
            is_time(date, series) && zone.is_absent() && [unit, size, start_of_week].into_iter().all(is_fixed)
        }
        _ => false,
    }
}

fn is_time(expr: &Expr, series: &TimeSeries) -> bool {
    expr.field_path().is_some_and(|path| path.as_str() == series.time_field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Scope;
    use crate::stage::AccumulatorSpec;
    use nestor_model::timeseries::Bucketing;
    use nestor_model::{Value, ValueRef, doc};

    fn inputs(id: &Value, argument: ValueRef<'_>) -> Option<Vec<ColumnInput>> {
        let mut scope = Scope::new();
        let id = Expr::parse(id.as_ref(), &mut scope).expect("an expression");
        let spec = AccumulatorSpec::parse("$avg", argument, &mut scope).expect("an accumulator");
        let series = TimeSeries::new("t", Some("m"), Bucketing::default()).expect("options");
        inputs_of_columns(&Group::new(id, vec![("v".into(), spec)]), &series)
    }

    #[test]
    fn keys_that_rise_with_time_are_told_from_others() {
        let trunc = |more: &str, value: Value| {
            let mut args = doc! { "date": "$t", "unit": "day" };
            args.push(more, value);
            Value::from(doc! { "$dateTrunc": args })
        };
        let column = Some(vec![ColumnInput::Column("v".into())]);
        for id in [
            Value::Null,
            "$m".into(),
            "$m.a.b".into(),
            "$t".into(),
            trunc("binSize", 2.into()),
            doc! { "m": "$m", "t": trunc("startOfWeek", "monday".into()) }.into(),
        ] {
            assert_eq!(inputs(&id, ValueRef::String("$v")), column, "{id:?}");
        }
        for id in [
            "$v".into(),
            "$mm".into(),
            trunc("timezone", "Europe/Rome".into()),
            trunc("binSize", "$v".into()),
            doc! { "$hour": "$t" }.into(),
            doc! { "m": "$m", "v": "$v" }.into(),
        ] {
            assert_eq!(inputs(&id, ValueRef::String("$v")), None, "{id:?}");
        }
        assert_eq!(inputs(&Value::Null, ValueRef::String("$v.x")), None);
        assert_eq!(
            inputs(&Value::Null, ValueRef::String("$m.x")),
            Some(vec![ColumnInput::Shared])
        );
        assert_eq!(
            inputs(&Value::Null, ValueRef::Int32(1)),
            Some(vec![ColumnInput::Shared])
        );
    }
}
