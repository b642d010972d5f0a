//! Opens sessions and runs turns over streamable HTTP, for the harness that acts as the client.

use serde_json::{Value, json};
use tokio::time::timeout;

use super::http::RawHttpRequest;
use super::server_harness::{ServerHarness, StreamId, TestedConnection, response_to};
use crate::options::AgentTask;
use crate::verdict::{CheckStop, fail, skip};
use crate::wire::ReceivedResponse;

/// A session on an HTTP connection, with its stream.
#[derive(Debug, Clone)]
pub(crate) struct HttpSession {
    pub(crate) connection: String,
    pub(crate) id: String,
    pub(crate) stream: StreamId,
}

impl ServerHarness {
    /// Opens a session, and returns its id.
    pub(crate) async fn new_session(
        &mut self,
        connection: &TestedConnection,
    ) -> Result<String, CheckStop> {
        let (_, session) = self.new_session_on_connection(connection).await?;
        Ok(session)
    }

    /// Opens a session. Returns the stream on which the response arrived, and the id.
    pub(crate) async fn new_session_on_connection(
        &mut self,
        connection: &TestedConnection,
    ) -> Result<(StreamId, String), CheckStop> {
        let params = self.session_params();
        let id = self.post_request(&connection.id, None, "session/new", params.clone());
        let id = id.await?;
        let (mut stream, mut response) = self.wait_for_response(&id).await?;
        if response.code() == Some(-32000) {
            let Some(method) = self.options.auth_method.clone() else {
                return skip("the agent requires a login; choose an auth method with --login");
            };
            let params = json!({"methodId": method});
            let id = self.post_request(&connection.id, None, "authenticate", params);
            let id = id.await?;
            self.wait_for_response(&id).await?;
            let params = self.session_params();
            let id = self.post_request(&connection.id, None, "session/new", params);
            let id = id.await?;
            (stream, response) = self.wait_for_response(&id).await?;
        }
        match response {
            ReceivedResponse::Result(result) => match result["sessionId"].as_str() {
                Some(session) => Ok((stream, session.to_owned())),
                None => fail("the response to `session/new` has no `sessionId`"),
            },
            ReceivedResponse::Error { code, message, .. } => {
                fail(format!("`session/new` failed with error {code}: {message}"))
            }
        }
    }

    /// Opens a session and its stream.
    pub(crate) async fn open_session(
        &mut self,
        connection: &TestedConnection,
    ) -> Result<HttpSession, CheckStop> {
        let id = self.new_session(connection).await?;
        let stream = self.open_stream(&connection.id, Some(&id)).await?;
        Ok(HttpSession {
            connection: connection.id.clone(),
            id,
            stream,
        })
    }

    /// Sends a prompt for a task, and returns its id.
    pub(crate) async fn prompt(
        &mut self,
        session: &HttpSession,
        task: AgentTask,
    ) -> Result<Value, CheckStop> {
        let text = self.options.prompt_for(task);
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session.id, "prompt": prompt});
        let (connection, id) = (&session.connection, &session.id);
        self.post_request(connection, Some(id), "session/prompt", params)
            .await
    }

    /// Runs a turn. Returns the stream on which the response to the prompt arrived, and the response.
    pub(crate) async fn run_turn(
        &mut self,
        session: &HttpSession,
        task: AgentTask,
    ) -> Result<(StreamId, ReceivedResponse), CheckStop> {
        let id = self.prompt(session, task).await?;
        self.wait_for_turn_end(&id).await
    }

    /// Waits for the response to a prompt.
    pub(crate) async fn wait_for_turn_end(
        &mut self,
        id: &Value,
    ) -> Result<(StreamId, ReceivedResponse), CheckStop> {
        let patience = self.options.turn_timeout;
        self.wait_within(patience, "the response to `session/prompt`", |stream, m| {
            response_to(m, id).map(|response| (stream, response))
        })
        .await
    }

    /// Sends several requests at once, and returns their response statuses.
    pub(crate) async fn send_concurrently(
        &mut self,
        requests: Vec<RawHttpRequest>,
    ) -> Result<Vec<u16>, CheckStop> {
        let mut sending = tokio::task::JoinSet::new();
        for request in requests {
            self.record_request(&request);
            let mut client = self.client();
            sending.spawn(async move { client.send(&request).await.map(|got| got.status) });
        }
        let mut statuses = Vec::new();
        let waiting = async {
            while let Some(sent) = sending.join_next().await {
                match sent {
                    Ok(Ok(status)) => statuses.push(status),
                    Ok(Err(why)) => return fail(format!("no response to POST: {why}")),
                    Err(_) => {
                        return Err(CheckStop::Harness(
                            "the task that sends a POST panicked".to_owned(),
                        ));
                    }
                }
            }
            Ok(())
        };
        match timeout(self.options.timeout, waiting).await {
            Ok(done) => done.map(|()| statuses),
            Err(_) => fail(format!(
                "timed out after {:?} waiting for the responses to concurrent POSTs",
                self.options.timeout
            )),
        }
    }
}
