//! Runs one round of a turn: sends a request to the model, streams the response to the client, and runs the tool calls.

use acp::v1::StopReason;

use super::active::ActiveTurn;
use super::draft_calls::{DraftCalls, DraftInterruption};
use super::report::skipped_result;
use crate::context::conversation::Conversation;
use crate::mcp::announce::tools_for_round;
use crate::model::error::{ModelErrorKind, to_acp_error};
use crate::model::interface::RoundRequest;
use crate::model::message::{ModelMessage, OpaqueParts, ToolRequest};
use crate::model::step::{Step, TokenUsage, next_step};

/// A model's response in one round.
#[derive(Default)]
struct ModelReply {
    text: String,
    thought: String,
    calls: Vec<ToolRequest>,
    /// The calls that the model is still writing.
    drafts: DraftCalls,
    sealed: Option<OpaqueParts>,
    usage: Option<TokenUsage>,
    stop: Option<StopReason>,
    /// Whether the conversation overflowed the model's context window.
    has_overflowed: bool,
}

impl ActiveTurn<'_> {
    /// Runs one round, including its tool calls. Returns the stop reason if the turn is over.
    pub(crate) async fn run_round(
        &self,
        conversation: &mut Conversation,
    ) -> acp::Result<Option<StopReason>> {
        let mut reply = ModelReply::default();
        let received = self.receive_reply(conversation, &mut reply).await;
        if std::mem::take(&mut reply.has_overflowed) {
            conversation.set_overflowed();
        }
        let ModelReply {
            text,
            thought,
            calls,
            drafts: mut written,
            sealed,
            usage,
            stop,
            ..
        } = reply;
        let received = match usage {
            Some(usage) => received.and(self.record_usage(usage).await),
            None => received,
        };
        let state = self.state;
        let message = ModelMessage::Assistant {
            text,
            thought,
            calls: calls.clone(),
            sealed,
        };
        let stored = state.add_message(conversation, message).await;
        if let Some(usage) = usage {
            conversation.record_usage(usage);
        }
        let mut ended = match (received.and(stored.map_err(Into::into)), stop) {
            (Err(error), _) => Some(Err(error)),
            // With any other reason, the calls may be incomplete.
            (Ok(()), Some(reason)) if reason != StopReason::EndTurn => Some(Ok(Some(reason))),
            (Ok(()), _) if calls.is_empty() => Some(Ok(Some(StopReason::EndTurn))),
            (Ok(()), _) => None,
        };
        for (n, call) in calls.iter().enumerate() {
            // Every call gets a result, because providers reject a conversation in which a result is missing.
            let result = match &ended {
                None => self.execute(call, written.take(n)).await,
                Some(_) => Ok(skipped_result(call)),
            };
            let result = result.unwrap_or_else(|error| {
                ended = Some(Err(error));
                skipped_result(call)
            });
            let message = ModelMessage::ToolResult(result);
            if let Err(error) = state.add_message(conversation, message).await {
                ended.get_or_insert(Err(error.into()));
            }
        }
        let ended = ended.unwrap_or(Ok(None));
        let drafts_ended = written.end(&DraftInterruption::from_result(&ended)).await;
        ended.and_then(|reason| drafts_ended.map(|()| reason))
    }

    /// Adds a round's usage to the cost. Also reports it to the client if the size of the context window is known.
    async fn record_usage(&self, usage: TokenUsage) -> acp::Result<()> {
        self.add_cost(usage).await?;
        match self.model().context_window() {
            Some(window) => self.show_usage(usage.tokens_in_window(), window).await,
            None => Ok(()),
        }
    }

    /// Streams the model's response to the client. `reply` contains everything received so far, even if this returns an
    /// error.
    async fn receive_reply(
        &self,
        conversation: &Conversation,
        reply: &mut ModelReply,
    ) -> acp::Result<()> {
        let turn = &self.workspace.turn;
        let tools = tools_for_round(&self.state.servers, self.workspace, self.tools).await?;
        let instructions = conversation.instructions(self.state.mode());
        let request = RoundRequest::new(conversation.messages(), &tools, turn.cwd())
            .instructions(&instructions);
        let request = request.thought(self.round_model.thought);
        let mut steps = self.model().respond(request);
        loop {
            let next = turn.or_cancelled(async { Ok(next_step(&mut steps).await) });
            let next = match reply.drafts.next_deadline() {
                None => next.await?,
                Some(due) => match tokio::time::timeout_at(due, next).await {
                    Ok(next) => next?,
                    Err(_) => {
                        self.announce_due(&mut reply.drafts).await?;
                        continue;
                    }
                },
            };
            match next {
                None => return Ok(()),
                Some(Ok(Step::Text(text))) => {
                    turn.send_message(&text).await?;
                    reply.text.push_str(&text);
                }
                Some(Ok(Step::Thought(thought))) => {
                    turn.send_thought(&thought).await?;
                    reply.thought.push_str(&thought);
                }
                Some(Ok(Step::CallStarted { call, tool })) => {
                    self.begin_draft(&mut reply.drafts, call, tool).await?;
                }
                Some(Ok(Step::CallDelta { call, arguments })) => {
                    self.extend_draft(&mut reply.drafts, call, &arguments)
                        .await?;
                }
                Some(Ok(Step::Call(call))) => reply.calls.push(call),
                // The notice is sent as a thought, because clients show thoughts as they arrive and do not treat them
                // as a part of the response.
                Some(Ok(Step::Delay(why))) => {
                    let broke_off =
                        "The response was cut off before this call was complete. Nothing was done.";
                    reply
                        .drafts
                        .end(&DraftInterruption::Failed(broke_off))
                        .await?;
                    turn.send_thought(format!("{why}\n\n")).await?;
                }
                Some(Ok(Step::OpaqueParts(sealed))) => reply.sealed = Some(sealed),
                Some(Ok(Step::Usage(usage))) => reply.usage = Some(usage),
                Some(Ok(Step::Stop(reason))) => {
                    reply.stop = Some(reason);
                    return Ok(());
                }
                Some(Err(error)) => {
                    reply.has_overflowed = error.kind == ModelErrorKind::ContextFull;
                    tracing::warn!(model = self.model().name(), %error, "the model request failed");
                    return Err(to_acp_error(error));
                }
            }
        }
    }
}
