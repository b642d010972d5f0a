//! Loads permission rules from the user and the project. Also implements `acp permissions`, which lists rules and
//! remembered answers, and revokes answers.

use std::path::Path;

use acp_agent::RuleFiles;
use acp_config::paths::display_path;
use acp_config::{PermissionSources, answers_directory, rules_file};
use acp_host::{
    DecisionSource, PermissionNote, PermissionRule, PermissionRules, Permissions, Policy,
    RememberedAnswer, RememberedSubject, RuleEffect, literal, terminal_text,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::permissions::{
    ListPermissionsArgs, PermissionsArgs, PermissionsSubcommand, RevokeArgs,
};
use crate::args::shared::ListFormat;
use crate::exit::CommandExit;
use crate::screen::print;

/// Returns an agent's permissions in `cwd`. `allow` is the policy given on the command line, if any. `can_ask` is whether
/// there is a user who can answer.
pub(crate) fn from_policy(
    allow: Option<Policy>,
    can_ask: bool,
    cwd: &Path,
) -> Result<Permissions, CommandExit> {
    let otherwise = match can_ask {
        true => Policy::Ask,
        false => Policy::Reads,
    };
    let sources = PermissionSources::for_directory(cwd)?;
    Ok(sources.permissions(allow, otherwise)?)
}

/// Returns the files that contain the user's rules and remembered answers, for the bundled agent.
pub(crate) fn rule_files() -> RuleFiles {
    let mut files = RuleFiles::new();
    if let Some(file) = rules_file() {
        files = files.user_rules(file);
    }
    if let Some(answers) = answers_directory() {
        files = files.answers(answers);
    }
    files
}

/// Returns who or what has decided, in the words of the command line.
pub(crate) fn source_text(by: &DecisionSource) -> String {
    match by {
        DecisionSource::Policy(policy) => format!("--allow {policy}"),
        DecisionSource::Rule { file, number, rule } => {
            format!("{}, rule {number} ({rule})", display_path(file))
        }
        DecisionSource::Default { file } => format!("the default in {}", display_path(file)),
        DecisionSource::Remembered { number } => {
            format!("your remembered answer {number} (see `acp permissions`)")
        }
        other => other.to_string(),
    }
}

/// Formats a note for `acp run` to print.
pub(crate) fn note_text(note: &PermissionNote) -> String {
    // The agent's text has no length limit and could fill the screen.
    let what = |what: &str| {
        terminal_text::truncate_middle(what, terminal_text::MAX_VALUE_CHARS).into_owned()
    };
    let text = match note {
        PermissionNote::Rejected {
            by: who,
            what: said,
        } => format!("rejected by {}: {}", source_text(who), what(said)),
        PermissionNote::NoUserToAsk {
            by: who,
            what: said,
        } => {
            let wants = who.as_ref().map(source_text);
            let wants = wants
                .map(|wants| format!(" by {wants}"))
                .unwrap_or_default();
            format!(
                "rejected{wants}: no terminal on which to ask for permission: {}",
                what(said)
            )
        }
        PermissionNote::Remembered(answer) => format!(
            "remembered for this project: {answer}; revoke with: acp permissions revoke {}",
            answer.number
        ),
        other => {
            terminal_text::truncate_middle(&other.to_string(), terminal_text::MAX_MESSAGE_CHARS)
                .into_owned()
        }
    };
    literal::escape_line(&text)
}

pub(crate) fn run_permissions(args: &PermissionsArgs) -> CommandExit {
    let done = match &args.command {
        None => list_permissions(&args.list),
        Some(PermissionsSubcommand::Revoke(args)) => revoke_answers(args),
    };
    done.unwrap_or_else(|exit| exit)
}

fn list_permissions(args: &ListPermissionsArgs) -> Result<CommandExit, CommandExit> {
    let said = PermissionSources::for_directory(&args.cwd)?;
    let answers = said.answers()?;
    let shown = match args.format {
        ListFormat::Text => render_text(&said, &answers),
        ListFormat::Json => format!("{}\n", render_json(&said, &answers)),
    };
    Ok(match print(shown.as_bytes()) {
        true => CommandExit::SUCCESS,
        false => CommandExit::STDOUT_CLOSED,
    })
}

fn revoke_answers(args: &RevokeArgs) -> Result<CommandExit, CommandExit> {
    let said = PermissionSources::for_directory(&args.cwd)?;
    let failed = |e: acp_host::RememberedAnswersError| CommandExit::failed(e.to_string());
    let project = match display_path(said.project.root()) {
        here if here.is_empty() => "this project".to_owned(),
        project => project,
    };
    let nothing = || CommandExit::usage("no state directory");
    let remembered = said.remembered_answers.as_ref().ok_or_else(nothing)?;
    let message = match args.number {
        Some(number) => match remembered.revoke(number).map_err(failed)? {
            Some(answer) => format!("revoked: {}\n", literal::escape_line(&answer.to_string())),
            None => {
                let message = format!(
                    "remembered answer not found: {number}; list answers with `acp permissions`"
                );
                return Err(CommandExit::usage(message));
            }
        },
        None => match remembered.revoke_all().map_err(failed)? {
            0 => "no remembered answers\n".to_owned(),
            1 => format!("revoked 1 answer for {project}\n"),
            all => format!("revoked {all} answers for {project}\n"),
        },
    };
    print(message.as_bytes());
    Ok(CommandExit::SUCCESS)
}

fn render_text(said: &PermissionSources, answers: &[RememberedAnswer]) -> String {
    let mut text = format!(
        "Permissions in {} (strictest wins: deny, ask, allow)\n",
        literal::escape_line(&said.project.root().display().to_string())
    );
    text.push_str("\nYour rules");
    match (&said.user_rules, rules_file()) {
        (Some(rules), _) => text.push_str(&render_rules(rules)),
        (None, Some(file)) => {
            text.push_str(&format!(
                ": none (add them in {})\n",
                literal::escape_line(&display_path(&file))
            ));
        }
        (None, None) => text.push_str(": none\n"),
    }
    text.push_str("\nRemembered answers in this project:");
    if answers.is_empty() {
        text.push_str(" nothing\n");
    } else {
        text.push('\n');
        let rows = answers.iter().map(|answer| {
            let subject = match &answer.subject {
                RememberedSubject::Command(line) | RememberedSubject::Commands(line) => {
                    format!("`{line}`")
                }
                RememberedSubject::Path(path) => display_path(path),
                other => format!("{other:?}"),
            };
            let when =
                answer_time(answer).map(|when| when.strftime("%Y-%m-%d %H:%M UTC").to_string());
            let subject = match when {
                Some(when) => format!("{subject}  ({when})"),
                None => subject,
            };
            let effect = if answer.allowed {
                RuleEffect::Allow
            } else {
                RuleEffect::Deny
            };
            [
                answer.number.to_string(),
                effect.to_string(),
                answer.kind.clone(),
                subject,
            ]
        });
        render_table(&rows.collect::<Vec<_>>(), &mut text);
        text.push_str("  Revoke with: acp permissions revoke NUMBER\n");
    }
    if said.project_rules.is_empty() {
        text.push_str("\nProject rules: none\n");
    }
    for rules in &said.project_rules {
        text.push_str("\nProject rules (can only add restrictions)");
        text.push_str(&render_rules(rules));
    }
    text.push_str("\nEverything else: ");
    text.push_str(
        match said
            .user_rules
            .as_ref()
            .and_then(PermissionRules::default_effect)
        {
            Some(RuleEffect::Allow) => "allowed by your default, unless overridden by --allow.\n",
            Some(RuleEffect::Ask) => "ask, by your default, unless overridden by --allow.\n",
            Some(RuleEffect::Deny) => "denied by your default, unless overridden by --allow.\n",
            None => {
                "as set by --allow. Default: ask on a terminal; otherwise, reading is allowed\n\
             and everything else is rejected.\n"
            }
        },
    );
    text
}

/// Renders the rules in a file.
fn render_rules(rules: &PermissionRules) -> String {
    let mut text = format!(
        ", in {}:\n",
        literal::escape_line(&display_path(rules.file()))
    );
    let quoted = |texts: Vec<&str>| {
        let texts: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
        texts.join(" or ")
    };
    let row = |rule: &PermissionRule| {
        let kinds: Vec<&str> = rule.kinds().iter().map(|kind| kind.as_str()).collect();
        let kinds = match kinds.is_empty() {
            true => "anything".to_owned(),
            false => kinds.join(", "),
        };
        let (commands, paths) = (
            quoted(rule.commands().collect()),
            quoted(rule.paths().collect()),
        );
        let what = match (commands.is_empty(), paths.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!("command {commands}"),
            (true, false) => format!("path {paths}"),
            (false, false) => format!("command {commands}, path {paths}"),
        };
        [
            rule.number().to_string(),
            rule.effect().to_string(),
            kinds,
            what,
        ]
    };
    let rows: Vec<[String; 4]> = rules.iter().map(row).collect();
    if rows.is_empty() && rules.default_effect().is_none() {
        text.push_str("  (none)\n");
    }
    render_table(&rows, &mut text);
    if let Some(default) = rules.default_effect() {
        text.push_str(&format!("  default: {default}\n"));
    }
    text
}

/// Renders rows as aligned columns.
fn render_table(rows: &[[String; 4]], text: &mut String) {
    let cleaned: Vec<[String; 4]> = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| literal::escape_line(cell)))
        .collect();
    let width = |column: usize| {
        let cells = cleaned.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let (numbers, effects, kinds) = (width(0), width(1), width(2));
    for [number, effect, kind, what] in &cleaned {
        let line = format!("  {number:>numbers$}  {effect:effects$}  {kind:kinds$}  {what}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Returns the time when the answer was given.
fn answer_time(answer: &RememberedAnswer) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(answer.at).ok()?).ok()
}

fn render_json(said: &PermissionSources, answers: &[RememberedAnswer]) -> Value {
    let file = |by: &str, rules: &PermissionRules| {
        let rule = |rule: &PermissionRule| {
            let kinds: Vec<&str> = rule.kinds().iter().map(|kind| kind.as_str()).collect();
            json!({
                "number": rule.number(),
                "decision": rule.effect().as_str(),
                "kind": kinds,
                "command": rule.commands().collect::<Vec<_>>(),
                "path": rule.paths().collect::<Vec<_>>(),
            })
        };
        json!({
            "by": by,
            "file": rules.file().to_string_lossy(),
            "default": rules.default_effect().map(RuleEffect::as_str),
            "rules": rules.iter().map(rule).collect::<Vec<_>>(),
        })
    };
    let answer = |answer: &RememberedAnswer| {
        let effect = if answer.allowed {
            RuleEffect::Allow
        } else {
            RuleEffect::Deny
        };
        let mut written = json!({
            "number": answer.number,
            "decision": effect.as_str(),
            "kind": answer.kind,
            "at": answer_time(answer).map(|when| when.to_string()),
        });
        if let Value::Object(fields) = &mut written {
            match &answer.subject {
                RememberedSubject::Command(line) => {
                    fields.insert("command".to_owned(), json!(line))
                }
                RememberedSubject::Commands(pattern) => {
                    fields.insert("commands".to_owned(), json!(pattern))
                }
                RememberedSubject::Path(path) => {
                    fields.insert("path".to_owned(), json!(path.to_string_lossy()))
                }
                _ => None,
            };
        }
        written
    };
    let user = said.user_rules.iter().map(|rules| file("user", rules));
    let project = said
        .project_rules
        .iter()
        .map(|rules| file("project", rules));
    json!({
        "project": said.project.root().to_string_lossy(),
        "files": user.chain(project).collect::<Vec<_>>(),
        "remembered": answers.iter().map(answer).collect::<Vec<_>>(),
    })
}
