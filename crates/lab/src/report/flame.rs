//! Flame graphs: functions as boxes under their callers, as wide as the part of all samples in them; and those of B coloured by
//! what changed from A.

use super::chart::escaped;
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 1_000.0;
const ROW: f64 = 17.0;
/// Boxes that are narrower are left out.
const NARROWEST: f64 = 1.2;
const DEPTH_MAX: usize = 64;

/// Functions that call each other.
#[derive(Default)]
struct Node {
    count: f64,
    /// The same of the profile that it is compared with.
    before: f64,
    callees: BTreeMap<String, Node>,
}

impl Node {
    fn add(&mut self, stack: &str, share: f64, is_before: bool) {
        let mut node = self;
        node.count(share, is_before);
        for frame in stack.split(';').take(DEPTH_MAX) {
            node = node.callees.entry(frame.to_owned()).or_default();
            node.count(share, is_before);
        }
    }

    fn count(&mut self, share: f64, is_before: bool) {
        if is_before {
            self.before += share;
        } else {
            self.count += share;
        }
    }

    fn depth(&self) -> usize {
        let widths = |node: &&Self| node.count * WIDTH >= NARROWEST;
        1 + self.callees.values().filter(widths).map(Self::depth).max().unwrap_or(0)
    }
}

/// Samples by stack.
pub type Stacks = [(String, f64)];

/// The flame graph of `after`; with `before` its boxes are red where more of the time goes now, and blue where less.
pub fn flame(after: &Stacks, before: Option<&Stacks>) -> String {
    let mut root = Node::default();
    for (stacks, is_before) in [(Some(after), false), (before, true)] {
        let all: f64 = stacks
            .into_iter()
            .flatten()
            .map(|(_, count)| count)
            .sum::<f64>()
            .max(1e-9);
        for (stack, count) in stacks.into_iter().flatten() {
            root.add(stack, count / all, is_before);
        }
    }
    let height = ROW * root.depth() as f64 + 2.0;
    let mut out =
        format!("<svg class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"flame graph\">");
    draw(&root, "all", 0.0, 0, before.is_some(), &mut out);
    out + "</svg>"
}

fn draw(node: &Node, name: &str, x: f64, depth: usize, is_compared: bool, out: &mut String) {
    let width = node.count * WIDTH;
    if width < NARROWEST {
        return;
    }
    let y = ROW * depth as f64;
    let class = match is_compared {
        true => match node.count - node.before {
            more if more > 0.05 => "f-more2",
            more if more > 0.01 => "f-more",
            more if more < -0.05 => "f-less2",
            more if more < -0.01 => "f-less",
            _ => "f-same",
        },
        false => ["f0", "f1", "f2"][name.len() % 3],
    };
    let was = match is_compared {
        true => format!(", was {:.1} %", node.before * 100.0),
        false => String::new(),
    };
    let _ = write!(
        out,
        "<g><title>{0} {1:.1} %{was}</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{2}\"/>",
        escaped(name),
        node.count * 100.0,
        ROW - 1.0
    );
    let letters = (width / 6.4) as usize;
    if letters > 3 {
        let short: String = short_name(name).chars().take(letters).collect();
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 3.0,
            y + 12.0,
            escaped(&short)
        );
    }
    out.push_str("</g>");
    let mut x = x;
    for (name, callee) in &node.callees {
        draw(callee, name, x, depth + 1, is_compared, out);
        x += callee.count * WIDTH;
    }
}

/// The last two parts of a path.
fn short_name(name: &str) -> &str {
    // What stands in angle brackets has paths of its own.
    if name.contains('<') {
        return name;
    }
    let mut ends = name.rmatch_indices("::").map(|(at, _)| at + 2);
    let _ = ends.next();
    ends.next().map_or(name, |at| &name[at..])
}

/// The part of all samples that is in each function itself or in what it calls.
pub type Shares = BTreeMap<String, f64>;

/// Those of a profile.
pub fn shares(stacks: &Stacks) -> Shares {
    let all: f64 = stacks.iter().map(|(_, count)| count).sum::<f64>().max(1e-9);
    let mut shares = BTreeMap::new();
    for (stack, count) in stacks {
        let mut frames: Vec<&str> = stack.split(';').collect();
        frames.sort_unstable();
        // One that calls itself counts once.
        frames.dedup();
        for frame in frames {
            *shares.entry(frame.to_owned()).or_insert(0.0) += count / all;
        }
    }
    shares
}

/// Whether two profiles are of builds of one program: most functions of the second are in the first too.
pub fn are_kin(a: &Stacks, b: &Stacks) -> bool {
    let (a, b) = (shares(a), shares(b));
    2 * b.keys().filter(|name| a.contains_key(*name)).count() > b.len()
}

/// The functions whose CPU time for each operation grew most from A to B: name, µs before, µs after. `a` and `b` are their [`shares`], `cost_a` and
/// `cost_b` the servers' CPU µs for each operation.
pub fn grown(a: &Shares, cost_a: f64, b: &Shares, cost_b: f64) -> Vec<(String, f64, f64)> {
    let mut all: Vec<(String, f64, f64)> = b
        .iter()
        .map(|(name, share)| {
            let was = a.get(name).copied().unwrap_or(0.0) * cost_a;
            (name.clone(), was, share * cost_b)
        })
        .filter(|(_, was, is)| is - was > 0.02 * cost_b)
        .collect();
    all.sort_by(|x, y| (y.2 - y.1).total_cmp(&(x.2 - x.1)));
    all.truncate(12);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(all: &[(&str, f64)]) -> Vec<(String, f64)> {
        all.iter().map(|(stack, count)| ((*stack).to_owned(), *count)).collect()
    }

    #[test]
    fn the_function_that_grew_is_named() {
        let a = stacks(&[("t;run;parse", 50.0), ("t;run;find", 50.0)]);
        let b = stacks(&[("t;run;parse", 50.0), ("t;run;find", 50.0), ("t;run;find;sort", 100.0)]);
        let grown = grown(&shares(&a), 10.0, &shares(&b), 20.0);
        let names: Vec<&str> = grown.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["find", "run", "sort", "t"]);
        let svg = flame(&b, Some(&a));
        assert!(
            svg.contains("sort 50.0 %, was 0.0 %") && svg.contains("f-more2"),
            "{svg}"
        );
    }

    #[test]
    fn names_are_short() {
        assert_eq!(short_name("nestor::connection::serve"), "connection::serve");
        assert_eq!(short_name("<a::B as c::D>::e"), "<a::B as c::D>::e");
        assert_eq!(short_name("main"), "main");
    }
}
