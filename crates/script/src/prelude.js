// The types and functions that scripts find beside those of the language: BSON's types as the shell of MongoDB names them, and
// what the manual lists for functions that run on the server.
//
// Values of BSON's own types are objects with two hidden properties: KIND, on the prototype, says which type it is, and DATA has its
// value. Called with the native functions; returns what the native side uses.
(function (native) {
  "use strict";
  const KIND = Symbol("kind");
  const DATA = Symbol("data");
  const TOUCH = Symbol("touch");

  const hide = (object, name, value) => Object.defineProperty(object, name, { value, writable: true, configurable: true });
  const methods = (type, list) => {
    for (const name of Object.keys(list)) hide(type.prototype, name, list[name]);
  };
  const is = (value, kind) => value !== null && value !== undefined && value[KIND] === kind;
  const fail = (message) => {
    throw new Error(message);
  };

  // A constructor that works without `new`, too.
  function type(name, kind, data, list) {
    const made = {
      [name]: function (...args) {
        const self = new.target ? this : Object.create(made.prototype);
        hide(self, DATA, data(...args));
        return self;
      },
    }[name];
    hide(made.prototype, KIND, kind);
    methods(made, list);
    hide(globalThis, name, made);
    return made;
  }

  const number = (value) => {
    if (is(value, "long") || is(value, "int")) return value[DATA];
    if (typeof value === "string" && !/^\s*[-+]?\d+\s*$/.test(value)) fail("not a whole number: " + value);
    return value;
  };
  const toLong = (value = 0) => {
    value = number(value);
    if (typeof value === "number") {
      if (Number.isNaN(value)) return 0n;
      value = Math.trunc(Math.min(Math.max(value, -9223372036854775808), 9223372036854775807));
      return value >= 9223372036854775807 ? 9223372036854775807n : BigInt(value);
    }
    return BigInt.asIntN(64, BigInt(value));
  };
  const NumberLong = type("NumberLong", "long", toLong, {
    toNumber() { return Number(this[DATA]); },
    valueOf() { return Number(this[DATA]); },
    toString() {
      const n = this[DATA];
      return n >= -2147483648n && n < 2147483648n ? `NumberLong(${n})` : `NumberLong("${n}")`;
    },
    toJSON() { return { $numberLong: String(this[DATA]) }; },
    compare(other) {
      const b = toLong(other);
      return this[DATA] < b ? -1 : this[DATA] > b ? 1 : 0;
    },
    equals(other) { return this[DATA] === toLong(other); },
  });
  Object.defineProperty(NumberLong.prototype, "floatApprox", { get() { return Number(this[DATA]); } });

  type("NumberInt", "int", (value = 0) => Number(number(value)) | 0, {
    toNumber() { return this[DATA]; },
    valueOf() { return this[DATA]; },
    toString() { return `NumberInt(${this[DATA]})`; },
    toJSON() { return this[DATA]; },
  });

  type("NumberDecimal", "decimal", (value = "0") => native.decimal(is(value, "decimal") ? value[DATA] : String(value?.[DATA] ?? value)), {
    toString() { return `NumberDecimal("${this[DATA]}")`; },
    toJSON() { return { $numberDecimal: this[DATA] }; },
  });

  const ObjectId = type(
    "ObjectId",
    "objectId",
    (value) => {
      if (value === undefined) return native.objectId();
      if (is(value, "objectId")) return value[DATA];
      if (typeof value !== "string" || !/^[0-9a-fA-F]{24}$/.test(value)) fail("invalid object id: " + value);
      return value.toLowerCase();
    },
    {
      toString() { return `ObjectId("${this[DATA]}")`; },
      valueOf() { return this[DATA]; },
      toJSON() { return { $oid: this[DATA] }; },
      equals(other) { return is(other, "objectId") && other[DATA] === this[DATA]; },
      getTimestamp() { return new Date(parseInt(this[DATA].slice(0, 8), 16) * 1000); },
    },
  );
  Object.defineProperty(ObjectId.prototype, "str", { get() { return this[DATA]; } });

  const unsigned = (value = 0) => {
    value = Number(number(value));
    if (!(value >= 0 && value <= 4294967295)) fail("a part of a timestamp is no unsigned 32-bit number: " + value);
    return Math.trunc(value);
  };
  const Timestamp = type("Timestamp", "timestamp", (t, i) => [unsigned(t), unsigned(i)], {
    toString() { return `Timestamp(${this[DATA][0]}, ${this[DATA][1]})`; },
    toJSON() { return { $timestamp: { t: this[DATA][0], i: this[DATA][1] } }; },
    getTime() { return this[DATA][0]; },
    getInc() { return this[DATA][1]; },
  });
  Object.defineProperty(Timestamp.prototype, "t", { get() { return this[DATA][0]; } });
  Object.defineProperty(Timestamp.prototype, "i", { get() { return this[DATA][1]; } });

  const BinData = type(
    "BinData",
    "binData",
    (subtype, text) => {
      if (!Number.isInteger(subtype) || subtype < 0 || subtype > 255) fail("invalid BinData subtype: " + subtype);
      return [subtype, native.base64(String(text))];
    },
    {
      toString() { return `BinData(${this[DATA][0]},"${this[DATA][1]}")`; },
      toJSON() { return { $binary: this[DATA][1], $type: this[DATA][0].toString(16).padStart(2, "0") }; },
      base64() { return this[DATA][1]; },
      hex() { return native.toHex(this[DATA][1]); },
      length() { return native.toHex(this[DATA][1]).length / 2; },
      subtype() { return this[DATA][0]; },
    },
  );
  Object.defineProperty(BinData.prototype, "type", { get() { return this[DATA][0]; } });
  const hexData = (subtype, hex) => BinData(subtype, native.fromHex(String(hex).replaceAll("-", "")));

  const opaque = (name, kind, show) => type(name, kind, (...args) => args, { toString() { return show(this[DATA]); } });
  const DBPointer = opaque("DBPointer", "dbPointer", ([ns, id]) => `DBPointer("${ns}", ${id})`);
  const Code = opaque("Code", "code", ([code]) => `Code(${JSON.stringify(code)})`);
  const Pattern = opaque("Pattern", "regex", ([source, flags]) => `/${source}/${flags}`);
  delete globalThis.Pattern;
  // Both are used as they are and called.
  for (const [name, kind] of [["MinKey", "minKey"], ["MaxKey", "maxKey"]]) {
    const key = { [name]: () => key }[name];
    hide(key, KIND, kind);
    hide(key, "toJSON", () => ({ ["$" + kind]: 1 }));
    hide(key, "toString", () => name);
    hide(globalThis, name, key);
  }
  hide(Date.prototype, KIND, "date");
  hide(RegExp.prototype, KIND, "pattern");

  const isObject = (value) => value !== null && typeof value === "object";
  const quoted = (text) => JSON.stringify(text);
  function tojson(value, indent = "", oneLine = false, depth = 0) {
    if (depth > 200) fail("a value is nested too deep to be shown");
    if (value === null || value === undefined) return String(value);
    if (typeof value === "string") return quoted(value);
    if (typeof value === "bigint") return String(value);
    if (typeof value !== "object" && value[KIND] === undefined) return String(value);
    const kind = value[KIND];
    if (kind === "date") return `ISODate("${value.toISOString()}")`;
    if (kind === "pattern") return String(value);
    if (kind !== undefined) return value.toString();
    const isArray = Array.isArray(value);
    const parts = isArray
      ? Array.from(value, (item) => tojson(item, indent + "\t", oneLine, depth + 1))
      : Object.keys(value).map((name) => `${quoted(name)} : ${tojson(value[name], indent + "\t", oneLine, depth + 1)}`);
    const [open, close] = isArray ? ["[", "]"] : ["{", "}"];
    if (parts.length === 0) return isArray ? "[ ]" : "{ }";
    if (oneLine) return `${open} ${parts.join(", ")} ${close}`;
    const inner = indent + "\t";
    return `${open}\n${parts.map((part) => inner + part).join(",\n")}\n${indent}${close}`;
  }

  const same = (a, b) => a === b || tojson(a, "", true) === tojson(b, "", true);
  methods(Array, {
    contains(item) { return this.some((other) => same(other, item)); },
    unique() {
      const found = [];
      for (const item of this) if (!found.some((other) => same(other, item))) found.push(item);
      return found;
    },
  });
  // The language's own methods look at each index of what has a length, and do not let themselves be interrupted meanwhile. Arrays in
  // memory are shorter than this; what only says that it is as long is refused, and so is what is like an array without being one,
  // since its length may be another each time it is read.
  const LENGTH_MAX = 1 << 24;
  const bounded = (items) => {
    if (!Array.isArray(items)) return Array.from(items);
    if (items.length > LENGTH_MAX) throw new RangeError(`an array of more than ${LENGTH_MAX} elements`);
    return items;
  };
  const { apply } = Reflect;
  for (const name of [
    "copyWithin", "every", "fill", "filter", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "forEach",
    "join", "map", "reduce", "reduceRight", "reverse", "shift", "slice", "some", "splice",
    "toLocaleString", "toReversed", "toSpliced", "unshift", "with",
  ]) {
    const own = Array.prototype[name];
    methods(Array, { [name](...args) { return apply(own, bounded(this), args); } });
  }
  // Texts that are the same are compared to their ends: of long ones each comparison is a step of its own.
  const TEXT_MAX = 1000;
  const isLong = (item) => (typeof item === "string" ? item.length > TEXT_MAX : isObject(item));
  const compare = (a, b) => {
    a = `${a}`;
    b = `${b}`;
    return a < b ? -1 : a > b ? 1 : 0;
  };
  for (const name of ["sort", "toSorted"]) {
    const own = Array.prototype[name];
    methods(Array, {
      [name](by) {
        const items = bounded(this);
        if (by === undefined) {
          for (let at = 0; at < items.length; at++) if (isLong(items[at])) return apply(own, items, [compare]);
        }
        return apply(own, items, [by]);
      },
    });
  }
  const search = (items, item, at, step) => {
    while (at >= 0 && at < items.length && items[at] !== item) at += step;
    return at < items.length ? at : -1;
  };
  const forwards = (items, item, from = 0) => {
    from = Math.trunc(from) || 0;
    return search(items, item, from < 0 ? Math.max(items.length + from, 0) : from, 1);
  };
  const backwards = (items, item, from = items.length) => {
    from = Math.trunc(from) || 0;
    return search(items, item, from < 0 ? Math.max(items.length + from, -1) : Math.min(from, items.length - 1), -1);
  };
  for (const [name, careful] of [["includes", (...of) => forwards(...of) >= 0], ["indexOf", forwards], ["lastIndexOf", backwards]]) {
    const own = Array.prototype[name];
    methods(Array, {
      [name](...args) {
        const items = bounded(this);
        return typeof args[0] === "string" && isLong(args[0]) ? careful(items, ...args) : apply(own, items, args);
      },
    });
  }
  const push = (to, items) => {
    for (let at = 0; at < items.length; at++) to.push(items[at]);
  };
  const flatten = (to, items, depth) => {
    bounded(items);
    for (let at = 0; at < items.length; at++) {
      if (depth >= 1 && Array.isArray(items[at])) flatten(to, items[at], depth - 1);
      else if (at in items) to.push(items[at]);
    }
    return to;
  };
  methods(Array, {
    concat(...others) {
      const all = [];
      for (const one of [this, ...others]) Array.isArray(one) ? push(all, bounded(one)) : all.push(one);
      return all;
    },
    flat(depth = 1) { return flatten([], bounded(this), depth); },
    toString() { return this.join(); },
  });
  // A document has its fields as properties once it is changed. What is to change no more is, here, before it cannot be.
  for (const [object, name] of [[Object, "freeze"], [Object, "seal"], [Object, "preventExtensions"], [Reflect, "preventExtensions"]]) {
    const own = object[name];
    hide(object, name, (value) => {
      if (value !== null && typeof value === "object") delete value[TOUCH];
      return own(value);
    });
  }
  hide(Math, "random", () => native.random());
  const { stringify } = JSON;
  const { raw } = String;
  hide(String, "raw", (strings, ...values) => apply(raw, String, [{ raw: bounded(strings.raw) }, ...values]));
  // With a list of names each object is looked at for all of them.
  const LISTED_MAX = 1000;
  hide(JSON, "stringify", (value, replacer, space) => {
    if (Array.isArray(replacer) && replacer.length > LISTED_MAX) throw new RangeError(`a list of more than ${LISTED_MAX} names`);
    return stringify(value, replacer, space);
  });
  // Looking for a long string in a long string takes as long as both lengths multiplied.
  const SEARCH_MAX = 1e9;
  for (const name of ["includes", "indexOf", "lastIndexOf", "replace", "replaceAll", "split"]) {
    const own = String.prototype[name];
    hide(String.prototype, name, function (pattern, ...rest) {
      const text = String(this);
      if (pattern === undefined) return arguments.length === 0 ? apply(own, text, []) : apply(own, text, [pattern, ...rest]);
      if (!(pattern instanceof RegExp)) pattern = String(pattern);
      if (pattern.length * text.length > SEARCH_MAX) throw new RangeError("a long string is looked for in a long string");
      native.work(text.length);
      return apply(own, text, [pattern, ...rest]);
    });
  }

  // The language's own methods look at all elements or characters in one step, and the interpreter asks whether to stop after ten
  // thousand of those: so they count what they do.
  for (const name of [
    "concat", "localeCompare", "normalize", "toLocaleLowerCase", "toLocaleUpperCase", "toLowerCase", "toUpperCase", "trim", "trimEnd", "trimStart",
  ]) {
    const own = String.prototype[name];
    hide(String.prototype, name, function (...args) {
      if (this === undefined || this === null) return apply(own, this, args);
      const text = String(this);
      native.work(text.length);
      return apply(own, text, args);
    });
  }
  const TypedArray = Object.getPrototypeOf(Uint8Array);
  const { get: lengthOf } = Object.getOwnPropertyDescriptor(TypedArray.prototype, "length");
  const SORTED_MAX = 1 << 20;
  for (const name of [
    "copyWithin", "every", "fill", "filter", "find", "findIndex", "findLast", "findLastIndex", "forEach", "includes", "indexOf", "join",
    "lastIndexOf", "map", "reduce", "reduceRight", "reverse", "set", "slice", "some", "sort", "toLocaleString", "toReversed", "toSorted",
    "with",
  ]) {
    const own = TypedArray.prototype[name];
    const sorts = name === "sort" || name === "toSorted";
    const max = sorts ? SORTED_MAX : LENGTH_MAX;
    hide(TypedArray.prototype, name, function (...args) {
      const length = apply(lengthOf, this, []);
      if (length > max) throw new RangeError(`an array of more than ${max} elements`);
      native.work(sorts ? length * 32 : length);
      return apply(own, this, args);
    });
  }

  // What looks ahead or behind, once it has matched, never goes back: so the interpreter, which lets itself be interrupted when a
  // match goes back, may look through all of a text ten thousand times in between.
  const LOOKED_THROUGH_MAX = 1 << 15;
  const { get: source } = Object.getOwnPropertyDescriptor(RegExp.prototype, "source");
  const { indexOf } = String.prototype;
  const looks = (pattern) => {
    let text;
    try {
      text = apply(source, pattern, []);
    } catch {
      return false;
    }
    return ["(?=", "(?!", "(?<=", "(?<!"].some((part) => apply(indexOf, text, [part]) >= 0);
  };
  const matching = ["exec", "test", Symbol.match, Symbol.matchAll, Symbol.replace, Symbol.search, Symbol.split];
  for (const name of matching) {
    const own = RegExp.prototype[name];
    hide(RegExp.prototype, name, function (subject, ...rest) {
      const text = String(subject);
      if (text.length > LOOKED_THROUGH_MAX && looks(this)) throw new RangeError("a pattern that looks ahead or behind, for a long text");
      return apply(own, this, [text, ...rest]);
    });
  }

  const sum = (items, of) => items.reduce((total, item) => total + Number(of === undefined ? item : typeof of === "function" ? of(item) : item[of]), 0);
  Object.assign(Array, {
    contains: (items, item) => items.some((other) => same(other, item)),
    unique: (items) => items.unique(),
    sum: (items, of) => (items.length === 0 ? null : sum(items, of)),
    avg: (items, of) => (items.length === 0 ? null : sum(items, of) / items.length),
    tojson: (items, indent, oneLine) => tojson(items, indent, oneLine),
  });

  const doassert = (message) => fail(typeof message === "string" ? message : tojson(message));
  const assert = (holds, message) => {
    if (!holds) doassert("assert failed" + (message === undefined ? "" : ": " + (typeof message === "function" ? message() : message)));
  };
  let emitted = [];
  const globals = {
    tojson,
    tojsononeline: (value) => tojson(value, "", true),
    tojsonObject: (value, indent, oneLine) => tojson(value, indent, oneLine),
    assert,
    doassert,
    DBRef: (ref, id, db) => (db === undefined ? { $ref: ref, $id: id } : { $ref: ref, $id: id, $db: db }),
    HexData: hexData,
    UUID: (hex) => hexData(4, hex === undefined ? native.uuid() : hex),
    MD5: (hex) => hexData(5, hex),
    hex_md5: (text) => native.md5(String(text)),
    ISODate(text) {
      if (text === undefined) return new Date();
      const date = new Date(text);
      return Number.isNaN(date.getTime()) ? fail("invalid ISO date: " + text) : date;
    },
    isNumber: (value) => typeof value === "number" || is(value, "long") || is(value, "int") || is(value, "decimal"),
    isString: (value) => typeof value === "string",
    isObject: (value) => isObject(value) && !Array.isArray(value),
    sleep: (ms) => native.sleep(Number(ms)),
    emit: (key, value) => { emitted.push([key, value]); },
    // Scripts have no way out: what they print goes nowhere.
    print() {},
    printjson() {},
    printjsononeline() {},
    gc() {},
  };
  for (const name of Object.keys(globals)) hide(globalThis, name, globals[name]);

  const make = {
    long: (value) => NumberLong(value),
    decimal: (text) => NumberDecimal(text),
    objectId: (hex) => ObjectId(hex),
    date: (ms) => new Date(ms),
    timestamp: (t, i) => Timestamp(t, i),
    binData: (subtype, text) => BinData(subtype, text),
    dbPointer: (ns, hex) => DBPointer(ns, ObjectId(hex)),
    code: (code) => Code(code),
    minKey: () => MinKey,
    maxKey: () => MaxKey,
    regex(source, flags) {
      // What this language cannot say stays as it is, for those who only pass it on.
      try {
        return /[^ims]/.test(flags) ? Pattern(source, flags) : new RegExp(source, flags);
      } catch {
        return Pattern(source, flags);
      }
    },
  };
  // The value of a type of BSON's own in parts that the native side knows.
  const parts = {
    long: (value) => [value[DATA]],
    int: (value) => [value[DATA]],
    decimal: (value) => [value[DATA]],
    objectId: (value) => [value[DATA]],
    timestamp: (value) => value[DATA],
    binData: (value) => value[DATA],
    dbPointer: (value) => [String(value[DATA][0]), is(value[DATA][1], "objectId") ? value[DATA][1].str : ""],
    code: (value) => [String(value[DATA][0])],
    date: (value) => [Date.prototype.getTime.call(value)],
    pattern: (value) => [value.source, value.flags.replace(/[^ims]/g, "")],
    regex: (value) => value[DATA],
    minKey: () => [],
    maxKey: () => [],
  };
  return {
    KIND,
    make: (kind, a, b) => make[kind](a, b),
    parts: (value) => parts[value[KIND]](value),
    emitting(map, self) {
      emitted = [];
      map.call(self);
      const all = emitted;
      emitted = [];
      return all;
    },
    global: (name, value) => hide(globalThis, name, value),
  };
})
