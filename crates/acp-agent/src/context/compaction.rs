//! A conversation made shorter: what stands in for what, and what of it is kept in the session's log.

use acp::v1::{ContentBlock, TextContent};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::model::message::{Message, ToolResult};
use crate::text::{head, tail};

/// Results of tool calls that are longer than this are cut, in bytes, where room is needed; and so much of each
/// is left.
const LONG_RESULT: usize = 8 * 1024;

/// What is left of such a result, in bytes: half of it the beginning, half of it the end.
pub(crate) const CUT_RESULT: usize = 2 * 1024;

/// What the model has said to its summary. Without it two messages of the person's would follow each other,
/// which some models refuse.
const UNDERSTOOD: &str = "I go on from there.";

/// What the summary begins with.
const SUMMARY: &str = "What was said and done before in this conversation, summarised:\n\n";

/// What marks a summary in the custom data of its text.
const MARK: &str = "acp_agent.summary";

/// How a conversation was made shorter. It is kept in the log, where it holds for all that the model was told
/// before: so what is written today is read by later versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compaction {
    /// What stands in for what is left out. Absent if results of tool calls were cut and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    #[serde(default)]
    pub(crate) keeps: Keeps,
    /// Results of tool calls that were longer than the first of these numbers have as many bytes as the second,
    /// but for those of the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<(usize, usize)>,
}

/// What stays behind a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keeps {
    /// The last prompt, and all that has come after it.
    #[default]
    Turn,
    /// The last prompt alone: what has come after it is summarised, too.
    Prompt,
}

/// How much of a session a summary stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Summarised {
    /// The prompts.
    pub(crate) prompts: usize,
    /// The model's answers to the prompt that follows it.
    pub(crate) rounds: usize,
}

/// How much a message stands for, if it is a summary.
pub(crate) fn summarised(message: &Message) -> Option<Summarised> {
    let Message::User(content) = message else {
        return None;
    };
    let ContentBlock::Text(text) = content.first()? else {
        return None;
    };
    let mark = text.meta.as_ref()?.get(MARK)?;
    serde_json::from_value(mark.clone()).ok()
}

/// The length of a message, in bytes.
pub(crate) fn size(message: &Message) -> u64 {
    let length = match message {
        Message::User(content) => content.iter().map(block_size).sum(),
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| call.arguments.to_string().len());
            text.len() + calls.sum::<usize>()
        }
        Message::ToolResult(result) => result.text.len() + PICTURE * result.images.len(),
    };
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// What a picture counts for, in bytes. Providers count a picture's pixels, not its bytes.
const PICTURE: usize = 6 * 1024;

fn block_size(block: &ContentBlock) -> usize {
    block.as_text().map_or(PICTURE, str::len)
}

/// The length of a conversation, in bytes.
pub(crate) fn size_of(messages: &[Message]) -> u64 {
    messages.iter().map(size).sum()
}

/// Whether it is a round of the model's. One that was silent may be in the log, and is not in the conversation.
fn is_round(message: &Message) -> bool {
    matches!(message, Message::Assistant { .. }) && !message.is_silent()
}

/// Where the last prompt is.
pub(crate) fn last_prompt(messages: &[Message]) -> Option<usize> {
    let is_prompt =
        |message: &Message| matches!(message, Message::User(_)) && summarised(message).is_none();
    messages.iter().rposition(is_prompt)
}

impl Compaction {
    /// Cuts long results, and nothing else.
    pub(crate) fn of_results() -> Self {
        Self {
            results: Some((LONG_RESULT, CUT_RESULT)),
            ..Self::default()
        }
    }

    /// Puts a summary in the place of all but what is kept.
    pub(crate) fn with_summary(summary: String, keeps: Keeps) -> Self {
        Self {
            summary: Some(summary),
            keeps,
            results: None,
        }
    }

    /// Makes a conversation shorter. A call and its result stay together, or go together.
    pub(crate) fn apply(&self, messages: &mut Vec<Message>) {
        if let Some((long, left)) = self.results {
            cut_results(messages, long, left);
        }
        let Some(summary) = &self.summary else {
            return;
        };
        let at = last_prompt(messages).unwrap_or(messages.len());
        let mut kept = messages.split_off(at);
        let mut stands_for = Summarised::default();
        for message in messages.iter() {
            match (summarised(message), message) {
                (Some(earlier), _) => stands_for = earlier,
                (None, Message::User(_)) => {
                    stands_for.prompts += 1;
                    stands_for.rounds = 0;
                }
                _ => {}
            }
        }
        if self.keeps == Keeps::Prompt {
            stands_for.rounds += kept.iter().filter(|message| is_round(message)).count();
            kept.truncate(1);
        }
        let mut text = TextContent::new(format!("{SUMMARY}{summary}"));
        let mark = text.meta.get_or_insert_default();
        mark.insert(MARK.to_owned(), json!(stands_for));
        *messages = vec![
            Message::User(vec![ContentBlock::Text(text)]),
            Message::said(UNDERSTOOD),
        ];
        messages.append(&mut kept);
    }
}

/// Cuts the results that are longer than `long`, but for those of the last round, with which the model has not
/// worked yet.
fn cut_results(messages: &mut [Message], long: usize, left: usize) {
    let last_round = messages.iter().rposition(is_round);
    let before = last_round.and_then(|at| messages.get_mut(..at));
    for message in before.unwrap_or_default() {
        if let Message::ToolResult(result) = message
            && (result.text.len() > long || !result.images.is_empty())
        {
            cut(result, left);
        }
    }
}

fn cut(result: &mut ToolResult, left: usize) {
    result.text = shortened(&result.text, left);
    // The same once more, as data.
    result.data = serde_json::Value::Null;
    result.images.clear();
}

/// The beginning and the end of a text, and between them how much is left out.
pub(crate) fn shortened(text: &str, left: usize) -> String {
    if text.len() <= left {
        return text.to_owned();
    }
    let (begin, end) = (head(text, left / 2), tail(text, left / 2));
    let out = text.len() - begin.len() - end.len();
    format!("{begin}\n[… {out} bytes left out …]\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::{ToolRequest, ToolStatus};

    fn user(text: &str) -> Message {
        Message::User(vec![ContentBlock::text(text)])
    }

    fn calls(id: &str) -> Message {
        Message::calling(vec![ToolRequest::new(id, "read", json!({}))])
    }

    fn result(id: &str, text: &str) -> Message {
        Message::ToolResult(ToolResult {
            id: id.to_owned(),
            status: ToolStatus::Done,
            text: text.to_owned(),
            data: json!({ "text": text }),
            images: Vec::new(),
        })
    }

    fn conversation() -> Vec<Message> {
        vec![
            user("1"),
            Message::said("one"),
            user("2"),
            calls("a"),
            result("a", &"x".repeat(10_000)),
            calls("b"),
            result("b", &"y".repeat(10_000)),
        ]
    }

    #[test]
    fn a_summary_stands_for_what_was_before_the_prompt() {
        let mut messages = conversation();
        let whole = conversation();
        Compaction::with_summary("short".to_owned(), Keeps::Turn).apply(&mut messages);
        assert_eq!(messages[2..], whole[2..]);
        let stands_for = Summarised {
            prompts: 1,
            rounds: 0,
        };
        assert_eq!(summarised(&messages[0]), Some(stands_for));
        let Message::User(content) = &messages[0] else {
            panic!("{messages:?}");
        };
        assert!(content[0].as_text().unwrap().ends_with("short"));

        // Once more, and with what came after the prompt.
        messages.push(Message::said("done"));
        messages.push(user("3"));
        messages.push(calls("c"));
        messages.push(result("c", ""));
        Compaction::with_summary("shorter".to_owned(), Keeps::Prompt).apply(&mut messages);
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[2], user("3"));
        let stands_for = Summarised {
            prompts: 2,
            rounds: 1,
        };
        assert_eq!(summarised(&messages[0]), Some(stands_for));
    }

    #[test]
    fn long_results_are_cut_but_for_the_last() {
        let mut messages = conversation();
        Compaction::of_results().apply(&mut messages);
        let lengths: Vec<u64> = messages.iter().map(size).collect();
        assert!(lengths[4] < 2200 && lengths[6] == 10_000, "{lengths:?}");
        // The log has silent rounds, too.
        messages.push(Message::said(""));
        let again = messages.clone();
        Compaction::of_results().apply(&mut messages);
        assert_eq!(messages, again);
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        for compaction in [
            Compaction::of_results(),
            Compaction::with_summary("s".to_owned(), Keeps::Prompt),
        ] {
            let json = serde_json::to_string(&compaction).unwrap();
            assert_eq!(
                serde_json::from_str::<Compaction>(&json).unwrap(),
                compaction
            );
        }
        let json = r#"{"summary":"s","keeps":"turn","later":1}"#;
        let read: Compaction = serde_json::from_str(json).unwrap();
        assert_eq!(read, Compaction::with_summary("s".to_owned(), Keeps::Turn));
    }
}
