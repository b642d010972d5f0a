//! Sessions that are archived, and taken out of the archive again. Unstable.

use serde_json::{Value, json};

use acp_rules::schema::Version;

use super::steps::{has, info, listed, needs_of_sessions, of_sessions, spoken};
use crate::check::checks;
use crate::v2::agent::session_setup::ends_by;
use crate::verdict::{Stop, fail, require, skip};
use crate::wire::Answer;
use crate::with_agent::AgentPlay;
use crate::with_agent::NO_SESSION;

checks! { V1 V2 Agent "session-archive";
    1 Must "An agent that archives sessions also lists them." => lists;
    2 Must "A session that was archived is not listed, unless the archived ones are asked for." => hides;
    3 Must "Asked for the archived sessions as well, the list has both." => includes;
    4 Must "Asked for the archived sessions alone, the list has no others." => only;
    5 Must "Every session that is listed says whether it is archived." => says_so;
    6 Must "A filter of archived sessions that the agent does not know is refused as wrong params." => unknown_filter;
    7 Must "A session that was taken out of the archive is listed again." => returns;
    8 Must "Archiving a session keeps what was said in it." => keeps_history;
    9 Must "Archiving a session that is archived succeeds." => archives_twice;
    10 Must "Taking out of the archive what is not in it succeeds." => unarchives_any;
    11 Must "A session that there is not cannot be archived: that is refused as not found." => archive_of_none;
    12 Must "A session that there is not cannot be taken out of the archive: that is refused as not found." => unarchive_of_none;
    13 Must "Archiving a session ends what the agent is doing in it." => ends_work;
}

const ARCHIVE: &str = "session/archive";
const UNARCHIVE: &str = "session/unarchive";

/// A session in which something was said, and which is listed.
async fn known(play: &mut AgentPlay) -> Result<String, Stop> {
    needs_of_sessions(play, "archive").await?;
    let session = spoken(play).await?;
    info(&listed(play, None).await?, &session)?;
    Ok(session)
}

/// Such a session, archived.
async fn archived(play: &mut AgentPlay) -> Result<String, Stop> {
    let session = known(play).await?;
    play.result(ARCHIVE, json!({"sessionId": session})).await?;
    Ok(session)
}

/// Two such sessions, of which the first is archived.
async fn one_of_two(play: &mut AgentPlay) -> Result<(String, String), Stop> {
    let first = archived(play).await?;
    Ok((first, spoken(play).await?))
}

async fn lists(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "archive").await?;
    // In version 2 whoever has sessions lists them.
    let offers = play.needs(&of_sessions(play, "list")).is_ok();
    require(offers || play.version() == Version::V2, || {
        "it offers `sessionCapabilities.archive`, and not `sessionCapabilities.list`".to_owned()
    })?;
    listed(play, None).await.map(drop)
}

async fn hides(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = archived(play).await?;
    for filter in [None, Some("exclude")] {
        let listed = listed(play, filter).await?;
        require(!has(&listed, &session), || {
            let asked = filter.map_or("without a filter".to_owned(), |f| format!("with {f:?}"));
            format!("the session was archived, and is still listed {asked}")
        })?;
    }
    Ok(())
}

async fn includes(play: &mut AgentPlay) -> Result<(), Stop> {
    let (archived, other) = one_of_two(play).await?;
    let listed = listed(play, Some("include")).await?;
    require(has(&listed, &archived), || {
        "asked to include the archived sessions, it does not list the one that is".to_owned()
    })?;
    require(has(&listed, &other), || {
        "asked to include the archived sessions, it does not list one that is not archived"
            .to_owned()
    })
}

async fn only(play: &mut AgentPlay) -> Result<(), Stop> {
    let (archived, other) = one_of_two(play).await?;
    let listed = listed(play, Some("only")).await?;
    require(has(&listed, &archived), || {
        "asked for the archived sessions alone, it does not list the one that is".to_owned()
    })?;
    require(!has(&listed, &other), || {
        "asked for the archived sessions alone, it lists one that is not".to_owned()
    })
}

async fn says_so(play: &mut AgentPlay) -> Result<(), Stop> {
    let (archived, _) = one_of_two(play).await?;
    for (filter, more) in [(None, false), (Some("include"), true)] {
        let listed = listed(play, filter).await?;
        for info in &listed {
            let is_archived = more && info["sessionId"] == *archived;
            require(info["archived"] == is_archived, || {
                let is = if is_archived { "is" } else { "is not" };
                format!(
                    "the session {} {is} archived, and its `archived` is {}",
                    info["sessionId"], info["archived"]
                )
            })?;
        }
    }
    Ok(())
}

async fn unknown_filter(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "archive").await?;
    let params = json!({"archived": "_acp-check/some"});
    play.is_refused("session/list", params, -32602).await
}

async fn returns(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = archived(play).await?;
    play.result(UNARCHIVE, json!({"sessionId": session}))
        .await?;
    let listed = listed(play, None).await?;
    require(has(&listed, &session), || {
        "the session was taken out of the archive, and is not listed".to_owned()
    })
}

async fn keeps_history(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = archived(play).await?;
    play.result(UNARCHIVE, json!({"sessionId": session}))
        .await?;
    let mut params = play.session_params();
    params["sessionId"] = json!(session);
    let method = match play.version() {
        Version::V1 => {
            play.needs("/agentCapabilities/loadSession")?;
            "session/load"
        }
        Version::V2 => {
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
        Version::V1 => fail("what was said before the session was archived was not replayed"),
        Version::V2 => skip("the agent replays nothing"),
    }
}

async fn archives_twice(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = archived(play).await?;
    let params = json!({"sessionId": session});
    play.result(ARCHIVE, params).await.map(drop)
}

async fn unarchives_any(play: &mut AgentPlay) -> Result<(), Stop> {
    let session = known(play).await?;
    let params = json!({"sessionId": session});
    play.result(UNARCHIVE, params).await.map(drop)
}

async fn archive_of_none(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "archive").await?;
    let params = json!({"sessionId": NO_SESSION});
    play.is_refused(ARCHIVE, params, -32002).await
}

async fn unarchive_of_none(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "archive").await?;
    let params = json!({"sessionId": NO_SESSION});
    play.is_refused(UNARCHIVE, params, -32002).await
}

async fn ends_work(play: &mut AgentPlay) -> Result<(), Stop> {
    needs_of_sessions(play, "archive").await?;
    let session = play.session().await?;
    if play.version() == Version::V2 {
        return ends_by(play, &session, ARCHIVE).await;
    }
    let prompt = play.long_turn(&session).await?;
    play.result(ARCHIVE, json!({"sessionId": session})).await?;
    match play.end_of(&prompt).await? {
        Answer::Result(result) => {
            let reason = &result["stopReason"];
            // It may have come to its end just then.
            require(*reason == "cancelled" || *reason == "end_turn", || {
                format!("the turn ended as {reason}, and not as \"cancelled\"")
            })
        }
        Answer::Error { code, message, .. } => fail(format!(
            "the prompt was answered with error {code}: {message}; and not as \"cancelled\""
        )),
    }
}
