//! CREATE, ALTER and DROP DOMAIN.

use super::maintain::Parsed;
use sqlparser::ast::{ColumnOption, DataType, Expr, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domains {
    /// CREATE DOMAIN
    Create {
        /// The name.
        name: ObjectName,
        /// The type that it is over.
        ty: DataType,
        /// What else is said.
        said: Said,
    },
    /// ALTER DOMAIN
    Alter {
        /// The name.
        name: ObjectName,
        /// What changes.
        change: Change,
    },
    /// DROP DOMAIN
    Drop {
        /// The names.
        names: Vec<ObjectName>,
        /// Nothing happens when there is nothing.
        if_exists: bool,
        /// What is of one goes with it.
        cascades: bool,
    },
}

/// What a declaration says beside name and type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The order of its values.
    pub collation: Option<ObjectName>,
    /// What columns hold that nobody gives.
    pub default: Option<Expr>,
    /// Whether it has no nulls, if that is said.
    pub not_null: Option<bool>,
    /// Conditions, with names if they were given some.
    pub checks: Vec<(Option<Ident>, Expr)>,
    /// Why it cannot be so.
    pub contradicts: Option<&'static str>,
}

/// What happens to a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another default, or none.
    Default(Option<Expr>),
    /// It has no nulls, or may have some.
    NotNull(bool),
    /// Another condition, which may not hold of what is there.
    Add {
        /// What is said of it.
        said: Said,
        /// What is there is not looked at.
        is_not_valid: bool,
    },
    /// A condition goes; if that is said, nothing happens when there is none.
    DropConstraint(Ident, bool),
    /// A condition holds of what is there.
    Validate(Ident),
    /// A condition has another name.
    RenameConstraint(Ident, Ident),
    /// It has another name.
    Rename(Ident),
    /// It goes to another schema.
    Schema(Ident),
}

/// Reads the statement.
pub(super) fn read(parser: &mut Parser<'_>) -> Parsed<Domains> {
    let verb = parser.expect_one_of_keywords(&[Keyword::CREATE, Keyword::ALTER, Keyword::DROP])?;
    parser.expect_keyword(Keyword::DOMAIN)?;
    match verb {
        Keyword::CREATE => {
            let name = parser.parse_object_name(false)?;
            let _ = parser.parse_keyword(Keyword::AS);
            let (ty, said) = declaration(rest(parser))?;
            Ok(Domains::Create { name, ty, said })
        }
        Keyword::ALTER => {
            let name = parser.parse_object_name(false)?;
            let change = change(parser)?;
            Ok(Domains::Alter { name, change })
        }
        _ => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
            let behind = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
            Ok(Domains::Drop {
                names,
                if_exists,
                cascades: behind == Some(Keyword::CASCADE),
            })
        }
    }
}

/// The tokens that are left.
fn rest(parser: &mut Parser<'_>) -> Vec<Token> {
    let mut out = Vec::new();
    loop {
        match parser.next_token().token {
            Token::EOF => return out,
            token => out.push(token),
        }
    }
}

fn refused<T>(what: &str) -> Parsed<T> {
    Err(ParserError::ParserError(what.to_owned()))
}

/// A type and what is said of it, which has the form of a column's declaration.
fn declaration(tokens: Vec<Token>) -> Parsed<(DataType, Said)> {
    let named: Vec<Token> = [Token::make_word("value", Some('"'))]
        .into_iter()
        .chain(tokens)
        .collect();
    let mut parser = Parser::new(&super::dialect::Sql).with_tokens(named);
    let column = parser.parse_column_def()?;
    if parser.peek_token().token != Token::EOF {
        return parser.expected("the end of the statement", parser.peek_token());
    }
    let mut said = Said::default();
    let nulls = |said: &mut Said, not_null: bool| {
        if said.not_null.replace(not_null).is_some_and(|before| before != not_null) {
            said.contradicts = Some("conflicting NULL/NOT NULL constraints");
        }
    };
    for option in column.options {
        match option.option {
            ColumnOption::NotNull => nulls(&mut said, true),
            ColumnOption::Null => nulls(&mut said, false),
            ColumnOption::Default(expr) => {
                if said.default.replace(expr).is_some() {
                    said.contradicts = Some("multiple default expressions");
                }
            }
            ColumnOption::Collation(name) => said.collation = Some(name),
            ColumnOption::Check(check) if check.enforced.is_none() => {
                said.checks.push((option.name, *check.expr));
            }
            ColumnOption::Unique(_) => said.contradicts = Some("unique constraints not possible for domains"),
            ColumnOption::PrimaryKey(_) => said.contradicts = Some("primary key constraints not possible for domains"),
            ColumnOption::ForeignKey(_) => said.contradicts = Some("foreign key constraints not possible for domains"),
            other => return refused(&format!("expected a constraint of a domain, found: {other}")),
        }
    }
    Ok((column.data_type, said))
}

fn change(parser: &mut Parser<'_>) -> Parsed<Change> {
    let verbs = [
        Keyword::SET,
        Keyword::DROP,
        Keyword::ADD,
        Keyword::VALIDATE,
        Keyword::RENAME,
    ];
    Ok(match parser.expect_one_of_keywords(&verbs)? {
        Keyword::SET if parser.parse_keyword(Keyword::DEFAULT) => Change::Default(Some(parser.parse_expr()?)),
        Keyword::SET if parser.parse_keyword(Keyword::SCHEMA) => Change::Schema(parser.parse_identifier()?),
        Keyword::SET => {
            parser.expect_keywords(&[Keyword::NOT, Keyword::NULL])?;
            Change::NotNull(true)
        }
        Keyword::DROP if parser.parse_keyword(Keyword::DEFAULT) => Change::Default(None),
        Keyword::DROP if parser.parse_keyword(Keyword::CONSTRAINT) => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let name = parser.parse_identifier()?;
            let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
            Change::DropConstraint(name, if_exists)
        }
        Keyword::DROP => {
            parser.expect_keywords(&[Keyword::NOT, Keyword::NULL])?;
            Change::NotNull(false)
        }
        Keyword::ADD => {
            let mut tokens = vec![Token::make_keyword("INT")];
            tokens.extend(rest(parser));
            let ends: Vec<String> = tokens.iter().rev().take(2).map(super::word::word).collect();
            let is_not_valid = ends == ["VALID", "NOT"];
            if is_not_valid {
                tokens.truncate(tokens.len() - 2);
            }
            let said = declaration(tokens)?.1;
            match said.default.is_some()
                || said.collation.is_some()
                || said.checks.len() != 1
                || said.contradicts.is_some()
            {
                // In PostgreSQL 15 only conditions are added so.
                true => return refused("expected CHECK and a condition"),
                false => Change::Add { said, is_not_valid },
            }
        }
        Keyword::VALIDATE => {
            parser.expect_keyword(Keyword::CONSTRAINT)?;
            Change::Validate(parser.parse_identifier()?)
        }
        _ if parser.parse_keyword(Keyword::CONSTRAINT) => {
            let from = parser.parse_identifier()?;
            parser.expect_keyword(Keyword::TO)?;
            Change::RenameConstraint(from, parser.parse_identifier()?)
        }
        _ => {
            parser.expect_keyword(Keyword::TO)?;
            Change::Rename(parser.parse_identifier()?)
        }
    })
}
