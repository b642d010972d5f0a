//! The agents to compare. Each has a label, because an agent can be given several times.

use std::path::Path;

use crate::args::agent_choice::AgentChoiceArgs;
use crate::args::compare::CompareArgs;
use crate::exit::CommandExit;

/// An agent to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ComparedAgent {
    /// The agent's name, with a number if an earlier agent has the same name.
    pub(super) label: String,
    pub(super) name: String,
    pub(super) model: Option<String>,
}

/// Returns the agents on the command line, in their order. Checks that they exist, so that mistakes are reported before
/// anything is started.
pub(super) fn compared_agents(
    args: &CompareArgs,
    cwd: &Path,
) -> Result<Vec<ComparedAgent>, CommandExit> {
    let labels = labels(&args.agents);
    for name in &args.agents {
        let choice = AgentChoiceArgs {
            agent: Some(name.clone()),
            protocol: args.protocol,
            ..AgentChoiceArgs::default()
        };
        if choice.choose(cwd)?.remote.is_some() {
            return Err(CommandExit::usage(format!(
                "--agent {name}: it runs elsewhere, so it cannot work in a copy of the project"
            )));
        }
    }
    if let Some(label) = args.apply.as_ref().filter(|label| !labels.contains(label)) {
        return Err(CommandExit::usage(format!(
            "--apply {label}: not one of the agents: {}",
            labels.join(", ")
        )));
    }
    let agents = labels.iter().zip(&args.agents);
    let agents = agents.map(|(label, name)| ComparedAgent {
        label: label.clone(),
        name: name.clone(),
        model: model_of(label, &labels, &args.models),
    });
    Ok(agents.collect())
}

/// Returns a different label for each name.
fn labels(names: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let mut label = name.clone();
        let mut number = 1;
        // An agent may have the name that another would get.
        while labels.contains(&label) || (number > 1 && names.contains(&label)) {
            number += 1;
            label = format!("{name}-{number}");
        }
        labels.push(label);
    }
    labels
}

/// Returns the model for an agent: the last one that is given for it or, if there is none, the last one for all agents.
fn model_of(label: &str, labels: &[String], models: &[String]) -> Option<String> {
    let mut own = None;
    let mut all = None;
    for model in models {
        match model.split_once('=') {
            Some((of, value)) if of == label => own = Some(value.to_owned()),
            Some((of, _)) if labels.iter().any(|other| other == of) => {}
            _ => all = Some(model.clone()),
        }
    }
    own.or(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn labels_are_unique() {
        assert_eq!(labels(&words(&["a", "b"])), ["a", "b"]);
        assert_eq!(
            labels(&words(&["a", "a", "a-2", "a"])),
            ["a", "a-3", "a-2", "a-4"]
        );
    }

    #[test]
    fn models_are_for_one_agent_or_for_all() {
        let labels = words(&["a", "a-2"]);
        let models = words(&["big", "a-2=small", "x=y"]);
        assert_eq!(model_of("a", &labels, &models), Some("x=y".to_owned()));
        assert_eq!(model_of("a-2", &labels, &models), Some("small".to_owned()));
        assert_eq!(model_of("a", &labels, &[]), None);
    }
}
