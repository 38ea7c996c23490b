//! `$regexMatch`, `$regexFind`, `$regexFindAll`.

use crate::env::{Env, RESULT_BYTES_MAX, Scope, Val};
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use crate::expr::{Expr, Operator};
use crate::regex::Regex;
use nestor_model::{Document, Error, Result, Value, ValueRef, doc};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$regexMatch", parse),
    OpDef::custom("$regexFind", parse),
    OpDef::custom("$regexFindAll", parse),
];

/// Longest pattern in bytes; less than a filter's.
const PATTERN_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Match,
    Find,
    FindAll,
}

struct RegexOperator {
    name: &'static str,
    kind: Kind,
    input: Expr,
    pattern: Expr,
    options: Expr,
    /// Compiled when pattern and options are constant; the inner `None` for a null pattern.
    compiled: Option<Option<Regex>>,
}

fn parse(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let mut args = Named {
        not_object: 51103,
        unknown: 31024,
        fields: &[("input", Some(31022)), ("regex", Some(31023)), ("options", None)],
    }
    .parse(name, value, scope)?
    .into_vec();
    let mut next = || args.remove(0);
    let (input, pattern, options) = (next(), next(), next());
    let constant = |e: &Expr| e.constant().cloned().or(e.is_absent().then_some(Value::Missing));
    let compiled = match (constant(&pattern), constant(&options)) {
        (Some(pattern), Some(options)) => Some(compile(name, pattern.as_ref(), options.as_ref())?),
        _ => None,
    };
    let fold = compiled.is_some() && input.constant().is_some();
    let kind = match name {
        "$regexMatch" => Kind::Match,
        "$regexFind" => Kind::Find,
        _ => Kind::FindAll,
    };
    let operator = Expr::operator(RegexOperator {
        name,
        kind,
        input,
        pattern,
        options,
        compiled,
    });
    Ok(if fold { operator.folded() } else { operator })
}

/// `None` for a null pattern. Errors: 51105 to 51111.
fn compile(op: &str, pattern: ValueRef<'_>, options: ValueRef<'_>) -> Result<Option<Regex>> {
    let given = match options {
        ValueRef::String(text) => Some(text),
        other if other.is_nullish() => None,
        other => {
            let kind = other.bson_type().alias();
            return Err(error(
                51106,
                format!("{op} requires 'options' to be a string, found {kind}"),
            ));
        }
    };
    if given.is_some_and(|text| text.contains('\0')) {
        return Err(error(51110, format!("{op}: options cannot contain a null byte")));
    }
    let own: String;
    let (text, options) = match pattern {
        ValueRef::Regex { pattern, options } => {
            // Letters of a regex value that mean nothing are ignored.
            own = options.chars().filter(|c| "imsxu".contains(*c)).collect();
            if !own.is_empty() && given.is_some() {
                return Err(error(
                    51107,
                    format!("{op}: options given both in 'regex' and in 'options'"),
                ));
            }
            (pattern, given.unwrap_or(&own))
        }
        ValueRef::String(text) => (text, given.unwrap_or("")),
        other if other.is_nullish() => return Ok(None),
        other => {
            let kind = other.bson_type().alias();
            return Err(error(
                51105,
                format!("{op} requires 'regex' to be a string or a regex, found {kind}"),
            ));
        }
    };
    if text.contains('\0') {
        return Err(error(51109, format!("{op}: the pattern cannot contain a null byte")));
    }
    if text.len() > PATTERN_BYTES_MAX {
        return Err(error(
            51111,
            format!("invalid regex in {op}: longer than {PATTERN_BYTES_MAX} bytes"),
        ));
    }
    Regex::new(text, options)
        .map(Some)
        .map_err(|e| match e.code().number() {
            51091 => error(51111, format!("invalid regex in {op}: {}", e.message())),
            _ => e,
        })
}

impl Operator for RegexOperator {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let input = self.input.eval_ref(env)?;
        let of_document;
        let regex = match &self.compiled {
            Some(regex) => regex,
            None => {
                let pattern = self.pattern.eval_ref(env)?;
                let options = self.options.eval_ref(env)?;
                of_document = compile(self.name, pattern.as_ref(), options.as_ref())?;
                &of_document
            }
        };
        let text = match input.as_ref() {
            ValueRef::String(text) => Some(text),
            other if other.is_nullish() => None,
            other => {
                let kind = other.bson_type().alias();
                return Err(error(
                    51104,
                    format!("{} needs 'input' to be a string, found {kind}", self.name),
                ));
            }
        };
        let (Some(text), Some(regex)) = (text, regex) else {
            return Ok(match self.kind {
                Kind::Match => Val::Ref(ValueRef::Bool(false)),
                Kind::Find => Val::NULL,
                Kind::FindAll => Value::from(Vec::new()).into(),
            });
        };
        Ok(match self.kind {
            Kind::Match => Val::Ref(ValueRef::Bool(regex.is_match(text)?)),
            Kind::Find => match regex.captures_at(text, 0)? {
                Some(groups) => Value::Document(found(text, &groups, 0, 0).0).into(),
                None => Val::NULL,
            },
            Kind::FindAll => Value::from(find_all(regex, text)?).into(),
        })
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.pattern);
        visit(&self.options);
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

fn find_all(regex: &Regex, text: &str) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    let (mut from, mut counted_to, mut index, mut bytes) = (0, 0, 0, 0);
    while let Some(groups) = regex.captures_at(text, from)? {
        let (doc, at, size) = found(text, &groups, counted_to, index);
        bytes += size;
        if bytes > 4 * RESULT_BYTES_MAX {
            return Err(Error::location(
                51151,
                "$regexFindAll: the result takes too much memory",
            ));
        }
        out.push(Value::Document(doc));
        let Some(Some((start, end))) = groups.first().copied() else {
            break;
        };
        (counted_to, index) = (start, at);
        // After an empty match the search goes on one character later.
        from = if end > start {
            end
        } else {
            end + text[end..].chars().next().map_or(1, char::len_utf8)
        };
        // The end itself is tried only when the text is empty.
        if from >= text.len() {
            break;
        }
    }
    Ok(out)
}

/// The result for one match, its code point index, and its size in bytes. Counting goes on from byte
/// `counted_to`, which is code point `index`.
fn found(text: &str, groups: &[Option<(usize, usize)>], counted_to: usize, index: usize) -> (Document, usize, usize) {
    let slice = |group: &Option<(usize, usize)>| group.and_then(|(from, to)| text.get(from..to));
    let whole = groups.first().and_then(slice).unwrap_or("");
    let start = groups.first().copied().flatten().map_or(0, |(from, _)| from);
    let at = index + text.get(counted_to..start).map_or(0, |part| part.chars().count());
    let mut size = 100 + whole.len();
    let captures: Vec<Value> = groups
        .iter()
        .skip(1)
        .map(|group| {
            let text = slice(group);
            size += 10 + text.map_or(0, str::len);
            text.map_or(Value::Null, Value::from)
        })
        .collect();
    (
        doc! { "match": whole, "idx": at as i32, "captures": captures },
        at,
        size,
    )
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn matches() {
        check(
            r#"{"s": "né 12 x34", "n": null, "p": "\\d+"}"#,
            &[
                (
                    r#"{"$regexMatch": {"input": "$s", "regex": "X3", "options": "i"}}"#,
                    "true",
                ),
                (r#"{"$regexMatch": {"input": "$n", "regex": "X"}}"#, "false"),
                (
                    r#"{"$regexFind": {"input": "$s", "regex": "$p"}}"#,
                    r#"{"match": "12", "idx": 3, "captures": []}"#,
                ),
                (
                    r#"{"$regexFind": {"input": "$s", "regex": "(z)?(\\d)"}}"#,
                    r#"{"match": "1", "idx": 3, "captures": [null, "1"]}"#,
                ),
                (
                    r#"{"$regexFindAll": {"input": "$s", "regex": "\\d+"}}"#,
                    r#"[{"match": "12", "idx": 3, "captures": []}, {"match": "34", "idx": 7, "captures": []}]"#,
                ),
                (
                    r#"{"$regexFindAll": {"input": "é", "regex": ""}}"#,
                    r#"[{"match": "", "idx": 0, "captures": []}]"#,
                ),
                (r#"{"$regexFind": {"input": "$s", "regex": "("}}"#, "error 51111"),
                (
                    r#"{"$regexFind": {"input": "$s", "regex": "a", "options": "z"}}"#,
                    "error 51108",
                ),
                (r#"{"$regexFind": {"input": 1, "regex": null}}"#, "error 51104"),
            ],
        );
    }
}
