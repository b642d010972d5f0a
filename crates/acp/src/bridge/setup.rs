//! Translates session setup, auth methods and commands, which differ slightly between versions.

use acp_wire::RawObject;
use serde_json::value::RawValue;

use super::json::{empty_list, list_items, to_object, to_raw_value};

/// Applies `change` to each object in the list at `key`, if there is one.
fn map_items(params: &mut RawObject, key: &str, change: impl Fn(RawObject) -> RawObject) {
    if let Some(list) = params.field::<Vec<Box<RawValue>>>(key) {
        let list: Vec<Box<RawValue>> = list
            .into_iter()
            .map(|item| {
                let read = to_object(Some(&item));
                // Items that are not objects pass unchanged, and the receiver rejects them.
                if read.is_empty() {
                    item
                } else {
                    to_raw_value(&change(read))
                }
            })
            .collect();
        params.set(key, to_raw_value(&list));
    }
}

fn type_tag(object: &RawObject) -> Option<String> {
    object.field("type")
}

/// Converts MCP servers to version 1, where stdio servers have no type and empty lists are written out.
pub(super) fn servers_to_v1(params: &mut RawObject) {
    if !params.has("mcpServers") {
        params.set("mcpServers", empty_list());
    }
    map_items(params, "mcpServers", |mut server| {
        let lists: &[&str] = match type_tag(&server).as_deref() {
            Some("stdio") | None => {
                server = server.without(&["type"]);
                &["args", "env"]
            }
            Some("http" | "sse") => &["headers"],
            Some(_) => &[],
        };
        for list in lists {
            if !server.has(list) {
                server.set(list, empty_list());
            }
        }
        server
    });
}

/// Converts MCP servers to version 2, where every server has a type.
pub(super) fn servers_to_v2(params: &mut RawObject) {
    map_items(params, "mcpServers", |server| {
        if server.has("type") {
            return server;
        }
        let mut typed = object! { "type": "stdio" };
        for (key, value) in server.iter().filter(|(key, _)| *key != "type") {
            typed.push(key.to_owned(), value.to_owned());
        }
        typed
    });
}

/// Converts auth methods to version 2.
pub(super) fn auth_methods_to_v2(result: &mut RawObject) {
    if !result.has("authMethods") {
        result.retain(|key, _| key != "authMethods");
    }
    map_items(result, "authMethods", |method| {
        let mut method = method.rename("id", "methodId");
        if !method.has("type") {
            method.set("type", to_raw_value("agent"));
        }
        let env = to_object(method.get("env"));
        if method.has("env") && list_items(&method, "env").is_empty() {
            let env: Vec<RawObject> = env
                .iter()
                .map(|(name, value)| object! { "name": name, "value": value })
                .collect();
            method.set("env", to_raw_value(&env));
        }
        method
    });
}

/// Converts auth methods to version 1. Terminal auth methods are included only if `terminal` is `true`.
pub(super) fn auth_methods_to_v1(result: &mut RawObject, terminal: bool) {
    let methods: Vec<Box<RawValue>> = list_items(result, "authMethods")
        .into_iter()
        .filter(|method| {
            terminal || type_tag(&to_object(Some(method))).as_deref() != Some("terminal")
        })
        .collect();
    result.set("authMethods", to_raw_value(&methods));
    map_items(result, "authMethods", |method| {
        let mut method = method.rename("methodId", "id");
        match type_tag(&method).as_deref() {
            Some("agent") => method = method.without(&["type"]),
            Some("terminal") => {
                let mut env = RawObject::default();
                for variable in method.field::<Vec<RawObject>>("env").unwrap_or_default() {
                    if let (Some(name), Some(value)) =
                        (variable.field::<String>("name"), variable.get("value"))
                    {
                        env.push(name, value.to_owned());
                    }
                }
                method.retain(|key, _| key != "env");
                if !env.is_empty() {
                    method.push("env".to_owned(), to_raw_value(&env));
                }
            }
            _ => {}
        }
        method
    });
}

/// Converts commands to version 2.
pub(super) fn commands_to_v2(update: &mut RawObject) {
    map_items(update, "availableCommands", |mut command| {
        if !command.has("type") {
            command.set("type", to_raw_value("command"));
        }
        if command.has("input") {
            let mut input = to_object(command.get("input"));
            if !input.has("type") {
                input.set("type", to_raw_value("text"));
                command.set("input", to_raw_value(&input));
            }
        }
        command
    });
}

/// Converts commands to version 1, omitting types that version 1 does not have.
pub(super) fn commands_to_v1(update: &mut RawObject) {
    let known = |command: &RawValue| {
        let type_ = type_tag(&to_object(Some(command)));
        matches!(type_.as_deref(), None | Some("command"))
    };
    let commands: Vec<Box<RawValue>> = list_items(update, "availableCommands")
        .into_iter()
        .filter(|command| known(command))
        .collect();
    update.set("availableCommands", to_raw_value(&commands));
    map_items(update, "availableCommands", |command| {
        let mut command = command.without(&["type"]);
        if command.has("input") {
            let input = to_object(command.get("input"));
            if matches!(type_tag(&input).as_deref(), None | Some("text")) {
                command.set("input", to_raw_value(&input.without(&["type"])));
            } else {
                command = command.without(&["input"]);
            }
        }
        command
    });
}
