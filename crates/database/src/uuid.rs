//! Identities of collections, sessions and connections.

use nestor_model::Value;
use std::fmt;

/// A UUID: binary of subtype 4 and 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The value as BSON.
    pub fn to_value(self) -> Value {
        Value::Binary(nestor_model::Binary {
            subtype: 4,
            bytes: self.0.as_slice().into(),
        })
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
