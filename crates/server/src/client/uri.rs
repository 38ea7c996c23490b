//! `mongodb://` connection strings, as far as tools need them.
//!
//! Source: the manual's pages "Connection Strings" and "Connection String Options".

use super::credentials::{Credentials, Way};
use super::secure::TlsClient;
use super::{ClientError, Result};
use nestor_database::login::mechanism::Mechanism;
use nestor_model::{Document, doc};
use nestor_wire::Compressor;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use zeroize::Zeroizing;

/// Longest `appName`, in bytes.
const APP_NAME_BYTES_MAX: usize = 128;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// Name or address, and port.
    Tcp(String, u16),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(name, port) if name.contains(':') => write!(f, "[{name}]:{port}"),
            Self::Tcp(name, port) => write!(f, "{name}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl FromStr for Host {
    type Err = ();

    /// `name`, `name:port`, `[address]:port`, or a path that ends in `.sock`.
    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        if text.ends_with(".sock") {
            return Ok(Host::Unix(text.into()));
        }
        let (name, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']').ok_or(())?;
            let port = port.strip_prefix(':').or(port.is_empty().then_some("27017"));
            (address, port.ok_or(())?)
        } else {
            text.split_once(':').unwrap_or((text, "27017"))
        };
        if name.is_empty() {
            return Err(());
        }
        Ok(Host::Tcp(name.to_owned(), port.parse().map_err(|_| ())?))
    }
}

/// A parsed connection string. Every option has its effect or is refused by name.
#[derive(Clone, Debug)]
pub struct Uri {
    /// Never empty.
    pub hosts: Vec<Host>,
    /// The database after the slash.
    pub database: Option<String>,
    /// `replicaSet`: the set that the server has to be of.
    pub replica_set: Option<String>,
    /// `directConnection`: take the server as it is; otherwise it has to be a primary.
    pub direct: bool,
    /// `appName`: what the server's logs call us.
    pub app_name: Option<String>,
    /// `compressors`: those to offer, best first.
    pub compressors: Vec<Compressor>,
    /// `w`, `journal`, `wtimeoutMS` as a write concern, if any was given.
    pub write_concern: Option<Document>,
    /// `retryWrites`: send a write once more when the connection broke.
    pub retry_writes: bool,
    /// `retryReads`: likewise reads.
    pub retry_reads: bool,
    /// `connectTimeoutMS`; `None` waits for ever.
    pub connect_timeout: Option<Duration>,
    /// `socketTimeoutMS`; `None` waits for ever.
    pub socket_timeout: Option<Duration>,
    /// `serverSelectionTimeoutMS`: how long to look for a server; `None`: each host is tried once.
    pub selection_timeout: Option<Duration>,
    /// Who to log in as: user, password, `authSource`, `authMechanism`.
    pub credentials: Option<Credentials>,
    /// `tls`, `tlsCAFile`, `tlsCertificateKeyFile`; `None`: connections are plain.
    pub tls: Option<TlsClient>,
    /// Names of the options that were given.
    options: Vec<String>,
}

impl Uri {
    /// Refuses options other than these, for those who speak to the server in their own way.
    pub fn only_with(&self, supported: &[&str]) -> Result<()> {
        match self.options.iter().find(|name| !is_one_of(name, supported)) {
            Some(name) => Err(ClientError::Uri(format!(
                "the option {name} has no effect here: leave it out"
            ))),
            None => Ok(()),
        }
    }
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|one| one.eq_ignore_ascii_case(name))
}

impl FromStr for Uri {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).map_err(|reason| ClientError::Uri(format!("{}: {reason}", without_password(text))))
    }
}

/// The URI, or why it is none.
fn parse(text: &str) -> std::result::Result<Uri, String> {
    let Some(rest) = text.strip_prefix("mongodb://") else {
        return Err("a URI begins with mongodb://".into());
    };
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = match hosts.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, hosts),
    };
    let hosts = hosts.split(',').map(|host| percent_decoded(host)?.parse().ok());
    let Some(hosts) = hosts.collect::<Option<Vec<Host>>>() else {
        return Err("a host is written name:port, [address]:port or as the percent-encoded path of a socket".into());
    };
    let database = percent_decoded(database).ok_or("the database is not percent-encoded")?;
    let mut uri = Uri {
        hosts,
        database: (!database.is_empty()).then_some(database),
        replica_set: None,
        direct: false,
        app_name: None,
        compressors: Vec::new(),
        write_concern: None,
        retry_writes: true,
        retry_reads: true,
        connect_timeout: Some(Duration::from_secs(10)),
        socket_timeout: None,
        selection_timeout: None,
        credentials: None,
        tls: None,
        options: Vec::new(),
    };
    let mut security = Security::default();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let Some(value) = percent_decoded(value).filter(|value| !value.is_empty()) else {
            return Err(format!("the option {name} has no value"));
        };
        if is_one_of(name, &uri.options.iter().map(String::as_str).collect::<Vec<_>>()) {
            return Err(format!("the option {name} is there twice"));
        }
        uri.options.push(name.to_owned());
        let taken = security.set(name, &value);
        let set = taken.and_then(|taken| if taken { Ok(()) } else { set(&mut uri, name, &value) });
        set.map_err(|reason| format!("the option {name}={value}: {reason}"))?;
    }
    uri.credentials = security.credentials(login, uri.database.as_deref())?;
    uri.tls = security.tls(&uri.hosts)?;
    if uri.direct && uri.hosts.len() > 1 {
        return Err("directConnection wants a single host".into());
    }
    Ok(uri)
}

/// Gives an option its effect, or says why it has none.
fn set(uri: &mut Uri, name: &str, value: &str) -> std::result::Result<(), String> {
    match name.to_ascii_lowercase().as_str() {
        "replicaset" => uri.replica_set = Some(value.to_owned()),
        "directconnection" => uri.direct = flag(value)?,
        "appname" if value.len() > APP_NAME_BYTES_MAX => {
            return Err(format!("longer than {APP_NAME_BYTES_MAX} bytes"));
        }
        "appname" => uri.app_name = Some(value.to_owned()),
        "compressors" => {
            let known = |name| Compressor::from_name(name).ok_or_else(|| format!("there is no compressor {name}"));
            uri.compressors = value.split(',').map(known).collect::<std::result::Result<_, _>>()?;
        }
        "w" => match value.parse::<i32>() {
            Ok(0) => return Err("this tool waits for replies: 1 or more, or majority".into()),
            Ok(n) if n > 0 => concern(uri).push("w", n),
            Ok(_) => return Err("less than 0".into()),
            Err(_) => concern(uri).push("w", value),
        },
        "journal" => {
            let journal = flag(value)?;
            concern(uri).push("j", journal);
        }
        "wtimeoutms" => {
            let ms = i64::try_from(milliseconds(value)?.as_millis()).map_err(|e| e.to_string())?;
            concern(uri).push("wtimeout", ms);
        }
        "retrywrites" => uri.retry_writes = flag(value)?,
        "retryreads" => uri.retry_reads = flag(value)?,
        "connecttimeoutms" => uri.connect_timeout = limit(value)?,
        "sockettimeoutms" => uri.socket_timeout = limit(value)?,
        "serverselectiontimeoutms" => uri.selection_timeout = Some(milliseconds(value)?),
        "readpreference" => match value {
            "primary" | "primaryPreferred" => {}
            "secondary" | "secondaryPreferred" | "nearest" => {
                return Err("this tool reads where it writes, from the primary".into());
            }
            _ => return Err("there is no such mode".into()),
        },
        "loadbalanced" if flag(value)? => return Err("this tool does not know load balancers".into()),
        "loadbalanced" => {}
        _ => return Err("this tool does not support it".into()),
    }
    Ok(())
}

/// Options of logging in and of TLS, which have to be seen together.
#[derive(Default)]
struct Security {
    source: Option<String>,
    mechanism: Option<String>,
    encrypts: Option<bool>,
    files: TlsClient,
}

impl Security {
    /// Takes an option, if it is one of these.
    fn set(&mut self, name: &str, value: &str) -> std::result::Result<bool, String> {
        match name.to_ascii_lowercase().as_str() {
            "authsource" => self.source = Some(value.to_owned()),
            "authmechanism" => self.mechanism = Some(value.to_owned()),
            "tls" | "ssl" => {
                let encrypts = flag(value)?;
                if self.encrypts.is_some_and(|before| before != encrypts) {
                    return Err("tls and ssl contradict each other".into());
                }
                self.encrypts = Some(encrypts);
            }
            "tlscafile" => self.files.ca_file = Some(value.into()),
            "tlscertificatekeyfile" => self.files.certificate_key_file = Some(value.into()),
            "tlsinsecure" | "tlsallowinvalidcertificates" | "tlsallowinvalidhostnames" if flag(value)? => {
                return Err("this tool verifies the server's certificate: name its authority in tlsCAFile".into());
            }
            "tlsinsecure" | "tlsallowinvalidcertificates" | "tlsallowinvalidhostnames" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Who to log in as. `login` is what stands before the hosts.
    fn credentials(
        &self,
        login: Option<&str>,
        database: Option<&str>,
    ) -> std::result::Result<Option<Credentials>, String> {
        let way = match self.mechanism.as_deref() {
            None => Way::Password(None),
            Some("MONGODB-X509") => Way::Certificate,
            Some(name) => match Mechanism::of_name(name) {
                Some(mechanism) => Way::Password(Some(mechanism)),
                None => return Err(format!("this tool does not know the authMechanism {name}")),
            },
        };
        let (user, password) =
            match login.map(|login| login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)))) {
                Some((user, password)) => {
                    let decode = |text: &str| match percent_decoded(text) {
                        Some(decoded) if !text.contains(['@', ':', '/']) => Ok(decoded),
                        _ => Err("user and password have to be percent-encoded".to_owned()),
                    };
                    let user = decode(user)?;
                    let password = password.map(decode).transpose()?.map(Zeroizing::new);
                    (Some(user).filter(|user| !user.is_empty()), password)
                }
                None => (None, None),
            };
        match (&user, way) {
            (None, Way::Password(_)) if self.mechanism.is_some() || self.source.is_some() || login.is_some() => {
                return Err("it says how to log in, but not as whom".into());
            }
            (None, Way::Password(_)) => return Ok(None),
            (_, Way::Certificate) if password.is_some() => {
                return Err("MONGODB-X509 logs in by a certificate, without a password".into());
            }
            _ => {}
        }
        let default = if way == Way::Certificate {
            "$external"
        } else {
            database.unwrap_or("admin")
        };
        Ok(Some(Credentials {
            user,
            password,
            source: self.source.clone().unwrap_or_else(|| default.to_owned()),
            way,
        }))
    }

    fn tls(self, hosts: &[Host]) -> std::result::Result<Option<TlsClient>, String> {
        let has_files = self.files != TlsClient::default();
        match self.encrypts {
            Some(false) if has_files => Err("there are files for TLS, and tls=false".into()),
            None | Some(false) if !has_files => Ok(None),
            _ if hosts.iter().any(|host| matches!(host, Host::Unix(_))) => {
                Err("there is no TLS over a socket of this machine".into())
            }
            _ => Ok(Some(self.files)),
        }
    }
}

/// A URI to be shown: without what stands between the user and the hosts.
fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    // A password that was not encoded may have a slash: what comes before the last at sign is not shown either.
    let Some(at) = rest.rfind('@') else {
        return text.to_owned();
    };
    let user = rest
        .get(..at.min(end))
        .and_then(|login| login.split(':').next())
        .unwrap_or_default();
    format!("{scheme}://{user}:***{}", &rest[at..])
}

/// The write concern that an option belongs to.
fn concern(uri: &mut Uri) -> &mut Document {
    uri.write_concern.get_or_insert_with(|| doc! {})
}

fn flag(value: &str) -> std::result::Result<bool, String> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("true or false is wanted".into()),
    }
}

fn milliseconds(value: &str) -> std::result::Result<Duration, String> {
    match value.parse::<u32>() {
        Ok(ms) => Ok(Duration::from_millis(ms.into())),
        Err(_) => Err("a number of milliseconds is wanted".into()),
    }
}

/// A timeout of which 0 says that there is none.
fn limit(value: &str) -> std::result::Result<Option<Duration>, String> {
    Ok(Some(milliseconds(value)?).filter(|limit| !limit.is_zero()))
}

/// What a part of a URI stands for; `None` when it is encoded wrongly.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> String {
        match text.parse::<Uri>() {
            Ok(uri) => uri.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(_) => "refused".into(),
        }
    }

    #[test]
    fn hosts_and_ports() {
        for (text, expected) in [
            ("mongodb://127.0.0.1:5", "127.0.0.1:5"),
            ("mongodb://localhost/db?directConnection=true", "localhost:27017"),
            ("mongodb://a:1,b:2/?replicaSet=rs0&appName=x", "a:1 b:2"),
            ("mongodb://[::1]:7/", "[::1]:7"),
            ("mongodb://[::1]", "[::1]:27017"),
            (
                "mongodb://%2Ftmp%2Fmongodb-1.sock/?directConnection=true",
                "/tmp/mongodb-1.sock",
            ),
            ("http://localhost", "refused"),
            ("mongodb://", "refused"),
            ("mongodb://a:b", "refused"),
            ("mongodb://a:99999", "refused"),
            ("mongodb://user:secret@a", "a:27017"),
            ("mongodb://u:p@a:1,b:2", "a:1 b:2"),
            ("mongodb://u:p%40%2F@a", "a:27017"),
            ("mongodb://u:p@ss@a", "refused"),
            ("mongodb://@a", "refused"),
            ("mongodb://a%zz", "refused"),
        ] {
            assert_eq!(hosts(text), expected, "{text}");
        }
    }

    fn with(options: &str) -> std::result::Result<Uri, String> {
        format!("mongodb://a/db?{options}")
            .parse()
            .map_err(|e: ClientError| e.to_string())
    }

    fn concern_of(uri: &Uri) -> Vec<u8> {
        let concern = uri.write_concern.as_ref().map(Document::to_raw);
        concern.map(|raw| raw.as_bytes().to_vec()).unwrap_or_default()
    }

    #[test]
    fn options_have_their_effect() {
        let uri = with(
            "replicaSet=r%20s&directConnection=true&appname=x&compressors=zstd,snappy&w=majority&journal=true&wtimeoutMS=7\
             &retryWrites=false&retryReads=false&connectTimeoutMS=0&socketTimeoutMS=5&serverSelectionTimeoutMS=9\
             &readPreference=primaryPreferred&tls=false&ssl=false",
        )
        .unwrap();
        let ms = |n| Some(Duration::from_millis(n));
        assert_eq!(uri.database.as_deref(), Some("db"));
        assert_eq!(uri.replica_set.as_deref(), Some("r s"));
        assert_eq!(uri.app_name.as_deref(), Some("x"));
        assert_eq!(uri.compressors, [Compressor::Zstd, Compressor::Snappy]);
        assert_eq!(
            concern_of(&uri),
            doc! { "w": "majority", "j": true, "wtimeout": 7i64 }
                .to_raw()
                .as_bytes()
        );
        assert!(uri.direct && !uri.retry_writes && !uri.retry_reads);
        assert_eq!(
            (uri.connect_timeout, uri.socket_timeout, uri.selection_timeout),
            (None, ms(5), ms(9))
        );
        assert_eq!(concern_of(&with("w=2").unwrap()), doc! { "w": 2 }.to_raw().as_bytes());
        let usual = with("").unwrap();
        assert!(usual.retry_writes && usual.retry_reads && !usual.direct && usual.write_concern.is_none());
    }

    #[test]
    fn who_logs_in_and_how() {
        let of = |text: &str| {
            let uri: Uri = text.parse().expect("a good URI");
            uri.credentials
                .map(|c| (c.user, c.password.map(|p| p.to_string()), c.source, c.way))
        };
        let some = |text: &str| Some(text.to_owned());
        let password = Way::Password(None);
        assert_eq!(of("mongodb://a"), None);
        assert_eq!(
            of("mongodb://u:p%3A%40@a"),
            Some((some("u"), some("p:@"), "admin".into(), password))
        );
        assert_eq!(
            of("mongodb://u:p@a/db"),
            Some((some("u"), some("p"), "db".into(), password))
        );
        assert_eq!(
            of("mongodb://u@a/db?authSource=x"),
            Some((some("u"), None, "x".into(), password))
        );
        assert_eq!(
            of("mongodb://u:p@a/?authMechanism=SCRAM-SHA-1"),
            Some((
                some("u"),
                some("p"),
                "admin".into(),
                Way::Password(Some(Mechanism::ScramSha1))
            ))
        );
        assert_eq!(
            of("mongodb://a/db?authMechanism=MONGODB-X509&tlsCertificateKeyFile=/k"),
            Some((None, None, "$external".into(), Way::Certificate))
        );
        assert!("mongodb://u:p@a/?authMechanism=MONGODB-X509".parse::<Uri>().is_err());
    }

    #[test]
    fn passwords_are_not_in_errors() {
        for text in [
            "mongodb://u:s3cret@a/?nosuch=1",
            "mongodb://u:s3cret@a:x",
            "mongodb://u:s3c/ret@a",
            "mongodb://u:s3@cret@a",
            "mongodb://u:s3%zzcret@a",
            "http://u:s3cret@a",
        ] {
            let error = text.parse::<Uri>().expect_err(text).to_string();
            assert!(!error.contains("s3") && !error.contains("ret@"), "{error}");
        }
        let uri: Uri = "mongodb://u:s3cret@a".parse().expect("a good URI");
        assert!(!format!("{uri:?}").contains("s3cret"));
    }

    #[test]
    fn tls_is_asked_for_or_follows_from_its_files() {
        let tls = |options: &str| with(options).map(|uri| uri.tls);
        assert_eq!(tls(""), Ok(None));
        assert_eq!(tls("tls=false"), Ok(None));
        assert_eq!(tls("tls=true"), Ok(Some(TlsClient::default())));
        let with_authority = TlsClient {
            ca_file: Some("/ca.pem".into()),
            ..TlsClient::default()
        };
        assert_eq!(tls("tlsCAFile=%2Fca.pem"), Ok(Some(with_authority)));
        assert!(tls("tls=false&tlsCAFile=x").is_err());
        assert!("mongodb://%2Fx.sock/?tls=true".parse::<Uri>().is_err());
    }

    #[test]
    fn options_without_effect_are_refused_by_name() {
        for (option, word) in [
            ("tls=perhaps", "true or false"),
            ("ssl=true&tls=false", "contradict"),
            ("tlsInsecure=true", "verifies"),
            ("authSource=admin", "as whom"),
            ("authMechanism=PLAIN", "PLAIN"),
            ("authMechanismProperties=x:y", "support"),
            ("w=0", "waits"),
            ("w=-1", "less"),
            ("retryWrites=yes", "true or false"),
            ("journal=", "no value"),
            ("connectTimeoutMS=soon", "milliseconds"),
            ("readPreference=secondary", "primary"),
            ("readPreference=somewhere", "no such"),
            ("compressors=lzma", "lzma"),
            ("maxPoolSize=5", "support"),
            ("w=1&W=2", "twice"),
            ("appName=%zz", "no value"),
        ] {
            let name = option.split(['=', '&']).next().unwrap_or_default();
            let refused = with(option).unwrap_err();
            assert!(refused.to_lowercase().contains(&name.to_lowercase()), "{refused}");
            assert!(refused.contains(word), "{refused}");
        }
        assert!("mongodb://a,b/?directConnection=true".parse::<Uri>().is_err());
        let uri = with("w=1&replicaSet=x").unwrap();
        assert!(uri.only_with(&["w", "replicaset"]).is_ok());
        assert!(
            uri.only_with(&["replicaSet"])
                .is_err_and(|e| e.to_string().contains("option w "))
        );
    }
}
