//! Functions whose types stand for whichever type is given: what is given settles them for a call.

use crate::catalog::routines::{Returns, Routine};
use crate::error::{Field, error, fail, unsupported, with};
use crate::types::Type;
use crate::types::any::{Any, Shape};
use crate::types::cast;
use nestor_model::Result;
use std::sync::Arc;

/// What types stand for in a call: those that are to be alike, and those that need only have one in common. `None` where nothing says it.
pub type Settled = [Option<Type>; 2];

fn of(ty: &Type) -> Option<Any> {
    match ty {
        Type::Any(own) => Some(*own),
        _ => None,
    }
}

/// What the types of arguments stand for, of which these were given; `None` where they cannot be. What has no type yet says nothing.
pub fn settle<'t>(args: impl Iterator<Item = (&'t Type, Type)>) -> Option<Settled> {
    let (mut alike, mut common): (Option<Type>, Vec<Type>) = (None, Vec::new());
    let mut has_common = false;
    for (declared, given) in args {
        let Some(any) = of(declared) else { continue };
        has_common |= any.is_compatible;
        if given == Type::Unknown {
            continue;
        }
        let element = any.element(&given)?;
        match any.is_compatible {
            true => common.push(element),
            false if alike.as_ref().is_some_and(|alike| *alike != element) => return None,
            false => alike = Some(element),
        }
    }
    // What has no type is a text where nothing says otherwise.
    let common = match has_common {
        true => Some(cast::common(&common)?),
        false => None,
    };
    Some([alike, common])
}

/// A type in a call.
fn settled(ty: &Type, by: &Settled) -> Result<Type> {
    let Some(any) = of(ty) else { return Ok(ty.clone()) };
    let found = by[usize::from(any.is_compatible)].as_ref();
    if found.is_some_and(Type::is_row) {
        return unsupported("a row that has no declared type as an argument of any type");
    }
    let Some(element) = found else {
        return fail(
            "42804",
            "could not determine polymorphic type because input has type unknown",
        );
    };
    let whole = any.whole(element);
    whole.ok_or_else(|| {
        let kind = match any.shape {
            Shape::Range => "range",
            Shape::Multirange => "multirange",
            _ => "array",
        };
        error("42704", format!("could not find {kind} type for data type {element}"))
    })
}

/// A routine with the types that a call settles.
///
/// Errors: 42804 for one that nothing settles.
pub fn called(routine: &Arc<Routine>, by: &Settled) -> Result<Arc<Routine>> {
    if !routine.is_polymorphic() {
        return Ok(routine.clone());
    }
    let mut out = (**routine).clone();
    for own in &mut out.args {
        own.ty = settled(&own.ty, by)?;
    }
    for own in &mut out.parameters {
        own.ty = settled(&own.ty, by)?;
    }
    let named = |columns: &[(String, Type)]| {
        let each = columns.iter().map(|(name, ty)| Ok((name.clone(), settled(ty, by)?)));
        each.collect::<Result<Vec<_>>>()
    };
    out.returns = match &routine.returns {
        Returns::One(ty) => Returns::One(settled(ty, by)?),
        Returns::Row(columns) => Returns::Row(named(columns)?),
        Returns::Rows(columns) => {
            let each = columns.iter().map(|(name, ty)| Ok((name.clone(), settled(ty, by)?)));
            Returns::Rows(each.collect::<Result<_>>()?)
        }
        other => other.clone(),
    };
    out.settled = Some(by.clone());
    Ok(Arc::new(out))
}

/// Refuses a result that no argument settles.
///
/// Errors: 42P13.
pub fn check(routine: &Routine) -> Result<()> {
    let mut results: Vec<&Type> = match &routine.returns {
        Returns::One(ty) => vec![ty],
        Returns::Rows(columns) => columns.iter().map(|(_, ty)| ty).collect(),
        _ => Vec::new(),
    };
    let outs = routine.parameters.iter().filter(|own| !own.mode.is_given());
    results.extend(outs.map(|own| &own.ty));
    for any in results.into_iter().filter_map(of) {
        let mut given = routine.args.iter().filter_map(|arg| of(&arg.ty));
        if given.any(|own| own.is_compatible == any.is_compatible) {
            continue;
        }
        let shapes = match any.is_compatible {
            false => "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
            true => {
                "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"
            }
        };
        let detail = format!(
            "A result of type {} requires at least one input of type {shapes}.",
            any.name
        );
        let told = error("42P13", "cannot determine result data type");
        return Err(with(told, &[(Field::Detail, &detail)]));
    }
    Ok(())
}
