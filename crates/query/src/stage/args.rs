//! Reading the options of a stage, with the errors that typed options have everywhere in MongoDB.

use nestor_model::{ArrayRef, DocRef, Error, Result, ValueRef};

/// The options of a stage, each known and given at most once.
pub(super) struct Options<'a> {
    stage: &'static str,
    found: Vec<(&'static str, ValueRef<'a>)>,
}

impl<'a> Options<'a> {
    /// Reads a document of options. Errors: 40415 unknown, 40413 given twice.
    pub(super) fn read(stage: &'static str, doc: DocRef<'a>, known: &[&'static str]) -> Result<Self> {
        let mut found: Vec<(&'static str, ValueRef<'a>)> = Vec::new();
        for (name, value) in doc {
            let Some(option) = known.iter().find(|option| **option == name) else {
                return Err(Error::location(
                    40415,
                    format!("BSON field '{stage}.{name}' is an unknown field."),
                ));
            };
            if found.iter().any(|(seen, _)| seen == option) {
                return Err(Error::location(
                    40413,
                    format!("BSON field '{stage}.{name}' is a duplicate field"),
                ));
            }
            found.push((option, value));
        }
        Ok(Self { stage, found })
    }

    /// The option, null counting as given.
    pub(super) fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        self.found.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    /// The option, null and undefined counting as not given.
    pub(super) fn given(&self, name: &str) -> Option<ValueRef<'a>> {
        self.get(name).filter(|v| !v.is_nullish())
    }

    /// An optional string. Error: 14.
    pub(super) fn string(&self, name: &str) -> Result<Option<&'a str>> {
        self.given(name)
            .map(|v| v.as_str().ok_or_else(|| self.wrong_type(name, v, "string")))
            .transpose()
    }

    /// An optional document. Error: 14.
    pub(super) fn document(&self, name: &str) -> Result<Option<DocRef<'a>>> {
        self.given(name)
            .map(|v| v.as_document().ok_or_else(|| self.wrong_type(name, v, "object")))
            .transpose()
    }

    /// An optional array. Error: 14.
    pub(super) fn array(&self, name: &str) -> Result<Option<ArrayRef<'a>>> {
        self.given(name)
            .map(|v| v.as_array().ok_or_else(|| self.wrong_type(name, v, "array")))
            .transpose()
    }

    /// The error for a required option that is not given: 40414.
    pub(super) fn missing(&self, name: &str) -> Error {
        Error::location(
            40414,
            format!("BSON field '{}.{name}' is missing but a required field", self.stage),
        )
    }

    /// The error for an option of the wrong type: 14.
    pub(super) fn wrong_type(&self, name: &str, value: ValueRef<'_>, wanted: &str) -> Error {
        Error::type_mismatch(format!(
            "BSON field '{}.{name}' is the wrong type '{}', expected type '{wanted}'",
            self.stage,
            value.bson_type().alias()
        ))
    }
}
