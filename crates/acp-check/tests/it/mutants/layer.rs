//! The layer that turns a correct peer into a mutant. It sits between the peer and the suite, and changes the messages
//! that the peer sends or receives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use acp::{Transport, transport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// A peer with one deliberate error.
pub(crate) struct Mutant {
    /// The id of the check that must catch the mutant.
    pub(crate) kills: &'static str,
    /// Text that the reason given by the check must contain.
    pub(crate) why: &'static str,
    /// What is wrong with the mutant.
    pub(crate) what: &'static str,
    /// For a schema check, the id of another check that sends a message of this shape.
    pub(crate) seen_in: Option<&'static str>,
    /// The change to the correct peer. Each connection gets a new one.
    pub(crate) change: Box<dyn Fn() -> Mutation + Send + Sync>,
    /// Called with each chunk of bytes that the peer reads. If it returns `true`, the peer exits.
    pub(crate) dies_at: Option<fn(&[u8]) -> bool>,
    /// Whether the peer keeps running after its input has ended.
    pub(crate) hangs: bool,
}

/// A function that changes the messages that the peer sends and receives, one by one.
pub(crate) type Mutation = Box<dyn FnMut(InterceptedMessage<'_>) + Send>;

/// A message passing through the layer, and the messages that replace it.
pub(crate) struct InterceptedMessage<'a> {
    /// Whether the message was sent by the peer rather than by the suite.
    pub(crate) said: bool,
    /// The method of the message or, for a response, of its request.
    pub(crate) method: &'a str,
    /// Whether the message is a response.
    pub(crate) answers: bool,
    /// The message, which a mutation can modify or remove before it is passed on. `None` for a line that is not JSON,
    /// which is passed on unchanged.
    pub(crate) message: &'a mut Option<Value>,
    /// The line as received, with its line end.
    pub(crate) line: &'a [u8],
    /// The lines to pass on after the message.
    pub(crate) then: &'a mut Vec<LayerLine>,
    /// The lines to send back to the sender, such as a response on the other side's behalf.
    pub(crate) back: &'a mut Vec<LayerLine>,
}

/// An item that the layer sends.
#[derive(Debug, Clone)]
pub(crate) enum LayerLine {
    Json(Value),
    /// These bytes, without a line end.
    Bytes(Vec<u8>),
    /// The end of the output.
    End,
}

/// Creates a mutant from its check, the reason, a description, and the change.
pub(crate) fn mutant(
    kills: &'static str,
    why: &'static str,
    what: &'static str,
    change: impl Fn() -> Mutation + Send + Sync + 'static,
) -> Mutant {
    Mutant {
        kills,
        why,
        what,
        seen_in: None,
        change: Box::new(change),
        dies_at: None,
        hangs: false,
    }
}

/// Creates a mutant that exits when it reads bytes satisfying `at`.
pub(crate) fn crashing_mutant(
    kills: &'static str,
    why: &'static str,
    what: &'static str,
    at: fn(&[u8]) -> bool,
) -> Mutant {
    let mut mutant = mutant(kills, why, what, mutate_messages(|_| {}));
    mutant.dies_at = Some(at);
    mutant
}

impl Mutant {
    /// Makes the mutant keep running after its input has ended.
    pub(crate) fn keep_running_after_input_ends(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// Sets the check that sends a message of this shape.
    pub(crate) fn sent_in_check(mut self, check: &'static str) -> Self {
        self.seen_in = Some(check);
        self
    }
}

/// Changes the result of each of the peer's responses to `method`.
pub(crate) fn change_result(
    method: &'static str,
    change: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let change = change.clone();
        Box::new(move |passing| {
            if passing.said
                && passing.answers
                && passing.method == method
                && let Some(result) = passing.message.as_mut().and_then(|m| m.get_mut("result"))
            {
                change(result);
            }
        })
    }
}

/// Responds to every call to `method` with an error instead of executing it.
pub(crate) fn reject_request(
    method: &'static str,
    code: i64,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        Box::new(move |passing| {
            if !passing.said && !passing.answers && passing.method == method {
                let id = passing.message.take().unwrap()["id"].clone();
                let error = json!({"code": code, "message": "no"});
                let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                passing.back.push(LayerLine::Json(answer));
            }
        })
    }
}

/// Responds to calls to `method` with an error, starting with the call number `first`, counted from 1.
pub(crate) fn reject_from_nth(
    method: &'static str,
    code: i64,
    first: usize,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let mut calls = 0;
        let mut refuse = reject_request(method, code)();
        Box::new(move |passing| {
            calls += usize::from(!passing.said && !passing.answers && passing.method == method);
            if calls >= first {
                refuse(passing);
            }
        })
    }
}

/// Changes the params of every call to `method` that the peer sends.
pub(crate) fn change_call(
    method: &'static str,
    change: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let change = change.clone();
        Box::new(move |passing| {
            if passing.said
                && !passing.answers
                && passing.method == method
                && let Some(params) = passing.message.as_mut().and_then(|m| m.get_mut("params"))
            {
                change(params);
            }
        })
    }
}

/// Changes every update of one type that the peer sends.
pub(crate) fn change_update(
    kind: &'static str,
    change: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    change_call("session/update", move |params| {
        if params["update"]["sessionUpdate"] == kind {
            change(&mut params["update"]);
        }
    })
}

/// Drops every call to `method` that the peer sends, and every response to such a call.
pub(crate) fn drop_outgoing(
    method: &'static str,
    answers: bool,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        Box::new(move |passing| {
            if passing.said && passing.answers == answers && passing.method == method {
                *passing.message = None;
            }
        })
    }
}

/// Drops every call to `method` before the peer receives it, and every response to such a call.
pub(crate) fn drop_incoming(
    method: &'static str,
    answers: bool,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        Box::new(move |passing| {
            if !passing.said && passing.answers == answers && passing.method == method {
                *passing.message = None;
            }
        })
    }
}

/// Duplicates every call to `method` that the peer sends, and every response to such a call.
pub(crate) fn send_twice(
    method: &'static str,
    answers: bool,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.said && passing.answers == answers && passing.method == method {
            passing
                .then
                .extend(passing.message.clone().map(LayerLine::Json));
        }
    })
}

/// Changes the params of every call to `method` before the peer receives it.
pub(crate) fn change_incoming(
    method: &'static str,
    heard: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if !passing.said
            && !passing.answers
            && passing.method == method
            && let Some(params) = passing.message.as_mut().and_then(|m| m.get_mut("params"))
        {
            heard(params);
        }
    })
}

/// Combines two changes, the second of which is applied to the result of the first.
pub(crate) fn apply_both(
    first: impl Fn() -> Mutation + Send + Sync,
    second: impl Fn() -> Mutation + Send + Sync,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let (mut first, mut second) = (first(), second());
        Box::new(move |passing| {
            first(InterceptedMessage {
                message: &mut *passing.message,
                then: &mut *passing.then,
                back: &mut *passing.back,
                ..passing
            });
            second(passing);
        })
    }
}

/// Sends `said` when the peer receives a message that satisfies `heard`.
pub(crate) fn call_when(
    heard: impl Fn(&InterceptedMessage<'_>) -> bool + Clone + Send + Sync + 'static,
    said: Value,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if !passing.said && heard(passing) {
            passing.back.push(LayerLine::Json(said.clone()));
        }
    })
}

/// Makes the peer exit when it receives a message that satisfies `heard`.
pub(crate) fn end_when(
    heard: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if !passing.said && passing.message.as_ref().is_some_and(&heard) {
            passing.back.push(LayerLine::End);
        }
    })
}

/// Creates a mutation from a function that changes messages.
pub(crate) fn mutate_messages(
    change: impl Fn(&mut InterceptedMessage<'_>) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let change = change.clone();
        Box::new(move |mut passing| change(&mut passing))
    }
}

impl InterceptedMessage<'_> {
    /// Returns `true` if the peer calls `method`.
    pub(crate) fn is_outgoing(&self, method: &str) -> bool {
        self.said && !self.answers && self.method == method
    }

    /// Returns `true` if the suite calls `method`.
    pub(crate) fn is_incoming(&self, method: &str) -> bool {
        !self.said && !self.answers && self.method == method
    }
}

/// Returns a target that applies the mutant's change to the correct peer.
pub(crate) fn with_mutation(
    right: fn(Transport),
    mutant: Mutant,
) -> impl Fn(Transport) + Send + Sync {
    move |outside| {
        let (inside, peer) = transport::memory();
        right(peer);
        relay_messages(
            outside,
            inside,
            (mutant.change)(),
            mutant.dies_at,
            mutant.hangs,
        );
    }
}

/// Starts a peer, and applies a mutation to its messages.
pub(crate) fn start_behind_mutation(
    change: Mutation,
    outside: Transport,
    peer: impl FnOnce(Transport),
) {
    let (inside, transport) = transport::memory();
    peer(transport);
    relay_messages(outside, inside, change, None, false);
}

/// Passes messages between the suite (`outside`) and the peer, and applies a mutation to them.
fn relay_messages(
    outside: Transport,
    inside: Transport,
    change: Mutation,
    dies_at: Option<fn(&[u8]) -> bool>,
    hangs: bool,
) {
    let change = Arc::new(Mutex::new(change));
    // The methods of the requests that each side has sent, by id.
    let asked: Arc<[Mutex<HashMap<String, String>>; 2]> = Arc::default();
    let (from_peer, to_peer) = inside.into_split();
    let (from_suite, to_suite) = outside.into_split();
    let (suite, mut suite_lines) = tokio::sync::mpsc::unbounded_channel::<LayerLine>();
    let (peer, mut peer_lines) = tokio::sync::mpsc::unbounded_channel::<LayerLine>();
    tokio::spawn(async move { write_lines(to_suite, &mut suite_lines).await });
    tokio::spawn(async move { write_lines(to_peer, &mut peer_lines).await });
    for (said, reader) in [
        (
            true,
            Box::new(from_peer) as Box<dyn tokio::io::AsyncRead + Send + Unpin>,
        ),
        (false, Box::new(from_suite)),
    ] {
        let (change, asked) = (Arc::clone(&change), Arc::clone(&asked));
        let (on, back) = if said {
            (suite.clone(), peer.clone())
        } else {
            (peer.clone(), suite.clone())
        };
        tokio::spawn(async move {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            loop {
                if !said
                    && let Some(dies_at) = dies_at
                    && reader.fill_buf().await.is_ok_and(dies_at)
                {
                    let _ = back.send(LayerLine::End);
                    break;
                }
                let read = reader.read_until(b'\n', &mut line).await;
                if read.unwrap_or_default() == 0 {
                    break;
                }
                relay_line(
                    said,
                    &std::mem::take(&mut line),
                    &change,
                    &asked,
                    &on,
                    &back,
                );
            }
            if hangs && !said {
                std::future::pending::<()>().await;
            }
            let _ = on.send(LayerLine::End);
        });
    }
}

fn relay_line(
    said: bool,
    line: &[u8],
    change: &Mutex<Mutation>,
    asked: &[Mutex<HashMap<String, String>>; 2],
    on: &tokio::sync::mpsc::UnboundedSender<LayerLine>,
    back: &tokio::sync::mpsc::UnboundedSender<LayerLine>,
) {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        let (mut then, mut returned) = (Vec::new(), Vec::new());
        (change.lock().unwrap())(InterceptedMessage {
            said,
            method: "",
            answers: false,
            message: &mut None,
            line,
            then: &mut then,
            back: &mut returned,
        });
        let _ = on.send(LayerLine::Bytes(line.to_vec()));
        then.into_iter().for_each(|line| drop(on.send(line)));
        returned.into_iter().for_each(|line| drop(back.send(line)));
        return;
    };
    let id = value.get("id").map(Value::to_string);
    let own = value
        .get("method")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let answers = own.is_none();
    let method = match (&own, &id) {
        (Some(method), id) => {
            if let Some(id) = id {
                asked[usize::from(said)]
                    .lock()
                    .unwrap()
                    .insert(id.clone(), method.clone());
            }
            method.clone()
        }
        (None, Some(id)) => {
            let of = asked[usize::from(!said)].lock().unwrap();
            of.get(id).cloned().unwrap_or_default()
        }
        _ => String::new(),
    };
    let (mut message, mut then, mut returned) = (Some(value.clone()), Vec::new(), Vec::new());
    (change.lock().unwrap())(InterceptedMessage {
        said,
        method: &method,
        answers,
        message: &mut message,
        line,
        then: &mut then,
        back: &mut returned,
    });
    let message = message.map(|message| {
        // A message that nothing has changed is passed on as it was written.
        let same = message == value;
        if same {
            LayerLine::Bytes(line.to_vec())
        } else {
            LayerLine::Json(message)
        }
    });
    for line in message.into_iter().chain(then) {
        let _ = on.send(line);
    }
    for line in returned {
        let _ = back.send(line);
    }
}

async fn write_lines(
    mut to: impl tokio::io::AsyncWrite + Unpin,
    lines: &mut tokio::sync::mpsc::UnboundedReceiver<LayerLine>,
) {
    while let Some(line) = lines.recv().await {
        let bytes = match line {
            LayerLine::Json(value) => format!("{value}\n").into_bytes(),
            LayerLine::Bytes(bytes) => bytes,
            LayerLine::End => break,
        };
        if to.write_all(&bytes).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
