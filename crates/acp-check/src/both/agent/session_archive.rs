//! Sessions that are archived, and taken out of the archive again. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::SchemaVersion;

use super::steps::{has, info, listed, needs_of_sessions, of_sessions, spoken};
use crate::agent_harness::AgentHarness;
use crate::agent_harness::NO_SESSION;
use crate::check::checks;
use crate::v2::agent::session_setup::ends_by;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 V2 Agent "session-archive";
    1 Must "An agent that supports archiving also supports `session/list`." => lists;
    2 Must "An archived session is listed only if archived sessions are requested." => hides;
    3 Must "With archived sessions included, the list contains both kinds." => includes;
    4 Must "With only archived sessions requested, the list contains no others." => lists_only_archived;
    5 Must "Every listed session says whether it is archived." => reports_archived;
    6 Must "An unknown archive filter fails with invalid params." => unknown_filter;
    7 Must "An unarchived session is listed again." => returns;
    8 Must "Archiving a session keeps its history." => keeps_history;
    9 Must "Archiving an archived session succeeds." => archives_twice;
    10 Must "Unarchiving a session that is not archived succeeds." => unarchives_any;
    11 Must "Archiving an unknown session fails with not found." => rejects_archive_of_unknown;
    12 Must "Unarchiving an unknown session fails with not found." => rejects_unarchive_of_unknown;
    13 Must "Archiving a session cancels its running turn." => ends_work;
}

const ARCHIVE: &str = "session/archive";
const UNARCHIVE: &str = "session/unarchive";

/// A session in which something was said, and which is listed.
async fn stored_session(play: &mut AgentHarness) -> Result<String, CheckStop> {
    needs_of_sessions(play, "archive").await?;
    let session = spoken(play).await?;
    info(&listed(play, None).await?, &session)?;
    Ok(session)
}

/// Such a session, archived.
async fn archived_session(play: &mut AgentHarness) -> Result<String, CheckStop> {
    let session = stored_session(play).await?;
    play.result(ARCHIVE, json!({"sessionId": session})).await?;
    Ok(session)
}

/// Two such sessions, of which the first is archived.
async fn archive_one_of_two(play: &mut AgentHarness) -> Result<(String, String), CheckStop> {
    let first = archived_session(play).await?;
    Ok((first, spoken(play).await?))
}

async fn lists(play: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(play, "archive").await?;
    // In version 2 whoever has sessions lists them.
    let offers = play.require_capability(&of_sessions(play, "list")).is_ok();
    require(offers || play.version() == SchemaVersion::V2, || {
        "it supports `sessionCapabilities.archive`, but not `sessionCapabilities.list`".to_owned()
    })?;
    listed(play, None).await.map(drop)
}

async fn hides(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = archived_session(play).await?;
    for filter in [None, Some("exclude")] {
        let listed = listed(play, filter).await?;
        require(!has(&listed, &session), || {
            let asked = filter.map_or("without a filter".to_owned(), |f| format!("with {f:?}"));
            format!("the archived session is still listed {asked}")
        })?;
    }
    Ok(())
}

async fn includes(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let (archived, other) = archive_one_of_two(play).await?;
    let listed = listed(play, Some("include")).await?;
    require(has(&listed, &archived), || {
        "with archived sessions included, the archived session is missing".to_owned()
    })?;
    require(has(&listed, &other), || {
        "with archived sessions included, a session that is not archived is missing".to_owned()
    })
}

async fn lists_only_archived(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let (archived, other) = archive_one_of_two(play).await?;
    let listed = listed(play, Some("only")).await?;
    require(has(&listed, &archived), || {
        "with only archived sessions, the archived session is missing".to_owned()
    })?;
    require(!has(&listed, &other), || {
        "with only archived sessions, a session that is not archived is listed".to_owned()
    })
}

async fn reports_archived(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let (archived, _) = archive_one_of_two(play).await?;
    for (filter, more) in [(None, false), (Some("include"), true)] {
        let listed = listed(play, filter).await?;
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

async fn unknown_filter(play: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(play, "archive").await?;
    let params = json!({"archived": "_acp-check/some"});
    play.expect_error("session/list", params, -32602).await
}

async fn returns(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = archived_session(play).await?;
    play.result(UNARCHIVE, json!({"sessionId": session}))
        .await?;
    let listed = listed(play, None).await?;
    require(has(&listed, &session), || {
        "the unarchived session is not listed".to_owned()
    })
}

async fn keeps_history(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = archived_session(play).await?;
    play.result(UNARCHIVE, json!({"sessionId": session}))
        .await?;
    let mut params = play.session_params();
    params["sessionId"] = json!(session);
    let method = match play.version() {
        SchemaVersion::V1 => {
            play.require_capability("/agentCapabilities/loadSession")?;
            "session/load"
        }
        SchemaVersion::V2 => {
            params["replayFrom"] = json!({"type": "start"});
            "session/resume"
        }
    };
    let before = play.messages.len();
    play.result(method, params).await?;
    let is_said = |told: &Value| {
        let kind = told["update"]["sessionUpdate"].as_str();
        kind.is_some_and(|kind| kind.starts_with("user_message"))
    };
    if play.updates_since(before).any(is_said) {
        return Ok(());
    }
    match play.version() {
        SchemaVersion::V1 => fail("the history from before archiving was not replayed"),
        SchemaVersion::V2 => skip("the agent does not support replay"),
    }
}

async fn archives_twice(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = archived_session(play).await?;
    let params = json!({"sessionId": session});
    play.result(ARCHIVE, params).await.map(drop)
}

async fn unarchives_any(play: &mut AgentHarness) -> Result<(), CheckStop> {
    let session = stored_session(play).await?;
    let params = json!({"sessionId": session});
    play.result(UNARCHIVE, params).await.map(drop)
}

async fn rejects_archive_of_unknown(play: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(play, "archive").await?;
    let params = json!({"sessionId": NO_SESSION});
    play.expect_error(ARCHIVE, params, -32002).await
}

async fn rejects_unarchive_of_unknown(play: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(play, "archive").await?;
    let params = json!({"sessionId": NO_SESSION});
    play.expect_error(UNARCHIVE, params, -32002).await
}

async fn ends_work(play: &mut AgentHarness) -> Result<(), CheckStop> {
    needs_of_sessions(play, "archive").await?;
    let session = play.session().await?;
    if play.version() == SchemaVersion::V2 {
        return ends_by(play, &session, ARCHIVE).await;
    }
    let prompt = play.long_turn(&session).await?;
    play.result(ARCHIVE, json!({"sessionId": session})).await?;
    match play.end_of(&prompt).await? {
        ReceivedResponse::Result(result) => {
            let reason = &result["stopReason"];
            // It may have come to its end just then.
            require(*reason == "cancelled" || *reason == "end_turn", || {
                format!("the turn ended with {reason}; expected \"cancelled\"")
            })
        }
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "the prompt failed with error {code}: {message}; expected \"cancelled\""
        )),
    }
}
