//! Encrypted connections (TLS 1.2 and 1.3, by rustls).
//!
//! [`TlsOptions`] is what the command line says, [`Tls`] what connections are made with: a configuration that
//! [`Tls::reload`] replaces while connections that are there keep theirs. [`hello`] tells from a connection's first bytes whether
//! its client speaks TLS, and [`name`] prints the subject of its certificate.

pub(crate) mod certificates;
pub mod hello;
pub mod name;

pub use certificates::{Certificates, Identity};

use nestor_model::{Document, doc};
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// How long a client may take from its first byte to the end of the handshake.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(30);

/// Which connections are encrypted. The names are those of mongod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TlsMode {
    /// None.
    #[default]
    #[value(name = "disabled")]
    Disabled,
    /// The connections of clients that ask for it
    #[value(name = "allowTLS")]
    Allow,
    /// As allowTLS, and the connections to other members of a set
    #[value(name = "preferTLS")]
    Prefer,
    /// All over TCP; a client that does not speak TLS is sent away.
    #[value(name = "requireTLS")]
    Require,
}

impl TlsMode {
    /// As the command line and `getCmdLineOpts` spell it.
    pub fn name(self) -> &'static str {
        match self {
            TlsMode::Disabled => "disabled",
            TlsMode::Allow => "allowTLS",
            TlsMode::Prefer => "preferTLS",
            TlsMode::Require => "requireTLS",
        }
    }
}

/// What the command line says of TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Which connections are encrypted.
    pub mode: TlsMode,
    /// PEM file with the server's certificate, those between it and the authority, and the private key.
    pub certificate_key_file: PathBuf,
    /// PEM file with the authorities of clients' certificates. Without it clients are not asked for any.
    pub ca_file: Option<PathBuf>,
    /// PEM file with lists of revoked certificates.
    pub crl_file: Option<PathBuf>,
    /// Clients may come without a certificate although `ca_file` is given.
    pub allow_without_certificates: bool,
    /// Speak no TLS 1.2.
    pub without_1_2: bool,
    /// Speak no TLS 1.3.
    pub without_1_3: bool,
}

impl TlsOptions {
    /// Takes what `--tlsDisabledProtocols` names, such as `TLS1_2`, into account. Versions before 1.2 are never spoken.
    pub fn disable(&mut self, protocols: &[String]) -> Result<(), String> {
        for protocol in protocols {
            match protocol.trim() {
                "TLS1_0" | "TLS1_1" | "none" => {}
                "TLS1_2" => self.without_1_2 = true,
                "TLS1_3" => self.without_1_3 = true,
                other => {
                    return Err(format!(
                        "--tlsDisabledProtocols knows TLS1_0, TLS1_1, TLS1_2, TLS1_3 and none, not {other:?}"
                    ));
                }
            }
        }
        match self.without_1_2 && self.without_1_3 {
            true => Err("--tlsDisabledProtocols leaves no version of TLS to speak".to_owned()),
            false => Ok(()),
        }
    }

    /// As `getCmdLineOpts` prints it, the section `net.tls` of mongod's configuration file.
    pub fn parsed(&self) -> Document {
        let file = |path: &PathBuf| path.display().to_string();
        let mut parsed = doc! { "mode": self.mode.name(), "certificateKeyFile": file(&self.certificate_key_file) };
        if let Some(path) = &self.ca_file {
            parsed.push("CAFile", file(path));
        }
        if let Some(path) = &self.crl_file {
            parsed.push("CRLFile", file(path));
        }
        if self.allow_without_certificates {
            parsed.push("allowConnectionsWithoutCertificates", true);
        }
        let disabled = [("TLS1_2", self.without_1_2), ("TLS1_3", self.without_1_3)];
        let disabled: Vec<&str> = disabled.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        if !disabled.is_empty() {
            parsed.push("disabledProtocols", disabled.join(","));
        }
        parsed
    }
}

/// What connections are encrypted with.
#[derive(Debug)]
pub struct Tls {
    options: TlsOptions,
    current: RwLock<Arc<Certificates>>,
}

impl Tls {
    /// Reads the files. An error names the file and is for people to read.
    pub fn new(options: TlsOptions) -> Result<Self, String> {
        let current = RwLock::new(Arc::new(Certificates::load(&options)?));
        Ok(Self { options, current })
    }

    /// Which connections are encrypted.
    pub fn mode(&self) -> TlsMode {
        self.options.mode
    }

    /// Reads the files anew. Connections made from now on use what they say, those that are there go on. On an error nothing changes.
    pub fn reload(&self) -> Result<(), String> {
        let certificates = Arc::new(Certificates::load(&self.options)?);
        *self.current.write().unwrap_or_else(std::sync::PoisonError::into_inner) = certificates;
        Ok(())
    }

    /// The certificates that new connections use.
    pub fn certificates(&self) -> Arc<Certificates> {
        self.current
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Makes encrypted connections of plain ones.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.certificates().config.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_disabled_by_name() {
        let disable = |names: &str| {
            let mut options = TlsOptions::default();
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            options
                .disable(&names)
                .map(|()| (options.without_1_2, options.without_1_3))
        };
        assert_eq!(disable("TLS1_0,TLS1_1"), Ok((false, false)));
        assert_eq!(disable("TLS1_2"), Ok((true, false)));
        assert_eq!(disable("none, TLS1_3"), Ok((false, true)));
        assert!(disable("TLS1_2,TLS1_3").is_err_and(|e| e.contains("no version")));
        assert!(disable("SSL3").is_err_and(|e| e.contains("SSL3")));
    }
}
