//! Which values a dotted path reaches in a document, arrays being traversed implicitly.
//!
//! For each component: a document yields its field, or missing; any other value but an array yields
//! missing; an array is entered. Entering an array with components left, every element that is a
//! document continues with all of them, and the element whose index equals a numeric component
//! continues after that component. Other elements (numbers, nested arrays) yield nothing. Where the
//! path ends at an array, [`Leaves::Elements`] yields its elements and then the array itself;
//! an element picked by a final index is taken as it is.

use nestor_model::statement::work;
use nestor_model::{ArrayRef, PathPart, Result, ValueRef};

/// The values that an array at the end of a path yields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaves {
    /// Each element, then the array.
    Elements,
    /// The array only.
    Whole,
}

/// Where a test succeeded: the index in the outermost array that was traversed, if one was.
pub(crate) type Hit = Option<Option<usize>>;

/// Calls `test` with each value that `parts` reach from `value` until it says yes.
pub(crate) fn walk<'a, F>(value: ValueRef<'a>, parts: &[PathPart], leaves: Leaves, test: &mut F) -> Result<Hit>
where
    F: FnMut(ValueRef<'a>) -> Result<bool>,
{
    let mut value = value;
    let mut parts = parts;
    // Documents in documents are followed without recursion.
    while let Some((part, rest)) = parts.split_first() {
        match value {
            ValueRef::Document(doc) => {
                value = doc.get(&part.name).unwrap_or(ValueRef::Missing);
                parts = rest;
            }
            ValueRef::Array(items) => return walk_array(items, parts, leaves, test),
            _ => {
                value = ValueRef::Missing;
                break;
            }
        }
    }
    if let (ValueRef::Array(items), Leaves::Elements) = (value, leaves) {
        for (i, item) in items.iter().enumerate() {
            work(1)?;
            if test(item)? {
                return Ok(Some(Some(i)));
            }
        }
    }
    Ok(test(value)?.then_some(None))
}

fn walk_array<'a, F>(items: ArrayRef<'a>, parts: &[PathPart], leaves: Leaves, test: &mut F) -> Result<Hit>
where
    F: FnMut(ValueRef<'a>) -> Result<bool>,
{
    let Some((part, rest)) = parts.split_first() else {
        return Ok(None);
    };
    for (i, item) in items.iter().enumerate() {
        work(1)?;
        let is_document = matches!(item, ValueRef::Document(_));
        if is_document && walk(item, parts, leaves, test)?.is_some() {
            return Ok(Some(Some(i)));
        }
        if part.index.is_some_and(|index| index as usize == i) {
            // A path that ends at an index names the element itself: nothing was looked for in the array.
            if rest.is_empty() {
                if test(item)? {
                    return Ok(Some(None));
                }
                continue;
            }
            let hit = match item {
                ValueRef::Document(_) => walk(item, rest, leaves, test)?.is_some(),
                ValueRef::Array(inner) => walk_array(inner, rest, leaves, test)?.is_some(),
                _ => false,
            };
            if hit {
                return Ok(Some(Some(i)));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, Path, Value, doc};

    fn reached(doc: &Document, path: &str, leaves: Leaves) -> String {
        let mut seen = Vec::new();
        let path = Path::new(path);
        walk(ValueRef::Document(doc.as_ref()), path.parts(), leaves, &mut |v| {
            seen.push(v.to_value());
            Ok(false)
        })
        .expect("no test fails");
        format!("{seen:?}")
    }

    fn list(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Array(items.into_iter().collect())
    }

    #[test]
    fn values_reached() {
        let one = || Value::from(1);
        let cases = [
            (doc! { "a": doc! { "b": 1 } }, "a.b", "[1]"),
            (doc! { "a": 1 }, "a.b", "[missing]"),
            (doc! {}, "a.b", "[missing]"),
            (doc! { "a": list([one(), 2.into()]) }, "a", "[1, 2, [1, 2]]"),
            (doc! { "a": list([]) }, "a", "[[]]"),
            (doc! { "a": list([]) }, "a.b", "[]"),
            (doc! { "a": list([one()]) }, "a.b", "[]"),
            (
                doc! { "a": list([doc! { "b": 1 }.into(), doc! {}.into()]) },
                "a.b",
                "[1, missing]",
            ),
            (doc! { "a": list([list([doc! { "b": 1 }.into()])]) }, "a.b", "[]"),
            (doc! { "a": list([list([doc! { "b": 1 }.into()])]) }, "a.0.b", "[1]"),
            (doc! { "a": list([list([one(), 2.into()])]) }, "a.0.1", "[2]"),
            (
                doc! { "a": list([5.into(), doc! { "1": 4 }.into()]) },
                "a.1",
                r#"[4, {"1": 4}]"#,
            ),
            (
                doc! { "a": list([doc! { "b": list([one()]) }.into()]) },
                "a.b",
                "[1, [1]]",
            ),
        ];
        for (doc, path, expected) in cases {
            assert_eq!(reached(&doc, path, Leaves::Elements), expected, "{path} of {doc:?}");
        }
        let doc = doc! { "a": list([one()]) };
        assert_eq!(reached(&doc, "a", Leaves::Whole), "[[1]]");
    }
}
