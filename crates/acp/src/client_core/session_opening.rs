//! What an agent reports when a session has been opened.

use std::borrow::Cow;

use acp_wire::v1::{self, SessionConfigOption, SessionId, SessionModeState, SessionModelState};
use acp_wire::v2;

use crate::dialect;
use crate::thread::ThreadHandle;

/// The modes, models, options and commands that the agent reports when a session is opened.
#[derive(Default)]
pub(crate) struct SessionAnnouncement<'a> {
    modes: Option<&'a SessionModeState>,
    models: Option<&'a SessionModelState>,
    options: Option<Cow<'a, [SessionConfigOption]>>,
    commands: &'a [v2::AvailableCommand],
}

impl SessionAnnouncement<'_> {
    pub(super) fn apply(&self, thread: &ThreadHandle) {
        let (modes, models) = (self.modes, self.models);
        let options = self.options.as_deref();
        if modes.is_some() || models.is_some() || options.is_some() {
            thread.change(|thread| thread.apply_session_setup(modes, models, options));
        }
        if !self.commands.is_empty() {
            thread.change(|thread| thread.set_commands(self.commands));
        }
    }
}

/// A response to a request that opens a session.
pub(crate) trait OpenedSessionResponse {
    /// Returns the session id, if the response is for a new session.
    fn new_session(&self) -> Option<&SessionId>;
    /// Returns what the agent reports of the session.
    fn announcement(&self) -> SessionAnnouncement<'_>;
}

macro_rules! opened_session {
    ($announcement:ident: $($response:ty => $id:expr;)+) => { $(
        impl OpenedSessionResponse for $response {
            fn new_session(&self) -> Option<&SessionId> {
                let id: fn(&Self) -> Option<&SessionId> = $id;
                id(self)
            }
            fn announcement(&self) -> SessionAnnouncement<'_> {
                $announcement!(self)
            }
        }
    )+ };
}

macro_rules! announcement_v1 {
    ($response:ident) => {
        SessionAnnouncement {
            modes: $response.modes.as_ref(),
            models: $response.models.as_ref(),
            options: $response.config_options.as_deref().map(Cow::Borrowed),
            commands: &[],
        }
    };
}

macro_rules! announcement_v2 {
    ($response:ident) => {
        SessionAnnouncement {
            options: Some(dialect::options_from_v2($response.config_options.clone()).into()),
            commands: &$response.available_commands,
            ..SessionAnnouncement::default()
        }
    };
}

opened_session! { announcement_v1:
    v1::NewSessionResponse => |response| Some(&response.session_id);
    v1::ForkSessionResponse => |response| Some(&response.session_id);
    v1::LoadSessionResponse => |_| None;
    v1::ResumeSessionResponse => |_| None;
}

opened_session! { announcement_v2:
    v2::NewSessionResponse => |response| Some(&response.session_id);
    v2::ForkSessionResponse => |response| Some(&response.session_id);
    v2::ResumeSessionResponse => |_| None;
}
