//! Measures how the cost of a message depends on the load: number of sessions, size of messages, length of a replay.

use bench_work::ClientCommand;

use crate::BenchError;
use crate::pair::TaskCost;
use crate::peers::PeerId;
use crate::results::{CurvePoint, Curves};
use crate::rows::{PeerIds, RowSetting, TEXT_BYTES, load_command, stream_command};

/// The kind of load that a curve varies.
#[derive(Debug, Clone, Copy)]
enum LoadAxis {
    Sessions,
    Bytes,
    Messages,
}

const PEERS: [PeerId; 4] = [
    PeerId::Ours,
    PeerId::Rust,
    PeerId::TypeScript,
    PeerId::Floor,
];

pub(crate) fn measure_curves(setting: &RowSetting<'_>) -> Vec<Curves> {
    let sizes: Vec<u64> = (0..6).map(|power| 64 << (4 * power)).collect();
    [
        (
            LoadAxis::Sessions,
            "sessions",
            "Streaming in many sessions at once",
            "sessions",
            vec![1, 10, 100, 1000, 10_000],
        ),
        (
            LoadAxis::Bytes,
            "sizes",
            "Streaming large messages",
            "bytes of text in a message",
            sizes,
        ),
        (
            LoadAxis::Messages,
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
                match measure_point(setting, what, who, load) {
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

fn measure_point(
    setting: &RowSetting<'_>,
    what: LoadAxis,
    who: PeerId,
    at: u64,
) -> Result<CurvePoint, BenchError> {
    let both = PeerIds {
        agent: who,
        client: who,
    };
    let mut pair = setting.start_pair(both, true)?;
    let small = |count: u64| if setting.quick { count.min(100) } else { count };
    // Slow peers get less work, because the cost per message does not change.
    let slow = matches!(who, PeerId::Rust | PeerId::TypeScript);
    let (took, messages) = match what {
        LoadAxis::Sessions => {
            let sessions = usize::try_from(small(at))?;
            let total: u64 = if slow { 50_000 } else { 500_000 };
            let each = small(total.div_ceil(at)).max(5);
            pair.run_command(&stream_command(small(1000), TEXT_BYTES))?;
            pair.run_command(&ClientCommand::Open { sessions })?;
            (
                pair.run_command(&stream_command(each, TEXT_BYTES))?,
                each * sessions as u64,
            )
        }
        LoadAxis::Bytes => {
            let bytes = usize::try_from(if setting.quick { at.min(65_536) } else { at })?;
            let total: u64 = if slow { 64 << 20 } else { 256 << 20 };
            let most = if slow { 20_000 } else { 200_000 };
            let messages = small((total / at).clamp(2, most));
            pair.run_command(&stream_command(messages.min(1000), bytes))?;
            (
                pair.run_command(&stream_command(messages, bytes))?,
                messages,
            )
        }
        LoadAxis::Messages => {
            let messages = small(at);
            pair.run_command(&load_command(small(1000) - 1))?;
            (pair.run_command(&load_command(messages))?, messages)
        }
    };
    Ok(CurvePoint {
        who,
        load: at,
        cpu_us: cpu_per_message(&took, messages),
    })
}

fn cpu_per_message(took: &TaskCost, messages: u64) -> f64 {
    (took.agent.cpu + took.client.cpu).as_secs_f64() * 1e6 / messages.max(1) as f64
}
