//! `ALTER TYPE name … ATTRIBUTE`.

use super::word::is;
use sqlparser::ast::{DataType, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// `ALTER TYPE name` with changes of its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterAttributes {
    /// The type.
    pub name: ObjectName,
    /// What changes, in this order.
    pub changes: Vec<Change>,
}

/// What happens to an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is another one.
    Add(Ident, DataType),
    /// It goes; if that is said, nothing happens when there is none.
    Drop(Ident, bool),
    /// It has another type.
    Retype(Ident, DataType),
    /// It has another name.
    Rename(Ident, Ident),
}

/// Reads what stands behind `ALTER TYPE`.
pub(super) fn read(parser: &mut Parser<'_>) -> Result<AlterAttributes, ParserError> {
    let name = parser.parse_object_name(false)?;
    let changes = parser.parse_comma_separated(change)?;
    let renames = |change: &Change| matches!(change, Change::Rename(..));
    match changes.len() > 1 && changes.iter().any(renames) {
        true => Err(ParserError::ParserError("RENAME ATTRIBUTE stands alone".to_owned())),
        false => Ok(AlterAttributes { name, changes }),
    }
}

fn change(parser: &mut Parser<'_>) -> Result<Change, ParserError> {
    let verbs = [Keyword::ADD, Keyword::DROP, Keyword::ALTER, Keyword::RENAME];
    let verb = parser.expect_one_of_keywords(&verbs)?;
    let word = parser.next_token();
    if !is(&word.token, "ATTRIBUTE") {
        return parser.expected("ATTRIBUTE", word);
    }
    let change = match verb {
        Keyword::ADD => Change::Add(parser.parse_identifier()?, parser.parse_data_type()?),
        Keyword::DROP => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            Change::Drop(parser.parse_identifier()?, if_exists)
        }
        Keyword::ALTER => {
            let name = parser.parse_identifier()?;
            let _ = parser.parse_keywords(&[Keyword::SET, Keyword::DATA]);
            parser.expect_keyword(Keyword::TYPE)?;
            Change::Retype(name, parser.parse_data_type()?)
        }
        _ => {
            let from = parser.parse_identifier()?;
            parser.expect_keyword(Keyword::TO)?;
            Change::Rename(from, parser.parse_identifier()?)
        }
    };
    // It is about tables that are declared to be of a type, which there are not.
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    Ok(change)
}
