//! `acp compare`: gives one prompt to several agents, each in a copy of the project, and compares what they do.

mod agents;
mod apply;
mod changes;
mod diffs;
mod directory;
mod git;
mod judge;
mod outcome;
mod repository;
mod run;
mod shell;
mod stop;
mod table;
mod tracked;
mod workspace;

use futures_util::stream::{FuturesUnordered, StreamExt};

use self::agents::{ComparedAgent, compared_agents};
use self::apply::{ApplyChoice, apply_by_option, ask_and_apply};
use self::directory::CompareDirectory;
use self::git::io_exit;
use self::outcome::{AgentOutcome, ComparedState, ComparisonOutcome};
use self::repository::CompareRepository;
use self::run::ComparisonSetup;
use self::stop::StopSignal;
use self::workspace::WorkspaceTemplate;
use crate::args::compare::CompareArgs;
use crate::args::shared::ListFormat;
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::run::read_prompt;
use crate::screen::{Styles, TerminalScreen, print};
use crate::terminal_user;

/// How often the progress line is drawn.
const TICK: std::time::Duration = std::time::Duration::from_millis(100);

pub(crate) async fn run_compare(args: CompareArgs) -> CommandExit {
    compare(args).await.unwrap_or_else(|exit| exit)
}

async fn compare(args: CompareArgs) -> Result<CommandExit, CommandExit> {
    if args.allow == Some(acp_host::Policy::Ask) {
        return Err(CommandExit::usage(
            "--allow ask is not possible: several agents would ask at once",
        ));
    }
    let prompt = read_prompt(args.file.as_deref(), &args.prompt)?;
    let cwd = args.session_args.directory()?;
    let agents = compared_agents(&args, &cwd)?;
    // Checks the options of the sandbox before anything is started.
    let roots = std::slice::from_ref(&cwd);
    Confinement::from_args(&args.session_args.sandbox, args.allow, roots)?;
    let environment = args.env.agent_environment()?.environment();
    let stop = StopSignal::listen()?;
    // Everything in it is deleted when this function returns.
    let directory = CompareDirectory::create(args.keep)?;
    let path = directory.path().to_owned();
    let prepare = async {
        let repository = CompareRepository::record(&cwd, &path).await?;
        let template = WorkspaceTemplate::create(&repository, &path).await?;
        Ok((repository, template))
    };
    let (repository, template) = stop.unless_requested(prepare).await?;
    let prompt_file = path.join("prompt");
    std::fs::write(&prompt_file, &prompt).map_err(|e| io_exit("write", &prompt_file, &e))?;
    let setup = ComparisonSetup {
        args,
        cwd,
        repository,
        template,
        directory: path,
        prompt_file,
        environment,
        stop,
    };
    let screen = TerminalScreen::new(setup.args.format == ListFormat::Text);
    let agents = run_agents(&setup, &agents, &screen).await;
    let mut outcome = ComparisonOutcome {
        agents,
        judge: None,
        applied: None,
        apply_error: None,
        patch: None,
    };
    if let Some(line) = setup
        .args
        .judge
        .as_ref()
        .filter(|_| !setup.stop.is_requested())
    {
        let judged = judge::judge_results(&setup, line, &prompt, &mut outcome.agents).await;
        outcome.judge = Some(judged);
    }
    let exit = finish(&setup, &mut outcome, screen).await;
    drop(directory);
    Ok(exit)
}

/// Runs all agents, some at a time. Returns their outcomes in the order of the command line.
async fn run_agents(
    setup: &ComparisonSetup,
    agents: &[ComparedAgent],
    screen: &TerminalScreen,
) -> Vec<AgentOutcome> {
    let count = agents.len();
    let mut waiting = agents.iter().enumerate();
    let mut running = FuturesUnordered::new();
    let mut outcomes: Vec<(usize, AgentOutcome)> = Vec::with_capacity(count);
    let mut ticks = tokio::time::interval(TICK);
    loop {
        while running.len() < usize::from(setup.args.jobs)
            && let Some((number, agent)) = waiting.next()
        {
            running.push(async move { (number, setup.run_agent(number, agent).await) });
        }
        tokio::select! {
            ended = running.next() => match ended {
                Some((number, outcome)) => {
                    outcomes.push((number, outcome));
                    note_end(&outcomes, count, screen);
                }
                None => break,
            },
            _ = ticks.tick() => screen.tick(&format!("running {} of {count} agents", running.len())),
        }
    }
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Tells the user that an agent has ended.
fn note_end(outcomes: &[(usize, AgentOutcome)], count: usize, screen: &TerminalScreen) {
    if let Some((_, outcome)) = outcomes.last() {
        screen.note(&format!(
            "{}: {} ({} of {count})",
            outcome.label,
            outcome.state.text(),
            outcomes.len()
        ));
    }
}

/// Prints the outcome, and takes changes over.
async fn finish(
    setup: &ComparisonSetup,
    outcome: &mut ComparisonOutcome,
    screen: TerminalScreen,
) -> CommandExit {
    screen.finish();
    if !setup.args.diff {
        // Only the judge has seen them.
        for agent in &mut outcome.agents {
            agent.diff = None;
        }
    }
    let is_text = setup.args.format == ListFormat::Text;
    if is_text && !print_text(setup, outcome) {
        return CommandExit::STDOUT_CLOSED;
    }
    let mut refusal = None;
    if !setup.stop.is_requested() {
        refusal = take_over(setup, outcome, screen).await;
    }
    if !is_text {
        let printed = match serde_json::to_string(outcome) {
            Ok(json) => print(format!("{json}\n").as_bytes()),
            Err(e) => return CommandExit::failed(format!("cannot print the outcome: {e}")),
        };
        if !printed {
            return CommandExit::STDOUT_CLOSED;
        }
    }
    match refusal {
        _ if setup.stop.is_requested() => CommandExit::CANCELLED,
        Some(message) => CommandExit::failed(message),
        None => exit_of(&outcome.agents),
    }
}

/// Prints the table and what else there is to say. Returns `false` if nobody reads it.
fn print_text(setup: &ComparisonSetup, outcome: &ComparisonOutcome) -> bool {
    let styles = Styles::for_stdout();
    let mut text = table::render_outcome(outcome, &styles);
    if setup.args.diff {
        let width = terminal_size::terminal_size_of(std::io::stdout());
        let width = width.map(|(columns, _)| usize::from(columns.0));
        text.push_str(&diffs::render_diffs(&outcome.agents, width, &styles));
    }
    let printed = print(text.as_bytes());
    let is_denied = outcome.agents.iter().any(|agent| !agent.denials.is_empty());
    if is_denied && setup.args.allow.is_none() {
        eprintln!(
            "acp: some actions were denied, because agents cannot ask here; see --allow and --sandbox"
        );
    }
    printed
}

/// Takes changes over, as the user has chosen. Returns a message if that was not possible.
async fn take_over(
    setup: &ComparisonSetup,
    outcome: &mut ComparisonOutcome,
    screen: TerminalScreen,
) -> Option<String> {
    let agents = &outcome.agents;
    let (number, applied) = match &setup.args.apply {
        Some(label) => {
            let number = agents.iter().position(|agent| agent.label == *label)?;
            (number, apply_by_option(setup, agents.get(number)?).await)
        }
        None if setup.args.format == ListFormat::Text && terminal_user::can_ask() => {
            match ask_and_apply(setup, agents, screen).await {
                ApplyChoice::None => return None,
                ApplyChoice::Chosen(number, applied) => (number, applied),
            }
        }
        None => return None,
    };
    let agent = agents.get(number)?;
    let (label, is_changed) = (agent.label.clone(), agent.changed_tree().is_some());
    let Err(refusal) = applied else {
        eprintln!(
            "acp: {}",
            match is_changed {
                true => format!("took over the changes of {label}"),
                false => format!("{label} has not changed anything"),
            }
        );
        outcome.applied = is_changed.then_some(label);
        return None;
    };
    let message = refusal.message(&label);
    outcome.apply_error = Some(refusal.reason);
    outcome.patch = refusal.patch;
    Some(message)
}

/// Returns the exit of the command: success if an agent has ended well, and otherwise what all agents have in common.
fn exit_of(agents: &[AgentOutcome]) -> CommandExit {
    if agents
        .iter()
        .any(|agent| agent.state == ComparedState::Ended)
    {
        return CommandExit::SUCCESS;
    }
    let mut codes = agents.iter().map(|agent| agent.exit_code);
    let first = codes.next().unwrap_or(CommandExit::FAILED);
    let code = match codes.all(|code| code == first) {
        true => first,
        false => CommandExit::FAILED,
    };
    CommandExit {
        code,
        message: Some("no agent has finished its turn".to_owned()),
    }
}
