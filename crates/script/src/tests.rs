use super::*;
use nestor_model::extjson;
use nestor_model::interrupt::{Interrupt, KillSwitch};
use nestor_model::statement::under;
use std::time::{Duration, Instant};

fn function(source: &str) -> Function {
    Function::new(source, Form::Function).expect("scripts are run")
}

fn shown(value: &Value) -> String {
    extjson::to_string(value, extjson::Form::Canonical)
}

/// What a function returns for arguments in extended JSON, as extended JSON, or its error.
fn returned(source: &str, args: &str) -> String {
    let args = extjson::parse_document(&format!("{{\"args\":{args}}}")).expect("valid JSON");
    let Some(ValueRef::Array(items)) = args.as_ref().get("args") else {
        panic!("an array")
    };
    let args: Vec<ValueRef<'_>> = items.iter().collect();
    match function(source).call(None, ValueRef::Missing, &args) {
        Ok(value) => shown(&value),
        Err(error) => format!("{}: {}", error.code().number(), error.message()),
    }
}

#[test]
fn every_type_comes_back_as_it_went() {
    let same = "function(x) { return x }";
    for value in [
        r#"{"$numberDouble":"1.5"}"#,
        r#"{"$numberLong":"9223372036854775807"}"#,
        r#"{"$numberLong":"-9223372036854775808"}"#,
        r#"{"$numberDecimal":"1.50"}"#,
        r#"{"$oid":"0123456789abcdef01234567"}"#,
        r#"{"$date":{"$numberLong":"-1"}}"#,
        r#"{"$timestamp":{"t":4294967295,"i":7}}"#,
        r#"{"$binary":{"base64":"AQID","subType":"80"}}"#,
        r#"{"$regularExpression":{"pattern":"^a(b)","options":"i"}}"#,
        r#"{"$regularExpression":{"pattern":"(?<=a)+*","options":"x"}}"#,
        r#"{"$minKey":1}"#,
        r#"{"$maxKey":1}"#,
        r#"{"$code":"function() {}"}"#,
        r#"{"$undefined":true}"#,
        "null",
        "true",
        r#""é😀\u0000""#,
        r#"{"a":{"$numberInt":"1"},"b":{"__proto__":{"$numberInt":"3"}},"":[{"$numberDouble":"2.0"}]}"#,
    ] {
        assert_eq!(returned(same, &format!("[{value}]")), value);
    }
}

#[test]
fn numbers_are_doubles_but_for_fields_that_keep_an_int() {
    assert_eq!(
        returned("function(x) { return x }", "[5]"),
        r#"{"$numberDouble":"5.0"}"#
    );
    assert_eq!(
        returned(
            "function(d) { d.b = 7; d.c = 3; d.a = 2; d.a = 1; return d }",
            r#"[{"a":1,"b":1}]"#
        ),
        r#"{"a":{"$numberInt":"1"},"b":{"$numberInt":"7"},"c":{"$numberDouble":"3.0"}}"#
    );
    assert_eq!(
        returned("(a, b) => NumberLong(a) + b", r#"[{"$numberLong":"2"},3]"#),
        r#"{"$numberDouble":"5.0"}"#
    );
    assert_eq!(returned("() => NumberInt(5.7)", "[]"), r#"{"$numberInt":"5"}"#);
    assert_eq!(returned("() => 2n ** 40n", "[]"), r#"{"$numberLong":"1099511627776"}"#);
    assert!(returned("() => 2n ** 80n", "[]").starts_with("139: "));
}

#[test]
fn sources_are_functions_or_statements() {
    for source in [
        "function(x) { return x * 2 }",
        "  function f(x) { return x * 2 };",
        "x => x * 2",
        "(x) => { return x * 2 }",
        "return arguments[0] * 2",
    ] {
        assert_eq!(returned(source, "[4]"), r#"{"$numberDouble":"8.0"}"#, "{source}");
    }
    let document = nestor_model::doc! { "a": 3 };
    for (source, expected) in [
        ("this.a == 3", true),
        ("obj.a > 3", false),
        ("var b = this.a; return b === 3", true),
        ("function() { return obj.a - 3 }", false),
        ("() => 'yes'", true),
        ("this.missing", false),
    ] {
        let test = Function::new(source, Form::Where).expect("scripts are run");
        let holds = test.holds(None, ValueRef::Document(document.as_ref()));
        assert_eq!(holds.expect("valid"), expected, "{source}");
    }
}

#[test]
fn errors_say_what_was_thrown() {
    for (source, expected) in [
        ("function( { }", "139: SyntaxError: "),
        (
            "function() { return missing.x }",
            "139: ReferenceError: missing is not defined",
        ),
        ("function() { throw new TypeError('no') }", "139: TypeError: no"),
        ("function() { throw 'plain' }", "139: uncaught exception: plain"),
        (
            "function() { throw {toString() { throw 1 }} }",
            "139: uncaught exception: unknown",
        ),
        ("function f() { return f() }", "139: RangeError: "),
        ("function() { return Symbol() }", "139: cannot convert a symbol"),
        ("function() { return '\\ud83d' }", "139: cannot convert a string"),
        (
            "function() { return new Date(NaN) }",
            "139: cannot convert an invalid date",
        ),
        ("function() { var a = {}; a.a = a; return a }", "15: "),
        (
            "function() { return ObjectId('x') }",
            "139: Error: invalid object id: x",
        ),
        ("function() { assert(false, 'it') }", "139: Error: assert failed: it"),
    ] {
        let got = returned(source, "[]");
        assert!(got.starts_with(expected), "{source}: {got}");
    }
}

#[test]
fn documents_are_objects_like_any_other() {
    let deep = r#"{"b":1,"a":{"c":{"$numberInt":"2"},"d":[{"e":{"$numberLong":"3"}}]},"":{"x":null},"__proto__":7}"#;
    for (source, expected) in [
        // What was only read stays as it was, in the order that it had.
        (
            "d => { d.a.d[0].e; d.b; return d }",
            r#"{"b":{"$numberInt":"1"},"a":{"c":{"$numberInt":"2"},"d":[{"e":{"$numberLong":"3"}}]},"":{"x":null},"__proto__":{"$numberInt":"7"}}"#,
        ),
        (
            "d => { d.a.c = 5; return d.a }",
            r#"{"c":{"$numberInt":"5"},"d":[{"e":{"$numberLong":"3"}}]}"#,
        ),
        (
            "d => { d.a.d[0].e = 'x'; return d.a }",
            r#"{"c":{"$numberInt":"2"},"d":[{"e":"x"}]}"#,
        ),
        (
            "d => { delete d.b; d.z = 0.5; return Object.keys(d).join() }",
            r#""a,,__proto__,z""#,
        ),
        (
            "d => { delete d.nothing; return Object.keys(d).join() }",
            r#""b,a,,__proto__""#,
        ),
        ("d => d.a === d.a && d.a.d === d.a.d", "true"),
        ("d => { const a = d.a; d.q = 1; return a === d.a }", "true"),
        (
            "d => 'b' in d && d.hasOwnProperty('b') && !('toString2' in d) && !d.hasOwnProperty('toString')",
            "true",
        ),
        (
            "d => JSON.stringify(d)",
            r#""{\"b\":1,\"a\":{\"c\":2,\"d\":[{\"e\":{\"$numberLong\":\"3\"}}]},\"\":{\"x\":null},\"__proto__\":7}""#,
        ),
        (
            "d => { let s = ''; for (const k in d) s += k + ';'; return s }",
            r#""b;a;;__proto__;""#,
        ),
        ("d => Object.keys({...d, y: 1}).join()", r#""b,a,,__proto__,y""#),
        ("d => Object.entries(d.a).length", r#"{"$numberDouble":"2.0"}"#),
        (
            "d => tojson(d.a, '', true)",
            r#""{ \"c\" : 2, \"d\" : [ { \"e\" : NumberLong(3) } ] }""#,
        ),
        (
            "d => d instanceof Object && d.constructor === Object && String(d)",
            r#""[object Object]""#,
        ),
        (
            "d => Object.getPrototypeOf(d) === Object.prototype && d.__proto__",
            r#"{"$numberDouble":"7.0"}"#,
        ),
        (
            "d => { Object.freeze(d); d.b = 2; d.n = 3; return [d.b, d.n === undefined, Object.isFrozen(d)] }",
            r#"[{"$numberDouble":"1.0"},true,true]"#,
        ),
        (
            "d => { Object.defineProperty(d, 'b', {get() { return 9 }}); return d.b }",
            r#"{"$numberDouble":"9.0"}"#,
        ),
        (
            "d => { const o = Object.create(d); o.b = 4; return [d.b, o.b, Object.keys(o).length] }",
            r#"[{"$numberDouble":"1.0"},{"$numberDouble":"4.0"},{"$numberDouble":"1.0"}]"#,
        ),
        (
            "d => { d.self = d; delete d.self; d.a.up = d; delete d.a.up; return d.a.c }",
            r#"{"$numberDouble":"2.0"}"#,
        ),
        (
            "d => { for (let i = 0; i < 100; i++) d.a; return d.a.c + d.b }",
            r#"{"$numberDouble":"3.0"}"#,
        ),
        (
            "d => { d[Symbol('b')] = 1; return Object.keys(d).length }",
            r#"{"$numberDouble":"4.0"}"#,
        ),
        ("d => d[Symbol('b')] === undefined", "true"),
        ("d => Object.getOwnPropertyDescriptor(d, 'b').writable", "true"),
        (
            "d => { d.a.cycle = d.a; gc(); return d.b }",
            r#"{"$numberDouble":"1.0"}"#,
        ),
        ("({b, ...rest}) => Object.keys(rest).join()", r#""a,,__proto__""#),
        (
            "d => { try { new Proxy(d, {}) } catch (e) { return e.name } }",
            r#""ReferenceError""#,
        ),
    ] {
        assert_eq!(returned(source, &format!("[{deep}]")), expected, "{source}");
    }
    // Of fields of one name the first counts, and only that one is named.
    let mut twice = nestor_model::Document::new();
    twice.push("a", 1);
    twice.push("a", 2);
    let names = function("return Object.keys(arguments[0]).join() + arguments[0].a");
    let given = Value::from(twice);
    assert_eq!(
        shown(&names.call(None, ValueRef::Missing, &[given.as_ref()]).expect("valid")),
        "\"a1\""
    );
}

#[test]
fn of_large_documents_only_what_is_asked_for_comes_over() {
    let one = nestor_model::doc! { "a": 1, "b": "some text", "c": nestor_model::doc! { "d": 1.5 } };
    let many: Vec<Value> = (0..200_000).map(|_| one.clone().into()).collect();
    let mut wide = nestor_model::Document::new();
    for at in 0..2_000 {
        wide.push(format!("field{at}"), at);
    }
    let document = Value::from(nestor_model::doc! { "many": many, "wide": wide, "x": 1 });
    let document = nestor_model::doc! { "d": document };
    let raw = document.to_raw();
    let d = raw.as_raw().get("d").expect("there");
    for (source, expected) in [
        ("d => d.x", r#"{"$numberDouble":"1.0"}"#),
        (
            "d => d.many.length + d.many[199999].c.d",
            r#"{"$numberDouble":"200001.5"}"#,
        ),
        (
            "d => d.many.reduce((sum, one) => sum + one.a, 0)",
            r#"{"$numberDouble":"200000.0"}"#,
        ),
        (
            "d => { let sum = 0; for (const k in d.wide) sum += d.wide[k]; return sum }",
            r#"{"$numberDouble":"1999000.0"}"#,
        ),
    ] {
        let got = function(source).call(None, ValueRef::Missing, &[d]);
        assert_eq!(
            got.map(|value| shown(&value)).map_err(|e| e.message().to_owned()),
            Ok(expected.to_owned()),
            "{source}"
        );
    }
}

#[test]
fn documents_that_are_garbage_take_no_room() {
    let circle = function("d => { d.a.up = d; d.a.self = d.a; return d.a.b }");
    let document = nestor_model::doc! { "a": nestor_model::doc! { "b": true }, "text": "x".repeat(5_000_000) };
    let document = Value::from(document);
    under(&Interrupt::default(), None, || {
        for round in 0..60 {
            let got = circle.call(None, ValueRef::Missing, &[document.as_ref()]);
            assert_eq!(shown(&got.expect("there is room")), "true", "round {round}");
        }
    });
}

/// Each kind of function and of object that the parser knows; a class that the interpreter lacks ends the process.
#[test]
fn whatever_the_parser_knows_can_be_made_and_freed() {
    for source in [
        "return async function() {}",
        "return async () => 1",
        "var f = async function() { await 1 }; f(); f(); return f() instanceof Promise",
        "return Promise.resolve(1).then(x => x)",
        "var g = (async function*() { yield 1 })(); g.next(); g.next(); return g",
        "var g = (function*() { yield 1 })(); g.next(); return g",
        "class A { #x = 1; static s = 2; async m() {} *g() {} async *h() {} get x() { return this.#x } } return new A().x + A.s",
        "var f = async () => { for await (const x of [1]) ; }; f(); return 1",
        "import('fs'); return 1",
        "return import.meta",
        "return function() { return new.target }",
        "var r = {}; r.r = r; return Promise.reject(r)",
        "return Symbol.asyncIterator.toString() + 10n ** 20n",
        "return Iterator.from([1, 2]).map(x => x + 1).toArray()",
        "return new (class extends Array {})(3)",
        "return new Map([[1, {}]]).size + new Set([1]).size + new WeakMap([[{}, 1]]).toString()",
        "return new DataView(new ArrayBuffer(8)).getInt8(0)",
        "return [...'ab'].at(-1) + `${1}` + String.raw`a` + ((x, ...y) => y)(1, 2)",
        "label: for (const x of [1]) { continue label } return eval('1; 2') + Function('return 3')()",
        "return (() => { try { return 1 } finally { this.x = 1 } })()",
        "with ({a: 1}) { return a }",
        "return Object.groupBy([1, 2], x => x % 2)",
        "return structuredClone({a: 1})",
        "return Atomics.load(new Int32Array(new SharedArrayBuffer(4)), 0)",
        "return new Error('x', {cause: 1})",
        "return new AggregateError([1])",
        "return new WeakRef({})",
        "return performance.now()",
        "return new FinalizationRegistry(() => {})",
        "return queueMicrotask(() => {})",
        "return new DOMException('x')",
    ] {
        // Whatever comes of it, the interpreter is there for the next call and can be freed.
        under(&Interrupt::default(), None, || {
            let _ = function(source).call(None, ValueRef::Missing, &[]);
            let next = function("return 1").call(None, ValueRef::Missing, &[]);
            assert!(next.is_ok(), "{source}");
        });
    }
}

/// Memory can be refused anywhere. What was made until then must be there to be freed, since what is lost ends the process.
#[test]
fn memory_may_be_refused_anywhere() {
    let document = nestor_model::doc! {
        "a": 1,
        "d": nestor_model::doc! { "e": vec![Value::from(1), Value::from("x"), Value::from(nestor_model::doc! { "f": 1.5 })] },
        "l": 5_i64,
    };
    let document = Value::from(document);
    let sources = [
        "d => { let s = ''; for (const k in d) s += k + d[k]; return {s, d, e: d.d.e.map(x => [x]), l: d.l} }",
        "d => { d.z = [1, 2].map(x => ({x, ...d})); d.d.e.push({g: /a(b)/.exec('xab')}); delete d.a; return d }",
        "d => JSON.parse(JSON.stringify(d)).d.e.concat(new Map([[1, d]]).get(1).l, tojson(d), 'abc'.replace(/b/, 'x'.repeat(50)))",
        "d => { class A { #p = d; get p() { return this.#p } } const f = async () => { await 1 }; f(); return [new A().p, eval('1+1'), 2n ** 90n > 1n, new Date(0), NumberLong(d.l)] }",
        "d => { function* g() { yield* [1, 2, 3]; } try { return [...g(), Object.entries(d), new Error('x').stack.length] } finally { d.q = 1 } }",
    ];
    for source in sources {
        let script = function(source);
        let warm = function("d => 1");
        let (mut refused, mut given) = (0, 0);
        for times in (0..400).step_by(7).chain((400..3_000).step_by(61)) {
            let result = under(&Interrupt::default(), None, || {
                // Making an interpreter takes memory that is always there.
                warm.call(None, ValueRef::Missing, &[document.as_ref()])
                    .expect("an interpreter");
                crate::heap::refusals::after(Some(times));
                let result = script.call(None, ValueRef::Missing, &[document.as_ref()]);
                crate::heap::refusals::after(None);
                result
            });
            match result {
                Ok(_) => given += 1,
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0 && given > 0, "{source}: {refused} {given}");
    }
}

#[test]
fn the_heap_is_limited() {
    for source in [
        "function() { var a = []; while (true) a.push('x'.repeat(1000) + a.length) }",
        "function() { return 'x'.repeat(1 << 29) }",
        "function() { return new Array(1 << 28).fill(1).map(String) }",
        "function() { return new ArrayBuffer(1 << 30) }",
    ] {
        let got = returned(source, "[]");
        assert!(got.starts_with("139: "), "{source}: {}", &got[..got.len().min(200)]);
    }
    assert_eq!(returned("() => true", "[]"), "true", "the next call works");
}

#[test]
fn what_never_ends_is_interrupted() {
    for source in [
        "while (true) ;",
        "return /(a+)+$/.test('a'.repeat(40) + 'b')",
        "return new Array(4294967295).indexOf(1)",
        "return Array.prototype.includes.call({length: 9007199254740991}, 1)",
        "return Array.prototype.reverse.call({length: 9007199254740991})",
        "for (;;) try { sleep(10) } catch (e) {}",
        "var d = '1'; while (true) d = JSON.stringify(JSON.parse(d))",
        "sleep(1e9)",
        "sleep(1e9); return true",
        "return Array.prototype.join.call({length: 9007199254740991}).length",
        "return new Array(4294967295).lastIndexOf(1)",
        "return Array.prototype.copyWithin.call({length: 9007199254740991}, 1, 0)",
        "return [].concat(new Array(4294967295)).flat().length",
        "new Array(4294967295).forEach(x => x)",
        "return [new Array(4294967295)].flat().length",
        "return JSON.stringify({}, new Array(4294967295))",
        "return new Set(new Array(4294967295)).size",
        "var n = 0; return [].indexOf.call({get length() { return n++ ? 9007199254740991 : 1 }}, 1)",
        "return 'a'.repeat(3e6).indexOf('a'.repeat(1e6) + 'b')",
        "return 'a'.repeat(3e6).split('a'.repeat(1e6) + 'b').length",
        "var n = 0; return 'a'.repeat(3e6).replaceAll({toString() { return 'a'.repeat(n++ ? 1e6 : 1) + 'b' }}, '').length",
        "return Array.from({length: 4294967295}).length",
        "return /(?=a+)b/.test('a'.repeat(3e6))",
        "return 'a'.repeat(1e6).replace(/(?=(a+))\\1b/g, '').length",
        "return 'a'.repeat(1e6).split(/(?<!a+)b/).length",
        "const r = /(?!a+b)b/; Object.defineProperty(r, 'exec', {value: 1}); return r.test('a'.repeat(3e6))",
        "return [...'a'.repeat(3e6).matchAll(/(?<=a+)b/g)].length",
        "const t = new Uint8Array(1 << 24); for (;;) t.indexOf(5)",
        "const t = new Float64Array(1 << 19).map((x, n) => n * 7919 % 1048573); for (;;) t.slice().sort()",
        "const t = new Uint8Array(1 << 24); for (;;) try { t.reverse() } catch (e) {}",
        "const t = 'a'.repeat(1 << 24); for (;;) t.indexOf('b')",
        "const t = 'a'.repeat(1 << 24); for (;;) t.toUpperCase()",
        "return new Uint8Array(9e7).sort()",
        "const s = 'a'.repeat(1e6), t = 'a'.repeat(1e6), a = Array(1e5).fill(s); a[5] = t; return a.sort().length",
        "const s = 'a'.repeat(1e6), t = 'a'.repeat(1e6) + 'b', a = Array(1e6).fill(s + 'c'); return a.includes(t)",
        "const s = 'a'.repeat(1e6), t = 'a'.repeat(1e6) + 'b', a = Array(1e6).fill(s + 'c'); return a.lastIndexOf(t)",
        "const s = 'a'.repeat(1e7), m = new Map(); for (;;) m.get(s)",
        "const s = 'a'.repeat(1e7) + 'b', t = 'a'.repeat(1e7) + 'c'; for (;;) s === t",
        "const o = {a: 1}, names = Array.from({length: 1e5}, (_, n) => 'a' + n); return JSON.stringify(Array(1e5).fill(o), names)",
        "return String.raw({raw: {length: 1e9}})",
        "const b = 3n ** 600000n; for (;;) b.toString()",
        "return 'a'.repeat(1 << 20).split('').join('').replaceAll('a', 'bbbbbbbb').padEnd(1 << 26).localeCompare('x')",
    ] {
        let kill = Arc::new(KillSwitch::default());
        let begun = Instant::now();
        let interrupt = Interrupt::new(kill, Some(begun + Duration::from_millis(50)));
        let result = under(&interrupt, None, || function(source).call(None, ValueRef::Missing, &[]));
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{source} took {:?}",
            begun.elapsed()
        );
        match result {
            Ok(_) => assert!(!source.starts_with("sleep"), "{source}"),
            Err(error) => assert!(matches!(error.code().number(), 50 | 139), "{source}: {error:?}"),
        }
    }
}

#[test]
fn statements_do_not_see_each_other() {
    let run = |source: &str| {
        under(&Interrupt::default(), None, || {
            let first = function(source).call(None, ValueRef::Missing, &[]);
            let second = function("return typeof left + [].stolen").call(None, ValueRef::Missing, &[]);
            (first.is_ok(), shown(&second.expect("valid")))
        })
    };
    assert_eq!(run("left = 1; Array.prototype.stolen = 2").1, "\"number2\"");
    assert_eq!(run("return 1").1, "\"undefinedundefined\"");
    for source in [
        "require('fs')",
        "std.open('x')",
        "os.exec(['ls'])",
        "process.exit()",
        "load('x')",
        "fetch('x')",
    ] {
        assert!(!run(source).0, "{source}");
    }
}

/// Everything that a script can reach from the global object, as a text: names, flags, values, what functions are written as.
const REACHABLE: &str = r##"
    const seen = new Map(), lines = [];
    const name = (value) => {
        if (typeof value === "string") return JSON.stringify(value);
        if (typeof value !== "object" && typeof value !== "function" || value === null) return String(value);
        if (!seen.has(value)) { seen.set(value, seen.size); queue.push(value) }
        return "#" + seen.get(value);
    };
    const queue = [];
    name(globalThis);
    for (const kind of [function*() {}, async function() {}, async function*() {}, [][Symbol.iterator](), ""[Symbol.iterator](), new Map().keys(),
        new Set().keys(), /x/[Symbol.matchAll]("x"), Iterator.from({next() {}}), [].values().map(x => x)]) name(Object.getPrototypeOf(kind));
    for (let at = 0; at < queue.length; at++) {
        const object = queue[at];
        const line = [at, typeof object, Object.isExtensible(object), name(Object.getPrototypeOf(object))];
        if (typeof object === "function") line.push(Function.prototype.toString.call(object));
        for (const key of Reflect.ownKeys(object)) {
            const {value, get, set, writable, enumerable, configurable} = Object.getOwnPropertyDescriptor(object, key);
            line.push(String(key), name(value), name(get), name(set), writable, enumerable, configurable);
        }
        lines.push(line.join());
    }
    return lines.join("\n");
"##;

/// Whatever a script changes and wherever it is stopped, the next statement's world is the one of the first.
#[test]
fn a_warm_interpreter_is_as_new() {
    let reachable = function(REACHABLE);
    let look_around = || {
        under(&Interrupt::default(), None, || {
            reachable.call(None, ValueRef::Missing, &[])
        })
    };
    let Ok(Value::String(new)) = look_around() else {
        panic!("{:?}", look_around())
    };
    assert!(new.lines().count() > 500 && new.contains("NumberLong"), "{}", new.len());
    let document = Value::from(nestor_model::doc! {
        "a": vec![Value::from(nestor_model::doc! { "b": "x".repeat(1000) })],
    });
    for (source, given) in [
        ("left = 1; var other = 2; globalThis.x = {}; return 1", None),
        (
            "for (const name of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[name] } catch {}",
            None,
        ),
        (
            "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.preventExtensions(globalThis)",
            None,
        ),
        (
            "Object.setPrototypeOf(Array.prototype, null); Array.prototype.push = () => 'evil'; Object.prototype.toJSON = () => 1",
            None,
        ),
        (
            "JSON.stringify = tojson = emit = ObjectId = null; Object.defineProperty(Date.prototype, 'getTime', {get() { while (true) ; }})",
            None,
        ),
        (
            "Object.defineProperty(globalThis, 'obj', {value: 1}); Object.defineProperty(Object.prototype, 'x', {set() { throw 1 }})",
            None,
        ),
        (
            "(function*(){}).constructor.prototype.prototype.next = 1; (async () => {}).constructor.prototype.y = 1",
            None,
        ),
        (
            "kept = arguments[0]; kept.a[0].b; circle = {kept}; circle.circle = circle; kept.a.push(circle)",
            None,
        ),
        (
            "Symbol.prototype.x = Symbol.for('x'); RegExp.prototype.exec = () => null; Promise.prototype.then = null",
            None,
        ),
        (
            "(async () => { await 1; left = 1 })(); Promise.resolve().then(() => { left = 2 }); new WeakRef(arguments[0])",
            None,
        ),
        ("throw new Error('x'.repeat(1000))", None),
        ("function f() { f() } f()", None),
        (
            "const a = [arguments[0]]; while (true) a.push({a, b: 'x' + a.length})",
            None,
        ),
        (
            "Array.prototype.left = []; while (true) Array.prototype.left.push(arguments[0].a.map(x => ({...x})))",
            Some(30),
        ),
        (
            "eval('var z = 1'); Function('return this')().q = new Map([[1, arguments[0]]]); sleep(100000)",
            Some(10),
        ),
        (
            "[3, 1, 2].sort(() => { Object.prototype.sorted = 1; while (true) ; })",
            Some(10),
        ),
        (
            "'x'.replace(/x/, () => { String.prototype.left = 1; for (;;) ; })",
            Some(10),
        ),
    ] {
        let kill = Arc::new(KillSwitch::default());
        let until = given.map(|ms| Instant::now() + Duration::from_millis(ms));
        let result = under(&Interrupt::new(kill, until), None, || {
            function(source).call(None, ValueRef::Missing, &[document.as_ref()])
        });
        assert_eq!(
            result.as_ref().err().map(|error| error.code().number()) == Some(50),
            given.is_some(),
            "{source}: {result:?}"
        );
        let Ok(Value::String(then)) = look_around() else {
            panic!("{source}: {:?}", look_around())
        };
        let other = new.lines().zip(then.lines()).find(|(a, b)| a != b);
        assert!(new == then, "{source}: {other:?}");
    }
    // Also where memory was refused at any moment.
    let script = function(
        "left = arguments[0].a.map(x => ({...x})); Array.prototype.left = left; return [left, JSON.stringify(left)].sort()",
    );
    for times in 0..60 {
        let _ = under(&Interrupt::default(), None, || {
            function("return 1").call(None, ValueRef::Missing, &[])?;
            crate::heap::refusals::after(Some(times));
            let result = script.call(None, ValueRef::Missing, &[document.as_ref()]);
            crate::heap::refusals::after(None);
            result
        });
        assert!(
            matches!(look_around(), Ok(Value::String(then)) if then == new),
            "{times}"
        );
    }
}

#[test]
fn the_interpreter_asks_by_time() {
    assert!(interpreter::with(None, |interpreter| Ok(interpreter.has_pace())).expect("an interpreter"));
}

/// Numbers by chance are others in each statement, though all else begins anew.
#[test]
fn chance_does_not_begin_anew() {
    let random = function("return Math.random()");
    let next_one = || {
        under(&Interrupt::default(), None, || {
            random.call(None, ValueRef::Missing, &[]).expect("valid")
        })
    };
    let mut drawn = Vec::new();
    for _ in 0..100 {
        let Value::Double(one) = next_one() else {
            panic!("a number")
        };
        assert!((0.0..1.0).contains(&one) && !drawn.contains(&one), "{one} {drawn:?}");
        drawn.push(one);
    }
}

#[test]
fn globals_are_given() {
    let stored = nestor_model::doc! {
        "factor": 2,
        "broken": Value::Code("function( {".into()),
    };
    let given = nestor_model::doc! {
        "factor": 3,
        "times": Value::Code("function(x) { return x * factor }".into()),
    };
    let globals = Globals::new(stored, given);
    let map = function("function() { emit(this.k, times(this.v)); emit(typeof broken, {v: this.v}) }");
    let document = nestor_model::doc! { "k": "a", "v": 2 };
    let emitted = map
        .emitted(Some(&globals), ValueRef::Document(document.as_ref()))
        .expect("valid");
    assert_eq!(
        format!("{emitted:?}"),
        format!(
            "{:?}",
            vec![
                (Value::from("a"), Value::from(6.0)),
                (Value::from("undefined"), Value::from(nestor_model::doc! { "v": 2.0 })),
            ]
        )
    );
}

#[test]
fn the_shells_functions_are_there() {
    for (source, expected) in [
        (
            "tojson({a: [1, NumberLong(2)], b: ISODate('2020-01-01T00:00:00Z')}, '', true)",
            "{ \"a\" : [ 1, NumberLong(2) ], \"b\" : ISODate(\"2020-01-01T00:00:00.000Z\") }",
        ),
        ("tojson({a: {}})", "{\n\t\"a\" : { }\n}"),
        ("String(UUID('01234567-89ab-cdef-0123-456789abcdef').subtype())", "4"),
        ("hex_md5('abc')", "900150983cd24fb0d6963f7d28e17f72"),
        ("ObjectId('0123456789abcdef01234567').str", "0123456789abcdef01234567"),
        ("String(Timestamp(1, 2))", "Timestamp(1, 2)"),
        ("String(Array.sum([1, 2, 3]) + Array.avg([1, 3]))", "8"),
        ("String(Array.contains([{a: 1}], {a: 1}))", "true"),
        (
            "String(NumberLong('5') == 5 && NumberLong(5).compare(NumberLong(6)))",
            "-1",
        ),
        ("BinData(0, 'AQID').hex()", "010203"),
        (
            "String(isNumber(NumberDecimal('1')) && isObject({}) && isString('x'))",
            "true",
        ),
        (
            "String([1, [2, [3, [4]]]].flat(2).length + [1].concat(2, [3, 4]).length)",
            "8",
        ),
        (
            "String(Array.prototype.map.call('ab', x => x + x)) + [,1].indexOf(1) + [3, 1, 2].sort()",
            "aa,bb11,2,3",
        ),
        (
            "'a.b.c'.split('.').join('-').replace('b', 'x').replaceAll(/[ac]/g, 'y') + 'abc'.split('') + 'x'.split().length",
            "y-x-ya,b,c1",
        ),
        ("HexData(0, '0aff').base64()", "Cv8="),
    ] {
        let got = function(&format!("return {source}")).call(None, ValueRef::Missing, &[]);
        assert_eq!(shown(&got.expect(source)), shown(&Value::from(expected)), "{source}");
    }
}
