//! The parts of the correct agent that are in the unstable schema but not in the library. They are implemented by a
//! layer in front of the library's agent, which responds on its behalf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::mutants::changes::result_line;
use crate::mutants::layer::{InterceptedMessage, LayerLine, Mutation};

/// The texts of system prompts, by session.
pub(crate) type SystemPrompts = Arc<Mutex<HashMap<String, String>>>;

const INVALID_PARAMS: i64 = -32602;
const NOT_FOUND: i64 = -32002;

/// The state of a session in this layer.
#[derive(Default)]
struct SessionRecord {
    open: bool,
    archived: bool,
    /// The most recently reported state, in version 2.
    state: Option<Value>,
}

/// A pending request, with the params that its response depends on.
enum UnstableRequest {
    /// A request to list sessions, with its archive filter.
    List(String),
    /// A request to open a session, with its system prompt and the session id, if known.
    Session(Option<String>, Option<String>),
}

struct UnstablePeer {
    version: u64,
    sessions: HashMap<String, SessionRecord>,
    asked: HashMap<String, UnstableRequest>,
    logged_in: bool,
    providers: Vec<Value>,
    system_prompts: SystemPrompts,
}

/// Returns the layer that adds the unstable parts to an agent without them.
pub(crate) fn into_mutation(system_prompts: SystemPrompts) -> Mutation {
    let mut unstable = UnstablePeer {
        version: 1,
        sessions: HashMap::new(),
        asked: HashMap::new(),
        logged_in: true,
        providers: vec![
            json!({"providerId": "main", "supported": ["anthropic", "openai"], "required": true,
                "current": {"apiType": "anthropic", "baseUrl": "https://example.org/main"}}),
            json!({"providerId": "second", "supported": ["openai"], "required": false}),
        ],
        system_prompts,
    };
    Box::new(move |passing| {
        if !passing.said && !passing.answers {
            unstable.handle_incoming(passing);
        } else if passing.said && passing.answers {
            unstable.handle_response(passing);
        } else if passing.is_outgoing("session/update") {
            unstable.handle_notification(&passing);
        }
    })
}

/// The code and the data of an error.
type ErrorReply = (i64, Value);

impl UnstablePeer {
    fn handle_incoming(&mut self, passing: InterceptedMessage<'_>) {
        let Some(message) = passing.message else {
            return;
        };
        let answered = match passing.method {
            "session/archive" => self.archive(message),
            "session/unarchive" => self.unarchive(&message["params"]).map(Some),
            "session/status" => self.session_status(&message["params"]).map(Some),
            "session/list" => self.list_sessions(message),
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                self.open_session(message)
            }
            "session/close" | "session/delete" => {
                self.close_session(passing.method, &message["params"])
            }
            "auth/status" => Ok(Some(self.auth_status())),
            "providers/list" => Ok(Some(json!({"providers": self.providers}))),
            "providers/set" => self.set_provider(&message["params"]).map(Some),
            "providers/disable" => self.disable_provider(&message["params"]).map(Some),
            _ => Ok(None),
        };
        let answer = match answered {
            Ok(None) => return,
            Ok(Some(answer)) => result_line(message, answer),
            Err((code, data)) => {
                let error = json!({"code": code, "message": "no", "data": data});
                LayerLine::Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
            }
        };
        *passing.message = None;
        passing.back.push(answer);
    }

    fn find_session(&mut self, params: &Value) -> Result<&mut SessionRecord, ErrorReply> {
        let id = params["sessionId"].as_str().unwrap_or_default();
        let refused = (NOT_FOUND, json!({"sessionId": id}));
        self.sessions.get_mut(id).ok_or(refused)
    }

    /// Handles requests to archive a session. Closes the session first if it is open.
    fn archive(&mut self, message: &mut Value) -> Result<Option<Value>, ErrorReply> {
        let known = self.find_session(&message["params"])?;
        known.archived = true;
        if std::mem::take(&mut known.open) {
            message["method"] = json!("session/close");
            return Ok(None);
        }
        Ok(Some(json!({})))
    }

    fn unarchive(&mut self, params: &Value) -> Result<Value, ErrorReply> {
        self.find_session(params)?.archived = false;
        Ok(json!({}))
    }

    fn session_status(&mut self, params: &Value) -> Result<Value, ErrorReply> {
        let version = self.version;
        let known = self.find_session(params)?;
        let status = if known.open { "open" } else { "saved" };
        let mut answer = json!({"status": status});
        if known.open && version == 2 {
            let state = known.state.clone();
            answer["state"] = state.unwrap_or_else(|| json!({"state": "idle"}));
        }
        Ok(answer)
    }

    fn list_sessions(&mut self, message: &mut Value) -> Result<Option<Value>, ErrorReply> {
        let params = message["params"].as_object_mut();
        let filter = params.and_then(|params| params.remove("archived"));
        let filter = match filter.unwrap_or_default() {
            Value::Null => "exclude".to_owned(),
            Value::String(filter) if ["exclude", "include", "only"].contains(&&*filter) => filter,
            _ => return Err((INVALID_PARAMS, Value::Null)),
        };
        let id = message["id"].to_string();
        self.asked.insert(id, UnstableRequest::List(filter));
        Ok(None)
    }

    fn open_session(&mut self, message: &mut Value) -> Result<Option<Value>, ErrorReply> {
        let params = message["params"].as_object_mut();
        let prompt = params.and_then(|params| params.remove("systemPrompt"));
        let text = match prompt.unwrap_or_default() {
            Value::Null => None,
            prompt => Some(applicable_text(&prompt).ok_or((INVALID_PARAMS, Value::Null))?),
        };
        let session = match requested_session_id(message) {
            Some(session) if message["method"] != "session/fork" => Some(session),
            _ => None,
        };
        let id = message["id"].to_string();
        self.asked
            .insert(id, UnstableRequest::Session(text, session));
        Ok(None)
    }

    fn close_session(&mut self, method: &str, params: &Value) -> Result<Option<Value>, ErrorReply> {
        if method == "session/delete" {
            self.sessions
                .remove(params["sessionId"].as_str().unwrap_or_default());
        } else if let Ok(known) = self.find_session(params) {
            known.open = false;
        }
        Ok(None)
    }

    fn auth_status(&self) -> Value {
        if self.logged_in {
            let accounts = json!([{"label": "Check", "active": true, "name": "Nobody"}]);
            json!({"state": "authenticated", "accounts": accounts})
        } else {
            json!({"state": "unauthenticated"})
        }
    }

    fn find_provider(&mut self, params: &Value) -> Option<&mut Value> {
        let mut providers = self.providers.iter_mut();
        providers.find(|provider| provider["providerId"] == params["providerId"])
    }

    fn set_provider(&mut self, params: &Value) -> Result<Value, ErrorReply> {
        let refused = (INVALID_PARAMS, Value::Null);
        let Some(provider) = self.find_provider(params) else {
            return Err(refused);
        };
        let supported = provider["supported"].as_array();
        if !supported.is_some_and(|supported| supported.contains(&params["apiType"])) {
            return Err(refused);
        }
        provider["current"] = json!({"apiType": params["apiType"], "baseUrl": params["baseUrl"]});
        Ok(json!({}))
    }

    fn disable_provider(&mut self, params: &Value) -> Result<Value, ErrorReply> {
        match self.find_provider(params) {
            Some(provider) if provider["required"] == true => Err((INVALID_PARAMS, Value::Null)),
            Some(provider) => {
                provider["current"] = Value::Null;
                Ok(json!({}))
            }
            None => Ok(json!({})),
        }
    }

    fn handle_response(&mut self, passing: InterceptedMessage<'_>) {
        let Some(message) = passing.message else {
            return;
        };
        let asked = self.asked.remove(&message["id"].to_string());
        let Some(result) = message.get_mut("result") else {
            return;
        };
        match (passing.method, asked) {
            ("initialize", _) => self.add_capabilities(result),
            ("authenticate" | "auth/login", _) => self.logged_in = true,
            ("logout" | "auth/logout", _) => self.logged_in = false,
            (_, Some(UnstableRequest::List(filter))) => self.filter_listed(result, &filter),
            (_, Some(UnstableRequest::Session(prompt, session))) => {
                let opened = result["sessionId"].as_str().map(str::to_owned);
                let Some(session) = session.or(opened) else {
                    return;
                };
                if let Some(prompt) = prompt {
                    let mut prompts = self.system_prompts.lock().unwrap();
                    prompts.insert(session.clone(), prompt);
                }
                self.sessions.entry(session).or_default().open = true;
            }
            _ => {}
        }
    }

    fn add_capabilities(&mut self, result: &mut Value) {
        self.version = result["protocolVersion"].as_u64().unwrap_or(1);
        let (agent, sessions) = match self.version {
            1 => ("agentCapabilities", "sessionCapabilities"),
            _ => ("capabilities", "session"),
        };
        let offered = &mut result[agent];
        offered["auth"]["status"] = json!({});
        offered["providers"] = json!({});
        let sessions = &mut offered[sessions];
        sessions["archive"] = json!({});
        sessions["status"] = json!({});
        sessions["systemPrompt"] = json!({"mode": {"override": {}}});
    }

    fn filter_listed(&self, result: &mut Value, filter: &str) {
        let Some(listed) = result["sessions"].as_array_mut() else {
            return;
        };
        for info in &mut *listed {
            let id = info["sessionId"].as_str().unwrap_or_default();
            let archived = self.sessions.get(id).is_some_and(|known| known.archived);
            info["archived"] = json!(archived);
        }
        listed.retain(|info| match filter {
            "only" => info["archived"] == true,
            "include" => true,
            _ => info["archived"] == false,
        });
    }

    fn handle_notification(&mut self, passing: &InterceptedMessage<'_>) {
        let Some(params) = passing.message.as_ref().map(|message| &message["params"]) else {
            return;
        };
        if params["update"]["sessionUpdate"] == "state_update"
            && let Ok(known) = self.find_session(params)
        {
            let mut state = params["update"].clone();
            crate::mutants::changes::set_field(&mut state, "sessionUpdate", None);
            known.state = Some(state);
        }
    }
}

/// Returns the session id in a request.
fn requested_session_id(message: &Value) -> Option<String> {
    message["params"]["sessionId"].as_str().map(str::to_owned)
}

/// Returns the text of a system prompt, if it is valid.
fn applicable_text(prompt: &Value) -> Option<String> {
    if prompt["mode"] != "append" && prompt["mode"] != "override" {
        return None;
    }
    let blocks = prompt["content"]
        .as_array()
        .filter(|blocks| !blocks.is_empty())?;
    let texts = blocks.iter().map(|block| {
        let is_text = block["type"] == "text";
        block["text"].as_str().filter(|_| is_text)
    });
    texts.collect()
}
