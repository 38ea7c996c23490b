//! What COMMENT ON has said.

use super::relations::constraints;
use super::{Facts, PUBLIC, Row, Said, oid, text};
use super::{policies, searched, statistics, triggers};
use nestor_model::{Document, Result, Value, ValueRef};

/// A comment.
pub(super) struct Comment {
    /// The number of what it is about.
    number: i64,
    /// The catalog of that, with its number.
    class: (i64, &'static str),
    /// The column, from 1; 0 for the whole.
    column: usize,
    /// What is said.
    pub(super) text: String,
}

const CLASS: (i64, &str) = (1259, "pg_class");
const NAMESPACE: (i64, &str) = (2615, "pg_namespace");
const CONSTRAINT: (i64, &str) = (2606, "pg_constraint");
const TRIGGER: (i64, &str) = (2620, "pg_trigger");
const POLICY: (i64, &str) = (3256, "pg_policy");
const DATABASE: (i64, &str) = (1262, "pg_database");
const ROLE: (i64, &str) = (1260, "pg_authid");

impl Comment {
    /// By what functions may ask for it: with the catalog's name and without.
    pub(super) fn keys(&self) -> impl Iterator<Item = String> {
        let (number, column) = (self.number, self.column);
        [self.class.1, ""]
            .into_iter()
            .map(move |class| format!("{number}/{class}/{column}"))
    }
}

fn said(of: &Document, name: &str) -> Option<String> {
    of.get(name).and_then(ValueRef::as_str).map(str::to_owned)
}

/// All comments.
///
/// Errors: those of [`Facts::relations`].
pub(super) fn all(facts: &dyn Facts) -> Result<Vec<Comment>> {
    let mut out = Vec::new();
    let mut add = |number: i64, class, column, text: Option<String>| {
        out.extend(text.map(|text| Comment {
            number,
            class,
            column,
            text,
        }));
    };
    for relation in facts.relations()?.iter() {
        for index in &relation.indexes {
            add(i64::from(index.oid), CLASS, 0, index.comment.clone());
        }
        let Some(comments) = &relation.comments else { continue };
        add(i64::from(relation.oid), CLASS, 0, said(comments, "comment"));
        if let Some(ValueRef::Document(columns)) = comments.get("columns") {
            let columns = columns.to_document();
            for (at, column) in (1..).zip(&relation.table.columns) {
                add(i64::from(relation.oid), CLASS, at, said(&columns, &column.name));
            }
        }
        let of = |kind: &str| match comments.get(kind) {
            Some(ValueRef::Document(of_kind)) => of_kind.to_document(),
            _ => Document::new(),
        };
        let (of_triggers, of_policies) = (of("triggers"), of("policies"));
        for own in relation.table.triggers.iter() {
            let number = i64::from(triggers::number(relation, own));
            add(number, TRIGGER, 0, said(&of_triggers, &own.name));
        }
        for own in &relation.table.row_security.policies {
            let number = i64::from(policies::number(relation, own));
            add(number, POLICY, 0, said(&of_policies, &own.name));
        }
        if let Some(ValueRef::Document(of_kind)) = comments.get("constraints") {
            let of_kind = of_kind.to_document();
            for (number, name) in constraints(relation) {
                add(number, CONSTRAINT, 0, said(&of_kind, &name));
            }
        }
    }
    let of_schemas = facts.said_of_schemas()?;
    let of_made = facts.said_of_made()?;
    let is_public = |(number, class, _): &Said| *number == PUBLIC && *class == NAMESPACE;
    if !of_made.iter().any(is_public) && !of_schemas.iter().any(|(number, _)| *number == PUBLIC) {
        add(PUBLIC, NAMESPACE, 0, Some("standard public schema".to_owned()));
    }
    for (number, text) in of_schemas {
        add(number, NAMESPACE, 0, Some(text));
    }
    for (number, class, text) in of_made.into_iter().chain(searched::descriptions()) {
        add(number, class, 0, Some(text));
    }
    for sequence in facts.sequences()? {
        add(i64::from(sequence.oid), CLASS, 0, sequence.comment);
    }
    Ok(out)
}

/// The rows of `pg_description`.
///
/// Errors: those of [`Facts::relations`].
pub(super) fn rows(facts: &dyn Facts) -> Result<Vec<Row>> {
    let each = all(facts)?.into_iter().map(|comment| {
        vec![
            ("objoid", oid(comment.number)),
            ("classoid", oid(comment.class.0)),
            ("objsubid", Value::Int32(i32::try_from(comment.column).unwrap_or(0))),
            ("description", text(comment.text)),
        ]
    });
    Ok(each.collect())
}

/// What is said of databases and roles.
///
/// Errors: those of [`Facts::said_of_shared`] and [`Facts::roles`].
pub(super) fn shared(facts: &dyn Facts) -> Result<Vec<Said>> {
    let all = facts.said_of_shared()?;
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let (databases, roles) = (statistics::databases(facts), facts.roles()?);
    let each = all.into_iter().filter_map(|(name, class, text)| {
        let database = || {
            databases
                .iter()
                .find(|(_, own)| *own == name)
                .map(|(number, _)| *number)
        };
        let role = || roles.iter().find(|role| role.name == name).map(|role| role.oid);
        match class == DATABASE.0 {
            true => Some((database()?, DATABASE, text)),
            false => Some((role()?, ROLE, text)),
        }
    });
    Ok(each.collect())
}

/// The rows of `pg_shdescription`.
///
/// Errors: those of [`shared`].
pub(super) fn shared_rows(facts: &dyn Facts) -> Result<Vec<Row>> {
    let each = shared(facts)?.into_iter().map(|(number, (class, _), said)| {
        vec![
            ("objoid", oid(number)),
            ("classoid", oid(class)),
            ("description", text(said)),
        ]
    });
    Ok(each.collect())
}
