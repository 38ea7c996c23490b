//! Identity of logical sessions.

use crate::uuid::Uuid;
use nestor_model::{Binary, Document, doc};

/// Identity of a logical session: the client's UUID. (Without users there is one owner.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lsid {
    /// `lsid.id`.
    pub id: Uuid,
}

impl Lsid {
    /// The session's identity as the oplog stores it: with the owner's digest, of nobody on a server without users.
    pub fn to_document(self) -> Document {
        // SHA-256 of the empty text: the owner is the user without a name.
        const NOBODY: [u8; 32] = [
            0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae,
            0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
        ];
        let uid = Binary {
            subtype: 0,
            bytes: NOBODY.as_slice().into(),
        };
        doc! { "id": self.id.to_value(), "uid": uid }
    }
}
