//! Formats an error together with its causes. For HTTP errors, often only the last cause reveals what went wrong.

use std::io;

/// Returns an iterator over the error itself and its causes.
pub(crate) fn error_sources<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        // `source` of an I/O error skips the error inside it, so visit that one first.
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
        Some(error)
    })
}

/// Formats an error with its causes, separated by colons.
pub(crate) fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in error_sources(error).map(ToString::to_string) {
        // Some errors repeat their cause.
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}
