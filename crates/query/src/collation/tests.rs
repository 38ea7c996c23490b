use super::*;
use nestor_model::extjson;
use std::hash::DefaultHasher;

fn collator(spec: &str) -> Collator {
    let spec = extjson::parse_document(spec).expect("valid JSON");
    Collator::parse(spec.as_ref())
        .expect("is a collation")
        .expect("is not simple")
}

/// Each line: the specification, then strings from least to greatest, `=` between those that are equal.
#[test]
fn strings_order_as_the_language_has_it() {
    for (spec, strings) in [
        (r#"{"locale":"en"}"#, "1 < 10 < 2 < a < A < á < b < B < z"),
        (r#"{"locale":"en","strength":2}"#, "a = A < á = Á < b"),
        (r#"{"locale":"en","strength":1}"#, "a = A = á = Á < b"),
        (r#"{"locale":"en","strength":1,"caseLevel":true}"#, "a = á < A = Á < b"),
        (r#"{"locale":"en","caseFirst":"upper"}"#, "A < a < B < b"),
        (
            r#"{"locale":"en","numericOrdering":true}"#,
            "1 < 2 = 02 < 10 < a2 < a10",
        ),
        (r#"{"locale":"fr","strength":2}"#, "cote < coté < côte < côté"),
        (
            r#"{"locale":"fr","strength":2,"backwards":true}"#,
            "cote < côte < coté < côté",
        ),
        (r#"{"locale":"fr_CA"}"#, "cote < côte < coté < côté"),
        (r#"{"locale":"fr_CA","backwards":false}"#, "cote < coté < côte < côté"),
        (r#"{"locale":"sv","backwards":true}"#, "a < z < å < ä < ö"),
        (r#"{"locale":"sv"}"#, "a < z < å < ä < ö"),
        (r#"{"locale":"de"}"#, "ad < äd < ae < af"),
        (r#"{"locale":"de@collation=phonebook"}"#, "ad < ae < äd < af"),
        (r#"{"locale":"es"}"#, "ch < cz < d < n < ñ < o"),
        (r#"{"locale":"es@collation=traditional"}"#, "cz < ch < d < n < ñ < o"),
        (r#"{"locale":"tr","strength":1}"#, "h < I = ı < i = İ < j"),
        (r#"{"locale":"en_US_POSIX","strength":1}"#, "A < Z < a < z"),
        (r#"{"locale":"en","alternate":"shifted"}"#, "a-b = ab < ac"),
        (
            r#"{"locale":"en","alternate":"shifted","maxVariable":"space"}"#,
            "a-b < ab < ac",
        ),
    ] {
        let collator = collator(spec);
        let words: Vec<&str> = strings.split(' ').collect();
        for triple in words.windows(3).step_by(2) {
            let wanted = if triple[1] == "=" {
                Ordering::Equal
            } else {
                Ordering::Less
            };
            assert_eq!(collator.compare(triple[0], triple[2]), wanted, "{spec}: {triple:?}");
        }
    }
}

/// Strings with much that comparing could trip over: case, accents composed and not, digits, punctuation,
/// ignorable and supplementary characters.
fn strings() -> Vec<String> {
    let parts = [
        "",
        "a",
        "A",
        "á",
        "a\u{301}",
        "b",
        "ß",
        "ss",
        "1",
        "02",
        "10",
        " ",
        "-",
        "\u{200b}",
        "\0",
        "あ",
        "ア",
        "ｱ",
        "中",
        "한",
        "\u{1100}\u{1161}",
        "\u{1f34e}",
        "\u{10000}",
        "\u{fffe}",
        "i",
        "İ",
        "ch",
        "ñ",
        "\u{ffff}",
    ];
    let mut out: Vec<String> = parts.iter().map(|s| s.to_string()).collect();
    for (i, x) in parts.iter().enumerate() {
        for y in parts.iter().skip(i % 9).step_by(9) {
            out.push(format!("{x}{y}"));
            out.push(format!("{y}x{x}"));
        }
    }
    out
}

#[test]
fn compare_sort_key_and_hash_agree() {
    let hash = |collator: &Collator, text: &str| {
        let mut state = DefaultHasher::new();
        collator.hash_values(ValueRef::String(text), &mut state);
        state.finish()
    };
    let strings = strings();
    for spec in [
        r#"{"locale":"en"}"#,
        r#"{"locale":"en","strength":1}"#,
        r#"{"locale":"en","strength":2,"numericOrdering":true}"#,
        r#"{"locale":"en","strength":1,"caseLevel":true,"caseFirst":"upper"}"#,
        r#"{"locale":"en","strength":4,"alternate":"shifted"}"#,
        r#"{"locale":"en","strength":5}"#,
        r#"{"locale":"fr_CA"}"#,
        r#"{"locale":"ja","strength":4}"#,
        r#"{"locale":"zh@collation=stroke"}"#,
        r#"{"locale":"th"}"#,
    ] {
        let collator = collator(spec);
        let keys: Vec<Vec<u8>> = strings
            .iter()
            .map(|text| {
                let mut key = Vec::new();
                collator.sort_key(text, &mut key);
                assert!(!key.contains(&0), "{spec}: the sort key of {text:?} has a zero byte");
                key
            })
            .collect();
        for (x, x_key) in strings.iter().zip(&keys) {
            for (y, y_key) in strings.iter().zip(&keys) {
                let order = collator.compare(x, y);
                assert_eq!(order, x_key.cmp(y_key), "{spec}: {x:?} against {y:?}");
                if order.is_eq() {
                    assert_eq!(hash(&collator, x), hash(&collator, y), "{spec}: {x:?} and {y:?}");
                }
            }
        }
    }
}

#[test]
fn strings_inside_values_are_collated() {
    let value = |json: &str| extjson::parse(json).expect("valid JSON");
    let collator = collator(r#"{"locale":"en","strength":2}"#);
    for (x, y, wanted) in [
        (r#""a""#, r#""A""#, Ordering::Equal),
        (r#"["a",{"b":["C"]}]"#, r#"["A",{"b":["c"]}]"#, Ordering::Equal),
        (r#"{"a":"B"}"#, r#"{"a":"c"}"#, Ordering::Less),
        // Names are not collated.
        (r#"{"A":1}"#, r#"{"a":1}"#, Ordering::Less),
        (r#"["a"]"#, r#"["A","b"]"#, Ordering::Less),
        (r#"{"$symbol":"a"}"#, r#""A""#, Ordering::Equal),
        (r#"{"$code":"a"}"#, r#"{"$code":"A"}"#, Ordering::Greater),
        (r#"1"#, r#""a""#, Ordering::Less),
        (r#"1"#, r#"1.0"#, Ordering::Equal),
    ] {
        let keys = [x, y].map(|json| Key::new(value(json), Some(&collator)));
        assert_eq!(keys[0].cmp(&keys[1]), wanted, "{x} against {y}");
        if wanted.is_eq() {
            let [a, b] = keys.map(|key| {
                let mut state = DefaultHasher::new();
                key.hash(&mut state);
                state.finish()
            });
            assert_eq!(a, b, "{x} and {y}");
        }
    }
}
