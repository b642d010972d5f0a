//! Messages that reach a turn while it runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp::v1::ContentBlock;

use super::active::ActiveTurn;
use crate::context::content;
use crate::context::conversation::Conversation;
use crate::model::message::Message;

/// How many messages wait at most until the model is asked next.
const MOST: usize = 64;

/// Messages for the turn that runs, which the model has not been told yet. `None` while no turn takes any.
#[derive(Default)]
pub(crate) struct Steering(Mutex<Option<Vec<Vec<ContentBlock>>>>);

impl Steering {
    fn messages(&self) -> MutexGuard<'_, Option<Vec<Vec<ContentBlock>>>> {
        // Nothing that is done under the lock can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn takes messages from now on.
    fn open(&self) {
        self.messages().get_or_insert_default();
    }

    /// Puts a message into the turn that runs. `false` if none does.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) fn push(&self, message: Vec<ContentBlock>) -> acp::Result<bool> {
        let mut messages = self.messages();
        let Some(messages) = messages.as_mut() else {
            return Ok(false);
        };
        if messages.len() == MOST {
            let text = format!("{MOST} messages wait for the model already");
            return Err(acp::Error::internal(text));
        }
        messages.push(message);
        Ok(true)
    }

    /// The messages that wait.
    fn take(&self) -> Vec<Vec<ContentBlock>> {
        let mut messages = self.messages();
        messages.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The messages that wait. If there are none, the turn takes no more: what comes now is for another.
    fn take_or_close(&self) -> Vec<Vec<ContentBlock>> {
        let mut messages = self.messages();
        match messages.as_mut() {
            Some(waiting) if !waiting.is_empty() => std::mem::take(waiting),
            _ => {
                *messages = None;
                Vec::new()
            }
        }
    }

    /// The turn takes no more. Gives what the model has not been told.
    fn close(&self) -> Vec<Vec<ContentBlock>> {
        self.messages().take().unwrap_or_default()
    }
}

/// What has been opened is closed also when the turn is dropped.
pub(super) struct Open<'a>(&'a Steering);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let _ = self.0.close();
    }
}

impl ActiveTurn<'_> {
    /// The turn takes messages until what this gives is dropped.
    pub(super) fn takes_messages(&self) -> Open<'_> {
        self.state.steering.open();
        Open(&self.state.steering)
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

    /// The turn ends. What has come is part of the conversation all the same: the person has been told so.
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
