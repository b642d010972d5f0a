//! Sets options of a session that the agent may not offer yet.
//!
//! Some agents learn which values are available, such as the models on a server, only after the session has been opened.

use std::time::Duration;

use acp::client::ClientSession;
use acp::v1::{SessionConfigId, SessionConfigOptionCategory};
use tokio::time::Instant;

/// How long to wait for the agent to offer an option.
const OFFER_TIMEOUT: Duration = Duration::from_secs(3);

/// Sets a config option once the agent offers it. Waits for up to 3 seconds.
///
/// # Errors
/// The agent does not offer the option or the value, the agent returned an error, or the connection has ended.
pub async fn set_option_when_offered(
    session: &ClientSession,
    id: &str,
    value: &str,
) -> acp::Result<()> {
    let deadline = Instant::now() + OFFER_TIMEOUT;
    let mut seen = 0;
    loop {
        let error = match session.set_config_option(id, value).await {
            Err(error @ (acp::Error::Unsupported { .. } | acp::Error::InvalidRequest(_))) => error,
            set => return set,
        };
        let changed = session.thread().changed(seen);
        match tokio::time::timeout_at(deadline, changed).await {
            Ok(revision) => seen = revision,
            Err(_) => return Err(error),
        }
    }
}

/// Sets the model once the agent offers a choice of models: a config option of the category `model`. Waits for up to 3
/// seconds. Returns `false` if the agent offers none.
///
/// # Errors
/// The agent does not offer this model, the agent returned an error, or the connection has ended.
pub async fn set_model_when_offered(session: &ClientSession, model: &str) -> acp::Result<bool> {
    let deadline = Instant::now() + OFFER_TIMEOUT;
    let mut seen = 0;
    loop {
        if let Some(option) = find_model_option(session) {
            set_option_when_offered(session, option.as_str(), model).await?;
            return Ok(true);
        }
        let changed = session.thread().changed(seen);
        match tokio::time::timeout_at(deadline, changed).await {
            Ok(revision) => seen = revision,
            Err(_) => return Ok(false),
        }
    }
}

fn find_model_option(session: &ClientSession) -> Option<SessionConfigId> {
    session.thread().read(|thread| {
        let category = Some(SessionConfigOptionCategory::Model);
        let mut options = thread.config_options().iter();
        options
            .find(|option| option.category == category)
            .map(|option| option.id.clone())
    })
}
