//! The promises about performance, and whether the measured values keep them.

use crate::metric::Metric;
use crate::peers::PeerId;
use crate::results::Results;
use crate::rows::FILE_BYTES;

/// A promise about performance: a measured value and its bound.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) title: String,
    pub(crate) value: f64,
    pub(crate) bound: ClaimBound,
    pub(crate) unit: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ClaimBound {
    AtMost(f64),
    AtLeast(f64),
}

impl Claim {
    pub(crate) fn holds(&self) -> bool {
        match self.bound {
            ClaimBound::AtMost(bound) => self.value <= bound,
            ClaimBound::AtLeast(bound) => self.value >= bound,
        }
    }
}

use ClaimBound::{AtLeast, AtMost};
use Metric::{
    AgentCpu, AgentPeak, AgentSession, ClientCpu, ClientPeak, ClientSession, P50, P99, Rate,
    ServerConnection, ServerGrowth, Start, Throughput,
};
use PeerId::{
    AcpAgent, Connected, Floor, FloorWebSocket, Least, Ours, OursHttp, OursWebSocket, Rust,
    RustHttp, RustWebSocket, Served, StdioToWs, Traced, TypeScript,
};

/// Returns the promises for which all values were measured.
pub(crate) fn all_claims(results: &Results) -> Vec<Claim> {
    let mut claims = Vec::new();
    let median = |row: &str, who: PeerId, metric| results.median(row, who, who, metric);
    let mut add = |what: String, measured: Option<f64>, bound, unit| {
        if let Some(measured) = measured {
            claims.push(Claim {
                title: what,
                value: measured,
                bound,
                unit,
            });
        }
    };
    let ratio =
        |row: &str, metric, to: PeerId| Some(median(row, Ours, metric)? / median(row, to, metric)?);
    for (row, place) in [("stream-pinned", "one core"), ("stream", "two cores")] {
        for (metric, side) in [(AgentCpu, "agent"), (ClientCpu, "client")] {
            let what =
                format!("streaming, {place}: the {side}'s CPU per message relative to the floor");
            add(what, ratio(row, metric, Floor), AtMost(1.6), "×");
        }
        for (who, bound) in [(Rust, 20.0), (TypeScript, 12.0)] {
            let what = format!(
                "streaming, {place}: messages/s relative to the {}",
                who.name()
            );
            add(what, ratio(row, Rate, who), AtLeast(bound), "×");
        }
    }
    let between = |row: &str, metric| {
        let with = results.median(row, Traced, Ours, metric)?;
        Some((with, median(row, Ours, metric)?))
    };
    for (row, what) in [
        ("trace-stream", "streaming, two cores"),
        ("trace-paced", "streaming 50,000 messages/s"),
    ] {
        let lost = between(row, Rate).map(|(with, without)| (1.0 - with / without) * 100.0);
        let what = format!("{what}: messages/s lost with `acp trace`");
        add(what, lost, AtMost(5.0), " %");
    }
    let later = between("trace", P50).map(|(with, without)| with - without);
    let what = "request and response: time added by `acp trace`".to_owned();
    add(what, later, AtMost(50.0), " µs");
    for who in [Rust, TypeScript] {
        let cpu = |agent, client, metric| results.median("stream-pinned", agent, client, metric);
        let share =
            |ours: Option<f64>, theirs: Option<f64>| Some(ours? / (ours? + theirs?) * 100.0);
        let agent = share(cpu(Ours, who, AgentCpu), cpu(Ours, who, ClientCpu));
        let client = share(cpu(who, Ours, ClientCpu), cpu(who, Ours, AgentCpu));
        for (side, measured) in [("agent", agent), ("client", client)] {
            let name = who.name();
            let what =
                format!("streaming with the {name}, one core: our {side}'s share of the time");
            add(what, measured, AtMost(15.0), " %");
        }
    }
    for (row, what) in [
        ("empty-pinned", "an empty request"),
        ("ask-pinned", "permission"),
    ] {
        let name = |of: &str| format!("{what}, one core: {of}");
        add(
            name("p50 relative to the floor"),
            ratio(row, P50, Floor),
            AtMost(4.0),
            "×",
        );
        add(
            name("p50 relative to the Rust SDK"),
            ratio(row, P50, Rust),
            AtMost(0.2),
            "×",
        );
        add(
            name("p99 relative to the Rust SDK"),
            ratio(row, P99, Rust),
            AtMost(1.0 / 3.0),
            "×",
        );
    }
    add(
        "the client reads nothing for 5 s: our agent's memory".to_owned(),
        results.median("stall", Ours, Floor, AgentPeak),
        AtMost(16.0),
        " MB",
    );
    add(
        "the client's handler takes 5 s: our client's memory".to_owned(),
        results.median("sleep", Ours, Ours, ClientPeak),
        AtMost(32.0),
        " MB",
    );
    for (row, what) in [("read", "two cores"), ("read-pinned", "one core")] {
        add(
            format!("64 MiB, {what}: MB/s relative to the Rust SDK"),
            ratio(row, Throughput, Rust),
            AtLeast(5.0),
            "×",
        );
    }
    for (metric, side) in [(AgentPeak, "agent"), (ClientPeak, "client")] {
        let copies = median("read", Ours, metric).map(|mega| mega * 1e6 / FILE_BYTES as f64);
        add(
            format!("64 MiB: copies in our {side}'s memory"),
            copies,
            AtMost(2.5),
            "",
        );
    }
    for (row, what) in [
        ("load", "replay, two cores"),
        ("load-pinned", "replay, one core"),
        ("sessions-1000", "1,000 sessions, two cores"),
    ] {
        let what = format!("{what}: messages/s relative to the Rust SDK");
        add(what, ratio(row, Rate, Rust), AtLeast(20.0), "×");
    }
    let cost = |row: &str| Some(median(row, Ours, AgentCpu)? + median(row, Ours, ClientCpu)?);
    let many = cost("sessions-10000").zip(cost("stream-pinned"));
    add(
        "10,000 sessions: CPU per message relative to one session".to_owned(),
        many.map(|(many, one)| many / one),
        AtMost(1.3),
        "×",
    );
    for (metric, side) in [(AgentSession, "agent"), (ClientSession, "client")] {
        let what = format!("10,000 sessions: memory of an idle session, {side}");
        add(
            what,
            median("sessions-10000", Ours, metric),
            AtMost(4.0),
            " KB",
        );
    }
    for (who, bound) in [(Least, 3.0), (Rust, 1.0)] {
        let start = median("start", AcpAgent, Start).zip(median("start", who, Start));
        let what = format!(
            "`acp agent`, from start to `initialize`: time relative to the {}",
            who.name()
        );
        add(
            what,
            start.map(|(ours, theirs)| ours / theirs),
            AtMost(bound),
            "×",
        );
    }
    claims.extend(remote_claims(results));
    claims
}

/// Returns the promises about agents over the network.
fn remote_claims(results: &Results) -> Vec<Claim> {
    let mut claims = Vec::new();
    let median = |row: &str, who: PeerId, metric| results.median(row, who, who, metric);
    let mut add = |what: &str, measured: Option<f64>, bound, unit| {
        if let Some(measured) = measured {
            claims.push(Claim {
                title: what.to_owned(),
                value: measured,
                bound,
                unit,
            });
        }
    };
    for (row, place) in [
        ("remote-stream-pinned", "one core"),
        ("remote-stream", "two cores"),
    ] {
        let ratio = |who, to| Some(median(row, who, Rate)? / median(row, to, Rate)?);
        for (what, measured, bound) in [
            (
                "over WebSocket: messages/s relative to a pipe",
                ratio(OursWebSocket, Ours),
                0.6,
            ),
            (
                "over WebSocket: messages/s relative to the Rust SDK",
                ratio(OursWebSocket, RustWebSocket),
                5.0,
            ),
            (
                "over HTTP: messages/s relative to the Rust SDK",
                ratio(OursHttp, RustHttp),
                4.0,
            ),
        ] {
            let what = format!("streaming {what}, {place}");
            add(&what, measured, AtLeast(bound), "×");
        }
    }
    let p50 = |agent, client| results.median("remote-empty", agent, client, P50);
    let ours = p50(OursWebSocket, OursWebSocket);
    let floor = p50(FloorWebSocket, FloorWebSocket);
    add(
        "an empty request over WebSocket, two cores: p50 relative to the floor",
        ours.zip(floor).map(|(ours, floor)| ours / floor),
        AtMost(1.3),
        "×",
    );
    let connected = p50(OursWebSocket, Connected);
    add(
        "an empty request over WebSocket: time added by `acp connect`",
        connected.zip(ours).map(|(with, without)| with - without),
        AtMost(60.0),
        " µs",
    );
    let rate = |agent| results.median("serve-stream", agent, OursWebSocket, Rate);
    add(
        "streaming through `acp serve`: messages/s relative to `stdio-to-ws`",
        rate(Served)
            .zip(rate(StdioToWs))
            .map(|(ours, theirs)| ours / theirs),
        AtLeast(15.0),
        "×",
    );
    for (who, what) in [
        (OursWebSocket, "the server's memory"),
        (Served, "memory of `acp serve`"),
    ] {
        let what = format!("over WebSocket, the client reads nothing for 5 s: {what}");
        let growth = results.median("remote-stall", who, FloorWebSocket, ServerGrowth);
        add(&what, growth, AtMost(16.0), " MB");
    }
    add(
        "1,000 idle connections: memory of each, server",
        median("remote-idle", OursWebSocket, ServerConnection),
        AtMost(32.0),
        " KB",
    );
    claims
}
