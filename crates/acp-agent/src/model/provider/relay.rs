//! The way of an answer from its provider to the crate that understands it, on which it is measured.
//!
//! That crate asks whatever address it is given, and keeps an event, and the body of an error, in memory to the end,
//! however long. So it asks here, over a connection within this machine; the provider is asked by us, with a client of
//! our own; and what is given on are whole events. One that has no end, or that is none, it never sees. Nor does it see
//! the key: it has a token in its place, which is also how a request is known to be ours.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use rustls::crypto::ring;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::Secret;

/// The most that the head of a request of ours has, in bytes, and how many headers.
const HEAD: usize = 16 * 1024;
const HEADERS: usize = 32;

/// How long somebody who has connected may take to say what they want.
const ASKING: Duration = Duration::from_secs(10);

/// How much of what a provider says about a failure is read, in bytes.
const OF_A_FAILURE: usize = 64 * 1024;

/// What our own client says itself.
const OWN: [&str; 5] = [
    "host",
    "connection",
    "content-length",
    "accept-encoding",
    "user-agent",
];

/// Waits for one request.
pub(super) struct Relay {
    listener: TcpListener,
    token: String,
    port: u16,
}

/// Where it is passed on to, and what may come back.
pub(super) struct Outward {
    pub(super) client: reqwest::Client,
    /// The provider's address.
    pub(super) address: Url,
    /// What takes the token's place; without it the header is left out that has the token.
    pub(super) key: Option<Secret>,
    /// How long the provider may say nothing.
    pub(super) silence: Duration,
    /// How many bytes one event may have.
    pub(super) longest: usize,
}

/// Why an answer did not come, or not to its end.
#[derive(Debug)]
pub(super) enum Broke {
    /// Within this machine.
    Here(io::Error),
    /// It cannot be reached, or the connection broke.
    Web(reqwest::Error),
    /// Nothing came at all.
    NoAnswer,
    /// Nothing came any more.
    Stopped,
    /// It refuses, and says why. Of that, the beginning.
    Status(StatusCode, HeaderMap, String),
    /// An event has more bytes than this.
    TooLong(usize),
}

/// A request, as it came.
struct Asked {
    path: String,
    headers: Vec<(HeaderName, String)>,
    body: Vec<u8>,
}

impl Relay {
    pub(super) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let mut bytes = [0; 16];
        let random = ring::default_provider().secure_random;
        random
            .fill(&mut bytes)
            .map_err(|_| io::Error::other("the system has no random numbers"))?;
        Ok(Self {
            listener,
            token: format!("{:032x}", u128::from_ne_bytes(bytes)),
            port,
        })
    }

    /// What stands for the key.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// What stands for the provider's address.
    pub(super) fn address(&self, of: &Url) -> Url {
        let mut url = of.clone();
        // All three are possible with any address of a server.
        let _ = url.set_scheme("http");
        let _ = url.set_ip_host(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let _ = url.set_port(Some(self.port));
        url
    }

    /// Passes one request on, and its answer back. If that fails, the connection breaks in the middle of the answer.
    pub(super) async fn pass(self, to: Outward) -> Result<(), Broke> {
        let (mut asker, asked) = self.asked().await.map_err(Broke::Here)?;
        let request = to.request(asked, &self.token).map_err(Broke::Here)?;
        // Nobody else is listened to.
        drop(self.listener);
        let response = timeout(to.silence, request.send()).await;
        let response = response.map_err(|_| Broke::NoAnswer)?.map_err(Broke::Web)?;
        if !response.status().is_success() {
            let (status, headers) = (response.status(), response.headers().clone());
            let said = beginning(response, to.silence).await;
            return Err(Broke::Status(status, headers, said));
        }
        to.events(response, &mut asker).await
    }

    /// Our request. Another program of this machine may connect as well, and is sent away.
    async fn asked(&self) -> io::Result<(TcpStream, Asked)> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            match timeout(ASKING, Asked::read(&mut stream, &self.token)).await {
                Ok(Ok(asked)) => return Ok((stream, asked)),
                Ok(Err(error)) => tracing::debug!(%error, "not a request of ours"),
                Err(_) => tracing::debug!("somebody has connected and asks nothing"),
            }
        }
    }
}

impl Asked {
    async fn read(stream: &mut TcpStream, token: &str) -> io::Result<Self> {
        let mut read = Vec::with_capacity(1024);
        let (mut asked, length, begin) = loop {
            let mut piece = stream.take((HEAD - read.len()) as u64);
            if piece.read_buf(&mut read).await? == 0 {
                return Err(invalid("its head has no end"));
            }
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let mut request = httparse::Request::new(&mut headers);
            let parsed = request.parse(&read).map_err(invalid)?;
            if let httparse::Status::Complete(begin) = parsed {
                let (asked, length) = Self::of(&request)?;
                break (asked, length, begin);
            }
        };
        if !asked.headers.iter().any(|(_, value)| value.contains(token)) {
            return Err(invalid("it does not know the token"));
        }
        asked.body = read.split_off(begin);
        let missing = length.saturating_sub(asked.body.len());
        // It is our own request, of which there is one copy already.
        asked.body.reserve_exact(missing);
        let mut rest = stream.take(missing as u64);
        if rest.read_to_end(&mut asked.body).await? < missing {
            return Err(invalid("it broke off"));
        }
        Ok(asked)
    }

    /// The head, and how long the body is.
    fn of(request: &httparse::Request<'_, '_>) -> io::Result<(Self, usize)> {
        let mut headers = Vec::with_capacity(request.headers.len());
        let mut length = None;
        for header in request.headers.iter() {
            let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(invalid)?;
            let value = std::str::from_utf8(header.value).map_err(invalid)?;
            if name == reqwest::header::CONTENT_LENGTH {
                length = Some(value.parse().map_err(invalid)?);
            }
            headers.push((name, value.to_owned()));
        }
        let asked = Self {
            path: request.path.unwrap_or_default().to_owned(),
            headers,
            body: Vec::new(),
        };
        Ok((asked, length.ok_or_else(|| invalid("it has no length"))?))
    }
}

impl Outward {
    /// The same request to the provider, with its key.
    fn request(&self, asked: Asked, token: &str) -> io::Result<RequestBuilder> {
        let mut url = self.address.clone();
        let (path, query) = match asked.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (asked.path.as_str(), None),
        };
        url.set_path(path);
        url.set_query(query);
        let mut request = self.client.post(url).body(asked.body);
        for (name, value) in asked.headers {
            if OWN.contains(&name.as_str()) {
                continue;
            }
            let key = self.key.as_ref().map_or("", Secret::reveal);
            let secret = value.contains(token);
            // Some do not take a header for a key that has none.
            if secret && key.is_empty() {
                continue;
            }
            let value = HeaderValue::from_str(&value.replace(token, key));
            let mut value = value.map_err(invalid)?;
            value.set_sensitive(secret);
            request = request.header(name, value);
        }
        Ok(request)
    }

    /// Gives on what comes, each event as soon as it is whole.
    async fn events(&self, mut from: Response, to: &mut TcpStream) -> Result<(), Broke> {
        const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
            transfer-encoding: chunked\r\n\r\n";
        to.write_all(HEAD).await.map_err(Broke::Here)?;
        let mut kept = Vec::new();
        loop {
            let piece = timeout(self.silence, from.chunk()).await;
            let piece = piece.map_err(|_| Broke::Stopped)?.map_err(Broke::Web)?;
            let Some(piece) = piece else { break };
            let seen = kept.len();
            kept.extend_from_slice(&piece);
            if let Some(end) = last_end(&kept, seen) {
                let rest = kept.split_off(end);
                chunk(to, &kept).await.map_err(Broke::Here)?;
                kept = rest;
            }
            if kept.len() > self.longest {
                return Err(Broke::TooLong(self.longest));
            }
        }
        // Some forget the empty line behind the last.
        if !kept.is_empty() {
            chunk(to, &kept).await.map_err(Broke::Here)?;
        }
        to.write_all(b"0\r\n\r\n").await.map_err(Broke::Here)
    }
}

/// Where the last event ends that is whole, if one ends behind what was seen before. Lines may end in any way.
fn last_end(bytes: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(2);
    (from..=bytes.len()).rev().find(|end| {
        let before = bytes.get(..*end).unwrap_or_default();
        [&b"\n\n"[..], b"\r\r", b"\n\r\n"]
            .iter()
            .any(|empty| before.ends_with(empty))
    })
}

async fn chunk(to: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    to.write_all(format!("{:x}\r\n", bytes.len()).as_bytes())
        .await?;
    to.write_all(bytes).await?;
    to.write_all(b"\r\n").await
}

/// As much of an answer as has come in this time, and is not too much.
async fn beginning(mut response: Response, time: Duration) -> String {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let room = OF_A_FAILURE.saturating_sub(body.len());
            body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if piece.len() >= room {
                break;
            }
        }
    };
    // What has come by then is enough.
    let _ = timeout(time, reading).await;
    String::from_utf8_lossy(&body).into_owned()
}

fn invalid(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_at_an_empty_line_however_lines_end() {
        for (text, seen, end) in [
            ("data: 1\n\n", 0, Some(9)),
            ("data: 1\r\n\r\n", 0, Some(11)),
            ("data: 1\r\rdata: 2", 0, Some(9)),
            ("data: 1\n\ndata: 2\n\ndata", 0, Some(18)),
            ("data: 1\ndata: 2\n", 0, None),
            // The end came in two pieces.
            ("data: 1\n\n", 8, Some(9)),
            ("data: 1\r\n\r\n", 10, Some(11)),
            ("data: 1\r\n\r\n", 9, Some(11)),
            ("", 0, None),
        ] {
            assert_eq!(last_end(text.as_bytes(), seen), end, "{text:?} {seen}");
        }
    }

    #[tokio::test]
    async fn a_program_that_does_not_know_the_token_is_sent_away() {
        let relay = Relay::open().await.unwrap();
        let (port, token) = (relay.port, relay.token.clone());
        let ours = tokio::spawn(async move {
            let head = |key: &str| {
                format!("POST /x HTTP/1.1\r\nx-key: {key}\r\ncontent-length: 2\r\n\r\n{{}}")
            };
            let mut stranger = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stranger.write_all(head("guess").as_bytes()).await.unwrap();
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(head(&token).as_bytes()).await.unwrap();
            let mut said = Vec::new();
            // Closed, or reset with what was not read.
            let _ = stranger.read_to_end(&mut said).await;
            assert!(said.is_empty());
            stream
        });
        let (_, asked) = relay.asked().await.unwrap();
        assert_eq!((asked.path.as_str(), &*asked.body), ("/x", &b"{}"[..]));
        ours.await.unwrap();
    }
}
