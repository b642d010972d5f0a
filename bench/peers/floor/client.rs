//! The floor's client.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bench_work::{ClientCommand, ClientReport, SessionProgress, gaps};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{FloorInput, FloorMessage, FloorOutput, FloorUpdateKind, send};
use super::{ChunkMode, FloorError};

pub(super) fn run(
    how: ChunkMode,
    socket: &str,
    (lines, output): (FloorInput, FloorOutput),
) -> Result<(), FloorError> {
    let mut answers = UnixStream::connect(socket)?;
    let mut commands = BufReader::new(answers.try_clone()?).lines();
    let mut client = FloorClient {
        mode: how,
        lines,
        output,
        next_id: 0,
        sessions: Vec::new(),
        progress: HashMap::new(),
        text: String::new(),
        permission_times: Vec::new(),
    };
    client.send_request(
        "initialize",
        &json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": false}},
        }),
    )?;
    client.read_response()?;
    let mut answer = ClientReport::ready();
    loop {
        answers.write_all(&answer.to_line())?;
        let Some(command) = commands.next() else {
            return Ok(());
        };
        answer = match client.run_command(serde_json::from_str(&command?)?) {
            Ok(answer) => answer,
            Err(error) => ClientReport::failed(error),
        };
    }
}

/// The maximum number of prompts without a response, which must fit into a pipe.
const MAX_UNANSWERED_PROMPTS: usize = 64;

struct FloorClient {
    mode: ChunkMode,
    lines: FloorInput,
    output: FloorOutput,
    /// The id of the next request.
    next_id: u64,
    sessions: Vec<String>,
    progress: HashMap<String, SessionProgress>,
    text: String,
    permission_times: Vec<Instant>,
}

impl FloorClient {
    fn run_command(&mut self, command: ClientCommand) -> Result<ClientReport, FloorError> {
        match command {
            ClientCommand::Open { sessions } => {
                let start = Instant::now();
                self.sessions.clear();
                for _ in 0..sessions {
                    self.send_request("session/new", &json!({"cwd": "/", "mcpServers": []}))?;
                    self.read_response()?;
                }
                Ok(ClientReport::since(start))
            }
            ClientCommand::Connect { .. } => Err("only ours does this".into()),
            ClientCommand::Stream {
                messages,
                bytes,
                stall_ms,
                ..
            } => self.stream(messages, bytes, stall_ms),
            ClientCommand::Empty { requests } => {
                let mut each = Vec::new();
                let start = Instant::now();
                let mut before = start;
                for _ in 0..requests {
                    self.send_request("_bench/empty", &json!({}))?;
                    self.read_response()?;
                    let now = Instant::now();
                    each.push(now - before);
                    before = now;
                }
                Ok(ClientReport::since(start).with_durations(each))
            }
            ClientCommand::Ask { requests } => {
                self.permission_times.clear();
                let start = self.run_turn(&format!("ask {requests}"))?;
                let answer = ClientReport::since(start);
                if self.permission_times.len() as u64 != requests {
                    return Err(format!("asked {} times", self.permission_times.len()).into());
                }
                Ok(answer.with_durations(gaps(&self.permission_times)))
            }
            ClientCommand::Read { path, bytes } => {
                let start = self.run_turn(&format!("read {path}"))?;
                let answer = ClientReport::since(start);
                if self.text == bytes.to_string() {
                    Ok(answer)
                } else {
                    Err(format!("the agent read {} bytes", self.text).into())
                }
            }
            ClientCommand::Load { messages, bytes } => {
                let session = format!("replay-{messages}-{bytes}");
                self.progress
                    .insert(session.clone(), SessionProgress::new(messages, bytes));
                let start = Instant::now();
                let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
                self.send_request("session/load", &params)?;
                self.read_response()?;
                let answer = ClientReport::since(start);
                self.progress
                    .remove(&session)
                    .ok_or("no session")?
                    .finish()?;
                Ok(answer)
            }
        }
    }

    fn stream(
        &mut self,
        messages: u64,
        bytes: usize,
        stall_ms: Option<u64>,
    ) -> Result<ClientReport, FloorError> {
        if self.sessions.is_empty() {
            self.run_command(ClientCommand::Open { sessions: 1 })?;
        }
        let sessions = self.sessions.clone();
        self.progress = sessions
            .iter()
            .map(|session| (session.clone(), SessionProgress::new(messages, bytes)))
            .collect();
        let text = format!("stream {messages} {bytes}");
        let start = Instant::now();
        // Not so many at once that neither reads because both write.
        let (first, rest) = sessions.split_at(sessions.len().min(MAX_UNANSWERED_PROMPTS));
        for session in first {
            self.send_prompt(session, &text)?;
        }
        if let Some(time) = stall_ms {
            // As a client does whose person has stopped it.
            std::thread::sleep(Duration::from_millis(time));
        }
        if self.mode == ChunkMode::Raw {
            self.lines
                .skip_lines((messages + 1) * sessions.len() as u64)?;
            return Ok(ClientReport::since(start));
        }
        for session in rest {
            self.read_response()?;
            self.send_prompt(session, &text)?;
        }
        for _ in first {
            self.read_response()?;
        }
        let answer = ClientReport::since(start);
        for (_, progress) in self.progress.drain() {
            progress.finish()?;
        }
        Ok(answer)
    }

    /// Runs a turn of the first session. Returns when it started.
    fn run_turn(&mut self, text: &str) -> Result<Instant, FloorError> {
        if self.sessions.is_empty() {
            self.run_command(ClientCommand::Open { sessions: 1 })?;
        }
        let session = self.sessions.first().ok_or("no session")?.clone();
        let start = Instant::now();
        self.send_prompt(&session, text)?;
        self.read_response()?;
        Ok(start)
    }

    fn send_prompt(&mut self, session: &str, text: &str) -> Result<(), FloorError> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send_request(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
    }

    fn send_request(&mut self, method: &str, params: &Value) -> Result<(), FloorError> {
        #[derive(Serialize)]
        struct FloorRequest<'a> {
            jsonrpc: &'static str,
            id: u64,
            method: &'a str,
            params: &'a Value,
        }
        let (jsonrpc, id) = ("2.0", self.next_id);
        self.next_id += 1;
        send(
            &mut self.output,
            &FloorRequest {
                jsonrpc,
                id,
                method,
                params,
            },
        )
    }

    /// Reads until the response to a request arrives.
    fn read_response(&mut self) -> Result<(), FloorError> {
        loop {
            let line = self.lines.next()?.ok_or("the agent is gone")?;
            let message: FloorMessage<'_> = serde_json::from_slice(line)?;
            if let Some(error) = message.error {
                return Err(error.get().into());
            }
            let params = match (message.method.as_deref(), message.params) {
                (Some("session/update"), Some(params)) => {
                    let session = params.session_id.ok_or("no session")?;
                    let update = params.update.ok_or("no update")?;
                    if let (FloorUpdateKind::AgentMessageChunk, Some(content)) =
                        (update.session_update, update.content)
                    {
                        match self.progress.get_mut(&session) {
                            Some(progress) => progress.check_text(&content.text),
                            None => self.text = content.text,
                        }
                    }
                    continue;
                }
                (Some(_), Some(params)) => params,
                (Some(_), None) => continue,
                (None, _) => {
                    let result = message.result.ok_or("no result")?;
                    if let Some(session) = result.session_id {
                        self.sessions.push(session);
                    }
                    if result
                        .stop_reason
                        .is_some_and(|reason| reason != "end_turn")
                    {
                        return Err(format!("{:?}", result.stop_reason).into());
                    }
                    return Ok(());
                }
            };
            let id = message.id.ok_or("no id")?;
            match params.path {
                Some(path) => {
                    let content = std::fs::read_to_string(path)?;
                    respond(&mut self.output, id, &FileContent { content })?;
                }
                None => {
                    self.permission_times.push(Instant::now());
                    let (outcome, option_id) = ("selected", "allow");
                    let outcome = FloorOutcome { outcome, option_id };
                    respond(&mut self.output, id, &FloorOutcomeResult { outcome })?;
                }
            }
        }
    }
}

#[derive(Serialize)]
struct FileContent {
    content: String,
}

#[derive(Serialize)]
struct FloorOutcomeResult {
    outcome: FloorOutcome,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FloorOutcome {
    outcome: &'static str,
    option_id: &'static str,
}

fn respond<T: Serialize>(
    output: &mut FloorOutput,
    id: &RawValue,
    result: &T,
) -> Result<(), FloorError> {
    #[derive(Serialize)]
    struct FloorResult<'a, T> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: &'a T,
    }
    let jsonrpc = "2.0";
    send(
        output,
        &FloorResult {
            jsonrpc,
            id,
            result,
        },
    )
}
