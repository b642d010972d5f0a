//! What is said to the agent: the text and the files that go with it.

use std::io::Read;
use std::path::{Path, PathBuf};

use acp::v1::{AgentCapabilities, ContentBlock};
use acp_host::{Attachment, AttachmentError};

use crate::args::RunArgs;
use crate::exit::Exit;

/// Files beyond this are not put into the prompt; the agent is given their place instead.
const EMBEDDED: u64 = 4 * 1024 * 1024;

/// The text, from wherever it was asked to be read.
pub(super) fn read(args: &RunArgs) -> Result<String, Exit> {
    let text = match (&args.file, args.prompt.as_slice()) {
        (Some(file), _) => std::fs::read_to_string(file)
            .map_err(|e| Exit::usage(format!("--file {}: {e}", file.display())))?,
        (None, [dash]) if dash == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Exit::usage(format!("stdin: {e}")))?;
            text
        }
        (None, words) => words.join(" "),
    };
    if text.trim().is_empty() {
        let message = "nothing to say: give a PROMPT, --file FILE, or - to read it from stdin";
        return Err(Exit::usage(message));
    }
    Ok(text)
}

/// The files that go with it. They are read before an agent is started.
pub(super) fn attachments(files: &[PathBuf]) -> Result<Vec<Attachment>, Exit> {
    files.iter().map(|file| attachment(file)).collect()
}

fn attachment(file: &Path) -> Result<Attachment, Exit> {
    if file.is_dir() {
        return Err(Exit::usage(format!(
            "--attach {}: not a file",
            file.display()
        )));
    }
    Attachment::read(file, EMBEDDED).map_err(refused)
}

/// The prompt's content: only what the agent takes.
pub(super) fn content(
    text: &str,
    attachments: &[Attachment],
    agent: &AgentCapabilities,
) -> Result<Vec<ContentBlock>, Exit> {
    let takes = &agent.prompt_capabilities;
    let files = attachments.iter().map(|file| file.content(takes));
    let files: Result<Vec<_>, _> = files.collect();
    let mut content = vec![ContentBlock::text(text)];
    content.extend(files.map_err(refused)?);
    Ok(content)
}

fn refused(e: AttachmentError) -> Exit {
    Exit::usage(format!("--attach {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::v1::PromptCapabilities;

    #[test]
    fn what_the_agent_does_not_take_is_a_mistake_in_the_arguments() {
        let directory = tempfile::tempdir().unwrap();
        let picture = directory.path().join("a.png");
        std::fs::write(&picture, b"\x89PNG").unwrap();
        let files = attachments(&[picture]).unwrap();
        let agent = |takes| AgentCapabilities::new().prompt_capabilities(takes);

        let error = content("look", &files, &agent(PromptCapabilities::new())).unwrap_err();
        assert_eq!(error.code, 2);
        let message = error.message.unwrap();
        assert!(message.starts_with("--attach "), "{message}");
        assert!(message.contains("does not take images"), "{message}");
        let agent = agent(PromptCapabilities::new().image(true));
        assert_eq!(content("look", &files, &agent).unwrap().len(), 2);

        let error = attachments(&[directory.path().to_owned()]).unwrap_err();
        assert!(error.message.unwrap().ends_with("not a file"));
    }
}
