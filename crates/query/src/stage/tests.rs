//! Stages that are refused, and the errors.

use super::*;
use nestor_model::extjson;

fn parse(pipeline: &str) -> Result<Pipeline> {
    parse_on("db.c", pipeline)
}

fn parse_on(namespace: &str, pipeline: &str) -> Result<Pipeline> {
    let value = extjson::parse(pipeline).expect("valid JSON");
    let mut scope = Scope::new();
    let mut context = ParseContext::new(&mut scope, Namespace::parse(namespace), Place::Top);
    Pipeline::parse(value.as_array().expect("an array").as_ref(), &mut context)
}

#[test]
fn errors_by_stage() {
    for (pipeline, code) in [
        ("[1]", 14),
        (r#"[{}]"#, 40323),
        (r#"[{"$limit":1,"$skip":1}]"#, 40323),
        (r#"[{"$nope":1}]"#, 40324),
        (r#"[{"$limit":0}]"#, 15958),
        (r#"[{"$limit":"1"}]"#, 5_107_201),
        (r#"[{"$skip":-1}]"#, 5_107_200),
        (r#"[{"$count":""}]"#, 40157),
        (r#"[{"$count":"a.b"}]"#, 40160),
        (r#"[{"$sample":{"size":-1}}]"#, 28747),
        (r#"[{"$match":1}]"#, 15959),
        (r#"[{"$project":1}]"#, 15969),
        (r#"[{"$set":1}]"#, 40272),
        (r#"[{"$sort":1}]"#, 15973),
        (r#"[{"$unwind":"a"}]"#, 28818),
        (r#"[{"$unwind":{}}]"#, 28812),
        (r#"[{"$unwind":{"path":"$a","includeArrayIndex":"$i"}}]"#, 28822),
        (r#"[{"$replaceRoot":1}]"#, 40229),
        (r#"[{"$replaceRoot":{}}]"#, 40414),
        (r#"[{"$group":{}}]"#, 15955),
        (r#"[{"$group":{"_id":{"a":1}}}]"#, 17390),
        (r#"[{"$group":{"_id":null,"a.b":{"$sum":1}}}]"#, 40235),
        (r#"[{"$sortByCount":"a"}]"#, 40148),
        (r#"[{"$bucket":{"groupBy":"$x","boundaries":[1]}}]"#, 40192),
        (r#"[{"$bucket":{"groupBy":"$x","boundaries":[2,1]}}]"#, 40194),
        (r#"[{"$bucketAuto":{"groupBy":"$x","buckets":0}}]"#, 40243),
        (r#"[{"$facet":{}}]"#, 40169),
        (r#"[{"$facet":{"a":[{"$out":"x"}]}}]"#, 40600),
        (r#"[{"$lookup":{}}]"#, 9),
        (
            r#"[{"$lookup":{"from":"x","pipeline":[{"$out":"y"}],"as":"z"}}]"#,
            51047,
        ),
        (
            r#"[{"$lookup":{"from":"x","let":{"a":1},"pipeline":[{"$match":{"$expr":"$$b"}}],"as":"z"}}]"#,
            17276,
        ),
        (r#"[{"$unionWith":{"coll":"x","pipeline":[{"$merge":"y"}]}}]"#, 31441),
        (r#"[{"$graphLookup":{"from":"x","as":"y","maxDepth":-1}}]"#, 40101),
        (r#"[{"$out":"x"},{"$limit":1}]"#, 40601),
        (r#"[{"$limit":1},{"$indexStats":{}}]"#, 40602),
        (r#"[{"$merge":{"into":"t","whenMatched":"replace","let":{}}}]"#, 51199),
        (r#"[{"$documents":[]}]"#, 73),
        (r#"[{"$collStats":1}]"#, 5_447_000),
    ] {
        match parse(pipeline) {
            Err(error) => assert_eq!(error.code().number(), code, "{pipeline}: {error}"),
            Ok(_) => panic!("{pipeline} should be refused with {code}"),
        }
    }
}

#[test]
fn stages_without_a_collection() {
    assert!(parse_on("db", r#"[{"$documents":[{"a":1}]},{"$match":{"a":1}}]"#).is_ok());
    assert_eq!(
        parse_on("db", r#"[{"$match":{}}]"#)
            .expect_err("needs a collection")
            .code(),
        ErrorCode::InvalidNamespace
    );
}

#[test]
fn nesting_is_bounded() {
    let mut pipeline = "[]".to_string();
    for _ in 0..25 {
        pipeline = format!(r#"[{{"$unionWith":{{"coll":"x","pipeline":{pipeline}}}}}]"#);
    }
    assert_eq!(
        parse(&pipeline).expect_err("too deep").code(),
        ErrorCode::MaxSubPipelineDepthExceeded
    );
}
