//! A tiny project to try an agent on: one test passes, the other fails.

/// Returns a greeting.
pub fn hello(name: &str) -> String {
    format!("Hello, {name}!")
}

/// Returns a farewell. The comma is missing, so the test below fails.
pub fn goodbye(name: &str) -> String {
    format!("Goodbye {name}!")
}

#[cfg(test)]
mod tests {
    #[test]
    fn greets_by_name() {
        assert_eq!(super::hello("Ada"), "Hello, Ada!");
    }

    #[test]
    fn says_goodbye_by_name() {
        assert_eq!(super::goodbye("Ada"), "Goodbye, Ada!");
    }
}
