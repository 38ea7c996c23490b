//! Names of users and of roles: each belongs to a database.

use nestor_model::{DocRef, Document, Result, Str, ValueRef, bail, doc};
use std::fmt;

/// A user's name and the database that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName {
    /// The name.
    pub user: Str,
    /// The database.
    pub db: Str,
}

/// A role's name and the database that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleName {
    /// The name.
    pub role: Str,
    /// The database.
    pub db: Str,
}

macro_rules! name {
    ($type:ident, $field:ident, $word:literal) => {
        impl $type {
            /// The name in a database.
            pub fn new($field: &str, db: &str) -> Self {
                Self {
                    $field: $field.into(),
                    db: db.into(),
                }
            }

            /// Its `_id`: the database, a dot, the name.
            pub fn id(&self) -> String {
                format!("{}.{}", self.db, self.$field)
            }

            #[doc = concat!("As a document, `{", $word, ": .., db: ..}`.")]
            pub fn to_document(&self) -> Document {
                doc! { $word: self.$field.clone(), "db": self.db.clone() }
            }

            #[doc = concat!("Reads the name of a ", $word, " that need not be there, so it may be empty; else as [`Self::parse`].")]
            ///
            /// Errors: 2 for anything else.
            pub fn parse_any(value: ValueRef<'_>, db: &str) -> Result<Self> {
                Ok(match value {
                    ValueRef::String(name) => Self::new(name, db),
                    ValueRef::Document(doc) => Self::from_document(doc)?,
                    other => bail!(
                        BadValue,
                        concat!($word, " names must be either strings or objects, not {}"),
                        other.bson_type().alias()
                    ),
                })
            }

            #[doc = concat!("Reads a name, which belongs to `db`, or `{", $word, ": .., db: ..}`.")]
            ///
            /// Errors: 2 for anything else, empty names included.
            pub fn parse(value: ValueRef<'_>, db: &str) -> Result<Self> {
                let name = Self::parse_any(value, db)?;
                match name.$field.is_empty() || name.db.is_empty() {
                    true => bail!(
                        BadValue,
                        concat!($word, " names and their databases must not be empty")
                    ),
                    false => Ok(name),
                }
            }

            fn from_document(doc: DocRef<'_>) -> Result<Self> {
                for (field, _) in doc.iter() {
                    if field != $word && field != "db" {
                        bail!(40415, "BSON field '{}.{field}' is an unknown field.", $word);
                    }
                }
                let text = |field: &str| doc.get(field).and_then(ValueRef::as_str);
                match (text($word), text("db")) {
                    (Some(name), Some(db)) => Ok(Self::new(name, db)),
                    _ => bail!(
                        BadValue,
                        concat!("a ", $word, " name needs the strings ", $word, " and db")
                    ),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}@{}", self.$field, self.db)
            }
        }
    };
}

name!(UserName, user, "user");
name!(RoleName, role, "role");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_names() {
        let role = RoleName::parse(ValueRef::String("r"), "d").expect("it is a name");
        assert_eq!((role.id().as_str(), role.to_string().as_str()), ("d.r", "r@d"));
        let stored = role.to_document();
        let read = RoleName::parse(ValueRef::Document(stored.as_ref()), "other");
        assert_eq!(read.ok(), Some(role));
        for wrong in [
            doc! { "role": "r" },
            doc! { "role": "r", "db": "" },
            doc! { "role": "r", "db": "d", "x": 1 },
        ] {
            assert!(
                RoleName::parse(ValueRef::Document(wrong.as_ref()), "d").is_err(),
                "{wrong:?}"
            );
        }
        assert!(UserName::parse(ValueRef::Int32(1), "d").is_err());
        assert!(UserName::parse(ValueRef::String(""), "d").is_err());
    }
}
