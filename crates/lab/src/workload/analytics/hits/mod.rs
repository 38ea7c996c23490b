//! Page views of a web site, in the shape of ClickBench: one wide table of numbers and short texts ([`data`]), and 43 questions about it
//! ([`questions`]) that are each asked in every protocol's words and answered by a model ([`ask`]).

mod ask;
mod data;
mod questions;

use self::ask::NAME;
use self::data::{FILLERS, Hit, Number, Text};
use self::questions::Ask;
use super::{Dataset, Expected, Question};
use crate::rows::Arguments;
use crate::statement::{Kind, Role, Statement, aggregate, mark, placeholders, text_mark};
use crate::wire::Protocol;
use nestor_model::{Value, doc};
use std::sync::{Arc, LazyLock};

pub use self::questions::NAMES;

/// The table.
pub struct Hits;

/// The columns before the texts: the key, numbers, numbers that nobody asks for.
const WHOLE: usize = 1 + data::NUMBERS + FILLERS.len();

/// All values of a row, in the order of its columns.
fn row(id: u64, hit: &Hit) -> Vec<Expected> {
    let numbers = Number::ALL.iter().map(|number| hit.number(*number));
    let fillers = (0..FILLERS.len()).map(|at| hit.filler(at));
    let whole = std::iter::once(id as i64).chain(numbers).chain(fillers);
    let texts = Text::ALL.iter().map(|text| Expected::Text(hit.text(*text)));
    whole.map(Expected::Int).chain(texts).collect()
}

impl Dataset for Hits {
    const NAME: &'static str = NAME;

    fn create(_: Protocol) -> String {
        let names = data::names();
        let (numbers, texts) = names.split_at(WHOLE - 1);
        let column = |kind: &'static str| move |name: &&str| format!("{name} {kind} NOT NULL");
        let columns: Vec<String> = numbers
            .iter()
            .map(column("INTEGER"))
            .chain(texts.iter().map(column("VARCHAR(200)")))
            .collect();
        format!(
            "CREATE TABLE {NAME} (id INTEGER NOT NULL PRIMARY KEY, {})",
            columns.join(", ")
        )
    }

    fn insert(_: Protocol, count: usize) -> Statement {
        let names = data::names();
        let mut kinds = vec![Kind::Int; WHOLE];
        kinds.extend(Text::ALL.iter().map(|text| Kind::Text(text.bytes())));
        let width = kinds.len();
        let rows: Vec<String> = (0..count)
            .map(|row| format!("({})", placeholders(row * width, width)))
            .collect();
        let document = |row: usize| {
            let at = row * width;
            let mut document = doc! { "_id": mark(at) };
            for (i, name) in names.iter().enumerate() {
                let place = at + 1 + i;
                let value = match kinds[1 + i] {
                    Kind::Text(bytes) => text_mark(place, bytes),
                    _ => mark(place),
                };
                document.push(*name, value);
            }
            Value::from(document)
        };
        let mongo = doc! { "insert": NAME, "documents": (0..count).map(document).collect::<Vec<_>>() };
        let sql = format!(
            "INSERT INTO {NAME} (id, {}) VALUES {}",
            names.join(", "),
            rows.join(", ")
        );
        Statement::new("an insert", Role::Writes, kinds.repeat(count), mongo, sql)
    }

    fn push(_: Protocol, seed: u64, rows: u64, id: u64, arguments: &mut Arguments) {
        for value in row(id, &Hit::of(seed, rows, id)) {
            match value {
                Expected::Int(number) => arguments.int(number),
                Expected::Text(text) => arguments.text(|out| out.extend_from_slice(text.as_bytes())),
                Expected::Average(..) => arguments,
            };
        }
    }

    fn questions(seed: u64, rows: u64) -> Vec<Question> {
        let hits: Arc<Vec<Hit>> = Arc::new((0..rows).map(|id| Hit::of(seed, rows, id)).collect());
        let of = |at: usize, number: Number| hits.get(at).map_or(0, |hit| hit.number(number));
        let last = hits.len().saturating_sub(1);
        let user = of(last / 2, Number::UserId);
        let days = (of(0, Number::EventDate), of(last, Number::EventDate));
        let question = |(name, ask): (&'static str, Ask)| {
            let ((sql, mysql), stages) = match &ask {
                Ask::Grouped(grouped) => (grouped.sql(), grouped.mongo()),
                Ask::Plain(plain) => (plain.sql(), plain.mongo()),
            };
            let hits = hits.clone();
            let answer = move || match &ask {
                Ask::Grouped(grouped) => grouped.answer(&hits),
                Ask::Plain(plain) => plain.answer(&hits, &row),
            };
            let statement = Statement::new(name, Role::Reads, vec![], aggregate(NAME, stages), sql).mysql(mysql);
            Question {
                name,
                statement,
                rows: LazyLock::new(Box::new(answer)),
            }
        };
        NAMES
            .into_iter()
            .zip(questions::all(user, days, rows))
            .map(question)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_questions_have_answers() {
        let questions = Hits::questions(1, 40_000);
        assert_eq!(questions.len(), NAMES.len());
        for question in questions {
            assert!(!question.rows.is_empty(), "{}", question.name);
        }
    }

    #[test]
    fn texts_fill_their_parameters() {
        for id in 0..2_000 {
            let hit = Hit::of(3, 2_000, id);
            for text in Text::ALL {
                assert_eq!(hit.text(text).len(), text.bytes(), "{text:?} of {id}");
            }
        }
    }

    #[test]
    fn one_description_gives_all_languages() {
        let questions = Hits::questions(1, 2_000);
        let of = |name: &str| {
            questions
                .iter()
                .find(|question| question.name == name)
                .expect("it is there")
        };
        let hosts = of("h29-referer-hosts");
        assert!(
            hosts.statement.sql.contains("HAVING COUNT(*) > 1 ORDER BY 3 DESC, 1"),
            "{}",
            hosts.statement.sql
        );
        let stages = format!("{:?}", of("h10-region-figures").statement.mongo);
        assert_eq!(stages.matches("$group").count(), 2, "{stages}");
    }
}
