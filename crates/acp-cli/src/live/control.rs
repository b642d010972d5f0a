//! Requests to a server: its status, and stopping it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

/// How long a server may take to respond. It responds without waiting for the agent.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a server. As long as it is open, the agent keeps running.
#[derive(Debug)]
pub(crate) struct ControlConnection {
    stream: BufReader<UnixStream>,
    next_id: u64,
}

/// The state of a server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerStatus {
    /// What stands for the options that the server was started with.
    #[serde(default)]
    pub(crate) settings: Option<String>,
    sessions: Vec<LiveSessionId>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LiveSessionId {
    session_id: String,
}

impl ServerStatus {
    /// Returns `true` if the server holds this session.
    pub(crate) fn has_session(&self, id: &str) -> bool {
        self.sessions.iter().any(|session| session.session_id == id)
    }
}

impl ControlConnection {
    /// Connects to a server. Returns `None` if none is listening.
    pub(crate) fn open(socket: &Path) -> io::Result<Option<Self>> {
        match UnixStream::connect(socket) {
            Ok(stream) => {
                stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
                stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
                Ok(Some(Self {
                    stream: BufReader::new(stream),
                    next_id: 0,
                }))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn status(&mut self) -> io::Result<ServerStatus> {
        let status = self
            .request("_live/status", &json!({}))?
            .map_err(io::Error::other)?;
        serde_json::from_value(status).map_err(io::Error::from)
    }

    /// Stops the agent, and waits until the server has closed the connection. Returns the reason if it does not stop.
    /// With `force`, stops it even if it is in use.
    pub(crate) fn stop(mut self, force: bool) -> io::Result<Result<(), String>> {
        if let Err(reason) = self.request("_live/stop", &json!({ "force": force }))? {
            return Ok(Err(reason));
        }
        loop {
            let mut line = Vec::new();
            match self.stream.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(Ok(())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(Ok(())),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a request. Returns the result, or the message of the error.
    fn request(&mut self, method: &str, params: &Value) -> io::Result<Result<Value, String>> {
        let id = self.next_id;
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.stream
            .get_mut()
            .write_all(format!("{request}\n").as_bytes())?;
        loop {
            let mut line = Vec::new();
            if self.stream.read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut response: Value = serde_json::from_slice(&line)?;
            if response["id"] != id {
                continue;
            }
            if let Some(message) = response["error"]["message"].as_str() {
                return Ok(Err(message.to_owned()));
            }
            return Ok(Ok(response["result"].take()));
        }
    }
}
