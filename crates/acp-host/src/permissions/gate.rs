//! The permission gate, which checks every action of the agent, even if it has not requested permission.

use std::borrow::Cow;

use acp::client::PermissionRequest;
use acp::{Error, Result, jsonrpc};
use acp_wire::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, ToolCallUpdate, ToolKind,
};

use super::always_effect::PREFIX_OPTION;
use super::grants::{FileEdit, Grants};
use super::{
    Action, ActionDecision, AlwaysEffect, DecisionSource, Denier, PermissionDecision,
    PermissionNote, Permissions, Prompter, RememberedAnswer, RememberedAnswersError, select_answer,
};
use crate::host::HostSession;
use crate::roots::Roots;

/// Decides whether actions are allowed, based on rules, earlier answers, or by asking the user.
pub(crate) struct PermissionGate<P> {
    permissions: Permissions,
    prompter: P,
    on_note: Box<dyn Fn(PermissionNote) + Send + Sync>,
    on_decision: Box<dyn Fn(ActionDecision) + Send + Sync>,
    /// Whether the agent is trusted to request permission for everything that its mode and the rules do not allow.
    trusts_agent_to_ask: bool,
}

/// A permission question for the user.
pub(crate) struct GateQuestion {
    action: Action,
    description: String,
    /// The rule that requires asking each time, if any.
    rule: Option<DecisionSource>,
}

impl GateQuestion {
    /// Returns `true` if a rule requires asking each time.
    pub(crate) fn is_required_by_rule(&self) -> bool {
        self.rule.is_some()
    }

    /// Uses up one of the session's grants if it covers the action. Returns `true` if one did. `change` is the change
    /// to a file, if any.
    pub(crate) fn take_grant(&self, session: &HostSession, change: Option<FileEdit<'_>>) -> bool {
        let mut grants = session.grants.lock();
        let for_session = self.rule.is_none() && grants.session_grants_cover(&self.action);
        for_session || grants.use_up_grant(&self.action, change, &session.thread)
    }
}

impl<P: Prompter + Send + Sync> PermissionGate<P> {
    pub(crate) fn new(permissions: Permissions, prompter: P) -> Self {
        Self {
            permissions,
            prompter,
            on_note: Box::new(|_| ()),
            on_decision: Box::new(|_| ()),
            trusts_agent_to_ask: false,
        }
    }

    pub(crate) fn on_note(&mut self, tell: impl Fn(PermissionNote) + Send + Sync + 'static) {
        self.on_note = Box::new(tell);
    }

    pub(crate) fn on_decision(&mut self, tell: impl Fn(ActionDecision) + Send + Sync + 'static) {
        self.on_decision = Box::new(tell);
    }

    fn report(&self, action: &str, denied_by: Option<Denier>) {
        (self.on_decision)(ActionDecision {
            action: action.to_owned(),
            denied_by,
        });
    }

    /// Returns who denied an action that the user was asked about.
    fn denier(&self) -> Denier {
        match self.prompter.can_ask() {
            true => Denier::User,
            false => Denier::NoUserToAsk,
        }
    }

    pub(crate) fn trust_agent_to_ask(&mut self) {
        self.trusts_agent_to_ask = true;
    }

    pub(crate) fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Handles a permission request from the agent.
    ///
    /// # Errors
    /// The request is malformed: an answer to it would be ambiguous.
    pub(crate) async fn request(
        &self,
        grants: &Grants,
        request: &PermissionRequest,
        roots: &Roots,
    ) -> Result<RequestPermissionOutcome> {
        let what = describe_request(request);
        if let Err(why) = check_request(request) {
            let error = jsonrpc::Error::invalid_params(why.clone());
            self.report(&what, Some(Denier::Request));
            (self.on_note)(PermissionNote::Malformed { what, why });
            return Err(Error::Rpc(error));
        }
        let action = Action::from_request(request, roots);
        let rule = match self.permissions.decide(&action) {
            PermissionDecision::Allow => {
                let selected = select_answer(true, &request.options);
                self.report(&what, selected.is_none().then_some(Denier::Request));
                return Ok(selected.unwrap_or_else(|| {
                    (self.on_note)(PermissionNote::NoAllowOption { what });
                    RequestPermissionOutcome::cancelled()
                }));
            }
            PermissionDecision::Deny(by) => {
                self.report(&what, Some(Denier::Source(by.clone())));
                (self.on_note)(PermissionNote::Rejected { by, what });
                return Ok(select_answer(false, &request.options)
                    .unwrap_or_else(RequestPermissionOutcome::cancelled));
            }
            PermissionDecision::Ask => None,
            PermissionDecision::AskEachTime(by) => Some(by),
        };
        let mut always = self.permissions.always_effect(&action, rule.as_ref());
        let request = self.offer_prefix(request, &action, &mut always);
        let question = GateQuestion {
            action,
            description: what,
            rule,
        };
        let moment = grants.lock().current_scope(&request.thread);
        let outcome = self.ask(&request, &question, &always).await;
        let is_allowed =
            chosen_option(&request, &outcome).is_some_and(|option| option.kind.allows());
        self.report(&question.description, (!is_allowed).then(|| self.denier()));
        if let Some(option) = chosen_option(&request, &outcome) {
            if let Some(prefix) = always.option_prefix(option) {
                grants.lock().add(&request, &question.action, moment);
                self.remember_prefix(&question, prefix);
                // The agent gets one of its own options: once, since it might remember more than the user allowed.
                let own = request
                    .options
                    .iter()
                    .filter(|own| own.option_id != option.option_id);
                let own: Vec<PermissionOption> = own.cloned().collect();
                return Ok(
                    select_answer(true, &own).unwrap_or_else(RequestPermissionOutcome::cancelled)
                );
            }
            if option.kind.allows() {
                grants.lock().add(&request, &question.action, moment);
            }
            self.remember_choice(&question, option);
        }
        Ok(outcome)
    }

    /// Decides on an action that the agent takes without asking. If the decision is up to the user, returns a question.
    pub(crate) fn decide(&self, action: Action, what: String) -> Result<Option<GateQuestion>> {
        let rule = match self.permissions.decide(&action) {
            PermissionDecision::Allow => {
                if action.kind != ToolKind::Read {
                    self.report(&what, None);
                }
                return Ok(None);
            }
            PermissionDecision::Deny(by) => {
                self.report(&what, Some(Denier::Source(by.clone())));
                let message = format!("rejected by {by}");
                (self.on_note)(PermissionNote::Rejected { by, what });
                return Err(Error::Rpc(jsonrpc::Error::internal(message)));
            }
            PermissionDecision::Ask if self.trusts_agent_to_ask => return Ok(None),
            PermissionDecision::Ask => None,
            PermissionDecision::AskEachTime(by) => Some(by),
        };
        Ok(Some(GateQuestion {
            action,
            description: what,
            rule,
        }))
    }

    /// Asks the user the question from [`decide`](Self::decide).
    pub(crate) async fn ask_user(
        &self,
        session: &HostSession,
        question: &GateQuestion,
        call: &ToolCallUpdate,
    ) -> Result<()> {
        let option = PermissionOption::new;
        let mut options = vec![option(
            "once",
            "Allow once",
            PermissionOptionKind::AllowOnce,
        )];
        // "Always" is not offered if a rule requires asking each time.
        let each_time = question.rule.is_some();
        let project = !each_time && self.permissions.can_remember(&question.action);
        let for_session = match question.action.commands.first() {
            None if question
                .action
                .paths
                .iter()
                .all(|target| target.is_ordinary) =>
            {
                Some("Allow all edits to project files in this session")
            }
            // The user is asked about each change to files that other programs run or trust.
            None => None,
            // A grant covers a command without variables, so it must have been shown without any.
            Some(command) if command.env.is_empty() => Some("Allow exactly this in this session"),
            Some(_) => None,
        };
        if let Some(name) = for_session.filter(|_| !each_time) {
            options.push(option(
                ALLOW_SESSION_OPTION,
                name,
                PermissionOptionKind::AllowAlways,
            ));
        }
        if project {
            options.push(option(
                ALLOW_PROJECT_OPTION,
                "Always allow exactly this in this project",
                PermissionOptionKind::AllowAlways,
            ));
        }
        let prefix = self.permissions.command_prefix(&question.action);
        let prefix = prefix.filter(|_| project);
        let prefix_name = prefix
            .as_ref()
            .map(|prefix| format!("Always allow `{prefix}` in this project, with any arguments"));
        if let Some(name) = &prefix_name {
            options.push(option(
                ALLOW_PREFIX_OPTION,
                name,
                PermissionOptionKind::AllowAlways,
            ));
        }
        options.push(option("no", "Reject", PermissionOptionKind::RejectOnce));
        if project {
            options.push(option(
                REJECT_PROJECT_OPTION,
                "Always reject exactly this in this project",
                PermissionOptionKind::RejectAlways,
            ));
        }
        let request = PermissionRequest::new(&session.id, call, options, session.thread.clone());
        let outcome = self
            .ask(&request, question, &AlwaysEffect::OwnOptions)
            .await;
        let chosen = chosen_option(&request, &outcome);
        let is_allowed = chosen.is_some_and(|option| option.kind.allows());
        self.report(&question.description, (!is_allowed).then(|| self.denier()));
        match chosen.map(|option| (option.option_id.as_str(), option)) {
            Some((ALLOW_SESSION_OPTION, _)) => {
                session.grants.lock().add_for_session(&question.action);
                Ok(())
            }
            Some((ALLOW_PREFIX_OPTION, _)) => {
                if let Some(prefix) = &prefix {
                    self.remember_prefix(question, prefix);
                }
                Ok(())
            }
            Some((_, option)) => {
                self.remember_choice(question, option);
                match option.kind.allows() {
                    true => Ok(()),
                    false => Err(rejected_error()),
                }
            }
            None => Err(rejected_error()),
        }
    }

    /// Asks the user for permission. If there is no user to ask, rejects the request.
    async fn ask(
        &self,
        request: &PermissionRequest,
        question: &GateQuestion,
        always: &AlwaysEffect,
    ) -> RequestPermissionOutcome {
        if !self.prompter.can_ask() {
            let by = question.rule.clone();
            let what = question.description.clone();
            (self.on_note)(PermissionNote::NoUserToAsk { by, what });
            return select_answer(false, &request.options)
                .unwrap_or_else(RequestPermissionOutcome::cancelled);
        }
        let outcome = match self.prompter.ask_with(request, always).await {
            Some(id) => RequestPermissionOutcome::selected(id),
            None => RequestPermissionOutcome::cancelled(),
        };
        match chosen_option(request, &outcome) {
            Some(_) => outcome,
            None => RequestPermissionOutcome::cancelled(),
        }
    }

    /// If the user chose an "always" option, remembers the choice.
    fn remember_choice(&self, question: &GateQuestion, option: &PermissionOption) {
        match option.kind {
            PermissionOptionKind::AllowAlways => self.remember(question, true),
            PermissionOptionKind::RejectAlways => self.remember(question, false),
            _ => {}
        }
    }

    /// Adds the option to allow all commands that begin like this one, if that can be said and remembered.
    fn offer_prefix<'r>(
        &self,
        request: &'r PermissionRequest,
        action: &Action,
        always: &mut AlwaysEffect,
    ) -> Cow<'r, PermissionRequest> {
        let AlwaysEffect::Remembered { prefix, .. } = always else {
            return Cow::Borrowed(request);
        };
        let options = &request.options;
        let is_taken = options
            .iter()
            .any(|option| option.option_id.as_str() == PREFIX_OPTION);
        let last_allow = options.iter().rposition(|option| option.kind.allows());
        let (Some(last_allow), false) = (last_allow, is_taken) else {
            return Cow::Borrowed(request);
        };
        let Some(pattern) = self.permissions.command_prefix(action) else {
            return Cow::Borrowed(request);
        };
        let own = PermissionOption::new(
            PREFIX_OPTION,
            format!("Always allow `{pattern}`"),
            PermissionOptionKind::AllowAlways,
        );
        let mut request = request.clone();
        request.options.insert(last_allow + 1, own);
        *prefix = Some(pattern);
        Cow::Owned(request)
    }

    /// Stores that all commands of this pattern are allowed, and notifies the user.
    fn remember_prefix(&self, question: &GateQuestion, pattern: &str) {
        let stored = self.permissions.remember_prefix(&question.action, pattern);
        self.tell_remembered(stored);
    }

    /// Stores an "always" answer if possible, and notifies the user.
    fn remember(&self, question: &GateQuestion, allowed: bool) {
        let not = |why: String| (self.on_note)(PermissionNote::NotRemembered { why });
        if let Some(by) = &question.rule {
            return not(format!("{by} requires asking each time"));
        }
        self.tell_remembered(self.permissions.remember(&question.action, allowed));
    }

    fn tell_remembered(
        &self,
        stored: Option<Result<Vec<RememberedAnswer>, RememberedAnswersError>>,
    ) {
        match stored {
            // The agent may remember it, for as long as it chooses.
            None => {}
            Some(Ok(answers)) => {
                for answer in answers {
                    (self.on_note)(PermissionNote::Remembered(answer));
                }
            }
            Some(Err(error)) => (self.on_note)(PermissionNote::NotRemembered {
                why: error.to_string(),
            }),
        }
    }
}

/// The id of the client's own option to allow the action for the session.
const ALLOW_SESSION_OPTION: &str = "session";

/// The id of the client's own option to always allow the action in the project.
const ALLOW_PROJECT_OPTION: &str = "project";

/// The id of the client's own option to always allow commands of a pattern in the project.
const ALLOW_PREFIX_OPTION: &str = "prefix";

/// The id of the client's own option to always reject the action in the project.
const REJECT_PROJECT_OPTION: &str = "never";

fn rejected_error() -> Error {
    Error::Rpc(jsonrpc::Error::internal("rejected by the user"))
}

/// Checks that an answer to the request would be unambiguous.
fn check_request(request: &PermissionRequest) -> Result<(), String> {
    let mut options = request.options.iter();
    while let Some(option) = options.next() {
        let id = &option.option_id;
        if options.clone().any(|other| other.option_id == *id) {
            return Err(format!("duplicate option id {:?}", id.as_str()));
        }
    }
    match request.tool_call.is_truncated {
        true => Err("the tool call is too large to show in full".to_owned()),
        false => Ok(()),
    }
}

/// Returns a short description of the request to show to the user.
fn describe_request(request: &PermissionRequest) -> String {
    let call = &request.tool_call;
    let title = [&request.title, &call.title];
    let title = title.into_iter().find(|title| !title.is_empty());
    title.map_or_else(|| call.id.to_string(), Clone::clone)
}

/// Returns the option that the outcome selects, if any.
fn chosen_option<'a>(
    request: &'a PermissionRequest,
    outcome: &RequestPermissionOutcome,
) -> Option<&'a PermissionOption> {
    let RequestPermissionOutcome::Selected(selected) = outcome else {
        return None;
    };
    let mut options = request.options.iter();
    options.find(|option| option.option_id == selected.option_id)
}
