//! What a model can do.
//!
//! A tool is a file here, with its arguments as a type. What all of them have in common, the report
//! to the client and the permission, is in `turn.rs`.

mod edit;
mod fetch;
mod glob;
pub(crate) mod list;
mod nearest;
pub(crate) mod partial;
mod plan;
mod read;
mod run;
mod search;
pub(crate) mod switch_mode;
pub(crate) mod tool;
mod write;
pub(crate) mod written;

use acp::v1::ToolKind;
use schemars::JsonSchema;
use serde_json::Value;

use crate::model::interface::ToolSpec;
use crate::permission::deed::Deed;
use crate::permission::subject::Subject;
use crate::tools::switch_mode::SwitchMode;
use crate::tools::tool::{About, Change, Doing, Output, read_arguments};
use crate::workspace::Workspace;
use crate::workspace::fault::Fault;

/// The name of the tool whose calls are the plan.
const PLAN: &str = "plan";

/// A tool call with its arguments.
#[derive(Debug)]
pub(crate) enum Call {
    Read(read::Read),
    List(list::List),
    Glob(glob::Glob),
    Search(search::Search),
    Write(write::Write),
    Edit(edit::Edit),
    Run(run::Run),
    Fetch(fetch::Fetch),
    Plan(plan::Plan),
    SwitchMode(SwitchMode),
    /// A tool of an MCP server.
    Server(crate::mcp::call::ServerCall),
}

/// Makes a list of the tools, and reads the call of one.
macro_rules! tools {
    ($($variant:ident($arguments:ty) = $name:literal: $description:literal,)+) => {
        impl Call {
            /// Reads a call.
            ///
            /// # Errors
            /// There is no such tool, or it does not take these arguments.
            pub(crate) fn read(tool: &str, arguments: &Value) -> Result<Self, String> {
                match tool {
                    $($name => read_arguments::<$arguments>(tool, arguments).map(Self::$variant),)+
                    _ => Err(format!("There is no tool `{tool}`; there are {}.", [$($name),+].join(", "))),
                }
            }
        }

        impl Call {
            /// The tool's name.
            pub(crate) fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Server(call) => call.name(),
                }
            }
        }

        /// The tools, as a model is told of them.
        pub(crate) fn specs() -> Vec<ToolSpec> {
            vec![$(ToolSpec {
                name: $name.into(),
                description: $description.into(),
                parameters: schema::<$arguments>(),
            },)+]
        }
    };
}

tools! {
    Read(read::Read) = "read": "Reads a text file, or some lines of it: 2000 lines and 128 KiB at most, after which it says how to go on. Shows an image (PNG, JPEG, GIF, WebP). Read a file before you change it.",
    List(list::List) = "list": "Lists a directory, 1000 entries at most, with the sizes of its files. To find files in a whole tree use `glob`.",
    Glob(glob::Glob) = "glob": "Finds files by a pattern for their paths, the newest first, 200 at most. What .gitignore names is left out.",
    Search(search::Search) = "search": "Searches files for a regular expression (the syntax of Rust's `regex`: no look-around, no back-references), line by line: 200 matching lines at most. Hidden files, binary files, and what .gitignore names are left out.",
    Write(write::Write) = "write": "Writes a text file whole, and makes the directories above it; what was in it is replaced. For a change in a file use `edit`.",
    Edit(edit::Edit) = "edit": "Replaces a text in a file by another. The text must be in the file exactly as given, and once unless `replace_all` is set. What is not found or not unique is explained and nothing is changed.",
    Run(run::Run) = "run": "Runs a command line in the shell, in the session's working directory, without input, and waits for its end: 120 s unless `timeout` says more, 600 s at most. What it leaves running is ended with it. Of a long output the beginning and the end are given back, 32 KiB together. Use the other tools to read, find and change files.",
    Fetch(fetch::Fetch) = "fetch": "Fetches a document from the web by http or https; HTML becomes Markdown. 48 KiB of text at once, after which it says how to go on; documents over 4 MiB and what is no text are refused. The person is asked for each new host.",
    Plan(plan::Plan) = "plan": "Shows the plan to the person: all of its entries with how far each is. Call it again whenever that changes.",
    SwitchMode(SwitchMode) = "switch_mode": "Asks the person to switch the session to another mode. In architect mode nothing can be changed and no command run: leave it with this, and say in the plan what you are going to do.",
}

fn schema<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

impl Call {
    /// What it is, for people; `None` for what is not shown as a tool call.
    pub(crate) fn about(&self, workspace: &Workspace) -> Option<About> {
        Some(match self {
            Self::Read(read) => read.about(workspace),
            Self::List(list) => list.about(workspace),
            Self::Glob(glob) => glob.about(workspace),
            Self::Search(search) => search.about(workspace),
            Self::Write(write) => write.about(workspace),
            Self::Edit(edit) => edit.about(workspace),
            Self::Run(run) => run.about(),
            Self::Fetch(fetch) => fetch.about(),
            Self::SwitchMode(switch) => switch.about(),
            Self::Server(call) => call.about(),
            Self::Plan(_) => return None,
        })
    }

    /// What permission is needed for; `None` for what changes nothing here. What has a subject is not done in
    /// architect mode.
    pub(crate) fn subject(&self) -> Option<Subject> {
        match self {
            Self::Write(_) => Some(Subject::Tool("write".to_owned())),
            Self::Edit(_) => Some(Subject::Tool("edit".to_owned())),
            Self::Run(run) => Some(Subject::Command(run.command.clone())),
            Self::Server(call) => call.subject(),
            Self::Read(_)
            | Self::List(_)
            | Self::Glob(_)
            | Self::Search(_)
            | Self::Fetch(_)
            | Self::Plan(_)
            | Self::SwitchMode(_) => None,
        }
    }

    /// What it is about to do, for mode and rules to decide about; `None` for what nobody forbids, and for what
    /// asks by itself.
    pub(crate) fn deed(&self, workspace: &Workspace) -> Option<Deed> {
        let look = |kind, path: &str| Deed::Look {
            kind,
            path: workspace.absolute(path),
        };
        Some(match self {
            Self::Read(read) => Deed::Read(workspace.absolute(&read.path)),
            Self::List(list) => look(ToolKind::Read, &list.path),
            Self::Glob(glob) => look(ToolKind::Search, &glob.path),
            Self::Search(search) => look(ToolKind::Search, &search.path),
            Self::Write(write) => Deed::Change(workspace.absolute(&write.path)),
            Self::Edit(edit) => Deed::Change(workspace.absolute(&edit.path)),
            Self::Run(run) => Deed::Run(run.command.clone()),
            Self::Server(call) => Deed::Other(call.kind()?),
            Self::Fetch(_) | Self::Plan(_) | Self::SwitchMode(_) => return None,
        })
    }

    /// Whether it asks by itself for what it does, and begins when that is answered.
    pub(crate) fn asks_itself(&self) -> bool {
        matches!(self, Self::Fetch(_) | Self::SwitchMode(_))
    }

    /// What a person is asked about, and an answer with "always" is about. `special`: the file is none of those
    /// that are changed all the time.
    pub(crate) fn asked_about(&self, deed: &Deed, special: bool) -> Subject {
        match deed {
            Deed::Change(path) if special => Subject::File(path.clone()),
            _ => self
                .subject()
                .unwrap_or_else(|| Subject::Tool(self.name().to_owned())),
        }
    }

    /// The change it would make to a file, for the person to see before they decide.
    pub(crate) async fn preview(&self, workspace: &Workspace) -> Result<Option<Change>, Fault> {
        match self {
            Self::Write(write) => write.change(workspace).await.map(Some),
            Self::Edit(edit) => edit.change(workspace).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Carries it out. `previewed` is what [`preview`](Self::preview) gave.
    pub(crate) async fn run(
        &self,
        doing: &mut Doing<'_>,
        previewed: Option<&Change>,
    ) -> Result<Output, Fault> {
        match self {
            Self::Read(read) => read.run(doing).await,
            Self::List(list) => list.run(doing).await,
            Self::Glob(glob) => glob.run(doing).await,
            Self::Search(search) => search.run(doing).await,
            Self::Write(write) => write.run(doing, previewed).await,
            Self::Edit(edit) => edit.run(doing).await,
            Self::Run(run) => run.run(doing).await,
            Self::Fetch(fetch) => fetch.run(doing).await,
            Self::Plan(plan) => plan.run(doing.workspace).await,
            Self::SwitchMode(switch) => switch.run(doing).await,
            Self::Server(call) => call.run(doing).await,
        }
    }
}

impl Call {
    /// The plan, if it is one: it is not shown as a tool call.
    pub(crate) fn as_plan(&self) -> Option<&plan::Plan> {
        match self {
            Self::Plan(plan) => Some(plan),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_calls_are_explained() {
        let error = Call::read("frob", &json!({})).unwrap_err();
        assert!(error.contains("There is no tool `frob`"), "{error}");
        let error = Call::read("read", &json!({"path": 3})).unwrap_err();
        assert!(error.contains("`read` cannot take"), "{error}");
        assert!(Call::read("list", &Value::Null).is_ok());
    }

    #[test]
    fn every_tool_has_a_schema() {
        for spec in specs() {
            assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
        }
    }
}
