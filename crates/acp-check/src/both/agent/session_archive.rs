//! Checks how an agent archives and unarchives sessions. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::steps::{
    contains_session, find_session, list_sessions, new_session_with_turn,
    require_session_capability, session_capability,
};
use crate::agent_harness::AgentHarness;
use crate::agent_harness::UNKNOWN_SESSION;
use crate::check::checks;
use crate::v2::agent::session_setup::require_turn_ended;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 V2 Agent "session-archive";
    1 Must "An agent that supports archiving also supports `session/list`." => supports_session_list, shared;
    2 Must "An archived session is listed only if archived sessions are requested." => hides_archived_session, shared;
    3 Must "If archived sessions are included, the list contains archived and other sessions." => includes_archived_sessions, shared;
    4 Must "If only archived sessions are requested, the list contains no other sessions." => lists_only_archived_sessions, shared;
    5 Must "Every listed session indicates whether it is archived." => reports_archived_state, shared;
    6 Must "An unknown archive filter fails with an invalid-params error." => rejects_unknown_filter, shared;
    7 Must "An unarchived session is listed again." => lists_unarchived_session, shared;
    8 Must "Archiving a session keeps its history." => keeps_history, shared;
    9 Must "Archiving a session that is already archived succeeds." => accepts_archiving_twice, shared;
    10 Must "Unarchiving a session that is not archived succeeds." => accepts_unarchiving_unarchived_session, shared;
    11 Must "Archiving an unknown session fails with a not-found error." => rejects_archiving_unknown_session, shared;
    12 Must "Unarchiving an unknown session fails with a not-found error." => rejects_unarchiving_unknown_session, shared;
    13 Must "Archiving a session cancels its running turn." => cancels_running_turn, shared;
}

const ARCHIVE_METHOD: &str = "session/archive";
const UNARCHIVE_METHOD: &str = "session/unarchive";

/// Opens a session, runs one turn, and returns the session's id. Skips the check if the session is not listed.
async fn create_listed_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    require_session_capability(harness, "archive").await?;
    let session = new_session_with_turn(harness).await?;
    find_session(&list_sessions(harness, None).await?, &session)?;
    Ok(session)
}

/// Creates an archived session and returns its id.
async fn create_archived_session(harness: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = create_listed_session(harness).await?;
    harness
        .request_result(ARCHIVE_METHOD, json!({"sessionId": session}))
        .await?;
    Ok(session)
}

/// Creates two sessions, archives the first, and returns both ids.
async fn archive_one_of_two(harness: &mut AgentHarness) -> Result<(String, String), CheckStop> {
    let first = create_archived_session(harness).await?;
    Ok((first, new_session_with_turn(harness).await?))
}

async fn supports_session_list(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "archive").await?;
    // In version 2, an agent that supports sessions also supports listing them.
    let offers = harness
        .require_capability(&session_capability(harness, "list"))
        .is_ok();
    require(offers || harness.version() == SchemaVersion::V2, || {
        "the agent supports `sessionCapabilities.archive`, but not `sessionCapabilities.list`"
            .to_owned()
    })?;
    list_sessions(harness, None).await.map(drop)
}

async fn hides_archived_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_archived_session(harness).await?;
    for filter in [None, Some("exclude")] {
        let listed = list_sessions(harness, filter).await?;
        require(!contains_session(&listed, &session), || {
            let filter = filter.map_or("without a filter".to_owned(), |f| format!("with {f:?}"));
            format!("the archived session is still listed {filter}")
        })?;
    }
    Ok(())
}

async fn includes_archived_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (archived, other) = archive_one_of_two(harness).await?;
    let listed = list_sessions(harness, Some("include")).await?;
    require(contains_session(&listed, &archived), || {
        "the list that includes archived sessions is missing the archived session".to_owned()
    })?;
    require(contains_session(&listed, &other), || {
        "the list that includes archived sessions is missing an unarchived session".to_owned()
    })
}

async fn lists_only_archived_sessions(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (archived, other) = archive_one_of_two(harness).await?;
    let listed = list_sessions(harness, Some("only")).await?;
    require(contains_session(&listed, &archived), || {
        "with only archived sessions requested, the archived session is missing".to_owned()
    })?;
    require(!contains_session(&listed, &other), || {
        "with only archived sessions requested, a session that is not archived is listed".to_owned()
    })
}

async fn reports_archived_state(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let (archived, _) = archive_one_of_two(harness).await?;
    for (filter, more) in [(None, false), (Some("include"), true)] {
        let listed = list_sessions(harness, filter).await?;
        for info in &listed {
            let is_archived = more && info["sessionId"] == *archived;
            require(info["archived"] == is_archived, || {
                let is = if is_archived { "is" } else { "is not" };
                format!(
                    "session {} {is} archived, but its `archived` is {}",
                    info["sessionId"], info["archived"]
                )
            })?;
        }
    }
    Ok(())
}

async fn rejects_unknown_filter(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "archive").await?;
    let params = json!({"archived": "_acp-check/some"});
    harness.request_error("session/list", params, -32602).await
}

async fn lists_unarchived_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_archived_session(harness).await?;
    harness
        .request_result(UNARCHIVE_METHOD, json!({"sessionId": session}))
        .await?;
    let listed = list_sessions(harness, None).await?;
    require(contains_session(&listed, &session), || {
        "the unarchived session is not listed".to_owned()
    })
}

async fn keeps_history(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_archived_session(harness).await?;
    harness
        .request_result(UNARCHIVE_METHOD, json!({"sessionId": session}))
        .await?;
    let mut params = harness.session_params();
    params["sessionId"] = json!(session);
    let method = match harness.version() {
        SchemaVersion::V1 => {
            harness.require_capability("/agentCapabilities/loadSession")?;
            "session/load"
        }
        SchemaVersion::V2 => {
            params["replayFrom"] = json!({"type": "start"});
            "session/resume"
        }
    };
    let before = harness.messages.len();
    harness.request_result(method, params).await?;
    let is_said = |reported: &Value| {
        let kind = reported["update"]["sessionUpdate"].as_str();
        kind.is_some_and(|kind| kind.starts_with("user_message"))
    };
    if harness.updates_since(before).any(is_said) {
        return Ok(());
    }
    match harness.version() {
        SchemaVersion::V1 => fail("the history from before archiving was not replayed"),
        SchemaVersion::V2 => skip("the agent does not support replay"),
    }
}

async fn accepts_archiving_twice(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = create_archived_session(harness).await?;
    let params = json!({"sessionId": session});
    harness
        .request_result(ARCHIVE_METHOD, params)
        .await
        .map(drop)
}

async fn accepts_unarchiving_unarchived_session(
    harness: &mut AgentHarness,
) -> Result<(), CheckStop> {
    let session = create_listed_session(harness).await?;
    let params = json!({"sessionId": session});
    harness
        .request_result(UNARCHIVE_METHOD, params)
        .await
        .map(drop)
}

async fn rejects_archiving_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "archive").await?;
    let params = json!({"sessionId": UNKNOWN_SESSION});
    harness.request_error(ARCHIVE_METHOD, params, -32002).await
}

async fn rejects_unarchiving_unknown_session(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "archive").await?;
    let params = json!({"sessionId": UNKNOWN_SESSION});
    harness
        .request_error(UNARCHIVE_METHOD, params, -32002)
        .await
}

async fn cancels_running_turn(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    require_session_capability(harness, "archive").await?;
    let session = harness.new_session().await?;
    if harness.version() == SchemaVersion::V2 {
        return require_turn_ended(harness, &session, ARCHIVE_METHOD).await;
    }
    let prompt = harness.begin_long_turn(&session).await?;
    harness
        .request_result(ARCHIVE_METHOD, json!({"sessionId": session}))
        .await?;
    match harness.prompt_response(&prompt).await? {
        ReceivedResponse::Result(result) => {
            let reason = &result["stopReason"];
            // The turn may have ended at that moment.
            require(*reason == "cancelled" || *reason == "end_turn", || {
                format!("the turn ended with {reason}; expected \"cancelled\"")
            })
        }
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "the prompt failed with error {code}: {message}; expected \"cancelled\""
        )),
    }
}
