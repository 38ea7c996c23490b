//! Filters, projections and schemas made of operator names in any place and operands of any kind: they
//! parse or are refused, evaluate or fail, and never panic. What parses keeps its meaning when it is
//! normalized.

use nestor_model::{Array, DocRef, Document, Str, Value, ValueRef};
use nestor_query::json_schema::Schema;
use nestor_query::matcher::{Context, Filter};
use nestor_query::projection::Policy;
use nestor_query::validation::validation_error;
use nestor_query::{Env, MatchExpr, OpContext, Projection, Scope};
use nestor_testkit::random::Random;

const FILTER_NAMES: [&str; 42] = [
    "$and",
    "$or",
    "$nor",
    "$not",
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
    "$size",
    "$exists",
    "$type",
    "$mod",
    "$regex",
    "$options",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$expr",
    "$jsonSchema",
    "$comment",
    "$sampleRate",
    "$alwaysTrue",
    "$alwaysFalse",
    "$where",
    "$text",
    "$near",
    "$ref",
    "$id",
    "$db",
    "a",
    "a.b",
    "a.0",
    "0",
    "",
    ".",
    "a..b",
    "$",
];

const PROJECTION_NAMES: [&str; 24] = [
    "a",
    "b",
    "a.b",
    "a.0",
    "_id",
    "_id.x",
    "a.$",
    "a.b.$",
    "a.$.b",
    "$",
    ".",
    "a.",
    "",
    "$slice",
    "$elemMatch",
    "$meta",
    "$literal",
    "$add",
    "$cond",
    "$eq",
    "$gt",
    "$map",
    "$nope",
    "$$ROOT",
];

const SCHEMA_NAMES: [&str; 36] = [
    "bsonType",
    "type",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "title",
    "description",
    "$ref",
    "format",
    "nonsense",
    "a",
    "b",
    "0",
    "",
];

const TEXTS: [&str; 18] = [
    "int", "number", "string", "object", "^a", "(", "(?<=a)b", "i", "ims", "$a", "$$ROOT", "$", "a", "a.b", "integer",
    "recordId", "[0-9]+", "",
];

fn value(random: &mut Random, names: &[&str], depth: usize) -> Value {
    match random.below(8) {
        0..=2 if depth > 0 => document(random, names, depth - 1).into(),
        3 | 4 if depth > 0 => {
            let length = random.below(4);
            (0..length)
                .map(|_| value(random, names, depth - 1))
                .collect::<Array>()
                .into()
        }
        5 => Value::String(Str::from(*random.pick(&TEXTS))),
        6 => Value::Regex(Box::new(nestor_model::Regex {
            pattern: Str::from(*random.pick(&TEXTS)),
            options: Str::from(*random.pick(&["", "i", "g"])),
        })),
        _ => random.scalar(),
    }
}

fn document(random: &mut Random, names: &[&str], depth: usize) -> Document {
    let mut doc = Document::new();
    for _ in 0..random.below(4) {
        let name = *random.pick(names);
        let value = value(random, names, depth);
        // Duplicates on purpose.
        doc.push(name, value);
    }
    doc
}

fn parsed_share(cases: u64, run: impl Fn(&mut Random) -> bool) -> u64 {
    (0..cases).filter(|seed| run(&mut Random::new(*seed))).count() as u64 * 100 / cases
}

#[test]
fn filters() {
    let op = OpContext::default();
    let share = parsed_share(150_000, |random| {
        let context = *random.pick(&[Context::Find, Context::Pipeline, Context::Validator, Context::Element]);
        let filter = document(random, &FILTER_NAMES, 4);
        let Ok(expr) = MatchExpr::parse_in(filter.as_ref(), &mut Scope::new(), context) else {
            return false;
        };
        let doc = random.document(3);
        let answer = expr.matches(doc.as_ref(), &op);
        let normalized = expr.clone().normalize();
        normalized.serialize();
        let again = Filter::new(normalized).matches(doc.as_ref(), &op);
        if let (Ok(a), Ok(b)) = (&answer, &again) {
            let random_by_nature = format!("{filter:?}").contains("$sampleRate");
            assert!(a == b || random_by_nature, "{filter:?} on {doc:?}: {a} and {b}");
        }
        if let Ok(false) = answer {
            validation_error(&expr, doc.as_ref(), &op);
        }
        let _ = expr.matches_field("a", ValueRef::from(&Value::Document(doc)), &op);
        true
    });
    assert!(share > 10, "{share} % of the filters parse");
}

#[test]
fn projections() {
    let op = OpContext::default();
    let share = parsed_share(100_000, |random| {
        let spec = document(random, &PROJECTION_NAMES, 3);
        let _ = Projection::parse_unset(value(random, &PROJECTION_NAMES, 2).as_ref());
        let policy = *random.pick(&[Policy::Find, Policy::Project, Policy::AddFields]);
        let Ok(projection) = Projection::parse(spec.as_ref(), &mut Scope::new(), policy) else {
            return false;
        };
        let doc = random.document(3);
        let raw = doc.to_raw();
        let mut outputs = Vec::new();
        for doc in [doc.as_ref(), DocRef::Raw(raw.as_raw())] {
            let out = projection.apply(&mut Env::new(doc, &op), None);
            outputs.push(out.map(|d| d.to_raw()).map_err(|e| e.code().number()));
        }
        assert_eq!(outputs[0], outputs[1], "{spec:?} on {doc:?}");
        if projection.is_simple() {
            let bytes = projection.apply_raw_to_buf(raw.as_raw());
            assert_eq!(outputs[0].as_ref(), Ok(&bytes), "{spec:?} on {doc:?}");
        }
        true
    });
    assert!(share > 10, "{share} % of the projections parse");
}

#[test]
fn schemas() {
    let share = parsed_share(150_000, |random| {
        let source = document(random, &SCHEMA_NAMES, 3);
        let Ok(schema) = Schema::parse(source.as_ref()) else {
            return false;
        };
        let value = Value::Document(random.document(3));
        if let (Ok(answer), Ok(failures)) = (schema.matches(value.as_ref()), schema.failures(value.as_ref())) {
            assert_eq!(answer, failures.is_empty(), "{source:?} on {value:?}: {failures:?}");
        }
        true
    });
    assert!(share > 10, "{share} % of the schemas parse");
}

/// The corpus of the fuzz target `mql`. Seeds are named for what they are.
#[test]
fn fuzz_corpus() {
    let folder = std::path::Path::new("../../fuzz/corpus/mql");
    let mut parsed = 0;
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("a file");
        let doc = nestor_model::RawDoc::validate(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let understood = nestor_testkit::fuzz::mql(doc);
        let seed = path.file_name().is_some_and(|n| n.to_string_lossy().contains('-'));
        assert!(
            understood > 0 || !seed,
            "{} is neither filter, projection nor schema",
            path.display()
        );
        parsed += understood;
        files += 1;
    }
    assert!(files >= 10 && parsed >= files, "{files} files, read {parsed} ways");
}
