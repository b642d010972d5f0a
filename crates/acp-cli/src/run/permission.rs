//! Handles permission requests in `acp run`.

use std::path::PathBuf;
use std::sync::Arc;

use acp::client::PermissionRequest;
use acp::v1::PermissionOptionId;
use acp_host::{AlwaysEffect, Prompter, question};

use super::render;
use crate::terminal_user::{self, TerminalUser};

/// Asks the user for permission on the terminal.
pub(super) struct TerminalPrompter {
    pub(super) user: Arc<TerminalUser>,
    /// The session's working directory.
    pub(super) cwd: PathBuf,
    /// Whether other clients of the session are asked instead.
    pub(super) leaves_to_others: bool,
}

impl Prompter for TerminalPrompter {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        self.ask_with(request, &AlwaysEffect::LeftToAgent).await
    }

    async fn ask_with(
        &self,
        request: &PermissionRequest,
        always: &AlwaysEffect,
    ) -> Option<PermissionOptionId> {
        if self.leaves_to_others {
            // The server takes the question back when another client answers it.
            std::future::pending::<()>().await;
        }
        let draw = |out: &mut _| render::render_question(request, always, &self.cwd, out);
        let mut dialog = self.user.ask(draw).await?;
        let letters = question::answer_letters(&request.options, always);
        let prompt = format!("answer [1-{}]: ", request.options.len());
        loop {
            let answer = dialog.answer(&prompt).await?;
            let by_number = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let by_letter = || {
                let is_typed = |letter: &Option<char>| {
                    letter.is_some_and(|letter| answer == letter.to_string())
                };
                letters.iter().position(is_typed)
            };
            let chosen = by_number.or_else(by_letter);
            let chosen = chosen.and_then(|at| request.options.get(at));
            match chosen {
                Some(option) if option.kind.rejects() || question::is_complete(request) => {
                    return Some(option.option_id.clone());
                }
                Some(_) => dialog.print_question_text(
                    "  A request that cannot be shown in full can only be rejected.",
                ),
                None => {}
            }
        }
    }

    fn can_ask(&self) -> bool {
        self.leaves_to_others || terminal_user::can_ask()
    }
}
