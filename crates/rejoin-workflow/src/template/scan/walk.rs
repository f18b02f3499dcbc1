//! Walk over the syntax tree of a text.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the engine has many kinds of nodes; each match needs a few"
)]

use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, Stmt};

use super::super::filters::{EACH, FILTERS, TESTS, TOLERANT};
use super::super::reference::{Fault, ROOTS, Reference};
use super::{Scan, statement_name};
use crate::mistake::instead;

pub(super) struct Walk<'a> {
    source: &'a str,
    pub(super) scan: Scan,
    faults: Vec<Fault>,
    /// Names that `{% for %}` binds.
    pub(super) locals: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            scan: Scan::default(),
            faults: Vec::new(),
            locals: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Result<Scan, Vec<Fault>> {
        if self.faults.is_empty() {
            Ok(self.scan)
        } else {
            Err(self.faults)
        }
    }

    pub(super) fn fault(
        &mut self,
        offset: usize,
        text: impl Into<String>,
        suggestion: Option<String>,
    ) {
        self.faults.push(Fault {
            offset,
            text: text.into(),
            suggestion,
        });
    }

    pub(super) fn statement(&mut self, statement: &Stmt<'_>) {
        if let Some((name, offset)) = statement_name(statement) {
            let only = "a template may use `{{ }}`, `{% if %}` and `{% for %}`".to_owned();
            self.fault(
                offset,
                format!("the statement `{name}` is not available"),
                Some(only),
            );
            return;
        }
        match statement {
            Stmt::Template(node) => self.statements(&node.children),
            Stmt::EmitExpr(node) => self.expression(&node.expr),
            Stmt::IfCond(node) => {
                self.expression(&node.expr);
                self.statements(&node.true_body);
                self.statements(&node.false_body);
            }
            Stmt::ForLoop(node) => self.for_loop(node, node.span().start_offset as usize),
            _ => {}
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn for_loop(&mut self, node: &ast::ForLoop<'_>, offset: usize) {
        if node.recursive {
            self.fault(offset, "`recursive` is not available", None);
        }
        self.expression(&node.iter);
        let outer = self.locals.len();
        self.locals.push("loop".to_owned());
        self.bind(&node.target);
        if let Some(filter) = &node.filter_expr {
            self.expression(filter);
        }
        self.statements(&node.body);
        self.locals.truncate(outer);
        self.statements(&node.else_body);
    }

    fn bind(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(name) => {
                if ROOTS.contains(&name.id) || matches!(name.id, "always" | "failed" | "loop") {
                    let text = format!("the name `{}` is taken", name.id);
                    self.fault(
                        name.span().start_offset as usize,
                        text,
                        Some("use another name".into()),
                    );
                }
                self.locals.push(name.id.to_owned());
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.bind(item)),
            _ => {}
        }
    }

    pub(super) fn expression(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Const(_) => {}
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.lookup(expression),
            Expr::Slice(node) => {
                self.expression(&node.expr);
                for part in [&node.start, &node.stop, &node.step].into_iter().flatten() {
                    self.expression(part);
                }
            }
            Expr::UnaryOp(node) => self.expression(&node.expr),
            Expr::BinOp(node) => {
                if let Some(sign) = match node.op {
                    BinOpKind::Mul => Some("*"),
                    BinOpKind::Pow => Some("**"),
                    _ => None,
                } {
                    let offset = node.span().start_offset as usize;
                    let text = format!("the operator `{sign}` is not available");
                    self.fault(
                        offset,
                        text,
                        Some("compute the value in a `run` step".into()),
                    );
                }
                self.tolerate(matches!(node.op, BinOpKind::In));
                self.expression(&node.left);
                self.expression(&node.right);
            }
            Expr::Compare(node) => {
                self.expression(&node.expr);
                for operand in &node.ops {
                    self.tolerate(matches!(
                        operand.op,
                        CompareOpKind::In | CompareOpKind::NotIn
                    ));
                    self.expression(&operand.expr);
                }
            }
            Expr::IfExpr(node) => {
                self.expression(&node.test_expr);
                self.expression(&node.true_expr);
                if let Some(other) = &node.false_expr {
                    self.expression(other);
                }
            }
            Expr::Filter(node) => {
                self.known("filter", node.name, FILTERS, node.span().end_offset);
                self.tolerate(TOLERANT.contains(&node.name));
                match node.name {
                    "map" => self.named_by_argument(&node.args, 0, "filter of each item", EACH),
                    "select" | "reject" => self.named_by_argument(&node.args, 0, "test", TESTS),
                    "selectattr" | "rejectattr" => {
                        self.named_by_argument(&node.args, 1, "test", TESTS);
                    }
                    _ => {}
                }
                if let Some(inner) = &node.expr {
                    self.expression(inner);
                }
                self.arguments(&node.args);
            }
            Expr::Test(node) => {
                self.known("test", node.name, TESTS, node.span().end_offset);
                self.tolerate(matches!(node.name, "defined" | "undefined" | "in"));
                self.expression(&node.expr);
                self.arguments(&node.args);
            }
            Expr::Call(node) => self.call(node, node.span().start_offset as usize),
            Expr::List(list) => list.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(map) => {
                map.keys
                    .iter()
                    .chain(&map.values)
                    .for_each(|part| self.expression(part));
            }
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value) | CallArg::Kwarg(_, value) => self.expression(value),
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                    let offset = value.span().start_offset as usize;
                    self.fault(
                        offset,
                        "`*` and `**` before an argument are not available",
                        None,
                    );
                }
            }
        }
    }

    fn tolerate(&mut self, yes: bool) {
        self.scan.tolerant |= yes;
    }

    /// Refuses an unknown filter or test, at its name if the name ends the expression.
    fn known(&mut self, kind: &str, name: &str, known: &[&str], end: u32) {
        if known.contains(&name) {
            return;
        }
        let end = end as usize;
        let offset = self
            .source
            .get(..end)
            .and_then(|text| text.rfind(name))
            .unwrap_or(0);
        self.fault(
            offset,
            format!("unknown {kind} `{name}`"),
            Some(instead(name, known)),
        );
    }

    /// Checks a filter or test that an argument names, such as in `map("upper")`.
    fn named_by_argument(
        &mut self,
        arguments: &[CallArg<'_>],
        at: usize,
        kind: &str,
        known: &[&str],
    ) {
        let Some(CallArg::Pos(argument)) = arguments.get(at) else {
            return;
        };
        let span = argument.span();
        match text_of(argument) {
            Some(name) => self.known(kind, &name, known, span.end_offset),
            None => {
                let text = format!("the name of the {kind} must be a text in quotes");
                self.fault(span.start_offset as usize, text, None);
            }
        }
    }

    fn call(&mut self, node: &ast::Call<'_>, offset: usize) {
        let Expr::Var(function) = &node.expr else {
            let filters = "use a filter, such as `steps.ID.text | trim`".to_owned();
            self.fault(offset, "methods are not available", Some(filters));
            return;
        };
        match (function.id, node.args.as_slice()) {
            ("always", []) => self.scan.always = true,
            ("always", _) => self.fault(offset, "`always()` takes no argument", None),
            ("failed", [CallArg::Pos(argument)]) => self.failed(argument),
            ("failed", _) => {
                let one = "name the step: `failed(\"ID\")`".to_owned();
                self.fault(offset, "`failed` takes the id of a step", Some(one));
            }
            (name, _) => {
                let known = Some(instead(name, &["always", "failed"]));
                self.fault(offset, format!("unknown function `{name}`"), known);
            }
        }
    }

    fn failed(&mut self, argument: &Expr<'_>) {
        let offset = argument.span().start_offset as usize;
        let id = match argument {
            Expr::Var(name) if !ROOTS.contains(&name.id) => Some(name.id.to_owned()),
            other => text_of(other),
        };
        match id {
            Some(id) => self.scan.references.push((Reference::Failed(id), offset)),
            None => {
                let quoted = "write the id in quotes: `failed(\"ID\")`".to_owned();
                self.fault(offset, "`failed` takes the id of a step", Some(quoted));
            }
        }
    }
}

/// Returns the text of a constant.
pub(super) fn text_of(expression: &Expr<'_>) -> Option<String> {
    match expression {
        Expr::Const(node) => node.value.as_str().map(str::to_owned),
        _ => None,
    }
}
