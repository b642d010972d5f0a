//! `acp chat`: starts the terminal client.

use std::io::{IsTerminal, Write};
use std::path::Path;

use acp_config::{
    AgentChoice, AgentList, AgentSelector, Background, ChatSettings, PermissionSources,
    SessionNames, paths,
};
use acp_host::{Permissions, Policy};
use acp_tui::{
    AgentSpec, ChatError, ChatSetup, Colors, HintSource, KeyBindings, SandboxHook, SessionSource,
    ThemePair,
};

use crate::args::chat::ChatArgs;
use crate::args::shared::ProtocolArg;
use crate::config;
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::latest_session::LatestSessionQuery;
use crate::live::{AttachMode, LiveAttachment, LiveTarget};
use crate::start::{StartTarget, default_connection_options};

/// The name of the file in the state directory that stores the prompt history.
const HISTORY_FILE: &str = "history";

/// The maximum number of sessions for which the end of a chat says how to continue them.
const MAX_HINTS: usize = 5;

pub(crate) async fn run_chat(args: ChatArgs) -> CommandExit {
    // A local server keeps running as long as the chat is attached to it.
    let PreparedChat {
        setup,
        agents,
        live: _live,
    } = match prepare(args).await {
        Ok(prepared) => prepared,
        Err(exit) => return exit,
    };
    let (cwd, name) = (setup.cwd.clone(), setup.name.clone());
    let directories = setup.additional_directories.iter();
    let directories: Vec<String> = directories
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    match acp_tui::run_chat(setup).await {
        Ok(sessions) => {
            for session in sessions.iter().take(MAX_HINTS) {
                if let Some(agent) = agents.get(session.agent) {
                    let target = StartTarget {
                        agent,
                        cwd: &cwd,
                        live: None,
                    };
                    let name = name.as_deref().filter(|_| session.is_first);
                    let mut words = match name {
                        Some(name) => vec!["chat", "--session", name],
                        None => vec!["chat", "--resume", session.id.as_str()],
                    };
                    for directory in &directories {
                        words.extend(["--add-dir", directory]);
                    }
                    let hint = target.command_hint(&words);
                    let _ = writeln!(std::io::stdout(), "To continue: {hint}");
                }
            }
            CommandExit::SUCCESS
        }
        Err(ChatError::Terminal(e)) => CommandExit::failed(format!("cannot use the terminal: {e}")),
        Err(e) => CommandExit::failed(e.to_string()),
    }
}

/// A chat that is ready to run.
struct PreparedChat {
    setup: ChatSetup,
    /// The agents, in the order of [`ChatSetup::agents`].
    agents: Vec<AgentChoice>,
    live: Option<LiveAttachment>,
}

async fn prepare(mut args: ChatArgs) -> Result<PreparedChat, CommandExit> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(CommandExit::usage(
            "acp chat requires a terminal; use `acp run` in scripts",
        ));
    }
    let cwd = args.session_args.directory()?;
    let config = config::read_user_config()?;
    let keys = key_bindings(&config.chat)?;
    let agent = args.agent_choice.choose(&cwd)?;
    let additional_directories = args.directories.additional_directories(&cwd)?;
    let roots = [std::slice::from_ref(&cwd), &additional_directories].concat();
    let confinement = Confinement::from_args(&args.session_args.sandbox, args.allow, &roots)?;
    if args.continue_latest {
        let query = LatestSessionQuery {
            agent: &agent,
            cwd: &cwd,
            confinement: confinement.as_ref(),
            policy: args.allow,
            no_server: args.server.no_server,
        };
        let latest = query.find().await?;
        (args.session, args.resume) = match args.fork.fork {
            true => (None, Some(latest.id)),
            false => latest.into_options(),
        };
    }
    args.fork.require_session(args.resume.as_deref())?;
    let open = match (&args.resume, &args.session) {
        (Some(id), _) if args.fork.fork => SessionSource::Fork(id.as_str().into()),
        (Some(id), _) => SessionSource::Existing(id.as_str().into()),
        (None, Some(name)) => {
            match SessionNames::open(agent.storage_key(), &cwd).find(name.as_str())? {
                Some(named) => SessionSource::Existing(named.id.into()),
                None => SessionSource::New,
            }
        }
        (None, None) => SessionSource::New,
    };
    // The chat asks on its own screen, so this does not depend on stderr as it does in `acp run`.
    let permissions =
        PermissionSources::for_directory(&cwd)?.permissions(args.allow, Policy::Ask)?;
    let environment = agent.environment.environment();
    let live = LiveTarget {
        agent: &agent,
        cwd: &cwd,
        confinement: confinement.as_ref(),
        policy: args.allow,
    };
    let live = match (&open, &args.session) {
        _ if args.server.no_server => None,
        (_, Some(_)) => live.attach(AttachMode::Start {
            keep: args.server.keep,
        })?,
        (SessionSource::Existing(session) | SessionSource::Fork(session), None) => {
            let session = session.as_str();
            live.attach(AttachMode::IfLive { session })?
        }
        _ => None,
    };
    let spec = |agent: &AgentChoice, live: Option<&LiveAttachment>| {
        let target = StartTarget {
            agent,
            cwd: &cwd,
            live,
        };
        agent_spec(target, &permissions, confinement.as_ref())
    };
    let mut first = spec(&agent, live.as_ref())?;
    first.mcp_servers = args.session_args.mcp_servers(first.mcp_servers)?;
    let mut others = Vec::new();
    let mut agents = vec![agent.clone()];
    for name in AgentList::discover(&config, &cwd)?.usable_names() {
        let other = AgentSelector::with_name(&name).choose(&config, &cwd, None)?;
        let same = agent.name.as_ref() == Some(&name) || agent.is_bundled() && other.is_bundled();
        if !same {
            others.push(spec(&other, None)?);
            agents.push(other);
        }
    }
    let mut setup = ChatSetup::new(first, &cwd, permissions);
    setup.agents.extend(others);
    setup.environment = environment;
    setup.sandbox = confinement
        .as_ref()
        .and_then(|confinement| confinement.command_sandbox().cloned());
    setup.session_source = open;
    setup.additional_directories = additional_directories;
    setup.initial_options.mode = args.session_args.mode;
    setup.initial_options.model = args.model;
    setup.initial_options.config = args.session_args.options;
    setup.name = args.session.map(|name| name.to_string());
    let prompt = args.prompt.join(" ");
    setup.prompt = Some(prompt).filter(|prompt| !prompt.trim().is_empty());
    setup.history = paths::state_dir().map(|state| state.join(HISTORY_FILE));
    // Not the state directory, which the bundled agent can write to from a sandbox.
    setup.rewind = paths::data_dir()
        .filter(|_| config.chat.rewind)
        .map(|data| data.join("rewind"));
    let theme = args.theme.as_ref().unwrap_or(&config.chat.theme);
    setup.themes = ThemePair::read(theme, detect_colors())?;
    setup.background = terminal_background();
    setup.images = config.chat.images;
    setup.mouse = args.mouse.choice().unwrap_or(config.chat.mouse);
    setup.editing = config.chat.editing;
    setup.notify = config.chat.notify;
    setup.keys = keys;
    Ok(PreparedChat {
        setup,
        agents,
        live,
    })
}

/// Returns the command that starts the agent, along with the initial options for its sessions.
fn agent_spec(
    target: StartTarget<'_>,
    permissions: &Permissions,
    confinement: Option<&Confinement>,
) -> Result<AgentSpec, CommandExit> {
    let StartTarget { agent, cwd, live } = target;
    let command = target.command_for(permissions)?;
    let name = match (&agent.name, &agent.remote, agent.command.first()) {
        (Some(name), _, _) => name.clone(),
        (None, Some(remote), _) => remote.url.server_name().to_owned(),
        (None, None, Some(program)) => {
            let file = Path::new(program).file_name();
            file.map_or_else(
                || program.clone(),
                |name| name.to_string_lossy().into_owned(),
            )
        }
        (None, None, None) => "acp agent".to_owned(),
    };
    let mut spec = AgentSpec::new(name, command);
    spec.asks = agent.is_bundled();
    // The agent of a live session is confined by its server.
    if let (Some(confinement), None) = (confinement.cloned(), live) {
        let agent = agent.clone();
        // Only when the agent starts, because its state directories may have to be created.
        spec.sandbox_hook = SandboxHook::new(move |command| {
            let confined = confinement.confine(&agent, command);
            let confined = confined.map_err(|exit| exit.message.unwrap_or_default())?;
            Ok((confined.command, confined.notes))
        });
    }
    // A remote agent is not confined.
    let confined = confinement.filter(|_| agent.remote.is_none());
    let confined = confined.and_then(Confinement::hint);
    spec.options = ProtocolArg::for_agent(agent).apply(default_connection_options());
    spec.initial_options.mode.clone_from(&agent.mode);
    spec.initial_options.config.clone_from(&agent.options);
    spec.mcp_servers.clone_from(&agent.mcp_servers);
    spec.storage_key = agent.storage_key();
    spec.names = Some(SessionNames::open(agent.storage_key(), cwd));
    spec.install = agent.install.map(str::to_owned).filter(|i| !i.is_empty());
    let chosen = agent.clone();
    // When the agent requires a login, a key whose name resembles the agent's is enough for the hint; otherwise the
    // agent must have named it.
    spec.hint = HintSource::new(move |said, login| {
        let words: &[String] = if login { &chosen.command } else { &[] };
        let key = chosen.missing_key_hint(words, said);
        key.or_else(|| confined.clone().filter(|_| !login))
    });
    Ok(spec)
}

/// Returns the key bindings, including those that the user has configured.
fn key_bindings(settings: &ChatSettings) -> Result<KeyBindings, CommandExit> {
    let mut keys = KeyBindings::default();
    for (action, own) in &settings.keys {
        keys.bind(action, own)
            .map_err(|e| CommandExit::usage(format!("config.toml, chat.keys: {e}")))?;
    }
    Ok(keys)
}

/// Guesses the background color from `COLORFGBG`, which some terminals set to `15;0` or similar.
fn terminal_background() -> Background {
    let said = std::env::var("COLORFGBG").unwrap_or_default();
    match said.rsplit(';').next() {
        Some("7" | "15") => Background::Light,
        _ => Background::Dark,
    }
}

fn detect_colors() -> Colors {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is = |name, values: &[&str]| {
        std::env::var(name).is_ok_and(|value| values.iter().any(|v| value.contains(v)))
    };
    if set("NO_COLOR") || is("TERM", &["dumb"]) {
        Colors::None
    } else if is("COLORTERM", &["truecolor", "24bit"]) || is("TERM", &["direct", "kitty"]) {
        Colors::Full
    } else {
        Colors::Ansi16
    }
}
