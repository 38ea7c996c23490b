//! Expressions of any operators on operands of any kind, with arguments that are likely enough to get past parsing.

use crate::random::Random;
use nestor_model::{Array, Document, Value, doc};

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

/// Makes expressions; the same seed makes the same ones.
pub struct Generator {
    /// Decides.
    pub random: Random,
    /// The operators that expressions are made of, sorted.
    pub operators: Vec<&'static str>,
}

impl Generator {
    /// Expressions of these operators.
    pub fn new(seed: u64, operators: impl Iterator<Item = &'static str>) -> Self {
        let mut operators: Vec<_> = operators.collect();
        operators.sort_unstable();
        Self {
            random: Random::new(seed),
            operators,
        }
    }

    /// A value or a reference to one.
    pub fn leaf(&mut self) -> Value {
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

    /// An expression with at most `depth` operators inside each other.
    pub fn expression(&mut self, depth: usize) -> Value {
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
