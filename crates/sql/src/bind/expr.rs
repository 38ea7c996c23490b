//! Expressions.

use super::rows::whole_row;
use super::{Binder, Scope, ident, object_name, operators, places};
use crate::error::{self, about, fail, unsupported};
use crate::expr::like::{Compiled, Kind, Match};
use crate::expr::{Comparison, Expr, Node};
use crate::functions::{self, coerce, is_null};
use crate::types::cast::{self, Context};
use crate::types::interval::{Interval, unit_of};
use crate::types::{Type, collation, numeric};
use nestor_model::{Result, Value};
use nestor_planner::relation::ApplyKind;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CeilFloorKind, DataType, Expr as Ast, FunctionArg, FunctionArgExpr, Subscript,
    TrimWhereField, UnaryOperator, Value as Literal,
};

pub(super) fn comparison_of(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterEqual,
        _ => return None,
    })
}

impl Binder<'_> {
    /// Binds an expression.
    ///
    /// Errors: those of names, types and functions; 0A000.
    pub(super) fn expr(&mut self, ast: &Ast, scope: &Scope) -> Result<Expr> {
        let bound = self.bind(ast, scope).map_err(|e| places::of(e, ast))?;
        self.note_params(&bound);
        Ok(bound)
    }

    fn bind(&mut self, ast: &Ast, scope: &Scope) -> Result<Expr> {
        match ast {
            Ast::Nested(inner) => self.bind(inner, scope),
            Ast::Value(value) => self.literal(&value.value, scope),
            Ast::Identifier(name) => {
                let plain = ident(name);
                let found = self.name(std::slice::from_ref(&plain), scope);
                let found = found.map_err(|e| about(e, name));
                match found {
                    // Words that are functions without parentheses.
                    Err(_) if name.quote_style.is_none() && is_word(&plain) => self.function_call(&plain, Vec::new()),
                    found => found,
                }
            }
            Ast::CompoundIdentifier(parts) => {
                let names: Vec<String> = parts.iter().map(ident).collect();
                let found = self.name(&names, scope);
                found.map_err(|e| parts.first().map_or(e.clone(), |name| about(e, name)))
            }
            Ast::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain, scope),
            Ast::BinaryOp { left, op, right } => self.binary(left, op, right, scope),
            Ast::UnaryOp { op, expr } => {
                let arg = self.expr(expr, scope)?;
                match op {
                    UnaryOperator::Not => Ok(Node::Not(self.boolean(arg, "NOT")?).into()),
                    UnaryOperator::Plus => functions::call("+", vec![arg]),
                    UnaryOperator::Minus => match arg.node() {
                        Node::Const(Value::Int32(n), Type::Int4) if *n != i32::MIN => {
                            Ok(Expr::constant(Value::Int32(-n), Type::Int4))
                        }
                        Node::Const(Value::Int64(n), Type::Int8) if *n != i64::MIN => {
                            // Of the literals that are a bigint only one has a negative that is none.
                            Ok(match i32::try_from(-n) {
                                Ok(i32::MIN) => Expr::constant(Value::Int32(i32::MIN), Type::Int4),
                                _ => Expr::constant(Value::Int64(-n), Type::Int8),
                            })
                        }
                        Node::Const(Value::Decimal128(n), Type::Numeric) => match n.negate().to_i64_exact() {
                            Some(i64::MIN) => Ok(Expr::constant(Value::Int64(i64::MIN), Type::Int8)),
                            _ => Ok(Expr::constant(Value::Decimal128(n.negate()), Type::Numeric)),
                        },
                        _ => functions::call("-", vec![arg]),
                    },
                    UnaryOperator::BitwiseNot => functions::call("~", vec![arg]),
                    UnaryOperator::PGPrefixFactorial => functions::call("!!", vec![arg]),
                    UnaryOperator::PGAbs => functions::call("@", vec![arg]),
                    UnaryOperator::PGSquareRoot => {
                        functions::call("sqrt", vec![coerce(arg, &Type::Float8, Context::Implicit)?])
                    }
                    UnaryOperator::PGCubeRoot => functions::call("cbrt", vec![arg]),
                    _ => unsupported(format!("operator {op}")),
                }
            }
            Ast::IsNull(arg) => Ok(Node::IsNull(self.expr(arg, scope)?, false).into()),
            Ast::IsNotNull(arg) => Ok(Node::IsNull(self.expr(arg, scope)?, true).into()),
            Ast::IsTrue(arg) => self.is_bool(arg, true, false, scope),
            Ast::IsNotTrue(arg) => self.is_bool(arg, true, true, scope),
            Ast::IsFalse(arg) => self.is_bool(arg, false, false, scope),
            Ast::IsNotFalse(arg) => self.is_bool(arg, false, true, scope),
            Ast::IsUnknown(arg) => Ok(Node::IsNull(self.expr(arg, scope)?, false).into()),
            Ast::IsNotUnknown(arg) => Ok(Node::IsNull(self.expr(arg, scope)?, true).into()),
            Ast::IsDistinctFrom(a, b) | Ast::IsNotDistinctFrom(a, b) => {
                let (a, b) = (self.expr(a, scope)?, self.expr(b, scope)?);
                let (a, b) = self.alike(a, b, "IS DISTINCT FROM")?;
                let (a, b) = operators::in_order(a, b)?;
                Ok(Node::Distinct(a, b, matches!(ast, Ast::IsNotDistinctFrom(..))).into())
            }
            Ast::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let (arg, again) = operators::twice(self.expr(expr, scope)?)?;
                let (low, high) = (self.expr(low, scope)?, self.expr(high, scope)?);
                let from = self.comparison(Comparison::GreaterEqual, again.clone(), low)?;
                let to = self.comparison(Comparison::LessEqual, again, high)?;
                let both = operators::computed_once(arg, from.and(to));
                Ok(if *negated { Node::Not(both).into() } else { both })
            }
            Ast::InList { expr, list, negated } => {
                let arg = self.expr(expr, scope)?;
                let items: Vec<Expr> = list.iter().map(|item| self.expr(item, scope)).collect::<Result<_>>()?;
                if matches!(arg.node(), Node::Row(_)) {
                    // Rows are compared column by column, each pair as values of its own type.
                    return self.equals_one_of(&arg, items, *negated);
                }
                let mut all = vec![arg];
                all.extend(items);
                let (mut all, _) = self.unified(all, "IN")?;
                let arg = all.remove(0);
                if !all.iter().all(operators::is_plain) {
                    return self.equals_one_of(&arg, all, *negated);
                }
                Ok(Node::InList(arg, all, *negated).into())
            }
            Ast::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let found = self.in_subquery(expr, subquery, scope)?;
                Ok(if *negated { Node::Not(found).into() } else { found })
            }
            Ast::Exists { subquery, negated } => {
                let inner = self.within(scope, |binder| binder.query(subquery))?;
                let found = self.subquery(inner.plan, ApplyKind::Exists, Type::Bool);
                Ok(if *negated { Node::Not(found).into() } else { found })
            }
            Ast::Subquery(query) => {
                let inner = self.within(scope, |binder| binder.query(query))?;
                let [column] = inner.columns.as_slice() else {
                    return fail("42601", "subquery must return only one column");
                };
                let ty = column.ty.clone();
                Ok(self.subquery(inner.plan, ApplyKind::Scalar, ty))
            }
            Ast::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => self.quantified(left, compare_op, right, false, scope),
            Ast::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right, true, scope),
            Ast::Like {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            } => self.like(
                Kind::Like,
                false,
                *negated,
                (expr, pattern, escape_char.as_deref()),
                scope,
                *any,
            ),
            Ast::ILike {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            } => self.like(
                Kind::Like,
                true,
                *negated,
                (expr, pattern, escape_char.as_deref()),
                scope,
                *any,
            ),
            Ast::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            } => self.like(
                Kind::Similar,
                false,
                *negated,
                (expr, pattern, escape_char.as_deref()),
                scope,
                false,
            ),
            Ast::Case {
                operand,
                conditions,
                else_result,
                ..
            } => {
                let rows = self.giving_rows();
                let operand = operand.as_ref().map(|operand| self.expr(operand, scope)).transpose()?;
                let (mut tests, mut results) = (Vec::new(), Vec::new());
                // What is another value each time, or takes long, is computed once for all conditions.
                let is_once = |operand: &&Expr| operand.is_volatile() || operand.is_large();
                let once = operand.as_ref().filter(is_once).cloned();
                let operand = match &once {
                    Some(once) => Some(Node::Compared(once.ty()).into()),
                    None => operand,
                };
                for when in conditions {
                    tests.push(match &operand {
                        None => self.condition(&when.condition, scope, "CASE/WHEN")?,
                        Some(operand) => {
                            let value = self.expr(&when.condition, scope)?;
                            self.comparison(Comparison::Equal, operand.clone(), value)?
                        }
                    });
                    results.push(self.expr(&when.result, scope)?);
                }
                if let Some(result) = else_result {
                    results.push(self.expr(result, scope)?);
                }
                let (mut results, ty) = self.unified(results, "CASE")?;
                let otherwise = else_result.as_ref().and_then(|_| results.pop());
                self.check_no_rows(rows, "CASE")?;
                Ok(Node::Case {
                    operand: once,
                    arms: tests.into_iter().zip(results).collect(),
                    otherwise,
                    ty,
                }
                .into())
            }
            Ast::Cast { expr, data_type, .. } => {
                let (to, modifier) = self.data_type(data_type)?;
                // The elements of an array that is written down are cast themselves.
                let arg = match (&**expr, &to) {
                    (Ast::Array(array), Type::Array(element)) => {
                        self.array(&array.elem, Some((element, modifier)), scope)?
                    }
                    _ => self.expr(expr, scope)?,
                };
                self.cast(arg, &to, modifier)
            }
            Ast::TypedString(typed) => {
                let (to, modifier) = match typed.data_type {
                    // All bits of it.
                    DataType::Bit(None) => (Type::Bit, -1),
                    ref ty => self.data_type(ty)?,
                };
                let arg = self.literal(&typed.value.value, scope)?;
                self.cast(arg, &to, modifier)
            }
            Ast::Interval(interval) => {
                let arg = self.expr(&interval.value, scope)?;
                let digits = interval.fractional_seconds_precision.or(interval.leading_precision);
                let (leading, last) = (interval.leading_field.as_ref(), interval.last_field.as_ref());
                let modifier = match super::types::interval_modifier(leading, last, digits) {
                    Some(modifier) => modifier,
                    None => return unsupported("an interval of these fields"),
                };
                let text = match arg.node() {
                    Node::Const(Value::String(text), _) => text.to_string(),
                    Node::Const(Value::Int32(n), _) => n.to_string(),
                    _ => return unsupported("an interval of this form"),
                };
                let parsed = Interval::parse(&text, unit_of(modifier))?;
                Ok(Expr::constant(parsed.limited(modifier).to_value(), Type::Interval))
            }
            Ast::QualifiedWildcard(name, _) if whole_row(name).is_some() => match whole_row(name) {
                Some(whole) => self.expr(&whole, scope),
                None => unsupported(format!("expression {ast}")),
            },
            Ast::IsNormalized { expr, form, negated } => {
                let form = form.as_ref().map_or("NFC".to_owned(), ToString::to_string);
                let form = Expr::constant(Value::String(form.into()), Type::Text);
                let found = functions::call("is_normalized", vec![self.expr(expr, scope)?, form])?;
                Ok(if *negated { Node::Not(found).into() } else { found })
            }
            Ast::AtTimeZone { timestamp, time_zone } => {
                let (time, zone) = (self.expr(timestamp, scope)?, self.expr(time_zone, scope)?);
                functions::call("timezone", vec![zone, time])
            }
            Ast::Extract { field, expr, .. } => {
                let arg = self.expr(expr, scope)?;
                let field = Expr::constant(
                    Value::String(field.to_string().trim_matches(['\'', '"']).to_lowercase().into()),
                    Type::Text,
                );
                functions::call("extract", vec![field, arg])
            }
            Ast::Ceil { expr, field } | Ast::Floor { expr, field } => {
                let name = if matches!(ast, Ast::Ceil { .. }) {
                    "ceil"
                } else {
                    "floor"
                };
                match field {
                    CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime) => {
                        let arg = self.expr(expr, scope)?;
                        functions::call(name, vec![arg])
                    }
                    _ => unsupported(format!("{name} to a unit")),
                }
            }
            Ast::Position { expr, r#in } => {
                let (part, text) = (self.expr(expr, scope)?, self.expr(r#in, scope)?);
                functions::call("position", vec![text, part])
            }
            Ast::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let mut args = vec![self.expr(expr, scope)?];
                match substring_from {
                    Some(from) => args.push(self.expr(from, scope)?),
                    None => args.push(Expr::constant(Value::Int32(1), Type::Int4)),
                }
                if let Some(length) = substring_for {
                    args.push(self.expr(length, scope)?);
                }
                functions::call("substring", args)
            }
            Ast::Trim {
                trim_where,
                trim_what,
                expr,
                trim_characters,
            } => {
                let mut args = vec![self.expr(expr, scope)?];
                if let Some(what) = trim_what {
                    args.push(self.expr(what, scope)?);
                }
                for what in trim_characters.iter().flatten() {
                    args.push(self.expr(what, scope)?);
                }
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                functions::call(name, args)
            }
            Ast::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                let mut args = vec![
                    self.expr(expr, scope)?,
                    self.expr(overlay_what, scope)?,
                    self.expr(overlay_from, scope)?,
                ];
                if let Some(length) = overlay_for {
                    args.push(self.expr(length, scope)?);
                }
                functions::call("overlay", args)
            }
            Ast::Collate { expr, collation } => {
                let of = self.expr(expr, scope)?;
                // All of them are the order that texts have.
                collation::of_type(collation, &of.ty())?;
                match of.ty() {
                    Type::Unknown => coerce(of, &Type::Text, Context::Implicit),
                    _ => Ok(of),
                }
            }
            Ast::Function(call) => self.call(call, scope),
            Ast::Tuple(items) => {
                let items = items.iter().map(|item| self.expr(item, scope)).collect::<Result<_>>()?;
                Ok(Node::Row(items).into())
            }
            Ast::Array(array) => self.array(&array.elem, None, scope),
            other => unsupported(format!("expression {other}")),
        }
    }

    fn literal(&mut self, value: &Literal, scope: &Scope) -> Result<Expr> {
        let text = |text: &str| Ok(Expr::constant(Value::String(text.into()), Type::Unknown));
        match value {
            Literal::Number(digits, _) => {
                if let Ok(n) = digits.parse::<i32>() {
                    return Ok(Expr::constant(Value::Int32(n), Type::Int4));
                }
                if let Ok(n) = digits.parse::<i64>() {
                    return Ok(Expr::constant(Value::Int64(n), Type::Int8));
                }
                if let Some(hex) = digits
                    .strip_prefix("0x")
                    .and_then(|hex| i64::from_str_radix(hex, 16).ok())
                {
                    return Ok(Expr::constant(Value::Int64(hex), Type::Int8));
                }
                match (numeric::parse(digits), digits.parse::<f64>()) {
                    (Ok(value), _) => Ok(Expr::constant(Value::Decimal128(value), Type::Numeric)),
                    // What has more digits than there are here is near enough as double precision, if that is what it is written with.
                    (Err(_), Ok(n)) if digits.contains(['e', 'E']) && n.is_finite() => {
                        Ok(Expr::constant(Value::Double(n), Type::Float8))
                    }
                    (Err(error), _) => Err(error),
                }
            }
            Literal::SingleQuotedString(s)
            | Literal::EscapedStringLiteral(s)
            | Literal::UnicodeStringLiteral(s)
            | Literal::NationalStringLiteral(s) => text(s),
            Literal::DollarQuotedString(s) => text(&s.value),
            Literal::SingleQuotedByteStringLiteral(bits) => Ok(Expr::constant(
                crate::types::bits::parse(&format!("b{bits}"))?,
                Type::Bit,
            )),
            Literal::HexStringLiteral(digits) => {
                Ok(Expr::constant(crate::types::bits::hexadecimal(digits)?, Type::Bit))
            }
            Literal::Boolean(b) => Ok(Expr::bool(*b)),
            Literal::Null => Ok(Expr::constant(Value::Null, Type::Unknown)),
            Literal::Placeholder(name) => {
                let number = name
                    .strip_prefix('$')
                    .and_then(|n| n.parse::<usize>().ok())
                    .and_then(|n| n.checked_sub(1));
                let Some(number) = number.filter(|n| *n < 65_535) else {
                    return fail("42601", format!("syntax error at or near \"{name}\""));
                };
                if let Some((name, prefers_column)) = self.catalog.variable(number)
                    && self.is_column(&name, scope)
                {
                    if prefers_column {
                        return self.name(&[name], scope);
                    }
                    let told = error::error("42702", format!("column reference \"{name}\" is ambiguous"));
                    let detail = "It could refer to either a PL/pgSQL variable or a table column.";
                    return Err(error::with(told, &[(error::Field::Detail, detail)]));
                }
                if self.params.len() <= number {
                    self.params.resize(number + 1, Type::Unknown);
                }
                Ok(Node::Param(number, self.params[number].clone()).into())
            }
            _ => unsupported("a literal of this form"),
        }
    }

    fn boolean(&mut self, arg: Expr, what: &str) -> Result<Expr> {
        match arg.ty() {
            Type::Bool => Ok(arg),
            Type::Unknown => coerce(arg, &Type::Bool, Context::Implicit),
            ty => fail(
                "42804",
                format!("argument of {what} must be type boolean, not type {ty}"),
            ),
        }
    }

    fn is_bool(&mut self, arg: &Ast, is: bool, negated: bool, scope: &Scope) -> Result<Expr> {
        let arg = self.expr(arg, scope)?;
        let arg = self.boolean(arg, "IS")?;
        Ok(Node::IsBool { arg, is, negated }.into())
    }

    /// Two expressions as ones of the type in which they are compared.
    pub(super) fn alike(&mut self, a: Expr, b: Expr, sign: &str) -> Result<(Expr, Expr)> {
        let (x, y) = (a.ty(), b.ty());
        // A literal beside ObjectIds and other types is read as one.
        let ty = match (&x, &y) {
            (Type::Unknown, Type::Unknown) => Some(Type::Text),
            (Type::Unknown, known) | (known, Type::Unknown) => Some(known.clone()),
            (Type::Name | Type::Char, y) if y.is_text() => Some(Type::Text),
            (x, Type::Name | Type::Char) if x.is_text() => Some(Type::Text),
            (Type::Jsonb, other) | (other, Type::Jsonb) if other.is_number() || *other == Type::Bool => None,
            // There is no comparison of a shorter number with others: both are as long as they can be.
            (Type::Float4, other) | (other, Type::Float4) if *other != Type::Float4 && other.is_number() => {
                Some(Type::Float8)
            }
            _ => cast::common([&x, &y]),
        };
        let Some(ty) = ty else {
            return Err(error::no_operator(format!("{x} {sign} {y}"), 2));
        };
        if ty == Type::Regclass {
            let a = if x.is_text() || x == Type::Unknown {
                self.regclass(a)?
            } else {
                a
            };
            let b = if y.is_text() || y == Type::Unknown {
                self.regclass(b)?
            } else {
                b
            };
            return Ok((a, b));
        }
        Ok((coerce(a, &ty, Context::Implicit)?, coerce(b, &ty, Context::Implicit)?))
    }

    /// A comparison.
    pub(super) fn comparison(&mut self, op: Comparison, a: Expr, b: Expr) -> Result<Expr> {
        if let (Node::Row(x), Node::Row(y)) = (a.node(), b.node()) {
            if x.len() != y.len() {
                return fail("42601", "unequal number of entries in row expressions");
            }
            let pairs: Vec<(Expr, Expr)> = x
                .iter()
                .cloned()
                .zip(y.iter().cloned())
                .map(|(x, y)| {
                    let (x, y) = self.alike(x, y, op.sign())?;
                    operators::in_order(x, y)
                })
                .collect::<Result<_>>()?;
            if matches!(op, Comparison::Equal) {
                return Ok(Expr::all(
                    pairs.into_iter().map(|(x, y)| Node::Compare(op, x, y).into()).collect(),
                ));
            }
            let (x, y) = pairs.into_iter().unzip();
            return Ok(Node::Compare(op, Node::Row(x).into(), Node::Row(y).into()).into());
        }
        let (a, b) = operators::without_blanks(a, b)?;
        let (a, b) = self.alike(a, b, op.sign())?;
        let (a, b) = operators::in_order(a, b)?;
        Ok(match is_null(&a) || is_null(&b) {
            true => Expr::constant(Value::Null, Type::Bool),
            false => Node::Compare(op, a, b).into(),
        })
    }

    fn binary(&mut self, left: &Ast, op: &BinaryOperator, right: &Ast, scope: &Scope) -> Result<Expr> {
        if matches!(op, BinaryOperator::And | BinaryOperator::Or) {
            // Chains of the same sign are one list, however long.
            let mut parts = vec![right];
            let mut at = left;
            while let Ast::BinaryOp { left, op: same, right } = at
                && same == op
            {
                parts.push(right);
                at = left;
            }
            parts.push(at);
            let word = if *op == BinaryOperator::And { "AND" } else { "OR" };
            let parts = parts.into_iter().rev().map(|part| {
                let bound = self.expr(part, scope)?;
                self.boolean(bound, word)
            });
            let parts: Vec<Expr> = parts.collect::<Result<_>>()?;
            return Ok(if word == "AND" {
                Node::And(parts)
            } else {
                Node::Or(parts)
            }
            .into());
        }
        if let (Some(op), Ast::Tuple(_), Ast::Subquery(query)) = (comparison_of(op), left, right) {
            let row = self.expr(left, scope)?;
            let inner = self.compared(op, &row, query, false, scope)?;
            return Ok(self.subquery(inner, ApplyKind::Scalar, Type::Bool));
        }
        let (a, b) = (self.expr(left, scope)?, self.expr(right, scope)?);
        if *op == BinaryOperator::Overlaps {
            return self.overlaps(&a, &b);
        }
        if let Some(op) = comparison_of(op) {
            return self.comparison(op, a, b);
        }
        let sign = match op {
            BinaryOperator::Plus => "+",
            BinaryOperator::Minus => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
            BinaryOperator::StringConcat => "||",
            BinaryOperator::BitwiseAnd => "&",
            BinaryOperator::BitwiseOr => "|",
            BinaryOperator::BitwiseXor | BinaryOperator::PGBitwiseXor => "#",
            BinaryOperator::PGBitwiseShiftLeft => "<<",
            BinaryOperator::PGBitwiseShiftRight => ">>",
            BinaryOperator::PGExp => "^",
            BinaryOperator::PGOverlap => "&&",
            BinaryOperator::PGStartsWith => "^@",
            BinaryOperator::Arrow => "->",
            BinaryOperator::LongArrow => "->>",
            BinaryOperator::HashArrow => "#>",
            BinaryOperator::HashLongArrow => "#>>",
            BinaryOperator::AtArrow => "@>",
            BinaryOperator::ArrowAt => "<@",
            BinaryOperator::AtQuestion => "@?",
            BinaryOperator::AtAt => "@@",
            BinaryOperator::Question => "?",
            BinaryOperator::QuestionPipe => "?|",
            BinaryOperator::QuestionAnd => "?&",
            BinaryOperator::PGRegexMatch => return self.matched(Kind::Regex, false, false, a, b, None),
            BinaryOperator::PGRegexIMatch => return self.matched(Kind::Regex, true, false, a, b, None),
            BinaryOperator::PGRegexNotMatch => return self.matched(Kind::Regex, false, true, a, b, None),
            BinaryOperator::PGRegexNotIMatch => return self.matched(Kind::Regex, true, true, a, b, None),
            BinaryOperator::PGLikeMatch => return self.matched(Kind::Like, false, false, a, b, Some('\\')),
            BinaryOperator::PGILikeMatch => return self.matched(Kind::Like, true, false, a, b, Some('\\')),
            BinaryOperator::PGNotLikeMatch => return self.matched(Kind::Like, false, true, a, b, Some('\\')),
            BinaryOperator::PGNotILikeMatch => return self.matched(Kind::Like, true, true, a, b, Some('\\')),
            BinaryOperator::PGCustomBinaryOperator(parts) => {
                let Some(sign) = parts.last() else {
                    return unsupported("an operator of this form");
                };
                if let Some(op) = operators::signed(sign) {
                    return self.comparison(op, a, b);
                }
                let (negated, positive) = sign
                    .strip_prefix('!')
                    .map_or((false, sign.as_str()), |rest| (true, rest));
                return match positive {
                    "~" => self.matched(Kind::Regex, false, negated, a, b, None),
                    "~*" => self.matched(Kind::Regex, true, negated, a, b, None),
                    "~~" => self.matched(Kind::Like, false, negated, a, b, Some('\\')),
                    "~~*" => self.matched(Kind::Like, true, negated, a, b, Some('\\')),
                    _ => functions::call(sign, vec![a, b]),
                };
            }
            other => return functions::call(&other.to_string(), vec![a, b]),
        };
        if *op == BinaryOperator::StringConcat {
            // What has a name in the catalog is that name in a text.
            let shown = |binder: &mut Self, expr: Expr| match expr.ty().is_reg() {
                true => binder.cast(expr, &Type::Text, -1),
                false => Ok(expr),
            };
            return functions::call(sign, vec![shown(self, a)?, shown(self, b)?]);
        }
        functions::call(sign, vec![a, b])
    }

    fn like(
        &mut self,
        kind: Kind,
        insensitive: bool,
        negated: bool,
        (text, pattern, escape): (&Ast, &Ast, Option<&Ast>),
        scope: &Scope,
        any: bool,
    ) -> Result<Expr> {
        let each = match pattern {
            Ast::Function(call) if call.over.is_none() && object_name(&call.name)?.1 == "all" => {
                match super::call::arguments(call)?.as_slice() {
                    [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] => Some((array.clone(), true)),
                    _ => None,
                }
            }
            pattern => any.then(|| (pattern.clone(), false)),
        };
        if let Some((array, all)) = each {
            if kind != Kind::Like || escape.is_some() {
                return unsupported("ANY and ALL of these patterns");
            }
            let flags = i32::from(insensitive) | i32::from(negated) << 1 | i32::from(all) << 2;
            return self.like_each(text, &array, flags, scope);
        }
        let (text, pattern) = (self.expr(text, scope)?, self.expr(pattern, scope)?);
        let escape = match escape {
            None => Some('\\'),
            Some(expr) => {
                let bound = self.expr(expr, scope)?;
                if matches!(bound.node(), Node::Const(Value::Null, _)) {
                    return Ok(Expr::constant(Value::Null, Type::Bool));
                }
                let escape = match bound.node() {
                    Node::Const(Value::String(escape), _) => escape.to_string(),
                    Node::Const(Value::Binary(escape), _) => escape.bytes.iter().copied().map(char::from).collect(),
                    _ => return unsupported("an escape character that is computed"),
                };
                let mut chars = escape.chars();
                match (chars.next(), chars.next()) {
                    (c, None) => c,
                    _ => return fail("22025", "invalid escape string"),
                }
            }
        };
        self.matched(kind, insensitive, negated, text, pattern, escape)
    }

    /// Whether a text is like each or any of an array or a subquery; the flags are those of the function.
    pub(super) fn like_each(&mut self, text: &Ast, array: &Ast, flags: i32, scope: &Scope) -> Result<Expr> {
        let text = self.expr(text, scope)?;
        let array = match array {
            Ast::Subquery(query) => self.array_subquery(query, scope)?,
            array => self.expr(array, scope)?,
        };
        let flags = flags | i32::from(text.ty() == Type::Citext);
        let flags = Expr::constant(Value::Int32(flags), Type::Int4);
        functions::call(functions::patterns::LIKE_EACH, vec![text, array, flags])
    }

    pub(super) fn matched(
        &mut self,
        kind: Kind,
        insensitive: bool,
        negated: bool,
        text: Expr,
        pattern: Expr,
        escape: Option<char>,
    ) -> Result<Expr> {
        let ty = text.ty();
        if ty == Type::Bytea && kind == Kind::Like && !insensitive {
            let escape = escape.map_or(-1, |c| c as i32);
            let args = vec![text, pattern, Expr::constant(Value::Int32(escape), Type::Int4)];
            let found = functions::call(functions::patterns::LIKE_BYTES, args)?;
            return Ok(if negated { Node::Not(found).into() } else { found });
        }
        if !ty.is_text() && ty != Type::Unknown {
            return Err(error::no_operator(format!("{ty} ~~ {}", pattern.ty()), 2));
        }
        let insensitive = insensitive || ty == Type::Citext;
        // Blanks at the end count in patterns.
        let text = match ty {
            Type::Bpchar => functions::call(functions::patterns::PADDED, vec![text])?,
            _ => text,
        };
        Ok(Node::Match(Match {
            kind,
            insensitive,
            negated,
            escape,
            text: coerce(text, &Type::Text, Context::Implicit)?,
            pattern: coerce(pattern, &Type::Text, Context::Implicit)?,
            compiled: Compiled::default(),
        })
        .into())
    }

    pub(super) fn cast(&mut self, arg: Expr, to: &Type, modifier: i32) -> Result<Expr> {
        if *to == Type::Regclass && (arg.ty() == Type::Unknown || arg.ty().is_text()) {
            return self.regclass(arg);
        }
        let is_named = matches!(
            to,
            Type::Regproc | Type::Regprocedure | Type::Regnamespace | Type::Regrole
        );
        if is_named && (arg.ty() == Type::Unknown || arg.ty().is_text()) {
            return self.object(arg, to);
        }
        // Numbers are shown by the names that the catalog has for them.
        if to.is_text() && arg.ty().is_reg() && !arg.ty().has_fixed_names() {
            let texts = self.catalog_texts(&arg.ty().name())?;
            let number = coerce(arg.clone(), &Type::Oid, Context::Implicit)?;
            let name = functions::call("catalog_text", vec![number.clone(), texts])?;
            // Types that nobody has made have names without the catalog.
            let plain = match arg.ty() {
                Type::Regtype => coerce(arg, &Type::Text, Context::Explicit)?,
                _ => coerce(number, &Type::Text, Context::Explicit)?,
            };
            let shown = self.function_call("coalesce", vec![name, plain])?;
            return coerce(shown, to, Context::Explicit);
        }
        if *to == Type::Regtype && (arg.ty() == Type::Unknown || arg.ty().is_text()) {
            let made = self.type_numbers()?;
            // A name that stands there is looked up at once: a mistake is one of the statement.
            if let (Node::Const(Value::String(name), _), Node::Const(made, _)) = (arg.node(), made.node()) {
                return match functions::type_number(name, made) {
                    Some(number) => Ok(Expr::constant(number, Type::Regtype)),
                    None => fail("42704", format!("type \"{name}\" does not exist")),
                };
            }
            let name = coerce(arg, &Type::Text, Context::Implicit)?;
            return functions::call("catalog_type", vec![name, made]);
        }
        if let (Node::Const(value, Type::Unknown), true) = (arg.node(), modifier >= 0) {
            let value = cast::cast(value.clone(), &Type::Unknown, to, modifier, true)?;
            return Ok(Node::Cast {
                arg: Expr::constant(value, to.clone()),
                to: to.clone(),
                modifier,
                explicit: true,
            }
            .into());
        }
        if modifier < 0 {
            return coerce(arg, to, Context::Explicit);
        }
        if !cast::exists(&arg.ty(), to, Context::Explicit) {
            return fail("42846", format!("cannot cast type {} to {to}", arg.ty()));
        }
        let arg = match arg.node() {
            Node::Param(..) => coerce(arg.clone(), to, Context::Explicit)?,
            _ => arg,
        };
        Ok(Node::Cast {
            arg,
            to: to.clone(),
            modifier,
            explicit: true,
        }
        .into())
    }

    /// Several subscripts of an array. When one of them is a slice all are, and a number is the upper bound of one from 1 on.
    fn subscripts(&mut self, array: Expr, chain: &[AccessExpr], scope: &Scope) -> Result<Expr> {
        let is_slice = |step: &AccessExpr| matches!(step, AccessExpr::Subscript(Subscript::Slice { .. }));
        let slices = chain.iter().any(is_slice);
        let number = |n: i32| Expr::constant(Value::Int32(n), Type::Int4);
        let mut args = vec![array];
        for step in chain {
            let AccessExpr::Subscript(step) = step else { continue };
            let mut bound = |expr: Option<&Ast>, open: i32| match expr {
                Some(expr) => coerce(self.expr(expr, scope)?, &Type::Int4, Context::Assignment),
                None => Ok(number(open)),
            };
            match step {
                Subscript::Index { index } => {
                    if slices {
                        args.push(number(1));
                    }
                    args.push(bound(Some(index), 0)?);
                }
                Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    ..
                } => {
                    args.push(bound(lower_bound.as_ref(), i32::MIN)?);
                    args.push(bound(upper_bound.as_ref(), i32::MAX)?);
                }
            }
        }
        let name = if slices {
            functions::arrays::SLICE
        } else {
            functions::arrays::ELEMENT
        };
        functions::call(name, args)
    }

    fn access(&mut self, root: &Ast, chain: &[AccessExpr], scope: &Scope) -> Result<Expr> {
        // Names before the first subscript belong to each other.
        let plain = |root: &Ast| match root {
            Ast::Identifier(name) => Some(vec![ident(name)]),
            Ast::CompoundIdentifier(names) => Some(names.iter().map(ident).collect()),
            _ => None,
        };
        let bare = match root {
            Ast::Nested(inner) => inner,
            root => root,
        };
        let dots = chain
            .iter()
            .map_while(|step| match step {
                AccessExpr::Dot(Ast::Identifier(name)) => Some(ident(name)),
                _ => None,
            })
            .collect::<Vec<_>>();
        let (mut at, chain) = match plain(bare) {
            Some(mut names) if !dots.is_empty() => {
                let rest = &chain[dots.len()..];
                let width = names.len();
                names.extend(dots);
                match self.name(&names, scope) {
                    Ok(found) => (found, rest),
                    // A column in parentheses that has no fields.
                    Err(error) => match self.name(&names[..width], scope) {
                        Ok(own) if matches!(own.node(), Node::Column { .. } | Node::Outer { .. }) => {
                            (super::names::attribute(own, &names[width])?, rest)
                        }
                        _ => return Err(error),
                    },
                }
            }
            _ => (self.expr(root, scope)?, chain),
        };
        let subscripts = chain
            .iter()
            .take_while(|step| matches!(step, AccessExpr::Subscript(_)))
            .count();
        let (subscripts, chain) = match at.ty() {
            Type::Array(_) if subscripts > 1 => chain.split_at(subscripts),
            _ => (&[][..], chain),
        };
        if !subscripts.is_empty() {
            at = self.subscripts(at, subscripts, scope)?;
        }
        for step in chain {
            at = match step {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let index = self.expr(index, scope)?;
                    match at.ty() {
                        Type::Jsonb => super::subscripts::json_part(at, index)?,
                        Type::Array(_) => Node::Subscript(at, coerce(index, &Type::Int4, Context::Assignment)?).into(),
                        ty if ty.is_vector() => {
                            let one = Expr::constant(Value::Int32(1), Type::Int4);
                            let index = coerce(index, &Type::Int4, Context::Assignment)?;
                            Node::Subscript(at, functions::call("+", vec![index, one])?).into()
                        }
                        // Letters of names count from 0, as those of PostgreSQL's arrays of fixed length do.
                        Type::Name => {
                            let one = || Expr::constant(Value::Int32(1), Type::Int4);
                            let index = coerce(index, &Type::Int4, Context::Assignment)?;
                            let from = functions::call("+", vec![index, one()])?;
                            let name = coerce(at, &Type::Text, Context::Implicit)?;
                            let letter = functions::call("substr", vec![name, from, one()])?;
                            coerce(letter, &Type::Char, Context::Explicit)?
                        }
                        ty => {
                            return fail(
                                "42804",
                                format!("cannot subscript type {ty} because it does not support subscripting"),
                            );
                        }
                    }
                }
                AccessExpr::Subscript(Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    ..
                }) => {
                    let mut bound = |expr: &Option<Ast>| match expr {
                        Some(expr) => {
                            let bound = self.expr(expr, scope)?;
                            coerce(bound, &Type::Int4, Context::Assignment).map(Some)
                        }
                        None => Ok(None),
                    };
                    if at.ty() == Type::Jsonb {
                        return fail("42804", "jsonb subscript does not support slices");
                    }
                    let (from, to) = (bound(lower_bound)?, bound(upper_bound)?);
                    Node::Slice(at, from, to).into()
                }
                AccessExpr::Dot(Ast::Identifier(name)) if at.ty() == Type::Jsonb => {
                    let name = ident(name);
                    if let Node::Column { index, .. } = at.node()
                        && let Some(pending) = index.checked_sub(super::PENDING).and_then(|i| self.pending.get(i))
                        && let Some(field) = pending.fields.iter().find(|field| field.name == name)
                    {
                        let ty = field.ty.clone();
                        at = super::rows::field(&at, &name, &ty);
                        continue;
                    }
                    match at.node() {
                        Node::Field(of, path, Type::Jsonb) => {
                            let path = path.iter().cloned().chain([name]).collect();
                            Node::Field(of.clone(), path, Type::Jsonb).into()
                        }
                        _ => Node::Field(at, vec![name], Type::Jsonb).into(),
                    }
                }
                AccessExpr::Dot(Ast::Identifier(name)) if matches!(at.ty(), Type::Composite(_)) => {
                    super::names::attribute(at, &ident(name))?
                }
                AccessExpr::Dot(Ast::Identifier(name)) if matches!(at.node(), Node::Row(_)) => {
                    let Node::Row(items) = at.node() else { continue };
                    let name = ident(name);
                    let number = name.strip_prefix('f').and_then(|number| number.parse::<usize>().ok());
                    match number.and_then(|number| items.get(number.checked_sub(1)?)) {
                        Some(item) => item.clone(),
                        None => return fail("42703", format!("column \"{name}\" not found in data type record")),
                    }
                }
                AccessExpr::Dot(_) => return unsupported("an access of this form"),
            };
        }
        Ok(at)
    }
}

/// Words of SQL that are functions without parentheses.
pub(super) fn is_word(name: &str) -> bool {
    matches!(
        name,
        "current_timestamp"
            | "current_date"
            | "current_time"
            | "localtimestamp"
            | "localtime"
            | "current_user"
            | "session_user"
            | "user"
            | "current_role"
            | "current_catalog"
            | "current_schema"
    )
}
