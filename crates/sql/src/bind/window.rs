//! Window functions.

use super::query::sort_key;
use super::{Binder, Scope, WINDOW, ident, object_name};
use crate::error::fail;
use crate::expr::Expr;
use crate::functions::coerce;
use crate::parse::dialect::EXCLUDE;
use crate::plan::Plan;
use crate::types::cast::{self, Context};
use crate::types::interval::Interval;
use crate::types::timetz::TimeTz;
use crate::types::{Type, compare, datetime, integer, numeric};
use nestor_model::{Result, Value};
use nestor_planner::relation::{
    Call, FrameBound, FrameExclusion, FrameUnits, InRange, Relation, SortKey, Window, WindowCall, WindowFrame,
    WindowFunction,
};
use sqlparser::ast::{Expr as Ast, Function, WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType};
use std::sync::Arc;

/// A window function that waits for a place in the plan.
pub(super) struct Pending {
    partition: Vec<Expr>,
    order: Vec<SortKey<Expr>>,
    call: WindowCall<Expr>,
    ty: Type,
    /// The function as it is written.
    written: String,
}

impl Pending {
    /// Calls back with all of its expressions.
    pub(super) fn for_each(&mut self, f: &mut dyn FnMut(&mut Expr) -> Result<()>) -> Result<()> {
        let bound = |bound: &mut FrameBound<Expr>, f: &mut dyn FnMut(&mut Expr) -> Result<()>| match bound {
            FrameBound::Preceding(by) | FrameBound::Following(by) => f(by),
            _ => Ok(()),
        };
        self.partition.iter_mut().try_for_each(&mut *f)?;
        self.order.iter_mut().try_for_each(|key| f(&mut key.by))?;
        if let WindowFunction::Aggregate(of) = &mut self.call.function {
            of.args.iter_mut().try_for_each(&mut *f)?;
            of.filter.iter_mut().try_for_each(&mut *f)?;
            of.order.iter_mut().try_for_each(|key| f(&mut key.by))?;
        }
        self.call.args.iter_mut().try_for_each(&mut *f)?;
        bound(&mut self.call.frame.start, f)?;
        bound(&mut self.call.frame.end, f)
    }
}

/// Differences of the type that rows are ordered by.
#[derive(Debug)]
struct Differences {
    ty: Type,
    descending: bool,
}

impl Differences {
    fn bound(&self, base: &Value, offset: &Value, after: bool) -> Result<Value> {
        if is_negative(offset) {
            return fail("22013", "invalid preceding or following size in window function");
        }
        let plus = after != self.descending;
        Ok(match (base, offset) {
            (base, offset) if integer(base).is_some() && integer(offset).is_some() => {
                let (base_n, by) = (integer(base).unwrap_or(0), integer(offset).unwrap_or(0));
                let n = if plus {
                    base_n.saturating_add(by)
                } else {
                    base_n.saturating_sub(by)
                };
                match base {
                    Value::Int32(_) => Value::Int32(n.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32),
                    _ => Value::Int64(n),
                }
            }
            (Value::Double(base), Value::Double(by)) => Value::Double(if plus { base + by } else { base - by }),
            (Value::Decimal128(base), Value::Decimal128(by)) => Value::Decimal128(if plus {
                numeric::add(*base, *by)?
            } else {
                numeric::sub(*base, *by)?
            }),
            // Of times of day only what is less than a day counts, and they do not begin anew.
            (Value::Int64(us), by @ Value::Binary(_)) if self.ty == Type::Time => {
                let by = Interval::of(by).us;
                Value::Int64(us.saturating_add(if plus { by } else { -by }))
            }
            (Value::Binary(_), by @ Value::Binary(_)) if self.ty == Type::Timetz => {
                let (time, by) = (TimeTz::of(base), Interval::of(by).us);
                let us = time.us.saturating_add(if plus { by } else { -by });
                TimeTz { us, ..time }.to_value()
            }
            (Value::Int64(us), by @ Value::Binary(_)) => {
                let by = Interval::of(by);
                Value::Int64(datetime::plus(*us, if plus { by } else { by.negate()? })?)
            }
            (Value::Int32(days), by @ Value::Binary(_)) => {
                let by = Interval::of(by);
                let us = i64::from(*days).saturating_mul(crate::types::interval::DAY_US);
                let us = datetime::plus(us, if plus { by } else { by.negate()? })?;
                Value::Int32(us.div_euclid(crate::types::interval::DAY_US) as i32)
            }
            (Value::Binary(_), by @ Value::Binary(_)) if self.ty == Type::Interval => {
                let by = Interval::of(by);
                let by = if plus { by } else { by.negate()? };
                Interval::of(base).plus(by)?.to_value()
            }
            _ => return fail("0A000", "RANGE with an offset of this type is not supported"),
        })
    }

    fn order(&self, a: &Value, b: &Value) -> std::cmp::Ordering {
        let order = compare::compare(&self.ty, a, b);
        if self.descending { order.reverse() } else { order }
    }
}

/// Whether a frame would end before it begins.
/// Whether an offset is none: less than nothing, or no number.
fn is_negative(offset: &Value) -> bool {
    match offset {
        Value::Double(by) => by.is_nan() || *by < 0.0,
        Value::Decimal128(by) => by.is_nan() || by.is_negative() && !by.is_zero(),
        by @ Value::Binary(_) => Interval::of(by).total_us() < 0,
        by => integer(by).is_some_and(|by| by < 0),
    }
}

impl InRange for Differences {
    fn not_before(&self, value: &Value, base: &Value, offset: &Value, after: bool) -> Result<bool> {
        Ok(self.order(value, &self.bound(base, offset, after)?).is_ge())
    }

    fn not_after(&self, value: &Value, base: &Value, offset: &Value, after: bool) -> Result<bool> {
        Ok(self.order(value, &self.bound(base, offset, after)?).is_le())
    }
}

/// Rows with their numbers as a column more.
pub(super) fn numbered(plan: Plan) -> Plan {
    let call = WindowCall {
        function: WindowFunction::RowNumber,
        args: Vec::new(),
        frame: whole(),
    };
    Relation::Window {
        input: Box::new(plan),
        window: Window {
            partition: Vec::new(),
            order: Vec::new(),
            calls: vec![call],
        },
    }
}

fn whole() -> WindowFrame<Expr> {
    WindowFrame {
        units: FrameUnits::Range,
        start: FrameBound::Unbounded,
        end: FrameBound::Current,
        exclusion: FrameExclusion::Nothing,
        in_range: None,
    }
}

/// What a frame leaves out, if an item of the order is the mark of that.
fn excluded(item: &Ast) -> Option<FrameExclusion> {
    let Ast::Function(call) = item else { return None };
    let [sqlparser::ast::ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else {
        return None;
    };
    if name.value != EXCLUDE {
        return None;
    }
    let shown = call.args.to_string();
    Some(match shown.trim_matches(['(', ')', '\'']) {
        "current" => FrameExclusion::Current,
        "group" => FrameExclusion::Group,
        "ties" => FrameExclusion::Ties,
        _ => FrameExclusion::Nothing,
    })
}

impl Binder<'_> {
    /// A window function; `aggregate` when it is one.
    pub(super) fn window(
        &mut self,
        function: &Function,
        args: Vec<Expr>,
        aggregate: Option<(Call<Expr>, Type)>,
        over: &WindowType,
        scope: &Scope,
    ) -> Result<Expr> {
        let (_, name) = object_name(&function.name)?;
        let call = aggregate.as_ref().map(|(call, _)| call);
        let mut nested = false;
        for arg in args
            .iter()
            .chain(call.into_iter().flat_map(|call| call.args.iter().chain(&call.filter)))
        {
            arg.for_each_column(&mut |index| nested |= index >= WINDOW);
        }
        if nested {
            return fail("42P20", "window function calls cannot be nested");
        }
        let level = self.level()?;
        if !level.allows_windows || level.in_aggregate {
            return fail("42P20", "window functions are not allowed here");
        }
        let spec = match over {
            WindowType::WindowSpec(spec) => spec.clone(),
            WindowType::NamedWindow(name) => WindowSpec {
                window_name: Some(name.clone()),
                partition_by: Vec::new(),
                order_by: Vec::new(),
                window_frame: None,
            },
        };
        let base = match &spec.window_name {
            None => None,
            Some(name) => match self.level()?.named.get(&ident(name)).cloned() {
                Some(spec) => Some(spec),
                None => return fail("42704", format!("window \"{}\" does not exist", ident(name))),
            },
        };
        let level = self.level()?;
        level.allows_windows = false;
        let bound = self.window_parts(&name, args, aggregate, &spec, base.as_ref(), scope);
        let level = self.level()?;
        level.allows_windows = true;
        let mut pending = bound?;
        let ty = pending.ty.clone();
        let mut is_volatile = false;
        pending.for_each(&mut |expr| {
            is_volatile |= expr.is_volatile();
            Ok(())
        })?;
        pending.written = function.to_string();
        let shown = |pending: &Pending| format!("{:?} {:?} {:?}", pending.partition, pending.order, pending.call);
        let is_same = |other: &Pending| other.written == pending.written && shown(other) == shown(&pending);
        // The same window function, of the same columns and written in the same way, is computed once.
        let found = level.windows.iter().position(is_same).filter(|_| !is_volatile);
        let place = WINDOW + found.unwrap_or(level.windows.len());
        if found.is_none() {
            level.windows.push(pending);
        }
        Ok(Expr::column(place, name, ty))
    }

    /// What a window is that may be made of another one.
    ///
    /// Errors: 42704, 42P20.
    pub(super) fn window_of(&mut self, spec: &WindowSpec) -> Result<WindowSpec> {
        let Some(name) = &spec.window_name else {
            return Ok(spec.clone());
        };
        let Some(base) = self.level()?.named.get(&ident(name)).cloned() else {
            return fail("42704", format!("window \"{}\" does not exist", ident(name)));
        };
        let own = |item: &sqlparser::ast::OrderByExpr| excluded(&item.expr).is_none();
        if !spec.partition_by.is_empty() {
            return fail("42P20", "cannot override PARTITION BY clause of a window");
        }
        if base.order_by.iter().any(own) && spec.order_by.iter().any(own) {
            return fail("42P20", "cannot override ORDER BY clause of a window");
        }
        if base.window_frame.is_some() {
            return fail(
                "42P20",
                format!("cannot copy window \"{}\" because it has a frame clause", ident(name)),
            );
        }
        Ok(WindowSpec {
            window_name: None,
            partition_by: base.partition_by,
            order_by: base.order_by.into_iter().chain(spec.order_by.clone()).collect(),
            window_frame: spec.window_frame.clone(),
        })
    }

    fn window_parts(
        &mut self,
        name: &str,
        mut args: Vec<Expr>,
        aggregate: Option<(Call<Expr>, Type)>,
        spec: &WindowSpec,
        base: Option<&WindowSpec>,
        scope: &Scope,
    ) -> Result<Pending> {
        if base.is_some_and(|base| {
            !base.order_by.is_empty() && spec.order_by.iter().any(|item| excluded(&item.expr).is_none())
        }) {
            return fail("42P20", "cannot override ORDER BY clause of a window");
        }
        if base.is_some() && !spec.partition_by.is_empty() {
            return fail("42P20", "cannot override PARTITION BY clause of a window");
        }
        let partition = base.map_or(&spec.partition_by, |base| &base.partition_by);
        let partition: Vec<Expr> = partition
            .iter()
            .map(|expr| self.expr(expr, scope))
            .collect::<Result<_>>()?;
        let order_by = match base {
            Some(base) if spec.order_by.is_empty() => &base.order_by,
            _ => &spec.order_by,
        };
        let mut order = Vec::new();
        let (order_by, excluded) = match order_by.split_last().map(|(last, rest)| (excluded(&last.expr), rest)) {
            // What follows the order is a mark of the frame's; a window that only has that is ordered as its base is.
            Some((Some(excluded), [])) => (base.map_or(&[][..], |base| &base.order_by), Some(excluded)),
            Some((Some(excluded), rest)) => (rest, Some(excluded)),
            _ => (order_by.as_slice(), None),
        };
        for item in order_by {
            let by = self.expr(&item.expr, scope)?;
            order.push(sort_key(by, item));
        }
        let frame = spec
            .window_frame
            .as_ref()
            .or(base.and_then(|base| base.window_frame.as_ref()));
        let frame = match frame {
            None => whole(),
            Some(frame) => {
                let units = match frame.units {
                    WindowFrameUnits::Rows => FrameUnits::Rows,
                    WindowFrameUnits::Range => FrameUnits::Range,
                    WindowFrameUnits::Groups => FrameUnits::Groups,
                };
                let key = order.first().cloned();
                let start = self.bound(&frame.start_bound, units, key.as_ref(), scope, true)?;
                let end = match &frame.end_bound {
                    Some(bound) => self.bound(bound, units, key.as_ref(), scope, false)?,
                    None => FrameBound::Current,
                };
                let order_of = |bound: &FrameBound<Expr>, is_start: bool| match bound {
                    FrameBound::Unbounded if is_start => 0,
                    FrameBound::Preceding(_) => 1,
                    FrameBound::Current => 2,
                    FrameBound::Following(_) => 3,
                    FrameBound::Unbounded => 4,
                };
                if order_of(&start, true) > order_of(&end, false) {
                    return fail("42P20", "frame cannot start behind its end");
                }
                let offsets = [&start, &end]
                    .into_iter()
                    .any(|bound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_)));
                match units {
                    FrameUnits::Groups if order.is_empty() => {
                        return fail("42P20", "GROUPS mode requires an ORDER BY clause");
                    }
                    FrameUnits::Range if offsets && order.len() != 1 => {
                        return fail(
                            "42P20",
                            "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                        );
                    }
                    _ => {}
                }
                WindowFrame {
                    units,
                    start,
                    end,
                    exclusion: excluded.unwrap_or(FrameExclusion::Nothing),
                    in_range: key.map(|key| -> Arc<dyn InRange> {
                        Arc::new(Differences {
                            ty: key.by.ty(),
                            descending: key.descending,
                        })
                    }),
                }
            }
        };
        let first = args.first().map_or(Type::Text, Expr::ty);
        let (function, ty) = match (aggregate, name) {
            (Some((call, ty)), _) => {
                args.clear();
                (WindowFunction::Aggregate(call), ty)
            }
            (None, "row_number") => (WindowFunction::RowNumber, Type::Int8),
            (None, "rank") => (WindowFunction::Rank, Type::Int8),
            (None, "dense_rank") => (WindowFunction::DenseRank, Type::Int8),
            (None, "percent_rank") => (WindowFunction::PercentRank, Type::Float8),
            (None, "cume_dist") => (WindowFunction::CumeDist, Type::Float8),
            (None, "ntile") => (WindowFunction::Ntile, Type::Int4),
            (None, "lag" | "lead") => {
                let mut first = first;
                if args.len() == 3 {
                    let (both, ty) = self.unified(vec![args[0].clone(), args[2].clone()], name)?;
                    (args[0], args[2]) = (both[0].clone(), both[1].clone());
                    first = ty;
                }
                let function = if name == "lag" {
                    WindowFunction::Lag
                } else {
                    WindowFunction::Lead
                };
                (function, first)
            }
            (None, "first_value") => (WindowFunction::FirstValue, first),
            (None, "last_value") => (WindowFunction::LastValue, first),
            (None, "nth_value") => (WindowFunction::NthValue, first),
            (None, name) => return fail("42883", format!("function {name} is no window function")),
        };
        Ok(Pending {
            partition,
            order,
            call: WindowCall { function, args, frame },
            ty,
            written: String::new(),
        })
    }

    fn bound(
        &mut self,
        bound: &WindowFrameBound,
        units: FrameUnits,
        key: Option<&SortKey<Expr>>,
        scope: &Scope,
        is_start: bool,
    ) -> Result<FrameBound<Expr>> {
        let mut offset = |expr: &Ast| -> Result<Expr> {
            let bound = self.expr(expr, scope)?;
            match (units, key) {
                (FrameUnits::Range, Some(key)) => {
                    let by = key.by.ty();
                    let ty = match by {
                        Type::Date | Type::Timestamp | Type::Timestamptz => Type::Interval,
                        Type::Time | Type::Timetz | Type::Interval => Type::Interval,
                        Type::Int2 | Type::Int4 => Type::Int8,
                        ref ty => ty.clone(),
                    };
                    let given = bound.ty();
                    let has_distances = ty == Type::Interval || ty.is_number();
                    if !has_distances || (given != Type::Unknown && !cast::exists(&given, &ty, Context::Implicit)) {
                        return fail(
                            "0A000",
                            format!(
                                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {by} and offset type {given}"
                            ),
                        );
                    }
                    coerce(bound, &ty, Context::Implicit)
                }
                (FrameUnits::Range, None) => fail(
                    "42P20",
                    "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                ),
                _ => coerce(bound, &Type::Int8, Context::Assignment),
            }
        };
        Ok(match bound {
            WindowFrameBound::CurrentRow => FrameBound::Current,
            WindowFrameBound::Preceding(None) if is_start => FrameBound::Unbounded,
            WindowFrameBound::Following(None) if !is_start => FrameBound::Unbounded,
            WindowFrameBound::Preceding(None) => return fail("42P20", "frame end cannot be UNBOUNDED PRECEDING"),
            WindowFrameBound::Following(None) => return fail("42P20", "frame start cannot be UNBOUNDED FOLLOWING"),
            WindowFrameBound::Preceding(Some(expr)) => FrameBound::Preceding(offset(expr)?),
            WindowFrameBound::Following(Some(expr)) => FrameBound::Following(offset(expr)?),
        })
    }

    /// Puts nodes on `plan` that compute the window functions, and their numbers into `exprs`.
    pub(super) fn windowed(&mut self, mut plan: Plan, mut windows: Vec<Pending>, exprs: &mut [Expr]) -> Result<Plan> {
        // Subqueries in them stand below.
        let mut below = Vec::new();
        for window in &mut windows {
            window.for_each(&mut |expr| {
                below.push(expr.clone());
                Ok(())
            })?;
        }
        plan = self.flush(plan, &mut below);
        let mut next = below.into_iter();
        for window in &mut windows {
            window.for_each(&mut |expr| {
                if let Some(flushed) = next.next() {
                    *expr = flushed;
                }
                Ok(())
            })?;
        }
        let mut places: Vec<Option<usize>> = vec![None; windows.len()];
        let same = |a: &Pending, b: &Pending| {
            let keys = |p: &Pending| format!("{:?} {:?}", p.partition, p.order);
            keys(a) == keys(b)
        };
        for number in 0..windows.len() {
            if places[number].is_some() {
                continue;
            }
            let group: Vec<usize> = (number..windows.len())
                .filter(|other| places[*other].is_none() && same(&windows[number], &windows[*other]))
                .collect();
            let (partition, order) = (&windows[number].partition, &windows[number].order);
            let width = plan.width();
            for (i, other) in group.iter().enumerate() {
                places[*other] = Some(width + i);
            }
            plan = Relation::Window {
                input: Box::new(plan),
                window: Window {
                    partition: partition.clone(),
                    order: order.clone(),
                    calls: group.iter().map(|other| windows[*other].call.clone()).collect(),
                },
            };
        }
        for expr in exprs {
            *expr = expr.with_columns(&|index| {
                let number = index.checked_sub(WINDOW)?;
                let place = places.get(number).copied().flatten()?;
                Some(Expr::column(place, "window", windows[number].ty.clone()))
            });
        }
        Ok(plan)
    }
}
