//! Asking for permission.

use std::sync::Arc;

use acp::client::PermissionRequest;
use acp::v1::PermissionOptionId;
use acp_host::Prompter;

use super::render;
use crate::ask::{self, Person};

/// Asks the person at the terminal.
pub(super) struct Ask(pub(super) Arc<Person>);

impl Prompter for Ask {
    async fn ask(&self, request: &PermissionRequest) -> Option<PermissionOptionId> {
        let question = |out: &mut _| render::question(request, out);
        let mut dialog = self.0.ask(question).await?;
        let prompt = format!("answer [1-{}]: ", request.options.len());
        loop {
            let answer = dialog.answer(&prompt).await?;
            let chosen = answer
                .parse::<usize>()
                .ok()
                .and_then(|n| request.options.get(n.checked_sub(1)?));
            if let Some(option) = chosen {
                return Some(option.option_id.clone());
            }
        }
    }

    fn can_ask(&self) -> bool {
        ask::possible()
    }
}
