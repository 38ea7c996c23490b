//! Names of types.

use super::names::object_name;
use crate::error::{error, fail, unsupported};
use crate::types::composite::Composite;
use crate::types::domain::Domain;
use crate::types::enums::{self, Enum};
use crate::types::{Type, interval, numeric_modifier};
use nestor_model::Result;
use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, DateTimeField, EnumMember, ExactNumberInfo, IntervalFields,
    TimezoneInfo,
};

/// Finds the type that somebody has made, of a schema, or along the search path, and a name.
pub type Find<'f> = dyn Fn(Option<&str>, &str) -> Option<Type> + 'f;

/// The type that a declaration keeps.
///
/// Errors: 42601 for what is none.
fn declared(members: &[EnumMember]) -> Result<Type> {
    let kept = |text: &str| data_type(&crate::parse::data_type(text)?);
    let texts = enums::texts(members).unwrap_or_default();
    let read = match texts.first() {
        Some(first) if first.starts_with('(') => Composite::declared(&texts, kept),
        Some(first) if first.starts_with('[') => Domain::declared(&texts, kept, super::domains::judge),
        _ => Enum::declared(&texts),
    };
    read.ok_or_else(|| error("42601", "syntax error at ENUM: CREATE TYPE makes enums"))
}

/// The fields that a modifier of the type has.
fn interval_fields(fields: &IntervalFields) -> i32 {
    use interval::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    match fields {
        IntervalFields::Year => YEAR,
        IntervalFields::Month => MONTH,
        IntervalFields::Day => DAY,
        IntervalFields::Hour => HOUR,
        IntervalFields::Minute => MINUTE,
        IntervalFields::Second => SECOND,
        IntervalFields::YearToMonth => YEAR | MONTH,
        IntervalFields::DayToHour => DAY | HOUR,
        IntervalFields::DayToMinute => DAY | HOUR | MINUTE,
        IntervalFields::DayToSecond => DAY | HOUR | MINUTE | SECOND,
        IntervalFields::HourToMinute => HOUR | MINUTE,
        IntervalFields::HourToSecond => HOUR | MINUTE | SECOND,
        IntervalFields::MinuteToSecond => MINUTE | SECOND,
    }
}

/// The modifier of `INTERVAL '...' leading TO last`.
pub fn interval_modifier(
    leading: Option<&DateTimeField>,
    last: Option<&DateTimeField>,
    digits: Option<u64>,
) -> Option<i32> {
    use interval::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    let place = |field: &DateTimeField| {
        [
            DateTimeField::Year,
            DateTimeField::Month,
            DateTimeField::Day,
            DateTimeField::Hour,
            DateTimeField::Minute,
            DateTimeField::Second,
        ]
        .iter()
        .position(|own| own == field)
    };
    let all = [YEAR, MONTH, DAY, HOUR, MINUTE, SECOND];
    let fields = match leading {
        None => interval::ALL_FIELDS,
        Some(leading) => {
            let from = place(leading)?;
            let to = last.map_or(Some(from), place)?;
            all.get(from..=to)?.iter().fold(0, |mask, field| mask | field)
        }
    };
    Some(interval::modifier(fields, digits))
}

/// Whether PostgreSQL has a type of this name that is not here: geometry, texts to search in, XML, money, and numbers of its own.
fn is_left_out(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "macaddr8",
        "point",
        "line",
        "lseg",
        "box",
        "path",
        "polygon",
        "circle",
        "xml",
        "money",
        "xid",
        "xid8",
        "cid",
        "tid",
        "pg_lsn",
        "txid_snapshot",
        "pg_snapshot",
    ];
    NAMES.contains(&name)
}

/// The type that is named, and its modifier (-1 for none).
///
/// Errors: 42704 for types that there are not, 22023 for modifiers that are out of range.
pub fn data_type(ty: &DataType) -> Result<(Type, i32)> {
    let length = |length: &Option<CharacterLength>| match length {
        Some(CharacterLength::IntegerLength { length, .. }) => match i32::try_from(*length) {
            Ok(n) if (1..=10_485_760).contains(&n) => Ok(n + 4),
            _ => fail("22023", "length of a character type is out of range"),
        },
        _ => Ok(-1),
    };
    // More digits of a second than there are are those that there are.
    let precision = |digits: Option<u64>| digits.map_or(-1, |digits| digits.min(6) as i32);
    let bits = |n: u64| match i32::try_from(n) {
        Ok(n) if (1..=83_886_080).contains(&n) => Ok(n),
        _ => fail("22023", "length for type bit is out of range"),
    };
    let number = |info: &ExactNumberInfo| {
        let (precision, scale) = match info {
            ExactNumberInfo::None => return Ok(-1),
            ExactNumberInfo::Precision(precision) => (*precision, 0),
            ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
        };
        match (u32::try_from(precision), u32::try_from(scale)) {
            (Ok(p @ 1..=1000), Ok(s)) if s <= p => Ok(numeric_modifier(p, s)),
            _ => fail(
                "22023",
                format!("NUMERIC precision {precision} or scale {scale} is out of range"),
            ),
        }
    };
    Ok(match ty {
        DataType::Bool | DataType::Boolean => (Type::Bool, -1),
        DataType::SmallInt(_) | DataType::Int2(_) => (Type::Int2, -1),
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => (Type::Int4, -1),
        DataType::BigInt(_) | DataType::Int8(_) => (Type::Int8, -1),
        DataType::Real | DataType::Float4 => (Type::Float4, -1),
        DataType::Float(ExactNumberInfo::Precision(1..=24)) => (Type::Float4, -1),
        DataType::Float(_) | DataType::Float8 | DataType::DoublePrecision | DataType::Double(_) => (Type::Float8, -1),
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => (Type::Numeric, number(info)?),
        DataType::Text => (Type::Text, -1),
        DataType::Varchar(n) | DataType::CharacterVarying(n) | DataType::CharVarying(n) => (Type::Varchar, length(n)?),
        DataType::Char(None) | DataType::Character(None) => (Type::Bpchar, 5),
        DataType::Char(n) | DataType::Character(n) => (Type::Bpchar, length(n)?),
        DataType::Bytea => (Type::Bytea, -1),
        DataType::Date => (Type::Date, -1),
        DataType::Time(p, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => (Type::Time, precision(*p)),
        DataType::Time(p, _) => (Type::Timetz, precision(*p)),
        DataType::Timestamp(p, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => (Type::Timestamp, precision(*p)),
        DataType::Timestamp(p, _) => (Type::Timestamptz, precision(*p)),
        DataType::Bit(None) => (Type::Bit, 1),
        DataType::Bit(Some(n)) => (Type::Bit, bits(*n)?),
        DataType::BitVarying(Some(n)) | DataType::VarBit(Some(n)) => (Type::Varbit, bits(*n)?),
        DataType::BitVarying(None) | DataType::VarBit(None) => (Type::Varbit, -1),
        DataType::Interval {
            fields: None,
            precision: None,
        } => (Type::Interval, -1),
        DataType::Interval { fields, precision } => {
            let fields = fields.as_ref().map_or(interval::ALL_FIELDS, interval_fields);
            (Type::Interval, interval::modifier(fields, *precision))
        }
        DataType::Uuid => (Type::Uuid, -1),
        DataType::JSON => (Type::Json, -1),
        DataType::JSONB => (Type::Jsonb, -1),
        DataType::Regclass => (Type::Regclass, -1),
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Qualified(element, _),
        ) => {
            let (element, modifier) = data_type(element)?;
            (
                if element.element().is_some() {
                    element
                } else {
                    element.array()
                },
                modifier,
            )
        }
        DataType::Enum(members, None) => (declared(members)?, -1),
        DataType::Custom(name, modifiers) => {
            let (_, name) = object_name(name)?;
            if name == "nchar" {
                let length = modifiers.first().map(|length| length.parse::<u64>());
                let length = match length {
                    Some(Ok(length)) => Some(CharacterLength::IntegerLength { length, unit: None }),
                    Some(Err(_)) => return fail("42601", "the length of a type is no number"),
                    None => None,
                };
                return data_type(&DataType::Char(length));
            }
            match Type::of_name(&name) {
                Some(ty) => (ty, -1),
                None if is_left_out(&name) => return unsupported(format!("type {name}")),
                None => return fail("42704", format!("type \"{name}\" does not exist")),
            }
        }
        other => match Type::of_name(&other.to_string()) {
            Some(ty) => (ty, -1),
            None => return unsupported(format!("type {other}")),
        },
    })
}

/// Refuses columns of types that have no values of their own.
///
/// Errors: 42P16.
pub fn check_column(name: &str, ty: &Type) -> Result<()> {
    let element = if let Type::Array(element) = ty { element } else { ty };
    match element {
        _ if element.is_row() => fail("42P16", format!("column \"{name}\" has pseudo-type {ty}")),
        Type::Void | Type::Unknown => fail("42P16", format!("column \"{name}\" has pseudo-type {ty}")),
        _ => Ok(()),
    }
}

/// As [`data_type`], also for those that somebody has made, which `find` knows by schema and name.
///
/// Errors: those of [`data_type`]; 42601 for a list of labels.
pub fn known_type(ty: &DataType, find: &Find<'_>) -> Result<(Type, i32)> {
    match ty {
        DataType::Enum(..) => fail("42601", "syntax error at ENUM: CREATE TYPE makes enums"),
        DataType::Custom(name, _) => {
            let (schema, plain) = object_name(name)?;
            let own = match Type::of_name(&plain) {
                Some(_) => None,
                None => find(schema.as_deref(), &plain),
            };
            own.map_or_else(|| data_type(ty), |own| Ok((own, -1)))
        }
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Qualified(element, _),
        ) => {
            let (element, modifier) = known_type(element, find)?;
            Ok((element.array(), modifier))
        }
        ty => data_type(ty),
    }
}

/// A type as declarations keep it: enums with their labels, composite types with their attributes.
///
/// Errors: those of [`known_type`].
pub fn kept_type(ty: &DataType, find: &Find<'_>) -> Result<DataType> {
    if !matches!(ty, DataType::Custom(..) | DataType::Array(_) | DataType::Enum(..)) || serial(ty) {
        return Ok(ty.clone());
    }
    let known = known_type(ty, find)?.0;
    Ok(written(&known).unwrap_or_else(|| ty.clone()))
}

/// A type that somebody has made, or an array of such, as declarations keep it.
pub fn written(ty: &Type) -> Option<DataType> {
    match ty {
        Type::Enum(own) => Some(own.written()),
        Type::Composite(own) => Some(own.written()),
        Type::Domain(own) => Some(own.written()),
        Type::Array(element) => {
            let element = Box::new(written(element)?);
            Some(DataType::Array(ArrayElemTypeDef::SquareBracket(element, None)))
        }
        _ => None,
    }
}

fn serial(ty: &DataType) -> bool {
    let name = ty.to_string().to_lowercase();
    name.starts_with("serial") || name.ends_with("serial")
}
