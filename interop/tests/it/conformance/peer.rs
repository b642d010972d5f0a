//! A peer, and the expected results of the conformance suite and of `acp trace lint` for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{InteropProject, acp_program};

/// The maximum time for the whole suite. Some peers sleep for seconds in every turn.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The maximum number of times that a turn is recorded if the recording is incomplete.
const MAX_RECORDINGS: usize = 10;

/// The maximum number of checks that a client can pass in one run and skip in another, because it exits after its turn.
const MAX_TIMING_DIFFERENCES: u64 = 5;

/// A program to check.
pub(crate) struct ConformancePeer {
    name: &'static str,
    side: &'static str,
    protocol: &'static str,
    jobs: u32,
    options: Vec<String>,
    command: Vec<String>,
}

impl ConformancePeer {
    pub(crate) fn agent<A: Into<String>>(
        name: &'static str,
        command: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(name, "agent", command)
    }

    pub(crate) fn client<A: Into<String>>(
        name: &'static str,
        command: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(name, "client", command)
    }

    fn new<A: Into<String>>(
        name: &'static str,
        side: &'static str,
        command: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            name,
            side,
            protocol: "1",
            jobs: 8,
            options: Vec::new(),
            command: command.into_iter().map(Into::into).collect(),
        }
    }

    /// Records the run in version 2. The suite detects the versions that a peer speaks by itself.
    pub(crate) fn with_version_2(mut self) -> Self {
        self.protocol = "2";
        self
    }

    /// Sets the number of checks that run in parallel.
    pub(crate) fn with_jobs(mut self, jobs: u32) -> Self {
        self.jobs = jobs;
        self
    }

    /// Adds options for `acp check`.
    pub(crate) fn with_options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|o| (*o).to_owned()));
        self
    }

    /// Requires that the suite has exactly the expected findings, and that the document has the right counts.
    pub(crate) async fn check(&self) {
        let project = InteropProject::new();
        let expected = expected_failures_file(self.name);
        let mut args = vec![
            "check",
            self.side,
            "--format",
            "json",
            "--strict",
            "--baseline",
        ];
        let list = expected.to_str().unwrap();
        let jobs = self.jobs.to_string();
        args.extend([list, "--jobs", &jobs]);
        args.extend(self.options.iter().map(String::as_str));
        args.push("--");
        args.extend(self.command.iter().map(String::as_str));
        let ended = project
            .run_program_within(TIMEOUT, acp_program(), args)
            .await;
        let report: Value = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|e| panic!("no report: {e}: {ended:#?}"));

        let mut wrong = Vec::new();
        let ids = read_list(&expected);
        let checks = report["checks"].as_array().unwrap();
        for check in checks {
            let id = check["id"].as_str().unwrap();
            let is_finding = !matches!(check["verdict"].as_str(), Some("pass" | "skip"));
            if is_finding && !ids.iter().any(|expected| expected == id) {
                wrong.push(format!(
                    "new: {}\n{}",
                    describe_check(check),
                    describe_evidence(check)
                ));
            }
            if !is_finding && ids.iter().any(|expected| expected == id) {
                wrong.push(format!(
                    "expected to be found, and not: {}",
                    describe_check(check)
                ));
            }
        }
        let mismatches = report["baseline_mismatches"].as_array().unwrap().iter();
        wrong.extend(mismatches.map(|mismatch| mismatch.as_str().unwrap().to_owned()));
        assert!(wrong.is_empty(), "{}:\n{}", self.name, wrong.join("\n"));
        assert_eq!(
            ended.code,
            Some(0),
            "{}: {:#}",
            self.name,
            report["summary"]
        );

        let of = |verdict| report["summary"][verdict].as_u64().unwrap();
        let counts = ["pass", "fail", "warn", "skip"].map(of);
        let [passed, failed, warned, skipped] = documented_counts(self.name);
        let alike = [failed, warned, passed + skipped]
            == [counts[1], counts[2], counts[0] + counts[3]]
            && passed.abs_diff(counts[0]) <= MAX_TIMING_DIFFERENCES;
        assert!(
            alike,
            "docs/conformance-results.md: the row of {} should say {counts:?}",
            self.name
        );
    }

    /// Records a turn of the agent with our client, and requires that the trace breaks exactly the rules in `broken`.
    pub(crate) async fn lint_turn(&self, turn: &str, broken: &[&str]) {
        let project = InteropProject::new();
        let trace = project.file("trace.jsonl");
        let mut args = vec![
            "run",
            "--allow",
            "all",
            "--protocol",
            self.protocol,
            turn,
            "--",
        ];
        args.extend([acp_program(), "trace", trace.to_str().unwrap(), "--"]);
        args.extend(self.command.iter().map(String::as_str));
        project
            .run_program(acp_program(), args)
            .await
            .expect_code(0);
        LintedTrace::read(&trace).await.check(self.name, broken);
    }

    /// Records a turn of the bundled agent with the client, and requires that the trace breaks exactly the rules in
    /// `broken`.
    pub(crate) async fn lint_turn_of_our_agent(&self, broken: &[&str]) {
        // A client that kills its agent kills the recorder, too, perhaps before it has written everything.
        for attempt in 1..MAX_RECORDINGS {
            let trace = self.record_turn_of_our_agent().await;
            if trace.is_complete() {
                return trace.check(self.name, broken);
            }
            eprintln!("{}: recording {attempt} is incomplete", self.name);
        }
        let trace = self.record_turn_of_our_agent().await;
        trace.check(self.name, broken);
    }

    /// Records a turn of the bundled agent with the client.
    async fn record_turn_of_our_agent(&self) -> LintedTrace {
        let project = InteropProject::new();
        let trace = project.file("trace.jsonl");
        let trace_path = trace.to_str().unwrap();
        let agent = [
            acp_program(),
            "trace",
            trace_path,
            "--",
            acp_program(),
            "agent",
        ];
        let agent = [&agent[..], &["--protocol", self.protocol]].concat();
        // None of these paths has to be quoted.
        let line = agent.join(" ");
        let mut command: Vec<&str> = Vec::new();
        for argument in &self.command {
            match argument.as_str() {
                "{agent}" => command.extend(&agent),
                "{agent-line}" => command.push(&line),
                other => command.push(other),
            }
        }
        let (program, args) = command.split_first().unwrap();
        project.run_program(program, args).await.expect_code(0);
        LintedTrace::read(&trace).await
    }
}

/// The output of `acp trace lint` for a trace.
struct LintedTrace(Vec<Value>);

impl LintedTrace {
    async fn read(trace: &Path) -> Self {
        let project = InteropProject::new();
        let args = ["trace", "lint", "--format", "json", trace.to_str().unwrap()];
        let ended = project.run_program(acp_program(), args).await;
        Self(ended.json_lines())
    }

    fn sums(&self) -> &Value {
        self.0.last().unwrap()
    }

    /// Returns `true` if there was a whole conversation: initialize, a session and a prompt, each with its response.
    fn is_complete(&self) -> bool {
        self.sums()["messages"].as_u64() >= Some(6)
    }

    /// Requires a whole conversation that breaks exactly the rules in `broken`.
    fn check(&self, peer: &str, broken: &[&str]) {
        let rules = self.sums()["rules"].as_array().unwrap().iter();
        let rules: Vec<&str> = rules.map(|rule| rule["rule"].as_str().unwrap()).collect();
        assert_eq!(rules, broken, "{peer}: {:#?}", self.0);
        assert!(self.is_complete(), "{peer}: {:#?}", self.0);
    }
}

fn describe_check(check: &Value) -> String {
    let word = |member: &str| check[member].as_str().unwrap_or_default().to_owned();
    format!(
        "{} {} {}: {}",
        word("verdict"),
        word("level"),
        word("id"),
        word("reason")
    )
}

/// Returns the last messages of a check, to show why it failed.
fn describe_evidence(check: &Value) -> String {
    let lines = check["evidence"].as_array().map_or(&[][..], Vec::as_slice);
    let lines = lines
        .iter()
        .skip(lines.len().saturating_sub(12))
        .map(|line| {
            let from = line["from"].as_str().unwrap_or_default();
            let text: String = line["text"]
                .as_str()
                .unwrap_or_default()
                .chars()
                .take(300)
                .collect();
            format!("    {from}: {text}\n")
        });
    lines.collect()
}

fn conformance_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the path of the file with a peer's expected findings.
fn expected_failures_file(peer: &str) -> PathBuf {
    conformance_directory()
        .join("conformance")
        .join(format!("{peer}.txt"))
}

/// Reads the ids in a file of expected findings: one per line, with comments that start with `#`.
fn read_list(list: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(list).unwrap_or_else(|e| panic!("{}: {e}", list.display()));
    let ids = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    ids.filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

/// Returns the expected findings of every peer.
pub(crate) fn all_expected_failures() -> BTreeMap<String, Vec<String>> {
    let lists = std::fs::read_dir(conformance_directory().join("conformance")).unwrap();
    let lists = lists.map(|entry| entry.unwrap().path());
    lists
        .map(|list| {
            let name = list.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, read_list(&list))
        })
        .collect()
}

pub(crate) fn read_document() -> String {
    let path = conformance_directory().join("../docs/conformance-results.md");
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns a peer's counts in `docs/conformance-results.md`: passed, failed, warned, skipped.
fn documented_counts(peer: &str) -> [u64; 4] {
    let document = read_document();
    let start = format!("| `{peer}` |");
    let rows = document
        .lines()
        .filter_map(|line| line.strip_prefix(&start));
    let mut counts = rows.filter_map(|row| {
        let cells = row.trim().trim_end_matches('|').split('|');
        let counts: Result<Vec<u64>, _> = cells.map(|cell| cell.trim().parse()).collect();
        counts.ok()?.try_into().ok()
    });
    counts
        .next()
        .unwrap_or_else(|| panic!("docs/conformance-results.md has no counts of {peer}"))
}
