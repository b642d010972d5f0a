//! Programs that serve agents over the network.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{InteropProject, with_timeout};

/// How a client reaches a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    WebSocket,
    Http,
}

/// A program that serves agents on a free port. Dropping it kills the program.
pub(crate) struct RemoteServer {
    _process: Child,
    /// The URL without its scheme.
    location: String,
}

impl RemoteServer {
    /// Starts a server in the project, and waits until it listens. It must print `serving URL` on stderr.
    pub(crate) async fn start(project: &InteropProject, command: &[&str]) -> Self {
        let (program, args) = command.split_first().unwrap();
        let mut process = Command::new(program)
            .args(args)
            .current_dir(project.path())
            .env("XDG_STATE_HOME", project.state_directory())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let url = loop {
            let line = with_timeout("the server listens", lines.next_line())
                .await
                .unwrap();
            let line = line.expect("the server has exited");
            if let Some((_, url)) = line.split_once("serving ") {
                break url.trim().to_owned();
            }
            eprintln!("server: {line}");
        };
        // What it prints later explains a failure, and must not fill the pipe.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                eprintln!("server: {line}");
            }
        });
        let (_, location) = url.split_once("://").unwrap();
        Self {
            _process: process,
            location: location.to_owned(),
        }
    }

    /// Returns the URL for a client. If the server requires a token, it is part of the URL.
    pub(crate) fn url(&self, via: Via) -> String {
        let scheme = match via {
            Via::WebSocket => "ws",
            Via::Http => "http",
        };
        format!("{scheme}://{}", self.location)
    }

    /// Returns the URL without the token, and the token.
    pub(crate) fn url_and_token(&self, via: Via) -> (String, String) {
        let url = self.url(via);
        let (url, token) = url.split_once("?token=").unwrap();
        (url.to_owned(), token.to_owned())
    }
}
