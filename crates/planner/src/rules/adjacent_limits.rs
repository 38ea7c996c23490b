//! `$limit` and `$skip` in a row add up.
//!
//! Laws, for what is taken from a sequence `x`:
//!
//! ```text
//! limit m (limit n x) = limit (min n m) x
//! skip m (skip n x)   = skip (n + m) x            unless that is more than 64 bits
//! skip m (limit n x)  = limit (n - m) (skip m x)  where m < n
//! ```

use crate::plan::StageNode;
use nestor_query::stage::Stage;

pub(super) fn apply(stages: &mut Vec<StageNode>, at: usize) -> bool {
    let (Some(first), Some(second)) = (
        stages.get(at).and_then(StageNode::parsed),
        stages.get(at + 1).and_then(StageNode::parsed),
    ) else {
        return false;
    };
    let (one, other) = match (first, second) {
        (Stage::Limit(n), Stage::Limit(m)) => (Stage::Limit(*n.min(m)), None),
        (Stage::Skip(n), Stage::Skip(m)) => match n.checked_add(*m).filter(|sum| i64::try_from(*sum).is_ok()) {
            Some(sum) => (Stage::Skip(sum), None),
            None => return false,
        },
        (Stage::Limit(n), Stage::Skip(m)) if m < n => (Stage::Skip(*m), Some(Stage::Limit(n - m))),
        _ => return false,
    };
    stages[at] = StageNode::of(one);
    match other {
        Some(other) => stages[at + 1] = StageNode::of(other),
        None => {
            stages.remove(at + 1);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::rewrites;

    #[test]
    fn limits_and_skips_add_up() {
        for (before, after) in [
            (r#"[{"$limit":5},{"$limit":3}]"#, r#"[{"$limit":3}]"#),
            (r#"[{"$skip":5},{"$skip":3}]"#, r#"[{"$skip":8}]"#),
            (r#"[{"$limit":5},{"$skip":3}]"#, r#"[{"$skip":3},{"$limit":2}]"#),
            (r#"[{"$limit":5},{"$skip":5}]"#, r#"[{"$limit":5},{"$skip":5}]"#),
            (
                r#"[{"$skip":1},{"$limit":9},{"$skip":2},{"$limit":3}]"#,
                r#"[{"$skip":3},{"$limit":3}]"#,
            ),
            (
                r#"[{"$skip":9223372036854775807},{"$skip":1}]"#,
                r#"[{"$skip":9223372036854775807},{"$skip":1}]"#,
            ),
        ] {
            rewrites("adjacent_limits", before, after);
        }
    }
}
