//! Rules about requests: each gets exactly one response.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::schema::message::Direction;
use crate::side::Side;

use super::rule::{Findings, MessagePosition, rules, sender};
use super::table::{id_field, list_items};

rules! {
    UNANSWERED = "request-unanswered" Must "overview" "Every request gets a response.";
    TWICE = "request-answered-twice" Must "overview" "A request gets exactly one response.";
    NOTHING = "answer-to-nothing" Must "overview" "A response matches a request.";
    ID_TWICE = "request-id-twice" Must "overview" "Pending requests have unique ids.";
}

/// The maximum number of pending requests to remember.
const MAX_PENDING_REQUESTS: usize = 16 * 1024;

/// The maximum number of answered requests to remember.
const MAX_ANSWERED_REQUESTS: usize = 1024;

/// How long a request may go unanswered after it was sent or cancelled, in microseconds. Requests that have been
/// pending for longer when the conversation ends are reported.
const MAX_WAIT_US: u64 = 30_000_000;

/// A pending request, with the information that the rules need about it.
#[derive(Debug, Clone)]
pub(super) struct RuleRequest {
    pub(super) method: String,
    pub(super) sent_at: MessagePosition,
    pub(super) session: Option<String>,
    /// Ids from the request's params against which the response is checked, such as the ids of permission options.
    pub(super) ids: Vec<String>,
    /// The message that cancelled the turn to which the request belongs.
    pub(super) turn_cancelled_at: Option<MessagePosition>,
    /// The message with which the sender cancelled the request.
    pub(super) cancelled_at: Option<MessagePosition>,
    /// The number of other pending requests with the same id.
    duplicates: u32,
}

/// The pending requests of client and agent.
#[derive(Debug, Default)]
pub(super) struct RuleRequests {
    /// The requests, by direction and id.
    open: HashMap<(Direction, String), RuleRequest>,
    answered_ids: HashMap<Direction, VecDeque<String>>,
    /// Whether there were more requests than can be remembered.
    has_overflowed: bool,
}

impl RuleRequests {
    pub(super) fn add_request(
        &mut self,
        found: &mut Findings,
        direction: Direction,
        number: &Value,
        method: &str,
        params: &Value,
    ) {
        let key = (direction, number.to_string());
        if let Some(open) = self.open.get_mut(&key) {
            let text = format!("reuses id {number} while `{}` is pending", open.method);
            found.report_with_earlier(&ID_TWICE, sender(direction), open.sent_at, text);
            open.duplicates += 1;
            return;
        }
        if self.open.len() >= MAX_PENDING_REQUESTS {
            self.has_overflowed = true;
            return;
        }
        let open = RuleRequest {
            method: method.to_owned(),
            sent_at: found.position,
            session: id_field(params, "sessionId").map(str::to_owned),
            ids: checked_ids(method, params),
            turn_cancelled_at: None,
            cancelled_at: None,
            duplicates: 0,
        };
        self.open.insert(key, open);
    }

    /// Removes and returns the request that a response in `direction` belongs to.
    pub(super) fn take_request(
        &mut self,
        found: &mut Findings,
        direction: Direction,
        number: &Value,
        is_error: bool,
    ) -> Option<RuleRequest> {
        let key = (direction.reversed(), number.to_string());
        if let Some(open) = self.open.get_mut(&key).filter(|open| open.duplicates > 0) {
            open.duplicates -= 1;
            return Some(open.clone());
        }
        if let Some(open) = self.open.remove(&key) {
            let answered = self.answered_ids.entry(direction).or_default();
            answered.push_back(key.1);
            if answered.len() > MAX_ANSWERED_REQUESTS {
                answered.pop_front();
            }
            return Some(open);
        }
        // A message that cannot be parsed gets an error response with the id null.
        if self.has_overflowed || (number.is_null() && is_error) {
            return None;
        }
        let answered = self.answered_ids.get(&direction);
        if answered.is_some_and(|answered| answered.contains(&key.1)) {
            let text = format!("responds to request {number} again");
            found.report(&TWICE, sender(direction), text);
        } else {
            let text = format!("responds to unknown request {number}");
            found.report(&NOTHING, sender(direction), text);
        }
        None
    }

    /// Returns the method of the request to which a response in `direction` belongs.
    pub(super) fn method_for_response(&self, direction: Direction, number: &Value) -> Option<&str> {
        let open = self.open.get(&(direction.reversed(), number.to_string()))?;
        Some(&open.method)
    }

    /// Returns `true` if a request with one of `methods` is pending. Considers only requests of `session`, if given.
    pub(super) fn is_waiting(&self, methods: &[&str], session: Option<&str>) -> bool {
        self.open.values().any(|open| {
            methods.contains(&open.method.as_str())
                && (session.is_none() || open.session.as_deref() == session)
        })
    }

    /// Records a `$/cancel_request` sent in `direction`. Returns the session of the request if it is a prompt.
    pub(super) fn cancel_request(
        &mut self,
        found: &Findings,
        direction: Direction,
        params: &Value,
    ) -> Option<String> {
        let number = params.get("requestId")?;
        let open = self.open.get_mut(&(direction, number.to_string()))?;
        open.cancelled_at = Some(found.position);
        let prompts = open.method == "session/prompt";
        open.session.clone().filter(|_| prompts)
    }

    /// Records a `session/cancel`, which cancels all prompts and permission requests of a session.
    pub(super) fn cancel(&mut self, found: &Findings, session: &str) {
        let of_turn = ["session/prompt", "session/request_permission"];
        for open in self.open.values_mut().filter(|open| {
            of_turn.contains(&open.method.as_str()) && open.session.as_deref() == Some(session)
        }) {
            open.turn_cancelled_at = open.turn_cancelled_at.or(Some(found.position));
        }
    }

    /// Records that a message in `direction` was missed. It may have been a request, or the response to any pending
    /// request.
    pub(super) fn record_missed_message(&mut self, direction: Direction) {
        self.has_overflowed = true;
        self.open.retain(|(asked, _), _| *asked == direction);
    }

    /// Reports all requests still pending when the agent closes its output before the client does.
    pub(super) fn agent_closed(&mut self, found: &mut Findings) {
        for open in self.take_matching(|asked, _| asked == Direction::ToAgent) {
            let text = format!("closed its output without responding to `{}`", open.method);
            found.report_earlier(&UNANSWERED, Side::Agent, open.sent_at, text);
        }
    }

    /// Reports the requests that have been pending for too long when the conversation ends.
    pub(super) fn end(&mut self, found: &mut Findings) {
        let now = found.position.time_us;
        let long = |_, open: &RuleRequest| {
            let unwanted = open.turn_cancelled_at.or(open.cancelled_at);
            let since = unwanted.unwrap_or(open.sent_at).time_us;
            let may_last = unwanted.is_none() && may_take_long(&open.method);
            !may_last && now.saturating_sub(since) >= MAX_WAIT_US
        };
        for direction in [Direction::ToAgent, Direction::ToClient] {
            for open in self.take_matching(|asked, open| asked == direction && long(asked, open)) {
                let waited = now.saturating_sub(open.sent_at.time_us) / 1_000_000;
                let text = format!("did not respond to `{}` within {waited} s", open.method);
                found.report_earlier(
                    &UNANSWERED,
                    sender(direction.reversed()),
                    open.sent_at,
                    text,
                );
            }
        }
    }

    /// Removes all requests that match a predicate. Returns them in the order they were sent.
    fn take_matching(
        &mut self,
        which: impl Fn(Direction, &RuleRequest) -> bool,
    ) -> Vec<RuleRequest> {
        let taken = self.open.extract_if(|(asked, _), open| which(*asked, open));
        let mut taken: Vec<RuleRequest> = taken.map(|(_, open)| open).collect();
        taken.sort_by_key(|open| open.sent_at.index);
        taken
    }
}

/// Returns `true` for methods that may take a long time because they wait for the user, a model or a command.
fn may_take_long(method: &str) -> bool {
    matches!(
        method,
        "session/prompt"
            | "session/request_permission"
            | "elicitation/create"
            | "terminal/wait_for_exit"
            | "authenticate"
            | "auth/login"
    ) || method.starts_with('_')
}

fn checked_ids(method: &str, params: &Value) -> Vec<String> {
    let one = |name| {
        id_field(params, name)
            .map(str::to_owned)
            .into_iter()
            .collect()
    };
    match method {
        "session/request_permission" => list_items(params, "options")
            .filter_map(|option| option["optionId"].as_str())
            .map(str::to_owned)
            .collect(),
        "session/set_mode" => one("modeId"),
        _ if method.starts_with("terminal/") => one("terminalId"),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    #[test]
    fn request_must_be_answered_once() {
        let mut talk = ExpectedConversation::v1();
        talk.client_requests("x", "session/list", "{}");
        talk.agent_sends("answer-to-nothing agent", r#"{"id":7,"result":{}}"#);
        talk.agent_sends_valid(r#"{"id":"x","result":{"sessions":[]}}"#);
        talk.agent_sends("request-answered-twice agent", r#"{"id":"x","result":{}}"#);
        talk.agent_sends_valid(r#"{"id":null,"error":{"code":-32700,"message":"Parse error"}}"#);
    }

    #[test]
    fn id_may_be_reused_only_after_the_response() {
        let mut talk = ExpectedConversation::v1();
        talk.client_requests("x", "session/list", "{}");
        talk.client_sends(
            "request-id-twice client",
            r#"{"id":"x","method":"session/list","params":{}}"#,
        );
        talk.agent_sends_valid(r#"{"id":"x","result":{"sessions":[]}}"#);
        talk.agent_sends_valid(r#"{"id":"x","result":{"sessions":[]}}"#);
        talk.client_requests("x", "session/list", "{}");
    }

    #[test]
    fn agent_must_not_exit_with_pending_requests() {
        let mut talk = ExpectedConversation::v1();
        talk.client_requests(1, "session/list", "{}");
        talk.end_agent_first("request-unanswered agent");
        let mut talk = ExpectedConversation::v1();
        talk.client_requests(1, "session/list", "{}");
        talk.agent_requests(1, "fs/read_text_file", r#"{"path":"/a"}"#);
        talk.end_client_first("");
        let mut talk = ExpectedConversation::v1();
        talk.client_requests(1, "session/list", "{}");
        talk.wait(40);
        talk.end_client_first("request-unanswered agent");
    }
}
