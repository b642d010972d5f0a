//! The commands `/test` and `/plan`, which run several steps and report them as a plan.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::survey::{extract_search_words, quote_words};
use super::{TurnProgress, count_text, exit_code};
use crate::model::message::{ToolRequest, ToolStatus};
use crate::model::step::Step;
use crate::project::{self, ProjectFiles, ProjectHint};
use crate::text::{first_line, to_code_block};
use crate::tools::list::entry_names;
use crate::tools::read::without_line_numbers;

impl TurnProgress<'_> {
    /// Returns the next steps of `/test`.
    pub(super) fn test_steps(&self) -> Vec<Step> {
        let ran = self.calls_of_tool("run").next();
        let allowed = ran.is_none_or(|(_, result)| result.status != ToolStatus::Rejected);
        let (finding, look) = match self.find_test_command(0) {
            Ok(finding) => (Some(finding), None),
            Err(step) => (None, Some(step)),
        };
        let nothing = matches!(finding, Some(ProjectHint::Nothing));
        let steps = |find, run, report| {
            let mut plan = vec![("Find the project's test command", "medium", find)];
            // If there are no tests, the plan has no further entries.
            if !nothing {
                plan.push(("Run the tests", "high", run));
                plan.push(("Report the result", "medium", report));
            }
            plan
        };
        if let Some(look) = look {
            return self.with_plan(&steps("in_progress", "pending", "pending"), look);
        }
        let Some(ProjectHint::Command { command, .. }) = finding else {
            return self.finish_with(
                &steps("completed", "", ""),
                &format!(
                    "No test command found: {} contains none of {}. Use `/run COMMAND` to run another command.",
                    "the working directory",
                    project::TEST_FILES_DESCRIPTION
                ),
            );
        };
        let Some((_, result)) = ran else {
            let run = self.nth_call_step(1, "run", json!({ "command": command }));
            return self.with_plan(&steps("completed", "in_progress", "pending"), vec![run]);
        };
        if !allowed {
            let answer_text = format!("{} The tests were not run.", result.text);
            return self.finish_with(&steps("completed", "pending", "pending"), &answer_text);
        }
        let reporting = steps("completed", "completed", "in_progress");
        if !self.has_answered && !self.is_current_plan(&reporting) {
            return vec![self.step_for_call("plan", plan_arguments(&reporting))];
        }
        let answer_text = match exit_code(result) {
            Some(0) => format!("The tests passed: `{command}` exited with code 0."),
            Some(code) => {
                format!("The tests failed: `{command}` exited with code {code}.")
            }
            None => format!(
                "The tests did not finish: `{command}` returned no exit code. {}",
                result.text
            ),
        };
        self.finish_with(&steps("completed", "completed", "completed"), &answer_text)
    }

    /// Returns the next steps of `/plan GOAL`.
    pub(super) fn plan_steps(&self, goal: &str) -> Vec<Step> {
        let short = first_line(goal);
        let words = extract_search_words(goal);
        let finding = self.find_test_command(0);
        let listed = self.calls_of_tool("list").next().is_some();
        let searched = self.calls_of_tool("search").next();
        let test = match &finding {
            Ok(ProjectHint::Command { command, .. }) => format!("Run the tests with `{command}`"),
            Ok(_) => "Add tests, because no test command was found".to_owned(),
            Err(_) => "Run the tests".to_owned(),
        };
        let done = |done: bool, before: bool| match (done, before) {
            (true, _) => "completed",
            (false, true) => "in_progress",
            (false, false) => "pending",
        };
        let found = finding.is_ok();
        let search = format!("Find the places that mention {}", quote_words(&words));
        let work = format!("Decide what to change to reach the goal: {short}");
        let check = format!("Review the result against the goal: {short}");
        let mut plan = vec![
            ("Survey the working directory", "medium", done(listed, true)),
            (
                "Find out how the project is tested",
                "medium",
                done(found, listed),
            ),
        ];
        if !words.is_empty() {
            plan.push((search.as_str(), "medium", done(searched.is_some(), found)));
        }
        plan.extend([
            (work.as_str(), "high", "pending"),
            ("Make the change, in small steps", "high", "pending"),
            (test.as_str(), "high", "pending"),
            (check.as_str(), "medium", "pending"),
        ]);
        if let Err(look) = finding {
            return self.with_plan(&plan, look);
        }
        if searched.is_none() && !words.is_empty() {
            let pattern = format!("(?i)({})", words.join("|"));
            let search = self.nth_call_step(1, "search", json!({ "pattern": pattern }));
            return self.with_plan(&plan, vec![search]);
        }
        let mut answer_text = format!(
            "Plan for: {short}\n\nThis plan was made without a language model. The steps marked as completed are done. The others are the usual steps for such work.  "
        );
        match &finding {
            Ok(ProjectHint::Command { command, because }) => {
                answer_text.push_str(&format!("Test command: `{command}` ({because}). "));
            }
            _ => answer_text.push_str("No test command found. "),
        }
        match searched {
            Some((_, result))
                if result.data["matches"] != 0 && result.status == ToolStatus::Done =>
            {
                answer_text.push_str(&format!(
                    "{} in {} mention {}:\n\n{}",
                    count_text(&result.data, "matches", "line"),
                    count_text(&result.data, "files", "file"),
                    quote_words(&words),
                    to_code_block(&first_lines(&result.text, 12))
                ));
            }
            Some(_) => answer_text.push_str(&format!("No file mentions {}.", quote_words(&words))),
            None => {}
        }
        self.finish_with(&plan, answer_text.trim_end())
    }

    /// Returns the project's test command, or the calls that are needed to find it. `ahead` is the number of calls that
    /// come before these in the same round.
    fn find_test_command(&self, ahead: usize) -> Result<ProjectHint, Vec<Step>> {
        // The call that reports the plan comes first in the round.
        let call = |tool, arguments| vec![self.nth_call_step(ahead + 1, tool, arguments)];
        let of = |call: &ToolRequest| -> Option<String> {
            Some(call.arguments.get("path")?.as_str()?.to_owned())
        };
        let mut listings: HashMap<String, Option<Vec<String>>> = HashMap::new();
        for (request, result) in self.calls_of_tool("list") {
            let names = (result.status == ToolStatus::Done).then(|| entry_names(&result.data));
            listings.insert(of(request).unwrap_or_default(), names);
        }
        let Some(names) = listings.remove("") else {
            return Err(call("list", json!({})));
        };
        let names = names.unwrap_or_default();
        let files: HashMap<String, Option<String>> = self
            .calls_of_tool("read")
            .filter_map(|(request, result)| {
                let text =
                    (result.status == ToolStatus::Done).then(|| without_line_numbers(&result.text));
                Some((of(request)?, text))
            })
            .collect();
        let clues = ProjectFiles {
            names: names.iter().map(String::as_str).collect(),
            texts: files
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_deref()))
                .collect(),
            lists: listings
                .iter()
                .map(|(name, names)| {
                    let names = names
                        .as_ref()
                        .map(|names| names.iter().map(String::as_str).collect());
                    (name.as_str(), names)
                })
                .collect(),
        };
        match project::detect_test_command(&clues) {
            ProjectHint::Read(name) => Err(call("read", json!({ "path": name }))),
            ProjectHint::List(name) => Err(call("list", json!({ "path": name }))),
            finding => Ok(finding),
        }
    }

    /// Returns `steps`, preceded by a call that reports the plan if it has changed.
    fn with_plan(&self, plan: &[(&str, &str, &str)], steps: Vec<Step>) -> Vec<Step> {
        let mut all = Vec::new();
        if !self.is_current_plan(plan) {
            all.push(self.step_for_call("plan", plan_arguments(plan)));
        }
        all.extend(steps);
        all
    }

    /// Returns the final text, followed by a call that reports the plan if it has changed.
    fn finish_with(&self, plan: &[(&str, &str, &str)], answer_text: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.has_answered {
            steps.push(Step::Text(answer_text.to_owned()));
        }
        self.with_plan(plan, Vec::new())
            .into_iter()
            .for_each(|step| steps.push(step));
        steps
    }

    fn is_current_plan(&self, plan: &[(&str, &str, &str)]) -> bool {
        let last = self.calls_of_tool("plan").next();
        last.is_some_and(|(call, _)| call.arguments == plan_arguments(plan))
    }
}

/// Returns the arguments of a call to the `plan` tool. Each entry consists of content, priority and status.
fn plan_arguments(plan: &[(&str, &str, &str)]) -> Value {
    let entries: Vec<Value> = plan
        .iter()
        .map(|(content, priority, status)| {
            json!({ "content": content, "priority": priority, "status": status })
        })
        .collect();
    json!({ "entries": entries })
}

fn first_lines(text: &str, most: usize) -> String {
    let mut lines: Vec<&str> = text.lines().take(most).collect();
    if text.lines().count() > most {
        lines.push("…");
    }
    lines.join("\n")
}
