//! The prompts of a session: the running turn, and those that wait for it.

use std::collections::VecDeque;

use acp::jsonrpc::{self, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::log::{Audience, ClientId};
use super::message::to_raw;
use super::session::ClientRequestId;
use crate::store::{MAX_ENDED_PROMPTS, PromptRecord, PromptState};

/// The maximum number of prompts that wait in a session's queue.
pub(super) const MAX_QUEUED_PROMPTS: usize = 256;

/// The maximum length of a prompt's key, in bytes.
const MAX_KEY_LENGTH: usize = 100;

/// The maximum length of a prompt's excerpt, in characters.
const MAX_EXCERPT_CHARS: usize = 200;

/// Identifies a prompt within a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PromptNumber(pub(super) u64);

/// The client that has sent a prompt. It may have disconnected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PromptSender {
    pub(super) client: ClientId,
    pub(super) name: Option<String>,
    /// The id of the request to which the end of the turn is the response. `None` if the client does not wait for it.
    pub(super) request: Option<RequestId>,
}

impl PromptSender {
    /// Returns the request that the client waits for.
    pub(super) fn request(&self) -> Option<ClientRequestId> {
        let id = self.request.clone()?;
        let client = self.client;
        Some(ClientRequestId { client, id })
    }

    /// Returns the clients that learn of the prompt and the end of its turn from notifications: all, except for a client
    /// that gets the response to its request.
    pub(super) fn others(&self) -> Audience {
        match self.request {
            Some(_) => Audience::AllExcept(self.client),
            None => Audience::All,
        }
    }
}

/// A prompt that waits for the turns before it to end, or whose turn is running.
#[derive(Debug)]
pub(super) struct SessionPrompt {
    pub(super) number: PromptNumber,
    /// Identifies the prompt when it is sent again.
    pub(super) key: String,
    pub(super) sender: PromptSender,
    pub(super) params: Box<RawValue>,
    /// The place in the queue. Only the order matters.
    position: u64,
}

/// A turn that the agent is working on.
#[derive(Debug)]
pub(super) struct RunningTurn {
    pub(super) prompt: SessionPrompt,
    /// The beginning of the prompt.
    pub(super) excerpt: String,
    /// The prompt is sent to the agent when the log has been written up to this position. `None` once it has been sent.
    pub(super) sent_when_written: Option<u64>,
}

/// The prompts of a session.
#[derive(Debug)]
pub(super) struct Prompts {
    pub(super) turn: Option<RunningTurn>,
    queue: VecDeque<SessionPrompt>,
    /// The last prompts that have ended.
    ended: VecDeque<EndedPrompt>,
    /// The prompts whose end is not written yet, with the position up to which the log must be written for that.
    ending: Vec<(u64, SessionPrompt)>,
    next_number: u64,
    next_position: u64,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            turn: None,
            queue: VecDeque::new(),
            ended: VecDeque::new(),
            ending: Vec::new(),
            next_number: 1,
            next_position: 1,
        }
    }
}

/// A prompt that has ended, for a client that sends it again.
#[derive(Debug)]
struct EndedPrompt {
    number: PromptNumber,
    key: String,
    response: TurnResponse,
}

/// The response to a prompt.
pub(super) type TurnResponse = Result<Box<RawValue>, jsonrpc::Error>;

/// What a session knows about a prompt that is sent again.
pub(super) enum KnownPrompt {
    /// It waits, or its turn is running. The sender gets the response.
    Open(PromptNumber),
    /// It has ended.
    Ended(PromptNumber, TurnResponse),
}

impl Prompts {
    /// Creates the prompts of a stored session. Returns them with the prompt whose turn was cut, if there is one.
    pub(super) fn stored(
        next_number: u64,
        records: Vec<PromptRecord>,
    ) -> (Self, Option<PromptRecord>) {
        let mut prompts = Self {
            next_number,
            ..Self::default()
        };
        let mut cut = None;
        for record in records {
            prompts.next_position = prompts.next_position.max(record.position + 1);
            match record.state {
                PromptState::Running => cut = Some(record),
                PromptState::Queued => {
                    let params = RawValue::from_string(record.params);
                    prompts.queue.push_back(SessionPrompt {
                        number: PromptNumber(record.number),
                        key: record.key,
                        sender: PromptSender {
                            client: ClientId::NONE,
                            name: record.sender,
                            request: None,
                        },
                        params: params.unwrap_or_else(|_| RawValue::NULL.to_owned()),
                        position: record.position,
                    });
                }
                PromptState::Ended => {
                    let response = record.response.as_deref().and_then(read_response);
                    if let Some(response) = response {
                        prompts.remember(PromptNumber(record.number), record.key, response);
                    }
                }
            }
        }
        (prompts, cut)
    }

    /// Returns the number of the next prompt.
    pub(super) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Returns the prompts that wait, in order.
    pub(super) fn queue(&self) -> impl ExactSizeIterator<Item = &SessionPrompt> {
        self.queue.iter()
    }

    /// Adds a prompt to the queue.
    pub(super) fn push(
        &mut self,
        key: Option<String>,
        sender: PromptSender,
        params: Box<RawValue>,
    ) -> &SessionPrompt {
        let prompt = SessionPrompt {
            number: PromptNumber(self.next_number),
            key: key.unwrap_or_else(new_prompt_key),
            sender,
            params,
            position: self.next_position,
        };
        self.next_number += 1;
        self.next_position += 1;
        self.queue.push_back(prompt);
        &self.queue[self.queue.len() - 1]
    }

    /// Finds a prompt that is sent again. If it has not ended, the response goes to its new sender.
    pub(super) fn send_again(&mut self, key: &str, sender: &PromptSender) -> Option<KnownPrompt> {
        let running = self.turn.as_mut().map(|turn| &mut turn.prompt);
        let mut open = running.into_iter().chain(&mut self.queue);
        if let Some(prompt) = open.find(|prompt| prompt.key == key) {
            prompt.sender = sender.clone();
            return Some(KnownPrompt::Open(prompt.number));
        }
        let ended = self.ended.iter().find(|ended| ended.key == key)?;
        Some(KnownPrompt::Ended(ended.number, ended.response.clone()))
    }

    /// Removes and returns the next prompt.
    pub(super) fn pop(&mut self) -> Option<SessionPrompt> {
        self.queue.pop_front()
    }

    /// Removes prompts from the queue, and returns them.
    pub(super) fn take_back(
        &mut self,
        is_taken: impl Fn(&SessionPrompt) -> bool,
    ) -> Vec<SessionPrompt> {
        let queue = std::mem::take(&mut self.queue);
        let (taken, rest): (Vec<_>, Vec<_>) = queue.into_iter().partition(is_taken);
        self.queue = rest.into();
        taken
    }

    /// Moves a prompt to another index of the queue. Returns `false` if it does not wait.
    pub(super) fn move_to(&mut self, number: PromptNumber, index: usize) -> bool {
        let from = self.queue.iter().position(|prompt| prompt.number == number);
        let Some(prompt) = from.and_then(|from| self.queue.remove(from)) else {
            return false;
        };
        self.queue.insert(index.min(self.queue.len()), prompt);
        for prompt in &mut self.queue {
            prompt.position = self.next_position;
            self.next_position += 1;
        }
        true
    }

    /// Keeps a prompt that has ended until its end is written.
    pub(super) fn keep_until_written(&mut self, position: u64, prompt: SessionPrompt) {
        self.ending.push((position, prompt));
    }

    /// Forgets the prompts whose end has been written.
    pub(super) fn ends_written(&mut self, until: u64) {
        self.ending.retain(|(position, _)| *position > until);
    }

    /// Takes all prompts whose response no client has seen.
    pub(super) fn take_open(&mut self) -> Vec<SessionPrompt> {
        let ending = std::mem::take(&mut self.ending);
        let ending = ending.into_iter().map(|(_, prompt)| prompt);
        let running = self.turn.take().map(|turn| turn.prompt);
        let queue = std::mem::take(&mut self.queue);
        ending.chain(running).chain(queue).collect()
    }

    /// Keeps the response of a prompt that has ended, for a client that sends it again.
    pub(super) fn remember(&mut self, number: PromptNumber, key: String, response: TurnResponse) {
        if self.ended.len() == MAX_ENDED_PROMPTS {
            self.ended.pop_front();
        }
        self.ended.push_back(EndedPrompt {
            number,
            key,
            response,
        });
    }
}

impl SessionPrompt {
    /// Returns what to store about a prompt that has not ended.
    pub(super) fn record(&self, state: PromptState) -> PromptRecord {
        PromptRecord {
            number: self.number.0,
            key: self.key.clone(),
            sender: self.sender.name.clone(),
            params: self.params.get().to_owned(),
            state,
            position: self.position,
            response: None,
        }
    }

    /// Returns what to store about a prompt that has ended.
    pub(super) fn ended_record(&self, response: &TurnResponse) -> PromptRecord {
        PromptRecord {
            params: String::new(),
            response: Some(write_response(response)),
            ..self.record(PromptState::Ended)
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredResponse {
    Result(Box<RawValue>),
    Error(jsonrpc::Error),
}

pub(super) fn write_response(response: &TurnResponse) -> String {
    let response = match response.clone() {
        Ok(result) => StoredResponse::Result(result),
        Err(error) => StoredResponse::Error(error),
    };
    to_raw(&response).get().to_owned()
}

fn read_response(text: &str) -> Option<TurnResponse> {
    match serde_json::from_str(text).ok()? {
        StoredResponse::Result(result) => Some(Ok(result)),
        StoredResponse::Error(error) => Some(Err(error)),
    }
}

/// Returns a new key for a prompt.
pub(super) fn new_prompt_key() -> String {
    format!("{:032x}", fastrand::u128(..))
}

/// Returns the key that a client has given to its prompt: `_meta.live.promptKey`.
pub(super) fn prompt_key(params: Option<&RawValue>) -> Option<String> {
    let params: Value = serde_json::from_str(params?.get()).ok()?;
    let key = params["_meta"]["live"]["promptKey"].as_str()?;
    let is_valid = !key.is_empty()
        && key.len() <= MAX_KEY_LENGTH
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_valid.then(|| key.to_owned())
}

/// Returns the content blocks of a prompt. A malformed prompt has none; the agent rejects it.
pub(super) fn prompt_content(params: &RawValue) -> Vec<Value> {
    #[derive(Deserialize)]
    struct PromptParams {
        #[serde(default)]
        prompt: Vec<Value>,
    }
    serde_json::from_str::<PromptParams>(params.get())
        .map_or_else(|_| Vec::new(), |read| read.prompt)
}

/// Returns the beginning of a prompt's text.
pub(super) fn prompt_excerpt(params: &RawValue) -> String {
    let content = prompt_content(params);
    let texts = content.iter().filter_map(|block| block["text"].as_str());
    let text = texts.collect::<Vec<_>>().join(" ");
    text.chars().take(MAX_EXCERPT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_read_as_they_were_written() {
        let result = RawValue::from_string(r#"{"stopReason": "end_turn","n":1.50}"#.to_owned());
        for response in [Ok(result.unwrap()), Err(jsonrpc::Error::internal("why"))] {
            let text = write_response(&response);
            let read = read_response(&text).unwrap();
            assert_eq!(write_response(&read), text);
            assert_eq!(read.is_ok(), response.is_ok());
        }
        assert!(read_response("{}").is_none());
    }
}
