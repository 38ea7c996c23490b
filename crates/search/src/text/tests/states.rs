//! States of an index.

use super::{Fixture, doc};
use crate::dead::Dead;
use crate::text::{Definition, Index, Search};
use std::collections::BTreeMap;

const DEFINITION: &str = "{'mappings': {'dynamic': true, 'fields': {
    't': {'type': 'token'}, 'e': {'type': 'embeddedDocuments', 'dynamic': true}, 'p': {'type': 'geo'}}}, 'storedSource': true}";

fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn keys(definition: &Definition, index: &Index, query: &str) -> Vec<Box<[u8]>> {
    let query = doc(query);
    let search = Search::parse((&query).into()).expect("a good query");
    let found = index.search(definition, &search, &mut |_, _| Ok(())).expect("found");
    let mut keys: Vec<Box<[u8]>> = found.hits.all().into_iter().map(|hit| hit.key).collect();
    keys.sort();
    keys
}

/// However records came and went, an index finds what one finds that is made of what is there.
#[test]
fn changes_end_where_a_new_index_begins() {
    let definition = Definition::parse((&doc(DEFINITION)).into()).expect("a good definition");
    for seed in 0..6 {
        let mut next = numbers(seed);
        let mut index = Index::default();
        let mut alive: BTreeMap<u8, String> = BTreeMap::new();
        for _ in 0..60 {
            let mut change = index.change();
            let mut touched = std::collections::BTreeSet::new();
            for _ in 0..=next(5) {
                let key = next(40) as u8;
                if !touched.insert(key) {
                    continue;
                }
                if next(4) == 0 {
                    alive.remove(&key);
                    change.record(&definition, &[key], None).expect("no interrupt");
                    continue;
                }
                let words = ["ash", "elm", "oak"];
                let text = format!(
                    "{{'s': '{0} {1}', 't': '{0}', 'n': {2}, 'e': [{{'x': '{1}'}}, {{'x': '{0}'}}], 'p': {{'type': 'Point', 'coordinates': [{2}, 1]}}}}",
                    words[next(3) as usize],
                    words[next(3) as usize],
                    next(10)
                );
                let raw = doc(&text).to_raw();
                change
                    .record(&definition, &[key], Some(raw.as_raw()))
                    .expect("no interrupt");
                alive.insert(key, text);
            }
            index = change.finish().expect("no interrupt");
        }
        let mut change = Index::default().change();
        for (key, text) in &alive {
            change
                .record(&definition, &[*key], Some(doc(text).to_raw().as_raw()))
                .expect("no interrupt");
        }
        let fresh = change.finish().expect("no interrupt");
        assert_eq!(index.documents(), alive.len() as u64);
        assert!(index.parts.len() <= 8, "{}", index.parts.len());
        for query in [
            "{'text': {'query': 'ash', 'path': 's'}}",
            "{'phrase': {'query': 'elm oak', 'path': 's'}}",
            "{'equals': {'path': 't', 'value': 'oak'}}",
            "{'range': {'path': 'n', 'gt': 3, 'lte': 7}}",
            "{'exists': {'path': 's'}}",
            "{'compound': {'mustNot': {'text': {'query': 'elm', 'path': 's'}}}}",
            "{'embeddedDocument': {'path': 'e', 'operator': {'text': {'query': 'elm', 'path': 'e.x'}}}}",
            "{'geoWithin': {'path': 'p', 'circle': {'center': {'type': 'Point', 'coordinates': [4, 1]}, 'radius': 300000}}}",
        ] {
            assert_eq!(
                keys(&definition, &index, query),
                keys(&definition, &fresh, query),
                "{seed}: {query}"
            );
        }
    }
}

#[test]
fn states_before_a_change_stay_as_they_are() {
    let fixture = Fixture::new(DEFINITION, &["{'_id': 1, 's': 'ash'}", "{'_id': 2, 's': 'ash'}"]);
    let mut change = fixture.index.change();
    change.record(&fixture.definition, &[0], None).expect("no interrupt");
    let after = change.finish().expect("no interrupt");
    assert_eq!((fixture.index.documents(), after.documents()), (2, 1));
    fixture.check(&[("{'text': {'query': 'ash', 'path': 's'}}", "1 2")]);
    assert!(fixture.index.bytes() > 0);
}

#[test]
fn the_dead_are_counted_once() {
    let mut dead = Dead::default();
    for record in [3, 5000, 3, 4095, 4096] {
        dead.add(record);
    }
    let alive = dead.clone();
    dead.add(7);
    assert_eq!((dead.len(), alive.len()), (5, 4));
    assert!(dead.has(7) && !alive.has(7) && alive.has(5000) && !alive.has(5001) && !alive.has(1_000_000));
}
