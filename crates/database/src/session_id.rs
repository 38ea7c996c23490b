//! Identity of logical sessions.
//!
//! A session is that of a client's UUID *and* of a user: two users who send the same UUID share nothing. As in MongoDB the user stands
//! there as a digest.

use crate::users::UserName;
use crate::uuid::Uuid;
use nestor_model::{Binary, Document, doc};
use sha2::{Digest, Sha256};

/// Whose a session is: the SHA-256 of `user@database`, or of the empty text where nobody has to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(pub [u8; 32]);

impl Owner {
    /// The user without a name.
    pub const NOBODY: Self = Self([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae,
        0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
    ]);

    /// A user.
    pub fn of(user: &UserName) -> Self {
        Self(Sha256::digest(user.to_string()).into())
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self::NOBODY
    }
}

/// Identity of a logical session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lsid {
    /// `lsid.id`.
    pub id: Uuid,
    /// `lsid.uid`.
    pub owner: Owner,
}

impl Lsid {
    /// A session of the user without a name.
    pub fn of_nobody(id: Uuid) -> Self {
        Self {
            id,
            owner: Owner::NOBODY,
        }
    }

    /// The session's identity as the oplog stores it.
    pub fn to_document(self) -> Document {
        let uid = Binary {
            subtype: 0,
            bytes: self.owner.0.as_slice().into(),
        };
        doc! { "id": self.id.to_value(), "uid": uid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_of_user_and_database() {
        assert_eq!(Owner(Sha256::digest("").into()), Owner::NOBODY);
        let (in_a, in_b) = (UserName::new("u", "a"), UserName::new("u", "b"));
        assert_eq!(Owner::of(&in_a), Owner(Sha256::digest("u@a").into()));
        assert_ne!(Owner::of(&in_a), Owner::of(&in_b));
    }
}
