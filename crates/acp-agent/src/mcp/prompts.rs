//! The prompts of MCP servers, which users run as slash commands: `/server:prompt`.
//!
//! The command is replaced with the text that the server returns. The model sees this text as if the user had typed it.

use acp::v1::{AvailableCommand, ContentBlock, UnstructuredCommandInput};
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, GetPromptResult, JsonObject, Prompt,
    Role, ServerResult,
};

use super::content;
use super::names::UniqueNames;
use super::server::ConnectedMcpServer;
use super::servers::SessionMcpServers;
use crate::text::first_line;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

/// The maximum size of a prompt, in bytes of JSON.
const MAX_PROMPT_BYTES: usize = 1024 * 1024;

/// User input after expanding an MCP prompt's name at its start, if it has one.
pub(crate) enum McpPromptInput {
    /// The unchanged input, if it does not start with the name of a server's prompt.
    Text(Vec<ContentBlock>),
    /// The prompt that the server returned.
    Prompt(Vec<ContentBlock>),
    /// The unchanged input, and a message that explains to the user why the prompt is not available.
    Rejected(Vec<ContentBlock>, String),
}

impl SessionMcpServers {
    /// Returns all prompts of the servers, with the names of their commands.
    fn all_prompts(&self) -> Vec<(String, ConnectedMcpServer, Prompt)> {
        let mut names = UniqueNames::default();
        let mut all = Vec::new();
        for at in self.connected() {
            for prompt in &at.listing.prompts {
                let name = names.prompt_name(&at.server.key, &prompt.name);
                all.push((name, at.clone(), prompt.clone()));
            }
        }
        all
    }

    /// Returns the prompts of the servers as slash commands.
    pub(crate) fn commands(&self) -> Vec<AvailableCommand> {
        let prompts = self.all_prompts().into_iter();
        prompts
            .map(|(name, at, prompt)| {
                let what = prompt.description.as_ref().or(prompt.title.as_ref());
                let what = what.unwrap_or(&prompt.name);
                let description = format!("{} ({})", first_line(what), at.server.name);
                let command = AvailableCommand::new(name, description);
                match argument_hint(&prompt) {
                    Some(hint) => command.input(UnstructuredCommandInput::new(hint)),
                    None => command,
                }
            })
            .collect()
    }

    /// Replaces a slash command with the prompt that its server returns.
    pub(crate) async fn expand(
        &self,
        workspace: &Workspace,
        content: Vec<ContentBlock>,
    ) -> Result<McpPromptInput, ToolFailure> {
        let line = content.first().and_then(ContentBlock::as_text);
        let Some((command, rest)) = line.and_then(split_command) else {
            return Ok(McpPromptInput::Text(content));
        };
        let Some((key, _)) = command.split_once(':') else {
            return Ok(McpPromptInput::Text(content));
        };
        let Some(server) = self.servers.iter().find(|server| server.key == key) else {
            return Ok(McpPromptInput::Text(content));
        };
        let refused = match self
            .all_prompts()
            .into_iter()
            .find(|(name, ..)| name == command)
        {
            Some((_, at, prompt)) => match parse_arguments(command, &prompt, rest) {
                Ok(arguments) => match self
                    .request_prompt(workspace, &at, &prompt, arguments)
                    .await
                {
                    Ok(blocks) => {
                        // Keep the other content, such as links to files.
                        let more = content.into_iter().skip(1);
                        return Ok(McpPromptInput::Prompt(
                            blocks.into_iter().chain(more).collect(),
                        ));
                    }
                    Err(ToolFailure::Failed(why) | ToolFailure::NotFound(why)) => why,
                    Err(stop) => return Err(stop),
                },
                Err(why) => why,
            },
            None => match server.unavailable_reason() {
                Some(why) => why,
                None => format!(
                    "The MCP server `{}` has no prompt with that name.",
                    server.name
                ),
            },
        };
        Ok(McpPromptInput::Rejected(content, refused))
    }

    async fn request_prompt(
        &self,
        workspace: &Workspace,
        at: &ConnectedMcpServer,
        prompt: &Prompt,
        arguments: JsonObject,
    ) -> Result<Vec<ContentBlock>, ToolFailure> {
        let mut params = GetPromptRequestParams::new(&prompt.name);
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let limits = &self.limits;
        let given = at
            .server
            .request_with_retry(&at.listing, workspace, request, limits, None);
        match given.await? {
            ServerResult::GetPromptResult(result) => Ok(to_blocks(result)?),
            _ => Err(ToolFailure::failed(format!(
                "The MCP server `{}` requires a feature that this agent does not support.",
                at.server.name
            ))),
        }
    }
}

/// Splits text into a command and its arguments.
fn split_command(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (command, rest) = text.split_at(end);
    Some((command, rest.trim()))
}

/// Returns the hint that is shown until the user enters arguments.
fn argument_hint(prompt: &Prompt) -> Option<String> {
    let arguments = prompt.arguments.as_deref().unwrap_or_default();
    let shown: Vec<String> = arguments
        .iter()
        .map(|argument| match argument.required {
            Some(true) => argument.name.clone(),
            _ => format!("[{}]", argument.name),
        })
        .collect();
    (!shown.is_empty()).then(|| shown.join(" "))
}

/// Parses the arguments by position. They are words, quoted as in a shell if they contain spaces. The last argument
/// takes the rest of the line, so a single argument needs no quotes.
fn parse_arguments(command: &str, prompt: &Prompt, rest: &str) -> Result<JsonObject, String> {
    let takes = prompt.arguments.as_deref().unwrap_or_default();
    let mut given = JsonObject::new();
    if let ([only], false) = (takes, rest.is_empty()) {
        given.insert(only.name.clone(), rest.into());
    } else {
        let words =
            shell_words::split(rest).map_err(|_| format!("`/{command}`: unclosed quote."))?;
        for (nth, argument) in takes.iter().enumerate() {
            let value = if nth + 1 == takes.len() {
                words.get(nth..).unwrap_or_default().join(" ")
            } else {
                words.get(nth).cloned().unwrap_or_default()
            };
            if !value.is_empty() {
                given.insert(argument.name.clone(), value.into());
            }
        }
    }
    let missing = takes
        .iter()
        .find(|argument| argument.required == Some(true) && !given.contains_key(&argument.name));
    match missing {
        Some(missing) => Err(format!(
            "`/{command}` requires `{}`. Usage: /{command} {}",
            missing.name,
            argument_hint(prompt).unwrap_or_default()
        )),
        None => Ok(given),
    }
}

/// Converts the server's prompt to the content of one user message.
fn to_blocks(result: GetPromptResult) -> Result<Vec<ContentBlock>, ToolFailure> {
    let size = serde_json::to_vec(&result.messages).map_or(usize::MAX, |text| text.len());
    if size > MAX_PROMPT_BYTES {
        return Err(ToolFailure::failed(format!(
            "Prompt too large: {size} bytes (limit: {MAX_PROMPT_BYTES} bytes)."
        )));
    }
    let mut blocks = Vec::new();
    for message in result.messages {
        let block = content::convert_block(&message.content);
        blocks.push(match (message.role, block) {
            // Mark an example response, so that it does not look like the model's own message.
            (Role::Assistant, Some(ContentBlock::Text(said))) => {
                ContentBlock::text(format!("Example response:\n\n{}", said.text))
            }
            (_, Some(block)) => block,
            (_, None) => ContentBlock::text("[unknown content type]"),
        });
    }
    if blocks.is_empty() {
        return Err(ToolFailure::failed("The prompt is empty."));
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::PromptArgument;
    use serde_json::json;

    fn prompt_with_arguments(arguments: &[(&str, bool)]) -> Prompt {
        let arguments = arguments
            .iter()
            .map(|(name, required)| PromptArgument::new(*name).with_required(*required))
            .collect();
        Prompt::new("p", None::<String>, Some(arguments))
    }

    fn parse_test_arguments(
        takes: &[(&str, bool)],
        rest: &str,
    ) -> Result<serde_json::Value, String> {
        parse_arguments("s:p", &prompt_with_arguments(takes), rest).map(Into::into)
    }

    #[test]
    fn arguments_are_assigned_by_position() {
        let two = [("a", true), ("b", false)];
        assert_eq!(parse_test_arguments(&two, "x"), Ok(json!({"a": "x"})));
        assert_eq!(
            parse_test_arguments(&two, "'x y' z and more"),
            Ok(json!({"a": "x y", "b": "z and more"}))
        );
        assert_eq!(
            parse_test_arguments(&[("a", true)], "it's all one"),
            Ok(json!({"a": "it's all one"}))
        );
        assert_eq!(parse_test_arguments(&[], "too much"), Ok(json!({})));
        let error = parse_test_arguments(&two, "").unwrap_err();
        assert!(error.contains("requires `a`. Usage: /s:p a [b]"), "{error}");
        assert!(
            parse_test_arguments(&two, "'x")
                .unwrap_err()
                .contains("quote")
        );
    }

    #[test]
    fn commands_are_split_from_their_arguments() {
        assert_eq!(split_command("/a:b  c d "), Some(("a:b", "c d")));
        assert_eq!(split_command("/a:b\nc"), Some(("a:b", "c")));
        assert_eq!(split_command("a:b"), None);
    }
}
