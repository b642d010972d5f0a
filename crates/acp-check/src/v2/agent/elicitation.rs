//! Elicitation: the agent asks the person for input.

use serde_json::{Value, json};

use crate::check::checks;
use crate::options::Task;
use crate::verdict::{Stop, fail, require, skip};
use crate::with_agent::AgentPlay;

checks! { V2 Agent "elicitation";
    1 Must "A client that offers forms alone is asked by forms alone." => forms_alone;
    2 Must "A client that offers addresses alone is asked by addresses alone." => addresses_alone;
    3 Must "A choice in a form has something to choose from." => choices;
    4 Must "A form's required fields are among its fields." => required;
}

/// What the agent elicits of a client that offers this.
async fn elicited(play: &mut AgentPlay, offered: Value) -> Result<Vec<Value>, Stop> {
    let mut params = play.initialize_params();
    params["capabilities"]["elicitation"] = offered;
    play.initialize_with(params).await?;
    let session = play.session_v2().await?;
    for task in [Task::Answer, Task::Edit] {
        play.turn_v2(&session, task).await?;
    }
    let asked = play
        .requests()
        .filter(|(method, _)| *method == "elicitation/create");
    let asked: Vec<Value> = asked.map(|(_, params)| params.clone()).collect();
    if asked.is_empty() {
        return skip("the agent elicits nothing");
    }
    Ok(asked)
}

async fn only(play: &mut AgentPlay, mode: &str) -> Result<(), Stop> {
    let asked = elicited(play, json!({mode: {}})).await?;
    match asked.iter().find(|params| params["mode"] != *mode) {
        Some(params) => fail(format!(
            "`elicitation.{mode}` was offered, and it asked in the mode {}",
            params["mode"]
        )),
        None => Ok(()),
    }
}

async fn forms_alone(play: &mut AgentPlay) -> Result<(), Stop> {
    only(play, "form").await
}

async fn addresses_alone(play: &mut AgentPlay) -> Result<(), Stop> {
    only(play, "url").await
}

/// The forms that the agent asks with.
async fn forms(play: &mut AgentPlay) -> Result<Vec<Value>, Stop> {
    let asked = elicited(play, json!({"form": {}})).await?;
    Ok(asked
        .into_iter()
        .map(|params| params["requestedSchema"].clone())
        .collect())
}

async fn choices(play: &mut AgentPlay) -> Result<(), Stop> {
    for form in forms(play).await? {
        let fields = form["properties"].as_object().into_iter().flatten();
        for (name, field) in fields {
            let lists = [
                &field["enum"],
                &field["oneOf"],
                &field["items"]["enum"],
                &field["items"]["anyOf"],
            ];
            let empty = lists
                .iter()
                .any(|list| list.as_array().is_some_and(Vec::is_empty));
            require(!empty, || {
                format!("the field {name:?} of a form is a choice of nothing")
            })?;
        }
    }
    Ok(())
}

async fn required(play: &mut AgentPlay) -> Result<(), Stop> {
    for form in forms(play).await? {
        let required = form["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            require(form["properties"].get(name).is_some(), || {
                format!("the form requires {name:?}, which is none of its fields")
            })?;
        }
    }
    Ok(())
}
