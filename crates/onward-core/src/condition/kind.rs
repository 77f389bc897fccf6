//! The types of values, with their names in CEL and in messages.

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    List,
    Object,
    Type,
}

impl Kind {
    /// The description in messages.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Int => "an integer",
            Kind::Uint => "an unsigned integer",
            Kind::Double => "a double",
            Kind::Text => "a string",
            Kind::List => "a list",
            Kind::Object => "an object",
            Kind::Type => "a type",
        }
    }

    /// The type with this name in CEL.
    pub(super) fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "null_type" => Kind::Null,
            "bool" => Kind::Bool,
            "int" => Kind::Int,
            "uint" => Kind::Uint,
            "double" => Kind::Double,
            "string" => Kind::Text,
            "list" => Kind::List,
            "map" => Kind::Object,
            "type" => Kind::Type,
            _ => return None,
        })
    }
}
