//! Runs a turn: calls the model, runs and reports its tool calls, and repeats with the results until the model stops.

pub(crate) mod active;
mod begin;
mod call;
mod compact;
mod draft_calls;
mod report;
mod round;
mod steering;

use acp::agent::Prompt;
use acp::v1::StopReason;

use active::ActiveTurn;
use begin::TurnStart;

use crate::context::conversation::Conversation;

impl ActiveTurn<'_> {
    /// Runs the turn to its end. A cancelled turn ends only after all of its work has stopped.
    pub(crate) async fn run_turn(&self, prompt: Prompt) -> acp::Result<StopReason> {
        let mut conversation = self.state.conversation.lock().await;
        match self.begin(&mut conversation, prompt.content).await {
            Ok(TurnStart::RunModel) => {}
            Ok(TurnStart::Answered) => return Ok(StopReason::EndTurn),
            Err(acp::Error::Cancelled) => return Ok(StopReason::Cancelled),
            Err(error) => return Err(error),
        }
        let _open = self.open_steering();
        let ended = self.run_rounds(&mut conversation).await;
        self.close_steering(&mut conversation).await?;
        match ended {
            Err(acp::Error::Cancelled) => Ok(StopReason::Cancelled),
            ended => ended,
        }
    }

    /// Runs rounds until the model stops.
    async fn run_rounds(&self, conversation: &mut Conversation) -> acp::Result<StopReason> {
        for round in 1..=self.max_requests {
            if round == self.max_requests {
                // The model would not see messages that arrive after this point.
                self.close_steering(conversation).await?;
            }
            // The user may have chosen another model in the meantime.
            let round_model = self.state.round_model()?;
            let running = ActiveTurn {
                round_model: &round_model,
                ..*self
            };
            match running.run_round_with_compaction(conversation).await? {
                None => self.add_steering_messages(conversation).await?,
                Some(StopReason::EndTurn) if self.add_or_close_steering(conversation).await? => {}
                Some(reason) => return Ok(reason),
            }
        }
        Ok(StopReason::MaxTurnRequests)
    }
}
