//! A round of a turn: the model is asked once, what it says is shown as it comes, and what it calls is carried out.

use acp::v1::StopReason;

use super::active::ActiveTurn;
use super::report::unanswered;
use super::writing::{DraftCalls, Interruption};
use crate::context::conversation::Conversation;
use crate::mcp::news::offered;
use crate::model::error::{ModelErrorKind, failure};
use crate::model::interface::Request;
use crate::model::message::{Message, Sealed, ToolRequest};
use crate::model::step::{Step, Usage, next_step};

/// What a model said in one round.
#[derive(Default)]
struct Reply {
    text: String,
    thought: String,
    calls: Vec<ToolRequest>,
    /// Those of them that are shown already.
    written: DraftCalls,
    sealed: Option<Sealed>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    /// The conversation does not fit into the model's window.
    overflows: bool,
}

impl ActiveTurn<'_> {
    /// Asks the model once and carries out what it calls. Gives the stop reason if it stops.
    pub(crate) async fn round(
        &self,
        conversation: &mut Conversation,
    ) -> acp::Result<Option<StopReason>> {
        let mut reply = Reply::default();
        let heard = self.listen(conversation, &mut reply).await;
        if std::mem::take(&mut reply.overflows) {
            conversation.overflowed();
        }
        let Reply {
            text,
            thought,
            calls,
            mut written,
            sealed,
            usage,
            stop,
            ..
        } = reply;
        let heard = match usage {
            Some(usage) => heard.and(self.used(usage).await),
            None => heard,
        };
        let state = self.state;
        let message = Message::Assistant {
            text,
            thought,
            calls: calls.clone(),
            sealed,
        };
        let kept = state.tell(conversation, message).await;
        if let Some(usage) = usage {
            conversation.used(usage);
        }
        let mut ended = match (heard.and(kept.map_err(Into::into)), stop) {
            (Err(error), _) => Some(Err(error)),
            // After any other reason the calls may be cut off.
            (Ok(()), Some(reason)) if reason != StopReason::EndTurn => Some(Ok(Some(reason))),
            (Ok(()), _) if calls.is_empty() => Some(Ok(Some(StopReason::EndTurn))),
            (Ok(()), _) => None,
        };
        for (n, call) in calls.iter().enumerate() {
            // Whatever happens, every call has a result: a conversation in which one lacks it is one
            // that no provider takes.
            let result = match &ended {
                None => self.execute(call, written.take(n)).await,
                Some(_) => Ok(unanswered(call)),
            };
            let result = result.unwrap_or_else(|error| {
                ended = Some(Err(error));
                unanswered(call)
            });
            let message = Message::ToolResult(result);
            if let Err(error) = state.tell(conversation, message).await {
                ended.get_or_insert(Err(error.into()));
            }
        }
        let ended = ended.unwrap_or(Ok(None));
        let told = written.end(&Interruption::of(&ended)).await;
        ended.and_then(|reason| told.map(|()| reason))
    }

    /// Takes what a round has used, and reports it where the window's size is known.
    async fn used(&self, usage: Usage) -> acp::Result<()> {
        self.spend(usage).await?;
        match self.model().context_window() {
            Some(window) => self.show_usage(usage.in_window(), window).await,
            None => Ok(()),
        }
    }

    /// Reports what the model says as it comes. What it has said so far is in `reply` also after an
    /// error.
    async fn listen(&self, conversation: &Conversation, reply: &mut Reply) -> acp::Result<()> {
        let turn = &self.workspace.turn;
        let tools = offered(&self.state.servers, self.workspace, self.tools).await?;
        let instructions = conversation.instructions(self.state.mode());
        let request =
            Request::new(conversation.messages(), &tools, turn.cwd()).instructions(&instructions);
        let request = request.thought(self.asked.thought);
        let mut steps = self.model().respond(request);
        loop {
            let next = turn.unless_cancelled(async { Ok(next_step(&mut steps).await) });
            let next = match reply.written.due() {
                None => next.await?,
                Some(due) => match tokio::time::timeout_at(due, next).await {
                    Ok(next) => next?,
                    Err(_) => {
                        self.announce_due(&mut reply.written).await?;
                        continue;
                    }
                },
            };
            match next {
                None => return Ok(()),
                Some(Ok(Step::Text(text))) => {
                    turn.message(&text).await?;
                    reply.text.push_str(&text);
                }
                Some(Ok(Step::Thought(thought))) => {
                    turn.thought(&thought).await?;
                    reply.thought.push_str(&thought);
                }
                Some(Ok(Step::Begins { call, tool })) => {
                    self.begins(&mut reply.written, call, tool).await?;
                }
                Some(Ok(Step::Writes { call, arguments })) => {
                    self.writes(&mut reply.written, call, &arguments).await?;
                }
                Some(Ok(Step::Call(call))) => reply.calls.push(call),
                // As a thought: that is what clients show as it comes and put aside afterwards, and none takes it for
                // a part of the answer.
                Some(Ok(Step::Delay(why))) => {
                    let broke_off = "The answer broke off before this was whole. Nothing was done.";
                    reply.written.end(&Interruption::Failed(broke_off)).await?;
                    turn.thought(format!("{why}\n\n")).await?;
                }
                Some(Ok(Step::Sealed(sealed))) => reply.sealed = Some(sealed),
                Some(Ok(Step::Usage(usage))) => reply.usage = Some(usage),
                Some(Ok(Step::Stop(reason))) => {
                    reply.stop = Some(reason);
                    return Ok(());
                }
                Some(Err(error)) => {
                    reply.overflows = error.kind == ModelErrorKind::ContextFull;
                    tracing::warn!(model = self.model().name(), %error, "the model failed");
                    return Err(failure(error));
                }
            }
        }
    }
}
