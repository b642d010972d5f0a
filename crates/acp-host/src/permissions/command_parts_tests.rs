use super::super::command::CommandLine;
use super::super::patterns::CommandPattern;
use super::*;

/// Returns `true` if a rule with this pattern denies the line.
fn is_denied(pattern: &str, line: &str) -> bool {
    let pattern = CommandPattern::new(pattern).unwrap();
    let parts = CommandLine::from_line(line).parts().unwrap();
    parts.iter().any(|part| pattern.matches_to_deny(part))
}

/// Command lines that run `git push`.
const GIT_PUSH_LINES: &[&str] = &[
    "git push",
    "git push origin",
    "cd x && git push",
    "true;git push",
    "a | b || git push",
    "echo `git push`",
    "echo \"$(git push)\"",
    "(git push)",
    "{ git push; }",
    "x & git push",
    "a\ngit push",
    "git \\\npush",
    "git\tpush",
    "git   push",
    "\\git push",
    "g'i't \"push\"",
    "git $'push'",
    "git {push,-f}",
    "{git,push}",
    "git${IFS}push",
    "FOO=1 BAR='a b' git push",
    "/usr/bin/git push",
    "git.exe push",
    ">x git push",
    "2>/dev/null git push",
    "git >x push",
    "git 2>&1 push",
    "git &>x push",
    "git <x push",
    "if true; then git push; fi",
    "for x in a; do git push; done",
    "case a in a) git push;; esac",
    "f() { git push; }; f",
    "! git push",
    "time -p git push",
    "coproc git push",
    // Options of git itself.
    "git -C . push",
    "git -C '/a b' push",
    "git --no-pager push",
    "git -c a=b push",
    "git -c 'a=b c' -C . --no-pager push",
    "git -c 'a=b;c' push",
    "git --git-dir=.git push",
    "git --git-dir .git --work-tree . push",
    "git -P push",
    "git -c alias.x=push x",
    "git -c 'alias.x=!git push' x",
    "sudo -u root git -C . push",
    "sudo git -c alias.x=push x",
    // Shells.
    "bash -lc 'cd x; git push'",
    "bash --norc -c 'sh -c \"git push\"'",
    "busybox sh -c 'git push'",
    "eval 'git push'",
    "eval git push",
    "echo 'git push' | sh",
    "sh <<< 'git push'",
    "bash <<EOF\ngit push\nEOF",
    "trap 'git push' EXIT",
    "command -p git push",
    "exec -a x git push",
    // Wrappers.
    "sudo -n git push",
    "sudo -u root -g root -- git push",
    "sudo --user=root git push",
    "sudo bash -c \"exec git push\"",
    "sudo -n -E -H -S -k -A -b -P git push",
    "doas -u root git push",
    "su -c 'git push'",
    "su root -c'git push'",
    "su - root --command='git push'",
    "runuser -u root -- git push",
    "runuser -c 'git push' root",
    "env -i A=1 git push",
    "env -u X -C / git push",
    "env -S 'git push'",
    "env --split-string='git push'",
    "nohup nice -n 5 ionice -c 3 git push",
    "timeout -k 5 10 git push",
    "setsid -f git push",
    "stdbuf -oL -eL git push",
    "find . | xargs -n 1 git push",
    "xargs -I{} sh -c 'git push {}'",
    "find . -name x -exec git push {} \\;",
    "find . -execdir git push {} +",
    "find . -ok git push ';'",
    "watch -n 1 git push",
    "watch 'git push'",
    "flock /tmp/lock git push",
    "flock /tmp/lock -c 'git push'",
    "script -c 'git push' /dev/null",
    "script -qc 'git push' /dev/null",
    "script -qec'git push' /dev/null",
    "chroot / git push",
    "unshare -r git push",
    "nsenter -t 1 -m git push",
    "parallel git push ::: a",
    "parallel ::: 'git push'",
    "ssh-agent git push",
    "ssh host 'git push'",
    "strace -f -o x git push",
    "ltrace git push",
    "gdb -batch -ex run --args git push",
    "perf stat -e x git push",
    "taskset -c 0 git push",
    "chrt -f 1 git push",
    "setpriv --reuid=1 git push",
    "systemd-run --user --wait git push",
    "dbus-run-session -- git push",
    "xvfb-run -a git push",
    "fakeroot git push",
    "proot -r / git push",
    "bwrap --bind / / git push",
    "firejail --quiet git push",
    "docker run -v .:/x image git push",
    "npm exec -- git push",
    "git submodule foreach 'git push'",
    "python3 -c 'import os; os.system(\"git push\")'",
];

#[test]
fn denied_command_is_found_in_every_spelling() {
    let missed = |pattern: &str| -> Vec<&str> {
        let mut lines = GIT_PUSH_LINES.to_vec();
        lines.retain(|line| !is_denied(pattern, line));
        lines
    };
    assert_eq!(missed("git push*"), [""; 0]);
    assert_eq!(missed("git push *"), [""; 0]);
}

#[test]
fn options_before_a_subcommand_do_not_hide_it() {
    for (pattern, line) in [
        ("npm publish *", "npm --prefix web publish"),
        ("npm publish *", "npm --silent --prefix=web publish --tag x"),
        (
            "docker compose down *",
            "docker --context prod compose -f x.yml down",
        ),
        ("docker rm *", "docker -H tcp://x rm y"),
        (
            "kubectl delete *",
            "kubectl -n prod --context=x delete pod y",
        ),
        ("cargo publish *", "cargo +nightly publish"),
        (
            "cargo publish *",
            "cargo --manifest-path x/Cargo.toml -Z x publish",
        ),
        ("make deploy *", "make -C web -j 4 deploy"),
        ("make deploy *", "make ENV=prod deploy"),
        ("systemctl stop *", "systemctl --user stop x"),
        ("gh pr merge *", "gh pr -R a/b merge 1"),
        ("aws s3 rm *", "aws --profile x s3 --region y rm z"),
        ("rm -rf *", "rm -v -rf x"),
        ("git push", "git -C . push"),
    ] {
        assert!(is_denied(pattern, line), "{pattern}: {line}");
    }
}

#[test]
fn other_commands_are_not_matched() {
    for line in [
        "git commit -m 'git push'",
        "git log --grep push",
        "git stash push",
        "echo git push",
        "git status # push",
        "grep -rn 'git push' .",
        "git log && echo 'git push'",
    ] {
        assert!(!is_denied("git push *", line), "{line}");
    }
    assert!(!is_denied("rm *", "git rm x"));
    assert!(!is_denied("rm *", "docker rm x"));
}

#[test]
fn overlong_command_is_denied() {
    let parts = |line: &str| {
        CommandLine::from_line(line)
            .parts()
            .map(|parts| parts.len())
    };
    assert_eq!(parts(&"x".repeat(1024 * 1024 + 1)), None);
    assert_eq!(parts(&"x;".repeat(MAX_PARTS)), None);
    assert_eq!(parts(&format!("sudo {}", "x ".repeat(20_000))), None);
    // Still short enough to examine.
    assert!(parts(&format!("sudo rm {}", "file-in-a-directory ".repeat(500))).is_some());
    assert!(parts(&format!("bash -c '{}'", "echo \"a b\" | x;".repeat(2_000))).is_some());
}
