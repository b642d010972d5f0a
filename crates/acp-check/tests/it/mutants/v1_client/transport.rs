//! Mutants that read lines incorrectly.

use crate::mutants::layer::{Mutant, crashing_mutant, mutant, mutate_messages};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        crashing_mutant(
            "v1/transport/101",
            "after a line that ends with \\r\\n",
            "the client exits on a carriage return",
            |read| read.windows(2).any(|two| two == b"\r\n"),
        ),
        crashing_mutant(
            "v1/transport/102",
            "after empty lines",
            "the client treats an empty line as a message",
            |read| read.starts_with(b"\n"),
        ),
        crashing_mutant(
            "v1/transport/103",
            "after a message in two parts",
            "the client treats each read as a whole message",
            |read| !read.is_empty() && !read.ends_with(b"\n"),
        ),
        crashing_mutant(
            "v1/transport/104",
            "after two messages at once",
            "the client treats each read as a single message",
            |read| read.iter().filter(|byte| **byte == b'\n').count() > 1,
        ),
        crashing_mutant(
            "v1/transport/105",
            "after lines that are not messages",
            "the client exits on a line of invalid JSON",
            |read| read.starts_with(b"Loading"),
        ),
        crashing_mutant(
            "v1/transport/106",
            "after a 1 MB message",
            "the client reads at most 8 KiB of a line",
            |read| read.len() >= 8192 && !read.contains(&b'\n'),
        ),
        mutant(
            "v1/transport/107",
            "no response to request \"Grüße, κόσμε, 世界, 🦀\"",
            "the client supports only ASCII",
            mutate_messages(|passing| {
                if passing.said
                    && passing.answers
                    && let Some(message) = passing.message
                    && let Some(id) = message["id"].as_str()
                {
                    message["id"] = id.replace(|c: char| !c.is_ascii(), "?").into();
                }
            }),
        ),
        crashing_mutant(
            "v1/transport/108",
            "after invalid UTF-8",
            "the client exits on invalid UTF-8",
            |read| read.contains(&0xff),
        ),
        mutant(
            "v1/transport/109",
            "the client did not close the connection within",
            "the client waits for an agent that has exited",
            mutate_messages(|_| {}),
        )
        .keep_running_after_input_ends(),
        crashing_mutant(
            "v1/transport/110",
            "after a message with escapes",
            "the client does not decode escapes in method names",
            |read| read.windows(6).any(|six| six == b"\\u005f"),
        ),
    ]
}
