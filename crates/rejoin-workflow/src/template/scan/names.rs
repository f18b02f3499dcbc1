//! Names that a text looks up.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the engine has many kinds of nodes; each match needs a few"
)]

use minijinja::machinery::ast::Expr;

use super::super::reference::Reference;
use super::walk::{Walk, text_of};

impl Walk<'_> {
    /// Follows `root.name["name"]` to its root.
    pub(super) fn lookup(&mut self, expression: &Expr<'_>) {
        let mut path: Vec<Option<String>> = Vec::new();
        let mut inner = expression;
        let root = loop {
            match inner {
                Expr::GetAttr(node) => {
                    path.push(Some(node.name.to_owned()));
                    inner = &node.expr;
                }
                Expr::GetItem(node) => {
                    let name = text_of(&node.subscript_expr);
                    if name.is_none() {
                        self.expression(&node.subscript_expr);
                    }
                    path.push(name);
                    inner = &node.expr;
                }
                Expr::Var(root) => break root,
                other => return self.expression(other),
            }
        };
        path.reverse();
        if !self.locals.iter().any(|local| local == root.id) {
            self.name(root.id, &path, root.span().start_offset as usize);
        }
    }

    fn name(&mut self, root: &str, path: &[Option<String>], offset: usize) {
        let first = path.first().and_then(Clone::clone);
        let reference = match (root, first) {
            ("inputs", Some(name)) => Reference::Input(name),
            ("steps", Some(id)) => {
                let attribute = path.get(1).and_then(Clone::clone);
                Reference::Step { id, attribute }
            }
            ("inputs" | "steps", None) => {
                let (what, example) = match root {
                    "inputs" => ("an input", "`inputs.NAME`"),
                    _ => ("a step", "`steps.ID.text`"),
                };
                let text = format!("`{root}` needs the name of {what}");
                return self.fault(offset, text, Some(format!("write {example}")));
            }
            ("run", Some(name)) if name == "id" => return,
            ("run", _) => {
                return self.fault(
                    offset,
                    "`run` has only `run.id`",
                    Some("write `run.id`".into()),
                );
            }
            ("item", _) => Reference::Item("item"),
            ("index", _) => Reference::Item("index"),
            (name, _) => Reference::Unknown(name.to_owned()),
        };
        self.scan.references.push((reference, offset));
    }
}
