//! Runs the same workloads with this library and with other implementations, measures them, and writes a report.

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]
// Counts and times are far below the numbers that a float cannot represent.
#![allow(clippy::cast_precision_loss)]

mod chat;
mod claims;
mod curves;
mod live;
mod live_load;
mod machine;
mod metric;
mod pair;
mod peers;
mod plot;
mod results;
mod rows;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::chat::ChatReport;
use crate::peers::{PeerId, Peers};
use crate::results::{Results, Runs};
use crate::rows::{BenchRow, FILE_BYTES, PeerIds, RowSetting};

/// Any error, to show to the user.
pub(crate) type BenchError = Box<dyn std::error::Error>;

/// Run the same workloads with this library and with other implementations ("peers"), in processes connected by pipes or
/// over the network, and report the time and memory that each takes.
#[derive(Parser)]
#[command(about, long_about = None)]
struct BenchArgs {
    /// How many times to repeat each measurement. The report has the medians.
    #[arg(long, default_value_t = 5, value_name = "TIMES")]
    repeat: usize,
    /// Run only the workloads whose id starts with this. Can be repeated. `curves` selects the plots.
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// Run only pairs of these peers: ours, rust, typescript, python, floor.
    #[arg(long, value_name = "PEERS", value_delimiter = ',')]
    peers: Vec<String>,
    /// Only test that everything runs. The results are meaningless. Builds the workspace as the tests do.
    #[arg(long)]
    quick: bool,
    /// Where to write results.json, report.md and the plots [default: in the target directory].
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Also measure an earlier build of this project, for comparison. The directory must contain its `acp`,
    /// `bench-our-agent` and `bench-our-client`, built with the same profile.
    #[arg(long, value_name = "DIRECTORY")]
    before: Option<PathBuf>,
    /// List the workloads and exit.
    #[arg(long)]
    list: bool,
}

impl BenchArgs {
    fn is_selected(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| row.starts_with(only))
    }

    fn includes_ours(&self) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|peer| peer == "ours")
    }

    fn includes_pair(&self, pair: PeerIds) -> bool {
        let named = |who: PeerId| {
            let name = match who {
                PeerId::Ours
                | PeerId::Traced
                | PeerId::AcpAgent
                | PeerId::Before
                | PeerId::BeforeTraced
                | PeerId::BeforeAcpAgent
                | PeerId::OursWebSocket
                | PeerId::OursHttp
                | PeerId::Served
                | PeerId::Connected => "ours",
                PeerId::Rust | PeerId::RustWebSocket | PeerId::RustHttp => "rust",
                PeerId::TypeScript | PeerId::StdioToWs => "typescript",
                PeerId::Python => "python",
                PeerId::Floor
                | PeerId::FloorEach
                | PeerId::Raw
                | PeerId::Least
                | PeerId::FloorWebSocket => "floor",
            };
            self.peers.iter().any(|peer| peer == name)
        };
        self.peers.is_empty() || named(pair.agent) && named(pair.client)
    }
}

fn main() -> Result<(), BenchError> {
    let args = BenchArgs::parse();
    let mut rows = rows::rows();
    if args.before.is_some() {
        for row in &mut rows {
            let before: Vec<PeerIds> = row
                .pairs
                .iter()
                .filter_map(|pair| pair.earlier_build())
                .collect();
            row.pairs.extend(before);
        }
    }
    if args.list {
        for row in &rows {
            println!("{:16} {}", row.id, row.title);
        }
        println!(
            "{:16} `acp chat` on a terminal, with a long conversation",
            "chat"
        );
        println!("{:16} live sessions, with each kind of store", "live");
        println!("{:16} CPU time under load, as plots", "curves");
        return Ok(());
    }
    let this = std::env::current_exe()?;
    let beside = this
        .parent()
        .and_then(Path::parent)
        .ok_or("cannot find the directory of this program")?;
    let out = args.out.clone().unwrap_or_else(|| beside.join("bench"));
    fs::create_dir_all(&out)?;
    let scratch = tempfile::tempdir()?;
    let mut peers = Peers::prepare(&scratch.path().join("state"), args.quick)?;
    // The measurements of `acp chat` and of live sessions run our own programs only.
    if args.is_selected("curves") || rows.iter().any(|row| args.is_selected(row.id)) {
        peers.add_others(args.quick)?;
    }
    if let Some(before) = &args.before {
        peers.add_before(before, &scratch.path().join("state-before"))?;
    }
    let file = scratch.path().join("file.txt");
    write_file(
        &file,
        if args.quick {
            FILE_BYTES / 100
        } else {
            FILE_BYTES
        },
    )?;
    let setting = RowSetting {
        peers: &peers,
        processor: machine::last_cpu()?,
        quick: args.quick,
        file: &file,
    };
    let mut results = Results {
        machine: machine::machine_description(),
        rows: Vec::new(),
        curves: Vec::new(),
        chat: None,
        live: Vec::new(),
        live_load: Vec::new(),
        missing: peers.missing.clone().into_iter().collect(),
    };
    print!("{}", table::render_head(&results));
    for row in rows.iter().filter(|row| args.is_selected(row.id)) {
        let runs = measure(&setting, row, &args);
        // Print each table as soon as possible, because the whole run takes a long time.
        print!("{}", table::render_row(&runs));
        results.rows.extend(runs);
    }
    if args.is_selected("chat") && args.includes_ours() {
        let chat = measure_chat(&peers, &scratch.path().join("chat"), &args)?;
        print!("{}", chat::render_table(&chat));
        results.chat = Some(chat);
    }
    if args.is_selected("live") && args.includes_ours() {
        let live = live::measure_live(&peers.acp(), &scratch.path().join("live"), args.quick)?;
        print!("{}", live::render_live(&live));
        results.live = live;
        let scratch = scratch.path().join("live-load");
        results.live_load = live_load::measure_live_load(&peers.acp(), &scratch, args.quick)?;
    }
    if args.is_selected("curves") {
        results.curves = curves::measure_curves(&setting);
    }
    write_report(&results, &out, &peers.acp(), &args)
}

/// Measures a workload as many times as requested. The pairs take turns, so that changes on the machine affect all of
/// them.
fn measure(setting: &RowSetting<'_>, row: &BenchRow, args: &BenchArgs) -> Vec<Runs> {
    let mut all: Vec<Runs> = row
        .pairs
        .iter()
        .filter(|pair| args.includes_pair(**pair))
        .map(|&who| Runs {
            row: row.id,
            title: row.title,
            pinned: row.pinned,
            peers: who,
            samples: Vec::new(),
            failed: None,
        })
        .collect();
    let times = if args.quick {
        1
    } else {
        args.repeat.min(row.repeat)
    };
    for time in 1..=times {
        for runs in all.iter_mut().filter(|runs| runs.failed.is_none()) {
            eprintln!(
                "bench: {} ({time} of {times}): {}",
                row.title,
                runs.peers.name()
            );
            match setting.run(row, runs.peers) {
                Ok(sample) => runs.samples.push(sample),
                Err(error) => {
                    eprintln!("bench: {}: {error}", runs.peers.name());
                    runs.failed = Some(error.to_string());
                }
            }
        }
    }
    all
}

/// Measures `acp chat`, at most three times, because each time takes a minute.
fn measure_chat(peers: &Peers, scratch: &Path, args: &BenchArgs) -> Result<ChatReport, BenchError> {
    let times = if args.quick { 1 } else { args.repeat.min(3) };
    let mut chat = ChatReport::default();
    for time in 1..=times {
        eprintln!("bench: `acp chat` ({time} of {times})");
        chat.merge(chat::run_chat_bench(peers, scratch, args.quick)?);
    }
    Ok(chat)
}

fn write_report(
    results: &Results,
    out: &Path,
    acp: &Path,
    args: &BenchArgs,
) -> Result<(), BenchError> {
    let mut text = table::render_head(results);
    text.push_str(&table::render_rows(results));
    text.extend(results.chat.as_ref().map(chat::render_table));
    if !results.live.is_empty() {
        text.push_str(&live::render_live(&results.live));
    }
    let mut end = String::new();
    let mut claims = claims::all_claims(results);
    claims.extend(results.chat.iter().flat_map(chat::chat_claims));
    if !claims.is_empty() && !args.quick {
        end.push_str(&table::render_claims(&claims));
    }
    if args.before.is_some() {
        end.push_str(&table::render_comparison(results));
    }
    if let Ok(binary) = fs::metadata(acp) {
        let mega = table::format_figure(binary.len() as f64 / 1e6);
        end.push_str(&format!("\nThe size of the binary `acp` is {mega} MB.\n"));
    }
    text.push_str(&end);
    print!("{end}");
    fs::write(out.join("report.md"), &text)?;
    fs::write(
        out.join("results.json"),
        serde_json::to_vec_pretty(results)?,
    )?;
    for curves in &results.curves {
        plot::draw(curves, &out.join(format!("{}.svg", curves.id)))?;
    }
    live_load::draw_live_load(&results.live_load, out)?;
    eprintln!("bench: written to {}", out.display());
    let failed: Vec<String> = results
        .rows
        .iter()
        .filter(|runs| runs.failed.is_some())
        .filter(|runs| {
            !results
                .missing
                .iter()
                .any(|(who, _)| [runs.peers.agent, runs.peers.client].contains(who))
        })
        .map(|runs| format!("{}: {}", runs.row, runs.peers.name()))
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join("; ")).into())
    }
}

/// Writes a file that resembles source code: lines, and characters that JSON escapes.
fn write_file(path: &Path, bytes: u64) -> Result<(), BenchError> {
    let line = "    let answer = question.answer(\"forty-two\"); // as it was asked for\n";
    let mut text = line.repeat(usize::try_from(bytes)? / line.len() + 1);
    text.truncate(usize::try_from(bytes)?);
    fs::write(path, text)?;
    Ok(())
}
