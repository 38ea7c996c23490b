//! The configuration file: mongod's YAML form, made into the flags that mean the same.
//!
//! A file says no more than the command line can: each key has its flag in [`KEYS`], values are checked where flags are, and a
//! flag that is given too wins. Keys that are not in the table are refused by name.

use yaml_rust2::parser::{Event, EventReceiver, Parser};

/// What a key of the file becomes on the command line.
enum Flag {
    /// A flag with the value.
    Value(&'static str),
    /// A flag that stands alone, when the value is true; false is the default.
    Switch(&'static str),
    /// The same, when the value is false.
    Unless(&'static str),
    /// One of these words, each with the flags it stands for.
    Words(&'static [(&'static str, &'static [&'static str])]),
    /// `-v` so many times.
    Verbosity,
}

use Flag::{Switch, Unless, Value, Verbosity, Words};

const KEYS: [(&str, Flag); 53] = [
    ("auditLog.destination", Value("--auditDestination")),
    ("auditLog.filter", Value("--auditFilter")),
    ("auditLog.format", Value("--auditFormat")),
    ("auditLog.path", Value("--auditPath")),
    ("auditLog.runtimeConfiguration", Switch("--auditRuntimeConfiguration")),
    ("metrics.bindIp", Value("--metricsBindIp")),
    ("metrics.port", Value("--metricsPort")),
    ("net.bindIp", Value("--bind_ip")),
    ("net.bindIpAll", Switch("--bind_ip_all")),
    ("net.ipv6", Switch("--ipv6")),
    ("net.maxIncomingConnections", Value("--maxConns")),
    ("net.port", Value("--port")),
    (
        "net.tls.allowConnectionsWithoutCertificates",
        Switch("--tlsAllowConnectionsWithoutCertificates"),
    ),
    ("net.tls.CAFile", Value("--tlsCAFile")),
    ("net.tls.certificateKeyFile", Value("--tlsCertificateKeyFile")),
    ("net.tls.CRLFile", Value("--tlsCRLFile")),
    ("net.tls.disabledProtocols", Value("--tlsDisabledProtocols")),
    ("net.tls.mode", Value("--tlsMode")),
    ("net.unixDomainSocket.enabled", Unless("--nounixsocket")),
    ("net.unixDomainSocket.pathPrefix", Value("--unixSocketPrefix")),
    // What arrives is always checked.
    ("net.wireObjectCheck", Words(&[("true", &[])])),
    (
        "operationProfiling.mode",
        Words(&[
            ("off", &["--profile", "0"]),
            ("slowOp", &["--profile", "1"]),
            ("all", &["--profile", "2"]),
        ]),
    ),
    ("operationProfiling.slowOpSampleRate", Value("--slowOpSampleRate")),
    ("operationProfiling.slowOpThresholdMs", Value("--slowms")),
    // systemd and containers want the process they started.
    ("processManagement.fork", Words(&[("false", &[])])),
    // Packages of MongoDB say so. Zones come with the program, from the same database.
    ("processManagement.timeZoneInfo", Words(&[("/usr/share/zoneinfo", &[])])),
    ("replication.oplogSizeMB", Value("--oplogSize")),
    ("replication.host", Value("--host")),
    ("replication.log", Value("--log")),
    ("replication.replSetName", Value("--replSet")),
    ("replication.replSet", Value("--replSet")),
    (
        "security.authorization",
        Words(&[("enabled", &["--auth"]), ("disabled", &[])]),
    ),
    ("security.enableEncryption", Switch("--enableEncryption")),
    ("security.encryptionCipherMode", Value("--encryptionCipherMode")),
    ("security.encryptionKeyFile", Value("--encryptionKeyFile")),
    (
        "security.encryptionRotateMasterKey",
        Value("--encryptionRotateMasterKey"),
    ),
    ("security.javascriptEnabled", Unless("--noscripting")),
    ("security.keyFile", Value("--keyFile")),
    ("security.redactClientLogData", Switch("--redactClientLogData")),
    ("sql.files", Value("--sql-files")),
    ("sql.port", Value("--sql-port")),
    ("storage.engine", Value("--storageEngine")),
    ("storage.dbPath", Value("--dbpath")),
    // Version 6.1 took the key away; older files have it. There is always a journal.
    ("storage.journal.enabled", Words(&[("true", &[])])),
    ("storage.oplogMinRetentionHours", Value("--oplogMinRetentionHours")),
    (
        "storage.wiredTiger.collectionConfig.blockCompressor",
        Value("--wiredTigerCollectionBlockCompressor"),
    ),
    ("storage.wiredTiger.engineConfig.cacheSizeGB", Value("--cacheSizeGB")),
    ("systemLog.destination", Words(&[("file", &[])])),
    ("systemLog.logAppend", Switch("--logappend")),
    ("systemLog.logRotate", Value("--logRotate")),
    ("systemLog.path", Value("--logpath")),
    ("systemLog.quiet", Switch("--quiet")),
    ("systemLog.verbosity", Verbosity),
];

/// Parameters stand below this key, by their names.
const PARAMETERS: &str = "setParameter.";

/// The flags that a configuration file means, without those that `given` says differently. An error is for people to read.
pub fn flags(text: &str, given: &[String]) -> Result<Vec<String>, String> {
    let mut flags = Vec::new();
    for (key, value) in settings(text)? {
        if let Some(name) = key.strip_prefix(PARAMETERS) {
            let prefix = format!("{name}=");
            let is_given =
                |arg: &String| arg.starts_with(&prefix) || arg.starts_with(&format!("--setParameter={prefix}"));
            if !given.iter().any(is_given) {
                flags.extend(["--setParameter".to_owned(), format!("{name}={value}")]);
            }
            continue;
        }
        let Some((_, flag)) = KEYS.iter().find(|(known, _)| *known == key) else {
            return Err(format!("unknown option {key}"));
        };
        let meant = meaning(flag, &value).map_err(|wanted| format!("{key}: {wanted} is wanted, not {value:?}"))?;
        let is_given = |flag: &String| given.iter().any(|arg| arg.split('=').next() == Some(flag));
        if !meant.first().is_some_and(is_given) {
            flags.extend(meant);
        }
    }
    Ok(flags)
}

/// The flags of one value; an error says what it has to be.
fn meaning(flag: &Flag, value: &str) -> Result<Vec<String>, String> {
    let switch = || match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("true or false".to_owned()),
    };
    Ok(match flag {
        Value(flag) => vec![(*flag).to_owned(), value.to_owned()],
        Switch(flag) => switch()?.then(|| (*flag).to_owned()).into_iter().collect(),
        Unless(flag) => (!switch()?).then(|| (*flag).to_owned()).into_iter().collect(),
        Words(words) => match words.iter().find(|(word, _)| *word == value) {
            Some((_, flags)) => flags.iter().map(|flag| (*flag).to_owned()).collect(),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                return Err(words.join(" or "));
            }
        },
        Verbosity => match value.parse::<usize>() {
            Ok(level) if level <= 5 => vec!["-v".to_owned(); level],
            _ => return Err("a number from 0 to 5".to_owned()),
        },
    })
}

/// The scalars of a file, each with its dotted path, in their order.
fn settings(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut reader = Reader::default();
    Parser::new(text.chars())
        .load(&mut reader, false)
        .map_err(|e| e.to_string())?;
    match reader.fault {
        Some(fault) => Err(fault),
        None => Ok(reader.settings),
    }
}

/// Takes the events of the parser. Aliases are refused, so a file cannot mean more than it says.
#[derive(Default)]
struct Reader {
    /// Open mappings: the key that comes next, if it was read.
    open: Vec<Option<String>>,
    settings: Vec<(String, String)>,
    fault: Option<String>,
}

impl Reader {
    fn fail(&mut self, fault: impl Into<String>) {
        self.fault.get_or_insert(fault.into());
    }

    fn path(&self) -> String {
        let keys: Vec<&str> = self.open.iter().filter_map(Option::as_deref).collect();
        keys.join(".")
    }
}

impl EventReceiver for Reader {
    fn on_event(&mut self, event: Event) {
        if self.fault.is_some() {
            return;
        }
        match event {
            Event::MappingStart(..) => {
                if matches!(self.open.last(), Some(None)) {
                    self.fail("a key is a mapping");
                }
                self.open.push(None);
            }
            Event::MappingEnd => {
                self.open.pop();
                if let Some(key) = self.open.last_mut() {
                    *key = None;
                }
            }
            Event::Scalar(text, style, ..) => match self.open.last_mut() {
                None if text.is_empty() || text == "~" => {}
                None => self.fail("a mapping of options is wanted"),
                Some(key @ None) => *key = Some(text),
                Some(Some(_)) => {
                    let path = self.path();
                    // A section of which everything is commented out.
                    let is_nothing =
                        style == yaml_rust2::scanner::TScalarStyle::Plain && matches!(text.as_str(), "" | "~" | "null");
                    if self.settings.iter().any(|(known, _)| *known == path) {
                        self.fail(format!("{path} stands there twice"));
                    } else if !is_nothing {
                        self.settings.push((path, text));
                    }
                    if let Some(key) = self.open.last_mut() {
                        *key = None;
                    }
                }
            },
            Event::SequenceStart(..) => {
                let path = self.path();
                self.fail(format!("{path}: a list is not understood here"));
            }
            Event::Alias(_) => self.fail("aliases are not understood here"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, String> {
        flags(text, &[]).map(|flags| flags.join(" "))
    }

    #[test]
    fn keys_become_flags() {
        let text = "
# the file that packages install, nearly
storage:
  dbPath: /var/lib/nestor
  wiredTiger:
    engineConfig: { cacheSizeGB: 0.5 }
systemLog:
  destination: file
  logAppend: true
  path: /var/log/nestor.log
  verbosity: 2
net:
  port: 27018
  bindIp: 127.0.0.1,::1
  ipv6: true
  tls:
    mode: requireTLS
    certificateKeyFile: /etc/ssl/nestor.pem
operationProfiling:
  mode: slowOp
security:
  authorization: enabled
#  clusterAuthMode: keyFile
  keyFile: /etc/nestor.key
  enableEncryption: true
  encryptionCipherMode: AES256-GCM
  encryptionKeyFile: /etc/nestor.master
setParameter:
  quiet: true
";
        assert_eq!(
            of(text).unwrap(),
            "--dbpath /var/lib/nestor --cacheSizeGB 0.5 --logappend --logpath /var/log/nestor.log -v -v --port 27018 \
             --bind_ip 127.0.0.1,::1 --ipv6 --tlsMode requireTLS --tlsCertificateKeyFile /etc/ssl/nestor.pem --profile 1 \
             --auth --keyFile /etc/nestor.key --enableEncryption --encryptionCipherMode AES256-GCM \
             --encryptionKeyFile /etc/nestor.master --setParameter quiet=true"
        );
        assert_eq!(of("").unwrap(), "");
        assert_eq!(of("# nothing\n").unwrap(), "");
    }

    /// The keys of the file that MongoDB's packages install, with values that change nothing here.
    #[test]
    fn files_of_packages_are_understood() {
        let text = "
storage:
  dbPath: /var/lib/mongodb
  journal: {enabled: true}
systemLog:
  destination: file
  logAppend: true
  path: /var/log/mongodb/mongod.log
net: {port: 27017, bindIp: 127.0.0.1, wireObjectCheck: true}
processManagement:
  timeZoneInfo: /usr/share/zoneinfo
  fork: false
";
        assert_eq!(
            of(text).unwrap(),
            "--dbpath /var/lib/mongodb --logappend --logpath /var/log/mongodb/mongod.log --port 27017 --bind_ip 127.0.0.1"
        );
    }

    #[test]
    fn the_command_line_wins() {
        let text = "net: {port: 1, ipv6: true}\nsetParameter: {quiet: 1, ttlMonitorEnabled: false}";
        let given = ["--port=2", "--setParameter", "quiet=0"].map(str::to_owned);
        assert_eq!(
            flags(text, &given).unwrap().join(" "),
            "--ipv6 --setParameter ttlMonitorEnabled=false"
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (text, expected) in [
            ("net: {prot: 1}", "net.prot"),
            (
                "processManagement: {fork: true}",
                "processManagement.fork: false is wanted",
            ),
            (
                "processManagement: {timeZoneInfo: /opt/zones}",
                "/usr/share/zoneinfo is wanted",
            ),
            ("storage: {journal: {enabled: false}}", "true is wanted"),
            ("net: {ipv6: perhaps}", "net.ipv6: true or false"),
            ("systemLog: {destination: syslog}", "file is wanted"),
            ("systemLog: {verbosity: 9}", "0 to 5"),
            ("net: {port: [1, 2]}", "a list"),
            ("net: {port: 1, port: 2}", "twice"),
            ("net: &a {port: 1}\nstorage: *a", "aliases"),
            ("just text", "a mapping"),
            ("net: {port: {__exec: date}}", "net.port.__exec"),
            ("net: {", ""),
            ("? {a: 1}\n: 2", "a key is a mapping"),
        ] {
            let error = of(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
