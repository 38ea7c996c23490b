//! The one canonical comparison and hash over BSON values.
//!
//! Source: manual, "Comparison/Sort Order". Types compare by class: MinKey, missing and undefined, null,
//! numbers, string and symbol, object, array, binary, ObjectId, boolean, date, timestamp, regex,
//! DBPointer, code, code with scope, MaxKey. Within numbers the value counts, not the type; NaN equals
//! NaN and is below every number; -0 equals 0.

use crate::value::{ArrayRef, DocRef, Value, ValueRef};
use crate::{BsonType, Decimal128};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The class of a type in the canonical order; types of one class compare by value.
pub fn canonical_class(kind: BsonType) -> u8 {
    match kind {
        BsonType::MinKey => 0,
        BsonType::Missing | BsonType::Undefined => 1,
        BsonType::Null => 5,
        BsonType::Double | BsonType::Int | BsonType::Long | BsonType::Decimal => 10,
        BsonType::String | BsonType::Symbol => 15,
        BsonType::Object => 20,
        BsonType::Array => 25,
        BsonType::BinData => 30,
        BsonType::ObjectId => 35,
        BsonType::Bool => 40,
        BsonType::Date => 45,
        BsonType::Timestamp => 47,
        BsonType::Regex => 50,
        BsonType::DbPointer => 55,
        BsonType::Javascript => 60,
        BsonType::JavascriptWithScope => 65,
        BsonType::MaxKey => 127,
    }
}

/// Compares two values in the canonical order.
pub fn compare<'a, 'b>(a: impl Into<ValueRef<'a>>, b: impl Into<ValueRef<'b>>) -> Ordering {
    compare_refs(a.into(), b.into())
}

/// `compare` is `Equal`.
pub fn values_equal<'a, 'b>(a: impl Into<ValueRef<'a>>, b: impl Into<ValueRef<'b>>) -> bool {
    compare_refs(a.into(), b.into()) == Ordering::Equal
}

fn compare_refs(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    use ValueRef as V;
    let class = canonical_class(a.bson_type()).cmp(&canonical_class(b.bson_type()));
    if class != Ordering::Equal {
        return class;
    }
    match (a, b) {
        (V::Int32(x), V::Int32(y)) => x.cmp(&y),
        (V::String(x) | V::Symbol(x), V::String(y) | V::Symbol(y)) => x.as_bytes().cmp(y.as_bytes()),
        (V::ObjectId(x), V::ObjectId(y)) => x.cmp(&y),
        (V::Document(x), V::Document(y)) => compare_documents(x, y),
        (V::Array(x), V::Array(y)) => compare_arrays(x, y),
        (V::Bool(x), V::Bool(y)) => x.cmp(&y),
        (V::DateTime(x), V::DateTime(y)) => x.cmp(&y),
        (V::Timestamp(x), V::Timestamp(y)) => x.cmp(&y),
        (V::Binary { subtype: s, bytes: x }, V::Binary { subtype: t, bytes: y }) => {
            x.len().cmp(&y.len()).then(s.cmp(&t)).then_with(|| x.cmp(y))
        }
        (V::Regex { pattern: p, options: o }, V::Regex { pattern: q, options: r }) => p.cmp(q).then_with(|| o.cmp(r)),
        (V::DbPointer { namespace: n, id: i }, V::DbPointer { namespace: m, id: j }) => {
            n.len().cmp(&m.len()).then_with(|| n.cmp(m)).then_with(|| i.cmp(&j))
        }
        (V::Code(x), V::Code(y)) => x.cmp(y),
        (V::CodeWithScope { code: c, scope: s }, V::CodeWithScope { code: d, scope: t }) => {
            c.cmp(d).then_with(|| compare_documents(s, t))
        }
        (V::Missing, V::Undefined) => Ordering::Less,
        (V::Undefined, V::Missing) => Ordering::Greater,
        _ if a.is_number() => compare_numbers(a, b),
        _ => Ordering::Equal,
    }
}

/// Field by field: type class, then name, then value; a prefix is less.
pub fn compare_documents(a: DocRef<'_>, b: DocRef<'_>) -> Ordering {
    let (mut left, mut right) = (a.iter(), b.iter());
    loop {
        let ((name_a, value_a), (name_b, value_b)) = match (left.next(), right.next()) {
            (Some(x), Some(y)) => (x, y),
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        };
        let order = canonical_class(value_a.bson_type())
            .cmp(&canonical_class(value_b.bson_type()))
            .then_with(|| name_a.as_bytes().cmp(name_b.as_bytes()))
            .then_with(|| compare_refs(value_a, value_b));
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Item by item; a prefix is less.
pub fn compare_arrays(a: ArrayRef<'_>, b: ArrayRef<'_>) -> Ordering {
    let (mut left, mut right) = (a.iter(), b.iter());
    loop {
        match (left.next(), right.next()) {
            (Some(x), Some(y)) => match compare_refs(x, y) {
                Ordering::Equal => {}
                order => return order,
            },
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        }
    }
}

fn compare_numbers(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    use ValueRef as V;
    match (a, b) {
        (V::Int32(x), V::Int64(y)) => i64::from(x).cmp(&y),
        (V::Int64(x), V::Int32(y)) => x.cmp(&i64::from(y)),
        (V::Int64(x), V::Int64(y)) => x.cmp(&y),
        (V::Double(x), V::Double(y)) => compare_f64(x, y),
        (V::Int32(x), V::Double(y)) => compare_f64(f64::from(x), y),
        (V::Double(x), V::Int32(y)) => compare_f64(x, f64::from(y)),
        (V::Int64(x), V::Double(y)) => compare_i64_f64(x, y),
        (V::Double(x), V::Int64(y)) => compare_i64_f64(y, x).reverse(),
        (V::Decimal128(x), V::Decimal128(y)) => x.total_cmp(y),
        (V::Decimal128(x), V::Double(y)) => x.total_cmp(Decimal128::from_f64_exact(y)),
        (V::Double(x), V::Decimal128(y)) => Decimal128::from_f64_exact(x).total_cmp(y),
        (V::Decimal128(x), V::Int32(y)) => x.total_cmp(Decimal128::from_i64(i64::from(y))),
        (V::Int32(x), V::Decimal128(y)) => Decimal128::from_i64(i64::from(x)).total_cmp(y),
        (V::Decimal128(x), V::Int64(y)) => x.total_cmp(Decimal128::from_i64(y)),
        (V::Int64(x), V::Decimal128(y)) => Decimal128::from_i64(x).total_cmp(y),
        _ => Ordering::Equal,
    }
}

/// NaN equals NaN and is below all else; -0 equals 0.
pub fn compare_f64(x: f64, y: f64) -> Ordering {
    match x.partial_cmp(&y) {
        Some(order) => order,
        None => y.is_nan().cmp(&x.is_nan()),
    }
}

/// Exact comparison; converting the integer to a double could round.
fn compare_i64_f64(x: i64, y: f64) -> Ordering {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    if y.is_nan() || y < -TWO_63 {
        Ordering::Greater
    } else if y >= TWO_63 {
        Ordering::Less
    } else {
        // In range, so truncation is exact; the fraction decides a tie.
        let whole = y.trunc();
        x.cmp(&(whole as i64)).then_with(|| compare_f64(0.0, y - whole))
    }
}

/// Hashes so that values that [`compare`] equal hash alike.
pub fn hash_value<'a, H: Hasher>(value: impl Into<ValueRef<'a>>, state: &mut H) {
    hash_ref(value.into(), state);
}

fn hash_ref<H: Hasher>(value: ValueRef<'_>, state: &mut H) {
    use ValueRef as V;
    state.write_u8(canonical_class(value.bson_type()));
    match value {
        V::Missing | V::Undefined | V::Null | V::MinKey | V::MaxKey => {}
        V::Int32(v) => state.write_i64(i64::from(v)),
        V::Int64(v) => state.write_i64(v),
        V::Double(v) => hash_f64(v, state),
        V::Decimal128(v) => match v.to_i64_exact() {
            Some(n) => state.write_i64(n),
            // Doubles and decimals that are equal round to the same double.
            None => hash_f64(v.to_f64(), state),
        },
        V::String(v) | V::Symbol(v) | V::Code(v) => v.hash(state),
        V::Document(doc) => hash_document(doc, state),
        V::Array(items) => {
            for item in items {
                hash_ref(item, state);
            }
            state.write_u8(0);
        }
        V::Binary { subtype, bytes } => {
            state.write_u8(subtype);
            bytes.hash(state);
        }
        V::ObjectId(v) => v.hash(state),
        V::Bool(v) => v.hash(state),
        V::DateTime(v) => v.hash(state),
        V::Regex { pattern, options } => (pattern, options).hash(state),
        V::DbPointer { namespace, id } => (namespace, id).hash(state),
        V::CodeWithScope { code, scope } => {
            code.hash(state);
            hash_document(scope, state);
        }
        V::Timestamp(v) => v.hash(state),
    }
}

fn hash_document<H: Hasher>(doc: DocRef<'_>, state: &mut H) {
    for (name, value) in doc {
        name.hash(state);
        hash_ref(value, state);
    }
    state.write_u8(0);
}

fn hash_f64<H: Hasher>(v: f64, state: &mut H) {
    if v.trunc() == v && (-9.2e18..9.2e18).contains(&v) {
        state.write_i64(v as i64);
    } else if v.is_nan() {
        state.write_u64(u64::MAX);
    } else {
        state.write_u64(v.to_bits());
    }
}

/// A value as a key of hash maps and ordered maps, by canonical equality and order.
#[derive(Clone, Debug)]
pub struct Key(pub Value);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        values_equal(&self.0, &other.0)
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_value(&self.0, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, Binary, ObjectId, Timestamp, doc};
    use std::hash::DefaultHasher;

    fn ascending() -> Vec<Value> {
        let dec = |v: f64| Value::Decimal128(Decimal128::from_f64_exact(v));
        vec![
            Value::MinKey,
            Value::Missing,
            Value::Undefined,
            Value::Null,
            Value::Double(f64::NAN),
            Value::Double(f64::NEG_INFINITY),
            Value::Int64(i64::MIN),
            Value::Int32(-1),
            dec(-0.5),
            Value::Double(0.0),
            Value::Double(0.1),
            Value::Int32(1),
            dec(1.5),
            Value::Int64((1 << 53) + 1),
            Value::Double(9_007_199_254_740_994.0),
            Value::Int64(i64::MAX),
            Value::Double(9_223_372_036_854_775_808.0),
            dec(1e300),
            Value::Double(f64::INFINITY),
            "".into(),
            "a".into(),
            "b".into(),
            doc! {}.into(),
            doc! { "a": 1 }.into(),
            doc! { "a": 1, "b": 0 }.into(),
            doc! { "b": 0 }.into(),
            doc! { "a": "x" }.into(),
            Array::default().into(),
            vec![Value::from(1)].into(),
            vec![Value::from(1), Value::from(1)].into(),
            Binary {
                subtype: 9,
                bytes: vec![].as_slice().into(),
            }
            .into(),
            Binary {
                subtype: 0,
                bytes: vec![1].as_slice().into(),
            }
            .into(),
            ObjectId([0; 12]).into(),
            false.into(),
            true.into(),
            Value::DateTime(-1),
            Value::DateTime(1),
            Timestamp { secs: 0, inc: 1 }.into(),
            Value::Code("f".into()),
            Value::MaxKey,
        ]
    }

    #[test]
    fn order_is_the_documented_one() {
        let values = ascending();
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a:?} against {b:?}");
            }
        }
    }

    #[test]
    fn equal_values_hash_alike() {
        let hash = |v: &Value| {
            let mut h = DefaultHasher::new();
            hash_value(v, &mut h);
            h.finish()
        };
        let one = [
            Value::Int32(1),
            Value::Int64(1),
            Value::Double(1.0),
            Value::Decimal128(Decimal128::from_i64(1)),
            Value::Decimal128(Decimal128::from_f64_exact(1.0)),
        ];
        for v in &one {
            assert!(values_equal(v, &one[0]));
            assert_eq!(hash(v), hash(&one[0]), "{v:?}");
        }
        assert_eq!(
            hash(&Value::Double(0.5)),
            hash(&Value::Decimal128(Decimal128::from_f64_exact(0.5)))
        );
        assert_eq!(hash(&Value::Double(-0.0)), hash(&Value::Int32(0)));
    }
}
