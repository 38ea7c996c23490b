//! Text search.

use super::Row;
use super::args::int;
use super::tables::{Rows, Table, fixed, listed};
use crate::error::{error, fail};
use crate::expr::Expr;
use crate::search::headline::{self, Options};
use crate::search::matching;
use crate::search::rank::{self, Norm};
use crate::search::rewrite::rewritten;
use crate::search::tokens::{KINDS, Kind, Tokens};
use crate::search::words::{self, Filter};
use crate::types::regconfig::{Config, Dictionary, PARSER};
use crate::types::tsquery::{Node, TsQuery, checked_distance};
use crate::types::tsvector::{Entry, LEXEME_BYTES_END, PLACE_MAX, Place, TsVector, too_long, weight_of};
use crate::types::{Type, json, style};
use nestor_model::statement::work;
use nestor_model::{Array, Result, Value};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn config(value: &Value) -> Result<Config> {
    Config::of_oid(int(value))
}

fn truth(value: bool) -> Result<Value> {
    Ok(Value::Bool(value))
}

fn texts(all: impl IntoIterator<Item = Value>) -> Value {
    Value::Array(Array::new(all.into_iter().collect()))
}

fn vector(config: Config, value: &Value) -> Result<Value> {
    words::vector_of(config, text(value))?.to_value()
}

fn vector_of_json(config: Config, value: &Value, filter: Filter) -> Result<Value> {
    words::vector_of_json(config, value, filter)?.to_value()
}

/// A value of `json` as one of `jsonb`.
fn parsed(value: &Value) -> Result<Value> {
    json::parse(text(value))
}

fn query(config: Config, value: &Value) -> Result<Value> {
    words::query_of(config, text(value))?.to_value()
}

fn plain_query(config: Config, value: &Value, is_phrase: bool) -> Result<Value> {
    words::query_of_text(config, text(value), is_phrase)?.to_value()
}

fn web_query(config: Config, value: &Value) -> Result<Value> {
    words::query_of_web(config, text(value))?.to_value()
}

fn matches(a: &Value, b: &Value) -> Result<Value> {
    truth(matching::matches(&TsVector::of(a)?, &TsQuery::of(b)?)?)
}

/// Whether the vector of a text has what a query looks for.
fn text_matches(value: &Value, query: &TsQuery) -> Result<Value> {
    let own = words::vector_of(style::config(), text(value))?;
    truth(matching::matches(&own, query)?)
}

/// One vector behind another.
fn joined(a: &Value, b: &Value) -> Result<Value> {
    let (mut own, other) = (TsVector::of(a)?, TsVector::of(b)?);
    let last = usize::from(own.last_place());
    let mut added = Vec::new();
    for entry in other.entries {
        let ends = |places: &[Place]| places.last().is_some_and(|place| place.at() == PLACE_MAX);
        let before = own.entry(&entry.lexeme).map_or(&[][..], |entry| &entry.places);
        let mut places = Vec::new();
        // The last place there is stands for all behind it: the first of these tells its weight.
        for place in entry.places.iter().take_while(|_| !ends(before)) {
            if !ends(&places) {
                places.push(Place::new(usize::from(place.at()) + last, place.weight()));
            }
        }
        let lexeme = entry.lexeme;
        added.push(Entry { lexeme, places });
    }
    own.entries.append(&mut added);
    TsVector::new(own.entries)?.to_value()
}

/// Two queries joined by an operator; one without lexemes gives way to the other.
fn joined_queries(a: &Value, b: &Value, join: impl Fn(Node, Node) -> Node) -> Result<Value> {
    let root = match (TsQuery::of(a)?.root, TsQuery::of(b)?.root) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (a, b) => a.or(b),
    };
    TsQuery::new(root)?.to_value()
}

fn phrase(a: &Value, b: &Value, distance: i64) -> Result<Value> {
    let distance = checked_distance(i32::try_from(distance).unwrap_or(-1))?;
    joined_queries(a, b, |a, b| Node::phrase(a, distance, b))
}

/// Whether a query has all lexemes of another.
fn has_lexemes(a: &Value, b: &Value) -> Result<Value> {
    let (own, other) = (TsQuery::of(a)?, TsQuery::of(b)?);
    let all: std::collections::HashSet<&str> = own.operands().iter().map(|one| one.lexeme.as_str()).collect();
    truth(other.operands().iter().all(|one| all.contains(one.lexeme.as_str())))
}

/// The parts of a query that an index could be asked for: those that are not negated.
fn tree(node: &Node) -> Option<Node> {
    let all = |parts: &[Node]| -> Option<Vec<Node>> {
        let parts: Vec<Node> = parts.iter().filter_map(tree).collect();
        (!parts.is_empty()).then_some(parts)
    };
    match node {
        Node::Operand(_) => Some(node.clone()),
        Node::Nothing | Node::Not(_) => None,
        Node::And(parts) => all(parts)?.into_iter().reduce(Node::and),
        Node::Or(parts) => {
            let own: Vec<Node> = parts.iter().filter_map(tree).collect();
            (own.len() == parts.len()).then_some(own)?.into_iter().reduce(Node::or)
        }
        Node::Phrase(first, more) => {
            let mut out = tree(first);
            for (distance, part) in more {
                out = match (out, tree(part)) {
                    (Some(so_far), Some(part)) => Some(Node::phrase(so_far, *distance, part)),
                    (so_far, part) => so_far.or(part),
                };
            }
            out
        }
    }
}

/// The weight that a value of `"char"` says.
///
/// Errors: 22023.
fn weight(value: &str) -> Result<u8> {
    let first = value.chars().next().unwrap_or('\0');
    weight_of(first).map_or_else(|| fail("22023", format!("unrecognized weight: {}", first as u32)), Ok)
}

/// The texts of an array, none of which is null.
///
/// Errors: 22004.
fn items(value: &Value, what: &str) -> Result<Vec<String>> {
    let Value::Array(all) = value else {
        return Ok(Vec::new());
    };
    let each = crate::types::arrays::leaves(all.clone());
    let each = each.iter().map(|item| match item.to_value() {
        Value::Null => fail("22004", format!("{what} array may not contain nulls")),
        item => Ok(text(&item).to_owned()),
    });
    each.collect()
}

/// A vector with a weight on the places of some lexemes, or of all.
fn weighted(a: &[Value]) -> Result<Value> {
    let weight = weight(text(&a[1]))?;
    let mut own = TsVector::of(&a[0])?;
    let lexemes = a.get(2).map(|lexemes| items(lexemes, "lexeme")).transpose()?;
    for entry in &mut own.entries {
        if lexemes.as_ref().is_none_or(|all| all.contains(&entry.lexeme)) {
            let places = entry.places.iter();
            entry.places = places
                .map(|place| Place::new(usize::from(place.at()), weight))
                .collect();
        }
        work(1)?;
    }
    own.to_value()
}

fn without(vector: &Value, lexemes: &[String]) -> Result<Value> {
    let mut own = TsVector::of(vector)?;
    work(own.entries.len() + lexemes.len())?;
    let lexemes: std::collections::HashSet<&String> = lexemes.iter().collect();
    own.entries.retain(|entry| !lexemes.contains(&entry.lexeme));
    own.to_value()
}

/// A vector of the places that have one of some weights.
fn filtered(a: &[Value]) -> Result<Value> {
    let mut weights = Vec::new();
    for letter in items(&a[1], "weight")? {
        let found = letter.chars().next().and_then(weight_of);
        weights.push(found.ok_or_else(|| error("22023", format!("unrecognized weight: \"{letter}\"")))?);
    }
    let mut own = TsVector::of(&a[0])?;
    for entry in &mut own.entries {
        entry.places.retain(|place| weights.contains(&place.weight()));
    }
    own.entries.retain(|entry| !entry.places.is_empty());
    own.to_value()
}

/// A vector of lexemes without places.
fn of_array(value: &Value) -> Result<Value> {
    let mut entries = Vec::new();
    for lexeme in items(value, "lexeme")? {
        if lexeme.is_empty() {
            return fail("2200F", "lexeme array may not contain empty strings");
        }
        if lexeme.len() >= LEXEME_BYTES_END {
            return Err(too_long(lexeme.len()));
        }
        let places = Vec::new();
        entries.push(Entry { lexeme, places });
    }
    TsVector::new(entries)?.to_value()
}

fn stripped(value: &Value) -> Result<Value> {
    let mut own = TsVector::of(value)?;
    own.entries.iter_mut().for_each(|entry| entry.places.clear());
    own.to_value()
}

type Ranked = fn(&[f32; 4], &TsVector, &TsQuery, Norm) -> Result<f64>;

/// A rank: of a vector and a query behind weights, if there are any, and before what texts are divided by.
fn ranked(a: &[Value], of: Ranked) -> Result<Value> {
    let (weights, rest) = match a.first() {
        Some(first @ Value::Array(_)) => (Some(first), &a[1..]),
        _ => (None, a),
    };
    let norm = Norm(rest.get(2).map_or(0, int));
    let own = of(
        &rank::weights(weights)?,
        &TsVector::of(&rest[0])?,
        &TsQuery::of(&rest[1])?,
        norm,
    )?;
    Ok(Value::Double(own))
}

/// A headline of a text: a configuration, the text, a query and options.
fn headline(config: Config, a: &[Value]) -> Result<Value> {
    let options = a
        .get(2)
        .map_or(Ok(Options::default()), |options| Options::parse(text(options)))?;
    let out = headline::headline(config, text(&a[0]), &TsQuery::of(&a[1])?, &options)?;
    Ok(Value::String(out.into()))
}

fn headline_of_json(config: Config, value: &Value, a: &[Value]) -> Result<Value> {
    let options = a
        .get(2)
        .map_or(Ok(Options::default()), |options| Options::parse(text(options)))?;
    headline::headline_of_json(value.as_ref(), (config, &TsQuery::of(&a[1])?, &options))
}

/// The same for texts of `json`, whose values are shown as they are written.
fn headline_of_text(config: Config, a: &[Value]) -> Result<Value> {
    let out = headline_of_json(config, &parsed(&a[0])?, a)?;
    let mut shown = String::new();
    json::print(out.as_ref(), &mut shown);
    Ok(Value::String(shown.into()))
}

/// The functions that use the session's configuration.
pub(super) const OF_SESSION: &[Row] = &[
    ("get_current_ts_config", "->regconfig", |_, _, _| {
        Ok(Value::Int64(style::config().oid()))
    }),
    ("to_tsvector", "text->tsvector", |a, _, _| {
        vector(style::config(), &a[0])
    }),
    ("to_tsvector", "json->tsvector", |a, _, _| {
        vector_of_json(style::config(), &parsed(&a[0])?, Filter::STRINGS)
    }),
    ("to_tsvector", "jsonb->tsvector", |a, _, _| {
        vector_of_json(style::config(), &a[0], Filter::STRINGS)
    }),
    ("json_to_tsvector", "json,jsonb->tsvector", |a, _, _| {
        vector_of_json(style::config(), &parsed(&a[0])?, Filter::of(&a[1])?)
    }),
    ("jsonb_to_tsvector", "jsonb,jsonb->tsvector", |a, _, _| {
        vector_of_json(style::config(), &a[0], Filter::of(&a[1])?)
    }),
    ("to_tsquery", "text->tsquery", |a, _, _| query(style::config(), &a[0])),
    ("plainto_tsquery", "text->tsquery", |a, _, _| {
        plain_query(style::config(), &a[0], false)
    }),
    ("phraseto_tsquery", "text->tsquery", |a, _, _| {
        plain_query(style::config(), &a[0], true)
    }),
    ("websearch_to_tsquery", "text->tsquery", |a, _, _| {
        web_query(style::config(), &a[0])
    }),
    ("@@", "text,text->bool", |a, _, _| {
        text_matches(&a[0], &words::query_of_text(style::config(), text(&a[1]), false)?)
    }),
    ("@@", "text,tsquery->bool", |a, _, _| {
        text_matches(&a[0], &TsQuery::of(&a[1])?)
    }),
    ("ts_headline", "text,tsquery->text", |a, _, _| {
        headline(style::config(), a)
    }),
    ("ts_headline", "text,tsquery,text->text", |a, _, _| {
        headline(style::config(), a)
    }),
    ("ts_headline", "jsonb,tsquery->jsonb", |a, _, _| {
        headline_of_json(style::config(), &a[0], a)
    }),
    ("ts_headline", "jsonb,tsquery,text->jsonb", |a, _, _| {
        headline_of_json(style::config(), &a[0], a)
    }),
    ("ts_headline", "json,tsquery->json", |a, _, _| {
        headline_of_text(style::config(), a)
    }),
    ("ts_headline", "json,tsquery,text->json", |a, _, _| {
        headline_of_text(style::config(), a)
    }),
];

pub(super) const ROWS: &[Row] = &[
    ("to_tsvector", "regconfig,text->tsvector", |a, _, _| {
        vector(config(&a[0])?, &a[1])
    }),
    ("to_tsvector", "regconfig,json->tsvector", |a, _, _| {
        vector_of_json(config(&a[0])?, &parsed(&a[1])?, Filter::STRINGS)
    }),
    ("to_tsvector", "regconfig,jsonb->tsvector", |a, _, _| {
        vector_of_json(config(&a[0])?, &a[1], Filter::STRINGS)
    }),
    ("json_to_tsvector", "regconfig,json,jsonb->tsvector", |a, _, _| {
        vector_of_json(config(&a[0])?, &parsed(&a[1])?, Filter::of(&a[2])?)
    }),
    ("jsonb_to_tsvector", "regconfig,jsonb,jsonb->tsvector", |a, _, _| {
        vector_of_json(config(&a[0])?, &a[1], Filter::of(&a[2])?)
    }),
    ("to_tsquery", "regconfig,text->tsquery", |a, _, _| {
        query(config(&a[0])?, &a[1])
    }),
    ("plainto_tsquery", "regconfig,text->tsquery", |a, _, _| {
        plain_query(config(&a[0])?, &a[1], false)
    }),
    ("phraseto_tsquery", "regconfig,text->tsquery", |a, _, _| {
        plain_query(config(&a[0])?, &a[1], true)
    }),
    ("websearch_to_tsquery", "regconfig,text->tsquery", |a, _, _| {
        web_query(config(&a[0])?, &a[1])
    }),
    ("@@", "tsvector,tsquery->bool", |a, _, _| matches(&a[0], &a[1])),
    ("@@", "tsquery,tsvector->bool", |a, _, _| matches(&a[1], &a[0])),
    ("@@@", "tsvector,tsquery->bool", |a, _, _| matches(&a[0], &a[1])),
    ("@@@", "tsquery,tsvector->bool", |a, _, _| matches(&a[1], &a[0])),
    ("||", "tsvector,tsvector->tsvector", |a, _, _| joined(&a[0], &a[1])),
    ("||", "tsquery,tsquery->tsquery", |a, _, _| {
        joined_queries(&a[0], &a[1], Node::or)
    }),
    ("&&", "tsquery,tsquery->tsquery", |a, _, _| {
        joined_queries(&a[0], &a[1], Node::and)
    }),
    ("!!", "tsquery->tsquery", |a, _, _| {
        let own = TsQuery::of(&a[0])?.root;
        TsQuery::new(own.map(|own| Node::Not(Box::new(own))))?.to_value()
    }),
    ("<->", "tsquery,tsquery->tsquery", |a, _, _| phrase(&a[0], &a[1], 1)),
    ("tsquery_phrase", "tsquery,tsquery->tsquery", |a, _, _| {
        phrase(&a[0], &a[1], 1)
    }),
    ("tsquery_phrase", "tsquery,tsquery,int4->tsquery", |a, _, _| {
        phrase(&a[0], &a[1], int(&a[2]))
    }),
    ("@>", "tsquery,tsquery->bool", |a, _, _| has_lexemes(&a[0], &a[1])),
    ("<@", "tsquery,tsquery->bool", |a, _, _| has_lexemes(&a[1], &a[0])),
    ("numnode", "tsquery->int4", |a, _, _| {
        Ok(Value::Int32(
            i32::try_from(TsQuery::of(&a[0])?.size()).unwrap_or(i32::MAX),
        ))
    }),
    ("querytree", "tsquery->text", |a, _, _| {
        let Some(root) = TsQuery::of(&a[0])?.root else {
            return Ok(Value::String("".into()));
        };
        let shown = match tree(&root) {
            Some(root) => TsQuery { root: Some(root) }.format(),
            None => "T".to_owned(),
        };
        Ok(Value::String(shown.into()))
    }),
    ("ts_rewrite", "tsquery,tsquery,tsquery->tsquery", |a, _, _| {
        rewritten(TsQuery::of(&a[0])?, &TsQuery::of(&a[1])?, &TsQuery::of(&a[2])?)?.to_value()
    }),
    ("ts_rewrite", "tsquery,text->tsquery", |_, _, _| {
        crate::error::unsupported("ts_rewrite with a query of rows")
    }),
    ("setweight", "tsvector,char->tsvector", |a, _, _| weighted(a)),
    ("setweight", "tsvector,char,_text->tsvector", |a, _, _| weighted(a)),
    ("strip", "tsvector->tsvector", |a, _, _| stripped(&a[0])),
    ("length", "tsvector->int4", |a, _, _| {
        let count = TsVector::of(&a[0])?.entries.len();
        Ok(Value::Int32(i32::try_from(count).unwrap_or(i32::MAX)))
    }),
    ("ts_delete", "tsvector,text->tsvector", |a, _, _| {
        without(&a[0], &[text(&a[1]).to_owned()])
    }),
    ("ts_delete", "tsvector,_text->tsvector", |a, _, _| {
        without(&a[0], &items(&a[1], "lexeme")?)
    }),
    ("ts_filter", "tsvector,_char->tsvector", |a, _, _| filtered(a)),
    ("tsvector_to_array", "tsvector->_text", |a, _, _| {
        let own = TsVector::of(&a[0])?;
        Ok(texts(
            own.entries.into_iter().map(|entry| Value::String(entry.lexeme.into())),
        ))
    }),
    ("array_to_tsvector", "_text->tsvector", |a, _, _| of_array(&a[0])),
    ("ts_rank", "tsvector,tsquery->float4", |a, _, _| ranked(a, rank::rank)),
    ("ts_rank", "tsvector,tsquery,int4->float4", |a, _, _| {
        ranked(a, rank::rank)
    }),
    ("ts_rank", "_float4,tsvector,tsquery->float4", |a, _, _| {
        ranked(a, rank::rank)
    }),
    ("ts_rank", "_float4,tsvector,tsquery,int4->float4", |a, _, _| {
        ranked(a, rank::rank)
    }),
    ("ts_rank_cd", "tsvector,tsquery->float4", |a, _, _| {
        ranked(a, rank::rank_covers)
    }),
    ("ts_rank_cd", "tsvector,tsquery,int4->float4", |a, _, _| {
        ranked(a, rank::rank_covers)
    }),
    ("ts_rank_cd", "_float4,tsvector,tsquery->float4", |a, _, _| {
        ranked(a, rank::rank_covers)
    }),
    ("ts_rank_cd", "_float4,tsvector,tsquery,int4->float4", |a, _, _| {
        ranked(a, rank::rank_covers)
    }),
    ("ts_headline", "regconfig,text,tsquery->text", |a, _, _| {
        headline(config(&a[0])?, &a[1..])
    }),
    ("ts_headline", "regconfig,text,tsquery,text->text", |a, _, _| {
        headline(config(&a[0])?, &a[1..])
    }),
    ("ts_headline", "regconfig,jsonb,tsquery->jsonb", |a, _, _| {
        headline_of_json(config(&a[0])?, &a[1], &a[1..])
    }),
    ("ts_headline", "regconfig,jsonb,tsquery,text->jsonb", |a, _, _| {
        headline_of_json(config(&a[0])?, &a[1], &a[1..])
    }),
    ("ts_headline", "regconfig,json,tsquery->json", |a, _, _| {
        headline_of_text(config(&a[0])?, &a[1..])
    }),
    ("ts_headline", "regconfig,json,tsquery,text->json", |a, _, _| {
        headline_of_text(config(&a[0])?, &a[1..])
    }),
    ("ts_lexize", "regdictionary,text->_text", |a, _, _| {
        let lexeme = Dictionary::of_oid(int(&a[0]))?.lexeme(text(&a[1]))?;
        Ok(texts(lexeme.map(|lexeme| Value::String(lexeme.into()))))
    }),
];

/// The parser that a name or a number means.
///
/// Errors: 42704.
fn check_parser(value: &Value) -> Result<()> {
    match value {
        Value::String(name) if matches!(name.as_str(), "default" | "pg_catalog.default" | "\"default\"") => Ok(()),
        Value::String(name) => fail("42704", format!("text search parser \"{name}\" does not exist")),
        number if int(number) == PARSER => Ok(()),
        number => fail(
            "XX000",
            format!("cache lookup failed for text search parser {}", int(number)),
        ),
    }
}

fn kinds(args: &[Value]) -> Result<Rows> {
    check_parser(&args[0])?;
    let row = |(kind, name, description): &(Kind, &str, &str)| {
        vec![
            Value::Int32(*kind as i32),
            Value::String((*name).into()),
            Value::String((*description).into()),
        ]
    };
    listed(KINDS.iter().map(row).collect())
}

fn parts(args: &[Value]) -> Result<Rows> {
    check_parser(&args[0])?;
    let mut tokens = Tokens::new(text(&args[1]));
    let mut rows = Vec::new();
    while let Some(token) = tokens.next()? {
        rows.push(vec![Value::Int32(token.kind as i32), Value::String(token.text.into())]);
    }
    listed(rows)
}

fn debugged(args: &[Value]) -> Result<Rows> {
    let (config, shown) = match args {
        [number, shown] => (config(number)?, shown),
        [shown] => (style::config(), shown),
        _ => return listed(Vec::new()),
    };
    let mut tokens = Tokens::new(text(shown));
    let mut rows = Vec::new();
    while let Some(token) = tokens.next()? {
        let (_, name, description) = KINDS[token.kind as usize - 1];
        let dictionary = config.dictionary(token.kind);
        let number = |dictionary: Dictionary| Value::Int64(dictionary.oid());
        let lexemes = match dictionary {
            Some(dictionary) => {
                let lexeme = dictionary.lexeme(token.text)?;
                texts(lexeme.map(|lexeme| Value::String(lexeme.into())))
            }
            None => Value::Null,
        };
        rows.push(vec![
            Value::String(name.into()),
            Value::String(description.into()),
            Value::String(token.text.into()),
            texts(dictionary.map(number)),
            dictionary.map_or(Value::Null, number),
            lexemes,
        ]);
    }
    listed(rows)
}

fn entries(args: &[Value]) -> Result<Rows> {
    let own = TsVector::of(&args[0])?;
    let row = |entry: Entry| {
        let places = entry.places.iter().map(|place| Value::Int32(i32::from(place.at())));
        let weights = entry.places.iter().map(|place| {
            let letter = char::from(b'D' - place.weight());
            Value::String(letter.to_string().into())
        });
        let (places, weights) = match entry.places.is_empty() {
            true => (Value::Null, Value::Null),
            false => (texts(places), texts(weights)),
        };
        vec![Value::String(entry.lexeme.into()), places, weights]
    };
    listed(own.entries.into_iter().map(row).collect())
}

/// A function of text search whose result is rows.
///
/// Errors: 42883 for arguments of other types, 0A000.
pub(super) fn table(name: &str, args: &[Expr]) -> Result<Option<Table>> {
    let column = |name: &str, ty: Type| (name.to_owned(), ty);
    let parser = match args.first().map(Expr::ty) {
        Some(ty) if ty.is_number() => Type::Oid,
        _ => Type::Text,
    };
    match name {
        "unnest" if matches!(args, [arg] if arg.ty() == Type::TsVector) => {
            let columns = vec![
                column("lexeme", Type::Text),
                column("positions", Type::Int2.array()),
                column("weights", Type::Text.array()),
            ];
            fixed("unnest", entries, (args, &[Type::TsVector]), columns)
        }
        "ts_token_type" => {
            let columns = vec![
                column("tokid", Type::Int4),
                column("alias", Type::Text),
                column("description", Type::Text),
            ];
            fixed("ts_token_type", kinds, (args, &[parser]), columns)
        }
        "ts_parse" => {
            let columns = vec![column("tokid", Type::Int4), column("token", Type::Text)];
            fixed("ts_parse", parts, (args, &[parser, Type::Text]), columns)
        }
        "ts_debug" => {
            let columns = vec![
                column("alias", Type::Text),
                column("description", Type::Text),
                column("token", Type::Text),
                column("dictionaries", Type::Regdictionary.array()),
                column("dictionary", Type::Regdictionary),
                column("lexemes", Type::Text.array()),
            ];
            let types = [Type::Regconfig, Type::Text];
            let types = if args.len() == 1 { &types[1..] } else { &types[..] };
            fixed("ts_debug", debugged, (args, types), columns)
        }
        "ts_stat" => crate::error::unsupported("ts_stat, which runs a query that a text has,"),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_weight_is_refused() {
        assert_eq!(weight("b").unwrap(), 2);
        assert!(weight("x").is_err() && weight("").is_err());
    }
}
