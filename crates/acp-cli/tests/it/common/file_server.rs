//! A web server for registries and downloads, which can be as faulty as a test needs.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// What the server sends for a path.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServedFile {
    pub(crate) body: Vec<u8>,
    pub(crate) etag: Option<String>,
    /// The URL to redirect to, instead of sending the body.
    pub(crate) redirect: Option<String>,
    /// The size to announce, if it is not that of the body.
    pub(crate) announced: Option<usize>,
    /// Whether to leave out the size, so that the end of the connection is the end of the file.
    pub(crate) is_without_size: bool,
    /// If set, the server sends half of the body, reports it here, and then sends nothing until the client disconnects.
    pub(crate) stalled: Option<mpsc::Sender<()>>,
}

impl ServedFile {
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::default()
        }
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self {
            redirect: Some(to.to_owned()),
            ..Self::default()
        }
    }
}

#[derive(Default)]
struct ServerState {
    files: HashMap<String, ServedFile>,
    requests: Vec<String>,
}

/// A web server on this machine, with or without TLS.
pub(crate) struct FileServer {
    address: SocketAddr,
    is_tls: bool,
    state: Arc<Mutex<ServerState>>,
}

impl FileServer {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts a server with TLS.
    pub(crate) fn start_tls(config: rustls::ServerConfig) -> Self {
        Self::start_with(Some(Arc::new(config)))
    }

    fn start_with(tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            is_tls: tls.is_some(),
            state: Arc::default(),
        };
        let state = Arc::clone(&server.state);
        // The thread ends with the test program.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, tls) = (Arc::clone(&state), tls.clone());
                thread::spawn(move || match tls {
                    None => respond(stream, &state),
                    Some(tls) => {
                        let connection = rustls::ServerConnection::new(tls).unwrap();
                        respond(rustls::StreamOwned::new(connection, stream), &state);
                    }
                });
            }
        });
        server
    }

    /// Serves a file at this path, and returns its URL.
    pub(crate) fn serve(&self, path: &str, file: ServedFile) -> String {
        let mut state = self.state.lock().unwrap();
        state.files.insert(path.to_owned(), file);
        self.url(path)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        match self.is_tls {
            true => format!("https://localhost:{}{path}", self.address.port()),
            false => format!("http://{}{path}", self.address),
        }
    }

    /// Returns the requests since the last call, such as `GET /registry.json 200`.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

/// Reads one request, responds, and closes the connection.
fn respond(stream: impl Read + Write, state: &Mutex<ServerState>) {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
        match line.trim() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines[0].split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let known = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("if-none-match").then_some(value)
    });
    let file = state.lock().unwrap().files.get(path).cloned();
    let (status, file) = match file {
        None => ("404 Not Found", ServedFile::default()),
        Some(file) if file.redirect.is_some() => ("302 Found", file),
        Some(file) if known.is_some() && file.etag.as_deref() == known => {
            ("304 Not Modified", ServedFile::default())
        }
        Some(file) => ("200 OK", file),
    };
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    if !file.is_without_size {
        let size = file.announced.unwrap_or(file.body.len());
        head.push_str(&format!("Content-Length: {size}\r\n"));
    }
    for (name, value) in [("ETag", &file.etag), ("Location", &file.redirect)] {
        if let Some(value) = value {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let code = status.split(' ').next().unwrap();
    let request = format!("{method} {path} {code}");
    state.lock().unwrap().requests.push(request);
    let stream = stream.get_mut();
    // The client may have closed the connection, if it has seen enough.
    let _ = write!(stream, "{head}\r\n");
    match file.stalled {
        _ if method == "HEAD" => {}
        None => {
            let _ = stream.write_all(&file.body);
        }
        Some(stalled) => {
            let _ = stream.write_all(&file.body[..file.body.len() / 2]);
            let _ = stream.flush();
            let _ = stalled.send(());
            let _ = stream.read(&mut [0]);
        }
    }
    let _ = stream.flush();
}
