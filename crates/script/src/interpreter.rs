//! One interpreter: it serves one statement after the other of its thread, and is again what it was before each of them.

use crate::heap::{Heap, Limited};
use crate::pace::Pace;
use crate::values::{Fault, Kept, Tools, base64, decimal, from_hex, to_base64, to_hex};
use crate::{Form, Function, Globals, lazy};
use md5::{Digest, Md5};
use nestor_model::statement::{self, look, work};
use nestor_model::{Error, ErrorCode, ObjectId, Result, Value, ValueRef};
use rquickjs::context::EvalOptions;
use rquickjs::context::intrinsic::{Date, Eval, Json, MapSet, Promise, RegExp, RegExpCompiler, TypedArrays};
use rquickjs::function::{Args, This};
use rquickjs::module::WriteOptions;
use rquickjs::{
    Array, Coerced, Context, Ctx, Exception, Module, Object, Persistent, Runtime, Symbol, Value as JsValue, qjs,
};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What calls within a script may take of the thread's stack, in bytes.
pub const STACK_BYTES_MAX: usize = 512 * 1024;

/// What is called for the interpreter's own functions, a document as `this`.
type JsFunction<'js> = rquickjs::Function<'js>;

/// Units of work that a call counts for itself.
const CALL: usize = 8;

/// Elements of an array, or characters of a text, that the language's own methods look at in one unit of work.
const ELEMENTS_PER_UNIT: usize = 32;

thread_local! {
    static INTERPRETERS: RefCell<Interpreters> = const { RefCell::new(Interpreters { serving: Vec::new(), waiting: Vec::new() }) };
}

/// Interpreters that one statement has on a thread.
const SERVING_MAX: usize = 4;

/// Interpreters that a thread keeps for the next statement, some 0.7 MB each, half of them copies: seldom has one statement more.
const WAITING_MAX: usize = 2;

/// Those of a thread.
struct Interpreters {
    /// What the statement that runs has, by the id of their globals; 0 for none.
    serving: Vec<(u64, Rc<Interpreter>)>,
    /// As new, for the next statement.
    waiting: Vec<Interpreter>,
}

/// Runs `run` with the interpreter of this thread's statement that has these globals.
pub(crate) fn with<R>(globals: Option<&Arc<Globals>>, run: impl FnOnce(&Interpreter) -> Result<R>) -> Result<R> {
    work(CALL)?;
    let id = globals.map_or(0, |globals| globals.id);
    let found = INTERPRETERS.with_borrow(|all| {
        let mut serving = all.serving.iter();
        serving.find(|(of, _)| *of == id).map(|(_, one)| one.clone())
    });
    let interpreter = match found {
        Some(interpreter) => interpreter,
        None => {
            let waiting = INTERPRETERS.with_borrow_mut(|all| all.waiting.pop());
            let interpreter = match waiting {
                Some(interpreter) => interpreter,
                None => Interpreter::new()?,
            };
            let interpreter = Rc::new(interpreter);
            interpreter.begin(globals)?;
            statement::at_end(statement_ended);
            INTERPRETERS.with_borrow_mut(|all| {
                if all.serving.len() >= SERVING_MAX {
                    all.serving.remove(0);
                }
                all.serving.push((id, interpreter.clone()));
            });
            interpreter
        }
    };
    let result = run(&interpreter);
    interpreter.heap.publish();
    result
}

/// What the statement had is as new, and there for the next one.
fn statement_ended() {
    let served = INTERPRETERS.with_borrow_mut(|all| std::mem::take(&mut all.serving));
    for (_, interpreter) in served {
        // Nobody else has it: who runs a function lets go of its interpreter before the statement ends.
        let Ok(mut interpreter) = Rc::try_unwrap(interpreter) else {
            continue;
        };
        if INTERPRETERS.with_borrow(|all| all.waiting.len() < WAITING_MAX) {
            interpreter.restore();
            INTERPRETERS.with_borrow_mut(|all| all.waiting.push(interpreter));
        }
    }
}

/// The fields are dropped in this order: what belongs to the interpreter before the interpreter.
pub(crate) struct Interpreter {
    functions: RefCell<HashMap<u64, Persistent<JsFunction<'static>>>>,
    kept: Rc<Kept>,
    context: Context,
    _runtime: Runtime,
    pace: Rc<Pace>,
    heap: Rc<Heap>,
}

impl Drop for Interpreter {
    /// As new it can be taken apart, whatever a script that was stopped has left.
    fn drop(&mut self) {
        self.restore();
        self.heap.release();
    }
}

impl Interpreter {
    fn new() -> Result<Self> {
        let heap = Heap::new();
        let runtime = Runtime::new_with_alloc(Limited(heap.clone())).map_err(|error| cannot_start(&error))?;
        // Without proxies, which could answer differently each time they are asked. Nobody waits for promises, but without them the
        // interpreter has no class for the asynchronous functions that its parser knows, and dies of them.
        let context =
            Context::custom::<(Date, Eval, RegExpCompiler, RegExp, Json, MapSet, TypedArrays, Promise)>(&runtime)
                .map_err(|error| cannot_start(&error))?;
        let kept = context
            .with(|ctx| prelude(&ctx, &heap))
            .map_err(|error| cannot_start(&error))?;
        let pace = context
            .with(|ctx| Pace::of(&ctx, &heap))
            .map_err(|error| cannot_start(&error))?;
        let pace = Rc::new(pace);
        let (of_handler, heap_of_handler) = (pace.clone(), Rc::downgrade(&heap));
        runtime.set_interrupt_handler(Some(Box::new(move || {
            if !of_handler.asked() {
                return false;
            }
            if let Some(heap) = heap_of_handler.upgrade() {
                heap.publish();
            }
            look().is_err()
        })));
        heap.keep();
        Ok(Self {
            functions: RefCell::default(),
            kept: Rc::new(kept),
            context,
            _runtime: runtime,
            pace,
            heap,
        })
    }

    /// Serves the statement that runs on this thread.
    fn begin(&self, globals: Option<&Arc<Globals>>) -> Result<()> {
        self.heap.wake();
        self.pace.begin();
        self.context.with(|ctx| stack_begins_here(&ctx));
        globals.map_or(Ok(()), |globals| self.set(globals))
    }

    /// Is as new again.
    #[allow(unsafe_code)]
    fn restore(&mut self) {
        for (_, function) in self.functions.get_mut().drain() {
            // It would give a reference back that is not there any more.
            std::mem::forget(function);
        }
        // SAFETY: nobody runs the interpreter, since it is ours alone. What was brought out of it since it was kept are these functions and the boxes.
        unsafe {
            self.kept.boxes.clear();
            self.heap.restore();
        }
    }

    fn set(&self, globals: &Globals) -> Result<()> {
        self.run(|tools| {
            let global = self.kept.global.clone().restore(&tools.ctx)?;
            let stored = globals.stored.as_ref().iter().map(|(name, value)| (name, value, true));
            let given = globals.given.as_ref().iter().map(|(name, value)| (name, value, false));
            for (name, value, is_stored) in stored.chain(given) {
                let value = match value {
                    ValueRef::Code(code) | ValueRef::CodeWithScope { code, .. } => {
                        match compile(&tools.ctx, code, Form::Function) {
                            Err(rquickjs::Error::Exception) if is_stored && look().is_ok() => {
                                tools.ctx.catch();
                                continue;
                            }
                            compiled => compiled?.into_value(),
                        }
                    }
                    other => tools.to_js(other)?,
                };
                global.call::<_, ()>((name, value))?;
            }
            Ok(())
        })
    }

    pub(crate) fn call(&self, function: &Function, this: ValueRef<'_>, args: &[ValueRef<'_>]) -> Result<Value> {
        self.run(|tools| {
            let compiled = self.compiled(&tools.ctx, function)?;
            let mut list = Args::new(tools.ctx.clone(), args.len());
            list.this(tools.to_js(this)?)?;
            for arg in args {
                list.push_arg(tools.to_js(*arg)?)?;
            }
            let returned: JsValue<'_> = compiled.call_arg(list)?;
            tools.to_value(&returned)
        })
    }

    pub(crate) fn holds(&self, function: &Function, document: ValueRef<'_>) -> Result<bool> {
        self.run(|tools| {
            let compiled = self.compiled(&tools.ctx, function)?;
            let document = tools.to_js(document)?;
            tools.ctx.globals().set("obj", document.clone())?;
            let returned: Coerced<bool> = compiled.call((This(document),))?;
            Ok(returned.0)
        })
    }

    pub(crate) fn emitted(&self, function: &Function, document: ValueRef<'_>) -> Result<Vec<(Value, Value)>> {
        self.run(|tools| {
            let compiled = self.compiled(&tools.ctx, function)?;
            let emitting = self.kept.emitting.clone().restore(&tools.ctx)?;
            let pairs: Array<'_> = emitting.call((compiled, tools.to_js(document)?))?;
            let mut emitted = Vec::with_capacity(pairs.len());
            for pair in pairs.iter::<Array<'_>>() {
                let pair = pair?;
                let part = |at| {
                    pair.get::<JsValue<'_>>(at)
                        .map_err(Fault::from)
                        .and_then(|part| tools.to_value(&part))
                };
                emitted.push((part(0)?, part(1)?));
            }
            Ok(emitted)
        })
    }

    /// Whether it can be said how often the interpreter asks.
    #[cfg(test)]
    pub(crate) fn has_pace(&self) -> bool {
        self.pace.is_known()
    }

    /// Runs what may throw; what was thrown becomes an error.
    fn run<R>(&self, run: impl for<'js> FnOnce(&Tools<'js>) -> std::result::Result<R, Fault>) -> Result<R> {
        self.context.with(|ctx| {
            self.heap.was_refused();
            let kept = self.kept.clone();
            let tools = Tools { ctx, kept };
            self.kept.running(|| run(&tools)).map_err(|fault| match fault {
                Fault::Ours(error) => error,
                Fault::Js(error) => thrown(&tools.ctx, &error, &self.heap),
            })
        })
    }

    fn compiled<'js>(&self, ctx: &Ctx<'js>, function: &Function) -> rquickjs::Result<JsFunction<'js>> {
        let known = self.functions.borrow().get(&function.id).cloned();
        if let Some(compiled) = known {
            return compiled.restore(ctx);
        }
        let compiled = compile(ctx, &function.source, function.form)?;
        let kept = Persistent::save(ctx, compiled.clone());
        self.functions.borrow_mut().insert(function.id, kept);
        Ok(compiled)
    }
}

/// What scripts may take of the stack is counted from here.
#[allow(unsafe_code)]
fn stack_begins_here(ctx: &Ctx<'_>) {
    // SAFETY: the context is alive, and its interpreter does not run.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
        qjs::JS_UpdateStackTop(runtime);
        qjs::JS_SetMaxStackSize(runtime, STACK_BYTES_MAX as _);
    }
}

/// Makes what scripts find beside the language.
fn prelude(ctx: &Ctx<'_>, heap: &Rc<Heap>) -> rquickjs::Result<Kept> {
    let prelude = compiled_prelude(ctx)?;
    let tools: Object<'_> = prelude.call((native(ctx)?,))?;
    let function = |name: &str| tools.get::<_, JsFunction<'_>>(name).map(|f| Persistent::save(ctx, f));
    let objects: Object<'_> = ctx.globals().get("Object")?;
    Ok(Kept {
        make: function("make")?,
        parts: function("parts")?,
        emitting: function("emitting")?,
        global: function("global")?,
        kind: Persistent::save(ctx, tools.get::<_, Symbol<'_>>("KIND")?),
        class: lazy::class(&objects.get("prototype")?)?,
        boxes: Rc::default(),
        heap: heap.clone(),
    })
}

/// The function of `prelude.js`. It is parsed once in a process, which takes longer than all else that makes an interpreter; from then on its
/// bytecode is read.
#[allow(unsafe_code)]
fn compiled_prelude<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<JsFunction<'js>> {
    static BYTECODE: OnceLock<Vec<u8>> = OnceLock::new();
    let module = match BYTECODE.get() {
        // SAFETY: the bytes are those that this library wrote in this process.
        Some(bytes) => unsafe { Module::load(ctx.clone(), bytes) }?,
        None => {
            let source = concat!("export default ", include_str!("prelude.js"));
            let module = Module::declare(ctx.clone(), "prelude", source)?;
            let bytes = module.write(WriteOptions {
                strip_source: true,
                ..WriteOptions::default()
            })?;
            // Another thread may have been faster: it wrote the same.
            let _ = BYTECODE.set(bytes);
            module
        }
    };
    let (module, _) = module.eval()?;
    module.get("default")
}

/// What the prelude needs and the language does not have.
fn native<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    fn or_throw<T>(ctx: &Ctx<'_>, result: Result<T>) -> rquickjs::Result<T> {
        result.map_err(|error| Exception::throw_type(ctx, error.message()))
    }
    let native = Object::new(ctx.clone())?;
    let function = |name: &str, function: JsFunction<'js>| native.set(name, function);
    function(
        "decimal",
        JsFunction::new(ctx.clone(), |ctx: Ctx<'_>, text: String| {
            or_throw(&ctx, decimal(&text).map(|value| value.to_string()))
        })?,
    )?;
    function(
        "objectId",
        JsFunction::new(ctx.clone(), || ObjectId::generate(now_ms()).to_string())?,
    )?;
    function(
        "uuid",
        JsFunction::new(ctx.clone(), || {
            let mut bytes = [0; 16];
            bytes[..12].copy_from_slice(&ObjectId::generate(now_ms()).0);
            bytes = Md5::digest(bytes).into();
            bytes[6] = bytes[6] & 0x0F | 0x40;
            bytes[8] = bytes[8] & 0x3F | 0x80;
            to_hex(&bytes)
        })?,
    )?;
    function(
        "base64",
        JsFunction::new(ctx.clone(), |ctx: Ctx<'_>, text: String| {
            or_throw(&ctx, base64(&text).map(|bytes| to_base64(&bytes)))
        })?,
    )?;
    function(
        "toHex",
        JsFunction::new(ctx.clone(), |ctx: Ctx<'_>, text: String| {
            or_throw(&ctx, base64(&text).map(|bytes| to_hex(&bytes)))
        })?,
    )?;
    function(
        "fromHex",
        JsFunction::new(ctx.clone(), |ctx: Ctx<'_>, text: String| match from_hex(&text) {
            Some(bytes) => Ok(to_base64(&bytes)),
            None => Err(Exception::throw_type(&ctx, "these are no hexadecimal digits")),
        })?,
    )?;
    function(
        "md5",
        JsFunction::new(ctx.clone(), |text: String| to_hex(&Md5::digest(text.as_bytes())))?,
    )?;
    function("random", JsFunction::new(ctx.clone(), random)?)?;
    function("sleep", JsFunction::new(ctx.clone(), sleep)?)?;
    function(
        "work",
        JsFunction::new(ctx.clone(), |ctx: Ctx<'_>, elements: f64| {
            work(elements as usize / ELEMENTS_PER_UNIT).map_err(|stop| Exception::throw_message(&ctx, stop.message()))
        })?,
    )?;
    Ok(native)
}

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A number from 0 to 1, from a sequence of the thread's own: that of the language begins anew with each statement, as all of an interpreter does.
fn random() -> f64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new({
            let seed: [u8; 16] = Md5::digest(ObjectId::generate(now_ms()).0).into();
            seed[..8].iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte))
        });
    }
    // SplitMix64.
    let state = STATE.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    STATE.set(state);
    let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Waits so many milliseconds, or until the statement has to stop: then it throws, as a script that has nothing left to do would
/// otherwise end as if it had waited.
fn sleep(ctx: Ctx<'_>, ms: f64) -> rquickjs::Result<()> {
    let until = Instant::now() + Duration::from_millis(ms.clamp(0.0, 86_400_000.0) as u64);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if let Err(stop) = look() {
            return Err(Exception::throw_message(&ctx, stop.message()));
        }
        std::thread::sleep(left.min(Duration::from_millis(5)));
    }
}

fn options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.backtrace_barrier = true;
    options.filename = Some(name.to_owned());
    options
}

/// Makes a function of its source: of a function as it is, of an expression or of statements by putting one around them.
fn compile<'js>(ctx: &Ctx<'js>, source: &str, form: Form) -> rquickjs::Result<JsFunction<'js>> {
    let eval = |text: String| ctx.eval_with_options::<JsFunction<'js>, _>(text, options("script"));
    if is_function(source) {
        return eval(format!("({}\n)", source.trim().trim_end_matches(';')));
    }
    if form == Form::Where {
        // Statements are no expression, and the other way round.
        if let Ok(expression) = eval(format!("(function() {{ return ({source}\n) }})")) {
            return Ok(expression);
        }
        ctx.catch();
    }
    eval(format!("(function() {{ {source}\n}})"))
}

/// Whether a source is a function as such: it begins with `function`, or is an arrow function.
fn is_function(source: &str) -> bool {
    let source = source.trim_start();
    if let Some(rest) = source.strip_prefix("function") {
        return rest.starts_with(|c: char| c.is_whitespace() || c == '(' || c == '*' || c == '/');
    }
    let head = match source.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map(|(_, rest)| rest),
        None => {
            let end = source.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
            end.filter(|end| *end > 0).map(|end| &source[end..])
        }
    };
    head.is_some_and(|rest| rest.trim_start().starts_with("=>"))
}

/// What a script threw, as an error; or why it had to stop.
fn thrown(ctx: &Ctx<'_>, error: &rquickjs::Error, heap: &Heap) -> Error {
    let value = ctx.catch();
    if let Err(stop) = look() {
        return stop;
    }
    let message = match error {
        // Where there is no memory for an error, nothing is thrown in its place.
        rquickjs::Error::Exception if value.is_null() && heap.was_refused() => {
            "InternalError: out of memory".to_owned()
        }
        rquickjs::Error::Exception => describe(&value),
        other => other.to_string(),
    };
    Error::new(ErrorCode::JSInterpreterFailure, message)
}

fn describe(value: &JsValue<'_>) -> String {
    let Some(object) = value.as_object().filter(|_| value.is_error()) else {
        let text: rquickjs::Result<Coerced<String>> = value.get();
        return format!(
            "uncaught exception: {}",
            text.map_or_else(|_| "unknown".to_owned(), |text| text.0)
        );
    };
    let part = |name: &str| {
        object
            .get::<_, Coerced<String>>(name)
            .map_or_else(|_| String::new(), |text| text.0)
    };
    let what = format!("{}: {}", part("name"), part("message"));
    match object.get::<_, Option<String>>("stack") {
        Ok(Some(stack)) => format!("{what} :\n{stack}"),
        _ => what,
    }
}

fn cannot_start(error: &rquickjs::Error) -> Error {
    if let Err(stop) = look() {
        return stop;
    }
    Error::new(
        ErrorCode::JSInterpreterFailure,
        format!("cannot start the interpreter: {error}"),
    )
}
