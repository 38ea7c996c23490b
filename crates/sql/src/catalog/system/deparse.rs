//! Conditions and defaults as PostgreSQL's catalogs write them: with the types of constants, with parentheses around each operator, IN as an array.
//! Clients read them by patterns, and compare them with what they would declare.
//!
//! What is not known here, or of which the types are not plain, stands as it was written: `None`.

use crate::catalog::Column;
use crate::parse;
use crate::types::names::ident;
use crate::types::names::{names_in, quoted};
use crate::types::{Type, input, output};
use sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value,
};

/// Where an expression is written.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    /// The columns that it may name.
    pub columns: &'p [Column],
    /// The schemas that names without one are found in.
    pub path: &'p [String],
    /// The type of what VALUE stands for, in conditions of domains.
    pub value: Option<&'p Type>,
}

impl<'p> Place<'p> {
    /// Where these columns may be named.
    pub fn of(columns: &'p [Column], path: &'p [String]) -> Self {
        Self {
            columns,
            path,
            value: None,
        }
    }
}

impl Place<'_> {
    /// The name of a type, with its schema where it would not be found.
    pub fn name(self, ty: &Type) -> String {
        match ty {
            Type::Array(element) => format!("{}[]", self.name(element)),
            ty => match ty.made() {
                Some(own) => {
                    let (schema, name) = own.split_once('.').unwrap_or(("public", own));
                    match self.path.iter().any(|own| own == schema) {
                        true => quoted(name),
                        false => format!("{}.{}", quoted(schema), quoted(name)),
                    }
                }
                None => ty.to_string(),
            },
        }
    }

    /// A text as a constant.
    fn constant(self, text: &str, ty: &Type) -> Shown {
        Shown::new(format!("'{}'::{}", text.replace('\'', "''"), self.name(ty)), ty.clone())
    }
}

/// An expression as it is written, and its type.
struct Shown {
    text: String,
    ty: Type,
}

impl Shown {
    fn new(text: impl Into<String>, ty: Type) -> Self {
        Self { text: text.into(), ty }
    }

    /// The expression cast to a type, if it has another one.
    fn cast(self, to: &Type) -> Self {
        match self.ty == *to {
            true => self,
            false => Self::new(format!("({})::{to}", self.text), to.clone()),
        }
    }
}

/// The condition of a check, or of a column that is computed.
pub fn condition(text: &str, place: Place<'_>) -> Option<String> {
    let expr = parse::expression(text).ok()?;
    Some(shown(&expr, place, None)?.text)
}

/// The default of a column of a type.
pub fn default(text: &str, ty: &Type, path: &[String]) -> Option<String> {
    let place = Place::of(&[], path);
    let expr = parse::expression(text).ok()?;
    match plain(&expr) {
        // Casts that nobody wrote are not shown there.
        Expr::Value(value) if matches!(value.value, Value::Number(..) | Value::Boolean(_)) => {
            Some(shown(&expr, place, None)?.text)
        }
        Expr::Value(_) | Expr::Cast { .. } | Expr::UnaryOp { .. } => Some(shown(&expr, place, Some(ty))?.text),
        Expr::Function(function) => asked(function, path).or_else(|| {
            let shown = called(function, place).filter(|shown| shown.ty == *ty)?;
            Some(shown.text)
        }),
        _ => None,
    }
}

/// The next number of a sequence, whose name is a constant of the type of relations.
fn asked(function: &Function, path: &[String]) -> Option<String> {
    let name = ident(function.name.0.last()?.as_ident()?);
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] = list.args.as_slice() else {
        return None;
    };
    let text = match plain(arg) {
        Expr::Cast {
            expr, data_type: to, ..
        } if to.to_string().eq_ignore_ascii_case("regclass") => plain(expr),
        arg => arg,
    };
    let (true, Expr::Value(value)) = (name == "nextval", text) else {
        return None;
    };
    let Value::SingleQuotedString(sequence) = &value.value else {
        return None;
    };
    let shown = match names_in(sequence).as_slice() {
        [name] => quoted(name),
        [schema, name] if path.contains(schema) => quoted(name),
        [schema, name] => format!("{}.{}", quoted(schema), quoted(name)),
        _ => return None,
    };
    Some(format!("nextval('{}'::regclass)", shown.replace('\'', "''")))
}

/// An expression without parentheses around it.
fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => plain(inner),
        expr => expr,
    }
}

/// Whether a constant's text may stand for a value of a type as it was written: PostgreSQL writes the value that it has read.
fn keeps_text(ty: &Type) -> bool {
    ty.is_text() || matches!(ty, Type::Enum(_) | Type::Composite(_) | Type::Json | Type::Regconfig)
}

/// A constant of a type whose texts mean the same to every session, as its value is written; none of those that name a moment, as `today` does.
fn as_read(text: &str, ty: &Type) -> Option<String> {
    let is_same = match ty {
        Type::Date | Type::Time | Type::Timestamp => text.starts_with(|first: char| first.is_ascii_digit()),
        Type::Interval | Type::Uuid | Type::Bytea => true,
        ty => ty.is_address(),
    };
    let value = is_same.then(|| input::text(ty, text).ok())??;
    Some(output::text(ty, &value))
}

/// Whether a number is written as PostgreSQL writes it: digits, and a point among them.
fn is_own_text(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole) && are_digits(part) && (whole == "0" || !whole.starts_with('0'))
}

/// An expression; `wanted` is the type that a constant takes whose own nobody knows.
fn shown(expr: &Expr, place: Place<'_>, wanted: Option<&Type>) -> Option<Shown> {
    let go = |expr: &Expr| shown(expr, place, None);
    let truth = |text: String| Some(Shown::new(text, Type::Bool));
    match plain(expr) {
        Expr::Identifier(name) => {
            let name = ident(name);
            if let (Some(ty), "value") = (place.value, name.as_str()) {
                return Some(Shown::new("VALUE", ty.clone()));
            }
            let column = place.columns.iter().find(|column| column.name == name)?;
            Some(Shown::new(quoted(&name), column.ty.clone()))
        }
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                let ty = if digits.parse::<i32>().is_ok() {
                    Type::Int4
                } else {
                    Type::Int8
                };
                digits.parse::<i64>().ok()?;
                Some(Shown::new(digits.clone(), ty))
            }
            Value::Number(digits, _) if digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
                Some(Shown::new(digits.clone(), Type::Numeric))
            }
            Value::Boolean(value) => truth(value.to_string()),
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
                let ty = wanted?;
                if *ty == Type::Numeric && is_own_text(text) {
                    return Some(Shown::new(text.clone(), Type::Numeric));
                }
                let known = keeps_text(ty)
                    || matches!(ty, Type::Jsonb) && matches!(text.as_str(), "{}" | "[]")
                    || matches!(ty, Type::Array(_)) && text == "{}"
                    || *ty == Type::Float8
                        && is_own_text(text)
                        && text.parse::<f64>().is_ok_and(|n| n.to_string() == *text)
                    || ty.is_integer() && text.parse::<i64>().is_ok_and(|n| n.to_string() == *text);
                match known {
                    true => Some(place.constant(text, ty)),
                    false => Some(place.constant(&as_read(text, ty)?, ty)),
                }
            }
            Value::SingleQuotedByteStringLiteral(bits) => Some(Shown::new(format!("'{bits}'::\"bit\""), Type::Bit)),
            Value::Null => Some(Shown::new(format!("NULL::{}", place.name(wanted?)), wanted?.clone())),
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let number = go(expr)?;
            let is_constant = matches!(plain(expr), Expr::Value(_));
            (is_constant && number.ty.is_number()).then(|| place.constant(&format!("-{}", number.text), &number.ty))
        }
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr,
        } => truth(format!("(NOT {})", go(expr)?.text)),
        Expr::IsNull(expr) => truth(format!("({} IS NULL)", go(expr)?.text)),
        Expr::IsNotNull(expr) => truth(format!("({} IS NOT NULL)", go(expr)?.text)),
        Expr::BinaryOp { left, op, right } => match op {
            BinaryOperator::And | BinaryOperator::Or => joined(left, op, right, place),
            BinaryOperator::Arrow
            | BinaryOperator::LongArrow
            | BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow => extracted(left, op, right, place),
            op => operated(left, op, right, place),
        },
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } => {
            let (low_sign, high_sign, and) = match negated {
                false => (BinaryOperator::GtEq, BinaryOperator::LtEq, "AND"),
                true => (BinaryOperator::Lt, BinaryOperator::Gt, "OR"),
            };
            let low = operated(expr, &low_sign, low, place)?;
            let high = operated(expr, &high_sign, high, place)?;
            truth(format!("({} {and} {})", low.text, high.text))
        }
        Expr::InList { expr, list, negated } => among(expr, list, *negated, place),
        Expr::Like {
            negated,
            any: false,
            expr,
            pattern,
            escape_char: None,
        } => matched(expr, pattern, if *negated { "!~~" } else { "~~" }, place),
        Expr::ILike {
            negated,
            any: false,
            expr,
            pattern,
            escape_char: None,
        } => matched(expr, pattern, if *negated { "!~~*" } else { "~~*" }, place),
        Expr::Cast {
            kind: CastKind::Cast | CastKind::DoubleColon,
            expr,
            data_type: to,
            ..
        } => {
            // Those with modifiers, and those that somebody has made, stand as they are.
            let ty = Type::named(&to.to_string()).filter(|_| !to.to_string().contains('('))?;
            match plain(expr) {
                Expr::Value(value)
                    if matches!(
                        value.value,
                        Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::Null
                    ) =>
                {
                    let constant = shown(expr, place, Some(&ty))?;
                    Some(match wanted {
                        // A text of any kind is one of the column's without a cast to be seen.
                        Some(wanted) if *wanted != ty && !(wanted.is_text() && ty.is_text()) => return None,
                        _ => constant,
                    })
                }
                _ if wanted.is_some() => None,
                _ => Some(go(expr)?.cast(&ty)),
            }
        }
        Expr::Function(function) => called(function, place),
        _ => None,
    }
}

/// Conditions that AND or OR joins, those of a chain together.
fn joined(left: &Expr, op: &BinaryOperator, right: &Expr, place: Place<'_>) -> Option<Shown> {
    let mut parts = Vec::new();
    let mut first = left;
    parts.push(right);
    while let Expr::BinaryOp { left, op: own, right } = plain(first) {
        if own != op {
            break;
        }
        parts.push(right);
        first = left;
    }
    parts.push(first);
    let texts: Option<Vec<String>> = parts
        .iter()
        .rev()
        .map(|part| shown(part, place, None).map(|part| part.text))
        .collect();
    let sign = if *op == BinaryOperator::And { " AND " } else { " OR " };
    Some(Shown::new(format!("({})", texts?.join(sign)), Type::Bool))
}

/// Both sides of an operator, each as one that the operator takes.
fn sides(left: &Expr, right: &Expr, place: Place<'_>) -> Option<(Shown, Shown)> {
    let (a, b) = (shown(left, place, None), shown(right, place, None));
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        // A text is of the type of the other side.
        (Some(a), None) => {
            let b = shown(right, place, Some(&taken(&a.ty)))?;
            (a, b)
        }
        (None, Some(b)) => {
            let a = shown(left, place, Some(&taken(&b.ty)))?;
            (a, b)
        }
        (None, None) => return None,
    };
    let is_whole = |shown: &Shown| shown.ty.is_integer();
    let to = match (&a.ty, &b.ty) {
        _ if is_whole(&a) && is_whole(&b) => return Some((a, b)),
        (a, b) if taken(a) == taken(b) => taken(a),
        (Type::Numeric, _) if is_whole(&b) => Type::Numeric,
        (_, Type::Numeric) if is_whole(&a) => Type::Numeric,
        (Type::Float8, _) if is_whole(&b) || b.ty == Type::Numeric => Type::Float8,
        (_, Type::Float8) if is_whole(&a) || a.ty == Type::Numeric => Type::Float8,
        _ => return None,
    };
    Some((a.cast(&to), b.cast(&to)))
}

/// The type that operators take values of a type as.
fn taken(ty: &Type) -> Type {
    match ty {
        Type::Varchar => Type::Text,
        ty => ty.clone(),
    }
}

fn operated(left: &Expr, op: &BinaryOperator, right: &Expr, place: Place<'_>) -> Option<Shown> {
    let (a, b) = sides(left, right, place)?;
    let (sign, ty) = match op {
        BinaryOperator::Eq => ("=", Type::Bool),
        BinaryOperator::NotEq => ("<>", Type::Bool),
        BinaryOperator::Lt => ("<", Type::Bool),
        BinaryOperator::LtEq => ("<=", Type::Bool),
        BinaryOperator::Gt => (">", Type::Bool),
        BinaryOperator::GtEq => (">=", Type::Bool),
        BinaryOperator::PGRegexMatch if a.ty == Type::Text => ("~", Type::Bool),
        BinaryOperator::PGRegexIMatch if a.ty == Type::Text => ("~*", Type::Bool),
        BinaryOperator::PGRegexNotMatch if a.ty == Type::Text => ("!~", Type::Bool),
        BinaryOperator::StringConcat if a.ty == Type::Text => ("||", Type::Text),
        BinaryOperator::Plus if a.ty.is_number() => ("+", a.ty.clone()),
        BinaryOperator::Minus if a.ty.is_number() => ("-", a.ty.clone()),
        BinaryOperator::Multiply if a.ty.is_number() => ("*", a.ty.clone()),
        BinaryOperator::Divide if a.ty.is_number() => ("/", a.ty.clone()),
        BinaryOperator::Modulo if a.ty.is_integer() => ("%", a.ty.clone()),
        _ => return None,
    };
    if ty != Type::Bool && a.ty != b.ty {
        return None;
    }
    Some(Shown::new(format!("({} {sign} {})", a.text, b.text), ty))
}

/// A part of JSON: the key is a text or a number, the path an array of texts.
fn extracted(left: &Expr, op: &BinaryOperator, right: &Expr, place: Place<'_>) -> Option<Shown> {
    let of = shown(left, place, None)?;
    let (wanted, ty) = match op {
        BinaryOperator::Arrow => (Type::Text, of.ty.clone()),
        BinaryOperator::LongArrow => (Type::Text, Type::Text),
        BinaryOperator::HashArrow => (Type::Text.array(), of.ty.clone()),
        _ => (Type::Text.array(), Type::Text),
    };
    if !matches!(of.ty, Type::Json | Type::Jsonb) {
        return None;
    }
    let path = match plain(right) {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) if matches!(wanted, Type::Array(_)) => {
                // Written as PostgreSQL writes the array that it has read.
                let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ',');
                let inner = text.strip_prefix('{')?.strip_suffix('}')?;
                let kept = inner.chars().all(is_plain) && !inner.is_empty() && !inner.to_lowercase().contains("null");
                kept.then(|| place.constant(text, &wanted))?
            }
            Value::SingleQuotedString(_) | Value::Number(..) => shown(right, place, Some(&wanted))?,
            _ => return None,
        },
        Expr::Cast { .. } => shown(right, place, None)?,
        _ => return None,
    };
    (path.ty == wanted || path.ty == Type::Int4 && wanted == Type::Text)
        .then(|| Shown::new(format!("({} {op} {})", of.text, path.text), ty))
}

fn matched(expr: &Expr, pattern: &Expr, sign: &str, place: Place<'_>) -> Option<Shown> {
    let (a, b) = sides(expr, pattern, place)?;
    (a.ty == Type::Text).then(|| Shown::new(format!("({} {sign} {})", a.text, b.text), Type::Bool))
}

/// `x IN (…)`: one value is compared with, several are an array.
fn among(expr: &Expr, list: &[Expr], negated: bool, place: Place<'_>) -> Option<Shown> {
    if let [only] = list {
        let op = if negated {
            BinaryOperator::NotEq
        } else {
            BinaryOperator::Eq
        };
        return operated(expr, &op, only, place);
    }
    let own = shown(expr, place, None)?;
    let is_varchar = own.ty == Type::Varchar;
    let items = list.iter().map(|item| match plain(item) {
        Expr::Value(value)
            if matches!(
                value.value,
                Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_)
            ) =>
        {
            shown(item, place, Some(&own.ty))
        }
        _ => shown(item, place, None),
    });
    let items: Vec<Shown> = items.collect::<Option<_>>()?;
    let fits = |item: &Shown| item.ty == own.ty || item.ty == Type::Int4 && own.ty == Type::Int4;
    if !items.iter().all(fits) {
        return None;
    }
    let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
    let (sign, quantor) = if negated { ("<>", "ALL") } else { ("=", "ANY") };
    let array = format!("ARRAY[{}]", texts.join(", "));
    // Operators on varchar are those of text.
    let (own, array) = match is_varchar {
        true => (format!("({})::text", own.text), format!("({array})::text[]")),
        false => (own.text, array),
    };
    Some(Shown::new(format!("({own} {sign} {quantor} ({array}))"), Type::Bool))
}

/// A call of one of the functions whose arguments are plain.
fn called(function: &Function, place: Place<'_>) -> Option<Shown> {
    let [part] = function.name.0.as_slice() else {
        return None;
    };
    let name = ident(part.as_ident()?);
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let given: Option<Vec<&Expr>> = list
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect();
    let given = given?;
    if function.over.is_some()
        || function.filter.is_some()
        || !list.clauses.is_empty()
        || list.duplicate_treatment.is_some()
    {
        return None;
    }
    let (takes, ty): (&[Type], Type) = match (name.as_str(), given.len()) {
        ("lower" | "upper" | "btrim" | "ltrim" | "rtrim" | "initcap" | "md5" | "reverse" | "current_setting", 1) => {
            (&[Type::Text], Type::Text)
        }
        ("length" | "char_length" | "octet_length", 1) => (&[Type::Text], Type::Int4),
        ("replace", 3) => (&[Type::Text, Type::Text, Type::Text], Type::Text),
        ("string_to_array", 2) => (&[Type::Text, Type::Text], Type::Text.array()),
        ("to_tsvector", 2) => (&[Type::Regconfig, Type::Text], Type::TsVector),
        _ => return None,
    };
    let args = given.iter().zip(takes).map(|(arg, wanted)| {
        let arg = shown(arg, place, Some(wanted))?;
        let is_text = *wanted == Type::Text && arg.ty == Type::Citext;
        (taken(&arg.ty) == *wanted || is_text).then(|| arg.cast(wanted).text)
    });
    let args: Vec<String> = args.collect::<Option<_>>()?;
    Some(Shown::new(format!("{name}({})", args.join(", ")), ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_written_as_postgresql_writes_them() {
        let columns: Vec<Column> = [
            ("a", Type::Int4),
            ("role", Type::Text),
            ("v", Type::Varchar),
            ("n", Type::Numeric),
            ("f", Type::Float8),
            ("b", Type::Bool),
            ("big", Type::Int8),
            ("Up", Type::Text),
        ]
        .into_iter()
        .map(|(name, ty)| Column::new(name, ty))
        .collect();
        let place = Place::of(&columns, &[]);
        // By PostgreSQL 15: pg_get_expr(conbin, conrelid).
        for (text, wanted) in [
            ("a >= 0", "(a >= 0)"),
            ("a > -1", "(a > '-1'::integer)"),
            ("role in ('x', 'y''s')", "(role = ANY (ARRAY['x'::text, 'y''s'::text]))"),
            ("role IN ('x')", "(role = 'x'::text)"),
            (
                "v in ('x', 'y')",
                "((v)::text = ANY ((ARRAY['x'::character varying, 'y'::character varying])::text[]))",
            ),
            ("v <> ''", "((v)::text <> ''::text)"),
            ("a not in (1, 2)", "(a <> ALL (ARRAY[1, 2]))"),
            ("n > 0", "(n > (0)::numeric)"),
            ("n > 1.5", "(n > 1.5)"),
            ("f < 2", "(f < (2)::double precision)"),
            ("big > 0 and a < 3 and b", "((big > 0) AND (a < 3) AND b)"),
            ("a > 1 or (a < 0 and not b)", "((a > 1) OR ((a < 0) AND (NOT b)))"),
            ("a between 1 and 5", "((a >= 1) AND (a <= 5))"),
            ("role like 'a%'", "(role ~~ 'a%'::text)"),
            ("length(v) > 2", "(length((v)::text) > 2)"),
            ("lower(role) = role", "(lower(role) = role)"),
            ("\"Up\" is not null", "(\"Up\" IS NOT NULL)"),
            ("a + 1 > big * 2", "((a + 1) > (big * 2))"),
            ("role ~ '^a'", "(role ~ '^a'::text)"),
            ("role || 'x' = v", "((role || 'x'::text) = (v)::text)"),
        ] {
            let shown = condition(text, place);
            match text {
                // Whole numbers of two types: the type of the sum is not looked for.
                "a + 1 > big * 2" => assert_eq!(shown, None),
                _ => assert_eq!(shown.as_deref(), Some(wanted), "{text}"),
            }
        }
        for (text, ty, wanted) in [
            ("'x'", Type::Varchar, "'x'::character varying"),
            ("'x'::text", Type::Text, "'x'::text"),
            ("0", Type::Numeric, "0"),
            ("-1", Type::Int8, "'-1'::integer"),
            ("true", Type::Bool, "true"),
            ("'{}'", Type::Text.array(), "'{}'::text[]"),
            ("'{}'", Type::Jsonb, "'{}'::jsonb"),
            ("NULL", Type::Text, "NULL::text"),
            ("'2020-1-1'", Type::Date, "'2020-01-01'::date"),
        ] {
            assert_eq!(default(text, &ty, &[]).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(default("now()", &Type::Timestamptz, &[]), None);
    }
}
