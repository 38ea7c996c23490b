//! One HTML page with everything in it: tables, series, histograms, scale-up curves. No script is needed, and it prints.

use super::chart::{Line, bars, escaped, legend, lines, ratios};
use super::flame::{are_kin, flame, grown, shares};
use super::table::{Board, Table, Tone, is_void};
use crate::measure::histogram::Latencies;
use crate::results::Measurement;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// The page of these results.
pub fn page(board: &Board, title: &str) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>{STYLE}</style></head><body>\n\
         <header><h1>{0}</h1>",
        escaped(title)
    );
    out.push_str(&legend(&board.labels));
    out.push_str(&navigation(board));
    out.push_str("</header><main>\n");
    out.push_str(&servers(board));
    for suite in board.suites() {
        out.push_str(&section(board, &suite));
    }
    let remarks = board.remarks();
    if !remarks.is_empty() {
        let items: Vec<String> = remarks
            .iter()
            .map(|remark| format!("<li>{}</li>", escaped(remark)))
            .collect();
        let _ = write!(
            out,
            "<section class=\"remarks\"><h2>Remarks</h2><ul>{}</ul></section>",
            items.join("")
        );
    }
    out.push_str(
        "</main><footer>Red: below 0.97 of the first server, strong below 0.95; green: above 1.03 and 1.05. Grey: the rate that had \
         to be kept beside it was missed, or the test failed, so its own rate counts for nothing.</footer></body></html>\n",
    );
    out
}

fn navigation(board: &Board) -> String {
    let link = |suite: &String| format!("<a href=\"#{}\">{}</a>", anchor(suite), escaped(suite));
    let links: Vec<String> = board.suites().iter().map(link).collect();
    format!("<nav>{}</nav>", links.join(" "))
}

/// A section's name as an address has it.
fn anchor(suite: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() { c } else { '-' };
    suite.chars().map(letter).collect()
}

/// What was measured where.
fn servers(board: &Board) -> String {
    let mut out =
        "<section><h2>Servers</h2><div class=\"scroll\"><table class=\"facts\"><thead><tr><th></th>".to_owned();
    let firsts: Vec<&Measurement> = board
        .labels
        .iter()
        .filter_map(|label| board.tests.iter().find_map(|test| board.middle(label, test)))
        .collect();
    for m in &firsts {
        let _ = write!(out, "<th>{}</th>", escaped(&m.label));
    }
    out.push_str("</tr></thead><tbody>");
    let facts = |m: &Measurement| [m.server.clone(), m.machine.clone()].concat();
    let mut names: Vec<String> = Vec::new();
    for (name, _) in firsts.iter().flat_map(|m| facts(m)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        let _ = write!(out, "<tr><th>{}</th>", escaped(&name));
        for m in &firsts {
            let value = facts(m)
                .into_iter()
                .find(|(other, _)| *other == name)
                .map_or(String::new(), |(_, value)| value);
            let _ = write!(out, "<td>{}</td>", escaped(&value));
        }
        out.push_str("</tr>");
    }
    out + "</tbody></table></div></section>\n"
}

fn section(board: &Board, suite: &str) -> String {
    let mut out = format!("<section id=\"{}\"><h2>{}</h2>\n", anchor(suite), escaped(suite));
    out.push_str(&relative_chart(board, suite));
    out.push_str(&scale_up(board, suite));
    for (at, table) in board.tables(suite).iter().enumerate() {
        // The first tables are read by all, the others by who looks for a reason.
        let open = if at < 3 { " open" } else { "" };
        let _ = write!(
            out,
            "<details{open}><summary>{}</summary>{}</details>",
            escaped(&table.title),
            html_table(table)
        );
    }
    out.push_str("<details><summary>Series and response times of each test</summary><div class=\"charts\">");
    for test in board.tests.iter().filter(|(of, _)| of == suite) {
        out.push_str(&charts(board, test));
    }
    out.push_str("</div></details>");
    out.push_str(&flames(board, suite));
    out + "</section>\n"
}

/// Flame graphs of the tests that were profiled; those after the first server's are coloured by what changed.
fn flames(board: &Board, suite: &str) -> String {
    let mut out = String::new();
    for test in board.tests.iter().filter(|(of, _)| of == suite) {
        let with_profile = |label: &String| board.rounds(label, test).into_iter().find(|m| !m.profile.is_empty());
        let profiled: Vec<&Measurement> = board.labels.iter().filter_map(with_profile).collect();
        for (at, m) in profiled.iter().enumerate() {
            let first = profiled[0];
            let is_kin = at > 0 && are_kin(&first.profile, &m.profile);
            let before = is_kin.then_some(first.profile.as_slice());
            let (cost_a, cost_b) = (first.used("server", "cpuMicros"), m.used("server", "cpuMicros"));
            let compared = if is_kin {
                format!(", compared with {}", first.label)
            } else {
                String::new()
            };
            let title = format!("CPU profile of {}, {}{compared}", test.1, m.label);
            let _ = write!(out, "<details><summary>{}</summary>", escaped(&title));
            if let (true, Some(a), Some(b)) = (is_kin, cost_a, cost_b) {
                let row = |(name, was, is): &(String, f64, f64)| {
                    format!("<tr><th>{}</th><td>{was:.2}</td><td>{is:.2}</td></tr>", escaped(name))
                };
                let rows: Vec<String> = grown(&shares(&first.profile), a, &shares(&m.profile), b)
                    .iter()
                    .map(row)
                    .collect();
                if !rows.is_empty() {
                    let head = "<tr><th>functions that grew most, CPU µs for each operation</th><th>before</th><th>now</th></tr>";
                    let _ = write!(
                        out,
                        "<div class=\"scroll\"><table><thead>{head}</thead><tbody>{}</tbody></table></div>",
                        rows.join("")
                    );
                }
            }
            let _ = write!(out, "{}</details>", flame(&m.profile, before));
        }
    }
    out
}

fn html_table(table: &Table) -> String {
    let mut out = "<div class=\"scroll\"><table><thead><tr><th></th>".to_owned();
    for column in &table.columns {
        let _ = write!(out, "<th>{}</th>", escaped(column));
    }
    out.push_str("</tr></thead><tbody>");
    for (test, figures) in &table.rows {
        let _ = write!(out, "<tr><th>{}</th>", escaped(test));
        for figure in figures {
            let class = match figure.tone {
                Tone::Plain => "",
                Tone::MuchWorse => "much-worse",
                Tone::Worse => "worse",
                Tone::Better => "better",
                Tone::MuchBetter => "much-better",
                Tone::Void => "void",
            };
            let _ = write!(out, "<td class=\"{class}\">{}</td>", escaped(&figure.text));
        }
        out.push_str("</tr>");
    }
    out + "</tbody></table></div>"
}

fn relative_chart(board: &Board, suite: &str) -> String {
    let labels = board.labels_of(suite);
    if labels.len() < 2 {
        return String::new();
    }
    let tests: Vec<&(String, String)> = board.tests.iter().filter(|(of, _)| of == suite).collect();
    let first = &labels[0];
    let ratio = |label: &String, test: &&(String, String)| {
        let (a, b) = (board.middle(first, test)?, board.middle(label, test)?);
        (a.rate > 0.0 && b.rate > 0.0 && !is_void(a) && !is_void(b)).then(|| b.rate / a.rate)
    };
    // A server has one colour on the whole page.
    let colour = |label: &String| board.labels.iter().position(|other| other == label).unwrap_or(0);
    let all: Vec<(usize, Vec<Option<f64>>)> = labels[1..]
        .iter()
        .map(|label| (colour(label), tests.iter().map(|test| ratio(label, test)).collect()))
        .collect();
    let names: Vec<String> = tests.iter().map(|(_, test)| test.clone()).collect();
    let title = format!("Throughput relative to {first}");
    format!("<h3>{}</h3>{}", escaped(&title), ratios(&title, &names, &all))
}

/// Throughput by clients, relative to one client, where a test ran with several numbers of them; and the test's own figures, such as work done
/// in vain.
fn scale_up(board: &Board, suite: &str) -> String {
    let is_scaled = |m: &&Measurement| m.config("scaleUp").is_some();
    let mut tests: Vec<&str> = Vec::new();
    for m in board.of_suite(suite).filter(is_scaled) {
        if !tests.contains(&m.test.as_str()) {
            tests.push(&m.test);
        }
    }
    let of = |test: &str, label: &String, value: &dyn Fn(&Measurement) -> Option<f64>| -> Vec<(f64, f64)> {
        let of_suite = board.tests.iter().filter(|(of, _)| of == suite);
        let middles = of_suite.filter_map(|test| board.middle(label, test)).filter(is_scaled);
        let mut points: Vec<(f64, f64)> = middles
            .filter(|m| m.test == test)
            .filter_map(|m| Some((m.clients as f64, value(m)?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let mut out = String::new();
    for test in tests {
        let relative = |label: &String| {
            let mut points = of(test, label, &|m| (m.rate > 0.0).then_some(m.rate));
            let one = points.first().map_or(1.0, |point| point.1);
            points.iter_mut().for_each(|point| point.1 /= one);
            points
        };
        let mut figure = |caption: &str, points: &dyn Fn(&String) -> Vec<(f64, f64)>| {
            let line = |label: &String| Line {
                label: label.clone(),
                points: points(label),
            };
            let all: Vec<Line> = board.labels.iter().map(line).collect();
            if all.iter().any(|line| line.points.len() > 1) {
                let chart = lines(caption, "clients", &all);
                let test = escaped(test);
                let _ = write!(
                    out,
                    "<figure><figcaption>{test}: {}</figcaption>{chart}</figure>",
                    escaped(caption)
                );
            }
        };
        figure("throughput relative to the fewest clients", &relative);
        for name in board.figure_names(suite) {
            figure(&name, &|label| of(test, label, &|m| m.figure(&name)));
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("<div class=\"charts\">{out}</div>")
    }
}

fn charts(board: &Board, test: &(String, String)) -> String {
    let mut out = String::new();
    let found: Vec<(&String, Option<&Measurement>)> = board
        .labels
        .iter()
        .map(|label| (label, board.middle(label, test)))
        .collect();
    let series = |column: usize, factor: f64| -> Vec<Line> {
        let line = |(label, m): &(&String, Option<&Measurement>)| Line {
            label: (*label).clone(),
            points: m
                .iter()
                .flat_map(|m| &m.series)
                .filter_map(|sample| Some((*sample.first()?, sample.get(column)? * factor)))
                .collect(),
        };
        found.iter().map(line).collect()
    };
    let mut figure = |caption: &str, chart: String| {
        let _ = write!(
            out,
            "<figure><figcaption>{}: {caption}</figcaption>{chart}</figure>",
            escaped(&test.1)
        );
    };
    figure("operations or rows a second", lines("throughput", "s", &series(1, 1.0)));
    let buckets: Vec<Vec<f64>> = found
        .iter()
        .map(|(_, m)| {
            let counts = m.map(|m| m.buckets.clone()).unwrap_or_default();
            let all: f64 = counts.iter().sum::<f64>().max(1.0);
            counts.iter().map(|count| 100.0 * count / all).collect()
        })
        .collect();
    let last = buckets
        .iter()
        .filter_map(|counts| counts.iter().rposition(|count| *count > 0.0))
        .max();
    if let Some(last) = last {
        let names: Vec<String> = Latencies::bucket_names().into_iter().take(last + 1).collect();
        figure(
            "response times up to …, % of all",
            bars("response times", &names, &buckets),
        );
    }
    figure(
        "longest answer of each sample, ms",
        lines("longest answers", "s", &series(2, 1e-3)),
    );
    out
}
