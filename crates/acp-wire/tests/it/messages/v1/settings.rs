//! Tests of modes and config options.

use super::*;

#[test]
fn mode_messages_round_trip() {
    let request = message!("set the mode", ClientRequest::SetSessionMode);
    assert_eq!(request, SetSessionModeRequest::new("sess_01", "dig"));
    let response = message!("the mode is set", AgentResponse::SetSessionMode);
    assert_eq!(response, SetSessionModeResponse::new());
    let response = message!(
        "the mode is set, with custom data",
        AgentResponse::SetSessionMode
    );
    assert_eq!(response.meta.unwrap()["was"], "look");
    let update = update!("another mode", CurrentModeUpdate);
    assert_eq!(update, CurrentModeUpdate::new("dig"));
}

#[test]
fn config_option_messages_round_trip() {
    let request = message!("choose a value", ClientRequest::SetSessionConfigOption);
    assert_eq!(
        request,
        SetSessionConfigOptionRequest::new("sess_01", "model", "large")
    );
    let request = message!("say yes", ClientRequest::SetSessionConfigOption);
    assert_eq!(
        request,
        SetSessionConfigOptionRequest::new("sess_01", "tidy", true)
    );

    let response = message!("all options", AgentResponse::SetSessionConfigOption);
    let [mode, model, window, effort, soil] = &response.config_options[..] else {
        panic!("{:?}", response.config_options)
    };
    assert_eq!(mode.category, Some(SessionConfigOptionCategory::Mode));
    assert_eq!(mode.description.as_deref(), Some("How much may change"));
    let SessionConfigKind::Select(select) = &mode.kind else {
        panic!("{:?}", mode.kind)
    };
    assert_eq!(select.current_value.as_str(), "look");
    let SessionConfigSelectOptions::Ungrouped(options) = &select.options else {
        panic!("{:?}", select.options)
    };
    assert_eq!(options[0].description.as_deref(), Some("Changes nothing"));
    assert_eq!(options[1], SessionConfigSelectOption::new("dig", "Dig"));

    let SessionConfigKind::Select(select) = &model.kind else {
        panic!("{:?}", model.kind)
    };
    let SessionConfigSelectOptions::Grouped(groups) = &select.options else {
        panic!("{:?}", select.options)
    };
    assert_eq!(
        (groups[1].group.as_str(), groups[1].name.as_str()),
        ("thorough", "Thorough")
    );
    let values: Vec<_> = select
        .options
        .iter()
        .map(|option| option.value.as_str())
        .collect();
    assert_eq!(values, ["small", "large", "huge"]);

    assert_eq!(
        window.category,
        Some(SessionConfigOptionCategory::ModelConfig)
    );
    assert_eq!(
        window.kind,
        SessionConfigKind::Boolean {
            current_value: false
        }
    );
    assert_eq!(
        effort.category,
        Some(SessionConfigOptionCategory::ThoughtLevel)
    );
    assert_eq!(
        soil.category,
        Some(SessionConfigOptionCategory::Unknown("_garden".to_owned()))
    );
    assert_eq!(soil.meta.as_ref().unwrap()["hidden"], true);

    let update = update!("options have changed", ConfigOptionUpdate);
    assert_eq!(
        update.config_options[0].kind,
        SessionConfigKind::Boolean {
            current_value: false
        }
    );
}
