//! A turn: the model is asked, what it calls is carried out and reported, and it is asked again with
//! the results, until it stops.

pub(crate) mod active;
mod begin;
mod call;
mod report;
mod room;
mod round;
mod writing;

use acp::agent::Prompt;
use acp::v1::StopReason;

use active::ActiveTurn;
use begin::TurnStart;

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
        for _ in 0..self.max_requests {
            // It may have been changed meanwhile.
            let asked = self.state.asked()?;
            let running = ActiveTurn {
                asked: &asked,
                ..*self
            };
            match running.round_with_room(&mut conversation).await {
                Ok(None) => {}
                Ok(Some(reason)) => return Ok(reason),
                Err(acp::Error::Cancelled) => return Ok(StopReason::Cancelled),
                Err(error) => return Err(error),
            }
        }
        Ok(StopReason::MaxTurnRequests)
    }
}
