use super::*;
use nestor_model::{Array, Document, Value, doc};

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    items.into_iter().collect::<Array>().into()
}

fn verdict(options: Document, new: Document, old: Option<Document>) -> &'static str {
    let op = OpContext::default();
    let options = CollectionOptions::parse(options).expect("valid options");
    let validator = Validator::from_options(&options).expect("a valid validator");
    let Some(validator) = validator else { return "unchecked" };
    match validator.check(new.as_ref(), old.as_ref().map(Document::as_ref), &op) {
        Ok(Verdict::Pass) => "pass",
        Ok(Verdict::Warn(_)) => "warn",
        Ok(Verdict::Refuse { error, log }) => {
            assert_eq!(error.code().number(), 121);
            if log { "refuse and log" } else { "refuse" }
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn levels_and_actions() {
    let options = |level: &str, action: &str| {
        doc! {"validator": doc! {"a": 1}, "validationLevel": level, "validationAction": action}
    };
    let (good, bad) = (|| doc! {"a": 1}, || doc! {"a": 2});
    assert_eq!(verdict(doc! {}, bad(), None), "unchecked");
    assert_eq!(verdict(doc! {"validator": doc! {}}, bad(), None), "unchecked");
    assert_eq!(verdict(doc! {"validator": doc! {"a": 1}}, bad(), None), "refuse");
    assert_eq!(verdict(options("strict", "error"), good(), None), "pass");
    assert_eq!(verdict(options("strict", "error"), bad(), Some(bad())), "refuse");
    assert_eq!(verdict(options("moderate", "error"), bad(), Some(bad())), "pass");
    assert_eq!(verdict(options("moderate", "error"), bad(), Some(good())), "refuse");
    assert_eq!(verdict(options("moderate", "error"), bad(), None), "refuse");
    assert_eq!(verdict(options("off", "error"), bad(), None), "unchecked");
    assert_eq!(verdict(options("strict", "warn"), bad(), None), "warn");
    assert_eq!(verdict(options("strict", "errorAndLog"), bad(), None), "refuse and log");
}

#[test]
fn refused_validators() {
    let near = || doc! {"$near": nestor_model::Value::Array(Default::default())};
    let cases = [
        (doc! {"$where": "true"}, 2),
        (doc! {"$text": doc! {"$search": "x"}}, 2),
        (doc! {"a": near()}, 5_626_500),
        (doc! {"$nope": 1}, 2),
    ];
    for (filter, code) in cases {
        let error = Validator::parse(filter.as_ref()).expect_err("refused");
        assert_eq!(error.code().number(), code, "{filter:?}");
    }
}

fn why(validator: Document, document: Document) -> String {
    let expr = MatchExpr::parse(validator.as_ref(), &mut Scope::new()).expect("parses");
    let op = OpContext::default();
    assert!(
        !expr.matches(document.as_ref(), &op).expect("evaluates"),
        "the document must fail"
    );
    format!(
        "{:?}",
        failure::details(&expr, document.as_ref(), &op).expect("explains")
    )
}

#[test]
fn details_of_a_schema() {
    let schema = doc! {
        "title": "Student",
        "required": list(["name".into(), "major".into()]),
        "properties": doc! { "gpa": doc! { "bsonType": list(["double".into()]), "description": "must be a double" } },
    };
    assert_eq!(
        why(doc! { "$jsonSchema": schema }, doc! { "_id": 1, "name": "A", "gpa": 3 }),
        concat!(
            r#"{"operatorName": "$jsonSchema", "title": "Student", "schemaRulesNotSatisfied": ["#,
            r#"{"operatorName": "properties", "propertiesNotSatisfied": [{"propertyName": "gpa", "#,
            r#""description": "must be a double", "details": [{"operatorName": "bsonType", "#,
            r#""specifiedAs": {"bsonType": ["double"]}, "reason": "type did not match", "#,
            r#""consideredValue": 3, "consideredType": "int"}]}]}, "#,
            r#"{"operatorName": "required", "specifiedAs": {"required": ["name", "major"]}, "#,
            r#""missingProperties": ["major"]}]}"#
        )
    );
}

#[test]
fn details_of_query_expressions() {
    assert_eq!(
        why(doc! { "a": doc! { "$gt": 5 } }, doc! { "a": 1 }),
        r#"{"operatorName": "$gt", "specifiedAs": {"a": {"$gt": 5}}, "reason": "comparison failed", "consideredValue": 1}"#
    );
    assert_eq!(
        why(doc! { "a": doc! { "$ne": 5 } }, doc! { "a": 5 }),
        r#"{"operatorName": "$ne", "specifiedAs": {"a": {"$ne": 5}}, "reason": "comparison succeeded", "consideredValue": 5}"#
    );
    assert_eq!(
        why(doc! { "a": doc! { "$exists": true }, "b": 1 }, doc! { "b": 2 }),
        concat!(
            r#"{"operatorName": "$and", "clausesNotSatisfied": ["#,
            r#"{"index": 0, "details": {"operatorName": "$exists", "specifiedAs": {"a": {"$exists": true}}, "reason": "path does not exist"}}, "#,
            r#"{"index": 1, "details": {"operatorName": "$eq", "specifiedAs": {"b": {"$eq": 1}}, "reason": "comparison failed", "consideredValue": 2}}]}"#
        )
    );
    assert_eq!(
        why(
            doc! { "a": doc! { "$mod": list([2.into(), 0.into()]) } },
            doc! { "a": "x" }
        ),
        concat!(
            r#"{"operatorName": "$mod", "specifiedAs": {"a": {"$mod": [Long(2), Long(0)]}}, "reason": "type did not match", "#,
            r#""consideredValue": "x", "consideredType": "string", "expectedTypes": ["decimal", "double", "int", "long", "array"]}"#
        )
    );
    let error = {
        let expr = MatchExpr::parse(doc! { "a": 1 }.as_ref(), &mut Scope::new()).expect("parses");
        validation_error(&expr, doc! { "_id": 7 }.as_ref(), &OpContext::default())
    };
    assert_eq!(error.code().number(), 121);
    assert_eq!(
        format!("{:?}", error.extra()),
        r#"Some({"errInfo": {"failingDocumentId": 7, "details": {"operatorName": "$eq", "specifiedAs": {"a": {"$eq": 1}}, "reason": "field was missing"}}})"#
    );
}
