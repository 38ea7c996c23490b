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
            let at = match node.children.iter().position(|(n, _)| *n == part.name) {
                Some(at) => at,
                None => {
                    node.children.push((part.name.clone(), Child::Nested(Node::default())));
                    node.children.len() - 1
                }
            };
            node = match &mut node.children[at].1 {
                Child::Nested(next) => next,
                _ => {
                    let rest: Vec<&str> = parts[depth + 1..].iter().map(|p| p.name.as_str()).collect();
                    return collision(
                        31249,
                        format!("path collision at {path}, remaining portion {}", rest.join(".")),
                    );
                }
            };
        }
        if node.children.iter().any(|(n, _)| *n == last.name) {
            return collision(31250, format!("path collision at {path}"));
        }
        node.children.push((last.name.clone(), child));
        Ok(())
    }
}
