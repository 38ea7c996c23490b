//! Synonyms.

use super::Fixture;

fn garage() -> Fixture {
    let mut fixture = Fixture::new(
        "{'mappings': {'dynamic': true, 'fields': {'e': {'type': 'string', 'analyzer': 'lucene.english'}}},
          'synonyms': [{'name': 'own', 'source': {'collection': 'words'}, 'analyzer': 'lucene.standard'}]}",
        &[
            "{'_id': 1, 's': 'a red car', 'e': 'car'}",
            "{'_id': 2, 's': 'my motor vehicle'}",
            "{'_id': 3, 's': 'vehicle with a motor'}",
            "{'_id': 4, 's': 'a pint'}",
            "{'_id': 5, 's': 'beer'}",
        ],
    );
    fixture.synonyms = vec![
        "{'mappingType': 'equivalent', 'synonyms': ['Car', 'motor vehicle']}",
        "{'mappingType': 'explicit', 'input': ['beer'], 'synonyms': ['pint']}",
    ];
    fixture
}

#[test]
fn words_stand_for_others() {
    garage().check(&[
        ("{'text': {'query': 'car', 'path': 's'}}", "1"),
        ("{'text': {'query': 'CAR', 'path': 's', 'synonyms': 'own'}}", "2 1"),
        (
            "{'text': {'query': 'motor vehicle', 'path': 's', 'synonyms': 'own'}}",
            "2 1",
        ),
        ("{'text': {'query': 'motor', 'path': 's', 'synonyms': 'own'}}", "2 3"),
        ("{'text': {'query': 'beer', 'path': 's', 'synonyms': 'own'}}", "4"),
        ("{'text': {'query': 'pint', 'path': 's', 'synonyms': 'own'}}", "4"),
        (
            "{'text': {'query': 'red car', 'path': 's', 'synonyms': 'own', 'matchCriteria': 'all'}}",
            "1",
        ),
        ("{'phrase': {'query': 'my car', 'path': 's', 'synonyms': 'own'}}", "2"),
        (
            "{'phrase': {'query': 'red motor vehicle', 'path': 's', 'synonyms': 'own'}}",
            "1",
        ),
        (
            "{'compound': {'must': {'text': {'query': 'beer', 'path': 's', 'synonyms': 'own'}}}}",
            "4",
        ),
    ]);
    garage().check_refused(&[
        (
            "{'text': {'query': 'car', 'path': 's', 'synonyms': 'other'}}",
            "no synonyms",
        ),
        ("{'text': {'query': 'car', 'path': 's', 'synonyms': ''}}", "empty"),
        (
            "{'text': {'query': 'car', 'path': 's', 'synonyms': 'own', 'fuzzy': {}}}",
            "fuzzy",
        ),
        ("{'text': {'query': 'car', 'path': 'e', 'synonyms': 'own'}}", "analyzer"),
    ]);
}

#[test]
fn documents_that_are_no_synonyms() {
    for (document, expected) in [
        ("{}", "mappingType"),
        ("{'mappingType': 'other', 'synonyms': []}", "one of"),
        ("{'mappingType': 'equivalent', 'synonyms': 'a'}", "array"),
        ("{'mappingType': 'explicit', 'synonyms': ['a']}", "input"),
    ] {
        let mut garage = garage();
        garage.synonyms = vec![document];
        garage.check_refused(&[("{'text': {'query': 'car', 'path': 's', 'synonyms': 'own'}}", expected)]);
    }
}
