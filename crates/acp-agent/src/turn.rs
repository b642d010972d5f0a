//! A turn: the model is asked, what it calls is carried out and reported, and it is asked again with
//! the results, until it stops.

pub(crate) mod active;
mod begin;
mod call;
mod report;
mod room;
mod round;
mod steering;
mod writing;

use acp::agent::Prompt;
use acp::v1::StopReason;

use active::ActiveTurn;
use begin::TurnStart;

use crate::context::conversation::Conversation;

impl ActiveTurn<'_> {
    /// Runs the turn to its end. A cancelled one ends as soon as everything it has begun is ended.
    pub(crate) async fn run(&self, prompt: Prompt) -> acp::Result<StopReason> {
        let mut conversation = self.state.conversation.lock().await;
        match self.begin(&mut conversation, prompt.content).await {
            Ok(TurnStart::Asks) => {}
            Ok(TurnStart::Answered) => return Ok(StopReason::EndTurn),
            Err(acp::Error::Cancelled) => return Ok(StopReason::Cancelled),
            Err(error) => return Err(error),
        }
        let _open = self.takes_messages();
        let ended = self.rounds(&mut conversation).await;
        self.hear_the_rest(&mut conversation).await?;
        match ended {
            Err(acp::Error::Cancelled) => Ok(StopReason::Cancelled),
            ended => ended,
        }
    }

    /// Asks the model until it stops.
    async fn rounds(&self, conversation: &mut Conversation) -> acp::Result<StopReason> {
        for round in 1..=self.max_requests {
            if round == self.max_requests {
                // What came now would not be answered.
                self.hear_the_rest(conversation).await?;
            }
            // It may have been changed meanwhile.
            let asked = self.state.asked()?;
            let running = ActiveTurn {
                asked: &asked,
                ..*self
            };
            match running.round_with_room(conversation).await? {
                None => self.hear(conversation).await?,
                Some(StopReason::EndTurn) if self.hears_more(conversation).await? => {}
                Some(reason) => return Ok(reason),
            }
        }
        Ok(StopReason::MaxTurnRequests)
    }
}
