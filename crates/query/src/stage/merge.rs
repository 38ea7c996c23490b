//! `$merge`: the documents are written into a collection, one by one.

use super::args::Options;
use super::{ParseContext, Stage};
use crate::Expr;
use crate::env::check_user_variable;
use crate::field_names::validate_path;
use nestor_model::{Array, Error, ErrorCode, Namespace, Path, Result, Str, ValueRef};
use std::sync::Arc;

/// A parsed `$merge`.
#[derive(Debug)]
pub struct Merge {
    /// The collection written.
    pub into: Namespace,
    /// Fields that identify a document, `None` for the default `_id`.
    pub on: Option<Vec<Path>>,
    /// Variables for the update pipeline; `None` when not given (then `new` is the document).
    pub variables: Option<Vec<(Str, Expr)>>,
    /// For a document that is there.
    pub when_matched: WhenMatched,
    /// For a document that is not.
    pub when_not_matched: WhenNotMatched,
}

/// `whenMatched`.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum WhenMatched {
    Merge,
    Replace,
    KeepExisting,
    Fail,
    /// An update pipeline, as written.
    Pipeline(Array),
}

/// `whenNotMatched`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

/// `"collection"` or `{into, on, let, whenMatched, whenNotMatched}`.
///
/// Errors: 14, 40414, 40415, 51178, 5786800, 5786801, 51186, 51187, 51134, 31465, 51191, 51181, 51199,
/// 51273, 31319, 31320, 73, and those of paths.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let doc = match value {
        ValueRef::String(coll) => {
            let into = check_target(Namespace::new(context.namespace.db.clone(), coll))?;
            out.push(Stage::Merge(Arc::new(Merge {
                into,
                on: None,
                variables: None,
                when_matched: WhenMatched::Merge,
                when_not_matched: WhenNotMatched::Insert,
            })));
            return Ok(());
        }
        ValueRef::Document(doc) => doc,
        _ => {
            return Err(Error::type_mismatch(format!(
                "$merge requires a string or object argument, but found {}",
                value.bson_type().alias()
            )));
        }
    };
    let options = Options::read(stage, doc, &["into", "on", "let", "whenMatched", "whenNotMatched"])?;
    let into = parse_into(&options, context)?;
    let on = options.get("on").map(parse_on).transpose()?;
    let when_matched = options
        .get("whenMatched")
        .map_or(Ok(WhenMatched::Merge), parse_when_matched)?;
    let when_not_matched = match options.string("whenNotMatched")? {
        None | Some("insert") => WhenNotMatched::Insert,
        Some("discard") => WhenNotMatched::Discard,
        Some("fail") => WhenNotMatched::Fail,
        Some(other) => {
            return Err(Error::bad_value(format!(
                "enumeration value '{other}' for field '$merge.whenNotMatched' is not a valid value"
            )));
        }
    };
    if matches!(when_matched, WhenMatched::KeepExisting | WhenMatched::Fail)
        && when_not_matched != WhenNotMatched::Insert
    {
        return Err(Error::location(
            51181,
            "combination of $merge modes 'whenMatched' and 'whenNotMatched' is not supported",
        ));
    }
    let variables = parse_let(&options, &when_matched, context)?;
    out.push(Stage::Merge(Arc::new(Merge {
        into,
        on,
        variables,
        when_matched,
        when_not_matched,
    })));
    Ok(())
}

fn check_target(into: Namespace) -> Result<Namespace> {
    if into.coll.is_empty() {
        return Err(Error::new(
            ErrorCode::InvalidNamespace,
            format!("invalid $merge target namespace: '{into}.'"),
        ));
    }
    if into.coll.starts_with("system.") {
        return Err(Error::location(
            31319,
            format!("cannot $merge to special collection: {}", into.coll),
        ));
    }
    if into.is_internal() {
        return Err(Error::location(
            31320,
            format!("cannot $merge to internal database: {}", into.db),
        ));
    }
    Ok(into)
}

fn parse_into(options: &Options<'_>, context: &ParseContext<'_>) -> Result<Namespace> {
    let own_db = context.namespace.db.clone();
    let into = match options.get("into") {
        None => return Err(options.missing("into")),
        Some(ValueRef::String("")) => {
            return Err(Error::location(
                5_786_800,
                "$merge 'into' field cannot be an empty string",
            ));
        }
        Some(ValueRef::String(coll)) => Namespace::new(own_db, coll),
        Some(ValueRef::Document(doc)) => {
            let into = Options::read("$merge.into", doc, &["db", "coll"])?;
            let coll = into.string("coll")?.filter(|coll| !coll.is_empty());
            let coll = coll.ok_or_else(|| {
                Error::location(
                    5_786_801,
                    "$merge 'into' field must specify a 'coll' that is not empty, null or undefined",
                )
            })?;
            let db = into.string("db")?.filter(|db| !db.is_empty());
            Namespace::new(db.map_or(own_db, Str::from), coll)
        }
        Some(other) => {
            return Err(Error::location(
                51178,
                format!(
                    "$merge 'into' field must be either a string or an object, but found {}",
                    other.bson_type().alias()
                ),
            ));
        }
    };
    check_target(into)
}

fn parse_on(value: ValueRef<'_>) -> Result<Vec<Path>> {
    let mut paths: Vec<Path> = Vec::new();
    let mut add = |text: &str| {
        validate_path(text)?;
        if paths.iter().any(|p| p.as_str() == text) {
            return Err(Error::location(
                31465,
                format!("found a duplicate field '{text}' in $merge 'on'"),
            ));
        }
        paths.push(Path::new(text));
        Ok(())
    };
    match value {
        ValueRef::String(text) => add(text)?,
        ValueRef::Array(items) => {
            for item in items {
                let ValueRef::String(text) = item else {
                    return Err(Error::location(
                        51134,
                        format!(
                            "$merge 'on' array elements must be strings, but found {}",
                            item.bson_type().alias()
                        ),
                    ));
                };
                add(text)?;
            }
            if items.is_empty() {
                return Err(Error::location(
                    51187,
                    "if explicitly specifying $merge 'on', must include at least one field",
                ));
            }
        }
        _ => {
            return Err(Error::location(
                51186,
                format!(
                    "$merge 'on' field must be either a string or an array of strings, but found {}",
                    value.bson_type().alias()
                ),
            ));
        }
    }
    Ok(paths)
}

fn parse_when_matched(value: ValueRef<'_>) -> Result<WhenMatched> {
    match value {
        // Which stages they are is looked at when there is a document to write.
        ValueRef::Array(pipeline) if pipeline.iter().any(|stage| !matches!(stage, ValueRef::Document(_))) => Err(
            Error::type_mismatch("Each element of the 'pipeline' array must be an object"),
        ),
        ValueRef::Array(pipeline) => Ok(WhenMatched::Pipeline(pipeline.to_array())),
        ValueRef::String("merge") => Ok(WhenMatched::Merge),
        ValueRef::String("replace") => Ok(WhenMatched::Replace),
        ValueRef::String("keepExisting") => Ok(WhenMatched::KeepExisting),
        ValueRef::String("fail") => Ok(WhenMatched::Fail),
        ValueRef::String(other) => Err(Error::bad_value(format!(
            "enumeration value '{other}' for field '$merge.whenMatched' is not a valid value"
        ))),
        _ => Err(Error::location(
            51191,
            format!(
                "$merge 'whenMatched' field must be either a string or an array, but found {}",
                value.bson_type().alias()
            ),
        )),
    }
}

fn parse_let(
    options: &Options<'_>,
    when_matched: &WhenMatched,
    context: &mut ParseContext<'_>,
) -> Result<Option<Vec<(Str, Expr)>>> {
    let Some(bindings) = options.document("let")? else {
        return Ok(None);
    };
    if !matches!(when_matched, WhenMatched::Pipeline(_)) {
        return Err(Error::location(
            51199,
            "cannot use 'let' variables with a $merge 'whenMatched' mode that is not a pipeline",
        ));
    }
    let mut variables = Vec::new();
    for (name, value) in bindings {
        check_user_variable(name)?;
        if name == "new" && value.as_str() != Some("$$ROOT") {
            return Err(Error::location(
                51273,
                "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'",
            ));
        }
        let expr = Expr::parse(value, context.scope)?;
        variables.push((Str::from(name), expr));
    }
    Ok(Some(variables))
}
