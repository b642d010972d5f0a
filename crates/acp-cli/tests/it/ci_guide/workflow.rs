//! Runs the jobs of the example workflows as a runner of GitHub would: with the inputs, outputs and scripts that the YAML
//! files name. An expression that the files do not define makes the test fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{CommandResult, TestProject};

/// The prefix of this repository's own actions in `uses`.
const OWN_ACTIONS: &str = "OWNER/REPOSITORY/action";

/// Returns this repository's root.
pub(super) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Parses a YAML file of this repository, or returns `None` with a note if the machine cannot.
pub(super) fn read_yaml(file: &str) -> Option<Value> {
    // YAML 1.1 reads the key `on` as true, which JSON writes as "true".
    let program =
        "import sys, json, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let file = repository().join(file);
    let output = Command::new("python3")
        .args(["-c", program])
        .arg(&file)
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Some(serde_json::from_slice(&output.stdout).unwrap())
        }
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("No module named") => {
            panic!("{}: {output:?}", file.display())
        }
        _ => {
            println!("skipped: Python with PyYAML is not installed");
            None
        }
    }
}

/// Returns `true` if the programs that GitHub's runners have are installed here too. If not, prints a note.
pub(super) fn has_runner_programs() -> bool {
    let missing: Vec<&str> = ["bash", "git", "jq", "curl", "iconv"]
        .into_iter()
        .filter(|program| Command::new(program).arg("--version").output().is_err())
        .collect();
    if !missing.is_empty() {
        println!("skipped: not installed: {}", missing.join(", "));
    }
    missing.is_empty()
}

/// A job of a workflow on a machine of its own.
pub(super) struct JobRun<'a> {
    project: &'a TestProject,
    workflow: &'a Value,
    job: &'a str,
    /// The values of expressions such as `github.run_id`.
    pub(super) context: BTreeMap<String, String>,
    /// Inputs to use instead of those in the workflow.
    pub(super) inputs: BTreeMap<&'static str, String>,
    /// Variables that a runner sets.
    pub(super) environment: BTreeMap<&'static str, String>,
    /// The checkout.
    pub(super) workspace: PathBuf,
    /// The artifacts of the workflow.
    artifacts: PathBuf,
}

impl<'a> JobRun<'a> {
    /// Creates the run of a job in a checkout. Jobs of the same project share their artifacts.
    pub(super) fn new(
        project: &'a TestProject,
        workflow: &'a Value,
        job: &'a str,
        workspace: PathBuf,
    ) -> Self {
        let temp = project.path_outside(&format!("runner-{job}"));
        let context = [
            ("runner.temp", temp.to_str().unwrap()),
            ("github.token", "the-token"),
            ("github.ref_name", "main"),
            ("github.run_id", "11"),
            ("github.run_attempt", "1"),
            ("github.event.pull_request.number", "7"),
            ("secrets.ANTHROPIC_API_KEY", "sk-ant-secret"),
        ];
        Self {
            project,
            workflow,
            job,
            context: context
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            inputs: BTreeMap::new(),
            environment: BTreeMap::new(),
            workspace,
            artifacts: project.path_outside("artifacts"),
        }
    }

    fn steps(&self) -> &'a Vec<Value> {
        self.workflow["jobs"][self.job]["steps"].as_array().unwrap()
    }

    /// Runs the job's steps until one fails. Returns the last result of a script, with the output of all.
    pub(super) fn run(&mut self) -> CommandResult {
        let mut all = CommandResult {
            code: Some(0),
            stdout: String::new(),
            stderr: String::new(),
        };
        for step in self.steps() {
            let Some(uses) = step["uses"].as_str() else {
                // The workflow's own commands prepare the project, which the test has done.
                continue;
            };
            let with =
                |name: &str| self.expand(step["with"][name].as_str().unwrap(), &BTreeMap::new());
            if let Some(action) = uses.strip_prefix(OWN_ACTIONS) {
                let (action, version) = action.split_once('@').unwrap();
                assert_eq!(version, concat!("v", env!("CARGO_PKG_VERSION")));
                let folder = repository()
                    .join("action")
                    .join(action.trim_start_matches('/'));
                let result = self.run_action(&folder, step);
                all.stdout.push_str(&result.stdout);
                all.stderr.push_str(&result.stderr);
                all.code = result.code;
                if result.code != Some(0) {
                    return all;
                }
            } else if uses.starts_with("actions/checkout@") {
                assert_eq!(step["with"]["persist-credentials"], false, "{}", self.job);
            } else if uses.starts_with("actions/upload-artifact@") {
                for file in with("path").split_whitespace().map(Path::new) {
                    std::fs::copy(file, self.artifacts.join(file.file_name().unwrap())).unwrap();
                }
            } else if uses.starts_with("actions/download-artifact@") {
                let to = with("path");
                std::fs::create_dir_all(&to).unwrap();
                for file in std::fs::read_dir(&self.artifacts).unwrap().flatten() {
                    std::fs::copy(file.path(), Path::new(&to).join(file.file_name())).unwrap();
                }
            } else {
                panic!("unknown action: {uses}");
            }
        }
        all
    }

    /// Runs the scripts of a composite action.
    fn run_action(&mut self, folder: &Path, step: &Value) -> CommandResult {
        let file = folder.join("action.yml");
        let action = read_yaml(file.strip_prefix(repository()).unwrap().to_str().unwrap()).unwrap();
        let mut inputs = BTreeMap::new();
        let given = step["with"].as_object().cloned().unwrap_or_default();
        let declared = action["inputs"].as_object().cloned().unwrap_or_default();
        for name in given.keys() {
            assert!(
                declared.contains_key(name),
                "{} has no input {name}",
                file.display()
            );
        }
        for (name, input) in &declared {
            let value = match (self.inputs.get(name.as_str()), given.get(name)) {
                (Some(own), _) => own.clone(),
                (None, Some(value)) => self.scalar(value, &BTreeMap::new()),
                (None, None) => {
                    assert_ne!(input["required"], true, "{name} is required");
                    input["default"].as_str().unwrap().to_owned()
                }
            };
            inputs.insert(format!("inputs.{name}"), value);
        }
        let mut outcome = None;
        for script in action["runs"]["steps"].as_array().unwrap() {
            let result = self.run_script(folder, script, step, &mut inputs);
            let is_failed = result.code != Some(0);
            outcome = Some(result);
            if is_failed {
                break;
            }
        }
        if let (Some(id), Some(outputs)) = (step["id"].as_str(), action["outputs"].as_object()) {
            for (name, output) in outputs {
                let expression = output["value"].as_str().unwrap();
                let inner = expression
                    .trim_start_matches("${{ ")
                    .trim_end_matches(" }}");
                let value = inputs.get(inner).cloned().unwrap_or_default();
                self.context
                    .insert(format!("steps.{id}.outputs.{name}"), value);
            }
        }
        outcome.unwrap()
    }

    /// Runs one script of an action, and adds its outputs to the values.
    fn run_script(
        &self,
        folder: &Path,
        script: &Value,
        caller: &Value,
        values: &mut BTreeMap<String, String>,
    ) -> CommandResult {
        let line = script["run"].as_str().unwrap();
        assert!(
            !line.contains("${{"),
            "an input could change the script: {line}"
        );
        let temp = Path::new(&self.context["runner.temp"]);
        let output = temp.join("output");
        std::fs::write(&output, "").unwrap();
        let mut command = self.project.program_command("bash");
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", line])
            .current_dir(&self.workspace)
            .env("GITHUB_ACTION_PATH", folder)
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_OUTPUT", &output)
            .env("GITHUB_REPOSITORY", "owner/project")
            .envs(&self.environment);
        for (names, known) in [
            (&caller["env"], BTreeMap::new()),
            (&script["env"], values.clone()),
        ] {
            for (name, value) in names.as_object().into_iter().flatten() {
                command.env(name, self.scalar(value, &known));
            }
        }
        let result = CommandResult::from_output(command.output().unwrap());
        let id = script["id"].as_str().unwrap_or("none");
        for line in std::fs::read_to_string(&output).unwrap().lines() {
            let (name, value) = line
                .split_once('=')
                .unwrap_or_else(|| panic!("not an output: {line:?}"));
            values.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
        result
    }

    fn scalar(&self, value: &Value, known: &BTreeMap<String, String>) -> String {
        match value {
            Value::String(text) => self.expand(text, known),
            other => other.to_string(),
        }
    }

    /// Replaces the expressions in a text by their values.
    fn expand(&self, text: &str, known: &BTreeMap<String, String>) -> String {
        let mut parts = text.split("${{ ");
        let mut expanded = parts.next().unwrap().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(" }}").unwrap();
            let value = known.get(name).or_else(|| self.context.get(name));
            expanded.push_str(value.unwrap_or_else(|| panic!("unknown expression: {name}")));
            expanded.push_str(rest);
        }
        expanded
    }
}
