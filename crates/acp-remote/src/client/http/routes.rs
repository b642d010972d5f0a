//! Keeps track of requests, in order to determine which session later messages belong to.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::message::{MessageHead, MessageHeadKind, opens_session};

/// The maximum number of requests to track in each direction. Responses to any other requests are sent without a
/// session.
const MAX_PENDING_REQUESTS: usize = 64 * 1024;

/// The client's and the agent's pending requests, with their sessions.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// The client's pending requests, by id.
    sent: HashMap<String, SentRequest>,
    /// The sessions of the agent's pending requests, by request id.
    asked: HashMap<String, String>,
}

/// A pending request that the client has sent.
#[derive(Debug)]
struct SentRequest {
    session: Option<String>,
    opens: bool,
    closes: bool,
}

/// The properties of a message that the client needs to know in order to send it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutboundRoute {
    /// The id of the session that the message belongs to, if any.
    pub(super) session: Option<String>,
    /// The message's id, if it is a request.
    pub(super) request: Option<String>,
    /// Whether the message opens the session. If it does, the server may refuse to open the session's stream because it
    /// does not know the session yet.
    pub(super) opens: bool,
    pub(super) is_initialize: bool,
}

/// The change that an incoming message makes to the set of open sessions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InboundChange {
    Nothing,
    /// The session with this id was opened.
    Opened(String),
    /// The session with this id was closed.
    Closed(String),
}

impl Routes {
    /// Records a message that is about to be sent, and returns its route.
    pub(super) fn record_outbound(&mut self, head: &MessageHead<'_>) -> OutboundRoute {
        let session = head.session.as_deref().map(str::to_owned);
        match &head.kind {
            MessageHeadKind::Request { id, method } => {
                let opens = opens_session(method);
                if self.sent.len() < MAX_PENDING_REQUESTS {
                    let request = SentRequest {
                        session: session.clone(),
                        opens,
                        closes: method == "session/close",
                    };
                    self.sent.insert((*id).to_owned(), request);
                }
                OutboundRoute {
                    session,
                    request: Some((*id).to_owned()),
                    opens,
                    is_initialize: method == "initialize",
                }
            }
            MessageHeadKind::Response { id, .. } => OutboundRoute {
                session: self.asked.remove(*id).filter(|session| !session.is_empty()),
                request: None,
                opens: false,
                is_initialize: false,
            },
            MessageHeadKind::Notification { cancels, .. } => {
                let about = cancels.and_then(|id| self.sent.get(id)?.session.clone());
                OutboundRoute {
                    session: session.or(about),
                    request: None,
                    opens: false,
                    is_initialize: false,
                }
            }
        }
    }

    /// Records a message that has arrived, and returns how it changes the set of open sessions.
    pub(super) fn record_inbound(&mut self, head: &MessageHead<'_>) -> InboundChange {
        match &head.kind {
            MessageHeadKind::Request { id, .. } => {
                if let Some(session) = &head.session
                    && self.asked.len() < MAX_PENDING_REQUESTS
                {
                    self.asked
                        .insert((*id).to_owned(), session.clone().into_owned());
                }
                InboundChange::Nothing
            }
            MessageHeadKind::Response {
                id,
                opened,
                is_error,
            } => {
                let Some(request) = self.sent.remove(*id).filter(|_| !is_error) else {
                    return InboundChange::Nothing;
                };
                if request.closes {
                    return request
                        .session
                        .map_or(InboundChange::Nothing, InboundChange::Closed);
                }
                let opened = opened.clone().map(Cow::into_owned).or(request.session);
                match opened.filter(|_| request.opens) {
                    Some(session) => InboundChange::Opened(session),
                    None => InboundChange::Nothing,
                }
            }
            MessageHeadKind::Notification { .. } => InboundChange::Nothing,
        }
    }

    /// Returns `true` if any of the client's requests are pending.
    pub(super) fn has_pending_requests(&self) -> bool {
        !self.sent.is_empty()
    }
}
