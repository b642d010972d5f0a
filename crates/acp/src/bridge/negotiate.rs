//! Negotiates the version with `initialize`, and handles the lines before and after it.

use acp_wire::jsonrpc::{self, Incoming, ParseError, RequestId};
use acp_wire::v1::ProtocolVersion;

use super::BridgeSide;
use super::json::{BridgeLine, BridgeOutput, to_object, write_error, write_unchanged};
use super::method;
use super::v1_to_v2::{self, V1ToV2Bridge};
use super::v2_to_v1::{self, V2ToV1Bridge};
use crate::connection::Limits;
use crate::connection::outline::MessageOutline;

/// The error code sent if the agent and the client have no protocol version in common.
const UNSUPPORTED_VERSION_CODE: i32 = jsonrpc::Error::UNSUPPORTED_PROTOCOL_VERSION;

/// The protocol version that the client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BridgeTarget {
    V1,
    V2,
}

/// The state of a bridge. The phase of the negotiation determines how lines are handled.
pub(super) struct BridgeState {
    target: BridgeTarget,
    limits: Limits,
    phase: NegotiationPhase,
}

enum NegotiationPhase {
    /// The client has not initialized the connection yet.
    Uninitialized,
    /// `initialize` has been sent to the agent. Lines from the client wait for its response.
    Initializing {
        id: RequestId,
        client: v2_to_v1::initialize::V1ClientFeatures,
        /// The client's `initialize` line, as received.
        line: Box<[u8]>,
    },
    /// Both sides use the same version, so lines are passed on unchanged.
    PassThrough,
    V1ToV2(Box<V1ToV2Bridge>),
    V2ToV1(Box<V2ToV1Bridge>),
}

impl BridgeState {
    pub(super) fn new(to: BridgeTarget, limits: Limits) -> Self {
        Self {
            target: to,
            limits,
            phase: NegotiationPhase::Uninitialized,
        }
    }

    /// Returns `true` if the client's next line must wait for the agent's response to `initialize`.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.phase, NegotiationPhase::Initializing { .. })
    }

    /// Handles one line. Returns `true` if the line was noise, which the bridge does not pass on.
    pub(super) fn handle_line(
        &mut self,
        from: BridgeSide,
        bytes: &[u8],
        out: &mut BridgeOutput,
    ) -> bool {
        if matches!(self.phase, NegotiationPhase::PassThrough) {
            match from {
                BridgeSide::Client => write_unchanged(&mut out.agent, bytes),
                // Agents are known to print logs and banners to stdout.
                BridgeSide::Agent if !matches!(bytes.first(), Some(b'{' | b'[')) => return true,
                BridgeSide::Agent => write_unchanged(&mut out.client, bytes),
            }
            return false;
        }
        let message = match jsonrpc::parse(bytes) {
            Ok(message) => message,
            Err(error) => return self.handle_invalid_line(from, bytes, error, out),
        };
        let line = BridgeLine { bytes, message };
        match (&mut self.phase, from) {
            (NegotiationPhase::V1ToV2(up), BridgeSide::Client) => up.handle_client_line(&line, out),
            (NegotiationPhase::V1ToV2(up), BridgeSide::Agent) => up.handle_agent_line(&line, out),
            (NegotiationPhase::V2ToV1(down), BridgeSide::Client) => {
                down.handle_client_line(&line, out)
            }
            (NegotiationPhase::V2ToV1(down), BridgeSide::Agent) => {
                down.handle_agent_line(&line, out)
            }
            (_, BridgeSide::Client) => self.handle_client_initialize(&line, out),
            (_, BridgeSide::Agent) => self.handle_agent_initialize(&line, out),
        }
        false
    }

    /// Handles a line that is not a JSON-RPC message. Returns `true` if the line was noise.
    fn handle_invalid_line(
        &self,
        from: BridgeSide,
        bytes: &[u8],
        error: ParseError,
        out: &mut BridgeOutput,
    ) -> bool {
        match from {
            BridgeSide::Client => {
                let (id, error) = error.to_response();
                write_error(&mut out.client, &id, &error);
                false
            }
            BridgeSide::Agent => {
                // JSON that is not a message is passed on for the client to handle.
                let json = matches!(error, ParseError::NotAMessage { .. });
                let between = matches!(
                    self.phase,
                    NegotiationPhase::V1ToV2(_) | NegotiationPhase::V2ToV1(_)
                );
                if json && between {
                    write_unchanged(&mut out.client, bytes);
                }
                !json
            }
        }
    }

    /// Handles the client's first request, which must be `initialize`.
    fn handle_client_initialize(&mut self, line: &BridgeLine<'_>, out: &mut BridgeOutput) {
        let Incoming::Request { id, method, params } = &line.message else {
            return;
        };
        if method != method::INITIALIZE {
            let text = "Invalid request: the connection is not initialized yet";
            let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, text);
            return write_error(&mut out.client, id, &error);
        }
        let params = to_object(*params);
        let wanted: ProtocolVersion = params
            .field("protocolVersion")
            .unwrap_or(ProtocolVersion(0));
        let needed = match self.target {
            BridgeTarget::V2 => wanted >= ProtocolVersion::V2,
            BridgeTarget::V1 => wanted < ProtocolVersion::V2,
        };
        if !needed {
            line.write_unchanged(&mut out.agent);
            self.phase = NegotiationPhase::PassThrough;
            return;
        }
        let (params, client) = match self.target {
            BridgeTarget::V2 => (
                v1_to_v2::initialize::request_to_v1(params),
                v2_to_v1::initialize::V1ClientFeatures::default(),
            ),
            BridgeTarget::V1 => v2_to_v1::initialize::request_to_v2(params),
        };
        line.write_with_params(&mut out.agent, &params);
        self.phase = NegotiationPhase::Initializing {
            id: id.clone(),
            client,
            line: line.bytes.into(),
        };
    }

    /// Handles a message from the agent while the response to `initialize` is pending.
    fn handle_agent_initialize(&mut self, line: &BridgeLine<'_>, out: &mut BridgeOutput) {
        let (id, result) = match &line.message {
            Incoming::Response { id, result } => (id, result),
            Incoming::Request { id, .. } => {
                let text = "Invalid request: the connection is not initialized yet";
                let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, text);
                return write_error(&mut out.agent, id, &error);
            }
            Incoming::Notification { .. } => return,
        };
        let (client, request_line) = match &mut self.phase {
            NegotiationPhase::Initializing {
                id: pending_id,
                client,
                line,
            } if pending_id == id => (std::mem::take(client), std::mem::take(line)),
            _ => return,
        };
        let result = match result {
            Ok(result) => result,
            Err(error) if error.code == UNSUPPORTED_VERSION_CODE => {
                // The agent does not speak the other version, so try the client's version.
                write_unchanged(&mut out.agent, &request_line);
                self.phase = NegotiationPhase::PassThrough;
                return;
            }
            Err(_) => {
                line.write_unchanged(&mut out.client);
                self.phase = NegotiationPhase::Uninitialized;
                return;
            }
        };
        let result = to_object(Some(result));
        let version: ProtocolVersion = result
            .field("protocolVersion")
            .unwrap_or(ProtocolVersion(0));
        self.phase = match (self.target, version) {
            (BridgeTarget::V2, ProtocolVersion::V1) => {
                let (result, agent) = v1_to_v2::initialize::response_to_v2(result);
                line.write_with_result(&mut out.client, &result);
                NegotiationPhase::V1ToV2(Box::new(V1ToV2Bridge::new(&agent, &self.limits)))
            }
            (BridgeTarget::V1, ProtocolVersion::V2) => {
                let result = v2_to_v1::initialize::response_to_v1(result, &client);
                line.write_with_result(&mut out.client, &result);
                NegotiationPhase::V2ToV1(Box::new(V2ToV1Bridge::new(client, &self.limits)))
            }
            // The agent chose the client's version.
            (BridgeTarget::V2, ProtocolVersion::V2) | (BridgeTarget::V1, ProtocolVersion::V1) => {
                line.write_unchanged(&mut out.client);
                NegotiationPhase::PassThrough
            }
            (to, _) => {
                let text =
                    format!("unsupported protocol version {version}: the bridge supports 1 and 2");
                let code = match to {
                    BridgeTarget::V2 => UNSUPPORTED_VERSION_CODE,
                    BridgeTarget::V1 => jsonrpc::Error::INTERNAL_ERROR,
                };
                write_error(&mut out.client, id, &jsonrpc::Error::new(code, text));
                NegotiationPhase::Uninitialized
            }
        };
    }

    /// Responds to a message that was skipped because it exceeds the size limit.
    pub(super) fn handle_oversized(
        &mut self,
        from: BridgeSide,
        whose: MessageOutline,
        length: usize,
        out: &mut BridgeOutput,
    ) {
        let limit = self.limits.message;
        let text = format!("message too large: {length} bytes (limit: {limit} bytes)");
        tracing::warn!("{text}");
        let back = match from {
            BridgeSide::Client => &mut out.client,
            BridgeSide::Agent => &mut out.agent,
        };
        match whose {
            MessageOutline::Request(id) if id != RequestId::Null || from == BridgeSide::Client => {
                let text = format!("Invalid request: {text}");
                let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, text);
                write_error(back, &id, &error);
            }
            MessageOutline::Response(id) => {
                // Handle it as if the agent had sent this error.
                let mut answer = Vec::new();
                write_error(&mut answer, &id, &jsonrpc::Error::internal(text));
                self.handle_line(from, answer.trim_ascii_end(), out);
            }
            MessageOutline::Request(_) | MessageOutline::Noise => {}
        }
    }

    /// Handles the end of the client's input.
    pub(super) fn client_closed(&mut self) {
        if let NegotiationPhase::V1ToV2(up) = &mut self.phase {
            up.client_closed();
        }
    }

    /// Handles the end of the agent's output by responding to each of the client's pending requests with an error.
    pub(super) fn agent_closed(&mut self, out: &mut BridgeOutput) {
        let error = jsonrpc::Error::internal("the agent exited without responding");
        match &mut self.phase {
            NegotiationPhase::Initializing { id, .. } => {
                write_error(&mut out.client, id, &error);
                self.phase = NegotiationPhase::Uninitialized;
            }
            NegotiationPhase::V1ToV2(up) => up.agent_closed(&error, out),
            NegotiationPhase::V2ToV1(down) => down.agent_closed(&error, out),
            NegotiationPhase::Uninitialized | NegotiationPhase::PassThrough => {}
        }
    }
}
