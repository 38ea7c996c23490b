//! One connection to a server: the socket, the handshake, whole messages.

use super::login;
use super::message::{body_of, command_message, length, set_request_id};
use super::transport::Stream;
use super::{ClientError, Host, MESSAGE_HEADER_BYTES, Result, Uri, number, refusal};
use nestor_database::login::mechanism::Mechanism;
use nestor_model::{RawDoc, RawDocBuf, Value, ValueRef, doc};
use nestor_wire::{Compressor, Content, OpCode};
use std::io::{self, Read as _, Write as _};
use std::time::Duration;

/// One connection.
pub struct Connection {
    stream: Stream,
    address: String,
    request_id: i32,
    compressor: Option<Compressor>,
    /// The server takes writes with a number of their session, so that one that is sent twice is done once.
    pub knows_transaction_numbers: bool,
}

/// What a server says of itself.
pub struct Hello {
    set_name: Option<String>,
    is_primary: bool,
    /// The member that the server takes for the primary.
    pub primary: Option<Host>,
}

impl Hello {
    /// Why this is not the server that `uri` asks for.
    pub fn fault(&self, uri: &Uri) -> Option<String> {
        if let Some(wanted) = &uri.replica_set {
            match &self.set_name {
                Some(name) if name == wanted => {}
                Some(name) => return Some(format!("is of the replica set {name}, not of {wanted}")),
                None => return Some(format!("is not of the replica set {wanted}, nor of another one")),
            }
        }
        (!self.is_primary && !uri.direct).then(|| "is not a primary, which takes writes".to_owned())
    }
}

impl Connection {
    /// Connects to a host and shakes hands.
    pub fn open(uri: &Uri, host: &Host) -> Result<(Self, Hello)> {
        let address = host.to_string();
        let network = |error| ClientError::Network(address.clone(), error);
        let mut stream = Stream::connect(host, uri.connect_timeout).map_err(network)?;
        if let Some(tls) = &uri.tls {
            // A server that says nothing is not waited for longer than one that does not accept.
            stream.limit(uri.connect_timeout).map_err(network)?;
            stream = stream.encrypted(tls, host).map_err(network)?;
        }
        stream.limit(uri.socket_timeout).map_err(network)?;
        let mut connection = Self {
            stream,
            address,
            request_id: 0,
            compressor: None,
            knows_transaction_numbers: false,
        };
        let hello = connection.shake_hands(uri)?;
        Ok((connection, hello))
    }

    /// Source: driver specification "MongoDB Handshake".
    fn shake_hands(&mut self, uri: &Uri) -> Result<Hello> {
        let mut client = doc! {
            "driver": doc! { "name": "nestor", "version": env!("CARGO_PKG_VERSION") },
            "os": doc! { "type": std::env::consts::OS },
        };
        if let Some(name) = &uri.app_name {
            client.push("application", doc! { "name": name.as_str() });
        }
        let offered: Vec<Value> = uri.compressors.iter().map(|c| c.name().into()).collect();
        let mut hello = doc! { "hello": 1, "client": client, "compression": offered };
        if let Some(credentials) = &uri.credentials
            && let Some(user) = &credentials.user
        {
            hello.push("saslSupportedMechs", format!("{}.{user}", credentials.source));
        }
        hello.push("$db", "admin");
        let reply = self.exchange(&mut command_message(hello.to_raw().as_raw(), None))?;
        let reply = reply.as_raw();
        if let Some(error) = refusal(reply) {
            return Err(error);
        }
        let text = |name| reply.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        let agreed = reply.get("compression").and_then(ValueRef::as_array);
        let mut agreed = agreed.into_iter().flat_map(|names| names.iter());
        self.compressor = agreed.find_map(|name| Compressor::from_name(name.as_str()?));
        let set_name = text("setName");
        let is_member = set_name.is_some() || text("msg").as_deref() == Some("isdbgrid");
        if let Some(credentials) = &uri.credentials {
            let offered = reply.get("saslSupportedMechs").and_then(ValueRef::as_array);
            let offered = offered.into_iter().flat_map(|names| names.iter());
            let offered: Vec<Mechanism> = offered.filter_map(|name| Mechanism::of_name(name.as_str()?)).collect();
            login::log_in(self, credentials, &offered)?;
        }
        self.knows_transaction_numbers = is_member && number(reply, "logicalSessionTimeoutMinutes").is_some();
        Ok(Hello {
            is_primary: number(reply, "isWritablePrimary") == Some(1),
            primary: text("primary").and_then(|host| host.parse().ok()),
            set_name,
        })
    }

    /// Sends the message of a command and returns its reply, whatever that says. The message can be sent again.
    pub fn exchange(&mut self, message: &mut [u8]) -> Result<RawDocBuf> {
        self.send(message)?;
        self.receive()
    }

    /// Sends the message of a command. It can be sent again.
    pub fn send(&mut self, message: &mut [u8]) -> Result<()> {
        self.request_id = self.request_id.wrapping_add(1);
        set_request_id(message, self.request_id);
        let packed = self
            .compressor
            .map(|compressor| nestor_wire::compressed(message, compressor));
        self.send_bytes(packed.as_deref().unwrap_or(message))
    }

    /// Whether the first bytes of an answer are there, waited for as long as `at_most`.
    pub fn has_answer(&mut self, at_most: Duration) -> Result<bool> {
        let has_any = self.stream.has_any(at_most);
        has_any.map_err(|e| self.network(e))
    }

    /// The reply to the command that was sent, whatever it says.
    pub fn receive(&mut self) -> Result<RawDocBuf> {
        let mut reply = Vec::new();
        self.read_message(&mut reply)?;
        self.body(&reply)
    }

    fn body(&self, reply: &[u8]) -> Result<RawDocBuf> {
        let is_packed = reply.get(12..16) == Some(&(OpCode::Compressed as i32).to_le_bytes());
        if !is_packed {
            let body: RawDoc<'_> = body_of(reply).map_err(ClientError::Protocol)?;
            return Ok(body.to_buf());
        }
        let mut scratch = Vec::new();
        let message = nestor_wire::parse(reply, &mut scratch).map_err(|e| ClientError::Protocol(e.to_string()))?;
        match message.content {
            Content::Msg(msg) => Ok(msg.body.to_buf()),
            Content::Query(_) => Err(ClientError::Protocol("a query".into())),
        }
    }

    /// Sends the bytes of whole messages as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
        sent.map_err(|e| self.network(e))
    }

    /// Reads one whole message, header included, into `message`.
    pub fn read_message(&mut self, message: &mut Vec<u8>) -> Result<()> {
        message.resize(MESSAGE_HEADER_BYTES, 0);
        self.stream.read_exact(message).map_err(|e| self.network(e))?;
        let length = length(message).map_err(ClientError::Protocol)?;
        message.resize(length, 0);
        self.stream
            .read_exact(&mut message[MESSAGE_HEADER_BYTES..])
            .map_err(|e| self.network(e))
    }

    /// The bytes of the connection, for who speaks the protocol without our help.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn network(&self, error: io::Error) -> ClientError {
        let error = match error.kind() {
            // The standard library's words for it are about its own buffer.
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the server closed the connection"),
            io::ErrorKind::WouldBlock => io::Error::new(error.kind(), "no answer within socketTimeoutMS"),
            _ => error,
        };
        ClientError::Network(self.address.clone(), error)
    }
}
