//! Parsing, paths, variables, folding: what all operators share.

use super::testing::{check, json};
use super::{Deps, Expr};
use crate::env::{OpContext, Scope};

#[test]
fn paths_go_through_arrays_of_documents() {
    check(
        r#"{"a": {"b": 1}, "l": [{"b": 1}, 5, {"c": 2}, [{"b": 3}], {"b": {"c": 4}}], "n": [[{"b": 1}]]}"#,
        &[
            (r#""$a.b""#, "1"),
            (r#""$a.c""#, "missing"),
            (r#""$a.b.c""#, "missing"),
            (r#""$l.b""#, r#"[1, {"c": 4}]"#),
            (r#""$l.b.c""#, "[4]"),
            (r#""$l.0""#, "[]"),
            (r#""$n.b""#, "[]"),
            (r#""$$ROOT.a.b""#, "1"),
            (r#""$$CURRENT.a""#, r#"{"b": 1}"#),
            (r#""$$REMOVE""#, "missing"),
            (r#"["$zz", 1]"#, "[null, 1]"),
            (r#"{"x": "$zz", "y": "$a.b"}"#, r#"{"y": 1}"#),
            (r#""plain""#, "\"plain\""),
            (r#"{}"#, "{}"),
        ],
    );
}

#[test]
fn malformed_expressions() {
    check(
        "{}",
        &[
            (r#""$""#, "error 16872"),
            (r#""$$""#, "error 9"),
            (r#""$$$x""#, "error 9"),
            (r#""$a.""#, "error 40353"),
            (r#""$a..b""#, "error 15998"),
            (r#""$a.$b""#, "error 16410"),
            (r#""$$nope""#, "error 17276"),
            (r#"{"$nope": 1}"#, "error 168"),
            (r#"{"$and": [], "$or": []}"#, "error 15983"),
            (r#"{"a": 1, "$or": []}"#, "error 16410"),
            (r#"{"a.b": 1}"#, "error 16412"),
            (r#"{"a": {"": 1}}"#, "error 15998"),
            (r#"{"$eq": [1]}"#, "error 16020"),
            (r#"{"$not": [1, 2]}"#, "error 16020"),
            // Errors of constants come after those of parsing, and whatever branch is taken.
            (r#"[{"$divide": [1, 0]}, "$$nope"]"#, "error 17276"),
            (r#"{"$cond": [true, 1, {"$divide": [1, 0]}]}"#, "error 2"),
        ],
    );
}

#[test]
fn variables_bind_and_rebind() {
    check(
        r#"{"a": 1, "o": {"a": 2}}"#,
        &[
            (r#"{"$let": {"vars": {"x": "$a"}, "in": ["$$x", "$a"]}}"#, "[1, 1]"),
            (
                r#"{"$let": {"vars": {"CURRENT": "$o"}, "in": ["$a", "$$ROOT.a", "$$CURRENT"]}}"#,
                r#"[2, 1, {"a": 2}]"#,
            ),
            (
                r#"{"$let": {"vars": {"x": 1}, "in": {"$let": {"vars": {"x": 2, "y": "$$x"}, "in": ["$$x", "$$y"]}}}}"#,
                "[2, 1]",
            ),
            (
                r#"{"$let": {"vars": {"x": {"$let": {"vars": {"y": "$a"}, "in": "$$y"}}, "y": "$o"}, "in": ["$$x", "$$y.a"]}}"#,
                "[1, 2]",
            ),
            (
                r#"{"$let": {"vars": {"x": 1, "y": {"$let": {"vars": {"z": 2}, "in": "$$z"}}}, "in": ["$$x", "$$y"]}}"#,
                "[1, 2]",
            ),
            (r#"{"$let": {"vars": {"x": 1}, "in": "$$y"}}"#, "error 17276"),
        ],
    );
}

#[test]
fn conditions() {
    check(
        r#"{"t": true, "n": null}"#,
        &[
            (r#"{"$cond": ["$t", "y", {"$eq": ["$t"]}]}"#, "error 16020"),
            (r#"{"$cond": {"if": "$t", "then": 1, "else": 2}}"#, "1"),
            (r#"{"$cond": {"if": "$t", "then": 1}}"#, "error 17082"),
            (r#"{"$ifNull": ["$n", "$zz", 3]}"#, "3"),
            (r#"{"$ifNull": ["$n", "$zz"]}"#, "missing"),
            (
                r#"{"$switch": {"branches": [{"case": "$n", "then": 1}], "default": 2}}"#,
                "2",
            ),
            (
                r#"{"$switch": {"branches": [{"case": "$n", "then": 1}]}}"#,
                "error 40069",
            ),
            (r#"{"$and": ["$t", 1, "x"]}"#, "true"),
            (r#"{"$or": ["$n", 0, "$zz"]}"#, "false"),
            (r#"{"$lt": ["$zz", null]}"#, "true"),
            (r#"{"$cmp": [2, "a"]}"#, "-1"),
        ],
    );
}

#[test]
fn constants_fold_and_dependencies_are_found() {
    let mut scope = Scope::with_vars(["outer"]);
    let parse = |text: &str, scope: &mut Scope| Expr::parse(json(text).as_ref(), scope).expect("parses");
    assert!(parse(r#"{"a": [1, {"$eq": [1, 2]}]}"#, &mut scope).constant().is_some());
    let expr = parse(
        r#"{"$cond": [{"$eq": ["$a.b", "$$outer"]}, {"$let": {"vars": {"x": "$c"}, "in": "$$x.y"}}, 1]}"#,
        &mut scope,
    );
    let mut deps = Deps::default();
    expr.dependencies(&mut deps);
    assert_eq!(deps.paths.iter().map(String::as_str).collect::<Vec<_>>(), ["a.b", "c"]);
    assert!(deps.variables.contains(&0) && !deps.whole_document);
    let op = OpContext::default().with_vars(vec![5.into()]);
    let sum = parse(r#"["$$outer"]"#, &mut scope)
        .eval_without_document(&op)
        .expect("no document needed");
    assert_eq!(format!("{sum:?}"), "[5]");
}

#[test]
fn nesting_as_deep_as_documents_go_fits_a_small_stack() {
    // A test's thread has 2 MiB of stack, as the threads of many servers do.
    let mut deep = r#"{"$ifNull": ["$a", 1]}"#.to_owned();
    for i in 0..190 {
        deep = match i % 3 {
            0 => format!(r#"{{"$abs": {deep}}}"#),
            1 => format!(r#"{{"$not": {deep}}}"#),
            _ => format!(r#"{{"$toInt": {deep}}}"#),
        };
    }
    check(r#"{"a": 5}"#, &[(&deep, "0")]);
    let mut loops = r#""$$this""#.to_owned();
    for _ in 0..60 {
        loops = format!(r#"{{"$map": {{"input": ["$$this"], "in": {loops}}}}}"#);
    }
    assert!(
        super::testing::shown(
            r#"{"a": [5]}"#,
            &format!(r#"{{"$map": {{"input": "$a", "in": {loops}}}}}"#)
        )
        .starts_with("[[[[")
    );
}
