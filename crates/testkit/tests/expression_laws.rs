//! Expressions of any operators on operands of any kind: they parse or are refused, evaluate or fail, and never
//! panic; bytes and owned documents give the same; a constant gives what a field of that value gives; set
//! operators obey the laws of sets.

use nestor_model::{Array, Document, Result, Str, Value, doc, values_equal};
use nestor_query::{Env, Expr, OpContext, Scope};
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

/// The names of the arguments of operators that take an object; those after the empty name are optional.
const NAMED: [(&str, &[&str]); 43] = [
    ("$map", &["input", "in", "", "arrayIndexAs"]),
    ("$filter", &["input", "cond", "", "limit"]),
    ("$reduce", &["input", "initialValue", "in", "", "valueAs"]),
    ("$let", &["vars", "in"]),
    ("$cond", &["if", "then", "else"]),
    ("$switch", &["branches", "", "default"]),
    ("$zip", &["inputs", "", "useLongestLength", "defaults"]),
    ("$sortArray", &["input", "sortBy"]),
    ("$firstN", &["n", "input"]),
    ("$lastN", &["n", "input"]),
    ("$minN", &["n", "input"]),
    ("$maxN", &["n", "input"]),
    ("$top", &["input", "sortBy"]),
    ("$bottomN", &["n", "input", "sortBy"]),
    ("$trim", &["input", "", "chars"]),
    ("$ltrim", &["input", "", "chars"]),
    ("$rtrim", &["input", "", "chars"]),
    ("$replaceOne", &["input", "find", "replacement"]),
    ("$replaceAll", &["input", "find", "replacement"]),
    ("$regexMatch", &["input", "regex", "", "options"]),
    ("$regexFind", &["input", "regex"]),
    ("$regexFindAll", &["input", "regex"]),
    ("$getField", &["field", "input"]),
    ("$setField", &["field", "input", "value"]),
    ("$unsetField", &["field", "input"]),
    ("$convert", &["input", "to", "", "onError", "onNull", "format", "base"]),
    ("$dateAdd", &["startDate", "unit", "amount", "", "timezone"]),
    ("$dateSubtract", &["startDate", "unit", "amount"]),
    (
        "$dateDiff",
        &["startDate", "endDate", "unit", "", "timezone", "startOfWeek"],
    ),
    (
        "$dateTrunc",
        &["date", "unit", "", "binSize", "timezone", "startOfWeek"],
    ),
    (
        "$dateFromParts",
        &[
            "year",
            "",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "millisecond",
            "timezone",
        ],
    ),
    (
        "$dateFromParts",
        &["isoWeekYear", "", "isoWeek", "isoDayOfWeek", "timezone"],
    ),
    ("$dateToParts", &["date", "", "timezone", "iso8601"]),
    ("$dateToString", &["date", "", "format", "timezone", "onNull"]),
    ("$dateFromString", &["dateString", "", "format", "timezone", "onError"]),
    ("$week", &["date", "", "timezone"]),
    ("$isoWeekYear", &["date", "", "timezone"]),
    ("$hexHash", &["input", "algorithm"]),
    ("$serializeEJSON", &["input", "", "relaxed"]),
    ("$deserializeEJSON", &["input", "", "onError"]),
    ("$median", &["input", "method"]),
    ("$percentile", &["input", "method", "p"]),
    ("$similarityCosine", &["vectors", "", "score"]),
];

const TEXTS: [&str; 16] = [
    "day",
    "month",
    "UTC",
    "Europe/Berlin",
    "+05:30",
    "%Y-%m-%d",
    "2024-02-30",
    "2024-06-15T01:02:03Z",
    "(a)|b",
    "é日b",
    "int",
    "1e400",
    "0x1p3",
    "md5",
    "$$this",
    "\0",
];

struct Generator {
    random: Random,
    operators: Vec<&'static str>,
}

impl Generator {
    fn new(seed: u64, operators: impl Iterator<Item = &'static str>) -> Self {
        let mut operators: Vec<_> = operators.collect();
        operators.sort_unstable();
        Self {
            random: Random::new(seed),
            operators,
        }
    }

    fn leaf(&mut self) -> Value {
        match self.random.below(8) {
            0 | 1 => self.random.scalar(),
            2 => Value::from(*self.random.pick(&TEXTS)),
            3 => doc! { "$literal": self.random.value(2) }.into(),
            _ => Value::from(
                *self
                    .random
                    .pick(&["$a", "$b", "$c.a", "$d.b", "$a.0", "$$ROOT", "$$NOW", "$$REMOVE"]),
            ),
        }
    }

    fn expression(&mut self, depth: usize) -> Value {
        if depth == 0 {
            return self.leaf();
        }
        let argument = match self.random.below(10) {
            0..=3 => {
                let count = self.random.below(4);
                Value::Array((0..count).map(|_| self.expression(depth - 1)).collect::<Array>())
            }
            4 | 5 => self.expression(depth - 1),
            _ => return self.named(depth),
        };
        let operator = *self.random.pick(&self.operators);
        doc! { operator: argument }.into()
    }

    /// An operator with the named arguments it knows, most of them of a likely kind.
    fn named(&mut self, depth: usize) -> Value {
        let (operator, names) = *self.random.pick(&NAMED);
        let mut optional = false;
        let mut named = Document::new();
        for name in names {
            optional |= name.is_empty();
            let wanted = if optional {
                self.random.one_in(3)
            } else {
                !self.random.one_in(40)
            };
            if !name.is_empty() && wanted {
                let value = if self.random.one_in(6) {
                    self.expression(depth - 1)
                } else {
                    self.likely(name, depth - 1)
                };
                named.push(*name, value);
            }
        }
        doc! { operator: named }.into()
    }

    fn likely(&mut self, name: &str, depth: usize) -> Value {
        let text = |random: &mut Random, texts: &[&str]| Value::from(*random.pick(texts));
        let array = |items: Vec<Value>| Value::Array(items.into_iter().collect::<Array>());
        match name {
            "input" if self.random.one_in(2) => array((0..3).map(|_| self.leaf()).collect()),
            "in" | "cond" | "then" if self.random.one_in(2) => {
                text(&mut self.random, &["$$this", "$$IDX", "$$value", "$$this.a", "$a"])
            }
            "as" | "arrayIndexAs" | "valueAs" => text(&mut self.random, &["x", "this", "CURRENT"]),
            "unit" => text(
                &mut self.random,
                &[
                    "year",
                    "quarter",
                    "month",
                    "week",
                    "day",
                    "hour",
                    "second",
                    "millisecond",
                ],
            ),
            "startOfWeek" => text(&mut self.random, &["mon", "Sunday", "x"]),
            "timezone" => text(
                &mut self.random,
                &["UTC", "Europe/Berlin", "America/New_York", "+05:30", "-99:99", "x"],
            ),
            "format" => text(
                &mut self.random,
                &[
                    "%Y-%m-%dT%H:%M:%S.%L%z",
                    "%G %V %u %j %U",
                    "%b %B %Z %%",
                    "%",
                    "hex",
                    "auto",
                ],
            ),
            "date" | "startDate" | "endDate" => Value::DateTime(*self.random.pick(&[
                0,
                -1,
                1_718_454_645_123,
                i64::MAX,
                i64::MIN,
                -62_135_596_800_001,
                253_402_300_800_000,
            ])),
            "amount" | "binSize" | "n" | "year" | "isoWeekYear" | "month" | "day" | "hour" | "millisecond"
            | "limit" => self
                .random
                .pick(&[
                    Value::Int32(1),
                    Value::Int32(-7),
                    Value::Int32(2024),
                    Value::Int64(i64::MAX),
                    Value::Int64(i64::MIN),
                    Value::Int64(40_000_000_000),
                    Value::Double(3.0),
                ])
                .clone(),
            "sortBy" => self
                .random
                .pick(&[Value::Int32(1), doc! { "a": -1, "b.c": 1 }.into()])
                .clone(),
            "dateString" | "find" | "replacement" | "chars" | "regex" => text(&mut self.random, &TEXTS),
            "options" => text(&mut self.random, &["i", "imsx", ""]),
            "to" => text(
                &mut self.random,
                &[
                    "int", "long", "double", "decimal", "string", "bool", "date", "binData", "array",
                ],
            ),
            "base" => Value::Int32(*self.random.pick(&[2, 8, 10, 16])),
            "field" => text(&mut self.random, &["a", "x.y", ""]),
            "algorithm" => text(&mut self.random, &["md5", "sha256", "xxh64"]),
            "method" => "approximate".into(),
            "p" => array(vec![0.5.into(), 1.into()]),
            "vars" => doc! { "x": self.expression(depth), "this": self.leaf() }.into(),
            "branches" => array(vec![
                doc! { "case": self.leaf(), "then": self.expression(depth) }.into(),
            ]),
            "useLongestLength" | "iso8601" | "relaxed" | "score" => true.into(),
            "inputs" | "vectors" => array(vec![array(vec![1.into(), 2.into()]), self.expression(depth)]),
            _ => self.expression(depth),
        }
    }
}

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
