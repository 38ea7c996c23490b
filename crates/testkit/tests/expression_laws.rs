//! Expressions of any operators on operands of any kind: they parse or are refused, evaluate or fail, and never
//! panic; bytes and owned documents give the same; a constant gives what a field of that value gives; set
//! operators obey the laws of sets.

use nestor_model::{Array, Document, Result, Str, Value, doc, values_equal};
use nestor_query::{Env, Expr, OpContext, Scope};
use nestor_testkit::expressions::Generator;
use nestor_testkit::random::Random;

/// Operators whose result differs from call to call, or depends on where a constant stands.
const NOT_A_FUNCTION_OF_VALUES: [&str; 14] = [
    "$rand",
    "$createObjectId",
    "$createUUID",
    "$literal",
    "$const",
    // These take options that must be constant, or give constants codes of their own.
    "$setField",
    "$unsetField",
    "$getField",
    "$setEquals",
    "$dateTrunc",
    "$meta",
    "$convert",
    "$median",
    "$percentile",
];

fn shown(result: Result<Value>) -> String {
    result.map_or_else(|e| format!("error {}", e.code().number()), |v| format!("{v:?}"))
}

fn context() -> OpContext {
    OpContext::new(1_700_000_000_000, Default::default(), 1)
}

fn evaluate(expr: &Value, doc: &Document) -> Result<Value> {
    let op = context();
    let expr = Expr::parse(expr.as_ref(), &mut Scope::new())?;
    expr.eval(&mut Env::new(doc.as_ref(), &op))
}

#[test]
fn nonsense_does_not_panic_and_both_forms_of_documents_agree() {
    let mut generator = Generator::new(
        11,
        Expr::operators().filter(|o| !NOT_A_FUNCTION_OF_VALUES[..3].contains(o)),
    );
    let mut values = 0;
    for i in 0..60_000 {
        let expr = generator.expression(1 + i % 3);
        let doc = generator.random.document(3);
        let raw = Document::from(doc.to_raw());
        let owned = shown(evaluate(&expr, &doc));
        assert_eq!(owned, shown(evaluate(&expr, &raw)), "{expr:?} on {doc:?}");
        values += usize::from(!owned.starts_with("error"));
    }
    assert!(values > 8_000, "enough of it evaluates: {values}");
}

#[test]
fn a_constant_is_as_good_as_a_field() {
    let mut generator = Generator::new(
        12,
        Expr::operators().filter(|o| !NOT_A_FUNCTION_OF_VALUES.contains(o) && !o.starts_with("$date")),
    );
    for _ in 0..40_000 {
        let operator = *generator.random.pick(&generator.operators);
        let count = generator.random.below(4);
        let values: Vec<Value> = (0..count).map(|_| generator.random.value(2)).collect();
        let mut doc = Document::new();
        let mut fields = Vec::new();
        let mut literals = Vec::new();
        for (i, value) in values.iter().enumerate() {
            // A missing value has no literal, and undefined is not stored by clients.
            let name = format!("f{i}");
            fields.push(Value::from(format!("${name}")));
            literals.push(Value::from(doc! { "$literal": value.clone() }));
            doc.push(Str::from(name), value.clone());
        }
        let of_fields = Value::from(doc! { operator: fields });
        let of_literals = Value::from(doc! { operator: literals });
        assert_eq!(
            shown(evaluate(&of_literals, &doc)),
            shown(evaluate(&of_fields, &doc)),
            "{operator} of {values:?}"
        );
    }
}

#[test]
fn sets_obey_their_laws() {
    let mut random = Random::new(13);
    let mut array = || -> Value { (0..random.below(5)).map(|_| random.value(1)).collect::<Array>().into() };
    let literal = |v: &Value| Value::from(doc! { "$literal": v.clone() });
    let empty = Document::new();
    let set = |operator: &'static str, args: [&Value; 2]| -> Value {
        let args: Vec<Value> = args.iter().map(|v| literal(v)).collect();
        evaluate(&doc! { operator: args }.into(), &empty).expect("arrays are sets")
    };
    for _ in 0..3_000 {
        let (a, b, c) = (array(), array(), array());
        let same = |x: &Value, y: &Value, law: &str| {
            let equal = set("$setEquals", [x, y]);
            assert!(equal.truthy(), "{law}: {a:?} {b:?} {c:?}");
        };
        let (union, intersection) = (set("$setUnion", [&a, &b]), set("$setIntersection", [&a, &b]));
        assert!(
            values_equal(&union, &set("$setUnion", [&b, &a])),
            "union is commutative"
        );
        assert!(
            values_equal(&intersection, &set("$setIntersection", [&b, &a])),
            "intersection is commutative"
        );
        same(&set("$setUnion", [&a, &a]), &a, "union is idempotent");
        same(
            &set("$setUnion", [&union, &c]),
            &set("$setUnion", [&a, &set("$setUnion", [&b, &c])]),
            "union is associative",
        );
        same(
            &set("$setIntersection", [&a, &set("$setUnion", [&b, &c])]),
            &set("$setUnion", [&intersection, &set("$setIntersection", [&a, &c])]),
            "intersection distributes over union",
        );
        same(
            &set("$setUnion", [&set("$setDifference", [&a, &b]), &intersection]),
            &a,
            "difference and intersection are all",
        );
        assert!(
            set("$setIsSubset", [&intersection, &a]).truthy(),
            "{intersection:?} within {a:?}"
        );
        assert!(set("$setIsSubset", [&a, &union]).truthy(), "{a:?} within {union:?}");
        let subset = set("$setIsSubset", [&a, &b]).truthy();
        let nothing_left = set("$setDifference", [&a, &b]);
        assert_eq!(
            subset,
            nothing_left.as_array().is_some_and(Array::is_empty),
            "{a:?} {b:?}"
        );
    }
}
