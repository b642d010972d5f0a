//! Handles messages from the user during a turn.

use acp::v1::ContentBlock;

use super::active::ActiveTurn;
use crate::context::content;
use crate::context::conversation::Conversation;
use crate::model::message::ModelMessage;
use crate::session::steering::Steering;

/// Closes the steering queue when dropped, so that the queue is closed even if the turn is dropped.
pub(super) struct SteeringGuard<'a>(&'a Steering);

impl Drop for SteeringGuard<'_> {
    fn drop(&mut self) {
        let _ = self.0.close();
    }
}

impl ActiveTurn<'_> {
    /// Accepts steering messages until the returned guard is dropped.
    pub(super) fn open_steering(&self) -> SteeringGuard<'_> {
        self.state.steering.open();
        SteeringGuard(&self.state.steering)
    }

    /// Adds the queued messages to the conversation.
    pub(super) async fn add_steering_messages(
        &self,
        conversation: &mut Conversation,
    ) -> acp::Result<()> {
        let messages = self.state.steering.take();
        self.add_messages(conversation, messages).await
    }

    /// Adds the queued messages to the conversation. If there are none, closes the queue and returns `false`.
    pub(super) async fn add_or_close_steering(
        &self,
        conversation: &mut Conversation,
    ) -> acp::Result<bool> {
        let messages = self.state.steering.take_or_close();
        let has_messages = !messages.is_empty();
        self.add_messages(conversation, messages).await?;
        Ok(has_messages)
    }

    /// Closes the queue. Adds the remaining messages to the conversation, because the agent has already told the client
    /// that it accepted them.
    pub(super) async fn close_steering(&self, conversation: &mut Conversation) -> acp::Result<()> {
        let messages = self.state.steering.close();
        self.add_messages(conversation, messages).await
    }

    async fn add_messages(
        &self,
        conversation: &mut Conversation,
        messages: Vec<Vec<ContentBlock>>,
    ) -> acp::Result<()> {
        for message in messages {
            let message = content::convert_for_model(message, self.workspace);
            self.state
                .add_message(conversation, ModelMessage::User(message))
                .await?;
        }
        Ok(())
    }
}
