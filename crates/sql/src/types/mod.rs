//! PostgreSQL's types as Nestor has them: names, OIDs, and how their values are held while a statement runs.
//!
//! | type | held as |
//! |---|---|
//! | `boolean` | `Bool` |
//! | `smallint`, `integer`, `date` (days since 1970) | `Int32` |
//! | enums (the place of the label, from 0: [`enums`]) | `Int32` |
//! | composite types (fields as documents hold them: [`composite`]) | `Document` |
//! | domains ([`domain`]) | as the type that they are over |
//! | `bigint`, `oid`, `time`, `timestamp`, `timestamptz` (microseconds; the last two since 1970) | `Int64` |
//! | `real`, `double precision` | `Double` |
//! | `numeric` | `Decimal128`: 34 digits, whose exponent is the scale |
//! | `text`, `varchar`, `char`, `name`, `citext`, `json`, `jsonpath`, `bit`, `bit varying`, `refcursor`, `tsvector`, `tsquery` | `String` |
//! | `bytea`, `uuid`, `interval`, `timetz` | `Binary` of subtypes 0, 4, [`INTERVAL_SUBTYPE`] and [`TIMETZ_SUBTYPE`] |
//! | `inet`, `cidr`, `macaddr` ([`network`]) | `Binary` of subtypes [`INET_SUBTYPE`] and [`MAC_SUBTYPE`] |
//! | `jsonb` | any value; JSON's null is `Undefined`, because `Null` is SQL's |
//! | ranges, multiranges | `Array` ([`mod@range`]) |
//! | arrays, vectors | `Array` of what their elements are held as |
//! | records | `Array` of their fields ([`record`]) |
//! | `regclass` and its like | `Int64`; in rows of answers an `Array` of it and the name |
//!
//! `timestamptz` is an instant; [`zone`] has how it is read and shown. What documents hold differs for dates and times only: there they are BSON's date, in milliseconds ([`stored`]).

mod abbreviations;
pub mod any;
pub mod arrays;
pub mod bits;
pub mod cast;
pub mod collation;
pub mod compare;
pub mod composite;
pub mod datetime;
pub mod domain;
pub mod encoding;
pub mod enums;
pub mod input;
pub mod interval;
pub mod json;
pub mod jsonpath;
mod moment;
pub mod names;
pub mod network;
pub mod numeric;
pub mod output;
pub mod range;
pub mod record;
pub mod regconfig;
pub mod regex;
pub mod stored;
pub mod style;
pub mod timetz;
mod tokens;
pub mod tsquery;
pub mod tsvector;
pub mod units;
pub mod zone;

use self::any::Any;
use self::composite::Composite;
use self::domain::Domain;
use self::enums::Enum;
use nestor_model::Value;
use std::fmt;
use std::sync::Arc;

/// Subtype of the binary values that intervals are held as.
pub const INTERVAL_SUBTYPE: u8 = 0xE1;

/// Subtype of the binary values that times with time zones are held as.
pub const TIMETZ_SUBTYPE: u8 = 0xE2;
/// The subtype of addresses of networks, which only statements hold.
pub const INET_SUBTYPE: u8 = 0xE5;
/// The subtype of addresses of hardware, which only statements hold.
pub const MAC_SUBTYPE: u8 = 0xE6;

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Bpchar,
    /// Texts that compare without regard to case: [`compare::small`].
    Citext,
    Name,
    /// `"char"`: one byte, in catalogs.
    Char,
    Bytea,
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Json,
    Jsonb,
    /// A path of SQL/JSON, as its printed text.
    Jsonpath,
    Bit,
    Varbit,
    /// Addresses, of hosts and networks: [`network`].
    Inet,
    Cidr,
    Macaddr,
    Int4Range,
    Int4Multirange,
    Int8Range,
    Int8Multirange,
    NumericRange,
    NumericMultirange,
    DateRange,
    DateMultirange,
    TimestampRange,
    TimestampMultirange,
    TimestamptzRange,
    TimestamptzMultirange,
    Oid,
    /// Where a row is: a block, and a place in it, as one number.
    Tid,
    Regclass,
    Regtype,
    Regproc,
    Regnamespace,
    Regrole,
    Regprocedure,
    Regoperator,
    Regconfig,
    Regdictionary,
    /// Numbers with spaces between, counted from 0: what catalogs hold of columns.
    Int2vector,
    /// The same of OIDs.
    Oidvector,
    /// The name of a cursor.
    Refcursor,
    /// A text to be searched: [`mod@tsvector`].
    TsVector,
    /// What is searched for: [`tsquery`].
    TsQuery,
    /// BSON's ObjectId, which PostgreSQL does not have.
    ObjectId,
    /// One that somebody has made, held as `Int32`.
    Enum(Arc<Enum>),
    /// One of rows that somebody has made, held as a document: [`composite`].
    Composite(Arc<Composite>),
    /// One of values of another for which conditions hold: [`domain`].
    Domain(Arc<Domain>),
    Array(Box<Type>),
    /// Whichever is given to a function: [`any`].
    Any(Any),
    /// A row whose columns are not declared.
    Record,
    /// A literal whose type its place decides.
    Unknown,
    Void,
}

struct Entry {
    ty: Type,
    oid: u32,
    array_oid: u32,
    name: &'static str,
    sql_name: &'static str,
    length: i16,
    category: char,
}

macro_rules! entries {
    ($($ty:ident $oid:literal $array:literal $name:literal $sql:literal $length:literal $category:literal;)*) => {
        &[$(Entry { ty: Type::$ty, oid: $oid, array_oid: $array, name: $name, sql_name: $sql, length: $length, category: $category }),*]
    };
}

/// All but arrays: OID, OID of the array, names in pg_type and in SQL, length, category.
static TYPES: &[Entry] = entries! {
    Bool 16 1000 "bool" "boolean" 1 'B';
    Bytea 17 1001 "bytea" "bytea" -1 'U';
    Char 18 1002 "char" "\"char\"" 1 'Z';
    Name 19 1003 "name" "name" 64 'S';
    Int8 20 1016 "int8" "bigint" 8 'N';
    Int2 21 1005 "int2" "smallint" 2 'N';
    Int2vector 22 1006 "int2vector" "int2vector" -1 'A';
    Int4 23 1007 "int4" "integer" 4 'N';
    Regproc 24 1008 "regproc" "regproc" 4 'N';
    Text 25 1009 "text" "text" -1 'S';
    Oid 26 1028 "oid" "oid" 4 'N';
    Tid 27 1010 "tid" "tid" 6 'U';
    Oidvector 30 1013 "oidvector" "oidvector" -1 'A';
    Json 114 199 "json" "json" -1 'U';
    Cidr 650 651 "cidr" "cidr" -1 'I';
    Float4 700 1021 "float4" "real" 4 'N';
    Float8 701 1022 "float8" "double precision" 8 'N';
    Macaddr 829 1040 "macaddr" "macaddr" 6 'U';
    Inet 869 1041 "inet" "inet" -1 'I';
    Unknown 705 0 "unknown" "unknown" -2 'X';
    Bpchar 1042 1014 "bpchar" "character" -1 'S';
    Varchar 1043 1015 "varchar" "character varying" -1 'S';
    Date 1082 1182 "date" "date" 4 'D';
    Time 1083 1183 "time" "time without time zone" 8 'D';
    Timetz 1266 1270 "timetz" "time with time zone" 12 'D';
    Bit 1560 1561 "bit" "bit" -1 'V';
    Varbit 1562 1563 "varbit" "bit varying" -1 'V';
    Timestamp 1114 1115 "timestamp" "timestamp without time zone" 8 'D';
    Timestamptz 1184 1185 "timestamptz" "timestamp with time zone" 8 'D';
    Interval 1186 1187 "interval" "interval" 16 'T';
    Numeric 1700 1231 "numeric" "numeric" -1 'N';
    Refcursor 1790 2201 "refcursor" "refcursor" -1 'U';
    Regprocedure 2202 2207 "regprocedure" "regprocedure" 4 'N';
    Regoperator 2204 2209 "regoperator" "regoperator" 4 'N';
    Regclass 2205 2210 "regclass" "regclass" 4 'N';
    Regtype 2206 2211 "regtype" "regtype" 4 'N';
    Record 2249 2287 "record" "record" -1 'P';
    Void 2278 0 "void" "void" 4 'P';
    Uuid 2950 2951 "uuid" "uuid" 16 'U';
    TsVector 3614 3643 "tsvector" "tsvector" -1 'U';
    TsQuery 3615 3645 "tsquery" "tsquery" -1 'U';
    Regconfig 3734 3735 "regconfig" "regconfig" 4 'N';
    Regdictionary 3769 3770 "regdictionary" "regdictionary" 4 'N';
    Jsonb 3802 3807 "jsonb" "jsonb" -1 'U';
    Int4Range 3904 3905 "int4range" "int4range" -1 'R';
    Int4Multirange 4451 6150 "int4multirange" "int4multirange" -1 'R';
    Int8Range 3926 3927 "int8range" "int8range" -1 'R';
    Int8Multirange 4536 6157 "int8multirange" "int8multirange" -1 'R';
    NumericRange 3906 3907 "numrange" "numrange" -1 'R';
    NumericMultirange 4532 6151 "nummultirange" "nummultirange" -1 'R';
    DateRange 3912 3913 "daterange" "daterange" -1 'R';
    DateMultirange 4535 6155 "datemultirange" "datemultirange" -1 'R';
    TimestampRange 3908 3909 "tsrange" "tsrange" -1 'R';
    TimestampMultirange 4533 6152 "tsmultirange" "tsmultirange" -1 'R';
    TimestamptzRange 3910 3911 "tstzrange" "tstzrange" -1 'R';
    TimestamptzMultirange 4534 6153 "tstzmultirange" "tstzmultirange" -1 'R';
    Jsonpath 4072 4073 "jsonpath" "jsonpath" -1 'U';
    Regnamespace 4089 4090 "regnamespace" "regnamespace" 4 'N';
    Regrole 4096 4097 "regrole" "regrole" 4 'N';
    ObjectId 90001 90002 "objectid" "objectid" 12 'U';
    Citext 90003 90004 "citext" "citext" -1 'S';
};

/// Types of bounds, and the ranges and multiranges of them.
static RANGES: &[(Type, Type, Type)] = &[
    (Type::Int4, Type::Int4Range, Type::Int4Multirange),
    (Type::Int8, Type::Int8Range, Type::Int8Multirange),
    (Type::Numeric, Type::NumericRange, Type::NumericMultirange),
    (Type::Date, Type::DateRange, Type::DateMultirange),
    (Type::Timestamp, Type::TimestampRange, Type::TimestampMultirange),
    (Type::Timestamptz, Type::TimestamptzRange, Type::TimestamptzMultirange),
];

fn entry(ty: &Type) -> Option<&'static Entry> {
    TYPES.iter().find(|entry| entry.ty == *ty)
}

impl Type {
    /// The array of such elements. Arrays of arrays are of the same type: how deep an array is, its values say.
    pub fn array(self) -> Self {
        match self {
            Self::Array(_) => self,
            element => Self::Array(Box::new(element)),
        }
    }

    /// The type of the elements, if it is an array.
    pub fn element(&self) -> Option<&Self> {
        match self {
            Self::Array(element) => Some(element),
            Self::Int2vector => Some(&Self::Int2),
            Self::Oidvector => Some(&Self::Oid),
            _ => None,
        }
    }

    /// Its OID.
    pub fn oid(&self) -> u32 {
        match self {
            Self::Enum(own) => own.oid,
            Self::Composite(own) => own.oid,
            Self::Domain(own) => own.oid,
            Self::Any(own) => own.oid,
            Self::Array(element) => match &**element {
                Self::Enum(own) => own.array_oid(),
                Self::Composite(own) => own.array_oid(),
                Self::Domain(own) => own.array_oid(),
                element => entry(element).map_or(0, |entry| entry.array_oid),
            },
            _ => entry(self).map_or(0, |entry| entry.oid),
        }
    }

    /// The type that its values are of in expressions: that behind a domain.
    #[must_use]
    pub fn plain(self) -> Self {
        match self {
            Self::Domain(own) => own.bottom().0.clone().plain(),
            Self::Array(element) if element.is_constrained() => element.plain().array(),
            ty => ty,
        }
    }

    /// Whether it is a domain, or an array of such.
    pub fn is_constrained(&self) -> bool {
        match self {
            Self::Domain(_) => true,
            Self::Array(element) => element.is_constrained(),
            _ => false,
        }
    }

    /// The type with an OID.
    pub fn of_oid(oid: u32) -> Option<Self> {
        let found = TYPES
            .iter()
            .find(|entry| oid != 0 && (entry.oid == oid || entry.array_oid == oid))?;
        Some(match found.oid == oid {
            true => found.ty.clone(),
            false => found.ty.clone().array(),
        })
    }

    /// The type with this name in `pg_type` or one of SQL's, without modifiers.
    pub fn of_name(name: &str) -> Option<Self> {
        if let Some(element) = name.strip_prefix('_').and_then(Self::of_name) {
            return Some(element.array());
        }
        if let Some(element) = name.strip_suffix("[]") {
            return Self::of_name(element).map(Self::array);
        }
        let lower = name.to_ascii_lowercase();
        let alias = match lower.as_str() {
            "int" => "int4",
            "decimal" | "dec" => "numeric",
            "string" => "text",
            "time" => "time",
            "float" | "double" => "float8",
            "timestamp with time zone" => "timestamptz",
            "time without time zone" => "time",
            "time with time zone" => "timetz",
            other => other,
        };
        let found = TYPES
            .iter()
            .find(|entry| entry.name == alias || entry.sql_name == alias)?;
        Some(found.ty.clone())
    }

    /// The type that a text names as statements would: with its schema or not, in quotes or not, with brackets or a modifier behind it. Those
    /// that somebody has made are found by [`name_key`].
    pub fn named(text: &str) -> Option<Self> {
        let (base, is_array) = split_name(text);
        let parts = names::names_in(&base);
        let ty = match parts.as_slice() {
            [name] | [_, name] if parts.len() == 1 || parts[0] == "pg_catalog" => match base.contains('"') {
                // A name in quotes is that of `pg_type`, no other word for it.
                true => {
                    let (element, name) = match name.strip_prefix('_') {
                        Some(name) => (true, name),
                        None => (false, name.as_str()),
                    };
                    let found = TYPES.iter().find(|entry| entry.name == name)?.ty.clone();
                    if element { found.array() } else { found }
                }
                false => Self::of_name(name)?,
            },
            _ => return None,
        };
        Some(if is_array { ty.array() } else { ty })
    }

    /// Every type but arrays, for `pg_type`.
    pub fn all() -> impl Iterator<Item = Self> {
        TYPES.iter().map(|entry| entry.ty.clone())
    }

    /// Its name in `pg_type`.
    pub fn name(&self) -> String {
        match self {
            Self::Array(element) => format!("_{}", element.name()),
            Self::Any(own) => own.name.to_owned(),
            _ => match self.made() {
                Some(name) => name.rsplit('.').next().unwrap_or(name).to_owned(),
                None => entry(self).map_or("???", |entry| entry.name).to_owned(),
            },
        }
    }

    /// Whether it is the type of rows, or of arrays of such, that nobody has declared.
    pub fn is_row(&self) -> bool {
        match self.element().unwrap_or(self) {
            Self::Record => true,
            Self::Composite(own) => own.is_of_row(),
            _ => false,
        }
    }

    /// The name of one that somebody has made, with its schema if that is not `public`.
    pub fn made(&self) -> Option<&str> {
        match self {
            Self::Enum(own) => Some(&own.name),
            Self::Domain(own) => Some(&own.name),
            Self::Composite(own) if !own.is_of_row() => Some(&own.name),
            _ => None,
        }
    }

    /// The schema that it is in.
    pub fn schema(&self) -> &str {
        match self.element().unwrap_or(self).made() {
            Some(name) => name.split_once('.').map_or("public", |(schema, _)| schema),
            None => "pg_catalog",
        }
    }

    /// Whether it is the type with an OID, or made of it.
    pub fn is_of(&self, oid: u32) -> bool {
        match self {
            Self::Array(element) => element.is_of(oid),
            Self::Domain(own) => own.oid == oid || own.base.is_of(oid),
            Self::Composite(own) => own.oid == oid || own.attributes.iter().any(|own| own.ty.is_of(oid)),
            ty => ty.oid() == oid,
        }
    }

    /// It, with another type in the place of the one that has its OID.
    #[must_use]
    pub fn with(&self, new: &Self) -> Self {
        match self {
            Self::Array(element) => element.with(new).array(),
            ty if ty.oid() == new.oid() => new.clone(),
            Self::Domain(own) => {
                let base = own.base.with(new);
                Self::Domain(Arc::new(Domain {
                    base,
                    ..(**own).clone()
                }))
            }
            Self::Composite(own) => {
                let mut own = (**own).clone();
                for attribute in &mut own.attributes {
                    attribute.ty = attribute.ty.with(new);
                }
                Self::Composite(Arc::new(own))
            }
            ty => ty.clone(),
        }
    }

    /// It as declarations keep it, which are read without the rest of the catalog.
    pub fn written(&self, modifier: i32) -> String {
        match self {
            Self::Enum(own) => own.written().to_string(),
            Self::Composite(own) => own.written().to_string(),
            Self::Domain(own) => own.written().to_string(),
            Self::Array(element) => format!("{}[]", element.written(modifier)),
            ty => ty.format(modifier),
        }
    }

    /// Bytes of its values on the wire; negative when they vary.
    pub fn length(&self) -> i16 {
        match self {
            Self::Array(_) => -1,
            Self::Enum(_) => 4,
            Self::Domain(own) => own.base.length(),
            _ => entry(self).map_or(-1, |entry| entry.length),
        }
    }

    /// How its values are stored in PostgreSQL: `p` as they are, `m` compressed, `x` elsewhere too.
    pub fn storage(&self) -> &'static str {
        match self {
            Self::Domain(own) => own.base.storage(),
            Self::Numeric => "m",
            Self::Int2vector | Self::Oidvector | Self::TsQuery => "p",
            _ if self.length() < 0 => "x",
            _ => "p",
        }
    }

    /// The OID of the collation that its values compare by; 0 for those that compare by none.
    pub fn collation(&self) -> u32 {
        match self {
            Self::Name => 950,
            Self::Text | Self::Varchar | Self::Bpchar | Self::Citext => 100,
            Self::Array(element) => element.collation(),
            Self::Domain(own) => own.base.collation(),
            _ => 0,
        }
    }

    /// `typcategory`.
    pub fn category(&self) -> char {
        match self {
            Self::Array(_) => 'A',
            Self::Enum(_) => 'E',
            Self::Composite(_) => 'C',
            Self::Domain(own) => own.base.category(),
            _ => entry(self).map_or('U', |entry| entry.category),
        }
    }

    /// Whether its values are addresses.
    pub fn is_address(&self) -> bool {
        matches!(self, Self::Inet | Self::Cidr | Self::Macaddr)
    }

    /// The type of the bounds, if it is a type of ranges.
    pub fn range_element(&self) -> Option<Self> {
        RANGES
            .iter()
            .find(|(_, range, _)| range == self)
            .map(|(element, ..)| element.clone())
    }

    /// The type of the bounds, if it is a type of multiranges.
    pub fn multirange_element(&self) -> Option<Self> {
        RANGES
            .iter()
            .find(|(.., multi)| multi == self)
            .map(|(element, ..)| element.clone())
    }

    /// The ranges of such bounds.
    pub fn range_of(&self) -> Option<Self> {
        RANGES
            .iter()
            .find(|(element, ..)| element == self)
            .map(|(_, range, _)| range.clone())
    }

    /// The multiranges of such bounds.
    pub fn multirange_of(&self) -> Option<Self> {
        RANGES
            .iter()
            .find(|(element, ..)| element == self)
            .map(|(.., multi)| multi.clone())
    }

    /// Whether it is a range or a multirange.
    pub fn is_ranges(&self) -> bool {
        self.range_element().is_some() || self.multirange_element().is_some()
    }

    /// The number of the first element of an array of this type.
    pub fn first_subscript(&self) -> i32 {
        i32::from(!self.is_vector())
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Float4 | Self::Float8 | Self::Numeric | Self::Oid
        )
    }

    /// Whether it is a whole number.
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8)
    }

    /// Whether it is text of any length.
    pub fn is_text(&self) -> bool {
        matches!(
            self,
            Self::Text | Self::Varchar | Self::Bpchar | Self::Citext | Self::Name | Self::Char
        )
    }

    /// Whether it is numbers with spaces between, counted from 0.
    pub fn is_vector(&self) -> bool {
        matches!(self, Self::Int2vector | Self::Oidvector)
    }

    /// Whether it stands for an object of the catalog by a number.
    pub fn is_reg(&self) -> bool {
        matches!(
            self,
            Self::Regclass
                | Self::Regtype
                | Self::Regproc
                | Self::Regnamespace
                | Self::Regrole
                | Self::Regprocedure
                | Self::Regoperator
                | Self::Regconfig
                | Self::Regdictionary
        )
    }

    /// Whether its values are numbers of what all databases have, so that their names are known without a catalog.
    pub fn has_fixed_names(&self) -> bool {
        matches!(self, Self::Regconfig | Self::Regdictionary)
    }

    /// Its name with a modifier, as `format_type` prints it.
    pub fn format(&self, modifier: i32) -> String {
        match self {
            Self::Array(element) => format!("{}[]", element.format(modifier)),
            Self::Varchar | Self::Bpchar if modifier >= 4 => format!("{self}({})", modifier - 4),
            Self::Bit | Self::Varbit if modifier >= 0 => format!("{self}({modifier})"),
            Self::Time | Self::Timetz | Self::Timestamp | Self::Timestamptz if modifier >= 0 => {
                let shown = self.to_string();
                let (word, rest) = shown.split_once(' ').unwrap_or((&shown, ""));
                format!("{word}({modifier}) {rest}")
            }
            Self::Numeric if modifier >= 4 => {
                let packed = modifier - 4;
                format!("numeric({},{})", packed >> 16, packed & 0xFFFF)
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(element) => write!(f, "{element}[]"),
            Self::Enum(own) => f.write_str(&own.shown()),
            Self::Composite(own) => f.write_str(&own.shown()),
            Self::Domain(own) => f.write_str(&own.shown()),
            Self::Any(own) => f.write_str(own.name),
            _ => f.write_str(entry(self).map_or("???", |entry| entry.sql_name)),
        }
    }
}

/// A text that names a type without its brackets and modifier, and whether it has brackets.
fn split_name(text: &str) -> (String, bool) {
    let mut base = text.trim();
    let mut is_array = false;
    while let Some((before, inside)) = base.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        if !inside.chars().all(|c| c.is_ascii_digit()) {
            break;
        }
        (base, is_array) = (before.trim_end(), true);
    }
    let whole = match (base.find('('), base.find(')')) {
        (Some(begin), Some(end)) if begin < end && !base.contains('"') => {
            format!("{} {}", base[..begin].trim_end(), base[end + 1..].trim_start())
        }
        _ => base.to_owned(),
    };
    (whole.trim().to_owned(), is_array)
}

/// What a text that names a type is looked up by among those that somebody has made: names as they are, dots between them, `[]` behind those of arrays.
pub fn name_key(text: &str) -> String {
    let (base, is_array) = split_name(text);
    let key = names::names_in(&base).join(".");
    if is_array { format!("{key}[]") } else { key }
}

/// The modifier of `numeric(precision, scale)`.
pub fn numeric_modifier(precision: u32, scale: u32) -> i32 {
    i32::try_from((precision << 16) | scale).map_or(-1, |packed| packed + 4)
}

/// Precision and scale of a modifier of `numeric`.
pub fn numeric_parts(modifier: i32) -> Option<(u32, u32)> {
    let packed = u32::try_from(modifier.checked_sub(4)?).ok()?;
    Some((packed >> 16, packed & 0xFFFF))
}

/// A whole number of a type of such.
pub fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int32(n) => Some(i64::from(*n)),
        Value::Int64(n) => Some(*n),
        _ => None,
    }
}
