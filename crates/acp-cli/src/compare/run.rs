//! Runs one agent in its copy of the project: with `acp run`, and then the tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_host::{AgentCommand, Environment};

use super::agents::ComparedAgent;
use super::outcome::{AgentOutcome, ComparedState, DiffText, ReportedRun, TestOutcome};
use super::repository::CompareRepository;
use super::shell::{BoundedCommand, BoundedResult, merged_shell_command};
use super::stop::StopSignal;
use super::workspace::{AgentWorkspace, WorkspaceTemplate};
use crate::args::compare::CompareArgs;
use crate::args::shared::{SandboxWrites, option_arguments};
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::this_program::this_program;

/// How long `acp run` may take beyond `--timeout`, which it enforces itself.
const EXTRA_TIME: Duration = Duration::from_secs(60);

/// How long `acp run` may take to cancel the turn after a signal.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of the output of the tests is kept, in bytes.
const MAX_TEST_OUTPUT: usize = 16 * 1024;

/// The maximum size of a diff that is shown or judged, in bytes.
const MAX_DIFF_BYTES: u64 = 4 * 1024 * 1024;

/// What all agents of a comparison share.
pub(super) struct ComparisonSetup {
    pub(super) args: CompareArgs,
    /// The user's working directory.
    pub(super) cwd: PathBuf,
    pub(super) repository: CompareRepository,
    pub(super) template: WorkspaceTemplate,
    /// The temporary directory.
    pub(super) directory: PathBuf,
    pub(super) prompt_file: PathBuf,
    /// The environment of the agents.
    pub(super) environment: Environment,
    pub(super) stop: StopSignal,
}

impl ComparisonSetup {
    /// Runs an agent and its tests.
    pub(super) async fn run_agent(&self, number: usize, agent: &ComparedAgent) -> AgentOutcome {
        let mut outcome = AgentOutcome {
            label: agent.label.clone(),
            agent: agent.name.clone(),
            model: agent.model.clone(),
            state: ComparedState::Cancelled,
            exit_code: CommandExit::CANCELLED.code,
            error: None,
            duration_ms: 0,
            tokens: None,
            cost: None,
            answer: String::new(),
            denials: Vec::new(),
            files: None,
            test: None,
            score: None,
            diff: None,
            directory: None,
            tree: None,
        };
        let directory = self.directory.join(number.to_string());
        if let Err(exit) = self.fill_outcome(agent, &directory, &mut outcome).await
            && exit != CommandExit::CANCELLED
        {
            // A run that has ended well is no success if its changes are not known.
            if let ComparedState::Ended | ComparedState::Cancelled = outcome.state {
                outcome.exit_code = exit.code;
            }
            outcome.state = ComparedState::Failed;
            outcome.error = outcome.error.or(exit.message);
        }
        outcome
    }

    async fn fill_outcome(
        &self,
        agent: &ComparedAgent,
        directory: &Path,
        outcome: &mut AgentOutcome,
    ) -> Result<(), CommandExit> {
        let (repository, stop) = (&self.repository, &self.stop);
        let workspace = AgentWorkspace::create(repository, &self.template, directory);
        let workspace = stop.unless_requested(workspace).await?;
        if self.args.keep {
            outcome.directory = Some(workspace.root.clone());
        }
        let result_file = directory.join("result.json");
        let command = BoundedCommand {
            command: self.run_command(agent, &workspace, &result_file)?,
            input: Vec::new(),
            timeout: Duration::from_secs(self.args.timeout).saturating_add(EXTRA_TIME),
            // The result has it.
            max_output: 0,
            keeps_end: false,
            grace: CANCEL_TIMEOUT,
        };
        let ended = command.run(stop).await.map_err(CommandExit::failed)?;
        read_run(&ended, &result_file, stop, outcome);
        let tree = stop.unless_requested(workspace.record(repository)).await?;
        let changes = stop.unless_requested(repository.changes(&tree)).await?;
        let is_changed = !changes.is_empty();
        outcome.files = Some(changes);
        if self.args.diff || self.args.judge.is_some() {
            let file = directory.join("diff");
            let write = repository.write_diff(&tree, &file);
            stop.unless_requested(write).await?;
            let diff = DiffText::read(&file, MAX_DIFF_BYTES);
            let failed = |e| CommandExit::failed(format!("cannot read {}: {e}", file.display()));
            outcome.diff = Some(diff.map_err(failed)?);
        }
        outcome.tree = Some(tree);
        if let Some(line) = &self.args.test
            && (is_changed || outcome.state == ComparedState::Ended)
            && !stop.is_requested()
        {
            outcome.test = Some(self.run_test(line, &workspace).await);
        }
        Ok(())
    }

    /// Returns the command that runs the agent.
    fn run_command(
        &self,
        agent: &ComparedAgent,
        workspace: &AgentWorkspace,
        result_file: &Path,
    ) -> Result<AgentCommand, CommandExit> {
        let args = &self.args;
        let session = &args.session_args;
        let mut options: Vec<(&str, String)> = vec![
            ("--format", "quiet".to_owned()),
            ("--agent", agent.name.clone()),
            ("--timeout", args.timeout.to_string()),
            ("--retries", args.retries.to_string()),
        ];
        let optional = [
            ("--model", agent.model.clone()),
            ("--allow", args.allow.map(|policy| policy.to_string())),
            ("--max-cost", args.max_cost.map(|cost| cost.to_string())),
            (
                "--protocol",
                args.protocol.map(|version| version.to_string()),
            ),
            ("--mode", session.mode.clone()),
        ];
        options.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        for (key, value) in &session.options {
            options.push(("--set", format!("{key}={value}")));
        }
        for (request, _) in args.env.agent_environment()?.requests() {
            options.push(("--env", request.to_owned()));
        }
        let mut paths: Vec<(&str, &Path)> = vec![
            ("--agents-of", &self.cwd),
            ("--cwd", &workspace.cwd),
            ("--file", &self.prompt_file),
            ("--output", result_file),
        ];
        paths.extend(args.attach.iter().map(|file| ("--attach", &**file)));
        paths.extend(session.mcp.iter().map(|file| ("--mcp", &**file)));
        let mut words: Vec<OsString> = vec!["run".into()];
        for (name, value) in &options {
            let option = option_arguments(name, value);
            words.extend(option.into_iter().map(OsString::from));
        }
        for (name, path) in paths {
            let mut word = OsString::from(format!("{name}="));
            word.push(path);
            words.push(word);
        }
        let flags = [("--no-fs", args.no_fs), ("--no-terminal", args.no_terminal)];
        let given = flags.iter().filter(|(_, is_given)| *is_given);
        words.extend(given.map(|(name, _)| OsString::from(name)));
        let writes = session.sandbox.sandbox.and_then(|mode| mode.writes);
        match self.confinement(workspace)? {
            Some(confinement) => words.extend(confinement.arguments()),
            None if writes == Some(SandboxWrites::Off) => words.push("--sandbox=off".into()),
            None => {}
        }
        // It passes on only what the agent may have.
        let command = AgentCommand::new(this_program()?).args(words);
        Ok(command.environment(Environment::inherit()))
    }

    /// Returns the sandbox for the agent and its commands.
    fn confinement(&self, workspace: &AgentWorkspace) -> Result<Option<Confinement>, CommandExit> {
        let roots = std::slice::from_ref(&workspace.cwd);
        Confinement::from_args(&self.args.session_args.sandbox, self.args.allow, roots)
    }

    /// Runs the tests, which the agent may have changed.
    async fn run_test(&self, line: &str, workspace: &AgentWorkspace) -> TestOutcome {
        let failed = |error| TestOutcome {
            error,
            ..TestOutcome::default()
        };
        let confinement = match self.confinement(workspace) {
            Ok(confinement) => confinement,
            Err(exit) => return failed(exit.message),
        };
        let mut command = merged_shell_command(line)
            .cwd(&workspace.cwd)
            .environment(self.environment.clone());
        if let Some(sandbox) = confinement.as_ref().and_then(Confinement::command_sandbox) {
            command = command.sandbox(sandbox.clone());
        }
        let command = BoundedCommand {
            command,
            input: Vec::new(),
            timeout: Duration::from_secs(self.args.test_timeout),
            max_output: MAX_TEST_OUTPUT,
            keeps_end: true,
            grace: Duration::ZERO,
        };
        match command.run(&self.stop).await {
            Ok(ended) => TestOutcome {
                exit_code: ended.exit.and_then(|exit| exit.code),
                is_timeout: ended.is_timeout,
                duration_ms: milliseconds(ended.duration),
                output: String::from_utf8_lossy(&ended.output).into_owned(),
                error: None,
            },
            Err(error) => failed(Some(error)),
        }
    }
}

/// Reads how `acp run` has ended.
fn read_run(
    ended: &BoundedResult,
    result_file: &Path,
    stop: &StopSignal,
    outcome: &mut AgentOutcome,
) {
    outcome.duration_ms = milliseconds(ended.duration);
    if let Ok(run) = ReportedRun::read(result_file) {
        outcome.state = ComparedState::from_exit_code(run.exit_code);
        outcome.exit_code = run.exit_code;
        outcome.error = run.error;
        outcome.duration_ms = run.duration_ms;
        outcome.tokens = run.context.map(|context| context.used);
        outcome.cost = run.cost;
        outcome.answer = run.answer;
        outcome.denials = run.denials;
        return;
    }
    // It was ended, or it has found a mistake before it could start the agent.
    if stop.is_requested() {
        return;
    }
    let code = ended.exit.as_ref().and_then(|exit| exit.code);
    let code = code.and_then(|code| u8::try_from(code).ok());
    let (code, error) = match code {
        Some(code @ 1..) => (code, message_of_run(&ended.stderr)),
        None if ended.is_timeout => (6, "timed out".to_owned()),
        _ => (CommandExit::FAILED, "the run has left no result".to_owned()),
    };
    outcome.state = ComparedState::from_exit_code(code);
    outcome.exit_code = code;
    outcome.error = Some(error);
}

/// Returns the message of `acp run` from the end of its stderr.
fn message_of_run(stderr: &str) -> String {
    let text = stderr.trim();
    text.strip_prefix("acp: ").unwrap_or(text).to_owned()
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
