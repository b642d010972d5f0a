//! Compacts a conversation during a turn: when the context window is nearly full, when a round does not fit, or when
//! the user runs `/compact`.

use acp::v1::{CompactionId, CompactionStatus, CompactionUpdate, ContentBlock, StopReason};
use jiff::Timestamp;

use super::active::ActiveTurn;
use crate::context::compaction::{Compaction, KeptTail, conversation_size, last_prompt_index};
use crate::context::compaction_update::{show_compaction, supports_compaction_updates};
use crate::context::conversation::{BYTES_PER_TOKEN, Conversation};
use crate::context::summary;
use crate::model::error::{ModelError, to_acp_error};
use crate::model::message::ModelMessage;

/// A plan for compacting a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CompactionPlan {
    /// Truncate long tool results, which is enough.
    TruncateResults,
    Summarize(KeptTail),
    /// Leave the conversation as it is, because every part is still needed.
    Nothing,
}

/// Why a conversation was not compacted.
enum CompactionFailure {
    /// Every part of the conversation is still needed.
    NothingToCompact,
    Model(ModelError),
    /// The turn must end with this error.
    Stop(acp::Error),
}

impl CompactionFailure {
    fn reason(&self) -> String {
        match self {
            Self::NothingToCompact => "every part of the conversation is still needed".to_owned(),
            Self::Model(error) => error.message.clone(),
            Self::Stop(error) => error.to_string(),
        }
    }
}

impl From<acp::Error> for CompactionFailure {
    fn from(error: acp::Error) -> Self {
        Self::Stop(error)
    }
}

impl ActiveTurn<'_> {
    /// Runs a round. Compacts the conversation first if the context window is nearly full, and compacts and retries if
    /// the round does not fit.
    pub(crate) async fn run_round_with_compaction(
        &self,
        conversation: &mut Conversation,
    ) -> acp::Result<Option<StopReason>> {
        let window = self.model().context_window();
        if window.is_some_and(|window| conversation.needs_compaction(window)) {
            match self.compact(conversation).await {
                Ok(()) => {}
                // The window still has space, and compaction may be possible later.
                Err(CompactionFailure::NothingToCompact) => conversation.defer_compaction(),
                Err(CompactionFailure::Model(error)) => {
                    conversation.defer_compaction();
                    let why = error.message;
                    self.send_notice(&format!(
                        "The conversation is close to the model's context limit, and compaction failed: {why}. Continuing without compaction."
                    ))
                    .await?;
                }
                Err(CompactionFailure::Stop(error)) => return Err(error),
            }
        }
        let ended = self.run_round(conversation).await;
        if !std::mem::take(&mut conversation.has_overflowed) {
            return ended;
        }
        match self.compact(conversation).await {
            Ok(()) => {
                let ended = self.run_round(conversation).await;
                conversation.has_overflowed = false;
                ended
            }
            Err(CompactionFailure::NothingToCompact) => ended,
            Err(CompactionFailure::Stop(error)) => Err(error),
            Err(CompactionFailure::Model(error)) => {
                let message = format!(
                    "the conversation exceeds the model's context window, and compaction failed: {}. The conversation is unchanged; continue with a model that has a larger context window",
                    error.message
                );
                Err(to_acp_error(ModelError::with_kind(error.kind, message)))
            }
        }
    }

    /// Runs `/compact`, which replaces everything before this prompt with a summary, regardless of the context usage.
    pub(super) async fn compact_on_command(
        &self,
        conversation: &mut Conversation,
        wanted: &str,
    ) -> acp::Result<()> {
        let report = match self
            .compact_with(conversation, plan_if_worthwhile(conversation), wanted)
            .await
        {
            Ok(report) => report,
            Err(CompactionFailure::NothingToCompact) => "Nothing to compact yet.".to_owned(),
            Err(CompactionFailure::Stop(error)) => return Err(error),
            Err(CompactionFailure::Model(error)) => {
                let message = format!(
                    "compaction failed: {}; the conversation is unchanged",
                    error.message
                );
                return Err(to_acp_error(ModelError::with_kind(error.kind, message)));
            }
        };
        self.workspace.turn.send_message(&report).await?;
        let state = self.state;
        Ok(state
            .add_message(conversation, ModelMessage::from_text(report))
            .await?)
    }

    /// Compacts the conversation and informs the user.
    async fn compact(&self, conversation: &mut Conversation) -> Result<(), CompactionFailure> {
        let report = self
            .compact_with(conversation, plan_compaction(conversation), "")
            .await?;
        if !supports_compaction_updates(self.workspace.turn.session()) {
            self.send_notice(&report).await?;
        }
        Ok(())
    }

    /// Compacts the conversation according to the plan. Returns a report for the user.
    async fn compact_with(
        &self,
        conversation: &mut Conversation,
        plan: CompactionPlan,
        wanted: &str,
    ) -> Result<String, CompactionFailure> {
        if plan == CompactionPlan::Nothing {
            return Err(CompactionFailure::NothingToCompact);
        }
        let turn = &self.workspace.turn;
        // No two compactions of a session start in the same microsecond.
        let id = format!("compaction_{}", Timestamp::now().as_microsecond());
        let id = CompactionId::from(id);
        let update = |status| CompactionUpdate::new(id.clone(), status);
        show_compaction(turn.session(), update(CompactionStatus::InProgress)).await?;
        match self.apply_plan(conversation, plan, wanted).await {
            Ok((report, summary)) => {
                let texts = std::iter::once(report.clone()).chain(summary);
                let update = update(CompactionStatus::Completed)
                    .summary(texts.map(ContentBlock::text).collect::<Vec<_>>());
                show_compaction(turn.session(), update).await?;
                Ok(report)
            }
            Err(failure) => {
                let status = match &failure {
                    CompactionFailure::Stop(acp::Error::Cancelled) => CompactionStatus::Cancelled,
                    _ => CompactionStatus::Failed,
                };
                let update = update(status).error(failure.reason());
                show_compaction(turn.session(), update).await?;
                Err(failure)
            }
        }
    }

    async fn apply_plan(
        &self,
        conversation: &mut Conversation,
        plan: CompactionPlan,
        wanted: &str,
    ) -> Result<(String, Option<String>), CompactionFailure> {
        let (compaction, summary) = match plan {
            CompactionPlan::Summarize(keeps) => {
                let text = self
                    .summarize(conversation.messages(), keeps, wanted)
                    .await?;
                let compaction = Compaction::with_summary(text.clone(), keeps);
                (compaction, Some(text))
            }
            _ => (Compaction::truncating_results(), None),
        };
        let (filled, length) = (
            conversation.used_tokens(),
            conversation_size(conversation.messages()),
        );
        let kept = self.state.compact(conversation, &compaction).await;
        kept.map_err(acp::Error::from)?;
        let left = conversation_size(conversation.messages());
        let now = filled.map(|filled| {
            let gone = length.saturating_sub(left) / BYTES_PER_TOKEN;
            filled.saturating_sub(gone).max(left / BYTES_PER_TOKEN)
        });
        let window = self.model().context_window();
        if let (Some(now), Some(window)) = (now, window) {
            // This is an estimate, until the model reports its usage after the next round.
            self.show_usage(now, window).await?;
        }
        Ok((compaction_report(plan, filled.zip(now), window), summary))
    }

    async fn summarize(
        &self,
        messages: &[ModelMessage],
        keeps: KeptTail,
        wanted: &str,
    ) -> Result<String, CompactionFailure> {
        let before = match keeps {
            KeptTail::Turn => last_prompt_index(messages).and_then(|at| messages.get(..at)),
            KeptTail::Prompt => None,
        };
        let turn = &self.workspace.turn;
        let mut used = Vec::new();
        let summary = summary::summarize(
            self.model(),
            before.unwrap_or(messages),
            keeps,
            wanted,
            turn.cwd(),
            &mut used,
        );
        let summary = turn.or_cancelled(async { Ok(summary.await) }).await;
        // A failed request for a summary costs money too.
        for used in used {
            self.add_cost(used).await?;
        }
        summary?.map_err(|error| {
            tracing::warn!(model = self.model().name(), %error, "compaction failed");
            CompactionFailure::Model(error)
        })
    }
}

/// Decides how to compact this conversation.
fn plan_compaction(conversation: &Conversation) -> CompactionPlan {
    let messages = conversation.messages();
    let total = conversation_size(messages);
    let mut cut = messages.to_vec();
    Compaction::truncating_results().apply(&mut cut);
    if conversation_size(&cut) <= total / 2 {
        return CompactionPlan::TruncateResults;
    }
    let at = last_prompt_index(messages).unwrap_or(messages.len());
    let turn = messages.get(at..).unwrap_or_default();
    let worked = turn
        .iter()
        .any(|message| matches!(message, ModelMessage::Assistant { .. }));
    match plan_if_worthwhile(conversation) {
        CompactionPlan::Summarize(_) if !worked || conversation_size(turn) <= total / 2 => {
            CompactionPlan::Summarize(KeptTail::Turn)
        }
        // The current turn alone fills the window.
        _ if worked => CompactionPlan::Summarize(KeptTail::Prompt),
        _ => CompactionPlan::Nothing,
    }
}

/// Plans a summary of everything before the last prompt, unless that is nothing but an earlier summary.
fn plan_if_worthwhile(conversation: &Conversation) -> CompactionPlan {
    let messages = conversation.messages();
    let before = last_prompt_index(messages).and_then(|at| messages.get(..at));
    match before.and_then(last_prompt_index) {
        Some(_) => CompactionPlan::Summarize(KeptTail::Turn),
        None => CompactionPlan::Nothing,
    }
}

fn compaction_report(
    plan: CompactionPlan,
    tokens: Option<(u64, u64)>,
    window: Option<u64>,
) -> String {
    let what = match plan {
        CompactionPlan::TruncateResults => "Long tool results were truncated",
        _ => "The conversation was compacted",
    };
    let mut report = format!("{what} to free up context");
    if let Some((before, after)) = tokens {
        report.push_str(&format!(": {before} tokens before, about {after} after"));
        if let Some(window) = window {
            report.push_str(&format!(" (context window: {window})"));
        }
    }
    report.push_str(
        ". The model sees only the remaining messages, but the session still shows all of them.",
    );
    report
}
