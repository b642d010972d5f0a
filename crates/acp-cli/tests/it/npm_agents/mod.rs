//! Tests with agents from npm, which know nothing of this project. A scripted server takes the place of their models.

mod claude;
mod conformance;
mod install;
mod opencode;
mod plain_turns;
mod subagents;

pub(crate) use install::OPENCODE;
pub(crate) use opencode::opencode_command;

use crate::full_task::provider::{AnswerPiece, ProviderReply};
use serde_json::Value;

/// Returns the reply to the agent whose prompt contains `prompt`: a text, and then a tool call.
fn call_tool(
    prompt: &'static str,
    text: &'static str,
    id: &'static str,
    tool: &'static str,
    arguments: Value,
) -> ProviderReply {
    let says = vec![
        AnswerPiece::Text(text),
        AnswerPiece::Call(id, tool, arguments),
    ];
    ProviderReply::To(prompt, Box::new(ProviderReply::Says(says)))
}

/// Returns the reply to the agent whose prompt contains `prompt`: a text.
fn say_to(prompt: &'static str, text: &'static str) -> ProviderReply {
    let says = vec![AnswerPiece::Text(text)];
    ProviderReply::To(prompt, Box::new(ProviderReply::Says(says)))
}
