//! The client's side of SCRAM, whatever protocol carries it.
//!
//! Source: RFC 5802, RFC 7677.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nestor_database::login::mechanism::Mechanism;
use zeroize::Zeroizing;

/// Fewest iterations that a server may ask for: with fewer the proof would give the password away.
const ITERATIONS_MIN: u32 = 4096;

/// The client's first message has been made.
pub struct Exchange {
    mechanism: Mechanism,
    secret: Zeroizing<String>,
    nonce: String,
    /// The first message without its header, which both sides sign.
    bare: String,
}

impl Exchange {
    /// Begins an exchange in which `secret` proves who one is.
    pub fn begin(mechanism: Mechanism, user: &str, secret: &str, nonce: &str) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Self {
            mechanism,
            secret: Zeroizing::new(secret.to_owned()),
            nonce: nonce.to_owned(),
            bare: format!("n={user},r={nonce}"),
        }
    }

    /// The first message.
    pub fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// The proof, and what the server then has to answer; `None` for a challenge that one does not answer.
    pub fn prove(&self, challenge: &str) -> Option<(String, String)> {
        let mut parts = challenge.split(',');
        let nonce = parts.next()?.strip_prefix("r=")?;
        let salt = STANDARD.decode(parts.next()?.strip_prefix("s=")?).ok()?;
        let iterations: u32 = parts.next()?.strip_prefix("i=")?.parse().ok()?;
        if !nonce.starts_with(&self.nonce) || nonce == self.nonce || iterations < ITERATIONS_MIN {
            return None;
        }
        let mechanism = self.mechanism;
        let salted = mechanism.salted(self.secret.as_bytes(), &salt, iterations);
        let client_key = mechanism.hmac(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{challenge},{without_proof}", self.bare);
        let signature = mechanism.hmac(&mechanism.hash(&client_key), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let server_key = mechanism.hmac(&salted, b"Server Key");
        let answer = mechanism.hmac(&server_key, signed.as_bytes());
        Some((
            format!("{without_proof},p={}", STANDARD.encode(proof)),
            format!("v={}", STANDARD.encode(answer)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5802, section 5, and RFC 7677, section 3.
    #[test]
    fn vectors_of_the_rfcs() {
        let sha1 = Exchange::begin(Mechanism::ScramSha1, "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL");
        assert_eq!(sha1.first(), "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
        let challenge = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";
        let (proof, answer) = sha1.prove(challenge).expect("a good challenge");
        assert!(proof.ends_with(",p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="), "{proof}");
        assert_eq!(answer, "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
        let sha256 = Exchange::begin(Mechanism::ScramSha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO");
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (proof, answer) = sha256.prove(challenge).expect("a good challenge");
        assert!(
            proof.ends_with(",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
            "{proof}"
        );
        assert_eq!(answer, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn challenges_that_are_not_answered() {
        let exchange = Exchange::begin(Mechanism::ScramSha256, "a,b=c", "pencil", "abc");
        assert_eq!(exchange.first(), "n,,n=a=2Cb=3Dc,r=abc");
        for challenge in [
            "",
            "r=abc,s=QSXCR+Q6sek8bf92,i=4096",
            "r=abX1,s=QSXCR+Q6sek8bf92,i=4096",
            "r=abc1,s=?,i=4096",
            "r=abc1,s=QSXCR+Q6sek8bf92,i=1",
            "r=abc1,s=QSXCR+Q6sek8bf92",
        ] {
            assert!(exchange.prove(challenge).is_none(), "{challenge}");
        }
    }
}
