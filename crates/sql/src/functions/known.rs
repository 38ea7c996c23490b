//! What the catalog has said of objects, as a constant of a plan: a document of texts or numbers by names, in the order of these, so that each
//! of many rows finds its own by a search and not by a look at all of them.

use nestor_model::{DocRef, Document, Str, Value, ValueRef};

/// Answers by their names. Of equal names the first one counts.
pub fn known<T: Into<Value>>(answers: impl IntoIterator<Item = (String, T)>) -> Value {
    let each = answers
        .into_iter()
        .map(|(name, answer)| (Str::from(name), answer.into()));
    let mut all: Vec<(Str, Value)> = each.collect();
    all.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
    all.dedup_by(|(later, _), (first, _)| later == first);
    Value::Document(all.into_iter().collect())
}

/// The answer of a name.
pub fn look<'k>(known: &'k Document, name: &str) -> Option<ValueRef<'k>> {
    match known.as_ref() {
        DocRef::Fields(fields) => {
            let at = fields.binary_search_by(|(own, _)| own.as_str().cmp(name)).ok()?;
            Some(fields[at].1.as_ref())
        }
        raw => raw.get(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_names_is_found() {
        let all = [("b", 1), ("a", 2), ("b", 3), ("c", 4)].map(|(name, number)| (name.to_owned(), number));
        let Value::Document(all) = known(all) else {
            panic!("a document");
        };
        let found = |name| look(&all, name).and_then(nestor_model::number::safe_i64);
        assert_eq!(found("a"), Some(2));
        assert_eq!(found("b"), Some(1));
        assert_eq!(found("d"), None);
    }
}
