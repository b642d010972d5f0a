//! What an error comes of: those of HTTP say what happened at the end of that only.

use std::io;

/// An error, and what it comes of.
pub(crate) fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        // What an I/O error wraps is no cause of it: it stands in it, and only the cause of that is its cause.
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

/// An error with its causes.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in causes(error).map(ToString::to_string) {
        // Some repeat their cause.
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
    }
    texts.join(": ")
}
