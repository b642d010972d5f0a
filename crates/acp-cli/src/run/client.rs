//! The client side of `acp run`: handles the agent's requests.

use std::io;
use std::sync::Arc;

use acp::client::{
    Client, ClientState, Elicitation, ExtensionNotification, PermissionRequest, ReadTextFile,
    Terminals, WriteTextFile,
};
use acp::v1::{
    ElicitationId, Implementation, McpServer, RequestPermissionOutcome, SessionId, StopReason,
};
use acp::{Result, ThreadHandle};
use acp_host::{Host, HostSession};

use super::answer_tool::AnswerToolNames;
use super::decisions::RunDecisions;
use super::notes::RunNotes;
use super::own_turn::OwnTurn;
use super::permission::TerminalPrompter;
use super::setup::RunSetup;
use crate::confinement::Confinement;
use crate::elicit::TerminalElicitation;
use crate::live::{TurnOwner, turn_started};
use crate::permissions;
use crate::terminal_user::{self, TerminalUser};

pub(super) struct RunClient {
    host: Arc<Host<TerminalPrompter>>,
    has_files: bool,
    has_terminals: bool,
    /// The elicitation handler, if there is a user who can answer.
    elicitation: Option<TerminalElicitation>,
    start: OwnTurn,
    /// The MCP server with the tool for the answer, and the names by which the agent may call the tool without asking the
    /// user.
    answer_tool: Option<(McpServer, AnswerToolNames)>,
}

impl RunClient {
    pub(super) fn new(
        run: &RunSetup,
        person: &Arc<TerminalUser>,
        notes: RunNotes,
        start: OwnTurn,
        decisions: RunDecisions,
    ) -> io::Result<Self> {
        let asks = TerminalPrompter {
            user: Arc::clone(person),
            cwd: run.cwd.clone(),
            leaves_to_others: run.args.detached,
        };
        let roots = std::iter::once(&run.cwd).chain(&run.additional_directories);
        let host = Host::new(run.permissions.clone(), asks, roots.cloned())?;
        let mut host = host
            .environment(run.agent.environment.environment())
            .on_note(move |note| notes.add(permissions::note_text(&note)))
            .on_decision(move |decision| decisions.add(decision));
        if run.agent.is_bundled() {
            host = host.trust_agent_to_ask();
        }
        let sandbox = run.sandbox.as_ref().and_then(Confinement::command_sandbox);
        if let Some(sandbox) = sandbox {
            host = host.sandbox(sandbox.clone());
        }
        Ok(Self {
            host: Arc::new(host),
            has_files: !run.args.no_fs,
            has_terminals: !run.args.no_terminal,
            start,
            answer_tool: run
                .answer_tool
                .as_ref()
                .map(|tool| (tool.mcp_server(), tool.names().clone())),
            elicitation: match run.args.detached {
                true => Some(TerminalElicitation::for_others(Arc::clone(person))),
                false => {
                    terminal_user::can_ask().then(|| TerminalElicitation::new(Arc::clone(person)))
                }
            },
        })
    }

    pub(super) fn host(&self) -> Arc<Host<TerminalPrompter>> {
        Arc::clone(&self.host)
    }
}

impl ClientState<RunClient> for HostSession {
    fn new(client: &RunClient, session: &SessionId, thread: &ThreadHandle) -> Self {
        client.host.session(session, thread)
    }

    fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        HostSession::turn_ended(self, stop_reason);
    }

    fn closed(&self) {
        HostSession::closed(self);
    }
}

impl Client for RunClient {
    type State = HostSession;

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp", env!("CARGO_PKG_VERSION")).title("acp run"))
    }

    async fn request_permission(
        &self,
        session: &HostSession,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        if let Some((_, names)) = &self.answer_tool
            && let Some(allowed) = names.allow(&request)
        {
            return Ok(allowed);
        }
        self.host.request_permission(session, &request).await
    }

    fn mcp_servers(&self) -> Vec<McpServer> {
        let servers = self.answer_tool.iter();
        servers.map(|(server, _)| server.clone()).collect()
    }

    fn supports_terminal_login(&self) -> bool {
        // `acp run` cannot do it, but it can tell the user to run `acp login`.
        true
    }

    fn elicitation(&self) -> Option<&impl Elicitation<HostSession>> {
        self.elicitation.as_ref()
    }

    async fn extension_notification(&self, notification: ExtensionNotification) {
        match turn_started(notification.method(), notification.params()) {
            Some(TurnOwner::ThisClient) => self.start.record(),
            Some(TurnOwner::OtherClient) => self.start.record_other(),
            None => {}
        }
    }

    async fn elicitation_completed(&self, id: &ElicitationId) {
        if let Some(elicit) = &self.elicitation {
            elicit.report_completed(id);
        }
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<HostSession>> {
        let is_offered = self.has_files && self.host.can_read_files();
        is_offered.then_some(&*self.host)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile<HostSession>> {
        let is_offered = self.has_files && self.host.can_change_files();
        is_offered.then_some(&*self.host)
    }

    fn terminals(&self) -> Option<&impl Terminals<HostSession>> {
        let is_offered = self.has_terminals && self.host.can_change_files();
        is_offered.then_some(&*self.host)
    }
}
