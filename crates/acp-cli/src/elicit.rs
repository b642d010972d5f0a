//! Elicitation: prompts the user on the terminal for the input that the agent requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use acp::Result;
use acp::client::Elicitation;
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction,
    ElicitationAction, ElicitationCapabilities, ElicitationFormCapabilities, ElicitationId,
    ElicitationMode, ElicitationNoContent, ElicitationSchema, ElicitationUrlCapabilities,
};
use acp_host::elicitation::{self, FieldAnswer, FormField};
use acp_host::literal;
use acp_host::question::QUESTION_BAR;

use crate::terminal_user::{TerminalUser, UserDialog};

/// The maximum number of open web pages to remember. Completion of older ones is not reported.
const MAX_PAGES: usize = 64;

/// Asks the user for input on the terminal.
pub(crate) struct TerminalElicitation {
    user: Arc<TerminalUser>,
    /// The web pages that the user has agreed to open but has not completed yet.
    pages: Mutex<VecDeque<ElicitationId>>,
    /// Whether other clients of the session are asked instead.
    leaves_to_others: bool,
}

impl TerminalElicitation {
    pub(crate) fn new(user: Arc<TerminalUser>) -> Self {
        Self {
            user,
            pages: Mutex::default(),
            leaves_to_others: false,
        }
    }

    /// Creates a handler that leaves all requests to the other clients of a live session.
    pub(crate) fn for_others(user: Arc<TerminalUser>) -> Self {
        Self {
            leaves_to_others: true,
            ..Self::new(user)
        }
    }

    /// Reports that the user has completed the elicitation on a web page.
    pub(crate) fn report_completed(&self, id: &ElicitationId) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let before = pages.len();
        pages.retain(|page| page != id);
        if pages.len() < before {
            drop(pages);
            let note = "the request on the web page was completed";
            self.user.screen().note(note);
        }
    }

    /// Asks the user to open a web page.
    async fn ask_to_open_page(
        &self,
        message: &str,
        id: &ElicitationId,
        url: &str,
    ) -> ElicitationAction {
        let question = |out: &mut crate::screen::ScreenOutput| {
            out.push_text(&question_prefix(message));
            out.push_text(&format!(
                "  Open this web page:\n  {}\n",
                literal::escape_line(url)
            ));
        };
        let Some(mut dialog) = self.user.ask(question).await else {
            return cancel_action();
        };
        let answer = ask_yes_no(&mut dialog, "continue? [Y/n]: ").await;
        if answer == Some(true) {
            let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            if pages.len() == MAX_PAGES {
                pages.pop_front();
            }
            pages.push_back(id.clone());
        }
        match answer {
            Some(true) => ElicitationAction::Accept(ElicitationAcceptAction::default()),
            Some(false) => decline_action(),
            None => cancel_action(),
        }
    }

    /// Asks the user to fill in a form, one field at a time.
    async fn ask_form(&self, message: &str, form: &ElicitationSchema) -> Result<ElicitationAction> {
        let fields =
            FormField::from_schema(form).map_err(|e| acp::Error::invalid_params(e.to_string()))?;
        let question = |out: &mut crate::screen::ScreenOutput| {
            out.push_text(&question_prefix(message));
            for about in [&form.title, &form.description].into_iter().flatten() {
                for line in literal::escape_lines(about.trim_end()) {
                    out.push_text(&format!("{QUESTION_BAR}{line}\n"));
                }
            }
            if fields.iter().any(|field| field.is_required()) {
                out.push_text("  (leave a required field empty to decline; Ctrl-C: cancel)\n");
            }
        };
        let Some(mut dialog) = self.user.ask(question).await else {
            return Ok(cancel_action());
        };
        let mut content = BTreeMap::new();
        for field in &fields {
            match ask_field(&mut dialog, field).await {
                Some(FieldAnswer::Value(value)) => {
                    content.insert(field.name().to_owned(), value);
                }
                Some(FieldAnswer::Omitted) if field.is_required() => return Ok(decline_action()),
                Some(FieldAnswer::Omitted) => {}
                None => return Ok(cancel_action()),
            }
        }
        Ok(match ask_yes_no(&mut dialog, "send this? [Y/n]: ").await {
            Some(true) => ElicitationAction::Accept(ElicitationAcceptAction::new(content)),
            Some(false) => decline_action(),
            None => cancel_action(),
        })
    }
}

impl<S: Sync> Elicitation<S> for TerminalElicitation {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new()
            .form(ElicitationFormCapabilities::new())
            .url(ElicitationUrlCapabilities::new())
    }

    async fn create(
        &self,
        _: Option<&S>,
        request: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        if self.leaves_to_others {
            // The server takes the request back when another client answers it.
            std::future::pending::<()>().await;
        }
        let message = &request.message;
        let action = match &request.mode {
            ElicitationMode::Form { requested_schema } => {
                self.ask_form(message, requested_schema).await?
            }
            ElicitationMode::Url {
                elicitation_id,
                url,
            } => self.ask_to_open_page(message, elicitation_id, url).await,
            _ => {
                let message = "unsupported elicitation mode";
                return Err(acp::Error::invalid_params(message));
            }
        };
        Ok(CreateElicitationResponse::new(action))
    }
}

/// Returns the start of a question. It includes the agent's name, so that the agent's text is not mistaken for `acp`'s
/// own.
fn question_prefix(message: &str) -> String {
    let mut lines = literal::escape_lines(message.trim_end()).into_iter();
    let mut text = format!("? The agent asks: {}\n", lines.next().unwrap_or_default());
    for line in lines {
        text.push_str(&format!("{QUESTION_BAR}{line}\n"));
    }
    text
}

/// Asks for a field's value until a valid one is entered. Returns `None` if the user cancels.
async fn ask_field(dialog: &mut UserDialog<'_>, field: &FormField) -> Option<FieldAnswer> {
    for line in field.description_lines() {
        dialog.print_question_text(&format!("  {line}"));
    }
    let prompt = format!("  {}: ", field.prompt());
    loop {
        match field.parse_line(&dialog.answer(&prompt).await?) {
            Ok(given) => return Some(given),
            Err(why) => dialog.print_question_text(&format!("  {why}")),
        }
    }
}

/// Asks a yes-or-no question, with yes as the default. Returns `None` if the user cancels.
async fn ask_yes_no(dialog: &mut UserDialog<'_>, prompt: &str) -> Option<bool> {
    loop {
        let answer = dialog.answer(prompt).await?;
        if answer.is_empty() {
            return Some(true);
        }
        if let Some(answer) = elicitation::parse_yes_no(&answer) {
            return Some(answer);
        }
    }
}

fn decline_action() -> ElicitationAction {
    ElicitationAction::Decline(ElicitationNoContent::default())
}

fn cancel_action() -> ElicitationAction {
    ElicitationAction::Cancel(ElicitationNoContent::default())
}
