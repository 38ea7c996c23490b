//! Charts as SVG. Colours are classes (`s0` to `s7`), which the page's style sets.

use super::table::number;
use std::fmt::Write;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 200.0;
/// Room for the numbers of the axes.
const LEFT: f64 = 62.0;
const BOTTOM: f64 = 30.0;
const TOP: f64 = 12.0;
/// Points that a line has at most; more are averaged.
const POINTS_MAX: usize = 240;

/// A line of a chart.
pub struct Line {
    /// What it shows.
    pub label: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

/// Lines over a common x; `unit` is that of x.
pub fn lines(title: &str, unit: &str, lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| line.points.iter());
    let x_max = all().map(|p| p.0).fold(0.0, f64::max);
    let y_max = round_up(all().map(|p| p.1).fold(0.0, f64::max));
    let x_min = all().map(|p| p.0).fold(f64::MAX, f64::min).min(x_max);
    let mut out = head(title, y_max);
    let x_at = |x: f64| LEFT + (x - x_min) / (x_max - x_min).max(1e-9) * (WIDTH - LEFT - 10.0);
    for (i, line) in lines.iter().enumerate() {
        let points: Vec<String> = thinned(&line.points)
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", x_at(*x), y_at(*y, y_max)))
            .collect();
        let _ = write!(
            out,
            "<polyline class=\"line s{}\" points=\"{}\"/>",
            i % 8,
            points.join(" ")
        );
        if points.len() < 20 {
            for point in &points {
                let (x, y) = point.split_once(',').unwrap_or(("0", "0"));
                let _ = write!(out, "<circle class=\"dot s{}\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>", i % 8);
            }
        }
    }
    let base = HEIGHT - BOTTOM + 16.0;
    let _ = write!(out, "<text x=\"{LEFT}\" y=\"{base}\">{}</text>", short(x_min));
    let right = WIDTH - 10.0;
    let _ = write!(
        out,
        "<text class=\"end\" x=\"{right}\" y=\"{base}\">{} {}</text></svg>",
        short(x_max),
        escaped(unit)
    );
    out
}

/// Groups of bars: one group for each name, one bar in it for each of `values`.
pub fn bars(title: &str, names: &[String], values: &[Vec<f64>]) -> String {
    let y_max = round_up(values.iter().flatten().copied().fold(0.0, f64::max));
    let mut out = head(title, y_max);
    let room = (WIDTH - LEFT - 10.0) / names.len().max(1) as f64;
    let bar = room * 0.8 / values.len().max(1) as f64;
    for (i, series) in values.iter().enumerate() {
        for (at, value) in series.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let x = LEFT + room * (at as f64 + 0.1) + bar * i as f64;
            let y = y_at(*value, y_max);
            let height = (HEIGHT - BOTTOM - y).max(0.5);
            let _ = write!(
                out,
                "<rect class=\"bar s{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\"><title>{} {}</title></rect>",
                i % 8,
                escaped(&names[at]),
                number(*value)
            );
        }
    }
    let step = names.len().div_ceil(6).max(1);
    for (at, name) in names.iter().enumerate().step_by(step) {
        let x = LEFT + room * (at as f64 + 0.5);
        let y = HEIGHT - BOTTOM + 16.0;
        let _ = write!(
            out,
            "<text class=\"middle\" x=\"{x:.1}\" y=\"{y}\">{}</text>",
            escaped(name)
        );
    }
    out + "</svg>"
}

/// Ratios to the first server as bars that begin at 1: one row for each test, one bar in it for each other server, which has the number of
/// its colour beside its ratios.
pub fn ratios(title: &str, tests: &[String], ratios: &[(usize, Vec<Option<f64>>)]) -> String {
    const ROW: f64 = 20.0;
    const ALL: f64 = 940.0;
    // As much room as the longest name takes, about.
    let longest = tests.iter().map(|test| test.chars().count()).max().unwrap_or(0);
    let names = (8.0 + 6.6 * longest as f64).clamp(120.0, 420.0);
    let height = TOP + ROW * tests.len() as f64 + 24.0;
    let all = || ratios.iter().flat_map(|(_, series)| series).flatten().copied();
    let (top, low) = (all().fold(1.0, f64::max), all().fold(1.0, f64::min));
    // A ratio and its inverse are as far from 1.
    let reach = top.max(1.0 / low.max(1e-3)).clamp(1.1, 64.0).log2();
    let x_at =
        |ratio: f64| names + (ALL - names - 60.0) * (ratio.clamp(1.0 / 64.0, 64.0).log2() + reach) / (2.0 * reach);
    let mut out = format!(
        "<svg class=\"ratios\" viewBox=\"0 0 {ALL} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    );
    for tick in (-6..=6)
        .map(|power| 2f64.powi(power))
        .filter(|tick| tick.log2().abs() <= reach)
    {
        let x = x_at(tick);
        let y = height - 6.0;
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\"/>",
            height - 20.0
        );
        let _ = write!(
            out,
            "<text class=\"middle\" x=\"{x:.1}\" y=\"{y}\">{}</text>",
            short(tick)
        );
    }
    for (at, test) in tests.iter().enumerate() {
        let y = TOP + ROW * at as f64;
        let _ = write!(
            out,
            "<text class=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            names - 8.0,
            y + 14.0,
            escaped(test)
        );
        let bar = (ROW - 5.0) / ratios.len().max(1) as f64;
        for (i, (colour, series)) in ratios.iter().enumerate() {
            let Some(ratio) = series[at] else { continue };
            let (one, x) = (x_at(1.0), x_at(ratio));
            let top = y + 2.0 + bar * i as f64;
            let _ = write!(
                out,
                "<rect class=\"bar s{}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{bar:.1}\"><title>{} {ratio:.2}</title></rect>",
                colour % 8,
                one.min(x),
                (x - one).abs().max(0.8),
                escaped(test)
            );
            if ratios.len() == 1 {
                let (at, class) = if ratio >= 1.0 { (x + 4.0, "") } else { (x - 4.0, "end") };
                let _ = write!(
                    out,
                    "<text class=\"{class}\" x=\"{at:.1}\" y=\"{:.1}\">{ratio:.2}</text>",
                    y + 14.0
                );
            }
        }
    }
    let x = x_at(1.0);
    let _ = write!(
        out,
        "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{}\"/>",
        height - 20.0
    );
    out + "</svg>"
}

/// Names with the colours of the lines and bars.
pub fn legend(labels: &[String]) -> String {
    let entry = |(i, label): (usize, &String)| format!("<span class=\"key s{}\"></span>{}", i % 8, escaped(label));
    let entries: Vec<String> = labels.iter().enumerate().map(entry).collect();
    format!("<p class=\"legend\">{}</p>", entries.join(" &nbsp; "))
}

/// Text as HTML and SVG take it.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn head(title: &str, y_max: f64) -> String {
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(title)
    );
    for part in 0..=4 {
        let value = y_max * f64::from(part) / 4.0;
        let y = y_at(value, y_max);
        let right = WIDTH - 10.0;
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>"
        );
        let _ = write!(
            out,
            "<text class=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            short(value)
        );
    }
    out
}

fn y_at(value: f64, y_max: f64) -> f64 {
    HEIGHT - BOTTOM - value / y_max.max(1e-9) * (HEIGHT - BOTTOM - TOP)
}

/// The next number of one digit and zeros, or its half.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps
        .into_iter()
        .map(|step| step * power)
        .find(|top| *top >= value)
        .unwrap_or(value)
}

fn short(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if value >= 1e9 => format!("{:.1}G", value / 1e9),
        _ if value >= 1e6 => format!("{:.1}M", value / 1e6),
        _ if value >= 1e4 => format!("{:.0}k", value / 1e3),
        _ if value >= 1e3 => format!("{:.1}k", value / 1e3),
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ => number(value),
    }
}

fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let each = points.len().div_ceil(POINTS_MAX).max(1);
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        (
            part.iter().map(|p| p.0).sum::<f64>() / n,
            part.iter().map(|p| p.1).sum::<f64>() / n,
        )
    };
    points.chunks(each).map(mean).collect()
}
