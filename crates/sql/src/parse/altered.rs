//! What ALTER COLUMN does and the grammar's library does not read: `DROP IDENTITY`, `SET GENERATED` and `DROP EXPRESSION`. They are spelled out as defaults
//! that nobody can write.

use super::tokens::{is, made, solid};
use sqlparser::ast::Expr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The sign before what such a default is called.
const SIGN: char = '\u{1}';

/// What is done to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Altered {
    /// `DROP IDENTITY`
    DropIdentity {
        /// Nothing happens to a column that has none.
        if_exists: bool,
    },
    /// `DROP EXPRESSION`
    DropExpression {
        /// Nothing happens to a column that has none.
        if_exists: bool,
    },
    /// `SET GENERATED`
    SetGenerated {
        /// Nobody may say another number.
        always: bool,
    },
}

impl Altered {
    const ALL: [Self; 6] = [
        Self::DropIdentity { if_exists: false },
        Self::DropIdentity { if_exists: true },
        Self::DropExpression { if_exists: false },
        Self::DropExpression { if_exists: true },
        Self::SetGenerated { always: false },
        Self::SetGenerated { always: true },
    ];

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::DropIdentity { if_exists: false } => &["drop", "identity"],
            Self::DropIdentity { if_exists: true } => &["drop", "identity", "if", "exists"],
            Self::DropExpression { if_exists: false } => &["drop", "expression"],
            Self::DropExpression { if_exists: true } => &["drop", "expression", "if", "exists"],
            Self::SetGenerated { always: false } => &["set", "generated", "by", "default"],
            Self::SetGenerated { always: true } => &["set", "generated", "always"],
        }
    }

    fn name(self) -> String {
        format!("{SIGN}{}", self.words().join(" "))
    }

    /// What a default stands for, if it is one of these.
    pub fn of(default: &Expr) -> Option<Self> {
        let Expr::Identifier(name) = default else { return None };
        Self::ALL.into_iter().find(|own| own.name() == name.value)
    }
}

/// Spells them out.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let has = |word: &str| tokens.iter().any(|token| is(token, word));
    if !(has("alter") && (has("identity") || has("expression") || has("generated"))) {
        return;
    }
    let places: Vec<usize> = solid(tokens, 0).collect();
    let word = |n: usize, word: &str| places.get(n).is_some_and(|at| is(&tokens[*at], word));
    let mut found = Vec::new();
    for n in 2..places.len() {
        // `ALTER name DROP`, `ALTER COLUMN name DROP`: a column that is dropped may be called IDENTITY.
        let is_column = word(n - 2, "alter") || n > 2 && word(n - 2, "column") && word(n - 3, "alter");
        if !is_column || !matches!(tokens[places[n - 1]].token, Token::Word(_)) {
            continue;
        }
        let matching = Altered::ALL.into_iter().filter(|own| {
            let mut words = own.words().iter().enumerate();
            words.all(|(i, own)| word(n + i, own))
        });
        if let Some(own) = matching.max_by_key(|own| own.words().len()) {
            found.push((places[n], places[n + own.words().len() - 1], own));
        }
    }
    for (from, to, own) in found.into_iter().rev() {
        let text = format!("SET DEFAULT \"{}\"", own.name());
        let new = made(&text, &tokens[from]);
        tokens.splice(from..=to, new);
    }
}
