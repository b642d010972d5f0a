//! Tests of turns, permissions and files over every transport.

use std::sync::atomic::Ordering;

use acp::v1::StopReason;
use acp_remote::client::{ConnectOptions, HttpVersion, Trust};

use crate::common::agent::numbered_text;
use crate::common::server::test_token;
use crate::common::{TestClient, TestServer, connect_and_open, with_timeout};

/// All transports, each with its URL scheme and HTTP version.
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

/// Returns the text of the agent's messages in a session.
fn agent_text(session: &acp::client::ClientSession) -> String {
    session
        .thread()
        .read(|thread| format!("{:?}", thread.items()))
}

#[tokio::test]
async fn turn_with_permission_and_files_works_over_every_transport() {
    let (plain, tls) = (TestServer::start().await, TestServer::start_tls().await);
    for (scheme, version) in TRANSPORTS {
        println!("{scheme} {version:?}");
        let server = if scheme.ends_with('s') && scheme != "ws" {
            &tls
        } else {
            &plain
        };
        let mut options = ConnectOptions::new()
            .token(test_token())
            .http_version(version);
        if let Some(fingerprint) = &server.fingerprint {
            options = options.trust(Trust::from_pin(fingerprint).unwrap());
        }
        let client = TestClient::default();
        client
            .files
            .lock()
            .unwrap()
            .insert("/a".to_owned(), "héllo".to_owned());
        let (agent, session) = connect_and_open(&server.url(scheme), options, client.clone()).await;
        for (prompt, expected) in [
            ("hi\nthere", "You said: hi\\nthere".to_owned()),
            ("ask 2", "0: Allowed;".to_owned()),
            ("file /a", "reversed 5 characters".to_owned()),
            ("stream 3000 50", numbered_text(2999, 50)),
        ] {
            let stopped = with_timeout(session.prompt(prompt)).await.unwrap();
            assert_eq!(stopped, StopReason::EndTurn, "{scheme} {version:?}");
            assert!(
                agent_text(&session).contains(&expected),
                "{scheme} {version:?}: {prompt}"
            );
        }
        assert_eq!(client.asked.load(Ordering::Relaxed), 2);
        assert_eq!(client.files.lock().unwrap()["/a.out"], "olléh");
        agent.close();
        with_timeout(agent.closed()).await;
    }
}
