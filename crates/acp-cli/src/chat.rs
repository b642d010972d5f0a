//! `acp chat`: the terminal client, put together from the command line and the configuration.

use std::io::IsTerminal;
use std::path::PathBuf;

use acp_host::{Policy, Sandbox};
use acp_tui::{AgentSpec, Background, ChatError, Colors, Open, Setup, Theme};

use crate::args::{ChatArgs, Theming};
use crate::environment::ForAgent;
use crate::exit::Exit;
use crate::run::mcp;
use crate::start::Target;
use crate::{permissions, places};

/// Where the prompts of before are, in the directory of what is kept from run to run.
const HISTORY: &str = "history";

pub(crate) async fn chat(args: ChatArgs) -> Exit {
    let setup = match prepare(args) {
        Ok(setup) => setup,
        Err(exit) => return exit,
    };
    match acp_tui::run(setup).await {
        Ok(()) => Exit::SUCCESS,
        Err(ChatError::Terminal(e)) => Exit::failed(format!("the terminal cannot be used: {e}")),
        Err(e) => Exit::failed(e.to_string()),
    }
}

fn prepare(args: ChatArgs) -> Result<Setup, Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Exit::usage(
            "acp chat needs a terminal; in a script, acp run does the same without one",
        ));
    }
    let cwd = std::fs::canonicalize(&args.cwd)
        .map_err(|e| Exit::usage(format!("--cwd {}: {e}", args.cwd.display())))?;
    if !cwd.is_dir() {
        let message = format!("--cwd {}: not a directory", args.cwd.display());
        return Err(Exit::usage(message));
    }
    let given = ForAgent::of(&args.env)?;
    let policy = args.allow.unwrap_or(Policy::Ask);
    let permissions = permissions::of(Some(policy), &cwd)?;
    let target = Target {
        command: &args.agent,
        cwd: &cwd,
        protocol: args.protocol,
        given: &given,
    };
    let sandbox = match args.sandbox.writable()? {
        Some(writable) => {
            let everywhere: Vec<PathBuf> = std::iter::once(cwd.clone()).chain(writable).collect();
            let sandbox = Sandbox::new(everywhere);
            Some(sandbox.map_err(|e| Exit::usage(format!("--sandbox: {e}")))?)
        }
        None => None,
    };
    let mut command = target.command()?;
    if let Some(sandbox) = &sandbox {
        command = command.sandboxed(sandbox.clone());
    }
    let name = match args.agent.first() {
        Some(program) => PathBuf::from(program).file_name().map_or_else(
            || program.clone(),
            |name| name.to_string_lossy().into_owned(),
        ),
        None => "acp agent".to_owned(),
    };
    let mut spec = AgentSpec::new(name, command);
    spec.options = args.protocol.set(acp::Options::new());
    spec.mode = args.mode;
    spec.config = args.options;
    if let Some(file) = &args.mcp {
        spec.mcp_servers = mcp::read(file)?;
    }
    let mut setup = Setup::new(spec, cwd, permissions);
    setup.environment = given.environment();
    setup.sandbox = sandbox;
    if let Some(id) = args.resume {
        setup.open = Open::Old(id.into());
    }
    let prompt = args.prompt.join(" ");
    setup.prompt = Some(prompt).filter(|prompt| !prompt.trim().is_empty());
    setup.history = places::state().map(|state| state.join(HISTORY));
    setup.theme = theme(args.theme);
    setup.mouse = args.mouse;
    Ok(setup)
}

/// The theme that was asked for, or that the terminal says fits.
fn theme(asked: Option<Theming>) -> Theme {
    let background = match asked {
        Some(Theming::Dark) => Background::Dark,
        Some(Theming::Light) => Background::Light,
        None => said_background(),
    };
    Theme::new(background, colors())
}

/// What is behind the text, where the terminal has said so in its environment: `COLORFGBG` is `15;0` or the like.
fn said_background() -> Background {
    let said = std::env::var("COLORFGBG").unwrap_or_default();
    match said.rsplit(';').next() {
        Some("7" | "15") => Background::Light,
        _ => Background::Dark,
    }
}

fn colors() -> Colors {
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
