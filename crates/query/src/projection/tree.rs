//! Placing children into the tree, and the collisions of their paths.

use super::{Child, Node, Policy};
use nestor_model::{Error, Path, Result};

impl Node {
    /// Puts `child` at `path`.
    ///
    /// # Errors
    /// 31249 when an ancestor of the path was given before, 31250 when the path itself or one below it
    /// was; both are 40176 for `$addFields`.
    pub(crate) fn insert(&mut self, path: &Path, child: Child, policy: Policy) -> Result<()> {
        let collision = |code, text: String| {
            let code = if policy == Policy::AddFields { 40176 } else { code };
            Err(Error::location(code, text))
        };
        let mut node = self;
        let parts = path.parts();
        let Some((last, ancestors)) = parts.split_last() else {
            return Ok(());
        };
        for (depth, part) in ancestors.iter().enumerate() {
            let at = match node.position(&part.name) {
                Some(at) => at,
                None => {
                    node.push(part.name.clone(), Child::Nested(Node::default()));
                    node.children.len() - 1
                }
            };
            node = match &mut node.children[at].1 {
                Child::Nested(next) => next,
                _ => {
                    let rest: Vec<&str> = parts[depth + 1..].iter().map(|p| p.name.as_str()).collect();
                    return collision(
                        31249,
                        format!("Path collision at {path} remaining portion {}", rest.join(".")),
                    );
                }
            };
        }
        if node.position(&last.name).is_some() {
            return collision(31250, format!("Path collision at {path}"));
        }
        node.push(last.name.clone(), child);
        Ok(())
    }

    /// Puts `child` in the place of the one at `path`, which must be there.
    pub(crate) fn replace(&mut self, path: &Path, child: Child) {
        let mut node = self;
        for part in path.parts() {
            let Some(at) = node.position(&part.name) else { return };
            match &mut node.children[at].1 {
                Child::Nested(next) => node = next,
                leaf => {
                    *leaf = child;
                    return;
                }
            }
        }
    }
}
