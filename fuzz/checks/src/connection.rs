//! Connects an agent or a client to a peer that sends arbitrary bytes.
//!
//! Time is paused: it passes only when every task is waiting, so a test that would wait forever fails at once.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use acp::__internals::{Frame, Outline, outline};
use acp::jsonrpc::{self, Incoming, ParseError, RequestId};
use acp::{Limits, Options, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;

use crate::framer::line_frames;
use crate::sides::{fuzz_agent, run_client};

/// The maximum number of bytes that a peer sends, including repetitions.
const MAX_SENT_BYTES: usize = 512 * 1024;

/// The maximum time for everything that must end. It takes no real time, because time is paused.
const TIMEOUT: Duration = Duration::from_secs(100_000);

/// The setup of a connection, encoded in one byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FuzzSetup(u8);

impl FuzzSetup {
    fn has_bit(self, bit: u8) -> bool {
        self.0 >> bit & 1 == 1
    }
    /// Returns `true` if a client is tested, and `false` for an agent.
    fn is_client(self) -> bool {
        self.has_bit(0)
    }
    pub(crate) fn is_v2(self) -> bool {
        self.has_bit(1)
    }
    fn has_small_limits(self) -> bool {
        self.has_bit(2)
    }
    /// Returns `true` if the peer first completes a valid handshake.
    fn has_prelude(self) -> bool {
        self.has_bit(3)
    }
    /// Returns `true` if the handlers of the tested side are slow.
    pub(crate) fn is_slow(self) -> bool {
        self.has_bit(4)
    }
    fn pipe_capacity(self) -> usize {
        match self.0 >> 5 & 3 {
            0 => 64 * 1024,
            1 => 1024,
            2 => 64,
            _ => 7,
        }
    }

    fn limits(self) -> Limits {
        let mut limits = Limits::default();
        limits.linger = Duration::from_secs(2);
        if self.has_small_limits() {
            limits.message = 4000;
            limits.message_memory = 200_000;
            limits.outbox = 1000;
            limits.read_ahead = 1000;
            limits.backlog = 4000;
            limits.requests = 4;
            limits.request_memory = 30_000;
            limits.prompts = 2;
            limits.sessions = 3;
            limits.thread = 30_000;
        }
        limits
    }

    fn options(self) -> Options {
        let options = Options::new().limits(self.limits());
        if self.is_v2() {
            options.draft_version_2()
        } else {
            options
        }
    }

    /// Returns the lines of a valid handshake.
    fn prelude_lines(self) -> &'static str {
        match (self.is_client(), self.is_v2()) {
            (false, false) => CLIENT_V1_PRELUDE,
            (false, true) => CLIENT_V2_PRELUDE,
            (true, false) => AGENT_V1_PRELUDE,
            (true, true) => AGENT_V2_PRELUDE,
        }
    }
}

const CLIENT_V1_PRELUDE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}},"plan":{},"session":{"notices":{},"configOptions":{"boolean":{}}}}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
    "\n"
);
const CLIENT_V2_PRELUDE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":2,"clientInfo":{"name":"f","version":"1"},"capabilities":{"elicitation":{"form":{},"url":{}}}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
    "\n"
);
const AGENT_V1_PRELUDE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"auth":{"logout":{}},"sessionCapabilities":{"list":{},"delete":{},"resume":{},"close":{},"fork":{}}},"authMethods":[{"id":"a","name":"A"}]}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}}}"#,
    "\n"
);
const AGENT_V2_PRELUDE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"f","version":"1"},"capabilities":{"session":{"delete":{},"fork":{}},"auth":{}},"authMethods":[{"type":"agent","methodId":"a","name":"A"}]}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s1","configOptions":[]}}"#,
    "\n"
);

/// Connects an agent or a client to a peer that follows a script in `data`. The tested side must not panic, must send
/// exactly one response to each request with an id, must limit its output, must end when its input ends, and must not
/// leave a task running.
///
/// The first byte is the setup. The rest is sent unchanged, except for ESC and the byte after it:
///
/// | | |
/// |---|---|
/// | `w` | waits until nothing more happens |
/// | `t` | waits for three seconds |
/// | `n`, `r` | stops reading; reads again |
/// | `1`…`9` | sends the last line again, 2, 4, … 512 times |
/// | `x` | sends `x` 1024 times |
/// | `c` | closes its output; the rest of the script is ignored |
/// | `d` | closes both directions |
pub fn check_connection(data: &[u8]) {
    let Some((setup, script)) = data.split_first() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime without I/O");
    runtime.block_on(run_script(FuzzSetup(*setup), script));
    assert_eq!(
        runtime.metrics().num_alive_tasks(),
        0,
        "tasks are still running"
    );
}

async fn run_script(setup: FuzzSetup, script: &[u8]) {
    let (their_output, our_input) = tokio::io::duplex(setup.pipe_capacity());
    let (our_output, their_input) = tokio::io::duplex(setup.pipe_capacity());
    let transport = Transport::new(their_input, their_output);
    let reads = watch::Sender::new(ReadMode::All);
    let mut peer = FuzzPeer {
        setup,
        output: Some(our_output),
        reads: &reads,
        sent: Vec::new(),
        gone: false,
    };
    let mut heard = Vec::new();
    let played = async {
        let lived = if setup.is_client() {
            let (mut playing, mut driven) = (
                pin!(peer.run_script(script)),
                pin!(run_client(setup, setup.options(), transport)),
            );
            tokio::select! {
                () = &mut playing => {
                    let ended = tokio::time::timeout(TIMEOUT, driven).await;
                    ended.expect("the connection ends when its input ends")
                }
                lived = &mut driven => {
                    playing.await;
                    lived
                }
            }
        } else {
            let (conn, driver) = acp::agent::start(transport, fuzz_agent(setup), setup.options());
            tokio::spawn(driver);
            peer.run_script(script).await;
            let ended = tokio::time::timeout(TIMEOUT, conn.closed()).await;
            assert!(
                ended.is_ok(),
                "the connection does not end when its input ends"
            );
            true
        };
        // The peer reads everything that was written, and then the end.
        reads.send_replace(ReadMode::All);
        lived
    };
    let (lived, ()) = tokio::join!(played, read_output(our_input, &reads, &mut heard));
    // A side that has closed by itself does not have to respond.
    peer.gone |= !lived;
    // The last task has reported the end, but may still be ending itself.
    tokio::time::sleep(Duration::from_millis(1)).await;
    check_output(&peer, &heard);
}

/// Whether the peer reads the output of the tested side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    All,
    Nothing,
    /// The peer does not read, and never will again.
    NoMore,
}

/// Reads the output of the tested side while the peer is supposed to read.
async fn read_output(
    mut input: DuplexStream,
    reads: &watch::Sender<ReadMode>,
    heard: &mut Vec<u8>,
) {
    let mut told = reads.subscribe();
    loop {
        let now = *told.borrow_and_update();
        if now == ReadMode::NoMore {
            return;
        }
        tokio::select! {
            biased;
            _ = told.changed() => {}
            read = input.read_buf(heard), if now == ReadMode::All => match read {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

struct FuzzPeer<'a> {
    setup: FuzzSetup,
    output: Option<DuplexStream>,
    reads: &'a watch::Sender<ReadMode>,
    /// All bytes that the tested side has accepted.
    sent: Vec<u8>,
    /// Whether the connection was closed before the end of the script.
    gone: bool,
}

impl FuzzPeer<'_> {
    async fn run_script(&mut self, script: &[u8]) {
        if self.setup.has_prelude() {
            self.write(self.setup.prelude_lines().as_bytes()).await;
        }
        let mut rest = script;
        while !rest.is_empty() && !self.gone && self.sent.len() < MAX_SENT_BYTES {
            let plain = memchr::memchr(0x1b, rest).unwrap_or(rest.len());
            let (bytes, behind) = rest.split_at(plain);
            self.write(bytes).await;
            let [_, what, behind @ ..] = behind else {
                break;
            };
            rest = behind;
            self.perform(*what).await;
        }
        if !self.gone {
            // Everything that was requested ends and has a response.
            self.reads.send_replace(ReadMode::All);
            tokio::time::sleep(TIMEOUT).await;
        }
        self.output = None;
    }

    async fn perform(&mut self, what: u8) {
        match what {
            b'w' => tokio::time::sleep(Duration::from_millis(1)).await,
            b't' => tokio::time::sleep(Duration::from_secs(3)).await,
            b'n' => {
                self.reads.send_replace(ReadMode::Nothing);
            }
            b'r' => {
                self.reads.send_replace(ReadMode::All);
            }
            b'1'..=b'9' => {
                let end = self.sent.trim_ascii_end().len();
                let whole = self.sent.get(..end).unwrap_or_default();
                let start = memchr::memrchr(b'\n', whole).map_or(0, |at| at + 1);
                let mut line = whole.get(start..).unwrap_or_default().to_vec();
                line.push(b'\n');
                let times = (1_usize << (what - b'0')).min(MAX_SENT_BYTES / line.len());
                self.write(&line.repeat(times)).await;
            }
            b'x' => self.write(&[b'x'; 1024]).await,
            b'c' => {
                self.gone = true;
                self.reads.send_replace(ReadMode::All);
                self.output = None;
            }
            b'd' => {
                self.gone = true;
                self.reads.send_replace(ReadMode::NoMore);
                self.output = None;
            }
            _ => {}
        }
    }

    /// Writes as many bytes as the tested side accepts.
    async fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(output) = &mut self.output else {
                return;
            };
            match tokio::time::timeout(TIMEOUT, output.write(rest)).await {
                Ok(Ok(taken)) if taken > 0 => {
                    let (these, behind) = rest.split_at(taken);
                    self.sent.extend_from_slice(these);
                    rest = behind;
                }
                Ok(_) => {
                    self.gone = true;
                    self.output = None;
                }
                Err(_) => {
                    let read = self.reads.send_replace(ReadMode::All);
                    assert!(
                        read != ReadMode::All,
                        "the tested side stopped reading, although the peer reads everything"
                    );
                }
            }
        }
    }
}

/// Checks that each request has exactly one response, and that the output is limited.
fn check_output(peer: &FuzzPeer<'_>, heard: &[u8]) {
    let limits = peer.setup.limits();
    let mut lines: Vec<&[u8]> = peer.sent.split(|byte| *byte == b'\n').collect();
    // An incomplete line, which counts only at the end.
    let last = lines.pop().unwrap_or_default();
    let mut due: HashMap<RequestId, usize> = HashMap::new();
    let mut prompts = 0;
    for frame in line_frames(&lines, limits.message) {
        if let Frame::Line(line) = frame {
            prompts += usize::from(memchr::memmem::find(line, b"prompt").is_some());
        }
        if let Some(id) = request_id_of(&frame, peer.setup.is_client()) {
            *due.entry(id).or_default() += 1;
        }
    }
    let last = line_frames(&[last], limits.message)
        .next()
        .and_then(|frame| request_id_of(&frame, peer.setup.is_client()));

    // The output is limited by the input, and by the number of prompts.
    let bound = 40 * peer.sent.len() + (prompts + 2) * 200_000;
    assert!(
        heard.len() <= bound,
        "{} bytes for {}",
        heard.len(),
        peer.sent.len()
    );
    let mut given: HashMap<RequestId, usize> = HashMap::new();
    let whole = memchr::memrchr(b'\n', heard).map_or(0, |at| at + 1);
    for line in heard
        .get(..whole)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n')
    {
        if line.is_empty() {
            continue;
        }
        match jsonrpc::parse(line) {
            Ok(Incoming::Response { id, .. }) => *given.entry(id).or_default() += 1,
            Ok(_) => {}
            Err(error) => panic!(
                "the output contains {}: {error}",
                String::from_utf8_lossy(line)
            ),
        }
    }
    for (id, given) in &given {
        let due = due.get(id).copied().unwrap_or(0) + usize::from(last.as_ref() == Some(id));
        assert!(
            *given <= due,
            "{given} responses to {due} requests with the id {id}"
        );
    }
    if !peer.gone {
        for (id, due) in &due {
            let given = given.get(id).copied().unwrap_or(0);
            assert!(
                given >= *due,
                "{given} responses to {due} requests with the id {id}"
            );
        }
    }
}

/// Returns the id of the response that a line requires, if any.
fn request_id_of(frame: &Frame<'_>, client: bool) -> Option<RequestId> {
    let line = match frame {
        Frame::Line(line) => line,
        Frame::LargeText => return None,
        Frame::Oversized { head, tail, .. } => {
            return match outline(head, tail) {
                Outline::Response(_) => None,
                Outline::Request(id) => Some(id),
                Outline::Noise => (!client).then_some(RequestId::Null),
            };
        }
    };
    match jsonrpc::parse(line) {
        Ok(Incoming::Request { id, .. }) => Some(id),
        Ok(Incoming::Notification { .. } | Incoming::Response { .. }) => None,
        // Noise that an agent prints between its messages.
        Err(ParseError::NotJson(_)) if client && line.first() != Some(&b'{') => None,
        Err(error) => Some(error.to_response().0),
    }
}

/// Returns the size limit of a thread, in bytes.
pub(crate) fn thread_limit(setup: FuzzSetup) -> usize {
    setup.limits().thread
}
