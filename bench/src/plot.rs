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

/// Draws the cost of a message against the load, with logarithmic axes.
pub(crate) fn draw(curves: &Curves, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let loads = curves.points.iter().map(|point| point.load as f64);
    let costs = curves.points.iter().map(|point| point.cpu_us);
    let (least, most) = (
        costs.clone().fold(f64::INFINITY, f64::min),
        costs.fold(0.0, f64::max),
    );
    let (first, last) = (
        loads.clone().fold(f64::INFINITY, f64::min),
        loads.fold(0.0, f64::max),
    );
    if most <= 0.0 {
        return Ok(());
    }
    let area = SVGBackend::new(to, IMAGE_SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(curves.title, ("sans-serif", 18))
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (first * 0.8..last * 1.6).log_scale(),
            (least * 0.6..most * 2.0).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc(curves.load)
        .y_desc("CPU µs for each message, agent + client")
        .x_label_formatter(&|load| format_number(*load))
        .y_label_formatter(&|cost| format_number(*cost))
        .light_line_style(RGBColor(0xee, 0xee, 0xee))
        .bold_line_style(RGBColor(0xdd, 0xdd, 0xdd))
        .draw()?;
    let mut peers: Vec<PeerId> = curves.points.iter().map(|point| point.who).collect();
    peers.dedup();
    for who in peers {
        let points: Vec<(f64, f64)> = curves
            .points
            .iter()
            .filter(|point| point.who == who)
            .map(|point| (point.load as f64, point.cpu_us))
            .collect();
        let style = line_color(who).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(who.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        let dots = points
            .iter()
            .map(|&at| Circle::new(at, 3, line_color(who).filled()));
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
