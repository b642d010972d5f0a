//! The client.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bench_work::{Answer, Command, Progress, gaps};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{Kind, Lines, Message, send, stdio};
use super::{Failure, How};

pub(super) fn run(how: How, socket: &str) -> Result<(), Failure> {
    let mut answers = UnixStream::connect(socket)?;
    let mut commands = BufReader::new(answers.try_clone()?).lines();
    let (lines, output) = stdio()?;
    let mut client = Client {
        how,
        lines,
        output,
        next: 0,
        sessions: Vec::new(),
        progress: HashMap::new(),
        said: String::new(),
        asked: Vec::new(),
    };
    client.request(
        "initialize",
        &json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": false}},
        }),
    )?;
    client.answered()?;
    let mut answer = Answer::ready();
    loop {
        answers.write_all(&answer.line())?;
        let Some(command) = commands.next() else {
            return Ok(());
        };
        answer = match client.carry_out(serde_json::from_str(&command?)?) {
            Ok(answer) => answer,
            Err(error) => Answer::failed(error),
        };
    }
}

/// How many prompts are not answered at most: they must fit into a pipe.
const AT_ONCE: usize = 64;

struct Client {
    how: How,
    lines: Lines,
    output: File,
    /// The id of the next request.
    next: u64,
    sessions: Vec<String>,
    progress: HashMap<String, Progress>,
    said: String,
    asked: Vec<Instant>,
}

impl Client {
    fn carry_out(&mut self, command: Command) -> Result<Answer, Failure> {
        match command {
            Command::Open { sessions } => {
                let start = Instant::now();
                self.sessions.clear();
                for _ in 0..sessions {
                    self.request("session/new", &json!({"cwd": "/", "mcpServers": []}))?;
                    self.answered()?;
                }
                Ok(Answer::since(start))
            }
            Command::Stream {
                messages,
                bytes,
                stall_ms,
                ..
            } => self.stream(messages, bytes, stall_ms),
            Command::Empty { requests } => {
                let mut each = Vec::new();
                let start = Instant::now();
                let mut before = start;
                for _ in 0..requests {
                    self.request("_bench/empty", &json!({}))?;
                    self.answered()?;
                    let now = Instant::now();
                    each.push(now - before);
                    before = now;
                }
                Ok(Answer::since(start).each(each))
            }
            Command::Ask { requests } => {
                self.asked.clear();
                let start = self.turn(&format!("ask {requests}"))?;
                let answer = Answer::since(start);
                if self.asked.len() as u64 != requests {
                    return Err(format!("asked {} times", self.asked.len()).into());
                }
                Ok(answer.each(gaps(&self.asked)))
            }
            Command::Read { path, bytes } => {
                let start = self.turn(&format!("read {path}"))?;
                let answer = Answer::since(start);
                if self.said == bytes.to_string() {
                    Ok(answer)
                } else {
                    Err(format!("the agent read {} bytes", self.said).into())
                }
            }
            Command::Load { messages, bytes } => {
                let session = format!("replay-{messages}-{bytes}");
                self.progress
                    .insert(session.clone(), Progress::new(messages, bytes));
                let start = Instant::now();
                let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
                self.request("session/load", &params)?;
                self.answered()?;
                let answer = Answer::since(start);
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
    ) -> Result<Answer, Failure> {
        if self.sessions.is_empty() {
            self.carry_out(Command::Open { sessions: 1 })?;
        }
        let sessions = self.sessions.clone();
        self.progress = sessions
            .iter()
            .map(|session| (session.clone(), Progress::new(messages, bytes)))
            .collect();
        let text = format!("stream {messages} {bytes}");
        let start = Instant::now();
        // Not so many at once that neither reads because both write.
        let (first, rest) = sessions.split_at(sessions.len().min(AT_ONCE));
        for session in first {
            self.prompt(session, &text)?;
        }
        if let Some(time) = stall_ms {
            // As a client does whose person has stopped it.
            std::thread::sleep(Duration::from_millis(time));
        }
        if self.how == How::Raw {
            self.lines.count((messages + 1) * sessions.len() as u64)?;
            return Ok(Answer::since(start));
        }
        for session in rest {
            self.answered()?;
            self.prompt(session, &text)?;
        }
        for _ in first {
            self.answered()?;
        }
        let answer = Answer::since(start);
        for (_, progress) in self.progress.drain() {
            progress.finish()?;
        }
        Ok(answer)
    }

    /// A turn of the first session; gives when it began.
    fn turn(&mut self, text: &str) -> Result<Instant, Failure> {
        if self.sessions.is_empty() {
            self.carry_out(Command::Open { sessions: 1 })?;
        }
        let session = self.sessions.first().ok_or("no session")?.clone();
        let start = Instant::now();
        self.prompt(&session, text)?;
        self.answered()?;
        Ok(start)
    }

    fn prompt(&mut self, session: &str, text: &str) -> Result<(), Failure> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Request<'a> {
            jsonrpc: &'static str,
            id: u64,
            method: &'a str,
            params: &'a Value,
        }
        let (jsonrpc, id) = ("2.0", self.next);
        self.next += 1;
        send(
            &mut self.output,
            &Request {
                jsonrpc,
                id,
                method,
                params,
            },
        )
    }

    /// Reads until a request is answered.
    fn answered(&mut self) -> Result<(), Failure> {
        loop {
            let line = self.lines.next()?.ok_or("the agent is gone")?;
            let message: Message<'_> = serde_json::from_slice(line)?;
            if let Some(error) = message.error {
                return Err(error.get().into());
            }
            let params = match (message.method.as_deref(), message.params) {
                (Some("session/update"), Some(params)) => {
                    let session = params.session_id.ok_or("no session")?;
                    let update = params.update.ok_or("no update")?;
                    if let (Kind::AgentMessageChunk, Some(content)) =
                        (update.session_update, update.content)
                    {
                        match self.progress.get_mut(&session) {
                            Some(progress) => progress.see(&content.text),
                            None => self.said = content.text,
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
                    answer(&mut self.output, id, &FileContent { content })?;
                }
                None => {
                    self.asked.push(Instant::now());
                    let (outcome, option_id) = ("selected", "allow");
                    let outcome = Outcome { outcome, option_id };
                    answer(&mut self.output, id, &Outcomes { outcome })?;
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
struct Outcomes {
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    outcome: &'static str,
    option_id: &'static str,
}

fn answer<T: Serialize>(output: &mut File, id: &RawValue, result: &T) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Answered<'a, T> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: &'a T,
    }
    let jsonrpc = "2.0";
    send(
        output,
        &Answered {
            jsonrpc,
            id,
            result,
        },
    )
}
