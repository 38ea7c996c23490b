//! Operators.

use super::{Fixture, boats};

#[test]
fn text_finds_any_term_and_the_best_first() {
    boats().check(&[
        ("{'text': {'query': 'heron', 'path': 'name'}}", "3 1"),
        ("{'text': {'query': 'HERON seal', 'path': 'name'}}", "2 3 1"),
        (
            "{'text': {'query': ['seal', 'ferry'], 'path': ['name', 'tags']}}",
            "2 3",
        ),
        (
            "{'text': {'query': 'grey heron', 'path': 'name', 'matchCriteria': 'all'}}",
            "1",
        ),
        ("{'text': {'query': 'heron', 'path': 'crew.mate'}}", "2"),
        ("{'text': {'query': 'heron', 'path': {'wildcard': '*'}}}", "1 3 2"),
        ("{'text': {'query': 'heron', 'path': {'wildcard': 'cr*te'}}}", "2"),
        ("{'text': {'query': 'heron', 'path': {'value': 'name'}}}", "3 1"),
        ("{'text': {'query': 'heron', 'path': 'nowhere'}}", ""),
        ("{'text': {'query': '!?', 'path': 'name'}}", ""),
        ("{'text': {'query': '12', 'path': 'tons'}}", ""),
    ]);
}

#[test]
fn fuzzy_counts_characters() {
    boats().check(&[
        (
            "{'text': {'query': 'creme', 'path': 'name', 'fuzzy': {'maxEdits': 1}}}",
            "4",
        ),
        (
            "{'text': {'query': 'brulee', 'path': 'name', 'fuzzy': {'maxEdits': 1}}}",
            "",
        ),
        ("{'text': {'query': 'brulee', 'path': 'name', 'fuzzy': {}}}", "4"),
        (
            "{'text': {'query': 'hreon', 'path': 'name', 'fuzzy': {'maxEdits': 1}}}",
            "3 1",
        ),
        (
            "{'text': {'query': 'hxron', 'path': 'name', 'fuzzy': {'maxEdits': 1, 'prefixLength': 2}}}",
            "",
        ),
        (
            "{'text': {'query': 'hexon', 'path': 'name', 'fuzzy': {'maxEdits': 1, 'prefixLength': 2}}}",
            "3 1",
        ),
        (
            "{'text': {'query': 'heron', 'path': 'name', 'fuzzy': {'maxEdits': 1}}}",
            "3 1 5",
        ),
        (
            "{'text': {'query': 'heron', 'path': 'name', 'fuzzy': {'maxEdits': 1, 'maxExpansions': 1}}}",
            "3 1",
        ),
    ]);
}

#[test]
fn phrases_keep_their_order() {
    boats().check(&[
        ("{'phrase': {'query': 'grey heron', 'path': 'name'}}", "1"),
        ("{'phrase': {'query': 'heron grey', 'path': 'name'}}", ""),
        ("{'phrase': {'query': 'heron grey', 'path': 'name', 'slop': 2}}", "1"),
        ("{'phrase': {'query': 'heron grey', 'path': 'about'}}", ""),
        ("{'phrase': {'query': 'heron grey', 'path': 'about', 'slop': 1}}", "1"),
        (
            "{'phrase': {'query': ['grey seal', 'of the north'], 'path': 'name'}}",
            "5 2",
        ),
        ("{'phrase': {'query': 'heron heron', 'path': 'name'}}", "3"),
        ("{'phrase': {'query': 'Seal', 'path': {'wildcard': '*'}}}", "2"),
        ("{'phrase': {'query': 'grey heron', 'path': ['about', 'name']}}", "1"),
    ]);
}

#[test]
fn compound_combines_clauses() {
    let heron = "{'text': {'query': 'heron', 'path': 'name'}}";
    let grey = "{'text': {'query': 'grey', 'path': 'name'}}";
    let heavy = "{'range': {'path': 'tons', 'gte': 10}}";
    let cases = [
        (format!("{{'compound': {{'must': [{heron}, {grey}]}}}}"), "1"),
        (format!("{{'compound': {{'must': {heron}, 'mustNot': [{grey}]}}}}"), "3"),
        (format!("{{'compound': {{'should': [{heron}, {grey}]}}}}"), "1 3 2"),
        (
            format!("{{'compound': {{'should': [{heron}, {grey}], 'minimumShouldMatch': 2}}}}"),
            "1",
        ),
        (
            format!("{{'compound': {{'filter': [{heavy}], 'should': {grey}}}}}"),
            "1 3",
        ),
        (
            format!("{{'compound': {{'filter': [{heavy}], 'should': {grey}, 'minimumShouldMatch': 1}}}}"),
            "1",
        ),
        (format!("{{'compound': {{'mustNot': [{heavy}]}}}}"), "2 4 5"),
        (
            format!("{{'compound': {{'must': {{'compound': {{'should': {heron}}}}}, 'filter': {heavy}}}}}"),
            "3 1",
        ),
        (
            format!("{{'compound': {{'should': [{heron}], 'mustNot': [{heavy}], 'minimumShouldMatch': 0}}}}"),
            "",
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(boats().ids(&query), expected, "{query}");
    }
}

#[test]
fn patterns_are_compared_with_whole_terms() {
    boats().check(&[
        (
            "{'wildcard': {'query': 'her*', 'path': 'name', 'allowAnalyzedField': true}}",
            "1 3 5",
        ),
        (
            "{'wildcard': {'query': 'h?ron', 'path': 'name', 'allowAnalyzedField': true}}",
            "1 3",
        ),
        (
            "{'wildcard': {'query': 'HER*', 'path': 'name', 'allowAnalyzedField': true}}",
            "",
        ),
        (
            "{'wildcard': {'query': ['*rth', 'se*l'], 'path': {'wildcard': 'n*'}, 'allowAnalyzedField': true}}",
            "2 5",
        ),
        (
            "{'wildcard': {'query': '*', 'path': 'about', 'allowAnalyzedField': true}}",
            "1 2 4",
        ),
        (
            "{'regex': {'query': 'herons?', 'path': 'name', 'allowAnalyzedField': true}}",
            "1 3 5",
        ),
        (
            "{'regex': {'query': 'her', 'path': 'name', 'allowAnalyzedField': true}}",
            "",
        ),
        (
            "{'regex': {'query': '[g-s]e.{2}(on)?', 'path': 'name', 'allowAnalyzedField': true}}",
            "2",
        ),
        (
            "{'regex': {'query': '', 'path': 'name', 'allowAnalyzedField': true}}",
            "",
        ),
        (
            "{'regex': {'query': 'nowhere', 'path': 'nowhere', 'allowAnalyzedField': true}}",
            "",
        ),
    ]);
    let keywords = Fixture::new(
        "{'mappings': {'fields': {'code': {'type': 'string', 'analyzer': 'lucene.keyword'}}}}",
        &[
            "{'_id': 1, 'code': 'A-1 *'}",
            "{'_id': 2, 'code': 'A-17'}",
            "{'_id': 3, 'code': 'b'}",
        ],
    );
    keywords.check(&[
        ("{'wildcard': {'query': 'A-*', 'path': 'code'}}", "1 2"),
        ("{'wildcard': {'query': 'A-1 \\\\*', 'path': 'code'}}", "1"),
        ("{'regex': {'query': 'A-[0-9]+', 'path': 'code'}}", "2"),
        ("{'regex': {'query': 'a-.*', 'path': 'code'}}", ""),
    ]);
}

#[test]
fn values_are_compared_by_their_types() {
    let values = Fixture::new(
        "{'mappings': {'fields': {
            'n': {'type': 'number'}, 't': {'type': 'token'}, 'low': {'type': 'token', 'normalizer': 'lowercase'},
            'd': {'type': 'date'}, 'b': {'type': 'boolean'}, 'o': {'type': 'objectId'}, 'u': {'type': 'uuid'}, 's': {'type': 'string'}}}}",
        &[
            "{'_id': 1, 'n': 3, 't': 'Ash', 'low': 'Ash', 'b': true, 's': 'Ash'}",
            "{'_id': 2, 'n': {'$numberLong': '3'}, 't': 'elm', 'b': false, 'o': {'$oid': '0000000000000000000000aa'}}",
            "{'_id': 3, 'n': [1, 8.5], 't': ['oak', 'elm'], 'd': {'$date': '2020-05-06T07:08:09Z'}}",
            "{'_id': 4, 'n': {'$numberDouble': 'NaN'}, 't': null, 'u': {'$uuid': '00112233-4455-6677-8899-aabbccddeeff'}}",
            "{'_id': 5, 'n': {'$numberDouble': 'Infinity'}, 'n2': 3}",
            "{'_id': 6, 'n': {'$numberDouble': '-0.0'}, 's': null}",
        ],
    );
    values.check(&[
        ("{'equals': {'path': 'n', 'value': 3.0}}", "1 2"),
        ("{'equals': {'path': 'n', 'value': 0}}", "6"),
        ("{'equals': {'path': 'n', 'value': {'$numberDouble': 'NaN'}}}", ""),
        (
            "{'in': {'path': 'n', 'value': [{'$numberDouble': 'NaN'}, {'$numberDouble': 'Infinity'}]}}",
            "4 5",
        ),
        ("{'in': {'path': ['n', 'n2'], 'value': 8.5}}", "3"),
        ("{'equals': {'path': 't', 'value': 'Ash'}}", "1"),
        ("{'equals': {'path': 't', 'value': 'ash'}}", ""),
        ("{'equals': {'path': 'low', 'value': 'ASH'}}", "1"),
        ("{'in': {'path': 't', 'value': ['elm', 'fir']}}", "2 3"),
        ("{'equals': {'path': 't', 'value': null}}", "4"),
        ("{'equals': {'path': 's', 'value': null}}", "6"),
        ("{'equals': {'path': 'b', 'value': false}}", "2"),
        ("{'equals': {'path': 'n2', 'value': 3}}", ""),
        (
            "{'equals': {'path': 'd', 'value': {'$date': '2020-05-06T07:08:09Z'}}}",
            "3",
        ),
        (
            "{'equals': {'path': 'o', 'value': {'$oid': '0000000000000000000000aa'}}}",
            "2",
        ),
        (
            "{'equals': {'path': 'u', 'value': {'$uuid': '00112233-4455-6677-8899-aabbccddeeff'}}}",
            "4",
        ),
        ("{'range': {'path': 'n', 'gt': 1, 'lt': 9}}", "1 2 3"),
        ("{'range': {'path': 'n', 'lte': 1}}", "3 6"),
        ("{'range': {'path': 'n', 'gte': 8}}", "3 5"),
        ("{'range': {'path': 'n', 'gte': {'$numberDouble': 'NaN'}}}", ""),
        ("{'range': {'path': 't', 'gt': 'Ash', 'lte': 'elm'}}", "2 3"),
        ("{'range': {'path': 'n', 'gte': 'a'}}", ""),
        ("{'range': {'path': 't', 'gte': 1}}", ""),
        ("{'range': {'path': 'd', 'gt': {'$date': '2020-01-01T00:00:00Z'}}}", "3"),
        (
            "{'range': {'path': 'o', 'lt': {'$oid': '0000000000000000000000ab'}}}",
            "2",
        ),
        ("{'range': {'path': ['n', 'd'], 'gte': 8, 'doesNotAffect': 'x'}}", "3 5"),
    ]);
    values.check_refused(&[
        ("{'equals': {'path': 's', 'value': 'Ash'}}", "token"),
        ("{'in': {'path': 'nowhere', 'value': 'Ash'}}", "token"),
        ("{'range': {'path': 'd', 'gte': 'a'}}", "token"),
    ]);
}

#[test]
fn exists_is_of_what_is_indexed() {
    let fixture = Fixture::new(
        "{'mappings': {'fields': {'a': {'type': 'number'}, 'd': {'type': 'document', 'fields': {'s': {'type': 'string'}}},
            'e': {'type': 'embeddedDocuments', 'dynamic': true}}}}",
        &[
            "{'_id': 1, 'a': 1}",
            "{'_id': 2, 'a': 'no number', 'b': 1}",
            "{'_id': 3, 'a': null, 'd': {'s': 'x'}}",
            "{'_id': 4, 'd': {'t': 'x'}, 'e': [{'f': 1}, {'g': 'two words'}]}",
            "{'_id': 5, 'a': [], 'd': 7}",
        ],
    );
    fixture.check(&[
        ("{'exists': {'path': 'a'}}", "1 3"),
        ("{'exists': {'path': 'b'}}", ""),
        ("{'exists': {'path': 'd'}}", "3 4"),
        ("{'exists': {'path': 'd.s'}}", "3"),
        ("{'exists': {'path': 'e'}}", "4"),
        ("{'exists': {'path': 'e.f'}}", ""),
        (
            "{'embeddedDocument': {'path': 'e', 'operator': {'exists': {'path': 'e.g'}}}}",
            "4",
        ),
        ("{'compound': {'mustNot': {'exists': {'path': 'a'}}}}", "2 4 5"),
    ]);
}

#[test]
fn near_counts_distances() {
    let fixture = Fixture::new(
        "{'mappings': {'fields': {'n': {'type': 'number'}, 'd': {'type': 'date'}, 'p': {'type': 'geo'}}}}",
        &[
            "{'_id': 1, 'n': 10, 'd': {'$date': '2020-01-01T00:00:00Z'}, 'p': {'type': 'Point', 'coordinates': [0, 0]}}",
            "{'_id': 2, 'n': [14, 40], 'd': {'$date': '2020-01-02T00:00:00Z'}, 'p': {'type': 'Point', 'coordinates': [0, 1]}}",
            "{'_id': 3, 'm': 10}",
        ],
    );
    for (query, expected) in [
        ("{'near': {'path': 'n', 'origin': 12, 'pivot': 2}}", "1=0.5000 2=0.5000"),
        ("{'near': {'path': 'n', 'origin': 10, 'pivot': 4}}", "1=1.0000 2=0.5000"),
        (
            "{'near': {'path': 'd', 'origin': {'$date': '2020-01-02T00:00:00Z'}, 'pivot': 86400000}}",
            "2=1.0000 1=0.5000",
        ),
        (
            "{'near': {'path': 'n', 'origin': {'$numberDouble': 'NaN'}, 'pivot': 1}}",
            "1=0.0000 2=0.0000",
        ),
        ("{'near': {'path': 'd', 'origin': 12, 'pivot': 2}}", ""),
        (
            "{'near': {'path': 'p', 'origin': {'type': 'Point', 'coordinates': [0, 1]}, 'pivot': 1000}}",
            "2=1.0000 1=0.0089",
        ),
    ] {
        assert_eq!(fixture.scores(query), expected, "{query}");
    }
}

#[test]
fn autocomplete_finds_beginnings_of_words() {
    let docs = [
        "{'_id': 1, 'w': 'Notre forêt', 'r': 'heron', 'g': 'heron'}",
        "{'_id': 2, 'w': 'forest path', 'r': 'baron', 'g': 'other'}",
        "{'_id': 3, 'w': 'path forest', 'r': 'her', 'g': 'rota'}",
    ];
    let fixture = Fixture::new(
        "{'mappings': {'fields': {'w': {'type': 'autocomplete'},
            'r': {'type': 'autocomplete', 'tokenization': 'rightEdgeGram', 'minGrams': 3},
            'g': {'type': 'autocomplete', 'tokenization': 'nGram', 'minGrams': 3, 'maxGrams': 4}}}}",
        &docs,
    );
    fixture.check(&[
        ("{'autocomplete': {'path': 'w', 'query': 'FOR'}}", "1 2 3"),
        ("{'autocomplete': {'path': 'w', 'query': 'forê'}}", "1 2 3"),
        ("{'autocomplete': {'path': 'w', 'query': 'fores'}}", "2 3"),
        ("{'autocomplete': {'path': 'w', 'query': 'f'}}", ""),
        ("{'autocomplete': {'path': 'w', 'query': 'orest'}}", ""),
        ("{'autocomplete': {'path': 'w', 'query': 'forest pa'}}", "2 3"),
        (
            "{'autocomplete': {'path': 'w', 'query': 'forest pa', 'tokenOrder': 'sequential'}}",
            "2",
        ),
        ("{'autocomplete': {'path': 'w', 'query': ['not', 'pat']}}", "1 2 3"),
        (
            "{'autocomplete': {'path': 'w', 'query': 'fuest', 'fuzzy': {'maxEdits': 1}}}",
            "",
        ),
        (
            "{'autocomplete': {'path': 'w', 'query': 'fowest', 'fuzzy': {'maxEdits': 1}}}",
            "2 3",
        ),
        (
            "{'autocomplete': {'path': 'w', 'query': 'xorest', 'fuzzy': {'maxEdits': 1, 'prefixLength': 1}}}",
            "",
        ),
        ("{'autocomplete': {'path': 'r', 'query': 'ron'}}", "1 2"),
        ("{'autocomplete': {'path': 'r', 'query': 'her'}}", "3"),
        ("{'autocomplete': {'path': 'g', 'query': 'ero'}}", "1"),
        ("{'autocomplete': {'path': 'g', 'query': 'thers'}}", "2"),
    ]);
}

#[test]
fn query_strings() {
    boats().check(&[
        ("{'queryString': {'defaultPath': 'name', 'query': 'heron'}}", "3 1"),
        (
            "{'queryString': {'defaultPath': 'name', 'query': 'heron AND grey'}}",
            "1",
        ),
        (
            "{'queryString': {'defaultPath': 'name', 'query': 'seal OR north'}}",
            "2 5",
        ),
        (
            "{'queryString': {'defaultPath': 'name', 'query': 'heron NOT grey'}}",
            "3",
        ),
        ("{'queryString': {'defaultPath': 'name', 'query': '+heron -grey'}}", "3"),
        (
            "{'queryString': {'defaultPath': 'name', 'query': '(seal OR heron) AND grey'}}",
            "2 1",
        ),
        (
            "{'queryString': {'defaultPath': 'name', 'query': 'about:(steel swims)'}}",
            "2 1",
        ),
        (
            "{'queryString': {'defaultPath': 'name', 'query': '\\\"grey heron\\\"'}}",
            "1",
        ),
        (
            "{'queryString': {'defaultPath': 'about', 'query': '\\\"heron grey\\\"~1'}}",
            "1",
        ),
        ("{'queryString': {'defaultPath': 'name', 'query': 'HER*'}}", "1 3 5"),
        ("{'queryString': {'defaultPath': 'name', 'query': 's?al'}}", "2"),
        ("{'queryString': {'defaultPath': 'name', 'query': 'sael~1'}}", "2"),
        ("{'queryString': {'defaultPath': 'name', 'query': '/her.*s/'}}", "5"),
        (
            "{'queryString': {'defaultPath': 'name', 'query': '[north TO seal]'}}",
            "2 5",
        ),
        (
            "{'queryString': {'defaultPath': 'name', 'query': '{north TO *]'}}",
            "1 2 5",
        ),
        (
            "{'queryString': {'defaultPath': 'name', 'query': 'seal^5 heron'}}",
            "2 3 1",
        ),
        ("{'queryString': {'defaultPath': 'name', 'query': '*:*'}}", "1 2 3 4 5"),
        (
            "{'queryString': {'defaultPath': 'name', 'query': 'crew.mate:smith'}}",
            "2",
        ),
    ]);
    boats().check_refused(&[
        (
            "{'queryString': {'defaultPath': 'name', 'query': 'a AND AND b'}}",
            "unexpected AND",
        ),
        ("{'queryString': {'defaultPath': 'name', 'query': '(a'}}", "not closed"),
        ("{'queryString': {'defaultPath': 'name', 'query': 'a)'}}", "unexpected"),
        ("{'queryString': {'defaultPath': 'name', 'query': 'a OR'}}", "too early"),
        (
            "{'queryString': {'defaultPath': 'name', 'query': '\\\"a'}}",
            "not closed",
        ),
        ("{'queryString': {'defaultPath': 'name', 'query': '[a b]'}}", "TO"),
        (
            "{'queryString': {'defaultPath': 'name', 'query': ''}}",
            "nothing to look for",
        ),
    ]);
}

#[test]
fn what_is_like_a_document_shares_terms() {
    boats().check(&[
        ("{'moreLikeThis': {'like': {'name': 'north seal'}}}", "2 5"),
        (
            "{'moreLikeThis': {'like': [{'name': 'heron'}, {'crew': {'mate': 'smith'}}]}}",
            "3 1 2",
        ),
        ("{'moreLikeThis': {'like': {'nowhere': 'heron'}}}", ""),
    ]);
}

#[test]
fn spans_follow_from_places() {
    let term = |word: &str| format!("{{'term': {{'path': 'name', 'query': '{word}'}}}}");
    let (heron, grey, north) = (term("heron"), term("grey"), term("north"));
    let near = |slop: u32, order: bool| {
        format!("{{'near': {{'clauses': [{heron}, {grey}], 'slop': {slop}, 'inOrder': {order}}}}}")
    };
    let cases = [
        (heron.clone(), "3 1"),
        (
            format!("{{'first': {{'operator': {heron}, 'endPositionLte': 1}}}}"),
            "3",
        ),
        (
            format!("{{'first': {{'operator': {grey}, 'endPositionLte': 2}}}}"),
            "2 1",
        ),
        (near(0, true), ""),
        (near(0, false), "1"),
        (
            format!(
                "{{'near': {{'clauses': [{}, {north}], 'slop': 1, 'inOrder': true}}}}",
                term("herons")
            ),
            "",
        ),
        (
            format!(
                "{{'near': {{'clauses': [{}, {north}], 'slop': 2, 'inOrder': true}}}}",
                term("herons")
            ),
            "5",
        ),
        (format!("{{'near': {{'clauses': [{heron}, {heron}], 'slop': 0}}}}"), "3"),
        (format!("{{'or': {{'clauses': [{heron}, {north}]}}}}"), "3 1 5"),
        (
            format!("{{'subtract': {{'include': {heron}, 'exclude': {}}}}}", near(0, false)),
            "3",
        ),
        (
            format!(
                "{{'contains': {{'big': {}, 'little': {grey}, 'spanToReturn': 'inner'}}}}",
                near(0, false)
            ),
            "1",
        ),
        (
            format!(
                "{{'contains': {{'big': {}, 'little': {north}, 'spanToReturn': 'outer'}}}}",
                near(0, false)
            ),
            "",
        ),
    ];
    for (span, expected) in cases {
        assert_eq!(boats().ids(&format!("{{'span': {span}}}")), expected, "{span}");
    }
}

#[test]
fn geometries() {
    let fixture = Fixture::new(
        "{'mappings': {'fields': {'p': {'type': 'geo'}, 's': {'type': 'geo', 'indexShapes': true}}}}",
        &[
            "{'_id': 1, 'p': {'type': 'Point', 'coordinates': [1, 1]}, 's': {'type': 'Point', 'coordinates': [1, 1]}}",
            "{'_id': 2, 'p': {'type': 'Point', 'coordinates': [179, 5]},
              's': {'type': 'Polygon', 'coordinates': [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}}",
            "{'_id': 3, 'p': {'type': 'LineString', 'coordinates': [[0, 0], [1, 1]]}, 's': {'type': 'Point', 'coordinates': [50, 50]}}",
            "{'_id': 4, 'p': {'type': 'Point', 'coordinates': [500, 5]}, 's': 'no shape'}",
        ],
    );
    let square = "{'type': 'Polygon', 'coordinates': [[[-1, -1], [2, -1], [2, 2], [-1, 2], [-1, -1]]]}";
    let within = |low: &str, high: &str| {
        format!(
            "{{'geoWithin': {{'path': 'p', 'box': {{'bottomLeft': {{'type': 'Point', 'coordinates': {low}}},
              'topRight': {{'type': 'Point', 'coordinates': {high}}}}}}}}}"
        )
    };
    let shape = |relation: &str, geometry: &str| {
        format!("{{'geoShape': {{'path': 's', 'relation': '{relation}', 'geometry': {geometry}}}}}")
    };
    for (query, expected) in [
        (within("[0, 0]", "[2, 2]"), "1"),
        (within("[170, 0]", "[10, 10]"), "1 2"),
        (
            "{'geoWithin': {'path': 'p', 'circle': {'center': {'type': 'Point', 'coordinates': [1, 2]}, 'radius': 120000}}}".to_owned(),
            "1",
        ),
        (format!("{{'geoWithin': {{'path': 'p', 'geometry': {square}}}}}"), "1"),
        (shape("within", square), "1"),
        (shape("intersects", square), "1 2"),
        (shape("disjoint", square), "3"),
        (shape("contains", "{'type': 'Point', 'coordinates': [3, 3]}"), "2"),
        (shape("contains", "{'type': 'Point', 'coordinates': [5, 5]}"), ""),
    ] {
        assert_eq!(fixture.ids(&query), expected, "{query}");
    }
    fixture.check_refused(&[
        (&shape("within", "{'type': 'Point', 'coordinates': [3, 3]}"), "Polygon"),
        (&shape("touches", square), "one of"),
        (&within("[0, 95]", "[2, 96]"), "latitude"),
        (&within("[0, 5]", "[2]"), "latitude"),
        ("{'geoWithin': {'path': 'p'}}", "exactly one"),
        (
            &format!("{{'geoShape': {{'path': 'p', 'relation': 'intersects', 'geometry': {square}}}}}"),
            "indexShapes",
        ),
        (
            &format!("{{'geoWithin': {{'path': 'q', 'geometry': {square}}}}}"),
            "geo",
        ),
    ]);
}
