//! The mechanisms by which clients log in, and the two hashes that they are made of.
//!
//! Source: RFC 5802 and RFC 7677; manual, "SCRAM"; driver specification "Authentication".

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use nestor_model::Result;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A mechanism for passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// SCRAM-SHA-1 over MongoDB's digest of user name and password.
    ScramSha1,
    /// SCRAM-SHA-256 over the prepared password.
    ScramSha256,
}

/// Iterations of SCRAM-SHA-1 for new passwords, unless a parameter says otherwise.
pub const SHA1_ITERATIONS: u32 = 10_000;
/// Iterations of SCRAM-SHA-256 for new passwords, unless a parameter says otherwise.
pub const SHA256_ITERATIONS: u32 = 15_000;
/// Fewest iterations that a parameter or a stored credential may ask for.
pub const ITERATIONS_MIN: u32 = 5_000;

/// Most iterations that a parameter may ask for: some seconds of work.
pub const ITERATIONS_MAX: u32 = 10_000_000;

impl Mechanism {
    /// All of them, in the order in which `saslSupportedMechs` names them.
    pub const ALL: [Self; 2] = [Self::ScramSha1, Self::ScramSha256];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    /// The mechanism of that name. Names are case-sensitive.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// Iterations for new passwords unless a parameter says otherwise.
    pub const fn default_iterations(self) -> u32 {
        match self {
            Self::ScramSha1 => SHA1_ITERATIONS,
            Self::ScramSha256 => SHA256_ITERATIONS,
        }
    }

    /// Bytes of a salt as MongoDB makes them: those of a hash less the four that PBKDF2 appends.
    pub const fn salt_bytes(self) -> usize {
        match self {
            Self::ScramSha1 => 16,
            Self::ScramSha256 => 28,
        }
    }

    /// Bytes of a hash, and of each key.
    pub const fn hash_bytes(self) -> usize {
        match self {
            Self::ScramSha1 => 20,
            Self::ScramSha256 => 32,
        }
    }

    /// `H` of RFC 5802.
    pub fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::ScramSha1 => Sha1::digest(bytes).to_vec(),
            Self::ScramSha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    /// `HMAC` of RFC 5802.
    pub fn hmac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::ScramSha1 => {
                let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("HMAC takes keys of any length");
                mac.update(bytes);
                mac.finalize().into_bytes().to_vec()
            }
            Self::ScramSha256 => {
                let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
                mac.update(bytes);
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    /// `Hi` of RFC 5802: the salted password.
    pub fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut out = vec![0; self.hash_bytes()];
        match self {
            Self::ScramSha1 => pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, &mut out),
            Self::ScramSha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, &mut out),
        }
        out
    }

    /// The form of the password in the exchange: MongoDB's digest with the user's name, or the prepared password.
    ///
    /// Errors: 2 for a password that cannot be prepared.
    pub fn password(self, user: &str, password: &str) -> Result<String> {
        match self {
            Self::ScramSha1 => Ok(mongo_digest(user, password)),
            Self::ScramSha256 => super::saslprep::prepare(password),
        }
    }
}

/// The hexadecimal MD5 of `user:mongo:password`, which clients use in place of the password in SCRAM-SHA-1.
pub fn mongo_digest(user: &str, password: &str) -> String {
    let mut md5 = Md5::new();
    for part in [user, ":mongo:", password] {
        md5.update(part.as_bytes());
    }
    md5.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for mechanism in Mechanism::ALL {
            assert_eq!(Mechanism::of_name(mechanism.name()), Some(mechanism));
        }
        assert_eq!(Mechanism::of_name("scram-sha-256"), None);
        assert_eq!(Mechanism::of_name("PLAIN"), None);
    }

    #[test]
    fn the_digest_is_that_of_the_drivers() {
        // Driver specification "Authentication", test of SCRAM-SHA-1 with user "user" and password "pencil".
        assert_eq!(mongo_digest("user", "pencil"), "1c33006ec1ffd90f9cadcbcc0e118200");
    }
}
