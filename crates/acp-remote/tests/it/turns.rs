//! Turns, permissions and files over every transport.

use std::sync::atomic::Ordering;

use acp::v1::StopReason;
use acp_remote::client::{ConnectOptions, HttpVersion, Trust};

use crate::common::agent::numbered;
use crate::common::server::token;
use crate::common::{Server, TestClient, open, soon};

/// All transports: the scheme, and the version of HTTP.
pub(crate) const TRANSPORTS: [(&str, HttpVersion); 8] = [
    ("ws", HttpVersion::Auto),
    ("ws", HttpVersion::Http2),
    ("http", HttpVersion::Auto),
    ("http", HttpVersion::Http1),
    ("wss", HttpVersion::Auto),
    ("wss", HttpVersion::Http2),
    ("https", HttpVersion::Auto),
    ("https", HttpVersion::Http1),
];

/// Returns what the agent said in a session.
fn said(session: &acp::client::ClientSession) -> String {
    session
        .thread()
        .read(|thread| format!("{:?}", thread.items()))
}

#[tokio::test]
async fn a_turn_with_permission_and_files_works_over_every_transport() {
    let (plain, tls) = (Server::start().await, Server::start_tls().await);
    for (scheme, version) in TRANSPORTS {
        println!("{scheme} {version:?}");
        let server = if scheme.ends_with('s') && scheme != "ws" {
            &tls
        } else {
            &plain
        };
        let mut options = ConnectOptions::new().token(token()).http_version(version);
        if let Some(fingerprint) = &server.fingerprint {
            options = options.trust(Trust::pinned(fingerprint).unwrap());
        }
        let client = TestClient::default();
        client
            .files
            .lock()
            .unwrap()
            .insert("/a".to_owned(), "héllo".to_owned());
        let (agent, session) = open(&server.url(scheme), options, client.clone()).await;
        for (prompt, expected) in [
            ("hi\nthere", "You said: hi\\nthere".to_owned()),
            ("ask 2", "0: Allowed;".to_owned()),
            ("file /a", "reversed 5 characters".to_owned()),
            ("stream 3000 50", numbered(2999, 50)),
        ] {
            let stopped = soon(session.prompt(prompt)).await.unwrap();
            assert_eq!(stopped, StopReason::EndTurn, "{scheme} {version:?}");
            assert!(
                said(&session).contains(&expected),
                "{scheme} {version:?}: {prompt}"
            );
        }
        assert_eq!(client.asked.load(Ordering::Relaxed), 2);
        assert_eq!(client.files.lock().unwrap()["/a.out"], "olléh");
        agent.close();
        soon(agent.closed()).await;
    }
}
