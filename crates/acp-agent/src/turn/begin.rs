//! Starts a turn: converts the user's prompt to a message for the model.

use acp::v1::ContentBlock;

use super::active::ActiveTurn;
use crate::announce;
use crate::context::commands::PromptInput;
use crate::context::content;
use crate::context::conversation::Conversation;
use crate::context::instructions::Instructions;
use crate::mcp;
use crate::mcp::announce::wait_for_servers;
use crate::model::message::ModelMessage;
use crate::workspace::tool_failure::ToolFailure;

/// What happens after a turn has started.
pub(crate) enum TurnStart {
    /// The turn continues with a request to the model.
    RunModel,
    /// The turn ends, because the agent itself has already responded.
    Answered,
}

impl ActiveTurn<'_> {
    /// Adds a prompt to the conversation. The client has already shown it as the user typed it.
    pub(crate) async fn begin(
        &self,
        conversation: &mut Conversation,
        content: Vec<ContentBlock>,
    ) -> acp::Result<TurnStart> {
        let (turn, state) = (&self.workspace.turn, self.state);
        if let Some(title) = state.derive_title(&content).await? {
            turn.set_title(title).await?;
        }
        if let Err(error) = wait_for_servers(&state.servers, self.workspace).await {
            // Keep the prompt even if the turn is cancelled while it waits for servers.
            state
                .add_message(conversation, ModelMessage::User(content))
                .await?;
            return Err(error);
        }
        let given = state.servers.expand(self.workspace, content).await;
        let (mut content, words) = match given.map_err(to_protocol_error)? {
            mcp::prompts::McpPromptInput::Text(content) => (content, true),
            mcp::prompts::McpPromptInput::Prompt(content) => (content, false),
            mcp::prompts::McpPromptInput::Rejected(content, why) => {
                state
                    .add_message(conversation, ModelMessage::User(content))
                    .await?;
                return self.finish_with_text(conversation, why).await;
            }
        };
        if !self.model().understands_language() {
            state
                .add_message(conversation, ModelMessage::User(content))
                .await?;
            return Ok(TurnStart::RunModel);
        }
        announce::announce_commands(turn.session(), state, true).await?;
        let typed = match command_text(&mut content).filter(|_| words) {
            Some(text) => {
                let mut commands = state.commands.lock().await;
                for wrong in commands.take_new_problems() {
                    self.send_notice(&format!("Ignoring a custom command: {wrong}"))
                        .await?;
                }
                match commands.parse(text).map_err(acp::Error::invalid_params)? {
                    PromptInput::Help => {
                        let help = commands.help();
                        drop(commands);
                        state
                            .add_message(conversation, ModelMessage::User(content))
                            .await?;
                        return self.finish_with_text(conversation, help).await;
                    }
                    PromptInput::Prompt(prompt) => {
                        *text = prompt;
                        None
                    }
                    PromptInput::Compact(wanted) => Some(wanted),
                    PromptInput::Text => None,
                }
            }
            None => None,
        };
        let content = content::convert_for_model(content, self.workspace);
        state
            .add_message(conversation, ModelMessage::User(content))
            .await?;
        if let Some(wanted) = typed {
            self.compact_on_command(conversation, &wanted).await?;
            return Ok(TurnStart::Answered);
        }
        let instructions = Instructions::read(
            self.workspace,
            self.user_instructions,
            self.rules,
            state.client_prompt.as_ref(),
        )
        .await;
        conversation.set_instructions(instructions.map_err(to_protocol_error)?);
        Ok(TurnStart::RunModel)
    }

    /// Sends a response to the user in place of the model.
    async fn finish_with_text(
        &self,
        conversation: &mut Conversation,
        text: String,
    ) -> acp::Result<TurnStart> {
        let (turn, state) = (&self.workspace.turn, self.state);
        turn.send_message(&text).await?;
        state
            .add_message(conversation, ModelMessage::from_text(text))
            .await?;
        Ok(TurnStart::Answered)
    }
}

/// Returns the first block of a prompt if it is text, since that may start with a command.
fn command_text(content: &mut [ContentBlock]) -> Option<&mut String> {
    match content.first_mut()? {
        ContentBlock::Text(text) => Some(&mut text.text),
        _ => None,
    }
}

/// Converts a failure at the start of a turn to a protocol error.
fn to_protocol_error(fault: ToolFailure) -> acp::Error {
    match fault {
        ToolFailure::Stop(error) => error,
        ToolFailure::Failed(why) | ToolFailure::NotFound(why) => acp::Error::internal(why),
    }
}
