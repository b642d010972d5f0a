//! Tests of users with tokens of their own.

use std::sync::Arc;

use acp_remote::server::{ServeOptions, ServerConfig, UserTokens};

use crate::common::TestServer;
use crate::common::raw::{
    BEARER_HEADER, INITIALIZE_REQUEST, JSON_HEADER, NEW_SESSION_REQUEST, send_request,
};
use crate::common::server::test_token;

const ANNA: (&str, &str) = ("authorization", "Bearer anna-token");

#[derive(Debug)]
struct Anna;

impl UserTokens for Anna {
    fn user(&self, token: &[u8]) -> Option<Arc<str>> {
        (token == b"anna-token").then(|| "anna".into())
    }
}

#[tokio::test]
async fn connection_cannot_be_used_with_another_users_token() {
    let users: Arc<dyn UserTokens> = Arc::new(Anna);
    let config = ServerConfig::new().token(test_token()).users(users);
    let server = TestServer::start_with(config, ServeOptions::new()).await;
    let to = server.address;
    for (own, other) in [(ANNA, BEARER_HEADER), (BEARER_HEADER, ANNA)] {
        let opened = send_request(to, "POST", &[own, JSON_HEADER], INITIALIZE_REQUEST).await;
        assert_eq!(opened.status, 200);
        let id = opened.connection_id();
        let with = |token| [token, JSON_HEADER, ("Acp-Connection-Id", &*id)];
        for (method, body) in [("POST", NEW_SESSION_REQUEST), ("GET", ""), ("DELETE", "")] {
            let rejected = send_request(to, method, &with(other), body).await;
            assert_eq!(rejected.status, 404, "{method}");
        }
        let accepted = send_request(to, "POST", &with(own), NEW_SESSION_REQUEST).await;
        assert_eq!(accepted.status, 202);
    }
    let unknown = ("authorization", "Bearer bob-token");
    let rejected = send_request(to, "POST", &[unknown, JSON_HEADER], INITIALIZE_REQUEST).await;
    assert_eq!(rejected.status, 401);
}
