//! Draws the plots as SVG files.

use std::path::Path;

use plotters::prelude::*;

use crate::peers::PeerId;
use crate::results::Curves;

const IMAGE_SIZE: (u32, u32) = (720, 420);

fn line_color(who: PeerId) -> RGBColor {
    match who {
        PeerId::Ours => RGBColor(0x1b, 0x6e, 0xc2),
        PeerId::Rust => RGBColor(0xc8, 0x4b, 0x1f),
        PeerId::TypeScript => RGBColor(0x8a, 0x5a, 0xb5),
        _ => RGBColor(0x70, 0x70, 0x70),
    }
}

/// A plot with logarithmic axes.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) lines: Vec<PlotLine>,
}

/// A line of a plot.
pub(crate) struct PlotLine {
    pub(crate) name: String,
    pub(crate) color: RGBColor,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws the cost of a message against the load.
pub(crate) fn draw(curves: &Curves, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut peers: Vec<PeerId> = curves.points.iter().map(|point| point.who).collect();
    peers.dedup();
    let lines = peers.into_iter().map(|who| PlotLine {
        name: who.name().to_owned(),
        color: line_color(who),
        points: curves
            .points
            .iter()
            .filter(|point| point.who == who)
            .map(|point| (point.load as f64, point.cpu_us))
            .collect(),
    });
    let plot = Plot {
        title: curves.title,
        x: curves.load,
        y: "CPU µs for each message, agent + client",
        lines: lines.collect(),
    };
    plot.draw(to)
}

impl Plot<'_> {
    /// Draws the plot as an SVG file.
    pub(crate) fn draw(&self, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let (least, most) = range(points().map(|(_, y)| *y));
        let (bottom, top) = axis_range(least * 0.6, most * 2.0);
        let (first, last) = range(points().map(|(x, _)| *x));
        if most <= 0.0 {
            return Ok(());
        }
        let area = SVGBackend::new(to, IMAGE_SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(
                (first * 0.8..last * 1.6).log_scale(),
                (bottom..top).log_scale(),
            )?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&|load| format_number(*load))
            .y_label_formatter(&|cost| format_number(*cost))
            .light_line_style(RGBColor(0xee, 0xee, 0xee))
            .bold_line_style(RGBColor(0xdd, 0xdd, 0xdd))
            .draw()?;
        for line in &self.lines {
            let style = line.color.stroke_width(2);
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), style))?
                .label(&line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            let dots = line
                .points
                .iter()
                .map(|&at| Circle::new(at, 3, line.color.filled()));
            chart.draw_series(dots)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(RGBColor(0xcc, 0xcc, 0xcc))
            .draw()?;
        area.present()?;
        Ok(())
    }
}

/// Returns the least and the greatest of some values.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| {
        (f64::min(least, value), f64::max(most, value))
    })
}

/// Extends a range to the next powers of ten if it contains none, since only those have labels.
fn axis_range(bottom: f64, top: f64) -> (f64, f64) {
    let (low, high) = (bottom.log10().floor(), top.log10().floor());
    match low == high {
        true => (10f64.powf(low), 10f64.powf(high + 1.0)),
        false => (bottom, top),
    }
}

/// Formats a number for an axis, as briefly as possible.
fn format_number(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = if value >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    };
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{unit}")
}
