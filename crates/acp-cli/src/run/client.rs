//! What `acp run` does when the agent asks.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use acp::client::{Client, Elicitation, PermissionRequest, ReadTextFile, Terminals, WriteTextFile};
use acp::v1::{ElicitationId, Implementation, RequestPermissionOutcome, SessionId};
use acp::{Result, ThreadHandle};
use acp_host::{Host, Policy, Sandbox};

use super::permission::Ask;
use crate::ask::{self, Person};
use crate::elicit::Elicit;

/// What is to be told to the person beside the thread.
#[derive(Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(note);
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(super) struct RunClient {
    host: Arc<Host<Ask>>,
    /// Where there is someone to ask.
    elicit: Option<Elicit>,
    policy: Policy,
    notes: Notes,
}

impl RunClient {
    pub(super) fn new(
        policy: Policy,
        cwd: &Path,
        sandbox: Option<Sandbox>,
        person: &Arc<Person>,
        notes: Notes,
    ) -> io::Result<Self> {
        let asks = Ask(Arc::clone(person));
        let mut host = Host::new(policy, asks, [cwd.to_owned()])?;
        if let Some(sandbox) = sandbox {
            host = host.sandboxed(sandbox);
        }
        Ok(Self {
            host: Arc::new(host),
            elicit: ask::possible().then(|| Elicit::new(Arc::clone(person))),
            policy,
            notes,
        })
    }

    pub(super) fn host(&self) -> Arc<Host<Ask>> {
        Arc::clone(&self.host)
    }
}

impl Client for RunClient {
    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp", env!("CARGO_PKG_VERSION")).title("acp run"))
    }

    fn session_seen(&self, session: &SessionId, thread: &ThreadHandle) {
        self.host.session_seen(session, thread);
    }

    async fn request_permission(
        &self,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        let outcome = self.host.request_permission(&request).await;
        let allowed = match &outcome {
            RequestPermissionOutcome::Selected(selected) => request
                .options
                .iter()
                .any(|option| option.option_id == selected.option_id && option.kind.allows()),
            _ => false,
        };
        // A person who was asked knows; one who was not is told why nothing happens.
        if !allowed && self.policy != Policy::Ask {
            let call = &request.tool_call;
            let title = [&request.title, &call.title];
            let title = title.into_iter().find(|title| !title.is_empty());
            let title = title.map_or_else(|| call.id.to_string(), Clone::clone);
            self.notes
                .add(format!("rejected by --allow {}: {title}", self.policy));
        }
        Ok(outcome)
    }

    fn terminal_login(&self) -> bool {
        // Not here, but what `acp login` can do is what a person needs to be told of.
        true
    }

    fn elicitation(&self) -> Option<&impl Elicitation> {
        self.elicit.as_ref()
    }

    async fn elicitation_completed(&self, id: &ElicitationId) {
        if let Some(elicit) = &self.elicit {
            elicit.completed(id);
        }
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile> {
        self.host.offers_reading().then_some(&*self.host)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile> {
        self.host.offers_changing().then_some(&*self.host)
    }

    fn terminals(&self) -> Option<&impl Terminals> {
        self.host.offers_changing().then_some(&*self.host)
    }
}
