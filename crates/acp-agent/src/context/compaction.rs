//! Compaction of a conversation, as stored in the session's history.

use acp::v1::{ContentBlock, TextContent};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::model::message::{ModelMessage, ToolResult};
use crate::text::{truncate_to_head, truncate_to_tail};

/// The length, in bytes, above which a tool result is truncated when the context window is nearly full.
const MAX_RESULT_BYTES: usize = 8 * 1024;

/// The length of a truncated result, in bytes. Half of it comes from the start of the result, and half from the end.
pub(crate) const TRUNCATED_RESULT_BYTES: usize = 2 * 1024;

/// The model reply inserted after a summary. Without it, the conversation would have two user messages in a row, which
/// some models reject.
const SUMMARY_REPLY: &str = "Continuing from there.";

/// The first line of each message that contains a summary.
const SUMMARY_PREFIX: &str = "Summary of the conversation so far:\n\n";

/// The key in the `_meta` of a text block that marks it as a summary.
const SUMMARY_KEY: &str = "acp_agent.summary";

/// A compaction of a conversation, as stored in the history. It applies to all messages before it. Later versions must
/// be able to read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compaction {
    /// The summary that replaces older messages, or `None` if only tool results are truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    #[serde(default)]
    pub(crate) keeps: KeptTail,
    /// The length above which tool results are truncated and the length they are truncated to, both in bytes. Results
    /// of the last round are not truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<(usize, usize)>,
}

/// The part of a conversation that is kept after a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptTail {
    /// The last prompt and everything after it.
    #[default]
    Turn,
    /// Only the last prompt. Everything after it is part of the summary.
    Prompt,
}

/// The part of a session that a summary replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SummarySpan {
    /// The number of prompts that the summary covers.
    pub(crate) prompts: usize,
    /// The number of rounds summarized from the first prompt that is kept.
    pub(crate) rounds: usize,
}

/// Returns the part of the session that the message summarizes, or `None` if the message is not a summary.
pub(crate) fn summary_span(message: &ModelMessage) -> Option<SummarySpan> {
    let ModelMessage::User(content) = message else {
        return None;
    };
    let ContentBlock::Text(text) = content.first()? else {
        return None;
    };
    let mark = text.meta.as_ref()?.get(SUMMARY_KEY)?;
    serde_json::from_value(mark.clone()).ok()
}

/// Returns the approximate length of a message, in bytes.
pub(crate) fn message_size(message: &ModelMessage) -> u64 {
    let length = match message {
        ModelMessage::User(content) => content.iter().map(block_size).sum(),
        ModelMessage::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| call.arguments.to_string().len());
            text.len() + calls.sum::<usize>()
        }
        ModelMessage::ToolResult(result) => {
            result.text.len() + ASSUMED_IMAGE_SIZE * result.images.len()
        }
    };
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The assumed size of an image, in bytes. Providers count the pixels of an image, not its bytes.
const ASSUMED_IMAGE_SIZE: usize = 6 * 1024;

fn block_size(block: &ContentBlock) -> usize {
    block.as_text().map_or(ASSUMED_IMAGE_SIZE, str::len)
}

/// Returns the total length of a conversation's messages, in bytes.
pub(crate) fn conversation_size(messages: &[ModelMessage]) -> u64 {
    messages.iter().map(message_size).sum()
}

/// Returns `true` if the message is a model response that is part of the conversation. The history may also contain
/// silent rounds, which are not.
fn is_round(message: &ModelMessage) -> bool {
    matches!(message, ModelMessage::Assistant { .. }) && !message.is_silent()
}

/// Returns the index of the last prompt in the messages.
pub(crate) fn last_prompt_index(messages: &[ModelMessage]) -> Option<usize> {
    let is_prompt = |message: &ModelMessage| {
        matches!(message, ModelMessage::User(_)) && summary_span(message).is_none()
    };
    messages.iter().rposition(is_prompt)
}

impl Compaction {
    /// Creates a compaction that only truncates long tool results.
    pub(crate) fn truncating_results() -> Self {
        Self {
            results: Some((MAX_RESULT_BYTES, TRUNCATED_RESULT_BYTES)),
            ..Self::default()
        }
    }

    /// Creates a compaction that replaces all but the kept messages with a summary.
    pub(crate) fn with_summary(summary: String, keeps: KeptTail) -> Self {
        Self {
            summary: Some(summary),
            keeps,
            results: None,
        }
    }

    /// Compacts a conversation. A tool call and its result are either both kept or both removed.
    pub(crate) fn apply(&self, messages: &mut Vec<ModelMessage>) {
        if let Some((long, left)) = self.results {
            truncate_results(messages, long, left);
        }
        let Some(summary) = &self.summary else {
            return;
        };
        let at = last_prompt_index(messages).unwrap_or(messages.len());
        let mut kept_messages = messages.split_off(at);
        let mut stands_for = SummarySpan::default();
        for message in messages.iter() {
            match (summary_span(message), message) {
                (Some(earlier), _) => stands_for = earlier,
                (None, ModelMessage::User(_)) => {
                    stands_for.prompts += 1;
                    stands_for.rounds = 0;
                }
                _ => {}
            }
        }
        if self.keeps == KeptTail::Prompt {
            stands_for.rounds += kept_messages
                .iter()
                .filter(|message| is_round(message))
                .count();
            kept_messages.truncate(1);
        }
        let mut text = TextContent::new(format!("{SUMMARY_PREFIX}{summary}"));
        let mark = text.meta.get_or_insert_default();
        mark.insert(SUMMARY_KEY.to_owned(), json!(stands_for));
        *messages = vec![
            ModelMessage::User(vec![ContentBlock::Text(text)]),
            ModelMessage::from_text(SUMMARY_REPLY),
        ];
        messages.append(&mut kept_messages);
    }
}

/// Truncates results that are longer than `long` or contain images, except those of the last round, which the model has
/// not seen yet.
fn truncate_results(messages: &mut [ModelMessage], long: usize, left: usize) {
    let last_round = messages.iter().rposition(is_round);
    let before = last_round.and_then(|at| messages.get_mut(..at));
    for message in before.unwrap_or_default() {
        if let ModelMessage::ToolResult(result) = message
            && (result.text.len() > long || !result.images.is_empty())
        {
            truncate_result(result, left);
        }
    }
}

fn truncate_result(result: &mut ToolResult, left: usize) {
    result.text = truncate_middle(&result.text, left);
    // The data has the same content again.
    result.data = serde_json::Value::Null;
    result.images.clear();
}

/// Truncates text in the middle, and inserts a note that says how many bytes were omitted.
pub(crate) fn truncate_middle(text: &str, left: usize) -> String {
    if text.len() <= left {
        return text.to_owned();
    }
    let (begin, end) = (
        truncate_to_head(text, left / 2),
        truncate_to_tail(text, left / 2),
    );
    let out = text.len() - begin.len() - end.len();
    format!("{begin}\n[… {out} bytes omitted …]\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::{ToolRequest, ToolStatus};

    fn user_message(text: &str) -> ModelMessage {
        ModelMessage::User(vec![ContentBlock::text(text)])
    }

    fn call_message(id: &str) -> ModelMessage {
        ModelMessage::from_calls(vec![ToolRequest::new(id, "read", json!({}))])
    }

    fn result_message(id: &str, text: &str) -> ModelMessage {
        ModelMessage::ToolResult(ToolResult {
            id: id.to_owned(),
            status: ToolStatus::Done,
            text: text.to_owned(),
            data: json!({ "text": text }),
            images: Vec::new(),
        })
    }

    fn sample_conversation() -> Vec<ModelMessage> {
        vec![
            user_message("1"),
            ModelMessage::from_text("one"),
            user_message("2"),
            call_message("a"),
            result_message("a", &"x".repeat(10_000)),
            call_message("b"),
            result_message("b", &"y".repeat(10_000)),
        ]
    }

    #[test]
    fn summary_replaces_messages_before_the_prompt() {
        let mut messages = sample_conversation();
        let whole = sample_conversation();
        Compaction::with_summary("short".to_owned(), KeptTail::Turn).apply(&mut messages);
        assert_eq!(messages[2..], whole[2..]);
        let stands_for = SummarySpan {
            prompts: 1,
            rounds: 0,
        };
        assert_eq!(summary_span(&messages[0]), Some(stands_for));
        let ModelMessage::User(content) = &messages[0] else {
            panic!("{messages:?}");
        };
        assert!(content[0].as_text().unwrap().ends_with("short"));

        // Apply a second compaction, which also summarizes what came after the prompt.
        messages.push(ModelMessage::from_text("done"));
        messages.push(user_message("3"));
        messages.push(call_message("c"));
        messages.push(result_message("c", ""));
        Compaction::with_summary("shorter".to_owned(), KeptTail::Prompt).apply(&mut messages);
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[2], user_message("3"));
        let stands_for = SummarySpan {
            prompts: 2,
            rounds: 1,
        };
        assert_eq!(summary_span(&messages[0]), Some(stands_for));
    }

    #[test]
    fn long_results_are_truncated_except_the_last() {
        let mut messages = sample_conversation();
        Compaction::truncating_results().apply(&mut messages);
        let lengths: Vec<u64> = messages.iter().map(message_size).collect();
        assert!(lengths[4] < 2200 && lengths[6] == 10_000, "{lengths:?}");
        // The history also contains silent rounds.
        messages.push(ModelMessage::from_text(""));
        let again = messages.clone();
        Compaction::truncating_results().apply(&mut messages);
        assert_eq!(messages, again);
    }

    #[test]
    fn compaction_survives_a_serde_round_trip() {
        for compaction in [
            Compaction::truncating_results(),
            Compaction::with_summary("s".to_owned(), KeptTail::Prompt),
        ] {
            let json = serde_json::to_string(&compaction).unwrap();
            assert_eq!(
                serde_json::from_str::<Compaction>(&json).unwrap(),
                compaction
            );
        }
        let json = r#"{"summary":"s","keeps":"turn","later":1}"#;
        let read: Compaction = serde_json::from_str(json).unwrap();
        assert_eq!(
            read,
            Compaction::with_summary("s".to_owned(), KeptTail::Turn)
        );
    }
}
