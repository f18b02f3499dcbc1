//! Check of the names in all templates and expressions.

use std::collections::{BTreeMap, BTreeSet};

use super::step::Draft;
use crate::mistake::Mistakes;
use crate::template::{Facts, check};
use crate::workflow::Input;

/// Adds a mistake for each name that is unknown or that its step cannot see.
pub(super) fn check_names(
    drafts: &[Draft],
    inputs: &[Input],
    above: &[BTreeSet<usize>],
    bodies: &[BTreeSet<usize>],
    mistakes: &mut Mistakes,
) {
    let inputs: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let id = |at: &usize| drafts.get(*at).map(|draft| draft.step.id.as_str());
    let steps: BTreeMap<&str, bool> = drafts
        .iter()
        .map(|draft| (draft.step.id.as_str(), draft.step.for_each.is_some()))
        .collect();
    for ((at, draft), above) in drafts.iter().enumerate().zip(above) {
        if draft.uses.is_empty() {
            continue;
        }
        // Steps of one loop see each other's results of the round before.
        let rounds = bodies.iter().filter(|body| body.contains(&at)).flatten();
        let mut visible: BTreeSet<&str> = above.iter().chain(rounds).filter_map(id).collect();
        let own = visible.contains(draft.step.id.as_str());
        for found in &draft.uses {
            // A loop's condition is evaluated after the step.
            if found.key == "while" {
                visible.insert(&draft.step.id);
            } else if !own {
                visible.remove(draft.step.id.as_str());
            }
            let facts = Facts {
                inputs: &inputs,
                steps: &steps,
                step: &draft.step.id,
                visible: &visible,
                each: draft.step.for_each.is_some(),
            };
            check(found, &facts, mistakes);
        }
    }
}
