//! Documents as objects of scripts, whose fields are brought over when a script asks for them.
//!
//! ```text
//! object of the class "Object" ──opaque──► Lazy: where the document's bytes are, values of fields that were asked for
//! ```
//!
//! A script that looks at two fields of a hundred pays for two, and a document that comes back as it went is copied. The fields
//! are no properties of the object at first: the interpreter asks [`get_own_property`] for what it does not find among these. The
//! first change, a field that is set, defined or deleted, makes properties of all fields; from then on nothing is asked for any more.
//!
//! What is asked for never changes properties itself, because the interpreter may be walking through them.
#![allow(unsafe_code)]

use crate::heap::Heap;
use crate::values::{Fault, Kept, Tools};
use nestor_model::raw::RawElement;
use nestor_model::statement::{charge, work};
use nestor_model::{Document, RawDoc, RawDocBuf, Str, ValueRef};
use rquickjs::qjs;
use rquickjs::{Ctx, Exception, Object, Value as JsValue};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::ptr::NonNull;
use std::rc::Rc;

/// The class of such objects in one interpreter.
pub(crate) type Class = qjs::JSClassID;

/// Questions after which all fields of a document are brought over, so that none has to be looked for any more.
const ASKED_MAX: u32 = 32;

/// The bytes that documents are parts of, counted as memory of the interpreter.
pub(crate) struct Source {
    bytes: RawDocBuf,
    heap: Rc<Heap>,
}

impl Source {
    /// Of a document or an array. Throws when there is no room for it.
    pub(crate) fn new(bytes: RawDocBuf, tools: &Tools<'_>) -> rquickjs::Result<Rc<Self>> {
        tools.take(bytes.as_bytes().len())?;
        let heap = tools.kept.heap.clone();
        Ok(Rc::new(Self { bytes, heap }))
    }

    /// All of it.
    pub(crate) fn all(&self) -> RawDoc<'_> {
        self.bytes.as_raw()
    }

    /// Where a part of it begins; `None` for what is no part of it.
    fn offset(&self, part: RawDoc<'_>) -> Option<usize> {
        let all = self.bytes.as_bytes();
        let at = (part.as_bytes().as_ptr() as usize).checked_sub(all.as_ptr() as usize)?;
        (at + part.len() <= all.len()).then_some(at)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.heap.give_back(self.bytes.as_bytes().len());
    }
}

/// What stands behind the objects of an interpreter, wherever these are.
#[derive(Default)]
pub(crate) struct Boxes(RefCell<Vec<NonNull<Lazy>>>);

impl Boxes {
    /// Puts one into a box, whose place is its own until it is taken out.
    fn put(&self, lazy: Lazy) -> NonNull<Lazy> {
        let mut all = self.0.borrow_mut();
        lazy.place.set(all.len());
        let lazy = NonNull::from(Box::leak(Box::new(lazy)));
        all.push(lazy);
        lazy
    }

    /// Takes one out.
    ///
    /// # Safety
    /// It was put in here and not taken out, and nobody uses it any more.
    unsafe fn take(&self, lazy: NonNull<Lazy>) -> Box<Lazy> {
        let mut all = self.0.borrow_mut();
        // SAFETY: what is in the list is alive.
        unsafe {
            let place = lazy.as_ref().place.get();
            all.swap_remove(place);
            if let Some(moved) = all.get(place) {
                moved.as_ref().place.set(place);
            }
            Box::from_raw(lazy.as_ptr())
        }
    }

    /// Takes all out, without what the interpreter would give back for them.
    ///
    /// # Safety
    /// The interpreter that has the objects does not run, and is restored to when they were not there.
    pub(crate) unsafe fn clear(&self) {
        for lazy in self.0.take() {
            // SAFETY: what is in the list is alive; by the caller's promise nobody uses it any more.
            drop(unsafe { Box::from_raw(lazy.as_ptr()) });
        }
    }
}

/// What stands behind an object.
pub(crate) struct Lazy {
    boxes: Rc<Boxes>,
    place: Cell<usize>,
    source: Rc<Source>,
    at: usize,
    /// All fields are properties of the object.
    is_plain: Cell<bool>,
    asked: Cell<u32>,
    fields: RefCell<Fields>,
    /// Bytes of the heap that are taken for the fields.
    taken: Cell<usize>,
}

/// Values that were brought over. Whoever takes one out owns a reference of its own.
enum Fields {
    /// Those that are objects, by the place of their element: each time one asks for such a field it is the same object.
    Few(Vec<(usize, qjs::JSValue)>),
    /// All.
    All(HashMap<Str, qjs::JSValue>),
}

impl Fields {
    fn each(&self, run: impl FnMut(qjs::JSValue)) {
        match self {
            Self::Few(some) => some.iter().map(|(_, value)| *value).for_each(run),
            Self::All(all) => all.values().copied().for_each(run),
        }
    }
}

impl<'js> Tools<'js> {
    /// A reference to a value, beside the one that it stays.
    fn reference(&self, value: &JsValue<'js>) -> qjs::JSValue {
        // SAFETY: the context is alive, and the value of its interpreter.
        unsafe { qjs::JS_DupValue(self.ctx.as_raw().as_ptr(), value.as_raw()) }
    }

    /// The value that somebody keeps a reference to.
    fn kept_value(&self, value: qjs::JSValue) -> JsValue<'js> {
        // SAFETY: whoever keeps the reference keeps the value alive; this makes one of its own.
        unsafe { JsValue::from_raw(self.ctx.clone(), qjs::JS_DupValue(self.ctx.as_raw().as_ptr(), value)) }
    }

    /// Gives a reference back.
    fn release(&self, value: qjs::JSValue) {
        // SAFETY: who calls this had the reference, and does not use it any more.
        unsafe { qjs::JS_FreeValue(self.ctx.as_raw().as_ptr(), value) };
    }

    /// Counts memory that the interpreter does not know of. Throws when there is no room.
    fn take(&self, bytes: usize) -> rquickjs::Result<()> {
        if self.kept.heap.take(bytes) {
            return Ok(());
        }
        let ctx = self.ctx.as_raw().as_ptr();
        // The interpreter collects garbage by what it allocated itself, and does not know what its objects keep alive here.
        // SAFETY: the context is alive; any allocation may collect garbage, this is no other place.
        unsafe { qjs::JS_RunGC(qjs::JS_GetRuntime(ctx)) };
        if self.kept.heap.take(bytes) {
            return Ok(());
        }
        // SAFETY: the context is alive.
        unsafe { qjs::JS_ThrowOutOfMemory(ctx) };
        Err(rquickjs::Error::Exception)
    }
}

/// Makes the class, once in an interpreter; its objects inherit from `prototype`.
pub(crate) fn class(prototype: &Object<'_>) -> rquickjs::Result<Class> {
    static METHODS: qjs::JSClassExoticMethods = qjs::JSClassExoticMethods {
        get_own_property: Some(get_own_property),
        get_own_property_names: Some(get_own_property_names),
        delete_property: Some(delete_property),
        define_own_property: Some(define_own_property),
        has_property: None,
        get_property: None,
        set_property: None,
    };
    let definition = qjs::JSClassDef {
        class_name: c"Object".as_ptr(),
        finalizer: Some(finalize),
        gc_mark: Some(mark),
        call: None,
        exotic: std::ptr::addr_of!(METHODS).cast_mut(),
    };
    let ctx = prototype.ctx().as_raw().as_ptr();
    let mut class = 0;
    // SAFETY: the context is alive. The interpreter copies the definition and keeps the address of the methods, which are static
    // and which it only reads. It owns the reference to the prototype that it is given.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx);
        qjs::JS_NewClassID(runtime, &mut class);
        if qjs::JS_NewClass(runtime, class, &definition) != 0 {
            return Err(rquickjs::Error::Unknown);
        }
        qjs::JS_SetClassProto(ctx, class, qjs::JS_DupValue(ctx, prototype.as_value().as_raw()));
    }
    Ok(class)
}

/// An object for a document, which is a part of `source` or else copied.
pub(crate) fn object<'js>(
    tools: &Tools<'js>,
    source: Option<&Rc<Source>>,
    doc: RawDoc<'_>,
) -> rquickjs::Result<JsValue<'js>> {
    let part = source.and_then(|source| source.offset(doc).map(|at| (source.clone(), at)));
    let (source, at) = match part {
        Some(part) => part,
        None => (Source::new(doc.to_buf(), tools)?, 0),
    };
    let ctx = tools.ctx.as_raw().as_ptr();
    tools.take(size_of::<Lazy>())?;
    let boxes = tools.kept.boxes.clone();
    let lazy = Lazy {
        boxes: boxes.clone(),
        place: Cell::new(0),
        source,
        at,
        is_plain: Cell::new(false),
        asked: Cell::new(0),
        fields: RefCell::new(Fields::Few(Vec::new())),
        taken: Cell::new(size_of::<Lazy>()),
    };
    // SAFETY: the context is alive and the class belongs to its interpreter. The object owns the box from here on, until
    // `finalize` takes it back.
    unsafe {
        let object = qjs::JS_NewObjectClass(ctx, tools.kept.class);
        if qjs::JS_IsException(object) {
            tools.kept.heap.give_back(size_of::<Lazy>());
            return Err(rquickjs::Error::Exception);
        }
        qjs::JS_SetOpaque(object, boxes.put(lazy).as_ptr().cast());
        Ok(JsValue::from_raw(tools.ctx.clone(), object))
    }
}

/// What stands behind an object, if it is of the class.
pub(crate) fn behind<'o>(object: &'o Object<'_>, class: Class) -> Option<&'o Lazy> {
    let object = object.as_value().as_raw();
    // SAFETY: the value is an object. Only `object` makes objects of this class, and gives each a box that lives as long as it does.
    unsafe { (qjs::JS_GetClassID(object) == class).then(|| opaque(object))? }
}

/// What stands behind an object of the class.
///
/// # Safety
/// The object is of the class, and lives as long as the reference is used.
unsafe fn opaque<'o>(object: qjs::JSValue) -> Option<&'o Lazy> {
    let mut class = 0;
    // SAFETY: by the caller's promise the pointer, if there is one, is the box of `object`, and the box is alive.
    unsafe { qjs::JS_GetAnyOpaque(object, &mut class).cast::<Lazy>().as_ref() }
}

impl Lazy {
    fn doc(&self) -> RawDoc<'_> {
        let bytes = &self.source.bytes.as_bytes()[self.at..];
        let len = bytes.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
        // SAFETY: the bytes from `at` on are a document within one that was validated; each begins with its length.
        unsafe { RawDoc::from_validated(&bytes[..len]) }
    }

    fn field(&self, name: &str) -> Option<RawElement<'_>> {
        self.doc().elements().find(|field| field.name() == name)
    }

    /// Counts a question.
    fn ask(&self, tools: &Tools<'_>) -> Result<(), Fault> {
        self.asked.set(self.asked.get().saturating_add(1));
        match self.asked.get() == ASKED_MAX {
            true => self.bring_all(tools),
            false => Ok(()),
        }
    }

    /// Whether there is such a field.
    fn has(&self, tools: &Tools<'_>, name: &str) -> Result<bool, Fault> {
        self.ask(tools)?;
        Ok(match &*self.fields.borrow() {
            Fields::All(all) => all.contains_key(name),
            Fields::Few(_) => self.field(name).is_some(),
        })
    }

    /// The value of a field.
    fn get<'js>(&self, tools: &Tools<'js>, name: &str) -> Result<Option<JsValue<'js>>, Fault> {
        self.ask(tools)?;
        if let Fields::All(all) = &*self.fields.borrow() {
            return Ok(all.get(name).map(|value| tools.kept_value(*value)));
        }
        let Some(field) = self.field(name) else {
            return Ok(None);
        };
        if let Some(known) = self.known(tools, &field) {
            return Ok(Some(known));
        }
        let value = tools.convert(field.value(), Some(&self.source))?;
        if value.is_object() {
            self.take(tools, size_of::<(usize, qjs::JSValue)>())?;
            if let Fields::Few(some) = &mut *self.fields.borrow_mut() {
                some.push((field.offset(), tools.reference(&value)));
            }
        }
        Ok(Some(value))
    }

    /// The object that a field is, if it was asked for before.
    fn known<'js>(&self, tools: &Tools<'js>, field: &RawElement<'_>) -> Option<JsValue<'js>> {
        let found = match &*self.fields.borrow() {
            Fields::Few(some) => some
                .iter()
                .find(|(at, _)| *at == field.offset())
                .map(|(_, value)| *value),
            Fields::All(all) => all.get(field.name()).copied(),
        };
        found.map(|value| tools.kept_value(value))
    }

    /// Counts memory for fields.
    fn take(&self, tools: &Tools<'_>, bytes: usize) -> Result<(), Fault> {
        tools.take(bytes)?;
        self.taken.set(self.taken.get() + bytes);
        Ok(())
    }

    /// Brings all fields over.
    fn bring_all(&self, tools: &Tools<'_>) -> Result<(), Fault> {
        let mut all = HashMap::new();
        let brought = self.for_each(tools, |name, value| {
            self.take(tools, size_of::<(Str, qjs::JSValue)>() * 2 + name.len())?;
            all.insert(Str::from(name), tools.reference(&value));
            Ok(())
        });
        let before = match brought {
            Ok(()) => self.fields.replace(Fields::All(all)),
            Err(fault) => {
                Fields::All(all).each(|value| tools.release(value));
                return Err(fault);
            }
        };
        before.each(|value| tools.release(value));
        Ok(())
    }

    /// Shows each field; of several with one name the first.
    fn for_each<'js>(
        &self,
        tools: &Tools<'js>,
        mut show: impl FnMut(&str, JsValue<'js>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut seen = HashSet::new();
        for field in self.doc().elements() {
            work(1)?;
            if !seen.insert(field.name()) {
                continue;
            }
            let value = match self.known(tools, &field) {
                Some(known) => known,
                None => tools.convert(field.value(), Some(&self.source))?,
            };
            show(field.name(), value)?;
        }
        Ok(())
    }

    /// Makes properties of all fields.
    fn make_plain(&self, tools: &Tools<'_>, object: qjs::JSValue) -> Result<(), Fault> {
        if self.is_plain.get() {
            return Ok(());
        }
        let ctx = tools.ctx.as_raw().as_ptr();
        self.for_each(tools, |name, value| {
            // SAFETY: the context and the object are alive; the interpreter owns the reference to the value that it is given.
            unsafe {
                let atom = qjs::JS_NewAtomLen(ctx, name.as_ptr().cast(), name.len() as _);
                let flags = (qjs::JS_PROP_C_W_E | qjs::JS_PROP_NO_EXOTIC) as c_int;
                let defined = qjs::JS_DefinePropertyValue(ctx, object, atom, tools.reference(&value), flags);
                qjs::JS_FreeAtom(ctx, atom);
                match defined {
                    1 => Ok(()),
                    0 => Err(Exception::throw_type(&tools.ctx, "the fields of this object cannot be changed").into()),
                    _ => Err(rquickjs::Error::Exception.into()),
                }
            }
        })?;
        self.is_plain.set(true);
        let fields = self.fields.replace(Fields::Few(Vec::new()));
        fields.each(|value| tools.release(value));
        Ok(())
    }

    /// The document as a script left it.
    pub(crate) fn document<'js>(
        &self,
        tools: &Tools<'js>,
        object: &Object<'js>,
        depth: usize,
    ) -> Result<Document, Fault> {
        if self.is_plain.get() {
            let is_int = |field: &RawElement<'_>| matches!(field.value(), ValueRef::Int32(_));
            let ints: HashSet<&str> = (self.doc().elements().filter(is_int))
                .map(|field| field.name())
                .collect();
            return tools.document(object, &ints, depth);
        }
        let mut doc = Document::new();
        for field in self.doc().elements() {
            work(1)?;
            charge(2 * field.as_bytes().len())?;
            let value = match self.known(tools, &field).filter(JsValue::is_object) {
                Some(known) => tools.to_value_at(&known, depth + 1)?,
                None => field.value().to_value(),
            };
            doc.push(field.name(), value);
        }
        Ok(doc)
    }
}

/// Runs a method of the class. What is wrong with it is thrown.
///
/// # Safety
/// The interpreter calls it, with a context that is alive and an object of the class.
unsafe fn answer(
    ctx: *mut qjs::JSContext,
    object: qjs::JSValue,
    run: impl FnOnce(&Tools<'_>, &Lazy) -> Result<c_int, Fault>,
) -> c_int {
    // SAFETY: by the caller's promise.
    let (Some(raw), Some(lazy)) = (NonNull::new(ctx), unsafe { opaque(object) }) else {
        return 0;
    };
    // SAFETY: by the caller's promise.
    let ctx = unsafe { Ctx::from_raw(raw) };
    let Some(kept) = Kept::current() else {
        Exception::throw_internal(&ctx, "no script is running");
        return -1;
    };
    let tools = Tools { ctx, kept };
    match run(&tools, lazy) {
        Ok(answer) => answer,
        Err(Fault::Js(rquickjs::Error::Exception)) => -1,
        Err(Fault::Js(error)) => {
            Exception::throw_internal(&tools.ctx, &error.to_string());
            -1
        }
        Err(Fault::Ours(error)) => {
            Exception::throw_internal(&tools.ctx, error.message());
            -1
        }
    }
}

/// Runs `run` with the name that an atom is; nothing for symbols.
///
/// # Safety
/// The context is alive, and the atom is of its interpreter.
unsafe fn with_name<R>(ctx: &Ctx<'_>, atom: qjs::JSAtom, run: impl FnOnce(&str) -> R) -> Option<R> {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: by the caller's promise; the value that the interpreter gives is owned from here on.
    let name = unsafe { JsValue::from_raw(ctx.clone(), qjs::JS_AtomToValue(raw, atom)) };
    let mut len = 0;
    // SAFETY: the value is a string that stays alive; the bytes are given back below.
    let bytes = match name.is_string() {
        true => unsafe { qjs::JS_ToCStringLen2(raw, &mut len, name.as_raw(), false) },
        false => return None,
    };
    if bytes.is_null() {
        ctx.catch();
        return None;
    }
    // SAFETY: so many bytes are there until they are given back.
    let text = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len as usize) };
    // Half characters are in no field's name.
    let result = std::str::from_utf8(text).ok().map(run);
    // SAFETY: the bytes came from the interpreter, and nobody looks at them any more.
    unsafe { qjs::JS_FreeCString(raw, bytes) };
    result
}

/// The field of that name, unless all fields are properties.
unsafe extern "C" fn get_own_property(
    ctx: *mut qjs::JSContext,
    descriptor: *mut qjs::JSPropertyDescriptor,
    object: qjs::JSValue,
    atom: qjs::JSAtom,
) -> c_int {
    let get = |tools: &Tools<'_>, lazy: &Lazy| {
        if lazy.is_plain.get() {
            return Ok(0);
        }
        if descriptor.is_null() {
            // SAFETY: the interpreter gives an atom of its own.
            let found = unsafe { with_name(&tools.ctx, atom, |name| lazy.has(tools, name)) };
            return Ok(c_int::from(found.transpose()? == Some(true)));
        }
        // SAFETY: as above.
        let Some(found) = (unsafe { with_name(&tools.ctx, atom, |name| lazy.get(tools, name)) }) else {
            return Ok(0);
        };
        let Some(value) = found? else {
            return Ok(0);
        };
        // SAFETY: the interpreter gives room for a descriptor, and owns the reference to the value in it.
        unsafe {
            *descriptor = qjs::JSPropertyDescriptor {
                flags: qjs::JS_PROP_C_W_E as c_int,
                value: tools.reference(&value),
                getter: qjs::JS_UNDEFINED,
                setter: qjs::JS_UNDEFINED,
            };
        }
        Ok(1)
    };
    // SAFETY: the interpreter calls.
    unsafe { answer(ctx, object, get) }
}

/// The names of all fields, unless they are properties.
unsafe extern "C" fn get_own_property_names(
    ctx: *mut qjs::JSContext,
    names: *mut *mut qjs::JSPropertyEnum,
    count: *mut u32,
    object: qjs::JSValue,
) -> c_int {
    // SAFETY: the interpreter gives room for both.
    unsafe {
        *names = std::ptr::null_mut();
        *count = 0;
    }
    let list = |tools: &Tools<'_>, lazy: &Lazy| {
        if lazy.is_plain.get() || lazy.doc().is_empty() {
            return Ok(0);
        }
        let raw = tools.ctx.as_raw().as_ptr();
        let fields = lazy.doc().elements().count();
        work(fields)?;
        // SAFETY: what is written stays within the room that the interpreter gave, and is freed by the interpreter.
        unsafe {
            let list =
                qjs::js_malloc(raw, (fields * size_of::<qjs::JSPropertyEnum>()) as _).cast::<qjs::JSPropertyEnum>();
            if list.is_null() {
                return Err(rquickjs::Error::Exception.into());
            }
            let mut seen = HashSet::with_capacity(fields);
            let mut written = 0;
            for field in lazy.doc().elements().filter(|field| seen.insert(field.name())) {
                let name = field.name();
                let atom = qjs::JS_NewAtomLen(raw, name.as_ptr().cast(), name.len() as _);
                list.add(written).write(qjs::JSPropertyEnum {
                    is_enumerable: true,
                    atom,
                });
                written += 1;
            }
            *names = list;
            *count = written as u32;
        }
        Ok(0)
    };
    // SAFETY: the interpreter calls.
    unsafe { answer(ctx, object, list) }
}

/// Asked for what is no property.
unsafe extern "C" fn delete_property(ctx: *mut qjs::JSContext, object: qjs::JSValue, atom: qjs::JSAtom) -> c_int {
    let delete = |tools: &Tools<'_>, lazy: &Lazy| {
        if lazy.is_plain.get() {
            return Ok(1);
        }
        lazy.make_plain(tools, object)?;
        // SAFETY: the interpreter gives an object and an atom of its own.
        Ok(unsafe { qjs::JS_DeleteProperty(tools.ctx.as_raw().as_ptr(), object, atom, 0) })
    };
    // SAFETY: the interpreter calls.
    unsafe { answer(ctx, object, delete) }
}

/// Asked to make a property that is not there.
unsafe extern "C" fn define_own_property(
    ctx: *mut qjs::JSContext,
    object: qjs::JSValue,
    atom: qjs::JSAtom,
    value: qjs::JSValue,
    getter: qjs::JSValue,
    setter: qjs::JSValue,
    flags: c_int,
) -> c_int {
    let define = |tools: &Tools<'_>, lazy: &Lazy| {
        lazy.make_plain(tools, object)?;
        let flags = flags | qjs::JS_PROP_NO_EXOTIC as c_int;
        // SAFETY: the interpreter gives values and an atom of its own, which it keeps.
        Ok(unsafe { qjs::JS_DefineProperty(tools.ctx.as_raw().as_ptr(), object, atom, value, getter, setter, flags) })
    };
    // SAFETY: the interpreter calls.
    unsafe { answer(ctx, object, define) }
}

/// Frees what stands behind an object.
unsafe extern "C" fn finalize(runtime: *mut qjs::JSRuntime, object: qjs::JSValue) {
    let mut class = 0;
    // SAFETY: the interpreter finalizes each object once, so that nobody uses the box of `object` any more. It owned the references.
    unsafe {
        let Some(lazy) = NonNull::new(qjs::JS_GetAnyOpaque(object, &mut class).cast::<Lazy>()) else {
            return;
        };
        let boxes = lazy.as_ref().boxes.clone();
        let lazy = boxes.take(lazy);
        let fields = lazy.fields.replace(Fields::Few(Vec::new()));
        fields.each(|value| qjs::JS_FreeValueRT(runtime, value));
        lazy.source.heap.give_back(lazy.taken.get());
    }
}

/// Shows the collector of garbage what an object refers to.
unsafe extern "C" fn mark(runtime: *mut qjs::JSRuntime, object: qjs::JSValue, mark: qjs::JS_MarkFunc) {
    // SAFETY: the interpreter gives an object of the class.
    if let Some(Ok(fields)) = unsafe { opaque(object) }.map(|lazy| lazy.fields.try_borrow()) {
        // SAFETY: the values are alive: the object owns references to them.
        fields.each(|value| unsafe { qjs::JS_MarkValue(runtime, value, mark) });
    }
}
