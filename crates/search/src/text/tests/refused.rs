//! Queries that are refused, whatever the index.

use super::boats;

#[test]
fn operands_that_are_wrong() {
    boats().check_refused(&[
        ("{}", "must be present"),
        ("{'index': 'default'}", "must be present"),
        ("{'Text': {}}", "unrecognized field \"Text\""),
        ("{'text': null}", "must be present"),
        ("{'text': 'heron'}", "must be a document"),
        (
            "{'exists': {'path': 'a'}, 'text': {'query': 'a', 'path': 'b'}}",
            "two operators",
        ),
        ("{'text': {'path': 'name'}}", "\"text.query\" is required"),
        ("{'text': {'query': '', 'path': 'name'}}", "empty"),
        ("{'text': {'query': [], 'path': 'name'}}", "empty"),
        ("{'text': {'query': ['a', null], 'path': 'name'}}", "string"),
        ("{'text': {'query': 'a'}}", "\"text.path\" is required"),
        ("{'text': {'query': 'a', 'path': []}}", "empty"),
        ("{'text': {'query': 'a', 'path': {}}}", "value"),
        ("{'text': {'query': 'a', 'path': {'wildcard': 'a**'}}}", "adjacent"),
        (
            "{'text': {'query': 'a', 'path': 'name', 'matchCriteria': 'some'}}",
            "one of",
        ),
        (
            "{'text': {'query': 'a', 'path': 'name', 'fuzzy': {'maxEdits': 3}}}",
            "bounds",
        ),
        (
            "{'text': {'query': 'a', 'path': 'name', 'fuzzy': {'maxExpansions': 1001}}}",
            "bounds",
        ),
        ("{'text': {'query': 'a', 'path': 'name', 'synonyms': 'x'}}", "synonyms"),
        ("{'text': {'query': 'a', 'path': 'name', 'score': {}}}", "exactly one"),
        (
            "{'text': {'query': 'a', 'path': 'name', 'score': {'embedded': {}}}}",
            "embedded",
        ),
        ("{'phrase': {'query': 'a', 'path': 'name', 'slop': -1}}", "at least 0"),
        ("{'phrase': {'query': 'a', 'path': 'name', 'slop': 1.5}}", "integer"),
        (
            "{'phrase': {'query': 'a', 'path': 'name', 'fuzzy': {}}}",
            "unrecognized",
        ),
        ("{'wildcard': {'query': 'a*', 'path': 'name'}}", "allowAnalyzedField"),
        (
            "{'regex': {'query': '(a', 'path': 'name', 'allowAnalyzedField': true}}",
            "not closed",
        ),
        (
            "{'regex': {'query': 'a~', 'path': 'name', 'allowAnalyzedField': true}}",
            "not supported",
        ),
        ("{'autocomplete': {'query': 'a', 'path': 'name'}}", "autocomplete"),
        ("{'autocomplete': {'query': 'a', 'path': ['name']}}", "string"),
        ("{'compound': {}}", "must have one of"),
        ("{'compound': {'must': []}}", "empty"),
        (
            "{'compound': {'must': [{'exists': {'path': 'a'}, 'bogus': 1}]}}",
            "bogus",
        ),
        (
            "{'compound': {'should': [{'exists': {'path': 'a'}}], 'minimumShouldMatch': 2}}",
            "bounds",
        ),
        ("{'equals': {'path': 'a'}}", "value"),
        ("{'equals': {'path': 'a', 'value': {'$numberDecimal': '1'}}}", "decimal"),
        ("{'in': {'path': 'a', 'value': []}}", "empty"),
        ("{'in': {'path': 'a', 'value': [1, 'a']}}", "one type"),
        ("{'in': {'path': 'a', 'value': [null]}}", "null"),
        ("{'range': {'path': 'a'}}", "one of gt"),
        ("{'range': {'path': 'a', 'gt': 1, 'gte': 1}}", "both"),
        ("{'range': {'path': 'a', 'gt': 1, 'lt': 1}}", "less"),
        ("{'range': {'path': 'a', 'gt': 1, 'lt': 'x'}}", "one type"),
        ("{'range': {'path': 'a', 'gt': null}}", "null"),
        ("{'near': {'path': 'a', 'origin': 1, 'pivot': 0}}", "positive"),
        ("{'near': {'path': 'a', 'origin': 'x', 'pivot': 1}}", "origin"),
        ("{'exists': {}}", "path"),
        ("{'moreLikeThis': {'like': 'x'}}", "document"),
        ("{'span': {}}", "exactly one"),
        ("{'span': {'contains': {'big': {}, 'little': {}}}}", "spanToReturn"),
        ("{'knnBeta': {'path': 'a'}}", "not supported"),
        ("{'vectorSearch': {}}", "not supported"),
        ("{'search': {'exists': {'path': 'a'}}}", "not supported"),
        ("{'hasAncestor': {}}", "ancestorPath"),
        ("{'hasRoot': {}}", "operator"),
        (
            "{'embeddedDocument': {'path': 'a', 'operator': {}}}",
            "must have one of",
        ),
    ]);
}

#[test]
fn options_that_are_wrong() {
    for (option, expected) in [
        ("'index': ''", "empty"),
        ("'index': 1", "string"),
        ("'bogus': 1", "bogus"),
        ("'count': {'type': 'some'}", "one of"),
        ("'count': {'threshold': -1}", "at least 0"),
        ("'count': []", "document"),
        ("'highlight': {}", "path"),
        ("'highlight': {'path': 'a', 'maxNumPassages': 0}", "at least 1"),
        ("'sort': {}", "empty"),
        ("'sort': {'a': 2}", "1 or -1"),
        ("'sort': {'a': {'$meta': 'other'}}", "searchScore"),
        ("'sort': {'a': {'noData': 'lowest'}}", "order"),
        ("'searchAfter': 'nonsense'", "no token"),
        ("'searchAfter': 1", "string"),
        ("'concurrent': 1", "boolean"),
        ("'scoreDetails': 'x'", "boolean"),
        ("'returnScope': {}", "path"),
        ("'returnScope': {'path': 'a'}", "returnStoredSource"),
        ("'returnStoredSource': true", "storedSource"),
        ("'searchNodePreference': {}", "key"),
        ("'tracking': {}", "searchTerms"),
    ] {
        let query = format!("{{'exists': {{'path': 'name'}}, {option}}}");
        boats().check_refused(&[(&query, expected)]);
    }
}

/// Patterns that would take all memory or all time are refused before they do.
#[test]
fn patterns_that_are_too_large() {
    let stars = "*".repeat(100_000);
    for (pattern, expected) in [
        ("((a{500}){500}){500}".to_owned(), "too large"),
        ("((){200000}){200000}".to_owned(), "too large"),
        (format!("a{stars}"), "repetitions"),
        ("(".repeat(100_000), "too deep"),
        ("a{300000}".to_owned(), "not too large"),
    ] {
        let query = format!("{{'regex': {{'query': '{pattern}', 'path': 'name', 'allowAnalyzedField': true}}}}");
        boats().check_refused(&[(&query, expected)]);
    }
    let long = format!("{{'wildcard': {{'query': '{stars}seal{stars}', 'path': 'name', 'allowAnalyzedField': true}}}}");
    assert_eq!(boats().ids(&long), "2");
}

#[test]
fn too_many_clauses() {
    let words: Vec<String> = (0..1025).map(|number| format!("'w{number}'")).collect();
    let query = format!("{{'text': {{'path': 'name', 'query': [{}]}}}}", words.join(", "));
    boats().check_refused(&[(&query, "1024 clauses")]);
    let long = format!(
        "{{'text': {{'path': 'name', 'query': '{}'}}}}",
        "é".repeat(1024 * 255 + 1)
    );
    boats().check_refused(&[(&long, "1024 clauses")]);
    let most = format!(
        "{{'text': {{'path': 'name', 'query': ['seal', {}]}}}}",
        words[..1023].join(", ")
    );
    assert_eq!(boats().ids(&most), "2");
}
