use super::*;
use nestor_model::{Array, doc};

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    items.into_iter().collect::<Array>().into()
}

fn fits(schema: Document, doc: Document) -> bool {
    let schema = Schema::parse(schema.as_ref()).unwrap_or_else(|e| panic!("{schema:?}: {e}"));
    let value = Value::Document(doc);
    let answer = schema.matches(value.as_ref()).expect("evaluates");
    let failures = schema.failures(value.as_ref()).expect("evaluates");
    assert_eq!(answer, failures.is_empty(), "{failures:?}");
    answer
}

fn of_x(rule: Document) -> Document {
    doc! { "properties": doc! { "x": rule } }
}

#[test]
fn keywords() {
    let cases = [
        (doc! { "bsonType": "string" }, Value::from("a"), true),
        (
            doc! { "bsonType": list(["string".into(), "int".into()]) },
            1.5.into(),
            false,
        ),
        (doc! { "type": "number" }, Value::Int64(1), true),
        (
            doc! { "enum": list([doc! { "a": 1, "b": 2 }.into()]) },
            doc! { "b": 2.0, "a": 1 }.into(),
            true,
        ),
        (doc! { "minimum": 5 }, 5.0.into(), true),
        (doc! { "minimum": 5, "exclusiveMinimum": true }, 5.into(), false),
        (doc! { "maximum": 5 }, "text".into(), true),
        (doc! { "maximum": 5 }, f64::NAN.into(), false),
        (doc! { "multipleOf": 2.5 }, 5.into(), true),
        (doc! { "multipleOf": 3 }, 4.into(), false),
        (doc! { "minLength": 2 }, "é".into(), false),
        (doc! { "maxLength": 1 }, "é".into(), true),
        (doc! { "pattern": "^a" }, "ba".into(), false),
        (doc! { "uniqueItems": true }, list([1.into(), 1.0.into()]), false),
        (
            doc! { "items": doc! { "bsonType": "int" } },
            list([1.into(), "a".into()]),
            false,
        ),
        (
            doc! { "items": list([doc! {}.into()]), "additionalItems": false },
            list([1.into(), 2.into()]),
            false,
        ),
        (doc! { "required": list(["a".into()]) }, doc! { "b": 1 }.into(), false),
        (doc! { "not": doc! { "bsonType": "null" } }, Value::Null, false),
        (
            doc! { "oneOf": list([doc! { "multipleOf": 3 }.into(), doc! { "multipleOf": 5 }.into()]) },
            15.into(),
            false,
        ),
        (
            doc! { "anyOf": list([doc! { "minimum": 9 }.into(), doc! { "maximum": 1 }.into()]) },
            5.into(),
            false,
        ),
        (
            doc! { "allOf": list([doc! { "minimum": 1 }.into(), doc! { "maximum": 9 }.into()]) },
            5.into(),
            true,
        ),
        (
            doc! { "dependencies": doc! { "a": list(["b".into()]) } },
            doc! { "a": 1 }.into(),
            false,
        ),
        (
            doc! { "patternProperties": doc! { "^s_": doc! { "bsonType": "string" } }, "additionalProperties": false },
            doc! { "s_a": "x" }.into(),
            true,
        ),
        (doc! { "minProperties": 2 }, doc! { "a": 1 }.into(), false),
    ];
    for (rule, value, expected) in cases {
        assert_eq!(
            fits(of_x(rule.clone()), doc! { "x": value.clone() }),
            expected,
            "{rule:?} {value:?}"
        );
        assert!(
            fits(of_x(rule), doc! { "y": 1 }),
            "an absent property satisfies anything"
        );
    }
}

#[test]
fn parse_errors() {
    let cases = [
        (doc! { "unknown": 1 }, 9),
        (doc! { "format": "x" }, 9),
        (doc! { "type": "integer" }, 9),
        (doc! { "type": "nonsense" }, 2),
        (doc! { "bsonType": 2 }, 14),
        (doc! { "type": "string", "bsonType": "string" }, 9),
        (doc! { "minimum": "1" }, 14),
        (doc! { "exclusiveMinimum": true }, 9),
        (doc! { "minLength": 1.5 }, 9),
        (doc! { "required": list([]) }, 9),
        (doc! { "required": list(["a".into(), "a".into()]) }, 9),
        (doc! { "enum": list([1.into(), 1.0.into()]) }, 9),
        (doc! { "multipleOf": 0 }, 9),
        (doc! { "allOf": list([]) }, 2),
        (doc! { "not": 1 }, 14),
        (doc! { "items": list([1.into()]) }, 14),
    ];
    for (schema, code) in cases {
        for schema in [schema.clone(), of_x(schema)] {
            let error = Schema::parse(schema.as_ref()).expect_err("must not parse");
            assert_eq!(error.code().number(), code, "{schema:?}: {error}");
        }
    }
}
