//! Which versions a program speaks.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::schema::Version;

use super::runner::Options;
use super::target::{Started, Target};
use super::verdict::Stop;
use super::wire::Answer;
use super::{AgentPlay, ClientPlay, Place};

/// A version that nobody speaks.
const NOBODYS: u16 = u16::MAX;

/// The versions that the agent speaks, by what it answers to `initialize`.
///
/// There are agents that echo whatever they are asked for. Those count as speaking version 1 alone, which is what all
/// of them speak; a check says what is wrong with it.
///
/// # Errors
/// It could not be started, or does not answer, and why.
pub async fn spoken(target: &dyn Target, options: &Options) -> Result<Vec<Version>, String> {
    if answered(target, options, NOBODYS).await? == Some(u64::from(NOBODYS)) {
        return Ok(vec![Version::V1]);
    }
    let mut spoken = Vec::new();
    for version in [Version::V1, Version::V2] {
        let number = version.number();
        if answered(target, options, number).await? == Some(u64::from(number)) {
            spoken.push(version);
        }
    }
    // What it does speak is none of ours, or it is mute: the checks of version 1 say so.
    if spoken.is_empty() {
        spoken.push(Version::V1);
    }
    Ok(spoken)
}

/// The version that the agent answers when it is asked for `number`; `None` for an error.
async fn answered(
    target: &dyn Target,
    options: &Options,
    number: u16,
) -> Result<Option<u64>, String> {
    let place = Place::new().map_err(|e| format!("no directory can be made: {e}"))?;
    let started = target.start(&place).await?;
    let version = if number == 1 {
        Version::V1
    } else {
        Version::V2
    };
    let mut play = AgentPlay::new(started, place, Arc::new(options.clone()), version);
    let mut params = play.initialize_params();
    params["protocolVersion"] = json!(number);
    let answer = play.request("initialize", params).await;
    let (mut wire, _host, process, _place) = play.into_wire();
    wire.close();
    let said = process.as_ref().map(|process| process.stderr_tail());
    Started::end(process).await;
    match answer {
        Ok(Answer::Result(said)) => Ok(said.get("protocolVersion").and_then(Value::as_u64)),
        Ok(Answer::Error { .. }) => Ok(None),
        Err(Stop::Fail(why) | Stop::Skip(why) | Stop::Harness(why)) => {
            let said = said.unwrap_or_default();
            let said = said.trim();
            if said.is_empty() {
                Err(format!("it does not answer `initialize`: {why}"))
            } else {
                Err(format!(
                    "it does not answer `initialize`: {why}; its stderr ends with\n{said}"
                ))
            }
        }
    }
}

/// The versions that the client speaks, by what it asks for in `initialize`, and whether it goes on when it is answered
/// version 1.
///
/// # Errors
/// It could not be started, or does not begin, and why.
pub async fn spoken_by_client(
    target: &dyn Target,
    options: &Options,
) -> Result<Vec<Version>, String> {
    let place = Place::new().map_err(|e| format!("no directory can be made: {e}"))?;
    let started = target.start(&place).await?;
    let mut play = ClientPlay::new(started, place, Arc::new(options.clone()), Version::V1);
    let said = play.expect("initialize").await;
    let latest = said
        .as_ref()
        .ok()
        .and_then(|(_, params)| params["protocolVersion"].as_u64());
    let goes_on = match (&said, latest) {
        (Ok((id, _)), Some(2)) => {
            let introduction = play.introduction.clone();
            play.wire.answer(id, introduction).await.is_ok()
                && play.expect("session/new").await.is_ok()
        }
        _ => false,
    };
    let (mut wire, process, _place) = play.into_wire();
    wire.close();
    Started::end(process).await;
    match (said, latest) {
        (Err(Stop::Fail(why) | Stop::Skip(why) | Stop::Harness(why)), _) => {
            Err(format!("it does not begin with `initialize`: {why}"))
        }
        (Ok(_), Some(2)) if goes_on => Ok(vec![Version::V1, Version::V2]),
        (Ok(_), Some(2)) => Ok(vec![Version::V2]),
        // Whatever else it asks for, the checks of version 1 say so.
        (Ok(_), _) => Ok(vec![Version::V1]),
    }
}
