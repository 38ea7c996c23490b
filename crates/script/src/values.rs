//! Values of BSON as values of the language, and back.
//!
//! | BSON | in a script |
//! |---|---|
//! | int, double | number; back a double, but an int where a field of a document keeps the number it had |
//! | long, decimal, objectId, timestamp, binData, dbPointer, code, minKey, maxKey | object of the type that the shell has for it |
//! | date, regex, string, bool, null, array | the language's own |
//! | object | an object whose fields come over when they are asked for (`lazy`) |
//! | undefined, no value | `undefined` |
//!
//! Functions go back as code. The constructors of the shell's types stand in `prelude.js`.

use crate::heap::Heap;
use crate::lazy::{self, Boxes, Class, Source};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nestor_model::raw::DEPTH_MAX;
use nestor_model::statement::{charge, work};
use nestor_model::{
    Array, ArrayRef, Binary, Decimal128, DocRef, Document, Error, ErrorCode, ObjectId, Regex, Result, Str, Timestamp,
    Value, ValueRef,
};
use rquickjs::atom::PredefinedAtom;
use rquickjs::function::IntoArgs;
use rquickjs::object::Filter;
use rquickjs::{Array as JsArray, Coerced, Ctx, Function, Object, Persistent, Symbol, Value as JsValue};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

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

/// What an interpreter keeps for its calls.
pub(crate) struct Kept {
    /// `(kind, parts…)` to a value of a type of BSON's own.
    pub(crate) make: Persistent<Function<'static>>,
    /// The parts of such a value.
    pub(crate) parts: Persistent<Function<'static>>,
    /// Calls a map function; the pairs that it emits.
    pub(crate) emitting: Persistent<Function<'static>>,
    /// Sets a global variable.
    pub(crate) global: Persistent<Function<'static>>,
    /// The name of the property that says which type of BSON's own an object is.
    pub(crate) kind: Persistent<Symbol<'static>>,
    /// Of objects that are documents.
    pub(crate) class: Class,
    /// What stands behind these.
    pub(crate) boxes: Rc<Boxes>,
    /// The interpreter's memory.
    pub(crate) heap: Rc<Heap>,
}

thread_local! {
    /// Of the interpreter that runs a script on this thread.
    static CURRENT: RefCell<Option<Rc<Kept>>> = const { RefCell::new(None) };
}

impl Kept {
    /// Of the interpreter that runs.
    pub(crate) fn current() -> Option<Rc<Self>> {
        CURRENT.with_borrow(Option::clone)
    }

    /// Runs `run` while this is the interpreter that runs.
    pub(crate) fn running<R>(self: &Rc<Self>, run: impl FnOnce() -> R) -> R {
        struct Before(Option<Rc<Kept>>);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.replace(self.0.take());
            }
        }
        let _before = Before(CURRENT.replace(Some(self.clone())));
        run()
    }
}

/// Brings values over.
pub(crate) struct Tools<'js> {
    pub(crate) ctx: Ctx<'js>,
    pub(crate) kept: Rc<Kept>,
}

impl<'js> Tools<'js> {
    /// A value of a type of BSON's own.
    fn make<A: IntoArgs<'js>>(&self, args: A) -> std::result::Result<JsValue<'js>, Fault> {
        Ok(self.kept.make.clone().restore(&self.ctx)?.call(args)?)
    }

    /// Into the language.
    pub(crate) fn to_js(&self, value: ValueRef<'_>) -> std::result::Result<JsValue<'js>, Fault> {
        self.convert(value, None)
    }

    /// Into the language: a value that is a part of `source`, if it is given.
    pub(crate) fn convert(
        &self,
        value: ValueRef<'_>,
        source: Option<&Rc<Source>>,
    ) -> std::result::Result<JsValue<'js>, Fault> {
        let ctx = self.ctx.clone();
        work(1)?;
        Ok(match value {
            ValueRef::Missing | ValueRef::Undefined => JsValue::new_undefined(ctx),
            ValueRef::Null => JsValue::new_null(ctx),
            ValueRef::Bool(value) => JsValue::new_bool(ctx, value),
            ValueRef::Int32(value) => JsValue::new_int(ctx, value),
            ValueRef::Double(value) => JsValue::new_float(ctx, value),
            ValueRef::String(text) | ValueRef::Symbol(text) => rquickjs::String::from_str(ctx, text)?.into_value(),
            ValueRef::Document(DocRef::Raw(doc)) => lazy::object(self, source, doc)?,
            ValueRef::Document(doc) => {
                let source = Source::new(doc.to_raw(), self)?;
                lazy::object(self, Some(&source), source.all())?
            }
            ValueRef::Array(ArrayRef::Raw(items)) if source.is_none() => {
                let source = Source::new(items.to_buf(), self)?;
                self.array(ArrayRef::Raw(source.all()), Some(&source))?
            }
            ValueRef::Array(items) => self.array(items, source)?,
            ValueRef::DateTime(ms) => self.make(("date", ms as f64))?,
            ValueRef::Int64(value) => self.make(("long", rquickjs::BigInt::from_i64(ctx, value)?))?,
            ValueRef::Decimal128(value) => self.make(("decimal", value.to_string()))?,
            ValueRef::ObjectId(id) => self.make(("objectId", id.to_string()))?,
            ValueRef::Timestamp(time) => self.make(("timestamp", f64::from(time.secs), f64::from(time.inc)))?,
            ValueRef::Binary { subtype, bytes } => self.make(("binData", subtype, STANDARD.encode(bytes)))?,
            ValueRef::Regex { pattern, options } => self.make(("regex", pattern, options))?,
            ValueRef::DbPointer { namespace, id } => self.make(("dbPointer", namespace, id.to_string()))?,
            ValueRef::Code(code) | ValueRef::CodeWithScope { code, .. } => self.make(("code", code))?,
            ValueRef::MinKey => self.make(("minKey",))?,
            ValueRef::MaxKey => self.make(("maxKey",))?,
        })
    }

    fn array(&self, items: ArrayRef<'_>, source: Option<&Rc<Source>>) -> std::result::Result<JsValue<'js>, Fault> {
        let array = JsArray::new(self.ctx.clone())?;
        for (at, item) in items.iter().enumerate() {
            array.set(at, self.convert(item, source)?)?;
        }
        Ok(array.into_value())
    }

    /// Out of the language.
    pub(crate) fn to_value(&self, value: &JsValue<'js>) -> std::result::Result<Value, Fault> {
        self.value(value, false, 0)
    }

    /// As [`Self::to_value`], within other values.
    pub(crate) fn to_value_at(&self, value: &JsValue<'js>, depth: usize) -> std::result::Result<Value, Fault> {
        self.value(value, false, depth)
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
        if let Some(lazy) = lazy::behind(object, self.kept.class) {
            return Ok(Value::Document(lazy.document(self, object, depth)?));
        }
        let kind = self.kept.kind.clone().restore(&self.ctx)?;
        if let Ok(kind) = object.get::<_, String>(kind.as_atom()) {
            return self.of_kind(&kind, object);
        }
        if value.is_function() {
            let source: String = Function::from_value(value.clone())?
                .get::<_, Function<'js>>(PredefinedAtom::ToString)?
                .call((rquickjs::function::This(value.clone()),))?;
            return Ok(Value::Code(source.into()));
        }
        Ok(Value::Document(self.document(object, &HashSet::new(), depth)?))
    }

    /// The properties of an object; numbers of the names in `ints` stay ints.
    pub(crate) fn document(
        &self,
        object: &Object<'js>,
        ints: &HashSet<&str>,
        depth: usize,
    ) -> std::result::Result<Document, Fault> {
        let mut doc = Document::new();
        for entry in object.own_props::<String, JsValue<'js>>(Filter::new().string().enum_only()) {
            let (name, value) = entry?;
            if name.contains('\0') {
                return Err(Error::bad_value("a field's name must not contain a null byte").into());
            }
            charge(name.len())?;
            let was_int = value.is_number() && ints.contains(name.as_str());
            let value = self.value(&value, was_int, depth + 1)?;
            doc.push(Str::from(name), value);
        }
        Ok(doc)
    }

    /// A value of a type of BSON's own.
    fn of_kind(&self, kind: &str, object: &Object<'js>) -> std::result::Result<Value, Fault> {
        let parts: JsArray<'js> = self.kept.parts.clone().restore(&self.ctx)?.call((object.clone(),))?;
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
