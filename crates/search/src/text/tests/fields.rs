//! How fields are indexed.

use super::{Fixture, doc};
use crate::text::Definition;

#[test]
fn only_fields_of_the_definition_are_found() {
    let fixture = Fixture::new(
        "{'mappings': {'dynamic': false, 'fields': {
            'a': {'type': 'string'}, 'd': {'type': 'document', 'dynamic': true}, 'e': {'type': 'document', 'fields': {'f': {'type': 'string'}}}}}}",
        &["{'_id': 1, 'a': 'fir', 'b': 'fir', 'd': {'x': {'y': 'fir'}}, 'e': {'f': 'fir', 'g': 'fir'}}"],
    );
    fixture.check(&[
        ("{'text': {'query': 'fir', 'path': 'a'}}", "1"),
        ("{'text': {'query': 'fir', 'path': 'b'}}", ""),
        ("{'text': {'query': 'fir', 'path': 'd.x.y'}}", "1"),
        ("{'text': {'query': 'fir', 'path': 'e.f'}}", "1"),
        ("{'text': {'query': 'fir', 'path': 'e.g'}}", ""),
        ("{'text': {'query': 'fir', 'path': {'wildcard': 'e.*'}}}", "1"),
    ]);
}

#[test]
fn one_field_may_be_indexed_in_several_ways() {
    let fixture = Fixture::new(
        "{'mappings': {'dynamic': true, 'fields': {'a': [
            {'type': 'string', 'analyzer': 'lucene.english', 'multi': {'whole': {'type': 'string', 'analyzer': 'lucene.keyword'}}},
            {'type': 'token'}, {'type': 'autocomplete'}, {'type': 'number'}]}}}",
        &["{'_id': 1, 'a': 'Running hares'}", "{'_id': 2, 'a': 4}", "{'_id': 3, 'a': 'hare'}"],
    );
    fixture.check(&[
        ("{'text': {'query': 'run', 'path': 'a'}}", "1"),
        (
            "{'text': {'query': 'hare', 'path': {'value': 'a', 'multi': 'whole'}}}",
            "3",
        ),
        (
            "{'text': {'query': 'Running hares', 'path': {'value': 'a', 'multi': 'whole'}}}",
            "1",
        ),
        ("{'equals': {'path': 'a', 'value': 'hare'}}", "3"),
        ("{'equals': {'path': 'a', 'value': 4}}", "2"),
        ("{'autocomplete': {'path': 'a', 'query': 'ha'}}", "3 1"),
    ]);
    fixture.check_refused(&[(
        "{'text': {'query': 'run', 'path': {'value': 'a', 'multi': 'other'}}}",
        "no multi",
    )]);
}

#[test]
fn type_sets_say_what_dynamic_means() {
    let fixture = Fixture::new(
        "{'mappings': {'dynamic': {'typeSet': 'few'}}, 'typeSets': [{'name': 'few', 'types': [{'type': 'token'}, {'type': 'number'}]}]}",
        &["{'_id': 1, 'a': {'b': 'Some text', 'n': 3}}"],
    );
    fixture.check(&[
        ("{'equals': {'path': 'a.b', 'value': 'Some text'}}", "1"),
        ("{'equals': {'path': 'a.n', 'value': 3}}", "1"),
        ("{'text': {'query': 'some', 'path': 'a.b'}}", ""),
    ]);
}

fn orders() -> Fixture {
    Fixture::new(
        "{'mappings': {'fields': {
            'lines': {'type': 'embeddedDocuments', 'storedSource': {'exclude': ['secret']}, 'fields': {
                'what': {'type': 'string'}, 'count': {'type': 'number'},
                'notes': {'type': 'embeddedDocuments', 'dynamic': true}}},
            'by': {'type': 'string'}}}}",
        &[
            "{'_id': 1, 'by': 'Ada', 'lines': [{'what': 'red apple', 'count': 2}, {'what': 'green pear', 'count': 9, 'secret': 1}]}",
            "{'_id': 2, 'by': 'Bo', 'lines': [{'what': 'red pear', 'count': 2, 'notes': [{'n': 'ripe'}, {'n': 'very ripe'}]}]}",
            "{'_id': 3, 'by': 'Cy', 'lines': {'what': 'red apple', 'count': 9}}",
            "{'_id': 4, 'by': 'red'}",
        ],
    )
}

#[test]
fn embedded_documents_are_found_one_by_one() {
    let line = |operator: &str| format!("{{'embeddedDocument': {{'path': 'lines', 'operator': {operator}}}}}");
    let red = "{'text': {'query': 'red', 'path': 'lines.what'}}";
    let nine = "{'equals': {'path': 'lines.count', 'value': 9}}";
    let notes = "{'embeddedDocument': {'path': 'lines.notes', 'operator': {'text': {'query': 'ripe', 'path': 'lines.notes.n'}}}}";
    let both = format!("{{'compound': {{'must': [{red}, {nine}]}}}}");
    for (query, expected) in [
        (line(red), "1 2 3"),
        (line(&both), "3"),
        (
            format!("{{'compound': {{'must': [{}, {}]}}}}", line(red), line(nine)),
            "1 3",
        ),
        (notes.to_owned(), "2"),
        (line(notes), "2"),
        (red.to_owned(), ""),
        (
            format!(
                "{{'compound': {{'must': [{}], 'filter': {{'text': {{'query': 'cy', 'path': 'by'}}}}}}}}",
                line(red)
            ),
            "3",
        ),
    ] {
        assert_eq!(orders().ids(&query), expected, "{query}");
    }
    orders().check_refused(&[
        (&line("{'text': {'query': 'Ada', 'path': 'by'}}"), "not within"),
        (
            "{'embeddedDocument': {'path': 'by', 'operator': {'exists': {'path': 'by.x'}}}}",
            "embeddedDocuments",
        ),
        (&line("{'moreLikeThis': {'like': {}}}"), "moreLikeThis"),
    ]);
}

#[test]
fn scores_of_embedded_documents_become_one() {
    let scored = |aggregate: &str| {
        format!(
            "{{'embeddedDocument': {{'path': 'lines', 'operator': {{'near': {{'path': 'lines.count', 'origin': 2, 'pivot': 7}}}},
              'score': {aggregate}}}}}"
        )
    };
    for (score, expected) in [
        ("{'embedded': {'aggregate': 'sum'}}", "1=1.5000 2=1.0000 3=0.5000"),
        ("{'embedded': {'aggregate': 'maximum'}}", "1=1.0000 2=1.0000 3=0.5000"),
        ("{'embedded': {'aggregate': 'minimum'}}", "2=1.0000 1=0.5000 3=0.5000"),
        ("{'embedded': {'aggregate': 'mean'}}", "2=1.0000 1=0.7500 3=0.5000"),
        (
            "{'embedded': {'outerScore': {'boost': {'value': 2}}}}",
            "1=3.0000 2=2.0000 3=1.0000",
        ),
        ("{'boost': {'value': 2}}", "1=3.0000 2=2.0000 3=1.0000"),
    ] {
        assert_eq!(orders().scores(&scored(score)), expected, "{score}");
    }
}

#[test]
fn embedded_documents_may_be_what_is_returned() {
    let found = |operator: &str| {
        let query = format!("{{{operator}, 'returnStoredSource': true, 'returnScope': {{'path': 'lines'}}}}");
        let fixture = orders();
        let found = fixture.search(&query).expect("a good query");
        let stored = found.hits.all().into_iter().map(|hit| {
            let stored = nestor_model::Value::Document(hit.stored.expect("stored"));
            let text = nestor_model::extjson::to_string(&stored, nestor_model::extjson::Form::Relaxed);
            format!("{}: {}", hit.key[0] + 1, text.replace(['"', ' '], ""))
        });
        stored.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        found("'text': {'query': 'pear', 'path': 'lines.what'}"),
        "1: {what:greenpear,count:9}\n2: {what:redpear,count:2,notes:[{n:ripe},{n:veryripe}]}"
    );
    assert_eq!(
        found(
            "'compound': {'must': {'text': {'query': 'apple', 'path': 'lines.what'}}, 'filter': {'hasRoot': {'operator': {'text': {'query': 'cy', 'path': 'by'}}}}}"
        ),
        "3: {what:redapple,count:9}"
    );
    orders().check_refused(&[
        (
            "{'exists': {'path': 'by'}, 'returnStoredSource': true, 'returnScope': {'path': 'lines'}}",
            "not within",
        ),
        (
            "{'exists': {'path': 'by'}, 'returnScope': {'path': 'lines'}}",
            "returnStoredSource",
        ),
        (
            "{'exists': {'path': 'by'}, 'returnStoredSource': true, 'returnScope': {'path': 'by'}}",
            "embeddedDocuments",
        ),
    ]);
}

#[test]
fn definitions_that_are_refused() {
    for (definition, expected) in [
        ("{}", "\"mappings\" is required"),
        ("{'mappings': {'dynamic': 1}}", "mappings.dynamic"),
        ("{'mappings': {'dynamic': true}, 'other': 1}", "other"),
        ("{'mappings': {'fields': {'a': {}}}}", "mappings.fields.a.type"),
        ("{'mappings': {'fields': {'a': {'type': 'text'}}}}", "not supported"),
        (
            "{'mappings': {'fields': {'a': {'type': 'string', 'analyser': 'x'}}}}",
            "analyser",
        ),
        (
            "{'mappings': {'fields': {'a': {'type': 'string', 'analyzer': 'x'}}}}",
            "not known",
        ),
        (
            "{'mappings': {'fields': {'a': [{'type': 'token'}, {'type': 'token'}]}}}",
            "twice",
        ),
        (
            "{'mappings': {'fields': {'a': {'type': 'autocomplete', 'minGrams': 9, 'maxGrams': 4}}}}",
            "minGrams",
        ),
        ("{'mappings': {'dynamic': {'typeSet': 'x'}}}", "not there"),
        (
            "{'mappings': {}, 'storedSource': {'include': ['a'], 'exclude': ['b']}}",
            "storedSource",
        ),
        ("{'mappings': {}, 'synonyms': [{'name': 'x'}]}", "source"),
        (
            "{'mappings': {}, 'analyzers': [{'name': 'x', 'tokenizer': {'type': 'cut'}}]}",
            "cut",
        ),
        ("{'mappings': {}, 'analyzers': [{'name': 'x'}]}", "tokenizer"),
    ] {
        let error = Definition::parse((&doc(definition)).into()).expect_err(definition);
        assert!(error.message().contains(expected), "{definition}: {}", error.message());
    }
}
