//! A tiny project for trying out an agent: one test passes, one fails.

/// Greets someone.
pub fn hello(name: &str) -> String {
    format!("Hello, {name}!")
}

/// Says goodbye, and forgets the comma: the test below finds out.
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
