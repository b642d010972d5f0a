//! An agent with logins, stored sessions and elicitation. The test program runs it when started as the test
//! [`AGENT_TEST_NAME`].
//!
//! What it knows is in files of its working directory: `signed-in` is there when someone is logged in, and
//! holds what they answered; `heard` has how a question of its was answered.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use acp::agent::{
    AuthContext, Authentication, ListSessions, LoadSession, OpenedSession, Prompt, ResumeSession,
    Session, SessionSetup, Turn,
};
use acp::v1::*;
use acp::{Agent, Error, Options, Result, jsonrpc};

/// The name of the test that acts as the agent, for [`super::itself`].
pub(crate) const AGENT_TEST_NAME: &str = "common::agent::run_as_agent";

/// The flag that makes the agent's program run its login on the terminal.
const SIGN_IN_FLAG: &str = "--sign-in";

/// The number of sessions on each page of the list.
pub(crate) const PAGE_SIZE: usize = 1000;

/// Not a real test: runs the agent for the other tests.
#[test]
#[ignore = "it is the agent of the other tests"]
fn run_as_agent() {
    super::itself::run_if_agent(run_agent);
}

/// Runs the agent with these flags on stdin and stdout.
pub(crate) fn run_agent(args: &[String]) {
    if args.iter().any(|arg| arg == SIGN_IN_FLAG) {
        run_sign_in();
    }
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let list = |name| -> Vec<String> {
        let value = value(name).unwrap_or_default();
        value
            .split(',')
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let agent = ScriptedAgent {
        ways: list("--ways"),
        opens: list("--opens"),
        sessions: value("--sessions").map(|n| n.parse().unwrap()),
        newest: value("--newest").map(|n| n.parse().unwrap()),
        endless: args.iter().any(|arg| arg == "--endless"),
        forgets: args.iter().any(|arg| arg == "--forgets"),
    };
    std::fs::write("agent-pid", std::process::id().to_string()).unwrap();
    if let Some(aside) = value("--moves-root-to") {
        super::reach::move_root(std::path::Path::new(&aside));
    }
    let mut options = Options::new().limits(acp::agent::default_limits());
    if value("--protocol").as_deref() == Some("2") {
        options = options.draft_version_2();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime
        .unwrap()
        .block_on(async { acp::agent::serve_with(acp::transport::stdio()?, agent, options).await });
    served.unwrap();
}

/// Runs the login on the terminal.
fn run_sign_in() -> ! {
    let place = std::env::var("SIGN_IN_TO").unwrap_or_default();
    if is_agent_running() {
        println!("the agent still runs");
        std::process::exit(9);
    }
    print!("password for {place}: ");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).unwrap();
    if line.trim() != "sesame" {
        std::process::exit(7);
    }
    std::fs::write("signed-in", "{}").unwrap();
    std::process::exit(0);
}

#[cfg(unix)]
fn is_agent_running() -> bool {
    let pid = std::fs::read_to_string("agent-pid").unwrap();
    rustix::process::Pid::from_raw(pid.parse().unwrap())
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

#[cfg(not(unix))]
fn is_agent_running() -> bool {
    false
}

struct ScriptedAgent {
    /// The auth methods. If empty, no login is required.
    ways: Vec<String>,
    /// The supported ways of opening existing sessions.
    opens: Vec<String>,
    /// The number of sessions to list.
    sessions: Option<usize>,
    /// The number of the session that changed last.
    newest: Option<usize>,
    /// Whether the session list goes on forever.
    endless: bool,
    /// Whether the agent claims to be able to open existing sessions, although it has none.
    forgets: bool,
}

impl ScriptedAgent {
    fn check_logged_in(&self) -> Result<()> {
        if self.ways.is_empty() || std::path::Path::new("signed-in").exists() {
            return Ok(());
        }
        Err(Error::Rpc(jsonrpc::Error::auth_required()))
    }

    fn open_session(&self, session: &Session) -> Result<OpenedSession> {
        self.check_logged_in()?;
        if self.forgets {
            let what = format!("session {}", session.id());
            return Err(Error::Rpc(jsonrpc::Error::resource_not_found(what)));
        }
        if session.id().as_str() != "sess_0" {
            return Err(Error::invalid_params(format!(
                "session not found: {}",
                session.id()
            )));
        }
        Ok(OpenedSession::new())
    }
}

/// Returns a form with a field of every type.
fn sample_form() -> ElicitationMode {
    let schema = r#"{
        "type": "object", "title": "About you", "required": ["key"],
        "properties": {
            "key": {"type": "string", "title": "Key", "description": "As on your card", "minLength": 4},
            "days": {"type": "integer", "minimum": 1, "default": 30},
            "plan": {"type": "string", "oneOf": [
                {"const": "s", "title": "Small"}, {"const": "l", "title": "Large", "description": "costs more"}]},
            "share": {"type": "boolean"},
            "topics": {"type": "array", "items": {"type": "string", "enum": ["news", "tips", "bugs"]}, "maxItems": 2}
        }}"#;
    ElicitationMode::Form {
        requested_schema: serde_json::from_str(schema).unwrap(),
    }
}

/// Records the user's response to an elicitation, and returns it as JSON.
fn describe_action(action: &ElicitationAction) -> String {
    let told = serde_json::to_string(action).unwrap();
    std::fs::write("heard", &told).unwrap();
    told
}

impl Authentication for ScriptedAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        let method = |way: &String| match way.as_str() {
            "program" => AuthMethod::Terminal(
                AuthMethodTerminal::new("program", "Password")
                    .args(vec![SIGN_IN_FLAG.to_owned()])
                    .env(BTreeMap::from([(
                        "SIGN_IN_TO".to_owned(),
                        "the vault".to_owned(),
                    )])),
            ),
            way => AuthMethod::Agent(
                AuthMethodAgent::new(way, format!("By {way}"))
                    .description(format!("What {way} is")),
            ),
        };
        self.ways.iter().map(method).collect()
    }

    async fn authenticate(&self, cx: &AuthContext, method: &AuthMethodId) -> Result<()> {
        let answers = match method.as_str() {
            "form" => {
                let action = cx
                    .elicit("Who are you?\nIt is for the log.", sample_form())
                    .await?;
                describe_action(&action);
                match action {
                    ElicitationAction::Accept(accept) => accept.content.unwrap_or_default(),
                    _ => return Err(Error::internal("you do not want to")),
                }
            }
            "page" => {
                let page = ElicitationMode::Url {
                    elicitation_id: "page-1".into(),
                    url: "https://example.org/login?code=\u{1b}[2K42".to_owned(),
                };
                let action = cx.elicit("Please log in on the web.", page).await?;
                describe_action(&action);
                if !matches!(action, ElicitationAction::Accept(_)) {
                    return Err(Error::internal("you do not want to"));
                }
                // One that nobody was sent to, and this one.
                cx.complete_elicitation("page-0").await?;
                cx.complete_elicitation("page-1").await?;
                BTreeMap::new()
            }
            "hang" => std::future::pending().await,
            _ => BTreeMap::new(),
        };
        std::fs::write("signed-in", serde_json::to_string(&answers).unwrap()).unwrap();
        Ok(())
    }

    fn can_logout(&self) -> bool {
        !self.ways.iter().any(|way| way == "forever")
    }

    async fn logout(&self) -> Result<()> {
        std::fs::remove_file("signed-in").map_err(|e| Error::internal(e.to_string()))
    }
}

impl ListSessions for ScriptedAgent {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
        self.check_logged_in()?;
        if self.endless {
            return Ok(ListSessionsResponse::new(Vec::new()).next_cursor("again"));
        }
        let cwd = std::env::current_dir().unwrap();
        let elsewhere = request
            .cwd
            .as_ref()
            .is_some_and(|wanted| *wanted != cwd.to_string_lossy());
        let all = self.sessions.filter(|_| !elsewhere).unwrap_or_default();
        let from: usize = request.cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let to = all.min(from + PAGE_SIZE);
        let session = |n: usize| {
            let session = SessionInfo::new(format!("sess_{n}"), cwd.to_string_lossy());
            match n {
                0 => session
                    .title("The first\u{7}")
                    .updated_at("2026-03-01T12:00:00Z"),
                n if Some(n) == self.newest => session.updated_at("2026-03-02T12:00:00Z"),
                _ => session,
            }
        };
        let mut page = ListSessionsResponse::new((from..to).map(session).collect::<Vec<_>>());
        page.next_cursor = (to < all).then(|| to.to_string());
        Ok(page)
    }
}

impl LoadSession for ScriptedAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        let opened = self.open_session(session)?;
        session
            .replay_user_message(ContentBlock::text("old question"))
            .await?;
        session.send_message("old answer").await?;
        Ok(opened)
    }
}

impl ResumeSession for ScriptedAgent {
    async fn resume(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        self.open_session(session)
    }
}

impl Agent for ScriptedAgent {
    type State = ();

    fn new_session_id(&self) -> SessionId {
        "sess_0".into()
    }

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        self.check_logged_in()?;
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        self.check_logged_in()?;
        let text = match prompt.text().as_str() {
            "ask" => describe_action(&turn.elicit("Who are you?", sample_form(), None).await?),
            "reach" => super::reach::try_paths(&turn).await?,
            text => format!("you said {text}"),
        };
        turn.send_message(text).await?;
        Ok(StopReason::EndTurn)
    }

    fn authentication(&self) -> Option<&impl Authentication> {
        (!self.ways.is_empty()).then_some(self)
    }

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        (self.sessions.is_some() || self.endless).then_some(self)
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        self.opens.iter().any(|way| way == "load").then_some(self)
    }

    fn resume_session(&self) -> Option<&impl ResumeSession> {
        self.opens.iter().any(|way| way == "resume").then_some(self)
    }
}
