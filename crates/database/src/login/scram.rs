//! The server's side of SCRAM as a state machine over messages.
//!
//! ```text
//! client  n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL                     [`Hello::parse`]
//! server  r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJ…,s=QSXCR+Q6…,i=4096   [`Hello::challenge`]
//! client  c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJ…,p=v0X8v3Bz…   [`Challenge::verify`]
//! server  v=rmF9pqV8S7suAoZWja4dJRkFsKQ=
//! ```
//!
//! Each step consumes the one before it, so that no message can be answered twice. Whoever knows no password takes the same way to the
//! same error as somebody whose user does not exist (see [`Credential::decoy`]).
//!
//! Source: RFC 5802, sections 3, 5 and 7; RFC 7677.

use super::credential::Credential;
use super::failed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ctutils::CtEq;
use nestor_model::Result;

/// Longest message that is looked at, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4096;

/// The client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The user who wants to log in.
    pub user: String,
    nonce: String,
    /// The message without its header, which both sides sign.
    bare: String,
    /// The value that `c` of the last message must have.
    header: String,
}

/// The server has answered the first message and waits for the proof.
#[derive(Clone, Debug)]
pub struct Challenge {
    credential: Credential,
    nonce: String,
    header: String,
    /// The messages so far, as they are signed.
    signed: String,
}

impl Hello {
    /// Reads the client's first message.
    ///
    /// Errors: 18 for anything else, channel binding included, which needs TLS.
    pub fn parse(message: &[u8]) -> Result<Self> {
        Self::read(message)
            .filter(|hello| !hello.user.is_empty())
            .ok_or_else(failed)
    }

    /// As [`Hello::parse`], of a client that has said before who it is: the name within the message is of no account, as PostgreSQL's
    /// manual states it ("SASL Authentication").
    ///
    /// Errors: as [`Hello::parse`].
    pub fn parse_of(user: &str, message: &[u8]) -> Result<Self> {
        let hello = Self::read(message).ok_or_else(failed)?;
        Ok(Self {
            user: user.to_owned(),
            ..hello
        })
    }

    fn read(message: &[u8]) -> Option<Self> {
        let text = text(message)?;
        let (flag, rest) = text.split_once(',')?;
        // `p=` asks for channel binding.
        if flag != "n" && flag != "y" {
            return None;
        }
        let (acting_as, bare) = rest.split_once(',')?;
        let mut parts = bare.split(',');
        // An extension that must be understood (`m=`) would stand first.
        let user = unescape(parts.next()?.strip_prefix("n=")?)?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        let acts_as_another = match acting_as.strip_prefix("a=") {
            Some(name) => unescape(name)? != user,
            None => !acting_as.is_empty(),
        };
        if acts_as_another || !is_nonce(nonce) {
            return None;
        }
        Some(Self {
            user,
            nonce: nonce.to_owned(),
            bare: bare.to_owned(),
            header: format!("{flag},{acting_as},"),
        })
    }

    /// The server's first message: salt and iterations of the credential, and what makes this exchange unlike every other: `nonce`, a
    /// random text of printable ASCII without commas.
    pub fn challenge(self, credential: Credential, nonce: &str) -> (Challenge, String) {
        debug_assert!(is_nonce(nonce), "a comma would end it");
        let nonce = format!("{}{nonce}", self.nonce);
        let salt = STANDARD.encode(&credential.salt);
        let answer = format!("r={nonce},s={salt},i={}", credential.iterations);
        let challenge = Challenge {
            signed: format!("{},{answer}", self.bare),
            credential,
            nonce,
            header: self.header,
        };
        (challenge, answer)
    }
}

impl Challenge {
    /// Checks the client's proof; the server's last message, by which it proves itself.
    ///
    /// Errors: 18 when anything is wrong, and for a decoy.
    pub fn verify(self, message: &[u8]) -> Result<String> {
        self.check(message).ok_or_else(failed)
    }

    fn check(&self, message: &[u8]) -> Option<String> {
        let text = text(message)?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let mut parts = without_proof.split(',');
        let header = STANDARD.decode(parts.next()?.strip_prefix("c=")?).ok()?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        if header != self.header.as_bytes() || nonce != self.nonce {
            return None;
        }
        let proof = STANDARD.decode(proof).ok()?;
        let credential = &self.credential;
        let mechanism = credential.mechanism;
        if proof.len() != mechanism.hash_bytes() {
            return None;
        }
        let signed = format!("{},{without_proof}", self.signed);
        let signature = mechanism.hmac(&credential.stored_key, signed.as_bytes());
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let fits = mechanism
            .hash(&client_key)
            .as_slice()
            .ct_eq(credential.stored_key.as_slice())
            .to_bool();
        let answer = mechanism.hmac(&credential.server_key, signed.as_bytes());
        (fits && !credential.is_decoy).then(|| format!("v={}", STANDARD.encode(answer)))
    }
}

fn text(message: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(message).ok()?;
    (text.len() <= MESSAGE_BYTES_MAX).then_some(text)
}

/// Printable ASCII without commas.
fn is_nonce(nonce: &str) -> bool {
    !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}

/// A name in which `=2C` stands for a comma and `=3D` for an equals sign, and no other equals sign stands.
fn unescape(name: &str) -> Option<String> {
    let mut parts = name.split('=');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (sign, rest) = match (part.strip_prefix("2C"), part.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (_, Some(rest)) => ('=', rest),
            _ => return None,
        };
        out.push(sign);
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::mechanism::Mechanism;
    use super::*;

    struct Vector {
        mechanism: Mechanism,
        /// The form of the password that the mechanism uses.
        password: &'static str,
        salt: &'static str,
        server_nonce: &'static str,
        first: &'static str,
        challenge: &'static str,
        last: &'static str,
        answer: &'static str,
    }

    /// RFC 5802, section 5, and RFC 7677, section 3.
    const VECTORS: [Vector; 2] = [
        Vector {
            mechanism: Mechanism::ScramSha1,
            password: "pencil",
            salt: "QSXCR+Q6sek8bf92",
            server_nonce: "3rfcNHYJY1ZVvWVs7j",
            first: "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
            challenge: "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            last: "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            answer: "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        },
        Vector {
            mechanism: Mechanism::ScramSha256,
            password: "pencil",
            salt: "W22ZaJ0SNY7soEsUEjb6gQ==",
            server_nonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
            first: "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            challenge: "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            last: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            answer: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        },
    ];

    /// The exchange after its first two messages.
    fn challenged(vector: &Vector, credential: Credential) -> (Challenge, String) {
        let hello = Hello::parse(vector.first.as_bytes()).expect("it is a first message");
        hello.challenge(credential, vector.server_nonce)
    }

    fn told(result: Result<String>) -> std::result::Result<String, String> {
        result.map_err(|error| error.to_string())
    }

    fn failure() -> String {
        failed().to_string()
    }

    fn credential(vector: &Vector) -> Credential {
        let salt = STANDARD.decode(vector.salt).expect("it is base64");
        Credential::new(vector.mechanism, vector.password, &salt, 4096)
    }

    #[test]
    fn vectors_of_the_rfcs() {
        for vector in &VECTORS {
            let (challenge, answer) = challenged(vector, credential(vector));
            assert_eq!(answer, vector.challenge);
            assert_eq!(
                told(challenge.verify(vector.last.as_bytes())).as_deref(),
                Ok(vector.answer)
            );
        }
    }

    #[test]
    fn whatever_is_wrong_the_error_is_the_same() {
        for vector in &VECTORS {
            let last = vector.last;
            let (before, proof) = last.rsplit_once(",p=").expect("there is a proof");
            let mut flipped = STANDARD.decode(proof).expect("it is base64");
            flipped[0] ^= 1;
            let wrong = [
                format!("{before},p={}", STANDARD.encode(&flipped)),
                format!("{before},p={}", STANDARD.encode(&flipped[1..])),
                format!("{before},p=?"),
                before.to_owned(),
                last.replace("c=biws", "c=eSws"),
                last.replace("r=", "r=x"),
                last.replacen(',', ",m=1,", 1),
                String::new(),
                "x".repeat(MESSAGE_BYTES_MAX + 1),
            ];
            for message in wrong {
                let (challenge, _) = challenged(vector, credential(vector));
                assert_eq!(told(challenge.verify(message.as_bytes())), Err(failure()), "{message}");
            }
        }
    }

    #[test]
    fn no_password_fits_a_decoy() {
        let vector = &VECTORS[1];
        let mut decoy = credential(vector);
        decoy.is_decoy = true;
        let (challenge, _) = challenged(vector, decoy);
        assert_eq!(told(challenge.verify(vector.last.as_bytes())), Err(failure()));
    }

    #[test]
    fn first_messages() {
        let user = |message: &str| Hello::parse(message.as_bytes()).map(|hello| hello.user).ok();
        assert_eq!(user("n,,n=a=2Cb=3Dc,r=x"), Some("a,b=c".to_owned()));
        assert_eq!(user("y,,n=a,r=x"), Some("a".to_owned()));
        assert_eq!(user("n,a=a,n=a,r=x"), Some("a".to_owned()));
        for wrong in [
            "",
            "n",
            "n,,",
            "n,,n=,r=x",
            "n,,n=a",
            "n,,n=a,r=",
            "n,,n=a=,r=x",
            "n,,n=a=2c,r=x",
            "n,,m=1,n=a,r=x",
            "n,,n=a,r=\u{7f}",
            "n,a=b,n=a,r=x",
            "p=tls-unique,,n=a,r=x",
        ] {
            assert_eq!(user(wrong), None, "{wrong}");
        }
        assert!(Hello::parse(&[b'n', b',', b',', 0xFF]).is_err());
    }
}
