//! Classes of operators, by PostgreSQL's names and numbers: clients ask for those of the parts of an index.

use super::{OWNER, PG_CATALOG, Row, oid, text};
use crate::types::Type;
use nestor_model::Value;

/// The access method of ordered indexes.
pub const BTREE: i64 = 403;
/// That of hashes.
pub const HASH: i64 = 405;
/// That of elements of arrays, and of what is in JSON.
pub const GIN: i64 = 2742;
/// That of the lexemes of texts and of what EXCLUDE compares, which other servers have for more.
pub const GIST: i64 = 783;
/// That of space partitioned by what is searched for.
pub const SPGIST: i64 = 4000;

/// The access methods of indexes, by number and name.
pub const METHODS: [(i64, &str); 5] = [
    (BTREE, "btree"),
    (HASH, "hash"),
    (GIST, "gist"),
    (GIN, "gin"),
    (SPGIST, "spgist"),
];

/// The number of an access method.
pub fn method(name: &str) -> Option<i64> {
    METHODS.iter().find(|(_, own)| *own == name).map(|(number, _)| *number)
}

/// Number, access method, name, family, type, whether it is taken where nothing is said, type of what is kept in the index.
type Class = (i64, i64, &'static str, i64, u32, bool, u32);

/// Those of the access methods that there are, for the types that there are.
const CLASSES: &[Class] = &[
    (1978, 403, "int4_ops", 1976, 23, true, 0),
    (1979, 403, "int2_ops", 1976, 21, true, 0),
    (1981, 403, "oid_ops", 1989, 26, true, 0),
    (3122, 403, "date_ops", 434, 1082, true, 0),
    (3123, 403, "float8_ops", 1970, 701, true, 0),
    (3124, 403, "int8_ops", 1976, 20, true, 0),
    (3125, 403, "numeric_ops", 1988, 1700, true, 0),
    (3126, 403, "text_ops", 1994, 25, true, 0),
    (3127, 403, "timestamptz_ops", 434, 1184, true, 0),
    (3128, 403, "timestamp_ops", 434, 1114, true, 0),
    (4217, 403, "text_pattern_ops", 2095, 25, false, 0),
    (4218, 403, "varchar_pattern_ops", 2095, 25, false, 0),
    (4219, 403, "bpchar_pattern_ops", 2097, 1042, false, 0),
    (10000, 403, "array_ops", 397, 2277, true, 0),
    (10002, 403, "bit_ops", 423, 1560, true, 0),
    (10003, 403, "bool_ops", 424, 16, true, 0),
    (10004, 403, "bpchar_ops", 426, 1042, true, 0),
    (10006, 403, "bytea_ops", 428, 17, true, 0),
    (10007, 403, "char_ops", 429, 18, true, 0),
    (10009, 403, "cidr_ops", 1974, 869, false, 0),
    (10012, 403, "float4_ops", 1970, 700, true, 0),
    (10015, 403, "inet_ops", 1974, 869, true, 0),
    (10022, 403, "interval_ops", 1982, 1186, true, 0),
    (10024, 403, "macaddr_ops", 1984, 829, true, 0),
    (10026, 403, "macaddr8_ops", 3371, 774, true, 0),
    (10028, 403, "name_ops", 1994, 19, true, 2275),
    (10032, 403, "oidvector_ops", 1991, 30, true, 0),
    (10034, 403, "record_ops", 2994, 2249, true, 0),
    (10036, 403, "record_image_ops", 3194, 2249, false, 0),
    (10038, 403, "time_ops", 1996, 1083, true, 0),
    (10041, 403, "timetz_ops", 2000, 1266, true, 0),
    (10043, 403, "varbit_ops", 2002, 1562, true, 0),
    (10044, 403, "varchar_ops", 1994, 25, false, 0),
    (10065, 403, "uuid_ops", 2968, 2950, true, 0),
    (10069, 403, "enum_ops", 3522, 3500, true, 0),
    (10076, 403, "range_ops", 3901, 3831, true, 0),
    (10080, 403, "multirange_ops", 4199, 4537, true, 0),
    (10088, 403, "jsonb_ops", 4033, 3802, true, 0),
    (10071, 403, "tsvector_ops", 3626, 3614, true, 0),
    (10074, 403, "tsquery_ops", 3683, 3615, true, 0),
    (10001, 405, "array_ops", 627, 2277, true, 0),
    (10005, 405, "bpchar_ops", 427, 1042, true, 0),
    (10008, 405, "char_ops", 431, 18, true, 0),
    (10010, 405, "cidr_ops", 1975, 869, false, 0),
    (10011, 405, "date_ops", 435, 1082, true, 0),
    (10013, 405, "float4_ops", 1971, 700, true, 0),
    (10014, 405, "float8_ops", 1971, 701, true, 0),
    (10016, 405, "inet_ops", 1975, 869, true, 0),
    (10019, 405, "int2_ops", 1977, 21, true, 0),
    (10020, 405, "int4_ops", 1977, 23, true, 0),
    (10021, 405, "int8_ops", 1977, 20, true, 0),
    (10023, 405, "interval_ops", 1983, 1186, true, 0),
    (10025, 405, "macaddr_ops", 1985, 829, true, 0),
    (10027, 405, "macaddr8_ops", 3372, 774, true, 0),
    (10029, 405, "name_ops", 1995, 19, true, 0),
    (10030, 405, "numeric_ops", 1998, 1700, true, 0),
    (10031, 405, "oid_ops", 1990, 26, true, 0),
    (10033, 405, "oidvector_ops", 1992, 30, true, 0),
    (10035, 405, "record_ops", 6194, 2249, true, 0),
    (10037, 405, "text_ops", 1995, 25, true, 0),
    (10039, 405, "time_ops", 1997, 1083, true, 0),
    (10040, 405, "timestamptz_ops", 1999, 1184, true, 0),
    (10042, 405, "timetz_ops", 2001, 1266, true, 0),
    (10045, 405, "varchar_ops", 1995, 25, false, 0),
    (10046, 405, "timestamp_ops", 2040, 1114, true, 0),
    (10048, 405, "bool_ops", 2222, 16, true, 0),
    (10049, 405, "bytea_ops", 2223, 17, true, 0),
    (10056, 405, "text_pattern_ops", 2229, 25, false, 0),
    (10057, 405, "varchar_pattern_ops", 2229, 25, false, 0),
    (10058, 405, "bpchar_pattern_ops", 2231, 1042, false, 0),
    (10066, 405, "uuid_ops", 2969, 2950, true, 0),
    (10070, 405, "enum_ops", 3523, 3500, true, 0),
    (10077, 405, "range_ops", 3903, 3831, true, 0),
    (10081, 405, "multirange_ops", 4225, 4537, true, 0),
    (10089, 405, "jsonb_ops", 4034, 3802, true, 0),
    (10072, 783, "tsvector_ops", 3655, 3614, true, 3642),
    (10073, 2742, "tsvector_ops", 3659, 3614, true, 25),
    (10064, 2742, "array_ops", 2745, 2277, true, 2283),
    (10090, 2742, "jsonb_ops", 4036, 3802, true, 25),
    (10091, 2742, "jsonb_path_ops", 4037, 3802, false, 23),
    (10017, 783, "inet_ops", 3550, 869, false, 0),
    (10078, 783, "range_ops", 3919, 3831, true, 0),
    (10082, 783, "multirange_ops", 6158, 4537, true, 3831),
    (10018, 4000, "inet_ops", 3794, 869, true, 0),
    (10079, 4000, "range_ops", 3474, 3831, true, 0),
    (10086, 4000, "text_ops", 4017, 25, true, 0),
    // Of the extension btree_gist.
    (13_840, 783, "gist_oid_ops", 13_870, 26, true, 0),
    (13_841, 783, "gist_int2_ops", 13_871, 21, true, 0),
    (13_842, 783, "gist_int4_ops", 13_872, 23, true, 0),
    (13_843, 783, "gist_int8_ops", 13_873, 20, true, 0),
    (13_844, 783, "gist_float4_ops", 13_874, 700, true, 0),
    (13_845, 783, "gist_float8_ops", 13_875, 701, true, 0),
    (13_846, 783, "gist_timestamp_ops", 13_876, 1114, true, 0),
    (13_847, 783, "gist_timestamptz_ops", 13_877, 1184, true, 0),
    (13_848, 783, "gist_time_ops", 13_878, 1083, true, 0),
    (13_849, 783, "gist_timetz_ops", 13_879, 1266, true, 0),
    (13_850, 783, "gist_date_ops", 13_880, 1082, true, 0),
    (13_851, 783, "gist_interval_ops", 13_881, 1186, true, 0),
    (13_852, 783, "gist_macaddr_ops", 13_882, 829, true, 0),
    (13_853, 783, "gist_macaddr8_ops", 13_883, 774, true, 0),
    (13_854, 783, "gist_text_ops", 13_884, 25, true, 0),
    (13_855, 783, "gist_bpchar_ops", 13_885, 1042, true, 0),
    (13_856, 783, "gist_bytea_ops", 13_886, 17, true, 0),
    (13_857, 783, "gist_numeric_ops", 13_887, 1700, true, 0),
    (13_858, 783, "gist_bit_ops", 13_888, 1560, true, 0),
    (13_859, 783, "gist_vbit_ops", 13_889, 1562, true, 0),
    (13_860, 783, "gist_inet_ops", 13_890, 869, true, 0),
    (13_861, 783, "gist_uuid_ops", 13_891, 2950, true, 0),
    (13_862, 783, "gist_enum_ops", 13_892, 3500, true, 0),
    (13_863, 783, "gist_bool_ops", 13_893, 16, true, 0),
    // Of the extension citext.
    (13_984, 403, "citext_ops", 13_986, 90_003, true, 0),
    (13_985, 405, "citext_ops", 13_987, 90_003, true, 0),
    // Of the extension btree_gin.
    (13_900, 2742, "int4_ops", 13_940, 23, true, 0),
    (13_901, 2742, "int2_ops", 13_941, 21, true, 0),
    (13_902, 2742, "int8_ops", 13_942, 20, true, 0),
    (13_903, 2742, "float4_ops", 13_943, 700, true, 0),
    (13_904, 2742, "float8_ops", 13_944, 701, true, 0),
    (13_905, 2742, "oid_ops", 13_945, 26, true, 0),
    (13_906, 2742, "timestamp_ops", 13_946, 1114, true, 0),
    (13_907, 2742, "timestamptz_ops", 13_947, 1184, true, 0),
    (13_908, 2742, "time_ops", 13_948, 1083, true, 0),
    (13_909, 2742, "timetz_ops", 13_949, 1266, true, 0),
    (13_910, 2742, "date_ops", 13_950, 1082, true, 0),
    (13_911, 2742, "interval_ops", 13_951, 1186, true, 0),
    (13_912, 2742, "macaddr_ops", 13_952, 829, true, 0),
    (13_913, 2742, "inet_ops", 13_953, 869, true, 0),
    (13_914, 2742, "cidr_ops", 13_954, 650, true, 0),
    (13_915, 2742, "text_ops", 13_955, 25, true, 0),
    (13_916, 2742, "char_ops", 13_956, 18, true, 0),
    (13_917, 2742, "bytea_ops", 13_957, 17, true, 0),
    (13_918, 2742, "bit_ops", 13_958, 1560, true, 0),
    (13_919, 2742, "varbit_ops", 13_959, 1562, true, 0),
    (13_920, 2742, "numeric_ops", 13_960, 1700, true, 0),
    (13_921, 2742, "name_ops", 13_961, 19, true, 0),
    (13_922, 2742, "uuid_ops", 13_962, 2950, true, 0),
    (13_923, 2742, "bool_ops", 13_963, 16, true, 0),
    (13_924, 2742, "bpchar_ops", 13_964, 1042, true, 0),
    (13_925, 2742, "enum_ops", 13_965, 3500, true, 0),
    // Of the extension pg_trgm.
    (13_980, 783, "gist_trgm_ops", 13_982, 25, false, 0),
    (13_981, 2742, "gin_trgm_ops", 13_983, 25, false, 23),
];

/// The rows of `pg_opclass`.
pub fn rows() -> Vec<Row> {
    let row = |(number, method, name, family, ty, is_default, kept): &Class| -> Row {
        vec![
            ("oid", oid(*number)),
            ("opcmethod", oid(*method)),
            ("opcname", text(*name)),
            ("opcnamespace", oid(PG_CATALOG)),
            ("opcowner", oid(OWNER)),
            ("opcfamily", oid(*family)),
            ("opcintype", oid(*ty)),
            ("opcdefault", Value::Bool(*is_default)),
            ("opckeytype", oid(*kept)),
        ]
    };
    CLASSES.iter().map(row).collect()
}

/// A class that a statement names.
pub enum Named {
    /// The type's own.
    Default,
    /// Another one for the type.
    Other,
    /// One for other types.
    Unfit,
}

/// The class of a name for a part of an index whose type is `ty`; `None` where the access method has none of that name.
pub fn named(method: i64, name: &str, ty: &Type) -> Option<Named> {
    let mut all = CLASSES
        .iter()
        .filter(|(_, own, own_name, ..)| *own == method && *own_name == name);
    let (.., input, is_default, _) = all.next()?;
    // Trigrams are those of texts of all kinds.
    let takes = *input == taken(ty) || name.ends_with("_trgm_ops") && *ty == Type::Citext;
    Some(match (takes, is_default) {
        (false, _) => Named::Unfit,
        (true, true) => Named::Default,
        (true, false) => Named::Other,
    })
}

/// The number of the class of a name.
pub fn number(method: i64, name: &str) -> i64 {
    let found = CLASSES
        .iter()
        .find(|(_, own, own_name, ..)| *own == method && *own_name == name);
    found.map_or(0, |(number, ..)| *number)
}

/// The name of the class that a part of an index has whose type is `ty`.
pub fn default_of(method: i64, ty: &Type) -> Option<&'static str> {
    let number = of(method, ty);
    let found = CLASSES.iter().find(|(own, ..)| *own == number);
    found.map(|(_, _, name, ..)| *name)
}

/// The name of the family that a class belongs to: that of the class, but for families of several types.
pub fn family(method: i64, class: &str) -> &str {
    let found = CLASSES
        .iter()
        .find(|(_, own, name, ..)| *own == method && *name == class);
    match found.map(|(_, _, _, family, ..)| *family) {
        Some(1976 | 1977) => "integer_ops",
        Some(1970 | 1971) => "float_ops",
        Some(434) => "datetime_ops",
        Some(1994 | 1995) => "text_ops",
        Some(1974 | 1975) => "network_ops",
        _ => class,
    }
}

/// The type by which classes take values of a type.
fn taken(ty: &Type) -> u32 {
    match ty {
        Type::Array(_) => 2277,
        Type::Enum(_) => 3500,
        Type::Composite(_) => Type::Record.oid(),
        Type::Varchar => Type::Text.oid(),
        Type::Cidr => Type::Inet.oid(),
        ty if ty.range_element().is_some() => 3831,
        ty if ty.multirange_element().is_some() => 4537,
        ty => ty.oid(),
    }
}

/// The number of the class that a part of an index has whose type is `ty`; 0 for types that have no order.
pub fn of(method: i64, ty: &Type) -> i64 {
    let input = taken(ty);
    let mut all = CLASSES.iter();
    let found = all.find(|(_, own, _, _, of, is_default, _)| *own == method && *of == input && *is_default);
    found.map_or(0, |(number, ..)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_one_class_of_a_method() {
        assert_eq!(of(BTREE, &Type::Varchar), of(BTREE, &Type::Text));
        assert_eq!(of(BTREE, &Type::Int4), 1978);
        assert_eq!(of(2742, &Type::Int4.array()), 10064);
        assert_eq!(of(BTREE, &Type::Json), 0);
        for (number, method, _, _, ty, is_default, _) in CLASSES {
            let same = CLASSES
                .iter()
                .filter(|other| (other.1, other.4, other.5) == (*method, *ty, true));
            assert!(same.count() <= 1 || !is_default, "{number}");
        }
    }
}
