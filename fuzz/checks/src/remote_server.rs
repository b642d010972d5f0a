//! Connects an endpoint of the remote transport to a client that sends arbitrary bytes.
//!
//! Time is paused: it passes only when every task is waiting.

use std::time::Duration;

use acp::Transport;
use acp_remote::server::{
    AgentEndpoint, ConnectionInfo, ServeOptions, ServerConfig, ServerLimits, serve_stream,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// The maximum time for everything that must end. It takes no real time, because time is paused.
const PATIENCE: Duration = Duration::from_secs(100_000);

/// The maximum number of bytes that an endpoint may send for each byte that it receives, and for each request.
const MAX_OUTPUT_PER_BYTE: usize = 200;

/// The capacity of the socket, in bytes.
const SOCKET: usize = 16 * 1024;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

/// What the client sends before the bytes of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prelude {
    /// The client sends nothing first: the input is the whole conversation.
    Nothing,
    /// The client sends a valid upgrade: the input follows on the WebSocket.
    Upgrade,
    /// The client sends a valid upgrade: each line of the input follows as one text message.
    Messages,
    /// The client sends a valid `initialize`: each line of the input follows as a POST. A line that starts with `GET `
    /// names the session of a stream to open, and is the last that is sent.
    Requests,
}

/// Serves an endpoint on a socket with a client that follows the input. The endpoint must not panic, must limit its
/// output, must end when its client is gone, and must not leave a task running.
///
/// The bits of the first byte: 0 and 1 select the prelude, 2 asks for resuming, 3 sends one byte at a time. The agent
/// sends back whatever it receives, so the input is also what the endpoint gets from an agent.
pub fn check_remote_server(data: &[u8]) {
    let Some((setup, input)) = data.split_first() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime without I/O");
    runtime.block_on(run(*setup, input));
    assert_eq!(
        runtime.metrics().num_alive_tasks(),
        0,
        "tasks are still running"
    );
}

async fn run(setup: u8, input: &[u8]) {
    let prelude = match setup & 3 {
        0 => Prelude::Nothing,
        1 => Prelude::Upgrade,
        2 => Prelude::Messages,
        _ => Prelude::Requests,
    };
    let resume = if setup >> 2 & 1 == 1 {
        "Acp-Resume: 1; window=4096\r\n"
    } else {
        ""
    };
    let chunk = if setup >> 3 & 1 == 1 { 1 } else { SOCKET };
    let limits = ServerLimits::new()
        .message(64_usize * 1024)
        .window(8_usize * 1024)
        .bodies(256_usize * 1024)
        .sessions(4_usize)
        .requests(8_usize);
    let config = ServerConfig::new().limits(limits);
    let endpoint = AgentEndpoint::new(config, echo);
    let (client, server) = tokio::io::duplex(SOCKET);
    let serving = tokio::spawn(serve_stream(
        server,
        None,
        endpoint.clone(),
        ServeOptions::new(),
    ));
    let (reader, mut writer) = tokio::io::split(client);
    let (found, connection) = tokio::sync::oneshot::channel();
    let output = tokio::spawn(read_output(reader, found));
    let playing = play(prelude, resume, input, chunk, connection, &mut writer);
    let played = tokio::time::timeout(PATIENCE, playing).await;
    let sent = played.expect("the endpoint reads, or closes the socket");
    // The endpoint may have closed the socket before.
    let _ = writer.shutdown().await;
    drop(writer);
    let ended = tokio::time::timeout(PATIENCE, serving).await;
    assert!(ended.is_ok(), "the socket does not end");
    let output = tokio::time::timeout(PATIENCE, output).await;
    let received = output.expect("the output ends").expect("no panic");
    assert!(
        received <= 4096 + sent * MAX_OUTPUT_PER_BYTE,
        "{received} bytes for {sent}"
    );
    endpoint.shut_down(Duration::from_secs(1)).await;
    assert_eq!(endpoint.stats().open_connections, 0);
    // The last task has reported the end, but may still be ending itself.
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Acts as the agent: responds to the first line, which is usually `initialize`, and sends back all further lines.
async fn echo(_info: ConnectionInfo, transport: Transport) {
    let (reader, mut writer) = transport.into_split();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    let mut limited = (&mut reader).take(64 * 1024);
    if limited.read_until(b'\n', &mut line).await.is_ok() {
        let response = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}\n";
        let _ = writer.write_all(response).await;
    }
    let _ = tokio::io::copy_buf(&mut reader, &mut writer).await;
}

/// Reads all output and returns its length. Sends the connection's id to `play` as soon as it has been read.
async fn read_output(
    mut reader: tokio::io::ReadHalf<DuplexStream>,
    found: tokio::sync::oneshot::Sender<String>,
) -> usize {
    let mut found = Some(found);
    let mut start = Vec::new();
    let mut total = 0;
    let mut buffer = vec![0; SOCKET];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) | Err(_) => return total,
            Ok(length) => {
                total += length;
                if found.is_some() && start.len() < SOCKET {
                    start.extend_from_slice(&buffer[..length]);
                    if let Some(id) = connection_id(&start)
                        && let Some(found) = found.take()
                    {
                        let _ = found.send(id);
                    }
                }
            }
        }
    }
}

fn connection_id(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let (head, _) = head.split_once("\r\n\r\n")?;
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let (_, id) = lines.find(|(name, _)| name.eq_ignore_ascii_case("acp-connection-id"))?;
    Some(id.to_owned())
}

/// Sends the prelude and the input, and returns how many bytes were sent.
async fn play(
    prelude: Prelude,
    resume: &str,
    input: &[u8],
    chunk: usize,
    connection: tokio::sync::oneshot::Receiver<String>,
    writer: &mut tokio::io::WriteHalf<DuplexStream>,
) -> usize {
    let mut sent = 0;
    let mut send = async |bytes: &[u8]| {
        for piece in bytes.chunks(chunk) {
            if writer.write_all(piece).await.is_err() {
                return false;
            }
            sent += piece.len();
        }
        true
    };
    let upgrade = format!(
        "GET /acp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{resume}\r\n"
    );
    match prelude {
        Prelude::Nothing => {
            send(input).await;
        }
        Prelude::Upgrade => {
            if send(upgrade.as_bytes()).await && connection.await.is_ok() {
                send(input).await;
            }
        }
        Prelude::Messages => {
            if send(upgrade.as_bytes()).await && connection.await.is_ok() {
                for line in input.split(|byte| *byte == b'\n') {
                    if !send(&text_frame(line)).await {
                        break;
                    }
                }
                send(&[0x88, 0x80, 0, 0, 0, 0]).await;
            }
        }
        Prelude::Requests => {
            send(post(INITIALIZE.as_bytes(), resume).as_slice()).await;
            let Ok(id) = connection.await else {
                return sent;
            };
            for line in input.split(|byte| *byte == b'\n') {
                let headers = format!("Acp-Connection-Id: {id}\r\n");
                let Some(session) = line.strip_prefix(b"GET ") else {
                    if send(&post(line, &headers)).await {
                        continue;
                    }
                    break;
                };
                // A stream takes the rest of the connection. The endpoint does not read requests behind it.
                send(&get(session, &headers)).await;
                break;
            }
        }
    }
    sent
}

fn post(body: &[u8], headers: &str) -> Vec<u8> {
    let length = body.len();
    let mut request = format!(
        "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

fn get(session: &[u8], headers: &str) -> Vec<u8> {
    let session: String = session
        .iter()
        .filter(|byte| byte.is_ascii_graphic())
        .map(|byte| char::from(*byte))
        .collect();
    let session = match session.as_str() {
        "" => String::new(),
        session => format!("Acp-Session-Id: {session}\r\n"),
    };
    format!(
        "GET /acp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{session}{headers}\r\n"
    )
    .into_bytes()
}

/// A text message in one frame, masked with zeros.
fn text_frame(text: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(text.len()) {
        Ok(length) if length < 126 => frame.push(0x80 | length as u8),
        Ok(length) => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(text.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text);
    frame
}
