//! Tests of policies and their answers.

use acp_host::{Policy, PolicyDecision};
use acp_wire::v1::{PermissionOption, PermissionOptionKind, RequestPermissionOutcome, ToolKind};

fn permission_option(id: &str, kind: &str) -> PermissionOption {
    let kind: PermissionOptionKind = serde_json::from_value(kind.into()).unwrap();
    PermissionOption::new(id, id, kind)
}

/// Returns the four usual options, broadest first, with names that contradict their kinds.
fn all_options() -> Vec<PermissionOption> {
    vec![
        permission_option("reject forever", "allow_always"),
        permission_option("reject", "allow_once"),
        permission_option("yes, always", "reject_always"),
        permission_option("allow", "reject_once"),
    ]
}

fn selected(id: &str) -> PolicyDecision {
    PolicyDecision::Answer(RequestPermissionOutcome::selected(id))
}

#[test]
fn policy_names_are_parsed() {
    for policy in Policy::ALL {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    assert_eq!(
        Policy::ALL.map(Policy::as_str),
        ["ask", "reads", "all", "none"]
    );
    let error = "Reads".parse::<Policy>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown policy `Reads`; expected ask, reads, all or none"
    );
}

#[test]
fn options_are_chosen_by_kind_preferring_once() {
    let options = all_options();
    assert_eq!(
        Policy::All.decide(Some(&ToolKind::Execute), &options),
        selected("reject")
    );
    assert_eq!(Policy::All.decide(None, &options), selected("reject"));
    assert_eq!(
        Policy::None.decide(Some(&ToolKind::Read), &options),
        selected("allow")
    );
    assert_eq!(
        Policy::All.decide(None, &options[..1]),
        selected("reject forever")
    );
    assert_eq!(
        Policy::None.decide(None, &options[..3]),
        selected("yes, always")
    );
    assert_eq!(
        Policy::Ask.decide(Some(&ToolKind::Read), &options),
        PolicyDecision::AskUser
    );
}

#[test]
fn reads_policy_allows_only_reads() {
    let options = all_options();
    for kind in ["read", "search", "think"] {
        let kind: ToolKind = serde_json::from_value(kind.into()).unwrap();
        assert_eq!(
            Policy::Reads.decide(Some(&kind), &options),
            selected("reject"),
            "{kind:?}"
        );
    }
    for kind in [
        "edit",
        "delete",
        "move",
        "execute",
        "fetch",
        "switch_mode",
        "other",
        "readwrite",
        "",
    ] {
        let kind: ToolKind = serde_json::from_value(kind.into()).unwrap();
        assert_eq!(
            Policy::Reads.decide(Some(&kind), &options),
            selected("allow"),
            "{kind:?}"
        );
    }
    assert_eq!(Policy::Reads.decide(None, &options), selected("allow"));
}

#[test]
fn options_of_unknown_kind_are_never_chosen() {
    let unknown = [
        permission_option("allow_once", ""),
        permission_option("reject_once", "maybe"),
    ];
    assert_eq!(Policy::All.decide(None, &unknown), PolicyDecision::AskUser);
    let cancelled = PolicyDecision::Answer(RequestPermissionOutcome::cancelled());
    assert_eq!(Policy::None.decide(None, &unknown), cancelled);
    assert_eq!(Policy::None.decide(None, &[]), cancelled);
    // An option that only rejects never allows anything.
    assert_eq!(
        Policy::All.decide(None, &[permission_option("a", "reject_once")]),
        PolicyDecision::AskUser
    );
}
