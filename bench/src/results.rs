//! The results of all runs, for the report and for `results.json`.

use serde::Serialize;

use crate::chat::ChatReport;
use crate::live::LiveFigures;
use crate::live_load::LiveLoad;
use crate::metric::{Metric, Sample};
use crate::peers::PeerId;
use crate::rows::PeerIds;

/// All runs of one workload by one pair of programs.
#[derive(Debug, Serialize)]
pub(crate) struct Runs {
    pub(crate) row: &'static str,
    pub(crate) title: &'static str,
    pub(crate) pinned: bool,
    #[serde(flatten)]
    pub(crate) peers: PeerIds,
    pub(crate) samples: Vec<Sample>,
    /// Why there are no results, if the runs failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// The minimum, median and maximum of several runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Runs {
    pub(crate) fn spread(&self, metric: Metric) -> Option<Spread> {
        let values = self.samples.iter().filter_map(|sample| sample.get(&metric));
        let mut values: Vec<f64> = values.copied().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (&least, &most) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = match values.get(middle.wrapping_sub(1)) {
            Some(before) if values.len().is_multiple_of(2) => {
                f64::midpoint(*before, *values.get(middle)?)
            }
            _ => *values.get(middle)?,
        };
        Some(Spread {
            min: least,
            median,
            max: most,
        })
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        self.samples
            .first()
            .into_iter()
            .flat_map(|s| s.keys().copied())
    }
}

/// A point of a plot: the load, and the cost of a message for agent and client together.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct CurvePoint {
    pub(crate) who: PeerId,
    pub(crate) load: u64,
    /// The CPU time of agent and client per message, in microseconds.
    pub(crate) cpu_us: f64,
}

/// The plots of one kind of load: how the cost of a message depends on it.
#[derive(Debug, Serialize)]
pub(crate) struct Curves {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) load: &'static str,
    pub(crate) points: Vec<CurvePoint>,
}

/// All results of the benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    pub(crate) machine: String,
    pub(crate) rows: Vec<Runs>,
    pub(crate) curves: Vec<Curves>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<ChatReport>,
    /// Live sessions, with each kind of store.
    pub(crate) live: Vec<LiveFigures>,
    pub(crate) live_load: Vec<LiveLoad>,
    pub(crate) missing: Vec<(PeerId, String)>,
}

impl Results {
    pub(crate) fn find(&self, row: &str, agent: PeerId, client: PeerId) -> Option<&Runs> {
        self.rows
            .iter()
            .find(|runs| runs.row == row && runs.peers == PeerIds { agent, client })
    }

    /// Returns the median of a metric for one workload and pair, if it was measured.
    pub(crate) fn median(
        &self,
        row: &str,
        agent: PeerId,
        client: PeerId,
        metric: Metric,
    ) -> Option<f64> {
        Some(self.find(row, agent, client)?.spread(metric)?.median)
    }
}
