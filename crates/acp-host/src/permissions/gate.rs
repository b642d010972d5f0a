//! Where all that is asked passes: what the agent asks permission for, and what it does without asking.

use acp::client::PermissionRequest;
use acp::{Error, Result, jsonrpc};
use acp_wire::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, ToolCallUpdate,
};

use super::grants::{FileChange, Grants};
use super::{Action, Always, By, Note, Permissions, Prompter, Verdict, answer};
use crate::host::HostSession;
use crate::roots::Roots;

/// Decides, by what is said already or by asking.
pub(crate) struct Gate<P> {
    permissions: Permissions,
    prompter: P,
    tell: Box<dyn Fn(Note) + Send + Sync>,
    /// The agent is our own, and has asked for all that its mode and the rules do not allow.
    agent_asks: bool,
}

/// A question for the person.
pub(crate) struct Question {
    action: Action,
    what: String,
    /// The rule that has them asked each time, if one does.
    rule: Option<By>,
}

impl Question {
    /// Whether a rule wants it asked.
    pub(crate) fn is_of_a_rule(&self) -> bool {
        self.rule.is_some()
    }

    /// Whether an earlier answer in the session covers it, which is used up by that. `change` is what would become of a
    /// file.
    pub(crate) fn take_grant(&self, session: &HostSession, change: Option<FileChange<'_>>) -> bool {
        let mut grants = session.grants.lock();
        let for_session = self.rule.is_none() && grants.covers_for_session(&self.action);
        for_session || grants.take(&self.action, change, &session.thread)
    }
}

impl<P: Prompter + Send + Sync> Gate<P> {
    pub(crate) fn new(permissions: Permissions, prompter: P) -> Self {
        Self {
            permissions,
            prompter,
            tell: Box::new(|_| ()),
            agent_asks: false,
        }
    }

    pub(crate) fn tell(&mut self, tell: impl Fn(Note) + Send + Sync + 'static) {
        self.tell = Box::new(tell);
    }

    pub(crate) fn agent_asks(&mut self) {
        self.agent_asks = true;
    }

    pub(crate) fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Answers a permission request.
    ///
    /// # Errors
    /// It is malformed: nobody could say what an answer to it means.
    pub(crate) async fn request(
        &self,
        grants: &Grants,
        request: &PermissionRequest,
        roots: &Roots,
    ) -> Result<RequestPermissionOutcome> {
        let what = what(request);
        if let Err(why) = check(request) {
            let error = jsonrpc::Error::invalid_params(why.clone());
            (self.tell)(Note::Malformed { what, why });
            return Err(Error::Rpc(error));
        }
        let action = Action::asked(request, roots);
        let rule = match self.permissions.judge(&action) {
            Verdict::Allow => {
                return Ok(answer(true, &request.options).unwrap_or_else(|| {
                    (self.tell)(Note::NoYes { what });
                    RequestPermissionOutcome::cancelled()
                }));
            }
            Verdict::Deny(by) => {
                (self.tell)(Note::Rejected { by, what });
                return Ok(answer(false, &request.options)
                    .unwrap_or_else(RequestPermissionOutcome::cancelled));
            }
            Verdict::Ask => None,
            Verdict::AskEachTime(by) => Some(by),
        };
        let always = self.permissions.always(&action, rule.as_ref());
        let question = Question { action, what, rule };
        let moment = grants.lock().moment(&request.thread);
        let outcome = self.ask(request, &question, &always).await;
        if let Some(option) = chosen(request, &outcome) {
            if option.kind.allows() {
                grants.lock().add(request, &question.action, moment);
            }
            self.remember_choice(&question, option);
        }
        Ok(outcome)
    }

    /// Decides about what the agent does without asking; gives the question if a person must.
    pub(crate) fn unasked(&self, action: Action, what: String) -> Result<Option<Question>> {
        let rule = match self.permissions.judge(&action) {
            Verdict::Allow => return Ok(None),
            Verdict::Deny(by) => {
                let message = format!("rejected by {by}");
                (self.tell)(Note::Rejected { by, what });
                return Err(Error::Rpc(jsonrpc::Error::internal(message)));
            }
            Verdict::Ask if self.agent_asks => return Ok(None),
            Verdict::Ask => None,
            Verdict::AskEachTime(by) => Some(by),
        };
        Ok(Some(Question { action, what, rule }))
    }

    /// Asks the person what [`unasked`](Self::unasked) found to be a question.
    pub(crate) async fn ask_unasked(
        &self,
        session: &HostSession,
        question: &Question,
        call: &ToolCallUpdate,
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
        let for_session = match question.action.commands.first() {
            None if question
                .action
                .paths
                .iter()
                .all(|target| target.is_ordinary) =>
            {
                Some("Allow all changes of the project's files in this session")
            }
            // Of a file that other programs obey each change is asked.
            None => None,
            // What would be remembered must be all that was shown.
            Some(command) if command.env.is_empty() => Some("Allow exactly this in this session"),
            Some(_) => None,
        };
        if let Some(name) = for_session.filter(|_| !each_time) {
            options.push(option(SESSION, name, PermissionOptionKind::AllowAlways));
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
        let request = PermissionRequest::new(&session.id, call, options, session.thread.clone());
        let outcome = self.ask(&request, question, &Always::AsNamed).await;
        match chosen(&request, &outcome) {
            Some(option) if option.option_id.as_str() == SESSION => {
                session.grants.lock().add_for_session(&question.action);
                Ok(())
            }
            Some(option) => {
                self.remember_choice(question, option);
                match option.kind.allows() {
                    true => Ok(()),
                    false => Err(rejected()),
                }
            }
            None => Err(rejected()),
        }
    }

    /// Asks the person, if there is one.
    async fn ask(
        &self,
        request: &PermissionRequest,
        question: &Question,
        always: &Always,
    ) -> RequestPermissionOutcome {
        if !self.prompter.can_ask() {
            let by = question.rule.clone();
            let what = question.what.clone();
            (self.tell)(Note::NobodyToAsk { by, what });
            return answer(false, &request.options)
                .unwrap_or_else(RequestPermissionOutcome::cancelled);
        }
        let outcome = match self.prompter.ask_with(request, always).await {
            Some(id) => RequestPermissionOutcome::selected(id),
            None => RequestPermissionOutcome::cancelled(),
        };
        match chosen(request, &outcome) {
            Some(_) => outcome,
            None => RequestPermissionOutcome::cancelled(),
        }
    }

    /// Remembers what was chosen, if it was chosen for always.
    fn remember_choice(&self, question: &Question, option: &PermissionOption) {
        match option.kind {
            PermissionOptionKind::AllowAlways => self.remember(question, true),
            PermissionOptionKind::RejectAlways => self.remember(question, false),
            _ => {}
        }
    }

    /// Remembers an answer for always.
    fn remember(&self, question: &Question, allowed: bool) {
        let not = |why: String| (self.tell)(Note::NotRemembered { why });
        if let Some(by) = &question.rule {
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

/// The options of questions about what the agent did not ask for that are about the session and the project.
const SESSION: &str = "session";
const PROJECT: &str = "project";
const NEVER: &str = "never";

fn rejected() -> Error {
    Error::Rpc(jsonrpc::Error::internal("the user rejected this"))
}

/// Whether one can say what an answer to the request means.
fn check(request: &PermissionRequest) -> Result<(), String> {
    let mut options = request.options.iter();
    while let Some(option) = options.next() {
        let id = &option.option_id;
        if options.clone().any(|other| other.option_id == *id) {
            return Err(format!("two of its options have the id {:?}", id.as_str()));
        }
    }
    match request.tool_call.cut {
        true => Err("its tool call is too large to be shown whole".to_owned()),
        false => Ok(()),
    }
}

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
