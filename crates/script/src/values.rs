//! Values of BSON as values of the language, and back.
//!
//! | BSON | in a script |
//! |---|---|
//! | int, double | number; back a double, but an int where a field of a document keeps the number it had |
//! | long, decimal, objectId, timestamp, binData, dbPointer, code, minKey, maxKey | object of the type that the shell has for it |
//! | date, regex, string, bool, null, array, object | the language's own |
//! | undefined, no value | `undefined` |
//!
//! Functions go back as code. The constructors of the shell's types stand in `prelude.js`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nestor_model::raw::DEPTH_MAX;
use nestor_model::statement::{charge, work};
use nestor_model::{
    Array, Binary, Decimal128, DocRef, Document, Error, ErrorCode, ObjectId, Regex, Result, Str, Timestamp, Value,
    ValueRef,
};
use rquickjs::atom::PredefinedAtom;
use rquickjs::object::{Filter, Property};
use rquickjs::{Array as JsArray, Coerced, Ctx, Function, Object, Symbol, Value as JsValue};

/// Why a value could not be brought over.
pub(crate) enum Fault {
    /// The interpreter says so: an exception waits to be caught.
    Js(rquickjs::Error),
    /// We do.
    Ours(Error),
}

impl From<rquickjs::Error> for Fault {
    fn from(error: rquickjs::Error) -> Self {
        Self::Js(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

/// What the prelude gives for bringing values over.
pub(crate) struct Tools<'js> {
    pub(crate) ctx: Ctx<'js>,
    /// `(kind, parts…)` to a value of a type of BSON's own.
    pub(crate) make: Function<'js>,
    /// The parts of such a value.
    pub(crate) parts: Function<'js>,
    /// The name of the property that says which type of BSON's own an object is.
    pub(crate) kind: Symbol<'js>,
    /// The name of the property that says which fields of a document were ints.
    pub(crate) ints: Symbol<'js>,
}

/// Between the names of fields that were ints; no name has it.
const SEPARATOR: char = '\0';

impl<'js> Tools<'js> {
    /// Into the language.
    pub(crate) fn to_js(&self, value: ValueRef<'_>) -> std::result::Result<JsValue<'js>, Fault> {
        let ctx = self.ctx.clone();
        work(1)?;
        Ok(match value {
            ValueRef::Missing | ValueRef::Undefined => JsValue::new_undefined(ctx),
            ValueRef::Null => JsValue::new_null(ctx),
            ValueRef::Bool(value) => JsValue::new_bool(ctx, value),
            ValueRef::Int32(value) => JsValue::new_int(ctx, value),
            ValueRef::Double(value) => JsValue::new_float(ctx, value),
            ValueRef::String(text) | ValueRef::Symbol(text) => rquickjs::String::from_str(ctx, text)?.into_value(),
            ValueRef::Document(doc) => self.object(doc)?.into_value(),
            ValueRef::Array(items) => {
                let array = JsArray::new(ctx)?;
                for (at, item) in items.iter().enumerate() {
                    array.set(at, self.to_js(item)?)?;
                }
                array.into_value()
            }
            ValueRef::DateTime(ms) => self.make.call(("date", ms as f64))?,
            ValueRef::Int64(value) => self.make.call(("long", rquickjs::BigInt::from_i64(ctx, value)?))?,
            ValueRef::Decimal128(value) => self.make.call(("decimal", value.to_string()))?,
            ValueRef::ObjectId(id) => self.make.call(("objectId", id.to_string()))?,
            ValueRef::Timestamp(time) => self
                .make
                .call(("timestamp", f64::from(time.secs), f64::from(time.inc)))?,
            ValueRef::Binary { subtype, bytes } => self.make.call(("binData", subtype, STANDARD.encode(bytes)))?,
            ValueRef::Regex { pattern, options } => self.make.call(("regex", pattern, options))?,
            ValueRef::DbPointer { namespace, id } => self.make.call(("dbPointer", namespace, id.to_string()))?,
            ValueRef::Code(code) | ValueRef::CodeWithScope { code, .. } => self.make.call(("code", code))?,
            ValueRef::MinKey => self.make.call(("minKey",))?,
            ValueRef::MaxKey => self.make.call(("maxKey",))?,
        })
    }

    fn object(&self, doc: DocRef<'_>) -> std::result::Result<Object<'js>, Fault> {
        let object = Object::new(self.ctx.clone())?;
        let mut ints = String::new();
        for (name, value) in doc {
            if matches!(value, ValueRef::Int32(_)) {
                ints.push_str(name);
                ints.push(SEPARATOR);
            }
            let value = self.to_js(value)?;
            if name == "__proto__" {
                // Set like another it would become what the object inherits from.
                object.prop(name, Property::from(value).writable().enumerable().configurable())?;
            } else {
                object.set(name, value)?;
            }
        }
        if !ints.is_empty() {
            object.prop(self.ints.as_atom(), Property::from(ints))?;
        }
        Ok(object)
    }

    /// Out of the language.
    pub(crate) fn to_value(&self, value: &JsValue<'js>) -> std::result::Result<Value, Fault> {
        self.value(value, false, 0)
    }

    fn value(&self, value: &JsValue<'js>, was_int: bool, depth: usize) -> std::result::Result<Value, Fault> {
        work(1)?;
        charge(size_of::<Value>())?;
        if let Some(number) = value.as_number() {
            return Ok(match was_int && f64::from(number as i32) == number {
                true => Value::Int32(number as i32),
                false => Value::Double(number),
            });
        }
        if value.is_undefined() {
            return Ok(Value::Undefined);
        }
        if value.is_null() {
            return Ok(Value::Null);
        }
        if let Some(value) = value.as_bool() {
            return Ok(Value::Bool(value));
        }
        if let Some(text) = value.as_string() {
            return Ok(Value::String(text_of(text)?.into()));
        }
        if let Some(big) = value.as_big_int() {
            let digits: Coerced<String> = big.as_value().get()?;
            let Ok(long) = digits.0.parse() else {
                return Err(unfit("a BigInt that is no long").into());
            };
            return Ok(Value::Int64(long));
        }
        if value.is_symbol() {
            return Err(unfit("a symbol").into());
        }
        if depth > DEPTH_MAX {
            return Err(Error::new(
                ErrorCode::Overflow,
                format!("exceeded maximum nested object depth: {DEPTH_MAX}"),
            )
            .into());
        }
        if let Some(items) = value.as_array() {
            let mut array = Vec::new();
            for at in 0..items.len() {
                array.push(self.value(&items.get::<JsValue<'js>>(at)?, false, depth + 1)?);
            }
            return Ok(Value::Array(Array::new(array)));
        }
        let Some(object) = value.as_object() else {
            return Err(unfit(value.type_name()).into());
        };
        if let Ok(kind) = object.get::<_, String>(self.kind.as_atom()) {
            return self.of_kind(&kind, object);
        }
        if value.is_function() {
            let source: String = Function::from_value(value.clone())?
                .get::<_, Function<'js>>(PredefinedAtom::ToString)?
                .call((rquickjs::function::This(value.clone()),))?;
            return Ok(Value::Code(source.into()));
        }
        Ok(Value::Document(self.document(object, depth)?))
    }

    fn document(&self, object: &Object<'js>, depth: usize) -> std::result::Result<Document, Fault> {
        let ints: Option<String> = object.get::<_, Option<String>>(self.ints.as_atom()).unwrap_or_default();
        let ints: Vec<&str> = ints
            .as_deref()
            .map_or_else(Vec::new, |names| names.split(SEPARATOR).collect());
        let mut doc = Document::new();
        for entry in object.own_props::<String, JsValue<'js>>(Filter::new().string().enum_only()) {
            let (name, value) = entry?;
            if name.contains('\0') {
                return Err(Error::bad_value("a field's name must not contain a null byte").into());
            }
            charge(name.len())?;
            let was_int = value.is_number() && ints.contains(&name.as_str());
            let value = self.value(&value, was_int, depth + 1)?;
            doc.push(Str::from(name), value);
        }
        Ok(doc)
    }

    /// A value of a type of BSON's own.
    fn of_kind(&self, kind: &str, object: &Object<'js>) -> std::result::Result<Value, Fault> {
        let parts: JsArray<'js> = self.parts.call((object.clone(),))?;
        let text = |at: usize| parts.get::<String>(at);
        Ok(match kind {
            "long" => Value::Int64(parts.get::<rquickjs::BigInt<'js>>(0)?.to_i64()?),
            "int" => Value::Int32(parts.get::<f64>(0)? as i32),
            "date" => Value::DateTime(date_ms(parts.get(0)?)?),
            "decimal" => Value::Decimal128(decimal(&text(0)?)?),
            "objectId" => Value::ObjectId(object_id(&text(0)?)?),
            "timestamp" => Value::Timestamp(Timestamp {
                secs: parts.get::<f64>(0)? as u32,
                inc: parts.get::<f64>(1)? as u32,
            }),
            "binData" => Value::Binary(Binary {
                subtype: parts.get::<f64>(0)? as u8,
                bytes: base64(&text(1)?)?.into(),
            }),
            "dbPointer" => Value::DbPointer(Box::new((text(0)?.into(), object_id(&text(1)?)?))),
            "code" => Value::Code(text(0)?.into()),
            "pattern" | "regex" => Value::Regex(Box::new(Regex {
                pattern: text(0)?.into(),
                options: text(1)?.into(),
            })),
            "minKey" => Value::MinKey,
            "maxKey" => Value::MaxKey,
            _ => return Err(unfit(kind).into()),
        })
    }
}

fn text_of(text: &rquickjs::String<'_>) -> std::result::Result<String, Fault> {
    match text.to_string() {
        Ok(text) => {
            charge(text.len())?;
            Ok(text)
        }
        Err(rquickjs::Error::Utf8(_)) => Err(unfit("a string with half a character").into()),
        Err(error) => Err(error.into()),
    }
}

fn unfit(what: &str) -> Error {
    Error::new(
        ErrorCode::JSInterpreterFailure,
        format!("cannot convert {what} to BSON"),
    )
}

fn date_ms(ms: f64) -> Result<i64> {
    match ms.is_nan() {
        true => Err(unfit("an invalid date")),
        false => Ok(ms as i64),
    }
}

/// Reads the digits of an object id.
fn object_id(hex: &str) -> Result<ObjectId> {
    let mut id = [0; 12];
    match from_hex(hex) {
        Some(bytes) if bytes.len() == id.len() => id.copy_from_slice(&bytes),
        _ => return Err(unfit("an object that is no object id")),
    }
    Ok(ObjectId(id))
}

/// Reads the text of a decimal.
pub(crate) fn decimal(text: &str) -> Result<Decimal128> {
    Decimal128::parse(text.trim())
        .map(|(value, _)| value)
        .ok_or_else(|| unfit("a text that is no decimal"))
}

/// Reads base64.
pub(crate) fn base64(text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text).map_err(|_| unfit("a text that is no base64"))
}

/// Writes base64.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads pairs of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs
        .remainder()
        .is_empty()
        .then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Writes pairs of hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
