//! CREATE, ALTER and DROP ROLE, USER and GROUP; GRANT, REVOKE and DROP OWNED.

use super::assigned::{self, Assigned};
use super::columns::written;
use super::dialect::Sql;
use super::maintain::Parsed;
use super::word::word as word_of;
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::borrow::Cow;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roles {
    /// CREATE ROLE, USER or GROUP.
    Create {
        /// The name.
        name: Ident,
        /// Its options, and LOGIN before them for a USER.
        options: Vec<RoleOption>,
    },
    /// ALTER ROLE, USER or GROUP.
    Alter {
        /// The name.
        name: Ident,
        /// Its options.
        options: Vec<RoleOption>,
    },
    /// ALTER ROLE … SET and RESET.
    Settings {
        /// The role; `None` for all.
        name: Option<Ident>,
        /// In which database; `None` for all.
        database: Option<Ident>,
        /// What its sessions begin with.
        assigned: Assigned,
    },
    /// DROP ROLE, USER or GROUP.
    Drop {
        /// The names.
        names: Vec<Ident>,
        /// Nothing happens when there is nothing.
        if_exists: bool,
    },
    /// GRANT … ON … TO and REVOKE … ON … FROM.
    Privileges {
        /// Given, else taken.
        gives: bool,
        /// SELECT and others, in capitals; none for ALL.
        privileges: Vec<String>,
        /// On what.
        on: Objects,
        /// To whom, or from whom.
        grantees: Vec<Grantee>,
    },
    /// GRANT role TO and REVOKE role FROM.
    Members {
        /// Given, else taken.
        gives: bool,
        /// What is given.
        roles: Vec<Ident>,
        /// To whom, or from whom.
        grantees: Vec<Grantee>,
    },
    /// DROP OWNED BY.
    DropOwned {
        /// Whose privileges go.
        roles: Vec<Grantee>,
    },
    /// What is read and not supported, by its name.
    Other(String),
}

/// An option of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleOption {
    /// LOGIN, SUPERUSER and others by their names without NO, in capitals, and whether without it.
    Flag(String, bool),
    /// PASSWORD; `None` for none.
    Password(Option<String>),
    /// IN ROLE, IN GROUP: what it becomes a member of.
    InRoles(Vec<Ident>),
    /// ROLE, USER: who become members of it.
    Members(Vec<Ident>),
    /// CONNECTION LIMIT and VALID UNTIL: the option, and its value.
    Limit(&'static str, String),
}

/// On what something is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// Tables and views.
    Tables(Vec<ObjectName>),
    /// ALL TABLES IN SCHEMA
    TablesOf(Vec<Ident>),
    /// Sequences.
    Sequences(Vec<ObjectName>),
    /// ALL SEQUENCES IN SCHEMA
    SequencesOf(Vec<Ident>),
    /// Databases.
    Databases(Vec<Ident>),
    /// Schemas.
    Schemas(Vec<Ident>),
}

/// To whom something is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grantee {
    /// PUBLIC
    Public,
    /// CURRENT_USER and its like.
    Own,
    /// A role.
    Role(Ident),
}

const KINDS: [&str; 3] = ["ROLE", "USER", "GROUP"];

const FLAGS: [&str; 7] = [
    "LOGIN",
    "SUPERUSER",
    "INHERIT",
    "CREATEDB",
    "CREATEROLE",
    "REPLICATION",
    "BYPASSRLS",
];

/// Whether a statement that begins with these words, in capitals, is one of these.
pub(super) fn begins(words: &[String]) -> bool {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    match word(0) {
        "GRANT" | "REVOKE" => true,
        "CREATE" | "ALTER" | "DROP" => {
            let is_mapping = word(1) == "USER" && word(2) == "MAPPING";
            KINDS.contains(&word(1)) && !is_mapping || word(0) == "DROP" && word(1) == "OWNED"
        }
        "REASSIGN" => true,
        _ => false,
    }
}

fn word(parser: &Parser<'_>) -> String {
    word_of(&parser.peek_token().token)
}

/// Takes the word if it is next.
fn takes(parser: &mut Parser<'_>, wanted: &str) -> bool {
    let is_next = word(parser) == wanted;
    if is_next {
        parser.next_token();
    }
    is_next
}

fn expect(parser: &mut Parser<'_>, wanted: &str) -> Parsed<()> {
    match takes(parser, wanted) {
        true => Ok(()),
        false => parser.expected(wanted, parser.peek_token()),
    }
}

fn names(parser: &mut Parser<'_>) -> Parsed<Vec<Ident>> {
    parser.parse_comma_separated(Parser::parse_identifier)
}

/// The rest of the statement is not looked at: it is refused by this name.
fn other(parser: &mut Parser<'_>, what: &str) -> Parsed<Roles> {
    while parser.next_token().token != Token::EOF {}
    Ok(Roles::Other(what.to_owned()))
}

/// Reads the statement.
pub(super) fn read(parser: &mut Parser<'_>) -> Parsed<Roles> {
    let verb = word(parser);
    parser.next_token();
    match verb.as_str() {
        "GRANT" => return grant(parser, true),
        "REVOKE" => return grant(parser, false),
        "REASSIGN" => return other(parser, "REASSIGN OWNED"),
        _ => {}
    }
    let kind = word(parser);
    parser.next_token();
    if kind == "OWNED" {
        expect(parser, "BY")?;
        let roles = parser.parse_comma_separated(grantee)?;
        let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
        return Ok(Roles::DropOwned { roles });
    }
    if verb == "DROP" {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let names = names(parser)?;
        return Ok(Roles::Drop { names, if_exists });
    }
    let creates = verb == "CREATE";
    let is_all = !creates && word(parser) == "ALL";
    let name = parser.parse_identifier()?;
    if !creates {
        match word(parser).as_str() {
            "RENAME" => return other(parser, "ALTER ROLE RENAME"),
            "SET" | "RESET" | "IN" => {
                let mut database = None;
                if takes(parser, "IN") {
                    expect(parser, "DATABASE")?;
                    database = Some(parser.parse_identifier()?);
                }
                if !assigned::is_next(parser) {
                    return parser.expected("SET or RESET", parser.peek_token());
                }
                let name = (!is_all).then_some(name);
                let assigned = assigned::read(parser)?;
                return Ok(Roles::Settings {
                    name,
                    database,
                    assigned,
                });
            }
            "ADD" | "DROP" if kind == "GROUP" => {
                let gives = word(parser) == "ADD";
                parser.next_token();
                expect(parser, "USER")?;
                let grantees = parser.parse_comma_separated(grantee)?;
                let roles = vec![name];
                return Ok(Roles::Members { gives, roles, grantees });
            }
            _ => {}
        }
    }
    takes(parser, "WITH");
    let mut options = Vec::new();
    if creates && kind == "USER" {
        options.push(RoleOption::Flag("LOGIN".to_owned(), true));
    }
    while parser.peek_token().token != Token::EOF {
        options.push(option(parser, creates)?);
    }
    Ok(match creates {
        true => Roles::Create { name, options },
        false => Roles::Alter { name, options },
    })
}

fn option(parser: &mut Parser<'_>, creates: bool) -> Parsed<RoleOption> {
    let option = word(parser);
    let token = parser.next_token();
    if option == "ENCRYPTED" {
        expect(parser, "PASSWORD")?;
        return password(parser);
    }
    let flag = |option: &str, is_on: bool| RoleOption::Flag(option.to_owned(), is_on);
    match option.as_str() {
        on if FLAGS.contains(&on) => return Ok(flag(on, true)),
        off if off.strip_prefix("NO").is_some_and(|on| FLAGS.contains(&on)) => return Ok(flag(&off[2..], false)),
        _ => {}
    }
    match (option.as_str(), creates) {
        ("PASSWORD", _) => password(parser),
        ("CONNECTION", _) => {
            expect(parser, "LIMIT")?;
            let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
            Ok(RoleOption::Limit(
                "CONNECTION LIMIT",
                format!("{sign}{}", parser.next_token().token),
            ))
        }
        ("VALID", _) => {
            expect(parser, "UNTIL")?;
            Ok(RoleOption::Limit("VALID UNTIL", parser.parse_literal_string()?))
        }
        ("IN", true) => {
            if !takes(parser, "ROLE") {
                expect(parser, "GROUP")?;
            }
            names(parser).map(RoleOption::InRoles)
        }
        ("ROLE" | "USER", true) => names(parser).map(RoleOption::Members),
        ("ADMIN", true) => {
            names(parser)?;
            Ok(RoleOption::Flag("ADMIN".to_owned(), true))
        }
        _ => parser.expected("an option of a role", token),
    }
}

fn password(parser: &mut Parser<'_>) -> Parsed<RoleOption> {
    if takes(parser, "NULL") {
        return Ok(RoleOption::Password(None));
    }
    parser
        .parse_literal_string()
        .map(|text| RoleOption::Password(Some(text)))
}

fn grantee(parser: &mut Parser<'_>) -> Parsed<Grantee> {
    takes(parser, "GROUP");
    Ok(match word(parser).as_str() {
        "PUBLIC" => {
            parser.next_token();
            Grantee::Public
        }
        "CURRENT_USER" | "CURRENT_ROLE" | "SESSION_USER" => {
            parser.next_token();
            Grantee::Own
        }
        _ => Grantee::Role(parser.parse_identifier()?),
    })
}

/// GRANT and REVOKE behind their first word.
fn grant(parser: &mut Parser<'_>, gives: bool) -> Parsed<Roles> {
    if !gives && matches!(word(parser).as_str(), "GRANT" | "ADMIN" | "INHERIT") {
        // REVOKE GRANT OPTION FOR: not the name of a role, which may be a word like these.
        let second = parser.peek_nth_token(1).token;
        if word_of(&second) == "OPTION" {
            return other(parser, "a grant option");
        }
    }
    let mut privileges: Vec<Ident> = Vec::new();
    let mut is_all = false;
    let mut of_columns = false;
    if word(parser) == "ALL" {
        parser.next_token();
        takes(parser, "PRIVILEGES");
        is_all = true;
        of_columns = parser.peek_token().token == Token::LParen;
    } else {
        loop {
            privileges.push(match word(parser).as_str() {
                name @ ("ALTER" | "SET") => {
                    parser.next_token();
                    Ident::new(name)
                }
                _ => parser.parse_identifier()?,
            });
            if parser.peek_token().token == Token::LParen {
                of_columns = true;
                break;
            }
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
    }
    if of_columns {
        return other(parser, "privileges on columns");
    }
    if !takes(parser, "ON") {
        if is_all {
            return parser.expected("ON", parser.peek_token());
        }
        let grantees = grantees(parser, gives)?;
        return match options(parser)? {
            Some(what) => other(parser, what),
            None => Ok(Roles::Members {
                gives,
                roles: privileges,
                grantees,
            }),
        };
    }
    let on = match objects(parser)? {
        Ok(on) => on,
        Err(what) => return other(parser, &format!("privileges on {what}")),
    };
    let grantees = grantees(parser, gives)?;
    if let Some(what) = options(parser)? {
        return other(parser, what);
    }
    Ok(Roles::Privileges {
        gives,
        privileges: privileges.iter().map(|name| name.value.to_uppercase()).collect(),
        on,
        grantees,
    })
}

fn grantees(parser: &mut Parser<'_>, gives: bool) -> Parsed<Vec<Grantee>> {
    expect(parser, if gives { "TO" } else { "FROM" })?;
    parser.parse_comma_separated(grantee)
}

/// What stands behind the grantees: the name of what is not supported.
fn options(parser: &mut Parser<'_>) -> Parsed<Option<&'static str>> {
    if takes(parser, "WITH") {
        return Ok(Some("a grant option"));
    }
    if takes(parser, "GRANTED") {
        return Ok(Some("GRANTED BY"));
    }
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    Ok(None)
}

/// What a privilege is on; the name of what nothing can be given on.
fn objects(parser: &mut Parser<'_>) -> Parsed<std::result::Result<Objects, String>> {
    let kind = word(parser);
    let second = word_of(&parser.peek_nth_token(1).token);
    if kind == "ALL" && matches!(second.as_str(), "TABLES" | "SEQUENCES") {
        parser.next_token();
        parser.next_token();
        expect(parser, "IN")?;
        expect(parser, "SCHEMA")?;
        let schemas = names(parser)?;
        return Ok(Ok(match second.as_str() {
            "TABLES" => Objects::TablesOf(schemas),
            _ => Objects::SequencesOf(schemas),
        }));
    }
    let relations = |parser: &mut Parser<'_>| parser.parse_comma_separated(|parser| parser.parse_object_name(false));
    let is_name = matches!(second.as_str(), "TO" | "FROM");
    match kind.as_str() {
        _ if is_name => {}
        "TABLE" | "SEQUENCE" | "DATABASE" | "SCHEMA" => {
            parser.next_token();
            return Ok(Ok(match kind.as_str() {
                "TABLE" => Objects::Tables(relations(parser)?),
                "SEQUENCE" => Objects::Sequences(relations(parser)?),
                "DATABASE" => Objects::Databases(names(parser)?),
                _ => Objects::Schemas(names(parser)?),
            }));
        }
        "ALL" => return Ok(Err(format!("ALL {second}"))),
        "FUNCTION" | "PROCEDURE" | "ROUTINE" | "DOMAIN" | "TYPE" | "LANGUAGE" | "LARGE" | "TABLESPACE" | "FOREIGN"
        | "PARAMETER" => return Ok(Err(kind)),
        _ => {}
    }
    Ok(Ok(Objects::Tables(relations(parser)?)))
}

/// A text of statements as others may see it: without the passwords that are set in it.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    let has = text
        .as_bytes()
        .windows(8)
        .any(|part| part.eq_ignore_ascii_case(b"password"));
    let Some(tokens) = has.then(|| Tokenizer::new(&Sql, text).tokenize().ok()).flatten() else {
        return Cow::Borrowed(text);
    };
    let mut is_next = false;
    let shown = tokens.iter().map(|token| match token {
        Token::Whitespace(_) => written(token),
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_) if is_next => {
            is_next = false;
            "'***'".to_owned()
        }
        _ => {
            is_next = word_of(token) == "PASSWORD";
            written(token)
        }
    });
    Cow::Owned(shown.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let cases = [
            ("create user a password 'x y'", "create user a password '***'"),
            ("select 1", "select 1"),
            (
                "create role a encrypted  PassWord\n E'\\'' login; select 'b'",
                "create role a encrypted  PassWord\n '***' login; select 'b'",
            ),
            ("alter user a password $$p$$", "alter user a password '***'"),
            (
                "select password from t where a = 'b'",
                "select password from t where a = 'b'",
            ),
        ];
        for (text, shown) in cases {
            assert_eq!(without_passwords(text), shown);
        }
    }
}
