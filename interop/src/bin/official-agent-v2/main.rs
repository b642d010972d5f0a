//! An agent on stdin and stdout that is built on the official Rust SDK and speaks the draft of version 2.
//!
//! It accepts the prompts of `official-agent`, except that it reads and writes files and runs commands itself, because
//! version 2 has no methods for them. `turn.rs` lists all prompts.
//!
//! With `--auth`, it opens sessions only after `auth/login`. The auth method `key` needs no input, and `form` requests
//! input from the user. With `--store FILE`, it stores sessions in the file, so that another process can list, resume
//! and delete them.

mod sessions;
mod turn;
mod work;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v2::schema::{
    self, AgentCapabilities, AuthMethod, AuthMethodAgent, CancelSessionNotification,
    CloseSessionRequest, CloseSessionResponse, CreateElicitationRequest, DeleteSessionRequest,
    DeleteSessionResponse, ElicitationAction, ElicitationFormMode, ElicitationRequestScope,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoginAuthRequest, LoginAuthResponse, LogoutAuthRequest,
    LogoutAuthResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities,
    PromptEmbeddedContextCapabilities, PromptRequest, PromptResponse, ReplayFrom,
    ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionDeleteCapabilities,
    SessionInfo, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, StateUpdate,
    UpdateSessionNotification,
};
use agent_client_protocol::v2::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, Error, Result, Stdio, on_receive_notification, on_receive_request,
};
use clap::Parser;
use interop::{QuestionNotification, QuestionRequest, QuestionResponse};
use sessions::{OfficialAgentV2Args, OfficialV2Sessions};
use turn::{OfficialV2Turn, loudness};

#[tokio::main]
async fn main() -> Result<()> {
    let sessions = Arc::new(OfficialV2Sessions::new(OfficialAgentV2Args::parse()));
    let [
        hello,
        login,
        logout,
        new,
        resume,
        list,
        close,
        delete,
        option,
        prompt,
        cancel,
    ] = [(); 11].map(|()| Arc::clone(&sessions));
    Agent
        .v2()
        .name("official-agent-v2")
        .on_receive_request(
            async move |_: InitializeRequest,
                        responder: Responder<InitializeResponse>,
                        _: ConnectionTo<Client>| {
                responder.respond(initialize_response(&hello))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoginAuthRequest,
                        responder: Responder<LoginAuthResponse>,
                        connection: ConnectionTo<Client>| {
                let sessions = Arc::clone(&login);
                let peer = connection.clone();
                // Handlers run in the task that reads messages, so a handler that sends a request must not wait for the
                // response there.
                connection.spawn(async move {
                    let done = log_in(&request, responder.id(), &peer).await;
                    let done = done.map(|()| {
                        sessions.authenticated.store(true, Ordering::Release);
                        LoginAuthResponse::new()
                    });
                    responder.respond_with_result(done)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: LogoutAuthRequest,
                        responder: Responder<LogoutAuthResponse>,
                        _: ConnectionTo<Client>| {
                logout.authenticated.store(false, Ordering::Release);
                responder.respond(LogoutAuthResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest,
                        responder: Responder<NewSessionResponse>,
                        _: ConnectionTo<Client>| {
                if !new.may_open() {
                    return responder.respond_with_error(Error::auth_required());
                }
                let id = new.new_id();
                let options = new.open(&id, request.cwd.into_inner(), Vec::new());
                responder.respond(NewSessionResponse::new(id).config_options(options))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest,
                        responder: Responder<ResumeSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let id = request.session_id;
                let Some(stored) = resume.stored()?.remove(&id) else {
                    return responder.respond_with_error(not_found_error(&id));
                };
                let replayed = match request.replay_from {
                    Some(ReplayFrom::Start(_)) => stored.history.clone(),
                    _ => Vec::new(),
                };
                let options = resume.open(&id, request.cwd.into_inner(), stored.history);
                // Send the replay first, then the current state, and then the response.
                let present = StateUpdate::Idle(schema::IdleStateUpdate::new());
                let present = schema::SessionUpdate::StateUpdate(present);
                for update in replayed.into_iter().chain([present]) {
                    let update = UpdateSessionNotification::new(id.clone(), update);
                    connection.send_notification(update)?;
                }
                responder.respond(ResumeSessionResponse::new().config_options(options))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest,
                        responder: Responder<ListSessionsResponse>,
                        _: ConnectionTo<Client>| {
                responder.respond(list_page(&list, &request)?)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest,
                        responder: Responder<CloseSessionResponse>,
                        connection: ConnectionTo<Client>| {
                let closed = close.close(&request.session_id);
                connection.spawn(async move {
                    closed.await;
                    responder.respond(CloseSessionResponse::new())
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: DeleteSessionRequest,
                        responder: Responder<DeleteSessionResponse>,
                        _: ConnectionTo<Client>| {
                delete.change_stored(|stored| drop(stored.remove(&request.session_id)))?;
                responder.respond(DeleteSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest,
                        responder: Responder<SetSessionConfigOptionResponse>,
                        _: ConnectionTo<Client>| {
                let set = option.set(&request.session_id, &request.config_id.0, &request.value);
                responder.respond_with_result(set.map(SetSessionConfigOptionResponse::new))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest,
                        responder: Responder<PromptResponse>,
                        connection: ConnectionTo<Client>| {
                let Some(waiting) = OfficialV2Turn::wait(&prompt, &request.session_id, &connection)
                else {
                    return responder.respond_with_error(not_found_error(&request.session_id));
                };
                let withdrawn = responder.cancellation();
                connection.spawn(async move {
                    // While another turn of the session is running, the prompt is queued.
                    let turn = tokio::select! {
                        turn = waiting => turn,
                        () = withdrawn.cancelled() => None,
                    };
                    let Some(turn) = turn else {
                        return responder.respond_with_error(Error::request_cancelled());
                    };
                    let message = turn.new_id("message");
                    responder.respond(PromptResponse::new(message.clone()))?;
                    turn.run(message, request.prompt).await
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: QuestionRequest,
                        responder: Responder<QuestionResponse>,
                        _: ConnectionTo<Client>| {
                responder.respond(QuestionResponse {
                    answer: format!("the official agent heard {}", request.question),
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |told: QuestionNotification, connection: ConnectionTo<Client>| {
                // Send it back, so that the sender can see that it has arrived.
                connection.send_notification(QuestionNotification {
                    what: format!("the official agent was told {}", told.what),
                })
            },
            on_receive_notification!(),
        )
        .on_receive_notification(
            async move |notification: CancelSessionNotification, _: ConnectionTo<Client>| {
                cancel.cancel(&notification.session_id);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(Stdio::new())
        .await
}

fn initialize_response(sessions: &OfficialV2Sessions) -> InitializeResponse {
    let methods = [("key", "A key"), ("form", "A form")]
        .map(|(id, name)| AuthMethod::Agent(AuthMethodAgent::new(id, name)));
    let methods = match sessions.args.auth {
        true => methods.to_vec(),
        false => Vec::new(),
    };
    let prompts =
        PromptCapabilities::new().embedded_context(PromptEmbeddedContextCapabilities::new());
    let mut session = SessionCapabilities::new().prompt(prompts);
    if sessions.args.store.is_some() {
        session = session.delete(SessionDeleteCapabilities::new());
    }
    let this = Implementation::new("official-agent-v2", "1.0");
    InitializeResponse::new(ProtocolVersion::V2, this)
        .capabilities(AgentCapabilities::new().session(session))
        .auth_methods(methods)
}

async fn log_in(
    request: &LoginAuthRequest,
    id: &schema::RequestId,
    peer: &ConnectionTo<Client>,
) -> Result<()> {
    match &*request.method_id.0 {
        "key" => Ok(()),
        "form" => {
            // There is no session yet, so the form belongs to the request.
            let form =
                ElicitationFormMode::new(ElicitationRequestScope::new(id.clone()), loudness());
            let asked = CreateElicitationRequest::new(
                schema::ElicitationMode::Form(form),
                "How loud may it be?",
            );
            match peer.send_request(asked).block_task().await?.action {
                ElicitationAction::Accept(_) => Ok(()),
                _ => Err(Error::auth_required()),
            }
        }
        _ => Err(Error::invalid_params()),
    }
}

/// Returns one session per page, so that the client has to request several pages.
fn list_page(
    sessions: &OfficialV2Sessions,
    request: &ListSessionsRequest,
) -> Result<ListSessionsResponse> {
    let mut stored: Vec<_> = sessions.stored()?.into_iter().collect();
    stored.retain(|(_, stored)| {
        let cwd = request.cwd.clone().map(schema::AbsolutePath::into_inner);
        cwd.is_none_or(|cwd| cwd == stored.cwd)
    });
    stored.sort_by_key(|(id, _)| id.to_string());
    let at = match &request.cursor {
        Some(cursor) => cursor.0.parse().map_err(|_| Error::invalid_params())?,
        None => 0,
    };
    let next = (at + 1 < stored.len()).then(|| (at + 1).to_string().into());
    let infos = stored.into_iter().skip(at).take(1);
    let infos = infos.map(|(id, stored)| SessionInfo::new(id, stored.cwd).title(stored.title));
    Ok(ListSessionsResponse::new(infos.collect()).next_cursor(next))
}

fn not_found_error(id: &schema::SessionId) -> Error {
    schema::Error::session_not_found(id.clone()).into()
}
