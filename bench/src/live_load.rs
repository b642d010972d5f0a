//! Measures how latency and memory of live sessions depend on the number of watchers and of sessions.

use std::path::Path;

use acp_postgres::TestPostgres;
use plotters::style::RGBColor;
use serde::Serialize;

use crate::BenchError;
use crate::live::{LiveBenchClient, LiveServer, percentile, prompt, spawn_watchers, within_limit};
use crate::plot::{Plot, PlotLine};

/// The updates per second that the agent sends.
const RATE: usize = 200;

/// How latency and memory depend on the load, with one kind of store.
#[derive(Debug, Serialize)]
pub(crate) struct LiveLoad {
    store: &'static str,
    /// By the number of watchers of one session.
    watchers: Vec<LoadPoint>,
    /// By the number of sessions that the server has.
    sessions: Vec<LoadPoint>,
}

/// What was measured with some load.
#[derive(Debug, Clone, Copy, Serialize)]
struct LoadPoint {
    load: usize,
    /// The time from the agent to each watcher, in milliseconds.
    delay_p50: f64,
    delay_p99: f64,
    /// The memory of the server, in MB.
    memory_mb: f64,
}

/// Measures each kind of load, without a store and with PostgreSQL.
pub(crate) fn measure_live_load(
    acp: &Path,
    scratch: &Path,
    quick: bool,
) -> Result<Vec<LiveLoad>, BenchError> {
    let (watchers, sessions, count): (&[usize], &[usize], usize) = match quick {
        true => (&[1, 2], &[1, 10], 20),
        false => (
            &[1, 2, 5, 10, 20, 50, 100, 200],
            &[1, 10, 100, 1000, 4000],
            1000,
        ),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let postgres = TestPostgres::start("");
    let mut stores = vec![("no store", None)];
    stores.extend(
        postgres
            .as_ref()
            .map(|postgres| ("PostgreSQL", Some(postgres.new_database()))),
    );
    let mut loads = Vec::new();
    for (name, store) in stores {
        eprintln!("bench: live sessions under load, store: {name}");
        // Memory that was needed once stays with the server, so each kind of load gets its own.
        let server = LiveServer::start(acp, scratch, store.as_deref())?;
        let by_watchers = runtime.block_on(async {
            let mut points = Vec::new();
            for &load in watchers {
                points.push(within_limit(measure_point(&server, load, load, count)).await?);
            }
            Ok::<_, BenchError>(points)
        })?;
        drop(server);
        let server = LiveServer::start(acp, scratch, store.as_deref())?;
        let by_sessions = runtime.block_on(async {
            let (mut points, mut open) = (Vec::new(), 0);
            let mut opener = LiveBenchClient::connect(&server).await?;
            for &load in sessions {
                while open + 1 < load {
                    opener.new_session(&server).await?;
                    open += 1;
                }
                points.push(within_limit(measure_point(&server, load, 1, count)).await?);
                open += 1;
            }
            Ok::<_, BenchError>(points)
        })?;
        loads.push(LiveLoad {
            store: name,
            watchers: by_watchers,
            sessions: by_sessions,
        });
    }
    Ok(loads)
}

/// Streams to some watchers of a new session.
async fn measure_point(
    server: &LiveServer,
    load: usize,
    watchers: usize,
    count: usize,
) -> Result<LoadPoint, BenchError> {
    let mut prompter = LiveBenchClient::connect(server).await?;
    let session = prompter.new_session(server).await?;
    let mut streams = spawn_watchers(server, &session, watchers).await?;
    let params = prompt(&session, &format!("{count} {RATE}"));
    prompter.send("session/prompt", &params).await?;
    let mut delays = Vec::with_capacity(watchers * count);
    while let Some(stream) = streams.join_next().await {
        let (chunks, _) = stream??;
        let delay = |(sent, received): &(u64, u64)| received.saturating_sub(*sent) as f64 / 1e6;
        delays.extend(chunks.iter().map(delay));
    }
    Ok(LoadPoint {
        load,
        delay_p50: percentile(&delays, 50),
        delay_p99: percentile(&delays, 99),
        memory_mb: server.memory()? / 1000.0,
    })
}

/// Draws the plots of latency and memory into a directory.
pub(crate) fn draw_live_load(loads: &[LiveLoad], to: &Path) -> Result<(), BenchError> {
    if loads.is_empty() {
        return Ok(());
    }
    type Points = fn(&LiveLoad) -> &[LoadPoint];
    let kinds: [(&str, &str, Points); 2] = [
        ("live-watchers", "watchers of one session", |load| {
            &load.watchers
        }),
        ("live-sessions", "sessions of the server", |load| {
            &load.sessions
        }),
    ];
    for (name, x, points) in kinds {
        let line = |load: &LiveLoad, of: &str, dark: bool, value: fn(&LoadPoint) -> f64| PlotLine {
            name: format!("{}{of}", load.store),
            color: line_color(load.store, dark),
            points: points(load)
                .iter()
                .map(|point| (point.load as f64, value(point)))
                .collect(),
        };
        let delays = loads.iter().flat_map(|load| {
            [
                line(load, ", p50", true, |point| point.delay_p50),
                line(load, ", p99", false, |point| point.delay_p99),
            ]
        });
        let plot = Plot {
            title: "Time from the agent to a client, at 200 updates/s",
            x,
            y: "milliseconds",
            lines: delays.collect(),
        };
        plot.draw(&to.join(format!("{name}.svg")))?;
        let memory = loads.iter();
        let plot = Plot {
            title: "Memory of the server",
            x,
            y: "MB",
            lines: memory
                .map(|load| line(load, "", true, |point| point.memory_mb))
                .collect(),
        };
        plot.draw(&to.join(format!("{name}-memory.svg")))?;
    }
    Ok(())
}

fn line_color(store: &str, is_dark: bool) -> RGBColor {
    match (store, is_dark) {
        ("no store", true) => RGBColor(0x70, 0x70, 0x70),
        ("no store", false) => RGBColor(0xb4, 0xb4, 0xb4),
        (_, true) => RGBColor(0x1b, 0x6e, 0xc2),
        (_, false) => RGBColor(0x8f, 0xbb, 0xe6),
    }
}
