//! What agents may do: put together from what the user and the project say, listed and revoked by
//! `acp permissions`.

use std::path::Path;

use acp_agent::RuleFiles;
use acp_config::places::short;
use acp_config::{PermissionSources, answers_directory, rules_file};
use acp_host::{
    Answer, By, Effect, Note, Permissions, Policy, Rule, Rules, Subject, clean, literal,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::permissions::{
    ListPermissionsArgs, PermissionsArgs, PermissionsCommand, RevokeArgs,
};
use crate::args::shared::ListFormat;
use crate::ask;
use crate::exit::Exit;
use crate::screen::print;

/// What an agent may do that works in `cwd`. `allow` is the policy that was chosen, if one was.
pub(crate) fn of(allow: Option<Policy>, cwd: &Path) -> Result<Permissions, Exit> {
    let otherwise = match ask::possible() {
        true => Policy::Ask,
        false => Policy::Reads,
    };
    let sources = PermissionSources::about(cwd)?;
    Ok(sources.permissions(allow, otherwise)?)
}

/// Where the bundled agent finds what the user has said of agents.
pub(crate) fn rule_files() -> RuleFiles {
    let mut files = RuleFiles::new();
    if let Some(file) = rules_file() {
        files = files.user(file);
    }
    if let Some(answers) = answers_directory() {
        files = files.answers(answers);
    }
    files
}

/// A note as `acp run` tells it.
pub(crate) fn in_words(note: &Note) -> String {
    // It has no end of its own: the agent's words could fill a screen.
    let what = |what: &str| clean::cut(what, clean::VALUE).into_owned();
    let by = |by: &By| match by {
        By::Policy(policy) => format!("--allow {policy}"),
        By::Rule { file, number, rule } => format!("{}, rule {number} ({rule})", short(file)),
        By::Default { file } => format!("the default of {}", short(file)),
        By::Remembered { number } => {
            format!("what you said for always (number {number} of `acp permissions`)")
        }
        other => other.to_string(),
    };
    let text = match note {
        Note::Rejected {
            by: who,
            what: said,
        } => format!("rejected by {}: {}", by(who), what(said)),
        Note::NobodyToAsk {
            by: who,
            what: said,
        } => {
            let wants = who.as_ref().map(by);
            let wants = wants
                .map(|wants| format!(" by {wants}"))
                .unwrap_or_default();
            format!(
                "rejected{wants}, since there is no terminal to ask on: {}",
                what(said)
            )
        }
        Note::Remembered(answer) => format!(
            "remembered for this project: {answer}; to forget it: acp permissions revoke {}",
            answer.number
        ),
        other => clean::cut(&other.to_string(), clean::MESSAGE).into_owned(),
    };
    literal::line(&text)
}

pub(crate) fn permissions(args: &PermissionsArgs) -> Exit {
    let done = match &args.command {
        None => list(&args.list),
        Some(PermissionsCommand::Revoke(args)) => revoke(args),
    };
    done.unwrap_or_else(|exit| exit)
}

fn list(args: &ListPermissionsArgs) -> Result<Exit, Exit> {
    let said = PermissionSources::about(&args.cwd)?;
    let answers = said.answers()?;
    let shown = match args.format {
        ListFormat::Text => in_text(&said, &answers),
        ListFormat::Json => format!("{}\n", in_json(&said, &answers)),
    };
    Ok(match print(shown.as_bytes()) {
        true => Exit::SUCCESS,
        false => Exit::UNREAD,
    })
}

fn revoke(args: &RevokeArgs) -> Result<Exit, Exit> {
    let said = PermissionSources::about(&args.cwd)?;
    let failed = |e: acp_host::RememberedError| Exit::failed(e.to_string());
    let project = short(said.project.root());
    let nothing = || Exit::usage("there is no directory in which anything could be remembered");
    let remembered = said.remembered.as_ref().ok_or_else(nothing)?;
    let told = match args.number {
        Some(number) => match remembered.revoke(number).map_err(failed)? {
            Some(answer) => format!("revoked: {}\n", literal::line(&answer.to_string())),
            None => {
                let message = format!(
                    "nothing is remembered with the number {number}; `acp permissions` lists what is"
                );
                return Err(Exit::usage(message));
            }
        },
        None => match remembered.revoke_all().map_err(failed)? {
            0 => "nothing was remembered\n".to_owned(),
            1 => format!("revoked the one answer for {project}\n"),
            all => format!("revoked all {all} answers for {project}\n"),
        },
    };
    print(told.as_bytes());
    Ok(Exit::SUCCESS)
}

fn in_text(said: &PermissionSources, answers: &[Answer]) -> String {
    let mut text = format!(
        "What agents may do in {}: the stricter wins (deny, then ask, then allow).\n",
        literal::line(&said.project.root().display().to_string())
    );
    text.push_str("\nYour rules");
    match (&said.user, rules_file()) {
        (Some(rules), _) => text.push_str(&rules_in_text(rules)),
        (None, Some(file)) => {
            text.push_str(&format!(
                ": none; they would be in {}\n",
                literal::line(&short(&file))
            ));
        }
        (None, None) => text.push_str(": none\n"),
    }
    text.push_str("\nWhat you said for always in this project:");
    if answers.is_empty() {
        text.push_str(" nothing\n");
    } else {
        text.push('\n');
        let rows = answers.iter().map(|answer| {
            let subject = match &answer.subject {
                Subject::Command(line) => format!("`{line}`"),
                Subject::Path(path) => short(path),
                other => format!("{other:?}"),
            };
            let when = when(answer).map(|when| when.strftime("%Y-%m-%d %H:%M UTC").to_string());
            let subject = match when {
                Some(when) => format!("{subject}  (said on {when})"),
                None => subject,
            };
            let effect = if answer.allowed {
                Effect::Allow
            } else {
                Effect::Deny
            };
            [
                answer.number.to_string(),
                effect.to_string(),
                answer.kind.clone(),
                subject,
            ]
        });
        table(&rows.collect::<Vec<_>>(), &mut text);
        text.push_str("  To forget one: acp permissions revoke NUMBER\n");
    }
    if said.rules.is_empty() {
        text.push_str("\nThe project's rules: none\n");
    }
    for rules in &said.rules {
        text.push_str("\nThe project's rules, which can only forbid");
        text.push_str(&rules_in_text(rules));
    }
    text.push_str("\nEverything else: ");
    text.push_str(match said.user.as_ref().and_then(Rules::default_effect) {
        Some(Effect::Allow) => "allowed by your default, or as --allow says.\n",
        Some(Effect::Ask) => "you are asked, by your default, or as --allow says.\n",
        Some(Effect::Deny) => "denied by your default, or as --allow says.\n",
        None => {
            "as --allow says. Without --allow you are asked on a terminal; elsewhere reading is\n\
             allowed and all else rejected.\n"
        }
    });
    text
}

/// The rules of a file, below what they are called.
fn rules_in_text(rules: &Rules) -> String {
    let mut text = format!(", in {}:\n", literal::line(&short(rules.file())));
    let quoted = |texts: Vec<&str>| {
        let texts: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
        texts.join(" or ")
    };
    let row = |rule: &Rule| {
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
    table(&rows, &mut text);
    if let Some(default) = rules.default_effect() {
        text.push_str(&format!("  by default: {default}\n"));
    }
    text
}

/// Rows in columns.
fn table(rows: &[[String; 4]], text: &mut String) {
    let cleaned: Vec<[String; 4]> = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| literal::line(cell)))
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

/// When it was said.
fn when(answer: &Answer) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(answer.at).ok()?).ok()
}

fn in_json(said: &PermissionSources, answers: &[Answer]) -> Value {
    let file = |by: &str, rules: &Rules| {
        let rule = |rule: &Rule| {
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
            "default": rules.default_effect().map(Effect::as_str),
            "rules": rules.iter().map(rule).collect::<Vec<_>>(),
        })
    };
    let answer = |answer: &Answer| {
        let effect = if answer.allowed {
            Effect::Allow
        } else {
            Effect::Deny
        };
        let mut written = json!({
            "number": answer.number,
            "decision": effect.as_str(),
            "kind": answer.kind,
            "at": when(answer).map(|when| when.to_string()),
        });
        if let Value::Object(fields) = &mut written {
            match &answer.subject {
                Subject::Command(line) => fields.insert("command".to_owned(), json!(line)),
                Subject::Path(path) => {
                    fields.insert("path".to_owned(), json!(path.to_string_lossy()))
                }
                _ => None,
            };
        }
        written
    };
    let user = said.user.iter().map(|rules| file("user", rules));
    let project = said.rules.iter().map(|rules| file("project", rules));
    json!({
        "project": said.project.root().to_string_lossy(),
        "files": user.chain(project).collect::<Vec<_>>(),
        "remembered": answers.iter().map(answer).collect::<Vec<_>>(),
    })
}
