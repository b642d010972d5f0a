//! Room in the model's window: made before it is full, when it turns out to be, and when the person asks for it.

use acp::v1::{CompactionId, CompactionStatus, CompactionUpdate, ContentBlock, StopReason};
use jiff::Timestamp;

use super::active::ActiveTurn;
use crate::context::compaction::{Compaction, Keeps, last_prompt, size_of};
use crate::context::compaction_update::{show_compaction, shows_compaction};
use crate::context::conversation::{BYTES_PER_TOKEN, Conversation};
use crate::context::summary;
use crate::model::error::{ModelError, failure};
use crate::model::message::Message;

/// What is to be done to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    /// Long results of tool calls are cut, and that is enough.
    CutResults,
    Summarise(Keeps),
    /// There is nothing that could be left out.
    Nothing,
}

/// Why no room was made.
enum Failure {
    /// There is nothing that could be left out.
    Nothing,
    Model(ModelError),
    /// The turn ends.
    Stop(acp::Error),
}

impl Failure {
    fn why(&self) -> String {
        match self {
            Self::Nothing => "nothing in the conversation can be left out".to_owned(),
            Self::Model(error) => error.message.clone(),
            Self::Stop(error) => error.to_string(),
        }
    }
}

impl From<acp::Error> for Failure {
    fn from(error: acp::Error) -> Self {
        Self::Stop(error)
    }
}

impl ActiveTurn<'_> {
    /// A round. Room is made before it if there is little left, and once more if there turns out to be none.
    pub(crate) async fn round_with_room(
        &self,
        conversation: &mut Conversation,
    ) -> acp::Result<Option<StopReason>> {
        let window = self.model().context_window();
        if window.is_some_and(|window| conversation.nearly_fills(window)) {
            match self.make_room(conversation).await {
                Ok(()) => {}
                // There is some left. What cannot be done now may be done later.
                Err(Failure::Nothing) => conversation.stays(),
                Err(Failure::Model(error)) => {
                    conversation.stays();
                    let why = error.message;
                    self.aside(&format!(
                        "The conversation comes near the model's window and could not be summarised: {why}. It \
                         stays as it is, and goes on."
                    ))
                    .await?;
                }
                Err(Failure::Stop(error)) => return Err(error),
            }
        }
        let ended = self.round(conversation).await;
        if !std::mem::take(&mut conversation.overflows) {
            return ended;
        }
        match self.make_room(conversation).await {
            Ok(()) => {
                let ended = self.round(conversation).await;
                conversation.overflows = false;
                ended
            }
            Err(Failure::Nothing) => ended,
            Err(Failure::Stop(error)) => Err(error),
            Err(Failure::Model(error)) => {
                let message = format!(
                    "the conversation is longer than the model's window, and it could not be summarised: {}. It \
                     is as it was; a model with a larger window can go on with it",
                    error.message
                );
                Err(failure(ModelError::of(error.kind, message)))
            }
        }
    }

    /// `/compact`: what comes before this prompt is summarised, whatever room there is.
    pub(super) async fn compact_as_asked(
        &self,
        conversation: &mut Conversation,
        wanted: &str,
    ) -> acp::Result<()> {
        let said = match self
            .shorten(conversation, worth_it(conversation), wanted)
            .await
        {
            Ok(said) => said,
            Err(Failure::Nothing) => "There is nothing to summarise yet.".to_owned(),
            Err(Failure::Stop(error)) => return Err(error),
            Err(Failure::Model(error)) => {
                let message = format!(
                    "the conversation could not be summarised, and is as it was: {}",
                    error.message
                );
                return Err(failure(ModelError::of(error.kind, message)));
            }
        };
        self.workspace.turn.message(&said).await?;
        let state = self.state;
        Ok(state.tell(conversation, Message::said(said)).await?)
    }

    /// Makes room, and tells the person.
    async fn make_room(&self, conversation: &mut Conversation) -> Result<(), Failure> {
        let said = self.shorten(conversation, plan(conversation), "").await?;
        if !shows_compaction(self.workspace.turn.session()) {
            self.aside(&said).await?;
        }
        Ok(())
    }

    /// Makes the conversation shorter. Gives what there is to say about it.
    async fn shorten(
        &self,
        conversation: &mut Conversation,
        plan: Plan,
        wanted: &str,
    ) -> Result<String, Failure> {
        if plan == Plan::Nothing {
            return Err(Failure::Nothing);
        }
        let turn = &self.workspace.turn;
        // Of the session's compactions no two begin at the same time.
        let id = format!("compaction_{}", Timestamp::now().as_microsecond());
        let id = CompactionId::from(id);
        let update = |status| CompactionUpdate::new(id.clone(), status);
        show_compaction(turn.session(), update(CompactionStatus::InProgress)).await?;
        match self.shorten_by(conversation, plan, wanted).await {
            Ok((said, summary)) => {
                let texts = std::iter::once(said.clone()).chain(summary);
                let update = update(CompactionStatus::Completed)
                    .summary(texts.map(ContentBlock::text).collect::<Vec<_>>());
                show_compaction(turn.session(), update).await?;
                Ok(said)
            }
            Err(failure) => {
                let status = match &failure {
                    Failure::Stop(acp::Error::Cancelled) => CompactionStatus::Cancelled,
                    _ => CompactionStatus::Failed,
                };
                let update = update(status).error(failure.why());
                show_compaction(turn.session(), update).await?;
                Err(failure)
            }
        }
    }

    async fn shorten_by(
        &self,
        conversation: &mut Conversation,
        plan: Plan,
        wanted: &str,
    ) -> Result<(String, Option<String>), Failure> {
        let (compaction, summary) = match plan {
            Plan::Summarise(keeps) => {
                let text = self
                    .summarised(conversation.messages(), keeps, wanted)
                    .await?;
                let compaction = Compaction::with_summary(text.clone(), keeps);
                (compaction, Some(text))
            }
            _ => (Compaction::of_results(), None),
        };
        let (filled, length) = (conversation.filled(), size_of(conversation.messages()));
        let kept = self.state.compact(conversation, &compaction).await;
        kept.map_err(acp::Error::from)?;
        let left = size_of(conversation.messages());
        let now = filled.map(|filled| {
            let gone = length.saturating_sub(left) / BYTES_PER_TOKEN;
            filled.saturating_sub(gone).max(left / BYTES_PER_TOKEN)
        });
        let window = self.model().context_window();
        if let (Some(now), Some(window)) = (now, window) {
            // An estimate, until the model says it after the next round.
            self.show_usage(now, window).await?;
        }
        Ok((report(plan, filled.zip(now), window), summary))
    }

    async fn summarised(
        &self,
        messages: &[Message],
        keeps: Keeps,
        wanted: &str,
    ) -> Result<String, Failure> {
        let before = match keeps {
            Keeps::Turn => last_prompt(messages).and_then(|at| messages.get(..at)),
            Keeps::Prompt => None,
        };
        let turn = &self.workspace.turn;
        let mut used = Vec::new();
        let summary = summary::summarise(
            self.model(),
            before.unwrap_or(messages),
            keeps,
            wanted,
            turn.cwd(),
            &mut used,
        );
        let summary = turn.unless_cancelled(async { Ok(summary.await) }).await;
        // It costs what it costs, also if nothing comes of it.
        for used in used {
            self.spend(used).await?;
        }
        summary?.map_err(|error| {
            tracing::warn!(model = self.model().name(), %error, "the conversation was not summarised");
            Failure::Model(error)
        })
    }
}

/// What makes room in this conversation.
fn plan(conversation: &Conversation) -> Plan {
    let messages = conversation.messages();
    let total = size_of(messages);
    let mut cut = messages.to_vec();
    Compaction::of_results().apply(&mut cut);
    if size_of(&cut) <= total / 2 {
        return Plan::CutResults;
    }
    let at = last_prompt(messages).unwrap_or(messages.len());
    let turn = messages.get(at..).unwrap_or_default();
    let worked = turn
        .iter()
        .any(|message| matches!(message, Message::Assistant { .. }));
    match worth_it(conversation) {
        Plan::Summarise(_) if !worked || size_of(turn) <= total / 2 => Plan::Summarise(Keeps::Turn),
        // What fills the window is this turn.
        _ if worked => Plan::Summarise(Keeps::Prompt),
        _ => Plan::Nothing,
    }
}

/// A summary of what comes before the last prompt, if that is more than a summary.
fn worth_it(conversation: &Conversation) -> Plan {
    let messages = conversation.messages();
    let before = last_prompt(messages).and_then(|at| messages.get(..at));
    match before.and_then(last_prompt) {
        Some(_) => Plan::Summarise(Keeps::Turn),
        None => Plan::Nothing,
    }
}

fn report(plan: Plan, tokens: Option<(u64, u64)>, window: Option<u64>) -> String {
    let what = match plan {
        Plan::CutResults => "Long results of tools were cut",
        _ => "The conversation so far was summarised",
    };
    let mut said = format!("{what}, to make room in the model's window");
    if let Some((before, after)) = tokens {
        said.push_str(&format!(": {before} tokens before, about {after} after"));
        if let Some(window) = window {
            said.push_str(&format!(", of {window}"));
        }
    }
    said.push_str(
        ". The model knows no more than what is left; the session still shows all of it.",
    );
    said
}
