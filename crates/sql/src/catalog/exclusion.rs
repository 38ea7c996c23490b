//! EXCLUDE constraints: no two rows of a table may go together.

use super::Timing;
use crate::types::names::quoted;

/// Rows that exclude each other: those of whose elements all operators are true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The name of the constraint and of its index.
    pub name: String,
    /// The access method that it names.
    pub method: String,
    /// What is compared.
    pub elements: Vec<Element>,
    /// The columns that INCLUDE names.
    pub include: Vec<String>,
    /// What holds of the rows that it is about, as it was written.
    pub predicate: Option<String>,
    /// When it is looked at.
    pub timing: Timing,
}

/// A column or an expression, and how two rows are compared by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The expression as it was written, of a column its name in quotes.
    pub text: String,
    /// The column, if it is one.
    pub column: Option<String>,
    /// What a constraint without a name is called by.
    pub called: String,
    /// The class of operators that was said; empty where it is the type's own.
    pub class: String,
    /// The operator.
    pub operator: String,
}

impl Exclusion {
    /// What a constraint of this form is called by.
    pub fn called(&self) -> Vec<&str> {
        let elements = self.elements.iter().map(|element| element.called.as_str());
        elements.chain(self.include.iter().map(String::as_str)).collect()
    }

    /// The constraint as a declaration keeps it.
    pub fn written(&self) -> String {
        let elements = self.elements.iter().map(|element| {
            let of = match element.column {
                Some(_) => element.text.clone(),
                None => format!("({})", element.text),
            };
            let class = match element.class.as_str() {
                "" => String::new(),
                class => format!(" {class}"),
            };
            format!("{of}{class} WITH {}", element.operator)
        });
        let elements: Vec<String> = elements.collect();
        let include: Vec<String> = self.include.iter().map(|name| quoted(name)).collect();
        let include = match include.is_empty() {
            true => String::new(),
            false => format!(" INCLUDE ({})", include.join(", ")),
        };
        let predicate = self.predicate.iter().map(|own| format!(" WHERE ({own})"));
        format!(
            "CONSTRAINT {} EXCLUDE USING {} ({}){include}{}{}",
            quoted(&self.name),
            quoted(&self.method),
            elements.join(", "),
            predicate.collect::<String>(),
            self.timing.words()
        )
    }
}
