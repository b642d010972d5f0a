//! The settings of `acp run`, all of which are determined before the agent is started.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp::v1::McpServer;
use acp_config::AgentChoice;
use acp_host::{AgentProcess, Attachment, Permissions, Policy};

use super::answer_schema::AnswerSchema;
use super::answer_tool::AnswerTool;
use super::naming::SessionNaming;
use super::notes::RunNotes;
use super::prompt;
use super::trace_output::TraceOutput;
use crate::args::run::{RunArgs, RunFormat};
use crate::confinement::Confinement;
use crate::exit::CommandExit;
use crate::latest_session::LatestSessionQuery;
use crate::live::{AttachMode, LiveAttachment, LiveTarget};
use crate::output_file::OutputFile;
use crate::permissions;
use crate::screen::TerminalScreen;
use crate::start::StartTarget;
use crate::terminal_user;

/// The validated arguments, the prompt, and the agent to use.
pub(super) struct RunSetup {
    pub(super) args: RunArgs,
    pub(super) text: String,
    pub(super) schema: Option<Arc<AnswerSchema>>,
    /// The tool with which the agent gives its answer, if there is a schema and the agent can reach the tool.
    pub(super) answer_tool: Option<AnswerTool>,
    pub(super) attachments: Vec<Attachment>,
    pub(super) mcp_servers: Vec<McpServer>,
    pub(super) cwd: PathBuf,
    /// The directories of the session besides `cwd`.
    pub(super) additional_directories: Vec<PathBuf>,
    pub(super) permissions: Permissions,
    pub(super) agent: AgentChoice,
    /// The id of the session to continue.
    pub(super) resume: Option<String>,
    pub(super) naming: Option<SessionNaming>,
    pub(super) sandbox: Option<Confinement>,
    /// The local server that holds the session, if one does.
    pub(super) live: Option<LiveAttachment>,
    /// Where the messages of both sides are printed, with `--format trace`.
    pub(super) trace: Option<TraceOutput>,
    /// The file of `--output`.
    pub(super) output: Option<OutputFile>,
}

/// Returns the file of `--output`. Checked first: a run that has cost something must not fail at its end.
fn output_file(path: &Path) -> Result<OutputFile, CommandExit> {
    let shown = path.display();
    if path == Path::new("-") {
        let message = "--output -: the result goes to a file; for stdout, use --output /dev/stdout";
        return Err(CommandExit::usage(message));
    }
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    if directory.is_some_and(|directory| !directory.is_dir()) {
        return Err(CommandExit::usage(format!(
            "--output {shown}: its directory does not exist"
        )));
    }
    OutputFile::new(path).map_err(|error| CommandExit::usage(format!("--output {shown}: {error}")))
}

impl RunSetup {
    /// Checks the arguments, so that mistakes are reported before anything is started.
    pub(super) async fn prepare(mut args: RunArgs) -> Result<Self, CommandExit> {
        let output = args.output.as_deref().map(output_file).transpose()?;
        let schema = args
            .output_schema
            .as_deref()
            .map(AnswerSchema::read)
            .transpose()?
            .map(Arc::new);
        let mut text = prompt::read_prompt(args.file.as_deref(), &args.prompt)?;
        let attachments = prompt::attachments(&args.attach)?;
        let cwd = args.session_args.directory()?;
        let additional_directories = args.directories.additional_directories(&cwd)?;
        // In the background, whoever joins the session answers.
        let can_ask = args.detached || terminal_user::can_ask();
        if args.allow == Some(Policy::Ask) && !can_ask {
            return Err(CommandExit::usage("--allow ask requires a terminal"));
        }
        let permissions = permissions::from_policy(args.allow, can_ask, &cwd)?;
        let project = args.agents_of.as_deref().unwrap_or(&cwd);
        let mut agent = args.agent_choice.choose(project)?;
        let configured = std::mem::take(&mut agent.mcp_servers);
        let mcp_servers = args.session_args.mcp_servers(configured)?;
        let roots = [std::slice::from_ref(&cwd), &additional_directories].concat();
        let sandbox = Confinement::from_args(&args.session_args.sandbox, args.allow, &roots)?;
        if args.continue_latest {
            let query = LatestSessionQuery {
                agent: &agent,
                cwd: &cwd,
                confinement: sandbox.as_ref(),
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
        let named = SessionNaming::from_args(&args, &agent, &cwd)?;
        let resume = match &named {
            Some(named) => named.existing_session(),
            None => args.resume.clone(),
        };
        // Before the named session's agent is started, which would be too late to limit it.
        if args.max_turns.is_some() {
            require_countable_turns(&agent, named.is_some() && !args.server.no_server)?;
        }
        let live = LiveTarget {
            agent: &agent,
            cwd: &cwd,
            confinement: sandbox.as_ref(),
            policy: args.allow,
        };
        let live = match (&named, &resume) {
            _ if args.server.no_server => None,
            (Some(_), _) => live.attach(AttachMode::Start {
                keep: args.server.keep,
            })?,
            (None, Some(session)) => live.attach(AttachMode::IfLive { session })?,
            (None, None) => None,
        };
        // A session that is resumed by its id can be live, too.
        if args.max_turns.is_some() {
            require_countable_turns(&agent, live.is_some())?;
        }
        // A remote agent could not start the program of the tool, and a live one would keep it.
        let answer_tool = match &schema {
            Some(schema) if agent.remote.is_none() && live.is_none() => {
                Some(AnswerTool::start(Arc::clone(schema))?)
            }
            _ => None,
        };
        if let Some(schema) = &schema {
            text = schema.extend_prompt(&text, answer_tool.is_some());
        }
        let trace = (args.format == RunFormat::Trace).then(|| TraceOutput::start(&agent));
        Ok(Self {
            output,
            args,
            text,
            schema,
            answer_tool,
            attachments,
            mcp_servers,
            cwd,
            additional_directories,
            permissions,
            agent,
            resume,
            naming: named,
            sandbox,
            live,
            trace: trace.transpose()?,
        })
    }

    /// Starts the agent.
    pub(super) fn start(
        &self,
        notes: &RunNotes,
        screen: &TerminalScreen,
    ) -> Result<AgentProcess, CommandExit> {
        let mut command = self.target().command_for(&self.permissions)?;
        if self.agent.is_bundled() {
            let turns = self
                .args
                .max_turns
                .map(|turns| format!("--max-requests={turns}"));
            let tool = self.answer_tool.as_ref();
            let tool = tool.map(|tool| format!("--exempt-tool={}", tool.names()));
            command = command.args(turns.into_iter().chain(tool));
        }
        if let Some(confinement) = &self.sandbox {
            let confined = confinement.confine(&self.agent, command)?;
            command = confined.command;
            for note in confined.notes {
                notes.add(note);
            }
        }
        if self.live.is_some() {
            // The agent itself is confined by its server.
            command = self.target().command()?;
        }
        self.target().spawn_command(&command, screen)
    }

    /// Adds a hint to the message if the failure may be due to an implied sandbox.
    pub(super) fn with_hint(&self, mut exit: CommandExit) -> CommandExit {
        /// Phrases that agents use in error messages when they are not allowed to write.
        const WRITE_DENIED_TEXTS: [&str; 6] = [
            "permission denied",
            "eacces",
            "eperm",
            "erofs",
            "readonly",
            "read-only",
        ];
        // A remote agent is not confined.
        let sandbox = self
            .sandbox
            .as_ref()
            .filter(|_| self.agent.remote.is_none());
        let hint = sandbox.and_then(Confinement::hint);
        if let (Some(message), Some(hint)) = (&mut exit.message, hint) {
            let said = message.to_ascii_lowercase();
            if exit.code == CommandExit::AGENT_FAILED
                || WRITE_DENIED_TEXTS.iter().any(|words| said.contains(words))
            {
                message.push('\n');
                message.push_str(&hint);
            }
        }
        exit
    }

    /// If the bundled agent is chosen and cannot store sessions, returns the reason. Otherwise returns `None`.
    pub(super) fn storage_problem(&self) -> Option<String> {
        match self.agent.is_bundled() {
            true => crate::agent::storage_problem(),
            false => None,
        }
    }

    pub(super) fn target(&self) -> StartTarget<'_> {
        StartTarget {
            agent: &self.agent,
            cwd: &self.cwd,
            live: self.live.as_ref(),
        }
    }
}

/// Checks that `--max-turns` can be kept. Only the bundled agent can be told how often it may call its model. What other
/// agents report does not show it: they may report several tool calls of one response, or none.
fn require_countable_turns(agent: &AgentChoice, is_live: bool) -> Result<(), CommandExit> {
    let why = if !agent.is_bundled() {
        "it does not report when it calls its model; use --timeout or --max-cost"
    } else if is_live {
        "the session is live, and other clients share the agent; use --no-server"
    } else {
        return Ok(());
    };
    let name = agent.display_name();
    Err(CommandExit::usage(format!(
        "--max-turns is not available for {name}: {why}"
    )))
}
