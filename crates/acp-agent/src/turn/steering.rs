//! Messages that reach a turn while it runs.

use acp::v1::ContentBlock;

use super::active::ActiveTurn;
use crate::context::content;
use crate::context::conversation::Conversation;
use crate::model::message::Message;
use crate::session::steering::Steering;

/// What has been opened is closed also when the turn is dropped.
pub(super) struct OpenSteering<'a>(&'a Steering);

impl Drop for OpenSteering<'_> {
    fn drop(&mut self) {
        let _ = self.0.close();
    }
}

impl ActiveTurn<'_> {
    /// The turn takes messages until what this gives is dropped.
    pub(super) fn takes_messages(&self) -> OpenSteering<'_> {
        self.state.steering.open();
        OpenSteering(&self.state.steering)
    }

    /// Tells the model what has come meanwhile.
    pub(super) async fn hear(&self, conversation: &mut Conversation) -> acp::Result<()> {
        let messages = self.state.steering.take();
        self.hear_all(conversation, messages).await
    }

    /// Tells the model what has come meanwhile. `false` if nothing has: the turn takes no more messages then.
    pub(super) async fn hears_more(&self, conversation: &mut Conversation) -> acp::Result<bool> {
        let messages = self.state.steering.take_or_close();
        let heard = !messages.is_empty();
        self.hear_all(conversation, messages).await?;
        Ok(heard)
    }

    /// The turn takes no more messages. What has come is part of the conversation: the person has been told so.
    pub(super) async fn hear_the_rest(&self, conversation: &mut Conversation) -> acp::Result<()> {
        let messages = self.state.steering.close();
        self.hear_all(conversation, messages).await
    }

    async fn hear_all(
        &self,
        conversation: &mut Conversation,
        messages: Vec<Vec<ContentBlock>>,
    ) -> acp::Result<()> {
        for message in messages {
            let message = content::for_model(message, self.workspace);
            self.state
                .tell(conversation, Message::User(message))
                .await?;
        }
        Ok(())
    }
}
