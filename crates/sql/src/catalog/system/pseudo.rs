//! PostgreSQL's pseudo-types that are none of [`Type`](crate::types::Type): what functions take and return, and no value has. That nothing
//! returns a `trigger` is what clients ask by its name.

/// A pseudo-type.
pub(super) struct Pseudo {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    /// The bytes of a value; -1 for those that begin with their length, -2 for those that end with a zero.
    pub(super) length: i16,
    /// The OID of arrays of it.
    pub(super) array: u32,
    /// There are functions that read and write it in binary.
    pub(super) is_binary: bool,
}

const fn pseudo(oid: u32, name: &'static str, length: i16) -> Pseudo {
    Pseudo {
        oid,
        name,
        length,
        array: 0,
        is_binary: false,
    }
}

/// All of them.
pub(super) const PSEUDO_TYPES: &[Pseudo] = &[
    Pseudo {
        is_binary: true,
        ..pseudo(32, "pg_ddl_command", 8)
    },
    pseudo(269, "table_am_handler", 4),
    pseudo(325, "index_am_handler", 4),
    Pseudo {
        array: 1263,
        is_binary: true,
        ..pseudo(2275, "cstring", -2)
    },
    pseudo(2276, "any", 4),
    Pseudo {
        is_binary: true,
        ..pseudo(2277, "anyarray", -1)
    },
    pseudo(2279, "trigger", 4),
    pseudo(2280, "language_handler", 4),
    pseudo(2281, "internal", 8),
    pseudo(2283, "anyelement", 4),
    pseudo(2776, "anynonarray", 4),
    pseudo(3115, "fdw_handler", 4),
    pseudo(3310, "tsm_handler", 4),
    pseudo(3500, "anyenum", 4),
    pseudo(3831, "anyrange", -1),
    pseudo(3838, "event_trigger", 4),
    pseudo(4537, "anymultirange", -1),
    pseudo(4538, "anycompatiblemultirange", -1),
    pseudo(5077, "anycompatible", 4),
    Pseudo {
        is_binary: true,
        ..pseudo(5078, "anycompatiblearray", -1)
    },
    pseudo(5079, "anycompatiblenonarray", 4),
    pseudo(5080, "anycompatiblerange", -1),
];
