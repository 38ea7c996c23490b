//! Other expressions in the place of fields.

use super::{Deps, Expr, Node};
use crate::env::Var;
use nestor_model::Path;

impl Expr {
    /// The expression that has what `of` says in the place of each path of the document; `None` when it reads the document as a whole, or
    /// where `of` has nothing. Within operators that keep their expressions to themselves a path can only stay as it is.
    pub fn substituted(&self, of: &mut dyn FnMut(&Path) -> Option<Expr>) -> Option<Expr> {
        let mut each =
            |exprs: &[Expr]| -> Option<Box<[Expr]>> { exprs.iter().map(|expr| expr.substituted(of)).collect() };
        Some(match &self.0 {
            Node::Constant(_) | Node::Absent | Node::Failing(_) => self.clone(),
            Node::Variable(Var::Root) => return None,
            Node::Path(Var::Root, path) => of(path.path())?,
            Node::Variable(_) | Node::Path(..) => self.clone(),
            Node::Array(items) => Expr(Node::Array(each(items)?)),
            Node::Call { name, eval, args } => Expr(Node::Call {
                name,
                eval: *eval,
                args: each(args)?,
            }),
            Node::Object(fields) => {
                let field = |(name, expr): &(_, Expr)| Some((Clone::clone(name), expr.substituted(of)?));
                Expr(Node::Object(fields.iter().map(field).collect::<Option<_>>()?))
            }
            Node::Operator(_) => {
                let mut deps = Deps::default();
                self.dependencies(&mut deps);
                let stays = |path: &String| {
                    let own = Path::new(path);
                    of(&own).is_some_and(|expr| expr.field_path().is_some_and(|new| new.as_str() == own.as_str()))
                };
                let is_same = !deps.whole_document && deps.paths.iter().all(stays);
                is_same.then(|| self.clone())?
            }
        })
    }
}
