//! Reads the modes, models, options and commands that an agent reports when a session is opened.

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
pub(crate) trait OpenSessionResult {
    /// Returns the id of the new session, or `None` if the request opened an existing one.
    fn new_session(&self) -> Option<&SessionId>;
    /// Returns the modes, models, options and commands in the response.
    fn announcement(&self) -> SessionAnnouncement<'_>;
}

macro_rules! opened_session {
    ($($announcement:ident: $response:ty $(, $id:ident)?;)+) => { $(
        impl OpenSessionResult for $response {
            fn new_session(&self) -> Option<&SessionId> {
                None$(.or(Some(&self.$id)))?
            }
            fn announcement(&self) -> SessionAnnouncement<'_> {
                $announcement!(self)
            }
        }
    )+ };
}

macro_rules! in_v1 {
    ($response:ident) => {
        SessionAnnouncement {
            modes: $response.modes.as_ref(),
            models: $response.models.as_ref(),
            options: $response.config_options.as_deref().map(Cow::Borrowed),
            commands: &[],
        }
    };
}

macro_rules! in_v2 {
    ($response:ident) => {
        SessionAnnouncement {
            options: Some(dialect::options_from_v2($response.config_options.clone()).into()),
            commands: &$response.available_commands,
            ..SessionAnnouncement::default()
        }
    };
}

opened_session! {
    in_v1: v1::NewSessionResponse, session_id;
    in_v1: v1::ForkSessionResponse, session_id;
    in_v1: v1::LoadSessionResponse;
    in_v1: v1::ResumeSessionResponse;
    in_v2: v2::NewSessionResponse, session_id;
    in_v2: v2::ForkSessionResponse, session_id;
    in_v2: v2::ResumeSessionResponse;
}
