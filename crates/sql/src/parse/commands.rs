//! PostgreSQL's commands that there are not, by the words that begin them: the grammar knows some of them and not others, and whoever sends one is
//! told its name either way.

use super::{Sql, tokens, word};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// The kinds of objects that `CREATE`, `ALTER` and `DROP` name and that there are not, as the manual lists them.
const KINDS: &[&str] = &[
    "ACCESS METHOD",
    "AGGREGATE",
    "CAST",
    "COLLATION",
    "CONVERSION",
    "DEFAULT PRIVILEGES",
    "EVENT TRIGGER",
    "FOREIGN DATA WRAPPER",
    "FOREIGN TABLE",
    "GROUP",
    "LANGUAGE",
    "LARGE OBJECT",
    "OPERATOR CLASS",
    "OPERATOR FAMILY",
    "OPERATOR",
    "OWNED",
    "POLICY",
    "PROCEDURE",
    "PUBLICATION",
    "ROLE",
    "ROUTINE",
    "RULE",
    "SERVER",
    "STATISTICS",
    "SUBSCRIPTION",
    "SYSTEM",
    "TABLESPACE",
    "TEXT SEARCH CONFIGURATION",
    "TEXT SEARCH DICTIONARY",
    "TEXT SEARCH PARSER",
    "TEXT SEARCH TEMPLATE",
    "TRANSFORM",
    "USER MAPPING",
    "USER",
];

/// Other commands that there are not.
const COMMANDS: &[&str] = &[
    "CLUSTER",
    "GRANT",
    "IMPORT FOREIGN SCHEMA",
    "LOAD",
    "REASSIGN OWNED",
    "REVOKE",
    "SECURITY LABEL",
];

/// Words that may stand between a command and its object.
const BETWEEN: &[&str] = &["OR", "REPLACE", "TRUSTED", "PROCEDURAL"];

/// The name of a command that there is not; `None` for other texts.
pub(crate) fn missing(text: &str) -> Option<String> {
    let tokens = Tokenizer::new(&Sql, text).tokenize_with_location().ok()?;
    of(&tokens)
}

/// The same for the statement of a text in which something stands at a line and a column, or for the last one.
pub(super) fn missing_at(text: &str, place: Option<(usize, usize)>) -> Option<String> {
    let tokens = Tokenizer::new(&Sql, text).tokenize_with_location().ok()?;
    let begin = |token: &TokenWithSpan| (token.span.start.line as usize, token.span.start.column as usize);
    let statements = tokens.split(|token| token.token == Token::SemiColon);
    let has_begun = |statement: &&[TokenWithSpan]| {
        let first = tokens::next_solid(statement, 0).map(|at| begin(&statement[at]));
        first.is_some_and(|first| place.is_none_or(|place| first <= place))
    };
    of(statements.rev().find(has_begun)?)
}

fn of(tokens: &[TokenWithSpan]) -> Option<String> {
    let is_left_out = |token: &Token| BETWEEN.iter().any(|between| word::is(token, between));
    let words: Vec<&Token> = tokens::solid(tokens, 0)
        .map(|at| &tokens[at].token)
        .filter(|token| !is_left_out(token))
        .take(5)
        .collect();
    let begins = |words: &[&Token], name: &str| {
        let mut own = words.iter();
        name.split(' ')
            .all(|part| own.next().is_some_and(|token| word::is(token, part)))
    };
    let verb = ["CREATE", "ALTER", "DROP"]
        .into_iter()
        .find(|verb| begins(&words, verb));
    match verb {
        Some(verb) => {
            let kind = KINDS.iter().find(|kind| begins(&words[1..], kind))?;
            Some(format!("{verb} {kind}"))
        }
        None => {
            let command = COMMANDS.iter().find(|command| begins(&words, command))?;
            Some((*command).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_their_first_words() {
        for (text, name) in [
            (
                "create or replace rule r as on insert to t do nothing",
                Some("CREATE RULE"),
            ),
            (
                "-- a note\nALTER TEXT  SEARCH\nPARSER p RENAME TO q",
                Some("ALTER TEXT SEARCH PARSER"),
            ),
            ("drop user mapping for u server s", Some("DROP USER MAPPING")),
            ("grant select on t to u", Some("GRANT")),
            ("create table role (a int)", None),
            ("create \"role\" x", None),
            ("create", None),
            ("", None),
        ] {
            assert_eq!(missing(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn the_statement_with_the_place_counts() {
        let text = "select 1;\nsecurity label on table t is 'x';\nselect from where";
        assert_eq!(missing_at(text, Some((2, 1))).as_deref(), Some("SECURITY LABEL"));
        assert_eq!(missing_at(text, Some((3, 13))), None);
        assert_eq!(missing_at("select 1; cluster", None).as_deref(), Some("CLUSTER"));
    }
}
