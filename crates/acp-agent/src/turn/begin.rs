//! A turn begins: what the person typed becomes what the model is told.

use acp::v1::ContentBlock;

use super::active::ActiveTurn;
use crate::announce;
use crate::context::commands::Typed;
use crate::context::content;
use crate::context::conversation::Conversation;
use crate::context::instructions::Instructions;
use crate::mcp;
use crate::mcp::news::started;
use crate::model::message::Message;
use crate::workspace::fault::Fault;

/// How a turn goes on.
pub(crate) enum TurnStart {
    /// The model is asked.
    Asks,
    /// The agent has answered by itself.
    Answered,
}

impl ActiveTurn<'_> {
    /// Adds a prompt to the conversation. The client has it as the person typed it.
    pub(crate) async fn begin(
        &self,
        conversation: &mut Conversation,
        content: Vec<ContentBlock>,
    ) -> acp::Result<TurnStart> {
        let (turn, state) = (&self.workspace.turn, self.state);
        if let Some(title) = state.name(&content).await? {
            turn.title(title).await?;
        }
        if let Err(error) = started(&state.servers, self.workspace).await {
            // The person's words stay, also if the turn is cancelled while servers are waited for.
            state.tell(conversation, Message::User(content)).await?;
            return Err(error);
        }
        let given = state.servers.typed(self.workspace, content).await;
        let (mut content, words) = match given.map_err(stopped)? {
            mcp::prompts::Typed::Text(content) => (content, true),
            mcp::prompts::Typed::Prompt(content) => (content, false),
            mcp::prompts::Typed::Refused(content, why) => {
                state.tell(conversation, Message::User(content)).await?;
                return self.answer(conversation, why).await;
            }
        };
        if !self.model().understands() {
            state.tell(conversation, Message::User(content)).await?;
            return Ok(TurnStart::Asks);
        }
        announce::announce(turn.session(), state, true).await?;
        let typed = match typed(&mut content).filter(|_| words) {
            Some(text) => {
                let mut commands = state.commands.lock().await;
                for wrong in commands.untold() {
                    self.aside(&format!("A command of your own is left out. {wrong}"))
                        .await?;
                }
                match commands.read(text).map_err(acp::Error::invalid_params)? {
                    Typed::Help => {
                        let help = commands.help();
                        drop(commands);
                        state.tell(conversation, Message::User(content)).await?;
                        return self.answer(conversation, help).await;
                    }
                    Typed::Prompt(prompt) => {
                        *text = prompt;
                        None
                    }
                    Typed::Compact(wanted) => Some(wanted),
                    Typed::Text => None,
                }
            }
            None => None,
        };
        let content = content::for_model(content, self.workspace);
        state.tell(conversation, Message::User(content)).await?;
        if let Some(wanted) = typed {
            self.compact_as_asked(conversation, &wanted).await?;
            return Ok(TurnStart::Answered);
        }
        let project = !self.rules.forbid_reading();
        let instructions = Instructions::read(
            self.workspace,
            self.user_instructions,
            project,
            state.client_prompt.as_ref(),
        )
        .await;
        conversation.instruct(instructions.map_err(stopped)?);
        Ok(TurnStart::Asks)
    }

    /// Answers in the model's place.
    async fn answer(
        &self,
        conversation: &mut Conversation,
        text: String,
    ) -> acp::Result<TurnStart> {
        let (turn, state) = (&self.workspace.turn, self.state);
        turn.message(&text).await?;
        state.tell(conversation, Message::said(text)).await?;
        Ok(TurnStart::Answered)
    }
}

/// What was typed, with which commands begin.
fn typed(content: &mut [ContentBlock]) -> Option<&mut String> {
    match content.first_mut()? {
        ContentBlock::Text(text) => Some(&mut text.text),
        _ => None,
    }
}

/// What ends a turn that cannot begin.
fn stopped(fault: Fault) -> acp::Error {
    match fault {
        Fault::Stop(error) => error,
        Fault::Failed(why) | Fault::Missing(why) => acp::Error::internal(why),
    }
}
