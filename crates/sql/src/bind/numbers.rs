//! The names of the sequences that columns count with. One that is not made of the names of the table and the column stands in the text that
//! declares the table, as an option of the column: `id SERIAL CHARACTER SET "numbers of"."orders_id_seq"`.
//!
//! So a sequence keeps its name when its table or its column gets another one.

use super::ident;
use crate::catalog::Column;
use sqlparser::ast::{ColumnOption, ColumnOptionDef, CreateTable, Ident, ObjectName, ObjectNamePart};

/// What stands before the name.
const MARK: &str = "numbers of";

/// The option of a column that has the name of its sequence.
fn option(name: &str) -> ColumnOptionDef {
    let parts = [MARK, name].map(|part| Ident::with_quote('"', part));
    ColumnOptionDef {
        name: None,
        option: ColumnOption::CharacterSet(ObjectName::from(parts.to_vec())),
    }
}

/// The name of a sequence that an option of a column has.
pub fn said(option: &ColumnOption) -> Option<String> {
    let ColumnOption::CharacterSet(name) = option else {
        return None;
    };
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(mark), ObjectNamePart::Identifier(name)] if mark.value == MARK => {
            Some(name.value.clone())
        }
        _ => None,
    }
}

/// Gives the sequence of a column a name.
pub fn name(create: &mut CreateTable, column: &str, sequence: &str) {
    for def in create.columns.iter_mut().filter(|def| ident(&def.name) == column) {
        def.options.retain(|option| said(&option.option).is_none());
        def.options.push(option(sequence));
    }
}

/// Says what the sequences of a table's columns are called, which they stay when the table or a column gets another name.
pub fn keep(create: &mut CreateTable, columns: &[Column], table: &str) {
    for column in columns.iter().filter(|column| column.identity.is_some()) {
        name(create, &column.name, &column.sequence_of(table));
    }
}
