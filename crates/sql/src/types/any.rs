//! Types of arguments and results that stand for whichever type is given.

use super::Type;

/// What may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Shape {
    Any,
    NonArray,
    Enum,
    Array,
    Range,
    Multirange,
}

/// Such a type. All that are alike in `is_compatible` stand for the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Any {
    /// What may be given.
    pub shape: Shape,
    /// Given types need only have one in common.
    pub is_compatible: bool,
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
}

const fn any(shape: Shape, is_compatible: bool, oid: u32, name: &'static str) -> Any {
    Any {
        shape,
        is_compatible,
        oid,
        name,
    }
}

/// All of them.
const ALL: [Any; 11] = [
    any(Shape::Array, false, 2277, "anyarray"),
    any(Shape::Any, false, 2283, "anyelement"),
    any(Shape::NonArray, false, 2776, "anynonarray"),
    any(Shape::Enum, false, 3500, "anyenum"),
    any(Shape::Range, false, 3831, "anyrange"),
    any(Shape::Multirange, false, 4537, "anymultirange"),
    any(Shape::Any, true, 5077, "anycompatible"),
    any(Shape::Array, true, 5078, "anycompatiblearray"),
    any(Shape::NonArray, true, 5079, "anycompatiblenonarray"),
    any(Shape::Range, true, 5080, "anycompatiblerange"),
    any(Shape::Multirange, true, 4538, "anycompatiblemultirange"),
];

impl Any {
    /// The one of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|own| own.name == name)
    }

    /// What a given type says that it stands for; `None` where it may not be given.
    pub fn element(self, given: &Type) -> Option<Type> {
        match self.shape {
            Shape::Any => Some(given.clone()),
            Shape::NonArray => given.element().is_none().then(|| given.clone()),
            Shape::Enum => matches!(given, Type::Enum(_)).then(|| given.clone()),
            Shape::Array => given.element().cloned(),
            Shape::Range => given.range_element(),
            Shape::Multirange => given.multirange_element(),
        }
    }

    /// The type that it is, if that is what all stand for.
    pub fn whole(self, element: &Type) -> Option<Type> {
        match self.shape {
            Shape::Any | Shape::NonArray | Shape::Enum => Some(element.clone()),
            Shape::Array => element.element().is_none().then(|| element.clone().array()),
            Shape::Range => element.range_of(),
            Shape::Multirange => element.multirange_of(),
        }
    }
}
