//! Scores, orders, counts, facets and highlights.

use super::{Fixture, boats, doc};
use crate::text::Search;
use nestor_model::Value;
use nestor_model::extjson::{Form, to_string};

/// Scores as Lucene's formula has them: two of three rows have the term, rows are two words long in the mean.
#[test]
fn scores_are_those_of_bm25() {
    let fixture = Fixture::new(
        "{'mappings': {'dynamic': true}}",
        &[
            "{'_id': 1, 'a': 'ash'}",
            "{'_id': 2, 'a': 'ash ash oak'}",
            "{'_id': 3, 'a': 'elm fir'}",
        ],
    );
    let idf = (1.0_f64 + (3.0 - 2.0 + 0.5) / (2.0 + 0.5)).ln();
    let score = |frequency: f64, length: f64| idf * frequency / (frequency + 1.2 * (0.25 + 0.75 * length / 2.0));
    let expected = format!("2={:.4} 1={:.4}", score(2.0, 3.0), score(1.0, 1.0));
    let (one, other) = (score(2.0, 3.0), score(1.0, 1.0));
    let expected = if one >= other {
        expected
    } else {
        format!("1={other:.4} 2={one:.4}")
    };
    assert_eq!(fixture.scores("{'text': {'query': 'ash', 'path': 'a'}}"), expected);
}

#[test]
fn scores_are_changed_as_is_asked_for() {
    let near = |score: &str| format!("{{'near': {{'path': 'tons', 'origin': 12, 'pivot': 4.5, 'score': {score}}}}}");
    for (score, expected) in [
        ("null", "1=1.0000 2=0.5000 3=0.2000"),
        ("{'boost': {'value': 3}}", "1=3.0000 2=1.5000 3=0.6000"),
        ("{'boost': {'path': 'tons'}}", "1=12.0000 3=6.0000 2=3.7500"),
        (
            "{'boost': {'path': 'nowhere', 'undefined': 10}}",
            "1=10.0000 2=5.0000 3=2.0000",
        ),
        ("{'constant': {'value': 5}}", "1=5.0000 2=5.0000 3=5.0000"),
        ("{'function': {'score': 'relevance'}}", "1=1.0000 2=0.5000 3=0.2000"),
        ("{'function': {'path': 'tons'}}", "3=30.0000 1=12.0000 2=7.5000"),
        (
            "{'function': {'add': [{'constant': 1}, {'score': 'relevance'}]}}",
            "1=2.0000 2=1.5000 3=1.2000",
        ),
        (
            "{'function': {'multiply': [{'path': {'value': 'tons'}}, {'constant': 2}]}}",
            "3=60.0000 1=24.0000 2=15.0000",
        ),
        (
            "{'function': {'log1p': {'constant': 99}}}",
            "1=2.0000 2=2.0000 3=2.0000",
        ),
        (
            "{'function': {'gauss': {'path': 'tons', 'origin': 12, 'scale': 4.5, 'decay': 0.5}}}",
            "1=1.0000 2=0.5000 3=0.0000",
        ),
    ] {
        assert_eq!(boats().scores(&near(score)), expected, "{score}");
    }
}

#[test]
fn details_explain_scores() {
    let found = boats()
        .search("{'text': {'query': 'heron', 'path': 'name'}, 'scoreDetails': true}")
        .expect("found");
    let hits = found.hits.all();
    let details = hits[0].details.as_ref().expect("details");
    let text = to_string(details, Form::Relaxed);
    for part in [
        "name:heron [BM25Similarity]",
        "idf, computed",
        "freq, occurrences",
        "avgdl",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let value = details
        .as_document()
        .and_then(|details| details.get("value"))
        .map(|value| value.to_value());
    assert!(matches!(value, Some(Value::Double(value)) if value == hits[0].score));
    assert!(hits.iter().all(|hit| hit.details.is_some()));
}

#[test]
fn results_are_sorted() {
    let all = |sort: &str| format!("{{'exists': {{'path': '_id'}}, 'sort': {sort}}}");
    for (sort, expected) in [
        ("{'tons': 1}", "4 5 2 1 3"),
        ("{'tons': -1}", "3 1 2 4 5"),
        ("{'tons': {'order': 1, 'noData': 'highest'}}", "2 1 3 4 5"),
        ("{'tons': {'order': -1, 'noData': 'highest'}}", "4 5 3 1 2"),
        ("{'_id': -1}", "5 4 3 2 1"),
        ("{'name': 1, '_id': -1}", "5 4 3 2 1"),
        ("{'fast': -1, '_id': 1}", "5 1 2 3 4"),
    ] {
        assert_eq!(boats().ids(&all(sort)), expected, "{sort}");
    }
    boats().check(&[
        (
            "{'text': {'query': 'heron', 'path': 'name'}, 'sort': {'x': {'$meta': 'searchScore'}}}",
            "3 1",
        ),
        (
            "{'text': {'query': 'heron', 'path': 'name'}, 'sort': {'x': {'$meta': 'searchScore', 'order': 1}}}",
            "1 3",
        ),
    ]);
}

/// Rows are put in order by chunks: all of them together are in order, whichever way they are read.
#[test]
fn many_results_are_in_order() {
    let number = |at: usize| at * 7_919 % 2_003;
    let docs: Vec<String> = (0..200)
        .map(|at| format!("{{'_id': {at}, 'n': {}}}", number(at) / 4))
        .collect();
    let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
    let fixture = Fixture::new("{'mappings': {'dynamic': true}}", &docs);
    let ids = |rest: &str| fixture.ids(&format!("{{'exists': {{'path': 'n'}}, 'sort': {{'n': -1}}{rest}}}"));
    let mut expected: Vec<usize> = (0..200).collect();
    expected.sort_by_key(|at| (std::cmp::Reverse(number(*at) / 4), *at));
    let text = |ids: &[usize]| ids.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(ids(""), text(&expected));
    let found = fixture
        .search("{'exists': {'path': 'n'}, 'sort': {'n': -1}}")
        .expect("found");
    let hits = found.hits.all();
    let Some(Value::String(token)) = hits[180].sequence_token() else {
        panic!("a token is a string");
    };
    assert_eq!(ids(&format!(", 'searchAfter': '{token}'")), text(&expected[181..]));
    expected.truncate(180);
    expected.reverse();
    assert_eq!(ids(&format!(", 'searchBefore': '{token}'")), text(&expected));
}

#[test]
fn pages_follow_each_other() {
    for rest in [
        "'text': {'query': 'grey heron', 'path': 'name'}",
        "'exists': {'path': '_id'}, 'sort': {'tons': -1}",
    ] {
        let fixture = boats();
        let all = fixture.ids(&format!("{{{rest}}}"));
        let found = fixture.search(&format!("{{{rest}}}")).expect("found");
        let ids: Vec<&str> = all.split(' ').collect();
        for (at, hit) in found.hits.all().iter().enumerate() {
            let Some(Value::String(token)) = hit.sequence_token() else {
                panic!("a token is a string");
            };
            let after = fixture.ids(&format!("{{{rest}, 'searchAfter': '{token}'}}"));
            assert_eq!(after, ids[at + 1..].join(" "));
            let mut before: Vec<&str> = ids[..at].to_vec();
            before.reverse();
            assert_eq!(
                fixture.ids(&format!("{{{rest}, 'searchBefore': '{token}'}}")),
                before.join(" ")
            );
        }
    }
}

#[test]
fn counts() {
    let fixture = boats();
    for (query, expected) in [
        (
            "{'text': {'query': 'heron', 'path': 'name'}}",
            "{'count':{'lowerBound':2}}",
        ),
        (
            "{'text': {'query': 'heron', 'path': 'name'}, 'count': {'type': 'total'}}",
            "{'count':{'total':2}}",
        ),
        (
            "{'text': {'query': 'x', 'path': 'name'}, 'sort': {'a': 1}, 'highlight': {'path': 'name'}}",
            "{'count':{'lowerBound':0}}",
        ),
    ] {
        assert_eq!(
            fixture.meta(query).replace([' '], "").replace('"', "'"),
            expected,
            "{query}"
        );
    }
}

/// Whatever their size, counts are of 64 bits.
#[test]
fn counts_are_long() {
    let query = doc("{'facet': {'facets': {'k': {'type': 'string', 'path': 'kind'}}}}");
    let search = Search::parse_meta((&query).into()).expect("a good query");
    let found = shop().ask(&search).expect("found");
    let meta = to_string(&Value::Document(found.meta.expect("always there")), Form::Canonical);
    assert_eq!(meta.matches("$numberLong").count(), 4, "{meta}");
}

fn shop() -> Fixture {
    Fixture::new(
        "{'mappings': {'dynamic': true, 'fields': {'kind': [{'type': 'token'}, {'type': 'string'}], 'old': {'type': 'stringFacet'}}}}",
        &[
            "{'_id': 1, 'kind': 'tea', 'price': 3, 'old': 'x', 'at': {'$date': '2020-01-05T00:00:00Z'}}",
            "{'_id': 2, 'kind': 'tea', 'price': [12, 14], 'at': {'$date': '2021-01-05T00:00:00Z'}}",
            "{'_id': 3, 'kind': ['pot', 'tea'], 'price': 40}",
            "{'_id': 4, 'kind': 'cup', 'price': [5, 11]}",
            "{'_id': 5, 'kind': 'pot'}",
        ],
    )
}

#[test]
fn facets_count_values() {
    let facet = |rest: &str| format!("{{'facet': {{{rest}}}}}");
    for (query, expected) in [
        (
            facet("'facets': {'k': {'type': 'string', 'path': 'kind'}}"),
            "{'count':{'lowerBound':5},'facet':{'k':{'buckets':[{'_id':'tea','count':3},{'_id':'pot','count':2},{'_id':'cup','count':1}]}}}",
        ),
        (
            facet(
                "'facets': {'k': {'type': 'string', 'path': 'kind', 'numBuckets': 1}}, 'operator': {'text': {'query': 'tea', 'path': 'kind'}}",
            ),
            "{'count':{'lowerBound':3},'facet':{'k':{'buckets':[{'_id':'tea','count':3}]}}}",
        ),
        (
            facet("'facets': {'p': {'type': 'number', 'path': 'price', 'boundaries': [0, 5, 15], 'default': 'rest'}}"),
            "{'count':{'lowerBound':5},'facet':{'p':{'buckets':[{'_id':0,'count':1},{'_id':5,'count':2},{'_id':'rest','count':1}]}}}",
        ),
        (
            facet("'facets': {'o': {'type': 'string', 'path': 'old'}}"),
            "{'count':{'lowerBound':5},'facet':{'o':{'buckets':[{'_id':'x','count':1}]}}}",
        ),
    ] {
        assert_eq!(
            shop().meta(&query).replace([' '], "").replace('"', "'"),
            expected,
            "{query}"
        );
    }
    let dates = facet(
        "'facets': {'d': {'type': 'date', 'path': 'at', 'boundaries': [{'$date': '2020-01-01T00:00:00Z'}, {'$date': '2021-01-01T00:00:00Z'}]}}",
    );
    assert!(
        shop().meta(&dates).contains("\"count\":1") || shop().meta(&dates).contains("\"count\": 1"),
        "{}",
        shop().meta(&dates)
    );
    for (query, expected) in [
        (facet("'facets': {}"), "empty"),
        (facet("'operator': {'exists': {'path': 'a'}}"), "facets"),
        (
            facet("'operator': {}, 'facets': {'k': {'type': 'string', 'path': 'kind'}}"),
            "must have one of",
        ),
        (facet("'facets': {'k': {'type': 'string', 'path': 'name'}}"), "token"),
        (
            facet("'facets': {'k': {'type': 'number', 'path': 'price', 'boundaries': [1]}}"),
            "at least 2",
        ),
        (
            facet("'facets': {'k': {'type': 'number', 'path': 'price', 'boundaries': [2, 1]}}"),
            "ascend",
        ),
        (
            facet("'facets': {'k': {'type': 'number', 'path': 'price', 'boundaries': ['a', 'b']}}"),
            "numbers",
        ),
        (
            facet("'facets': {'k': {'type': 'string', 'path': 'kind', 'numBuckets': 1001}}"),
            "bounds",
        ),
    ] {
        shop().check_refused(&[(&query, expected)]);
    }
}

#[test]
fn operators_may_spare_facets() {
    let query = "{'facet': {'operator': {'compound': {'must': [
          {'in': {'path': 'kind', 'value': 'cup', 'doesNotAffect': 'k'}}, {'range': {'path': 'price', 'lt': 20}}]}},
        'facets': {'k': {'type': 'string', 'path': 'kind'}, 'p': {'type': 'number', 'path': 'price', 'boundaries': [0, 100]}}}}";
    let expected = "{'count':{'lowerBound':1},'facet':{'k':{'buckets':[{'_id':'tea','count':2},{'_id':'cup','count':1}]},\
                    'p':{'buckets':[{'_id':0,'count':1}]}}}";
    assert_eq!(shop().meta(query).replace([' '], "").replace('"', "'"), expected);
}

#[test]
fn highlights_show_what_was_found() {
    let highlights = |query: &str| {
        let found = boats().search(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let highlights = found.hits.all()[0]
            .highlights
            .as_ref()
            .expect("highlights")
            .value()
            .expect("no interrupt");
        let passages = highlights.as_array().expect("an array");
        let passages = passages.iter().map(|passage| {
            let passage = passage.as_document().expect("a document");
            let texts = passage.get("texts").and_then(|texts| texts.as_array()).expect("texts");
            let texts = texts.iter().map(|text| {
                let text = text.as_document().expect("a document");
                let value = text.get("value").and_then(|value| value.as_str()).expect("a value");
                match text.get("type").and_then(|kind| kind.as_str()) {
                    Some("hit") => format!("[{value}]"),
                    _ => value.to_owned(),
                }
            });
            let path = passage.get("path").and_then(|path| path.as_str()).unwrap_or("?");
            format!("{path}: {}", texts.collect::<String>())
        });
        passages.collect::<Vec<_>>().join("\n")
    };
    for (query, expected) in [
        (
            "{'text': {'query': 'heron', 'path': 'name'}, 'highlight': {'path': 'name'}}",
            "name: [heron] [heron]",
        ),
        (
            "{'text': {'query': 'brûlée', 'path': 'name'}, 'highlight': {'path': 'name'}}",
            "name: Crème [brûlée]",
        ),
        (
            "{'text': {'query': 'grey dawn', 'path': 'about'}, 'highlight': {'path': 'about'}}",
            "about: A heron of [grey] steel. \nabout: She sails at [dawn].",
        ),
        (
            "{'text': {'query': 'grey dawn', 'path': 'about'}, 'highlight': {'path': 'about', 'maxNumPassages': 1}}",
            "about: She sails at [dawn].",
        ),
        (
            "{'text': {'query': 'grey dawn', 'path': 'about'}, 'highlight': {'path': 'about', 'maxCharsToExamine': 30}}",
            "about: A heron of [grey] steel. ",
        ),
        (
            "{'text': {'query': 'ferry', 'path': 'tags'}, 'highlight': {'path': {'wildcard': '*'}}}",
            "tags: grey [ferry]",
        ),
        (
            "{'text': {'query': 'ferry', 'path': 'tags'}, 'highlight': {'path': 'name'}}",
            "",
        ),
        (
            "{'wildcard': {'query': 's*', 'path': 'about', 'allowAnalyzedField': true}, 'highlight': {'path': 'about'}}",
            "about: A heron of grey [steel]. \nabout: [She] [sails] at dawn.",
        ),
    ] {
        assert_eq!(highlights(query), expected, "{query}");
    }
}

#[test]
fn what_is_stored_may_be_given() {
    let fixture = Fixture::new(
        "{'mappings': {'dynamic': true}, 'storedSource': {'include': ['a', 'b.c']}}",
        &["{'_id': 1, 'a': 1, 'b': {'c': 2, 'd': 3}, 'e': 4}"],
    );
    let stored = |fixture: &Fixture| {
        let found = fixture
            .search("{'exists': {'path': 'e'}, 'returnStoredSource': true}")
            .expect("found");
        let stored = found.hits.all()[0].stored.clone().expect("stored");
        to_string(&Value::Document(stored), Form::Relaxed).replace(['"', ' '], "")
    };
    assert_eq!(stored(&fixture), "{_id:1,a:1,b:{c:2}}");
    let fixture = Fixture::new(
        "{'mappings': {'dynamic': true}, 'storedSource': {'exclude': ['a', 'b.c']}}",
        &["{'_id': 1, 'a': 1, 'b': [{'c': 2, 'd': 3}, 7], 'e': 4}"],
    );
    assert_eq!(stored(&fixture), "{_id:1,b:[{d:3},7],e:4}");
    assert!(
        fixture.search("{'exists': {'path': 'e'}}").expect("found").hits.all()[0]
            .stored
            .is_none()
    );
}
