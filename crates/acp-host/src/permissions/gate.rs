//! Where all that is asked passes: what the agent asks permission for, and what it does without asking.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp::client::PermissionRequest;
use acp::{Error, Result, ThreadHandle};
use acp_wire::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SessionId, ToolCallUpdate,
};

use super::{Action, Always, By, Note, Permissions, Prompter, Verdict, answer};
use crate::roots::Roots;

/// Decides, by what is said already or by asking.
pub(crate) struct Gate<P> {
    permissions: Permissions,
    prompter: P,
    tell: Box<dyn Fn(Note) + Send + Sync>,
    /// What the person has allowed beyond what was asked.
    allowed: Mutex<HashMap<SessionId, Allowed>>,
}

#[derive(Default)]
struct Allowed {
    /// They have allowed something in this turn.
    turn: bool,
    /// What they have allowed in this turn of that which a rule has them asked each time.
    confirmed: HashSet<String>,
    /// Which methods, from now on.
    always: HashSet<&'static str>,
}

/// A question about what the agent does without having asked.
pub(crate) struct Question {
    action: Action,
    what: String,
    rule: Option<(By, Vec<String>)>,
}

impl Question {
    /// Whether a rule wants it asked.
    pub(crate) fn is_of_a_rule(&self) -> bool {
        self.rule.is_some()
    }
}

impl<P: Prompter + Send + Sync> Gate<P> {
    pub(crate) fn new(permissions: Permissions, prompter: P) -> Self {
        Self {
            permissions,
            prompter,
            tell: Box::new(|_| ()),
            allowed: Mutex::default(),
        }
    }

    pub(crate) fn tell(&mut self, tell: impl Fn(Note) + Send + Sync + 'static) {
        self.tell = Box::new(tell);
    }

    pub(crate) fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    fn allowed(&self) -> MutexGuard<'_, HashMap<SessionId, Allowed>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn has ended: what was allowed in it is to be asked for again.
    pub(crate) fn turn_ended(&self, session: &SessionId) {
        if let Some(allowed) = self.allowed().get_mut(session) {
            allowed.turn = false;
            allowed.confirmed.clear();
        }
    }

    /// A session is no more.
    pub(crate) fn session_closed(&self, session: &SessionId) {
        self.allowed().remove(session);
    }

    /// Answers a permission request.
    pub(crate) async fn request(
        &self,
        request: &PermissionRequest,
        roots: &Roots,
    ) -> RequestPermissionOutcome {
        let action = Action::asked(request, roots);
        let what = what(request);
        let rule = match self.permissions.judge(&action) {
            Verdict::Allow => {
                return answer(true, &request.options).unwrap_or_else(|| {
                    (self.tell)(Note::NoYes { what });
                    RequestPermissionOutcome::cancelled()
                });
            }
            Verdict::Deny(by) => {
                (self.tell)(Note::Rejected { by, what });
                return answer(false, &request.options)
                    .unwrap_or_else(RequestPermissionOutcome::cancelled);
            }
            Verdict::Ask => None,
            Verdict::AskEachTime { by, about } => Some((by, about)),
        };
        let question = Question { action, what, rule };
        self.ask(request, &question, false).await
    }

    /// Decides about what the agent does without asking, by `method`; gives the question if a person must.
    pub(crate) fn unasked(
        &self,
        session: &SessionId,
        method: &'static str,
        action: Action,
        what: String,
    ) -> Result<Option<Question>> {
        let rule = match self.permissions.judge(&action) {
            Verdict::Allow => return Ok(None),
            Verdict::Deny(by) => {
                let message = format!("rejected by {by}");
                (self.tell)(Note::Rejected { by, what });
                return Err(Error::Rpc(acp::jsonrpc::Error::internal(message)));
            }
            Verdict::Ask => None,
            Verdict::AskEachTime { by, about } => Some((by, about)),
        };
        let known = self
            .allowed()
            .get(session)
            .is_some_and(|allowed| match &rule {
                None => allowed.turn || allowed.always.contains(method),
                Some((_, about)) => {
                    !about.is_empty() && about.iter().all(|about| allowed.confirmed.contains(about))
                }
            });
        Ok((!known).then_some(Question { action, what, rule }))
    }

    /// Asks the person what [`unasked`](Self::unasked) found to be a question.
    pub(crate) async fn ask_unasked(
        &self,
        session: &SessionId,
        method: &'static str,
        question: &Question,
        call: &ToolCallUpdate,
        thread: ThreadHandle,
    ) -> Result<()> {
        let option = PermissionOption::new;
        let mut options = vec![option(
            "once",
            "Allow once",
            PermissionOptionKind::AllowOnce,
        )];
        // Where a rule asks each time, there is no always.
        let each_time = question.rule.is_some();
        let project = !each_time && self.permissions.can_remember(&question.action);
        if !each_time {
            options.push(option(
                "always",
                "Allow in this session",
                PermissionOptionKind::AllowAlways,
            ));
        }
        if project {
            options.push(option(
                PROJECT,
                "Allow exactly this always, in this project",
                PermissionOptionKind::AllowAlways,
            ));
        }
        options.push(option("no", "Reject", PermissionOptionKind::RejectOnce));
        if project {
            options.push(option(
                NEVER,
                "Reject exactly this always, in this project",
                PermissionOptionKind::RejectAlways,
            ));
        }
        let request = PermissionRequest::new(session, call, options, thread);
        let outcome = self.ask(&request, question, true).await;
        match chosen(&request, &outcome) {
            Some(option) if option.option_id.as_str() == "always" => {
                self.allowed()
                    .entry(session.clone())
                    .or_default()
                    .always
                    .insert(method);
                Ok(())
            }
            Some(option) if option.kind.allows() => Ok(()),
            _ => Err(Error::Rpc(acp::jsonrpc::Error::internal(
                "the user rejected this",
            ))),
        }
    }

    /// Asks the person, and keeps in mind what they say. `unasked`: the agent did not ask for it.
    async fn ask(
        &self,
        request: &PermissionRequest,
        question: &Question,
        unasked: bool,
    ) -> RequestPermissionOutcome {
        if !self.prompter.can_ask() {
            let by = question.rule.as_ref().map(|(by, _)| by.clone());
            let what = question.what.clone();
            (self.tell)(Note::NobodyToAsk { by, what });
            return answer(false, &request.options)
                .unwrap_or_else(RequestPermissionOutcome::cancelled);
        }
        let always = match unasked {
            true => Always::AsNamed,
            false => {
                let by = question.rule.as_ref().map(|(by, _)| by);
                self.permissions.always(&question.action, by)
            }
        };
        let outcome = match self.prompter.ask_with(request, &always).await {
            Some(id) => RequestPermissionOutcome::selected(id),
            None => RequestPermissionOutcome::cancelled(),
        };
        let Some(option) = chosen(request, &outcome) else {
            return RequestPermissionOutcome::cancelled();
        };
        if option.kind.allows() {
            let mut allowed = self.allowed();
            let allowed = allowed.entry(request.session_id.clone()).or_default();
            // What the agent did not ask for is allowed as such, and nothing else with it.
            allowed.turn |= !unasked;
            if let Some((_, about)) = &question.rule {
                allowed.confirmed.extend(about.iter().cloned());
            }
        }
        let for_session = unasked && option.option_id.as_str() == "always";
        if !for_session {
            match option.kind {
                PermissionOptionKind::AllowAlways => self.remember(question, true),
                PermissionOptionKind::RejectAlways => self.remember(question, false),
                _ => {}
            }
        }
        outcome
    }

    /// Remembers an answer for always.
    fn remember(&self, question: &Question, allowed: bool) {
        let not = |why: String| (self.tell)(Note::NotRemembered { why });
        if let Some((by, _)) = &question.rule {
            return not(format!("{by}, has you asked each time"));
        }
        match self.permissions.remember(&question.action, allowed) {
            // It is the agent's to remember, for as long as it does.
            None => {}
            Some(Ok(answers)) => {
                for answer in answers {
                    (self.tell)(Note::Remembered(answer));
                }
            }
            Some(Err(e)) => not(e.to_string()),
        }
    }
}

/// The options of questions about what the agent did not ask for that are about the project.
const PROJECT: &str = "project";
const NEVER: &str = "never";

/// What a request is about, for people.
fn what(request: &PermissionRequest) -> String {
    let call = &request.tool_call;
    let title = [&request.title, &call.title];
    let title = title.into_iter().find(|title| !title.is_empty());
    title.map_or_else(|| call.id.to_string(), Clone::clone)
}

/// The option that was chosen.
fn chosen<'a>(
    request: &'a PermissionRequest,
    outcome: &RequestPermissionOutcome,
) -> Option<&'a PermissionOption> {
    let RequestPermissionOutcome::Selected(selected) = outcome else {
        return None;
    };
    let mut options = request.options.iter();
    options.find(|option| option.option_id == selected.option_id)
}
