//! TLS as a client: which authorities are trusted, and the certificate that one shows.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where systems keep the authorities that they trust.
const AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// An encrypted connection.
pub type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// What the URI says of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsClient {
    /// `tlsCAFile`; without it the system's authorities are trusted.
    pub ca_file: Option<PathBuf>,
    /// `tlsCertificateKeyFile`.
    pub certificate_key_file: Option<PathBuf>,
}

impl TlsClient {
    /// Encrypts a connection to the server of that name, whose certificate is verified. The error is for people to read.
    pub fn encrypt(&self, stream: TcpStream, name: &str) -> Result<Encrypted, String> {
        let server = ServerName::try_from(name.to_owned()).map_err(|error| format!("{name}: {error}"))?;
        let connection = ClientConnection::new(Arc::new(self.config()?), server).map_err(|error| error.to_string())?;
        let mut encrypted = StreamOwned::new(connection, stream);
        while encrypted.conn.is_handshaking() {
            let done = encrypted.conn.complete_io(&mut encrypted.sock);
            done.map_err(|error| format!("TLS handshake: {error}"))?;
        }
        Ok(encrypted)
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let mut roots = RootCertStore::empty();
        match &self.ca_file {
            Some(path) => {
                for authority in certificates(path)? {
                    let added = roots.add(authority);
                    added.map_err(|error| format!("an authority in {}: {error}", path.display()))?;
                }
            }
            None => {
                let Some(path) = AUTHORITIES.iter().map(Path::new).find(|path| path.exists()) else {
                    return Err("this system has no list of authorities: give tlsCAFile".to_owned());
                };
                // A list of the system may have some that are not understood.
                roots.add_parsable_certificates(certificates(path)?);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS: {error}"))?
            .with_root_certificates(roots);
        let Some(path) = &self.certificate_key_file else {
            return Ok(builder.with_no_client_auth());
        };
        let key = PrivateKeyDer::from_pem_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
        builder
            .with_client_auth_cert(certificates(path)?, key)
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found = found.map_err(|error| format!("{}: {error}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("{} has no certificate", path.display())),
        false => Ok(found),
    }
}
