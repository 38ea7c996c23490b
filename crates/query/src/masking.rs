//! Masking: what becomes of the fields of a collection for users who may not see them plain.
//!
//! ```text
//! {ssn: "hide", name: "hash", "contacts.email": "email", card: "lastFour", born: "year", notes: "null"}
//! ```
//!
//! A policy is a path for each field and a mask. Masks apply to the value at the path, to each element of an array there, and in each
//! document of an array on the way. What a mask cannot shape becomes null; a field that is not there stays away. `docs/masking.md`
//! tells users of it, `docs/decisions/0008-masking-beneath-the-query.md` why it works as it does.

use hmac::{Hmac, KeyInit as _, Mac as _};
use nestor_model::date::Civil;
use nestor_model::{
    ArrayRef, DocRef, Document, Path, RawDoc, RawDocBuf, RawWriter, Result, Str, Value, ValueRef, bail,
};
use sha2::Sha256;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Most fields of a policy.
pub const FIELDS_MAX: usize = 200;

/// How a value is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// The field is not there.
    Hide,
    /// Null.
    Null,
    /// The same text for the same value, which nobody can compute who has not the server's key.
    Hash,
    /// `a***@example.org`.
    Email,
    /// All digits but the last four, and the first six of a long number, become stars.
    Card,
    /// `****` and the last four characters.
    LastFour,
    /// The first moment of a date's year.
    Year,
}

impl Mask {
    const ALL: [(&'static str, Mask); 7] = [
        ("hide", Self::Hide),
        ("null", Self::Null),
        ("hash", Self::Hash),
        ("email", Self::Email),
        ("card", Self::Card),
        ("lastFour", Self::LastFour),
        ("year", Self::Year),
    ];

    fn parse(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, mask)| *mask)
    }

    /// The value shown in place of `value`; missing for none.
    fn apply(self, value: ValueRef<'_>, key: Option<&Key>) -> Value {
        match (self, value) {
            (Self::Hide, _) => Value::Missing,
            (_, ValueRef::Array(items)) if self != Self::Null => {
                let items: Vec<Value> = items.iter().map(|item| self.apply(item, key)).collect();
                items.into()
            }
            (Self::Hash, value) if !value.is_nullish() => key.map_or(Value::Null, |key| hash(value, key).into()),
            (Self::Email, ValueRef::String(text)) => email(text).map_or(Value::Null, Value::from),
            (Self::Card, ValueRef::String(text)) => card(text).into(),
            (Self::LastFour, ValueRef::String(text)) => last_four(text).into(),
            (Self::Year, ValueRef::DateTime(ms)) => year(ms),
            _ => Value::Null,
        }
    }
}

fn hash(value: ValueRef<'_>, key: &Key) -> String {
    let mut bytes = RawWriter::new();
    bytes.append("", value);
    let mut mac = match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        // Keys of any length will do.
        Err(_) => return String::new(),
    };
    mac.update(bytes.into_doc().as_raw().as_bytes());
    let digest = mac.finalize().into_bytes();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn email(text: &str) -> Option<String> {
    let (local, domain) = text.rsplit_once('@')?;
    let first = local.chars().next()?;
    Some(format!("{first}***@{domain}"))
}

fn card(text: &str) -> String {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let shown_first = if digits >= 13 { 6 } else { 0 };
    // The last four characters of a short text would be most of it.
    let shown_last = if digits >= 8 { 4 } else { 0 };
    let mut at = 0;
    let star = |c: char| match c {
        '0'..='9' => {
            at += 1;
            let is_shown = at <= shown_first || at > digits - shown_last;
            if is_shown { c } else { '*' }
        }
        ' ' | '-' => c,
        _ => '*',
    };
    text.chars().map(star).collect()
}

fn last_four(text: &str) -> String {
    let count = text.chars().count();
    let shown: String = text.chars().skip(count.saturating_sub(4)).collect();
    // The last four characters of a short text would be most of it.
    if count < 8 {
        "****".to_owned()
    } else {
        format!("****{shown}")
    }
}

fn year(ms: i64) -> Value {
    let first = Civil {
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        millisecond: 0,
        ..Civil::from_ms(ms)
    };
    first.to_ms().map_or(Value::Null, Value::DateTime)
}

/// The key of hashes.
pub type Key = [u8; 32];

/// Says whether a user may see documents of a collection plain, by its database and name.
pub type SeesPlain = Arc<dyn Fn(&str, &str) -> bool + Send + Sync>;

/// Says whether the policies for rows of a collection, by its database and name, do not count for a user; with `true` they count for owners, too.
pub type SeesRows = Arc<dyn Fn(&str, &str, bool) -> bool + Send + Sync>;

/// The fields that a user may see plain, and how hashes are made for users who may not. The default sees nothing plain and no hashes.
#[derive(Clone, Default)]
pub struct Sight {
    sees_plain: Option<SeesPlain>,
    sees_rows: Option<SeesRows>,
    key: Arc<OnceLock<Key>>,
}

impl Sight {
    /// The sight of a user; the key of hashes is put into `key` before the first policy is made.
    pub fn new(sees_plain: SeesPlain, sees_rows: SeesRows, key: Arc<OnceLock<Key>>) -> Self {
        Self {
            sees_plain: Some(sees_plain),
            sees_rows: Some(sees_rows),
            key,
        }
    }

    /// Whether the documents of a collection are seen plain whatever policy it has.
    pub fn is_plain(&self, db: &str, coll: &str) -> bool {
        self.sees_plain.as_ref().is_some_and(|sees_plain| sees_plain(db, coll))
    }

    /// Whether policies for rows of a collection do not count for the user; they may be `forced` upon its owner.
    pub fn has_all_rows(&self, db: &str, coll: &str, forced: bool) -> bool {
        let sees_rows = self.sees_rows.as_ref();
        sees_rows.is_some_and(|sees_rows| sees_rows(db, coll, forced))
    }

    /// The key of hashes.
    pub fn key(&self) -> Option<&Key> {
        self.key.get()
    }
}

impl fmt::Debug for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sight").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: Vec<(Str, Child)>,
}

#[derive(Clone, Debug)]
enum Child {
    Mask(Mask),
    Below(Node),
}

/// A policy.
#[derive(Clone, Debug)]
pub struct Masking {
    root: Node,
    paths: Vec<Path>,
    listed: Document,
}

impl Masking {
    /// Reads a policy as it stands in the options of a collection.
    ///
    /// Errors: 14 for a mask that is no text; 2 for one that there is not, for paths that are none or lie within each other, and for
    /// `_id`, by which whatever clients do names documents.
    pub fn parse(listed: DocRef<'_>) -> Result<Self> {
        let mut out = Self {
            root: Node::default(),
            paths: Vec::new(),
            listed: listed.to_document(),
        };
        for (path, mask) in listed.iter() {
            let mask = match mask {
                ValueRef::String(name) => match Mask::parse(name) {
                    Some(mask) => mask,
                    None => bail!(BadValue, "there is no mask '{name}' for the field '{path}'"),
                },
                other => bail!(
                    TypeMismatch,
                    "the mask of the field '{path}' is of type '{}', expected 'string'",
                    other.bson_type().alias()
                ),
            };
            check_path(path)?;
            out.root.insert(path, mask)?;
            out.paths.push(Path::new(path));
            if out.paths.len() > FIELDS_MAX {
                bail!(BadValue, "at most {FIELDS_MAX} fields can be masked");
            }
        }
        Ok(out)
    }

    /// As it was given.
    pub fn listed(&self) -> &Document {
        &self.listed
    }

    /// Whether a field or document at `path` is masked, or has masked fields, or lies in one.
    pub fn touches(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.paths
            .iter()
            .any(|own| own.is_prefix_of(&path) || path.is_prefix_of(own))
    }

    /// Whether the top-level field `name` is masked or has masked fields.
    pub fn has_field(&self, name: &str) -> bool {
        self.paths.iter().any(|path| path.head() == name)
    }

    /// A document as it is shown.
    pub fn apply(&self, doc: DocRef<'_>, key: Option<&Key>) -> RawDocBuf {
        let mut out = RawWriter::new();
        write(&self.root, doc, key, &mut out);
        out.into_doc()
    }

    /// The value that a change event shows for one that was set at `path`, which may name positions in arrays; missing for none.
    pub fn of_value_at(&self, path: &str, value: ValueRef<'_>, key: Option<&Key>) -> Value {
        let is_position = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let mut node = &self.root;
        // Below a masked field nothing is told of its parts.
        for name in path.split('.').filter(|name| !is_position(name)) {
            node = match node.child(name) {
                None => return value.to_value(),
                Some(Child::Below(below)) => below,
                Some(Child::Mask(mask)) => {
                    let is_all = self
                        .paths
                        .iter()
                        .any(|own| own.as_str().split('.').eq(path.split('.').filter(|n| !is_position(n))));
                    return if is_all { mask.apply(value, key) } else { Value::Missing };
                }
            };
        }
        shown(node, value, key)
    }
}

fn check_path(path: &str) -> Result<()> {
    let is_position = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    if path
        .split('.')
        .any(|name| name.is_empty() || name.starts_with('$') || is_position(name))
        || path.contains('\0')
    {
        bail!(BadValue, "'{path}' is no path of a field that can be masked");
    }
    if path.split('.').next() == Some("_id") {
        bail!(BadValue, "_id cannot be masked");
    }
    Ok(())
}

impl Node {
    fn child(&self, name: &str) -> Option<&Child> {
        self.children
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, child)| child)
    }

    fn insert(&mut self, path: &str, mask: Mask) -> Result<()> {
        let (name, rest) = match path.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (path, None),
        };
        let at = self.children.iter().position(|(own, _)| own == name);
        match (at.map(|at| &mut self.children[at].1), rest) {
            (None, None) => self.children.push((name.into(), Child::Mask(mask))),
            (None, Some(rest)) => {
                let mut below = Self::default();
                below.insert(rest, mask)?;
                self.children.push((name.into(), Child::Below(below)));
            }
            (Some(Child::Below(below)), Some(rest)) => below.insert(rest, mask)?,
            _ => bail!(BadValue, "masked fields must not lie within each other: '{path}'"),
        }
        Ok(())
    }
}

fn write(node: &Node, doc: DocRef<'_>, key: Option<&Key>, out: &mut RawWriter) {
    for (name, value) in doc.iter() {
        match node.child(name) {
            None => out.append(name, value),
            Some(Child::Mask(mask)) => out.append(name, &mask.apply(value, key)),
            Some(Child::Below(below)) => match value {
                ValueRef::Document(doc) => {
                    out.begin_document(name);
                    write(below, doc, key, out);
                    out.end();
                }
                ValueRef::Array(items) => {
                    out.begin_array(name);
                    write_items(below, items, key, out);
                    out.end();
                }
                other => out.append(name, other),
            },
        }
    }
}

fn write_items(node: &Node, items: ArrayRef<'_>, key: Option<&Key>, out: &mut RawWriter) {
    for (at, item) in items.iter().enumerate() {
        match item {
            ValueRef::Document(doc) => {
                out.begin_document_at(at);
                write(node, doc, key, out);
                out.end();
            }
            ValueRef::Array(items) => {
                out.begin_array_at(at);
                write_items(node, items, key, out);
                out.end();
            }
            other => out.append_index(at, other),
        }
    }
}

/// A value on the way to masked fields.
fn shown(node: &Node, value: ValueRef<'_>, key: Option<&Key>) -> Value {
    match value {
        ValueRef::Document(doc) => {
            let mut out = RawWriter::new();
            write(node, doc, key, &mut out);
            Value::Document(out.into_doc().into())
        }
        ValueRef::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| shown(node, item, key)).collect();
            items.into()
        }
        other => other.to_value(),
    }
}

/// The description of an update (`updateDescription`) as it is shown: values at masked paths are masked, or gone.
pub fn description(masking: &Masking, description: RawDoc<'_>, key: Option<&Key>) -> RawDocBuf {
    let mut out = RawWriter::new();
    for (name, value) in description.iter() {
        match value {
            ValueRef::Document(fields) if name == "updatedFields" => {
                out.begin_document(name);
                for (path, value) in fields.iter() {
                    out.append(path, &masking.of_value_at(path, value, key));
                }
                out.end();
            }
            other => out.append(name, other),
        }
    }
    out.into_doc()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{doc, extjson};

    const KEY: Key = [7; 32];

    fn masking(policy: &str) -> Result<Masking> {
        Masking::parse(extjson::parse_document(policy).expect("valid JSON").as_ref())
    }

    #[test]
    fn values_are_shaped() {
        for (mask, value, expected) in [
            ("hide", r#""x""#, "{}"),
            ("null", r#"[1,2]"#, r#"{"a":null}"#),
            ("email", r#""ann@example.org""#, r#"{"a":"a***@example.org"}"#),
            (
                "email",
                r#"["ann@example.org","none"]"#,
                r#"{"a":["a***@example.org",null]}"#,
            ),
            ("email", r#""@x""#, r#"{"a":null}"#),
            ("card", r#""4111 1111-2222 3333""#, r#"{"a":"4111 11**-**** 3333"}"#),
            ("card", r#""1234567""#, r#"{"a":"*******"}"#),
            ("card", r#""12345678x""#, r#"{"a":"****5678*"}"#),
            ("card", "4111111122223333", r#"{"a":null}"#),
            ("lastFour", r#""DE89370400440532013000""#, r#"{"a":"****3000"}"#),
            ("lastFour", r#""12345""#, r#"{"a":"****"}"#),
            (
                "year",
                r#"{"$date":"1985-07-09T12:30:00Z"}"#,
                r#"{"a":{"$date":"1985-01-01T00:00:00Z"}}"#,
            ),
            ("year", r#""1985""#, r#"{"a":null}"#),
            ("hash", "null", r#"{"a":null}"#),
        ] {
            let own = masking(&format!(r#"{{"a":"{mask}"}}"#)).expect("a policy");
            let doc = extjson::parse_document(&format!(r#"{{"a":{value}}}"#)).expect("valid JSON");
            let mut text = String::new();
            let shown = own.apply(doc.as_ref(), Some(&KEY));
            extjson::print(
                ValueRef::Document(shown.as_raw().as_doc()),
                extjson::Form::Relaxed,
                &mut text,
            );
            assert_eq!(text, expected, "{mask} of {value}");
        }
    }

    #[test]
    fn hashes_tell_values_apart_and_depend_on_the_key() {
        let own = masking(r#"{"a":"hash"}"#).expect("a policy");
        let of = |value: Value, key: &Key| {
            let mut doc = Document::new();
            doc.push("a", value);
            format!("{:?}", own.apply(doc.as_ref(), Some(key)).as_raw().get("a"))
        };
        assert_eq!(of("x".into(), &KEY), of("x".into(), &KEY));
        assert_ne!(of("x".into(), &KEY), of("y".into(), &KEY));
        assert_ne!(of("x".into(), &KEY), of("x".into(), &[8; 32]));
        assert!(!of("x".into(), &KEY).contains("\"x\""));
    }

    #[test]
    fn documents_in_arrays_are_masked_each() {
        let own = masking(r#"{"a.b":"lastFour","c":"hide"}"#).expect("a policy");
        let doc = extjson::parse_document(r#"{"_id":1,"a":[{"b":"123456789","d":1},[{"b":2}],3],"c":{"d":1},"e":2}"#);
        let shown = own.apply(doc.expect("valid JSON").as_ref(), None);
        let mut text = String::new();
        extjson::print(
            ValueRef::Document(shown.as_raw().as_doc()),
            extjson::Form::Relaxed,
            &mut text,
        );
        assert_eq!(text, r#"{"_id":1,"a":[{"b":"****6789","d":1},[{"b":null}],3],"e":2}"#);
        for (path, touched) in [
            ("a", true),
            ("a.b.x", true),
            ("a.d", false),
            ("c.x", true),
            ("ab", false),
        ] {
            assert_eq!(own.touches(path), touched, "{path}");
        }
    }

    #[test]
    fn what_updates_set_is_masked_by_its_path() {
        let own = masking(r#"{"a.b":"lastFour","c":"null"}"#).expect("a policy");
        let set = doc! {
            "a.0.b": "123456789", "a.1": doc! { "b": "123456789", "d": 1 }, "a.2.d": 5, "a.b.x": "secret", "c": 1, "c.d": 2, "e": 3,
        };
        let described = doc! { "updatedFields": set, "removedFields": Vec::<Value>::new() };
        let shown = description(&own, described.to_raw().as_raw(), None);
        let mut text = String::new();
        extjson::print(
            ValueRef::Document(shown.as_raw().as_doc()),
            extjson::Form::Relaxed,
            &mut text,
        );
        assert_eq!(
            text,
            r#"{"updatedFields":{"a.0.b":"****6789","a.1":{"b":"****6789","d":1},"a.2.d":5,"c":null,"e":3},"removedFields":[]}"#
        );
    }

    #[test]
    fn policies_that_mean_nothing_are_refused() {
        for (policy, code) in [
            (r#"{"a":"blur"}"#, 2),
            (r#"{"a":1}"#, 14),
            (r#"{"_id":"hide"}"#, 2),
            (r#"{"_id.x":"hide"}"#, 2),
            (r#"{"a.0":"hide"}"#, 2),
            (r#"{"a..b":"hide"}"#, 2),
            (r#"{"$a":"hide"}"#, 2),
            (r#"{"":"hide"}"#, 2),
            (r#"{"a":"hide","a.b":"null"}"#, 2),
            (r#"{"a.b":"hide","a":"null"}"#, 2),
        ] {
            assert_eq!(masking(policy).expect_err(policy).code().number(), code, "{policy}");
        }
    }
}
