//! Analyzers, as fields have them.

use super::Fixture;
use crate::text::Definition;
use crate::text::tests::doc;

/// What a text becomes.
fn tokens(analyzers: &str, analyzer: &str, text: &str) -> String {
    let definition = format!(
        "{{'mappings': {{'fields': {{'a': {{'type': 'string', 'analyzer': '{analyzer}'}}}}}}, 'analyzers': [{analyzers}]}}"
    );
    let definition =
        Definition::parse((&doc(&definition)).into()).unwrap_or_else(|error| panic!("{analyzers}: {error}"));
    let types = definition.types(0, "a").expect("mapped");
    let string = types.string.as_ref().expect("a string");
    let tokens = string.analyzer.tokens(text).expect("no interrupt");
    let mut out: Vec<String> = Vec::new();
    let mut last = None;
    for token in tokens {
        match last {
            Some(last) if last == token.position => {
                let before = out.pop().unwrap_or_default();
                out.push(format!("{before}/{}", token.text));
            }
            Some(last) if token.position > last + 1 => out.push(format!("_ {}", token.text)),
            _ => out.push(token.text.clone()),
        }
        last = Some(token.position);
    }
    out.join(" ")
}

#[test]
fn built_in_analyzers() {
    for (analyzer, text, expected) in [
        (
            "lucene.standard",
            "The Quick-brown FOX's 3.5 don't_stop e-mail@x.org",
            "the quick brown fox's 3.5 don't_stop e mail x.org",
        ),
        (
            "lucene.standard",
            "日本語 カタカナ 한국어 ¿Qué?",
            "日 本 語 カタカナ 한국어 qué",
        ),
        ("lucene.standard", "ok 👍🏽 fine", "ok 👍🏽 fine"),
        ("lucene.standard", "...", ""),
        ("lucene.simple", "Don't 3x you_me", "don t x you me"),
        ("lucene.whitespace", "Don't  STOP-now\t!", "Don't STOP-now !"),
        ("lucene.keyword", "Don't STOP", "Don't STOP"),
        ("lucene.english", "The ponies' running and the cat's", "poni run _ cat"),
        ("lucene.french", "L'école des amis", "écol _ amis"),
        ("lucene.german", "Die Häuser laufen", "haus lauf"),
    ] {
        assert_eq!(
            tokens("", analyzer, text).trim_start_matches("_ "),
            expected,
            "{analyzer}: {text}"
        );
    }
    let long = "x".repeat(600);
    assert_eq!(
        tokens("", "lucene.standard", &long)
            .split(' ')
            .map(str::len)
            .collect::<Vec<_>>(),
        [255, 255, 90]
    );
}

#[test]
fn custom_analyzers() {
    let with = |tokenizer: &str, filters: &str| {
        format!("{{'name': 'own', 'tokenizer': {tokenizer}, 'tokenFilters': [{filters}]}}")
    };
    let standard = "{'type': 'standard'}";
    let keyword = "{'type': 'keyword'}";
    for (tokenizer, filters, text, expected) in [
        (keyword, "{'type': 'lowercase'}", "Big Ship", "big ship"),
        (keyword, "{'type': 'trim'}, {'type': 'reverse'}", " abc ", "cba"),
        (standard, "{'type': 'asciiFolding'}", "Crème Ærø", "Creme AEro"),
        (
            standard,
            "{'type': 'asciiFolding', 'originalTokens': 'include'}",
            "crème x",
            "crème/creme x",
        ),
        (standard, "{'type': 'icuFolding'}", "Straße Ⅻ", "strasse xii"),
        (
            standard,
            "{'type': 'icuNormalizer', 'normalizationForm': 'nfkd'}",
            "ﬁn",
            "fin",
        ),
        (standard, "{'type': 'englishPossessive'}", "cat's cats", "cat cats"),
        (
            standard,
            "{'type': 'length', 'min': 2, 'max': 3}",
            "a bb ccc dddd",
            "bb ccc",
        ),
        (
            standard,
            "{'type': 'stopword', 'tokens': ['the']}",
            "The end THE",
            "end",
        ),
        (
            standard,
            "{'type': 'stopword', 'tokens': ['the'], 'ignoreCase': false}",
            "The the",
            "The",
        ),
        (
            standard,
            "{'type': 'snowballStemming', 'stemmerName': 'english'}",
            "running ponies",
            "run poni",
        ),
        (standard, "{'type': 'porterStemming'}", "generously", "gener"),
        (
            standard,
            "{'type': 'edgeGram', 'minGram': 2, 'maxGram': 3}",
            "abcd x",
            "ab/abc",
        ),
        (
            standard,
            "{'type': 'edgeGram', 'minGram': 2, 'maxGram': 3, 'termNotInBounds': 'include'}",
            "abcd x",
            "ab/abc/abcd x",
        ),
        (
            standard,
            "{'type': 'nGram', 'minGram': 2, 'maxGram': 2}",
            "abc",
            "ab/bc",
        ),
        (
            standard,
            "{'type': 'shingle', 'minShingleSize': 2, 'maxShingleSize': 2}",
            "a b c",
            "a/a b b/b c c",
        ),
        (
            standard,
            "{'type': 'regex', 'pattern': '[0-9]+', 'replacement': '#', 'matches': 'all'}",
            "a1b22",
            "a#b#",
        ),
        (
            standard,
            "{'type': 'regex', 'pattern': '[0-9]+', 'replacement': '#', 'matches': 'first'}",
            "a1b22",
            "a#b22",
        ),
        (
            "{'type': 'whitespace'}",
            "{'type': 'wordDelimiterGraph'}",
            "Wi-Fi PowerShot500 O'Neil's",
            "Wi Fi Power Shot 500 O Neil",
        ),
        (
            "{'type': 'whitespace'}",
            "{'type': 'wordDelimiterGraph', 'delimiterOptions': {'preserveOriginal': true, 'concatenateAll': true}}",
            "Wi-Fi",
            "Wi-Fi/Wi/WiFi Fi",
        ),
        ("{'type': 'whitespace', 'maxTokenLength': 2}", "", "abcde", "ab cd e"),
        (
            "{'type': 'edgeGram', 'minGram': 1, 'maxGram': 3}",
            "",
            "a bc",
            "a a  a b",
        ),
        ("{'type': 'nGram', 'minGram': 2, 'maxGram': 2}", "", "abc", "ab bc"),
        (
            "{'type': 'regexSplit', 'pattern': '[-. ]+'}",
            "",
            "123-45.6",
            "123 45 6",
        ),
        (
            "{'type': 'regexCaptureGroup', 'pattern': '([0-9]+)-([0-9]+)', 'group': 2}",
            "",
            "1-22 3-44",
            "22 44",
        ),
        (
            "{'type': 'uaxUrlEmail'}",
            "",
            "mail a.b@c.org, or https://x.org/y now",
            "mail a.b@c.org or https://x.org/y now",
        ),
    ] {
        assert_eq!(
            tokens(&with(tokenizer, filters), "own", text),
            expected,
            "{tokenizer} {filters}: {text}"
        );
    }
    let strip = "{'name': 'own', 'charFilters': [{'type': 'htmlStrip', 'ignoredTags': ['b']}], 'tokenizer': {'type': 'whitespace'}}";
    assert_eq!(
        tokens(strip, "own", "<p>One&amp;two<i>x</i></p><b>y</b><!-- z -->"),
        "One&twox <b>y</b>"
    );
    let mapping = "{'name': 'own', 'charFilters': [{'type': 'mapping', 'mappings': {'-': '', '++': 'plus'}}], 'tokenizer': {'type': 'keyword'}}";
    assert_eq!(tokens(mapping, "own", "C++ 1-2"), "Cplus 12");
    let normal = "{'name': 'own', 'charFilters': [{'type': 'icuNormalize'}], 'tokenizer': {'type': 'keyword'}}";
    assert_eq!(tokens(normal, "own", "ＡＢ ﬁ"), "ab fi");
}

#[test]
fn highlights_point_into_texts_that_were_filtered() {
    let fixture = Fixture::new(
        "{'mappings': {'fields': {'a': {'type': 'string', 'analyzer': 'own'}}},
          'analyzers': [{'name': 'own', 'charFilters': [{'type': 'htmlStrip'}, {'type': 'mapping', 'mappings': {'&': ' and '}}],
            'tokenizer': {'type': 'standard'}, 'tokenFilters': [{'type': 'lowercase'}]}]}",
        &["{'_id': 1, 'a': '<p>Salt &amp; <b>pepper</b> mill</p>'}"],
    );
    let found = fixture
        .search("{'text': {'query': 'pepper', 'path': 'a'}, 'highlight': {'path': 'a'}}")
        .expect("found");
    let text = nestor_model::extjson::to_string(
        &found.hits.all()[0]
            .highlights
            .as_ref()
            .expect("highlights")
            .value()
            .expect("no interrupt"),
        nestor_model::extjson::Form::Relaxed,
    );
    assert!(text.contains("\"pepper\""), "{text}");
}

#[test]
fn queries_are_analyzed_as_fields_are() {
    let fixture = Fixture::new(
        "{'mappings': {'dynamic': true, 'fields': {'k': {'type': 'string', 'analyzer': 'lucene.keyword', 'searchAnalyzer': 'lucene.whitespace'}}},
          'analyzer': 'lucene.english'}",
        &["{'_id': 1, 's': 'running ponies', 'k': 'a b'}", "{'_id': 2, 's': 'the', 'k': 'a'}"],
    );
    fixture.check(&[
        ("{'text': {'query': 'Runs', 'path': 's'}}", "1"),
        ("{'text': {'query': 'the', 'path': 's'}}", ""),
        ("{'phrase': {'query': 'running the ponies', 'path': 's'}}", ""),
        ("{'text': {'query': 'a b', 'path': 'k'}}", "2"),
    ]);
}
