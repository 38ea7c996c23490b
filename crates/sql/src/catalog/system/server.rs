//! Catalogs of what is the same in all databases, and of types and functions.

use super::pseudo::{PSEUDO_TYPES, Pseudo};
use super::{
    EXTENSIONS, Extension, FUNCTIONS, Facts, OWNER, PG_CATALOG, ROW_ARRAYS, ROW_TYPES, Relation, Row, int, oid, text,
};
use super::{classes, io, searched, shapes};
use crate::catalog::routines::{Mode, Returns, Routine, rows_type};
use crate::functions::{self, Param};
use crate::types::Type;
use crate::types::collation::COLLATIONS;
use crate::types::composite::Composite;
use nestor_model::{Array, Result, Value};
use std::sync::Arc;

/// The rows of a table of `pg_catalog` that is not about relations; none of one that stands for what there is not.
///
/// Errors: those of [`Facts::relations`].
pub fn rows(name: &str, facts: &dyn Facts) -> Result<Vec<Row>> {
    Ok(match name {
        "pg_database" => super::statistics::databases(facts)
            .into_iter()
            .map(|(n, name)| {
                vec![
                    ("oid", oid(n)),
                    ("datname", text(name)),
                    ("datdba", oid(OWNER)),
                    ("encoding", Value::Int32(6)),
                    ("datlocprovider", text("c")),
                    ("datallowconn", Value::Bool(true)),
                    ("datconnlimit", Value::Int32(-1)),
                    ("dattablespace", oid(1663)),
                    ("datcollate", text("C")),
                    ("datctype", text("C")),
                ]
            })
            .collect(),
        "pg_tablespace" => [(1663i64, "pg_default"), (1664, "pg_global")]
            .into_iter()
            .map(|(n, name)| vec![("oid", oid(n)), ("spcname", text(name)), ("spcowner", oid(OWNER))])
            .collect(),
        "pg_am" => std::iter::once((2i64, "heap", "t"))
            .chain(classes::METHODS.map(|(n, name)| (n, name, "i")))
            .map(|(n, name, ty)| vec![("oid", oid(n)), ("amname", text(name)), ("amtype", text(ty))])
            .collect(),
        "pg_collation" => COLLATIONS
            .iter()
            .map(|own| {
                let locale = || own.locale.map_or(Value::Null, text);
                vec![
                    ("oid", oid(own.oid)),
                    ("collname", text(own.name)),
                    ("collnamespace", oid(PG_CATALOG)),
                    ("collowner", oid(OWNER)),
                    ("collprovider", text(own.provider)),
                    ("collisdeterministic", Value::Bool(true)),
                    ("collencoding", Value::Int32(own.encoding)),
                    ("collcollate", locale()),
                    ("collctype", locale()),
                ]
            })
            .collect(),
        "pg_extension" => {
            let row = |extension: &Extension| {
                vec![
                    ("oid", oid(extension.oid)),
                    ("extname", text(extension.name)),
                    ("extowner", oid(OWNER)),
                    ("extnamespace", oid(PG_CATALOG)),
                    ("extversion", text(extension.version)),
                ]
            };
            EXTENSIONS.iter().map(row).collect()
        }
        "pg_available_extensions" => {
            let row = |extension: &Extension| {
                vec![
                    ("name", text(extension.name)),
                    ("default_version", text(extension.version)),
                    ("installed_version", text(extension.version)),
                    ("comment", text(extension.about)),
                ]
            };
            EXTENSIONS.iter().map(row).collect()
        }
        "pg_type" => types(facts)?,
        "pg_enum" => facts
            .made_types()
            .iter()
            .filter_map(|(_, own)| match own {
                Type::Enum(own) => Some(own),
                _ => None,
            })
            .flat_map(|own| {
                (0u32..).zip(&own.labels).map(|(at, label)| {
                    vec![
                        (
                            "oid",
                            oid(i64::from(own.oid) * 20_000 % 200_000_000 + 3_700_000_000 + i64::from(at)),
                        ),
                        ("enumtypid", oid(own.oid)),
                        ("enumsortorder", Value::Double(f64::from(at + 1))),
                        ("enumlabel", text(label)),
                    ]
                })
            })
            .collect(),
        "pg_range" => Type::all()
            .filter_map(|ty| {
                let element = ty.range_element()?;
                let several = element.multirange_of()?;
                Some(vec![
                    ("rngtypid", oid(ty.oid())),
                    ("rngsubtype", oid(element.oid())),
                    ("rngmultitypid", oid(several.oid())),
                    ("rngcollation", oid(0)),
                    ("rngsubopc", oid(classes::of(classes::BTREE, &element))),
                ])
            })
            .collect(),
        "pg_proc" => {
            let (own, path) = (facts.routines(), facts.path());
            let relations = match own.is_empty() {
                true => Arc::default(),
                false => facts.relations()?,
            };
            let each = own.iter().map(|own| {
                let schema = own.schema.as_deref().unwrap_or("public");
                routine(own, super::schema_number(facts, schema), &|ty| {
                    type_number(&relations, &path, ty)
                })
            });
            each.collect()
        }
        "pg_language" => [(12, "internal"), (13, "c"), (14, "sql"), (PLPGSQL, "plpgsql")]
            .into_iter()
            .map(|(n, name)| {
                vec![
                    ("oid", oid(n)),
                    ("lanname", text(name)),
                    ("lanowner", oid(OWNER)),
                    ("lanispl", Value::Bool(n == PLPGSQL)),
                    ("lanpltrusted", Value::Bool(n >= 14)),
                ]
            })
            .collect(),
        "pg_settings" => facts
            .settings()
            .into_iter()
            .map(|(name, value)| {
                vec![
                    ("name", text(super::spelled(&name))),
                    ("setting", text(&value)),
                    ("context", text("user")),
                    ("vartype", text("string")),
                    ("source", text("default")),
                    ("boot_val", text(&value)),
                    ("reset_val", text(&value)),
                ]
            })
            .collect(),
        "pg_timezone_names" => vec![vec![("name", text("UTC")), ("abbrev", text("UTC"))]],
        _ => Vec::new(),
    })
}

/// The number of the language of blocks.
const PLPGSQL: i64 = 13_540;
/// The number of the type that functions of triggers return.
const TRIGGER: u32 = 2279;

/// The row of `pg_proc` of a function that somebody has made.
fn routine(own: &Routine, schema: i64, number_of: &dyn Fn(&Type) -> u32) -> Row {
    let types = own.args.iter().map(|arg| oid(number_of(&arg.ty))).collect();
    let gives_rows = matches!(
        own.returns,
        Returns::Rows(_) | Returns::RowsOf(_) | Returns::Record(true)
    );
    let result = match &own.returns {
        Returns::One(ty) => number_of(ty),
        Returns::Nothing => Type::Void.oid(),
        Returns::Rows(columns) => match columns.as_slice() {
            [(_, ty)] => number_of(ty),
            _ => Type::Record.oid(),
        },
        Returns::RowsOf(name) => number_of(&rows_type(name)),
        Returns::Row(_) | Returns::Record(_) => Type::Record.oid(),
        Returns::Trigger => TRIGGER,
    };
    let defaults = own.args.iter().filter(|arg| arg.default.is_some()).count();
    let mut row: Row = vec![
        ("oid", oid(own.oid)),
        ("proname", text(&own.name)),
        ("pronamespace", oid(schema)),
        ("proowner", oid(OWNER)),
        ("prolang", oid(if own.language() == "sql" { 14 } else { PLPGSQL })),
        ("procost", Value::Double(100.0)),
        ("prorows", Value::Double(if gives_rows { 1000.0 } else { 0.0 })),
        ("prokind", text(if own.is_procedure { "p" } else { "f" })),
        ("proisstrict", Value::Bool(own.is_strict)),
        ("proretset", Value::Bool(gives_rows)),
        ("provolatile", text(own.volatility)),
        ("proparallel", text(own.parallel)),
        ("pronargs", int(own.args.len())),
        ("pronargdefaults", int(defaults)),
        ("prorettype", oid(result)),
        ("proargtypes", Value::Array(Array::new(types))),
        ("prosupport", oid(0)),
        ("prosrc", text(&own.source)),
    ];
    if !own.config.is_empty() {
        row.push(("proconfig", super::roles::config(&own.config)));
    }
    let all = &own.parameters;
    if all.iter().any(|own| own.name.is_some()) {
        let names = all.iter().map(|own| text(own.name.as_deref().unwrap_or_default()));
        row.push(("proargnames", Value::Array(Array::new(names.collect()))));
    }
    if all.iter().any(|own| own.mode != Mode::In) {
        let modes = all.iter().map(|own| text(own.mode.letter()));
        row.push(("proargmodes", Value::Array(Array::new(modes.collect()))));
        let types = all.iter().map(|own| oid(number_of(&own.ty)));
        row.push(("proallargtypes", Value::Array(Array::new(types.collect()))));
        if let Some(variadic) = all.iter().find(|own| own.mode == Mode::Variadic) {
            let element = variadic.ty.element().map_or(0, Type::oid);
            row.push(("provariadic", oid(element)));
        }
    }
    row
}

/// The number of a type; of the rows of a table that which `pg_type` has for it.
pub(super) fn type_number(relations: &[Relation], path: &[String], ty: &Type) -> u32 {
    let of = |own: &Composite, base: u32| {
        let name = own.table()?;
        let is_it = |relation: &&Relation| {
            let table = &relation.table;
            match name.split_once('.') {
                Some((schema, name)) => table.schema == schema && table.name == name,
                None => table.name == name && (path.contains(&table.schema) || table.schema == "public"),
            }
        };
        relations
            .iter()
            .find(is_it)
            .map(|relation| relation.oid.saturating_add(base))
    };
    let found = match ty {
        Type::Composite(own) => of(own, ROW_TYPES),
        Type::Array(inner) => match &**inner {
            Type::Composite(own) => of(own, ROW_ARRAYS),
            _ => None,
        },
        _ => None,
    };
    found.unwrap_or_else(|| ty.oid())
}

/// The types of tables' rows that routines have: `pg_depend` has that they depend on them.
pub(super) fn routines_of_rows(facts: &dyn Facts, relations: &[Relation]) -> Vec<(u32, u32)> {
    let path = facts.path();
    let mut out = Vec::new();
    for own in &facts.routines() {
        let mut types: Vec<Type> = own.parameters.iter().map(|own| own.ty.clone()).collect();
        match &own.returns {
            Returns::One(ty) => types.push(ty.clone()),
            Returns::RowsOf(name) => types.push(rows_type(name)),
            _ => {}
        }
        for ty in types {
            let is_row = matches!(ty.element().unwrap_or(&ty), Type::Composite(of) if of.table().is_some());
            let number = type_number(relations, &path, ty.element().unwrap_or(&ty));
            if is_row && number != 0 {
                out.push((own.oid, number));
            }
        }
    }
    out
}

fn types(facts: &dyn Facts) -> Result<Vec<Row>> {
    let beginnings = io::Beginnings::new();
    let (made, path) = (facts.made_types(), facts.path());
    let mut out = Vec::new();
    for (schema, own) in &made {
        let schema = super::schema_number(facts, schema);
        for ty in [own.clone(), own.clone().array()] {
            if ty.oid() != 0 {
                out.push(type_row(&ty, schema, &path, &beginnings));
            }
        }
    }
    for relation in facts.relations()?.iter() {
        let named = (&*relation.table.name, relation.schema);
        out.extend(row_types(relation.oid, named, &beginnings));
    }
    Ok(out)
}

/// The rows of `pg_type` of what is built in.
pub(super) fn own_types() -> Vec<Row> {
    let beginnings = io::Beginnings::new();
    let arrays = Type::all().map(Type::array).filter(|ty| ty.oid() != 0);
    let each = Type::all().chain(arrays);
    let mut out: Vec<Row> = each.map(|ty| type_row(&ty, PG_CATALOG, &[], &beginnings)).collect();
    out.extend(pseudo_rows(&beginnings));
    for shape in shapes::all() {
        out.extend(row_types(shape.oid, (shape.name, shape.namespace()), &beginnings));
    }
    out
}

fn type_row(ty: &Type, schema: i64, path: &[String], beginnings: &io::Beginnings) -> Row {
    let array = match ty {
        Type::Array(_) => 0,
        ty => ty.clone().array().oid(),
    };
    let is_pseudo = matches!(ty.element().unwrap_or(ty), Type::Record | Type::Unknown | Type::Void);
    let mut row: Row = vec![
        ("oid", oid(ty.oid())),
        ("typname", text(ty.name())),
        ("typnamespace", oid(schema)),
        ("typowner", oid(OWNER)),
        ("typlen", Value::Int32(i32::from(ty.length()))),
        ("typbyval", Value::Bool((1..=8).contains(&ty.length()))),
        (
            "typtype",
            text(match ty {
                Type::Enum(_) => "e",
                Type::Composite(_) => "c",
                Type::Domain(_) => "d",
                ty if ty.range_element().is_some() => "r",
                ty if ty.multirange_element().is_some() => "m",
                _ if is_pseudo => "p",
                _ => "b",
            }),
        ),
        (
            "typcategory",
            text(match ty {
                Type::Array(_) if is_pseudo => "P".to_owned(),
                ty => ty.category().to_string(),
            }),
        ),
        (
            "typispreferred",
            Value::Bool(matches!(
                ty,
                Type::Bool | Type::Text | Type::Float8 | Type::Timestamptz | Type::Oid | Type::Interval | Type::Inet
            )),
        ),
        ("typisdefined", Value::Bool(true)),
        ("typdelim", text(",")),
        ("typelem", oid(ty.element().map_or(0, Type::oid))),
        ("typarray", oid(array)),
        (
            "typtypmod",
            Value::Int32(match ty {
                Type::Domain(own) => own.modifier,
                _ => -1,
            }),
        ),
        ("typcollation", oid(ty.collation())),
        ("typalign", text(alignment(ty))),
        ("typstorage", text(ty.storage())),
    ];
    if let Type::Composite(own) = ty {
        row.push(("typrelid", oid(own.oid)));
    }
    if let Type::Domain(own) = ty {
        row.extend(super::domains::of_type(own, path));
    }
    row.extend(io::of_type(ty, beginnings));
    row
}

/// The rows of pseudo-types.
fn pseudo_rows(beginnings: &io::Beginnings) -> Vec<Row> {
    let row = |pseudo: &Pseudo| -> Row {
        let (align, storage) = match pseudo.length {
            -1 => ("d", "x"),
            8 => ("d", "p"),
            -2 => ("c", "p"),
            _ => ("i", "p"),
        };
        let mut row: Row = vec![
            ("oid", oid(pseudo.oid)),
            ("typname", text(pseudo.name)),
            ("typnamespace", oid(PG_CATALOG)),
            ("typowner", oid(OWNER)),
            ("typlen", Value::Int32(i32::from(pseudo.length))),
            ("typbyval", Value::Bool(pseudo.length > 0)),
            ("typtype", text("p")),
            ("typcategory", text("P")),
            ("typispreferred", Value::Bool(false)),
            ("typisdefined", Value::Bool(true)),
            ("typdelim", text(",")),
            ("typarray", oid(pseudo.array)),
            ("typtypmod", Value::Int32(-1)),
            ("typalign", text(align)),
            ("typstorage", text(storage)),
        ];
        row.extend(io::of_pseudo(pseudo, beginnings));
        row
    };
    PSEUDO_TYPES.iter().map(row).collect()
}

/// How PostgreSQL aligns values of a type.
fn alignment(ty: &Type) -> &'static str {
    let element = match ty {
        Type::Array(element) => Some((**element).clone()),
        ty => ty.range_element().or_else(|| ty.multirange_element()),
    };
    if let Some(element) = element {
        return if alignment(&element) == "d" { "d" } else { "i" };
    }
    match ty {
        Type::Bool | Type::Char | Type::Name | Type::Uuid | Type::Unknown => "c",
        Type::Int2 => "s",
        Type::Int8 | Type::Float8 | Type::Interval | Type::Record => "d",
        Type::Time | Type::Timetz | Type::Timestamp | Type::Timestamptz => "d",
        _ => "i",
    }
}

/// The type of the rows of a relation with this OID, name and schema, and that of arrays of them.
fn row_types(relation: u32, (name, schema): (&str, i64), beginnings: &io::Beginnings) -> [Row; 2] {
    let [own, of_arrays] = [ROW_TYPES, ROW_ARRAYS].map(|of| relation.saturating_add(of));
    let row = |(number, name): (u32, String), like: &Type, kind: &str| -> Row {
        let mut row: Row = vec![
            ("oid", oid(number)),
            ("typname", text(name)),
            ("typnamespace", oid(schema)),
            ("typowner", oid(OWNER)),
            ("typlen", Value::Int32(-1)),
            ("typtype", text(kind)),
            ("typisdefined", Value::Bool(true)),
            ("typdelim", text(",")),
            ("typtypmod", Value::Int32(-1)),
            ("typalign", text("d")),
            ("typstorage", text("x")),
        ];
        row.extend(io::of_type(like, beginnings));
        row
    };
    let mut composite = row((own, name.to_owned()), &Type::Record, "c");
    composite.push(("typcategory", text("C")));
    composite.push(("typrelid", oid(relation)));
    composite.push(("typarray", oid(of_arrays)));
    let mut array = row((of_arrays, format!("_{name}")), &Type::Record.array(), "b");
    array.push(("typcategory", text("A")));
    array.push(("typelem", oid(own)));
    [composite, array]
}

/// The OID of a type of a signature; PostgreSQL's of its polymorphic ones.
fn type_of(param: &Param) -> u32 {
    match param {
        Param::Type(ty) => ty.oid(),
        Param::Any => 2276,
        Param::Element => 2283,
        Param::Array => 2277,
        Param::Range => 3831,
        Param::Multirange => 4537,
    }
}

/// Functions in the order of their OIDs.
fn named(wanted: impl Fn(&functions::Function) -> bool) -> Vec<&'static functions::Function> {
    let mut all: Vec<_> = functions::all().filter(|function| wanted(function)).collect();
    all.sort_by_cached_key(|function| (function.name, format!("{:?}", function.args)));
    all
}

/// The rows of `pg_proc` of what is built in.
pub(super) fn procedures() -> Vec<Row> {
    let all = named(|function| !function.is_operator());
    let row = |(n, function): (u32, &&'static functions::Function)| {
        let args: Vec<Value> = function.args.iter().map(|param| oid(type_of(param))).collect();
        let row: Row = vec![
            ("oid", oid(n)),
            ("proname", text(function.name)),
            ("pronamespace", oid(PG_CATALOG)),
            ("proowner", oid(OWNER)),
            ("prolang", oid(12)),
            ("procost", Value::Double(1.0)),
            ("prokind", text("f")),
            ("proisstrict", Value::Bool(function.strict)),
            ("provolatile", text(if function.volatile { "v" } else { "i" })),
            ("proparallel", text("u")),
            ("pronargs", int(args.len())),
            ("prorettype", oid(type_of(&function.result))),
            ("proargtypes", Value::Array(Array::new(args))),
            ("prosrc", text(function.name)),
        ];
        row
    };
    (FUNCTIONS..)
        .zip(&all)
        .map(row)
        .chain(io::procedures())
        .chain(searched::procedures())
        .collect()
}

/// The rows of `pg_operator`.
pub(super) fn operators() -> Vec<Row> {
    let all = named(functions::Function::is_operator);
    let row = |(n, function): (u32, &&'static functions::Function)| {
        let (left, right) = match function.args.as_slice() {
            [right] => (0, type_of(right)),
            [left, right, ..] => (type_of(left), type_of(right)),
            [] => (0, 0),
        };
        let row: Row = vec![
            ("oid", oid(n)),
            ("oprname", text(function.name)),
            ("oprnamespace", oid(PG_CATALOG)),
            ("oprowner", oid(OWNER)),
            ("oprkind", text(if left == 0 { "l" } else { "b" })),
            ("oprleft", oid(left)),
            ("oprright", oid(right)),
            ("oprresult", oid(type_of(&function.result))),
        ];
        row
    };
    (FUNCTIONS + 10_000..).zip(&all).map(row).collect()
}

/// The OID of the operator that compares values of a type; 0 where there is none.
pub(super) fn operator_oid(name: &str, ty: &Type) -> i64 {
    let takes = |param: &Param| match param {
        Param::Type(own) => own == ty || own.is_text() && ty.is_text(),
        Param::Any => true,
        Param::Element => ty.element().is_none(),
        Param::Array => ty.element().is_some(),
        Param::Range => ty.range_element().is_some(),
        Param::Multirange => ty.multirange_element().is_some(),
    };
    let all = named(functions::Function::is_operator);
    let found = (FUNCTIONS + 10_000..)
        .zip(&all)
        .find(|(_, own)| own.name == name && own.args.len() == 2 && own.args.iter().all(takes));
    found.map_or(0, |(number, _)| i64::from(number))
}

/// The names of functions, which `regprocedure` shows with their arguments, by OID.
pub fn function_names(with_arguments: bool) -> Vec<(i64, String)> {
    let all = named(|function| !function.is_operator());
    let shown = (i64::from(FUNCTIONS)..).zip(&all).zip(signature(false));
    shown
        .map(|((n, function), (_, arguments))| match with_arguments {
            true => (n, format!("{}({})", function.name, arguments.replace(", ", ","))),
            false => (n, function.name.to_owned()),
        })
        .chain(
            io::names()
                .into_iter()
                .map(|(n, name, arguments)| match with_arguments {
                    true => (n, format!("{name}({arguments})")),
                    false => (n, name),
                }),
        )
        .chain(searched::names().map(|(n, name)| match with_arguments {
            true if searched::trigger_function(name) != 0 => (n, format!("{name}()")),
            true => (n, format!("{name}(internal)")),
            false => (n, name.to_owned()),
        }))
        .collect()
}

/// What `pg_get_function_result` and `pg_get_function_arguments` tell of every function, by OID.
pub fn signature(of_result: bool) -> Vec<(i64, String)> {
    let shown = |param: &Param| match param {
        Param::Type(ty) => ty.to_string(),
        Param::Any => "\"any\"".to_owned(),
        Param::Element => "anyelement".to_owned(),
        Param::Array => "anyarray".to_owned(),
        Param::Range => "anyrange".to_owned(),
        Param::Multirange => "anymultirange".to_owned(),
    };
    let signature = |function: &functions::Function| match of_result {
        true => shown(&function.result),
        false => function.args.iter().map(shown).collect::<Vec<_>>().join(", "),
    };
    let all = named(|function| !function.is_operator());
    (i64::from(FUNCTIONS)..)
        .zip(&all)
        .map(|(n, function)| (n, signature(function)))
        .collect()
}
