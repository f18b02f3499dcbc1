//! Templates and expressions of a step.

use super::fields::{self, wrong};
use super::step::{StepReader, empty_template};
use crate::mistake::Place;
use crate::template::{Expression, Fault, Scan, Template, Use};
use crate::yaml::{Data, Entry, Node};

impl<'n> StepReader<'_, 'n> {
    /// Returns the template of a text.
    pub(super) fn template(&mut self, entry: &'n Entry, key: &'static str) -> Template {
        if entry.value.text().is_some() {
            return self.template_of(&entry.value, key);
        }
        wrong(entry, "a text", fields::quoted(&entry.value), self.mistakes);
        empty_template()
    }

    pub(super) fn template_of(&mut self, node: &Node, key: &'static str) -> Template {
        let place = |offset| node.place_at(offset);
        match Template::new(&node.raw) {
            Ok((template, scan)) => {
                self.uses(scan, place, key);
                template
            }
            Err(faults) => {
                self.faults(faults, place, "");
                empty_template()
            }
        }
    }

    pub(super) fn expression(&mut self, entry: &'n Entry, key: &'static str) -> Option<Expression> {
        let node = &entry.value;
        if !matches!(node.data, Data::Text | Data::Bool(_) | Data::Number(_)) {
            wrong(
                entry,
                "an expression",
                Some("write it in quotes".into()),
                self.mistakes,
            );
            return None;
        }
        let place = |offset| node.place_at(offset);
        match Expression::new(&node.raw) {
            Ok((expression, scan)) => {
                self.uses(scan, place, key);
                Some(expression)
            }
            Err(faults) => {
                self.faults(faults, place, "");
                None
            }
        }
    }

    pub(super) fn uses(&mut self, scan: Scan, place: impl Fn(usize) -> Place, key: &'static str) {
        let found = scan.references.into_iter();
        self.uses.extend(found.map(|(reference, at)| Use {
            reference,
            place: place(at),
            key,
        }));
    }

    pub(super) fn faults(
        &mut self,
        faults: Vec<Fault>,
        place: impl Fn(usize) -> Place,
        origin: &str,
    ) {
        for fault in faults {
            self.mistakes.push(
                place(fault.offset),
                format!("{origin}{}", fault.text),
                fault.suggestion,
            );
        }
    }
}
