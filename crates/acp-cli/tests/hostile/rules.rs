//! Getting past a rule that allows or forbids a command.

use super::*;

#[test]
fn a_second_line_is_no_part_of_an_allowed_command() {
    let project = Project::new();
    project.configure(
        "permissions.toml",
        "[[rule]]\ndecision = \"allow\"\ncommand = \"echo *\"\n",
    );
    let steps = [agent::terminal("echo\ntouch stolen", &[])];
    agent::run(&project, &["--allow", "reads"], &steps);
    assert!(!project.file("stolen").exists());
    let answers = agent::answers(&project);
    assert!(answers[0]["error"].is_object(), "{answers:?}");
}
