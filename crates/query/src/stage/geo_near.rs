//! `$geoNear`: documents by their distance from a point, nearest first.
//!
//! It finds documents as a find with `$near` does, and puts what the find measured into fields.
//! Source: manual, "$geoNear (aggregation)".

use super::args::not_object;
use super::{ParseContext, Stage};
use crate::Expr;
use crate::field_names::validate_path;
use crate::geo::Near;
use crate::matcher::{self, MatchExpr, Predicate};
use nestor_model::number::Num;
use nestor_model::{DocRef, Document, Error, Path, Result, Str, Value, ValueRef, bail};
use std::sync::Arc;

/// Most components of `key`.
const KEY_COMPONENTS_MAX: usize = 180;
/// As many components of the path of a field would nest a document deeper than one may be.
const FIELD_COMPONENTS: usize = 200;

/// A parsed `$geoNear`.
#[derive(Debug)]
pub struct GeoNear {
    /// The point, and which distances count.
    pub near: Arc<Near>,
    /// Where the distance goes.
    pub distance_field: Option<Path>,
    /// Where the location goes that was nearest.
    pub include_locs: Option<Path>,
    /// By what distances are multiplied before they go into the field.
    pub multiplier: f64,
    /// Where locations are; `None`: where the only geographic index has them.
    pub key: Option<Path>,
    /// Further conditions on the documents.
    pub query: MatchExpr,
}

/// Options, each as it was given.
#[derive(Default)]
struct Given<'a> {
    near: Option<ValueRef<'a>>,
    distance_field: Option<Path>,
    include_locs: Option<Path>,
    multiplier: Option<f64>,
    key: Option<Path>,
    query: Option<MatchExpr>,
    spherical: bool,
    min: Option<f64>,
    max: Option<f64>,
}

/// Errors: 10065 no document, 5860400 no point, 2, 14, 16606, 16607, 5729100, 5984700, 5860401, 5860402, 7555701, 7555702 for options,
/// and those of paths and filters.
pub(super) fn parse(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let doc = match value {
        ValueRef::Document(doc) => doc,
        // An array is a document of its indexes, which are no options.
        ValueRef::Array(_) => return Err(no_near()),
        _ => return Err(not_object("$geoNear", value)),
    };
    let mut given = Given::default();
    for (name, value) in doc {
        given.read(name, value, context)?;
    }
    out.push(Stage::GeoNear(Arc::new(given.finish(doc)?)));
    Ok(())
}

fn no_near() -> Error {
    Error::location(5_860_400, "$geoNear requires a 'near' argument")
}

impl<'a> Given<'a> {
    fn read(&mut self, name: &str, value: ValueRef<'a>, context: &mut ParseContext<'_>) -> Result<()> {
        match name {
            "near" => self.near = Some(value),
            "distanceField" => self.distance_field = Some(field(16606, name, value)?),
            "includeLocs" => self.include_locs = Some(field(16607, name, value)?),
            "distanceMultiplier" => self.multiplier = Some(non_negative(name, number(name, value)?)?),
            "minDistance" => self.min = Some(distance(7_555_701, name, value, context)?),
            "maxDistance" => self.max = Some(distance(7_555_702, name, value, context)?),
            "spherical" => {
                self.spherical = match value {
                    ValueRef::Bool(spherical) => spherical,
                    other if other.is_number() => other.truthy(),
                    _ => return Err(wrong_type(name, "bool", value)),
                }
            }
            "key" => self.key = Some(key(value)?),
            "query" => {
                let ValueRef::Document(query) = value else {
                    return Err(wrong_type(name, "object", value));
                };
                self.query =
                    Some(MatchExpr::parse_in(query, context.scope, matcher::Context::Pipeline)?.without_text()?);
            }
            _ => bail!(BadValue, "Unknown argument to $geoNear: {name}"),
        }
        Ok(())
    }

    fn finish(self, written: DocRef<'_>) -> Result<GeoNear> {
        let near = point(self.near.ok_or_else(no_near)?, self.spherical)?;
        let mut source = Document::new();
        if let Some(point) = written.get("near") {
            source.push("$geoNear", point.to_value());
        }
        let near = near.within(self.min.unwrap_or(0.0), self.max.unwrap_or(f64::INFINITY), source);
        Ok(GeoNear {
            near: Arc::new(near),
            distance_field: self.distance_field,
            include_locs: self.include_locs,
            multiplier: self.multiplier.unwrap_or(1.0),
            key: self.key,
            query: self.query.unwrap_or(MatchExpr::AlwaysTrue),
        })
    }
}

fn wrong_type(name: &str, wanted: &str, value: ValueRef<'_>) -> Error {
    Error::type_mismatch(format!(
        "$geoNear parameter '{name}' must be of type {wanted} but found type: {}",
        value.bson_type().alias()
    ))
}

/// The point itself, or an expression that is a constant.
fn point(value: ValueRef<'_>, spherical: bool) -> Result<Near> {
    const NAME: &str = "$geoNear";
    let value = match value {
        ValueRef::String(text) if text.starts_with('$') => {
            return Err(Error::location(
                5_860_402,
                "$geoNear requires a constant 'near' argument",
            ));
        }
        value => value,
    };
    match value {
        ValueRef::Document(doc) if doc.get("type").is_some() || doc.get("coordinates").is_some() => {
            Near::of_geojson(NAME, doc)
        }
        ValueRef::Document(_) | ValueRef::Array(_) => Near::of_legacy(NAME, crate::geo::near_pair(value)?, spherical),
        _ => Err(Error::location(
            5_860_401,
            format!(
                "$geoNear requires near argument to be either object or array, but got {}",
                value.bson_type().alias()
            ),
        )),
    }
}

/// The path of a field that the stage sets.
fn field(code: i32, name: &str, value: ValueRef<'_>) -> Result<Path> {
    let ValueRef::String(text) = value else {
        return Err(Error::location(
            code,
            format!(
                "$geoNear requires that '{name}' option is a String, but got {}",
                value.bson_type().alias()
            ),
        ));
    };
    validate_path(text)?;
    if text.split('.').count() >= FIELD_COMPONENTS {
        return Err(Error::location(
            5_984_700,
            format!("$geoNear '{name}' is nested too deep"),
        ));
    }
    Ok(Path::new(text))
}

fn key(value: ValueRef<'_>) -> Result<Path> {
    let ValueRef::String(text) = value else {
        return Err(wrong_type("key", "string", value));
    };
    if text.is_empty() {
        bail!(BadValue, "$geoNear parameter 'key' cannot be the empty string");
    }
    validate_path(text)?;
    if text.split('.').count() > KEY_COMPONENTS_MAX {
        return Err(Error::location(
            5_729_100,
            "$geoNear parameter 'key' is nested too deep",
        ));
    }
    Ok(Path::new(text))
}

/// A distance: a number, or an expression that is one.
fn distance(code: i32, name: &str, value: ValueRef<'_>, context: &mut ParseContext<'_>) -> Result<f64> {
    let constant: Value;
    let value = match value {
        ValueRef::String(text) if !text.starts_with('$') => value,
        ValueRef::String(_) | ValueRef::Document(_) => {
            constant = match Expr::parse(value, context.scope)?.constant() {
                Some(constant) => constant.clone(),
                None => {
                    return Err(Error::location(
                        code,
                        format!("$geoNear requires a constant '{name}' argument"),
                    ));
                }
            };
            constant.as_ref()
        }
        value => value,
    };
    non_negative(name, number(name, value)?)
}

fn number(name: &str, value: ValueRef<'_>) -> Result<f64> {
    match Num::from_ref(value) {
        Some(number) => Ok(number.to_f64()),
        None => Err(wrong_type(name, "number", value)),
    }
}

fn non_negative(name: &str, number: f64) -> Result<f64> {
    match number >= 0.0 {
        true => Ok(number),
        false => bail!(BadValue, "$geoNear parameter '{name}' must be nonnegative"),
    }
}

impl GeoNear {
    /// The filter of the find that the stage begins with, where locations are at `path`.
    pub fn filter(&self, path: &Path) -> MatchExpr {
        let near = MatchExpr::leaf(path.clone(), Predicate::Near(self.near.clone()));
        match &self.query {
            MatchExpr::AlwaysTrue => near,
            query => MatchExpr::And(vec![near, query.clone()]),
        }
    }

    /// Sets the fields of a document.
    pub fn set(&self, doc: &mut Document, distance: f64, place: Option<&Value>) {
        if let Some(path) = &self.distance_field {
            set_nested(doc, path, (distance * self.multiplier).into());
        }
        if let (Some(path), Some(place)) = (&self.include_locs, place) {
            set_nested(doc, path, place.clone());
        }
    }

    /// Whether rows are changed at all.
    pub fn sets_fields(&self) -> bool {
        self.distance_field.is_some() || self.include_locs.is_some()
    }
}

/// Sets a field of documents in documents, which take the place of whatever else is there.
fn set_nested(doc: &mut Document, path: &Path, value: Value) {
    let names: Vec<&Str> = path.parts().iter().map(|part| &part.name).collect();
    let Some((last, outer)) = names.split_last() else {
        return;
    };
    // The documents on the way are taken out, and put back with the one below set.
    let mut taken: Vec<Document> = Vec::with_capacity(outer.len());
    let mut current = std::mem::take(doc);
    for name in outer {
        let inner = match current.get(name) {
            Some(ValueRef::Document(inner)) => inner.to_document(),
            _ => Document::new(),
        };
        taken.push(std::mem::replace(&mut current, inner));
    }
    current.set(last, value);
    for name in outer.iter().rev() {
        if let Some(mut parent) = taken.pop() {
            parent.set(name, Value::Document(current));
            current = parent;
        }
    }
    *doc = current;
}
