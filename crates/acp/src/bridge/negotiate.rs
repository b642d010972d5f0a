//! Who speaks what: `initialize`, and what is done with lines before and after it.

use acp_wire::jsonrpc::{self, Incoming, ParseError, RequestId};
use acp_wire::v1::ProtocolVersion;

use super::Side;
use super::down::{self, Down};
use super::json::{Line, Out, object, pass, refuse};
use super::method;
use super::up::{self, Up};
use crate::connection::Limits;
use crate::connection::outline::Outline;

/// No version is spoken by both sides.
const UNSUPPORTED_VERSION: i32 = jsonrpc::Error::UNSUPPORTED_PROTOCOL_VERSION;

/// Which version the client is to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    V1,
    V2,
}

/// What is done with each line.
pub(super) struct Core {
    to: To,
    limits: Limits,
    phase: Phase,
}

enum Phase {
    /// The client has not initialized the connection yet.
    Before,
    /// The agent has been asked. What follows waits for its answer.
    Asked {
        id: RequestId,
        client: down::initialize::Client,
        /// What the client has asked.
        line: Box<[u8]>,
    },
    /// Both sides speak the same version.
    Through,
    Up(Box<Up>),
    Down(Box<Down>),
}

impl Core {
    pub(super) fn new(to: To, limits: Limits) -> Self {
        Self {
            to,
            limits,
            phase: Phase::Before,
        }
    }

    /// Whether the client's next line can only be understood once the agent has answered.
    pub(super) fn waiting(&self) -> bool {
        matches!(self.phase, Phase::Asked { .. })
    }

    /// Looks at a line. Says whether it was noise, which is passed over.
    pub(super) fn line(&mut self, from: Side, bytes: &[u8], out: &mut Out) -> bool {
        if matches!(self.phase, Phase::Through) {
            match from {
                Side::Client => pass(&mut out.agent, bytes),
                // Agents are known to print logs and banners to stdout.
                Side::Agent if !matches!(bytes.first(), Some(b'{' | b'[')) => return true,
                Side::Agent => pass(&mut out.client, bytes),
            }
            return false;
        }
        let message = match jsonrpc::parse(bytes) {
            Ok(message) => message,
            Err(error) => return self.no_message(from, bytes, error, out),
        };
        let line = Line { bytes, message };
        match (&mut self.phase, from) {
            (Phase::Up(up), Side::Client) => up.client_line(&line, out),
            (Phase::Up(up), Side::Agent) => up.agent_line(&line, out),
            (Phase::Down(down), Side::Client) => down.client_line(&line, out),
            (Phase::Down(down), Side::Agent) => down.agent_line(&line, out),
            (_, Side::Client) => self.client_first(&line, out),
            (_, Side::Agent) => self.agent_first(&line, out),
        }
        false
    }

    /// A line that is no message of JSON-RPC.
    fn no_message(&self, from: Side, bytes: &[u8], error: ParseError, out: &mut Out) -> bool {
        match from {
            Side::Client => {
                let (id, error) = error.answer();
                refuse(&mut out.client, &id, &error);
                false
            }
            Side::Agent => {
                // JSON of some other shape is for the client to judge.
                let json = matches!(error, ParseError::NotAMessage { .. });
                let between = matches!(self.phase, Phase::Up(_) | Phase::Down(_));
                if json && between {
                    pass(&mut out.client, bytes);
                }
                !json
            }
        }
    }

    /// The client's first request is `initialize`.
    fn client_first(&mut self, line: &Line<'_>, out: &mut Out) {
        let Incoming::Request { id, method, params } = &line.message else {
            return;
        };
        if method != method::INITIALIZE {
            let text = "Invalid request: the connection is not initialized yet";
            let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, text);
            return refuse(&mut out.client, id, &error);
        }
        let params = object(*params);
        let wanted: ProtocolVersion = params
            .field("protocolVersion")
            .unwrap_or(ProtocolVersion(0));
        let needed = match self.to {
            To::V2 => wanted >= ProtocolVersion::V2,
            To::V1 => wanted < ProtocolVersion::V2,
        };
        if !needed {
            line.pass(&mut out.agent);
            self.phase = Phase::Through;
            return;
        }
        let (params, client) = match self.to {
            To::V2 => (
                up::initialize::request(params),
                down::initialize::Client::default(),
            ),
            To::V1 => down::initialize::request(params),
        };
        line.with_params(&mut out.agent, &params);
        self.phase = Phase::Asked {
            id: id.clone(),
            client,
            line: line.bytes.into(),
        };
    }

    /// The agent's first answer is the one to `initialize`.
    fn agent_first(&mut self, line: &Line<'_>, out: &mut Out) {
        let (id, result) = match &line.message {
            Incoming::Response { id, result } => (id, result),
            Incoming::Request { id, .. } => {
                let text = "Invalid request: the connection is not initialized yet";
                let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, text);
                return refuse(&mut out.agent, id, &error);
            }
            Incoming::Notification { .. } => return,
        };
        let (client, asked) = match &mut self.phase {
            Phase::Asked {
                id: asked,
                client,
                line,
            } if asked == id => (std::mem::take(client), std::mem::take(line)),
            _ => return,
        };
        let result = match result {
            Ok(result) => result,
            Err(error) if error.code == UNSUPPORTED_VERSION => {
                // It does not speak the other version. Then it may speak the client's.
                pass(&mut out.agent, &asked);
                self.phase = Phase::Through;
                return;
            }
            Err(_) => {
                line.pass(&mut out.client);
                self.phase = Phase::Before;
                return;
            }
        };
        let result = object(Some(result));
        let version: ProtocolVersion = result
            .field("protocolVersion")
            .unwrap_or(ProtocolVersion(0));
        self.phase = match (self.to, version) {
            (To::V2, ProtocolVersion::V1) => {
                let (result, offers) = up::initialize::answer(result);
                line.with_result(&mut out.client, &result);
                Phase::Up(Box::new(Up::new(offers, &self.limits)))
            }
            (To::V1, ProtocolVersion::V2) => {
                let result = down::initialize::answer(result, &client);
                line.with_result(&mut out.client, &result);
                Phase::Down(Box::new(Down::new(client, &self.limits)))
            }
            // The agent speaks what the client speaks, and nothing else.
            (To::V2, ProtocolVersion::V2) | (To::V1, ProtocolVersion::V1) => {
                line.pass(&mut out.client);
                Phase::Through
            }
            (to, _) => {
                let text = format!(
                    "the agent speaks version {version} of the protocol; the bridge knows 1 and 2"
                );
                let code = match to {
                    To::V2 => UNSUPPORTED_VERSION,
                    To::V1 => jsonrpc::Error::INTERNAL_ERROR,
                };
                refuse(&mut out.client, id, &jsonrpc::Error::new(code, text));
                Phase::Before
            }
        };
    }

    /// A message over the limit has been passed over: whoever waits for it is told.
    pub(super) fn too_long(&mut self, from: Side, whose: Outline, length: usize, out: &mut Out) {
        let limit = self.limits.message;
        let text = format!("a message of {length} bytes is over the limit of {limit} bytes");
        tracing::warn!("{text}");
        let back = match from {
            Side::Client => &mut out.client,
            Side::Agent => &mut out.agent,
        };
        match whose {
            Outline::Request(id) if id != RequestId::Null || from == Side::Client => {
                let text = format!("Invalid request: {text}");
                let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, text);
                refuse(back, &id, &error);
            }
            Outline::Answer(id) => {
                // As if that had been the answer.
                let mut answer = Vec::new();
                refuse(&mut answer, &id, &jsonrpc::Error::internal(text));
                self.line(from, answer.trim_ascii_end(), out);
            }
            Outline::Request(_) | Outline::Noise => {}
        }
    }

    /// The client will say nothing more.
    pub(super) fn client_closed(&mut self) {
        if let Phase::Up(up) = &mut self.phase {
            up.client_closed();
        }
    }

    /// The agent will say nothing more: what it has not answered is answered with an error.
    pub(super) fn agent_closed(&mut self, out: &mut Out) {
        let error = jsonrpc::Error::internal("the agent has ended without an answer");
        match &mut self.phase {
            Phase::Asked { id, .. } => {
                refuse(&mut out.client, id, &error);
                self.phase = Phase::Before;
            }
            Phase::Up(up) => up.agent_closed(&error, out),
            Phase::Down(down) => down.agent_closed(&error, out),
            Phase::Before | Phase::Through => {}
        }
    }
}
