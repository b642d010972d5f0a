//! Cost against load: how many sessions, how large a message, how long a replay.

use bench_work::Command;

use crate::Failure;
use crate::pair::Took;
use crate::peers::Who;
use crate::results::{Curves, Point};
use crate::rows::{Setting, Sides, TEXT, load, stream};

/// What is varied.
#[derive(Debug, Clone, Copy)]
enum Load {
    Sessions,
    Bytes,
    Messages,
}

const PEERS: [Who; 4] = [Who::Ours, Who::Rust, Who::TypeScript, Who::Floor];

pub(crate) fn curves(setting: &Setting<'_>) -> Vec<Curves> {
    let sizes: Vec<u64> = (0..6).map(|power| 64 << (4 * power)).collect();
    [
        (
            Load::Sessions,
            "sessions",
            "Streaming in many sessions at once",
            "sessions",
            vec![1, 10, 100, 1000, 10_000],
        ),
        (
            Load::Bytes,
            "sizes",
            "Streaming large messages",
            "bytes of text in a message",
            sizes,
        ),
        (
            Load::Messages,
            "replay",
            "Replaying a session",
            "messages in the session",
            vec![1000, 10_000, 100_000, 1_000_000],
        ),
    ]
    .map(|(what, id, title, load, loads)| {
        let mut points = Vec::new();
        for who in PEERS {
            for &load in &loads {
                match point(setting, what, who, load) {
                    Ok(point) => points.push(point),
                    Err(error) => {
                        eprintln!("bench: {title}, {load}, {}: {error}", who.name());
                        break;
                    }
                }
            }
        }
        Curves {
            id,
            title,
            load,
            points,
        }
    })
    .into()
}

fn point(setting: &Setting<'_>, what: Load, who: Who, at: u64) -> Result<Point, Failure> {
    let both = Sides {
        agent: who,
        client: who,
    };
    let mut pair = setting.pair(both, true)?;
    let small = |count: u64| if setting.quick { count.min(100) } else { count };
    // What takes a peer too long is cut short: the cost of one is the same.
    let slow = matches!(who, Who::Rust | Who::TypeScript);
    let (took, messages) = match what {
        Load::Sessions => {
            let sessions = usize::try_from(small(at))?;
            let total: u64 = if slow { 50_000 } else { 500_000 };
            let each = small(total.div_ceil(at)).max(5);
            pair.tell(&stream(small(1000), TEXT))?;
            pair.tell(&Command::Open { sessions })?;
            (pair.tell(&stream(each, TEXT))?, each * sessions as u64)
        }
        Load::Bytes => {
            let bytes = usize::try_from(if setting.quick { at.min(65_536) } else { at })?;
            let total: u64 = if slow { 64 << 20 } else { 256 << 20 };
            let most = if slow { 20_000 } else { 200_000 };
            let messages = small((total / at).clamp(2, most));
            pair.tell(&stream(messages.min(1000), bytes))?;
            (pair.tell(&stream(messages, bytes))?, messages)
        }
        Load::Messages => {
            let messages = small(at);
            pair.tell(&load(small(1000) - 1))?;
            (pair.tell(&load(messages))?, messages)
        }
    };
    Ok(Point {
        who,
        load: at,
        cpu_us: cost(&took, messages),
    })
}

fn cost(took: &Took, messages: u64) -> f64 {
    (took.agent.cpu + took.client.cpu).as_secs_f64() * 1e6 / messages.max(1) as f64
}
